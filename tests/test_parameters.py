"""Parameters are declared once: checks, docstrings and signatures agree."""

import inspect
import re
import subprocess
import sys
from fractions import Fraction
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
from contract.subjects import SquaredError

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
    SoftSurvivalTree,
)
from bristlecone._estimators.parameters import PARAMETERS
from bristlecone._objectives.parity import CurveParity
from bristlecone.exceptions import InvalidParameterError

X = pd.DataFrame({"a": np.repeat([0.0, 1.0, 2.0, 3.0], 8), "b": np.tile([0.0, 1.0], 16)})
TIME = 1.0 + np.arange(32) % 7 + 3 * X["a"].to_numpy()
SURVIVAL = np.arange(32) % 5 > 0, TIME
LABELS = (X["a"] + X["b"] > 2).to_numpy()
GROUPS = np.tile(["x", "x", "y", "y"], 8)
GROUPED = {"sensitive_features": GROUPS}
HALF = Fraction(1, 2)


# Every class, with parameters that give it all fitted attributes, its target, and data for ``fit``.
CASES = {
    OptimalSurvivalTree: (
        {"fairness": RmstParity(100.0)},
        SURVIVAL,
        GROUPED,
    ),
    GreedySurvivalTree: ({}, SURVIVAL, {}),
    SoftSurvivalTree: (
        {"depth": 1, "n_restarts": 1, "fairness": CurveParity(0.0)},
        SURVIVAL,
        GROUPED,
    ),
    OptimalTreeClassifier: ({"objective": "f1"}, LABELS, {}),
    CostSensitiveTreeClassifier: ({}, LABELS, {}),
    FairTreeClassifier: (
        {"fairness": DemographicParity(0.05)},
        LABELS,
        GROUPED,
    ),
    PolicyTree: (
        {"reward": "inverse-propensity"},
        TIME,
        {"treatment": GROUPS, "propensity": np.full(32, 0.5)},
    ),
    OptimalTreeRegressor: ({}, TIME, {}),
    OptimalTree: ({"task": SquaredError()}, TIME, {}),
}

# Attributes of all classes, even if only survival trees have reference models.
OF_REFERENCES = {"guarantee_", "reference_loss_"}

each_class = pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)


def fitted(cls, **parameters):
    given, y, data = CASES[cls]
    seed = {"random_state": 0} if "random_state" in signature(cls) else {}
    return cls(**{**seed, **given, **parameters}).fit(X, y, **data)


def signature(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.name != "self"}


def entries(documented, title):
    """Entries of a section of the docstring, in order: (names, type, text)."""
    text = inspect.getdoc(documented)
    (section,) = re.findall(rf"^{title}\n-+\n(.*?)(?=\n\n\w[\w ]*\n---|\Z)", text, re.M | re.S)
    found = []
    for entry in re.split(r"\n(?=\S)", section):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found.append((names.split(", "), kind, body.strip()))
    return found


@pytest.mark.parametrize("cls", [*CASES, BinaryEncoder], ids=lambda cls: cls.__name__)
def test_parameters_are_documented_with_their_defaults_in_the_order_of_the_signature(cls):
    documented = entries(cls, "Parameters")
    parameters = signature(cls)
    assert [name for names, _, _ in documented for name in names] == list(parameters)
    for (name,), kind, text in documented:
        default = parameters[name]
        kind, _, reported = kind.partition(", default=")
        assert kind and text, name
        if default is inspect.Parameter.empty:
            assert reported == ""
        else:
            assert reported == (f'"{default}"' if isinstance(default, str) else repr(default)), name


@pytest.mark.parametrize("cls", [*CASES, BinaryEncoder], ids=lambda cls: cls.__name__)
def test_arguments_of_fit_are_documented_in_their_order(cls):
    documented = entries(cls.fit, "Parameters")
    assert [name for names, _, _ in documented for name in names] == list(signature(cls.fit))
    assert entries(cls.fit, "Returns")[0][0] == [cls.__name__]
    assert entries(cls.fit, "Raises") and entries(cls.fit, "Warns")


@each_class
def test_fitted_attributes_are_those_of_the_docstring(cls):
    models = [fitted(cls)]
    if cls is OptimalTreeClassifier:  # trees for measures have a front and no importances
        models.append(fitted(cls, objective="accuracy"))
    attributes = {
        name
        for model in models
        for name in dir(model)
        if name.endswith("_") and not name.startswith("_") and hasattr(model, name)
    }
    documented = entries(cls, "Attributes")
    names = [name for names, _, _ in documented for name in names]
    assert len(names) == len(set(names))
    exceptions = set() if cls is OptimalSurvivalTree else OF_REFERENCES
    assert set(names) == attributes - exceptions
    assert all(kind and text for _, kind, text in documented)


# Entries of several classes have the same text, or begin with it.
ALIKE = (
    *("max_leaf_nodes", "min_samples_leaf", "min_events_leaf", "time_limit", "memory_limit"),
    *("verbose", "X", "callback", "n_leaves_", "fit_time_", "n_binary_features_", "leaves_"),
    *("n_nodes_explored_", "certificate_", "splits_", "features_used_", "SearchLimitWarning"),
    *("SearchCostWarning", "ConstantFeatureWarning"),
)


@pytest.mark.parametrize("name", ALIKE)
def test_entries_that_classes_share_begin_alike(name):
    texts = []
    for cls in set(CASES) - {SoftSurvivalTree}:  # its features, limits and data differ
        parts = [(cls, "Parameters"), (cls, "Attributes")]
        parts += [(cls.fit, title) for title in ("Parameters", "Raises", "Warns")]
        found = [entry for documented, title in parts for entry in entries(documented, title)]
        texts += [" ".join(text.split()) for names, _, text in found if names[0] == name]
    assert len(texts) > 1
    assert all(text.startswith(min(texts, key=len)) for text in texts), texts


@each_class
@pytest.mark.parametrize("name", PARAMETERS)
def test_shared_parameters_of_a_wrong_type_are_refused_by_name(cls, name):
    if name not in signature(cls):
        pytest.skip("not a parameter of this class")
    for wrong in (object(), [1], "nonsense", 1j):
        with pytest.raises(InvalidParameterError, match=f"^{name} "):
            fitted(cls, **{name: wrong})


@pytest.mark.parametrize("name", PARAMETERS)
def test_durations_of_numpy_are_no_numbers(name):
    for wrong in (np.timedelta64(2, "s"), np.timedelta64("NaT")):
        with pytest.raises(InvalidParameterError, match=f"^{name} "):
            PARAMETERS[name].check(name, wrong)


@each_class
def test_own_parameters_of_a_wrong_type_are_refused_by_name(cls):
    for name in signature(cls).keys() - PARAMETERS.keys():
        parameters = {"objective": "brier"} if name == "time_grid" else {}
        with pytest.raises((ValueError, TypeError), match=name):
            fitted(cls, **{name: object(), **parameters})


@each_class
def test_types_list_the_values_that_docstring_and_check_list(cls):
    listed = {
        name: {value for value in get_args(part) if get_origin(part) is Literal}
        for name, hint in get_type_hints(cls).items()
        if name in signature(cls)
        for part in (get_args(hint) if get_origin(hint) is Union else (hint,))
        if get_origin(part) is Literal
    }
    assert listed or cls in (CostSensitiveTreeClassifier, FairTreeClassifier, OptimalTree)
    stated = {
        name: set(re.findall(r'"([^"]+)"', kind))
        for names, kind, _ in entries(cls, "Parameters")
        for name in names
        if "{" in kind
    }
    assert all(listed[name] == stated[name] for name in listed.keys() & stated.keys())
    for name, values in listed.items():
        with pytest.raises(InvalidParameterError) as refused:
            fitted(cls, **{name: "nonsense"})
        assert all(f"'{value}'" in str(refused.value) for value in values)


@each_class
def test_shared_defaults_are_those_of_the_signatures(cls):
    parameters = signature(cls)
    for name in PARAMETERS.keys() & parameters.keys():
        PARAMETERS[name].check(name, PARAMETERS[name].default)
        if name == "shrinkage" and cls in (OptimalSurvivalTree, GreedySurvivalTree):
            assert parameters[name] == "auto"
        elif name == "min_samples_leaf" and cls is FairTreeClassifier:
            assert parameters[name] == 5
        else:
            assert parameters[name] == PARAMETERS[name].default, name


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (OptimalSurvivalTree, {"leaf_penalty": HALF, "min_samples_leaf": HALF / 2}),
        (OptimalSurvivalTree, {"fairness": RmstParity(HALF, tau=5 * HALF)}),
        (OptimalTreeClassifier, {"class_weight": {False: HALF, True: 1}}),
        (CostSensitiveTreeClassifier, {"cost_matrix": [[0, HALF], [1, 0]]}),
        (FairTreeClassifier, {"fairness": DemographicParity(HALF)}),
        (PolicyTree, {"min_propensity": HALF / 10}),
    ],
)
def test_fractions_are_numbers(cls, parameters):
    tree = fitted(cls, **parameters)
    assert cls.from_json(tree.to_json()).describe() == tree.describe()


def test_the_horizon_of_a_policy_may_be_a_fraction():
    tree = PolicyTree(reward="inverse-propensity", horizon=5 * HALF)
    tree.fit(X, SURVIVAL, treatment=GROUPS, propensity=0.5)
    assert "up to 2.5" in tree.describe()


@pytest.mark.slow
def test_python_without_docstrings_imports_and_fits():
    program = (
        "from bristlecone import *\n"
        "assert OptimalTreeRegressor.__doc__ is None\n"
        "tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])\n"
        "print(tree.predict([[0.0], [9.0]]).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[2.0, 11.0]\n"), done.stderr
