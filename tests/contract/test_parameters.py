"""Parameters are stored as given, checked by ``fit``, and do not change earlier results."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    OptimalSurvivalTree,
    RmstParity,
    load_model,
    save_model,
)
from bristlecone.export import export_dict, export_text
from bristlecone.report import html_report
from contract.subjects import EVERY, SUBJECTS, same, untouched


def test_the_constructor_stores_keyword_only_parameters_untouched(subject):
    required = {"task": subject.small["task"]} if "task" in subject.small else {}
    model = subject.cls(**required)
    for parameter in list(inspect.signature(subject.cls.__init__).parameters.values())[1:]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if parameter.name not in required:
            assert getattr(model, parameter.name) is parameter.default
    for name, values in subject.wrong.items():
        for value in values:  # any objects, which ``fit`` checks
            assert getattr(subject.make(**{name: value}), name) is value


def test_fit_leaves_the_parameters_as_they_are(subject):
    model = subject.make()
    before = model.get_params()
    study = subject.study()
    assert study.fit(model) is model
    after = model.get_params()
    assert after.keys() == before.keys()
    assert all(after[name] is value for name, value in before.items())


def test_set_params_returns_the_estimator_and_is_used(subject):
    model = subject.make()
    assert model.set_params(**{subject.depth: 0}) is model
    assert getattr(model, subject.depth) == 0
    assert subject.study().fit(model).n_leaves_ == 1


def test_unknown_parameters_are_refused(subject):
    with pytest.raises(TypeError, match="most_leaves"):
        subject.make(most_leaves=3)
    with pytest.raises(ValueError, match="most_leaves"):
        subject.make().set_params(most_leaves=3)


def test_a_clone_has_the_parameters_and_no_tree(subject):
    model, study = subject.fitted()
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.apply(study.X)
    same(subject.predicted(study.fit(twin), study.X), subject.predicted(model, study.X))


def test_the_representation_names_the_class_and_what_is_not_the_default(subject):
    text = repr(subject.make(verbose=3))
    assert text.startswith(f"{subject.cls.__name__}(")
    assert "verbose=3" in text
    assert "verbose" not in repr(subject.make())
    model, _ = subject.fitted()
    assert repr(model) == repr(clone(model))
    assert subject.cls.__name__ in model._repr_html_()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_parameter_is_in_the_tables(subject):
    described = SUBJECTS[subject]
    names = set(described.make().get_params(deep=False))
    assert set(described.wrong) == names
    assert set(described.other) == names
    fresh = described.make()
    for name, value in described.other.items():
        assert value is None or getattr(fresh, name) is not value


WRONG = [
    pytest.param(name, parameter, value, id=f"{name}-{parameter}-{str(value)[:12]}")
    for name, described in EVERY.items()
    for parameter, values in described.wrong.items()
    for value in values
]


@pytest.mark.parametrize(("name", "parameter", "value"), WRONG)
def test_wrong_values_are_refused_by_name_and_keep_the_earlier_fit(earlier, name, parameter, value):
    model, study = earlier[name]
    before = dict(vars(model))
    if parameter in EVERY[name].replaced:
        study = replace(study, rows={})
    try:
        model.set_params(**{parameter: value})
        with pytest.raises(ValueError, match=f"^{parameter}"):
            study.fit(model)
    finally:
        setattr(model, parameter, before[parameter])
    untouched(model, before)
    unfitted = EVERY[name].make(**{parameter: value})
    with pytest.raises(ValueError, match=f"^{parameter}"):
        study.fit(unfitted)
    assert not hasattr(unfitted, "tree_")


def reported(subject, model, study):
    """All statements of a fitted tree."""
    return {
        "text": export_text(model),
        "dictionary": export_dict(model),
        "description": model.describe(),
        "page": html_report(model),
        "file": None if "files" in subject.cannot else model.to_json(),
        **{name: measure(model, study) for name, measure in subject.measures.items()},
    }


def test_what_is_set_after_the_fit_changes_nothing(subject, tmp_path):
    model, study = subject.fitted()
    parameters = model.get_params()
    predicted, said = subject.predicted(model, study.X), reported(subject, model, study)
    model.set_params(**subject.other)
    same(subject.predicted(model, study.X), predicted)
    now = reported(subject, model, study)
    for name, before in said.items():
        assert now[name] == before, name
    if "files" not in subject.cannot:
        save_model(model, tmp_path / "model.json")
        assert load_model(tmp_path / "model.json").get_params() == parameters


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.BristleconeWarning")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_other_values_are_valid_ones(subject):
    described = SUBJECTS[subject]
    study = described.study()
    more = {name: values(len(study.X)) for name, values in described.routed[1].items()}
    values = {name: value for name, value in described.other.items() if name != "n_jobs"}
    study.fit(described.make(**values), **more)


@pytest.mark.parametrize("verbose", [0, 2, False, True])
def test_a_fit_is_logged_and_never_printed(subject, verbose, caplog, capsys):
    study = subject.study()
    with caplog.at_level("DEBUG", logger="bristlecone"):
        study.fit(subject.make(verbose=verbose))
    levels = {record.levelname for record in caplog.records if record.name == "bristlecone"}
    assert ("INFO" in levels) == bool(verbose)
    assert levels
    assert capsys.readouterr() == ("", "")


def test_the_certificate_keeps_the_parameters_of_the_fit():
    grid, costs = np.array([5.0, 20.0, 80.0]), {"x": 0.25}
    limit = RmstParity(limit=50.0)
    random = np.random.default_rng(0)
    X = pd.DataFrame({"x": random.random(60) < 0.5})
    y = random.random(60) < 0.7, random.exponential(30, 60)
    graded = OptimalSurvivalTree(objective="brier", time_grid=grid).fit(X, y)
    priced = CostSensitiveTreeClassifier(feature_costs=costs).fit(X, y[0])
    fair = OptimalSurvivalTree(fairness=limit, encoder=BinaryEncoder(), shrinkage=0)
    fair.fit(X, y, sensitive_features=random.random(60) < 0.5)
    grid[0], costs["x"] = 99.0, -1.0
    fair.set_params(fairness__limit=1.0, encoder__n_thresholds=3)
    assert graded.certificate_.parameters["time_grid"].tolist() == [5.0, 20.0, 80.0]
    assert priced.certificate_.parameters["feature_costs"] == {"x": 0.25}
    assert fair.certificate_.parameters["fairness"].limit == 50.0
    assert fair.certificate_.parameters["encoder"].n_thresholds == 10
    assert OptimalSurvivalTree.from_json(graded.to_json()).time_grid == [5.0, 20.0, 80.0]
