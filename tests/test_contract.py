"""Every survival tree against the contract of ``survival_contract``."""

import inspect

import pytest
from papers import PAPERS
from survival_contract import CHECKS, CURVES_NEEDED, sample

from bristlecone.encoder import BinaryEncoder
from bristlecone.estimators.greedy import GreedySurvivalTree
from bristlecone.estimators.survival import OptimalSurvivalTree


def factory(cls, leaf_curves=("proportional", "kaplan-meier"), **fixed):
    """Makes an estimator of small depth; what a test asks for comes first."""

    def make(**parameters):
        return cls(**{"max_depth": 2, **fixed, **parameters})

    make.leaf_curves, make.papers = leaf_curves, PAPERS
    return make


BRIER_CURVES = ("kaplan-meier", "brier-optimal")
FACTORIES = {
    "optimal": factory(OptimalSurvivalTree),
    "optimal as in the papers": factory(OptimalSurvivalTree, **PAPERS),
    "brier": factory(OptimalSurvivalTree, BRIER_CURVES, objective="brier"),
    "brier as in the papers": factory(
        OptimalSurvivalTree, BRIER_CURVES, objective="brier", **PAPERS
    ),
    "brier of fitted curves": factory(
        OptimalSurvivalTree, BRIER_CURVES, objective="brier", leaf_curve="brier-optimal"
    ),
    "greedy": factory(GreedySurvivalTree),
    "greedy as in the papers": factory(GreedySurvivalTree, **PAPERS),
    "greedy by log-rank": factory(GreedySurvivalTree, criterion="logrank"),
    "greedy over thresholds": factory(GreedySurvivalTree, encoder=None),
}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(name, check, id=f"{name}-{check.__name__.removeprefix('check_')}")
        for name, make in FACTORIES.items()
        for check in CHECKS
        if CURVES_NEEDED.get(check.__name__) in (None, *make.leaf_curves)
    ],
)
def test_contract(estimator, check, tmp_path):
    places = (
        {"path": tmp_path / "model.json"} if "path" in inspect.signature(check).parameters else {}
    )
    check(FACTORIES[estimator], **places)


IMPOSSIBLE = {
    "max_depth": [-1, 2.0, True, 2**63],
    "max_leaf_nodes": [0, 10**30],
    "min_samples_leaf": [0, None, 2**63, 1.0, 0.0],
    "min_events_leaf": [0, True, 1.5, "five", 2**63],
    "prior": [-0.5, None, float("nan"), "none", 10**400],
    "shrinkage": [-0.1, float("nan"), "much", None, 10**400],
    "leaf_curve": ["weibull", None],
    "encoder": ["quantiles", 3, BinaryEncoder],
    "random_state": ["seed"],
    "verbose": [-1],
}
IMPOSSIBLE_FOR = {
    "optimal": {
        "fairness": ["rmst", 0.5],
        "objective": ["gini", None],
        "leaf_curve": ["brier-optimal"],
        "time_grid": [[1.0]],
        "max_depth": [None],
        "leaf_penalty": [-0.1, float("nan"), "0.1", 10**400],
        "time_limit": [-1, float("inf")],
        "memory_limit": [0, 1e9, 2**63],
        "n_jobs": [0, 1.5, 2**63],
    },
    "brier": {
        "leaf_curve": ["proportional"],
        "time_grid": ["days", [], [[1.0]], [2.0, 1.0], [-1.0, 2.0], [1.0, float("nan")], 3.0],
    },
    "greedy": {"criterion": ["gini", None], "leaf_curve": ["brier-optimal"]},
}


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (estimator, name, value)
        for estimator, own in IMPOSSIBLE_FOR.items()
        for table in (IMPOSSIBLE, own)
        for name, values in table.items()
        for value in values
    ],
)
def test_unknown_parameter_values_name_the_parameter(estimator, name, value):
    X, y = sample(n=20)
    model = FACTORIES[estimator](**{name: value})
    with pytest.raises(ValueError, match=f"^{name}"):
        model.fit(X, y)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("estimator", IMPOSSIBLE_FOR)
def test_verbosity_may_be_a_boolean(estimator, verbose):
    X, y = sample(n=20)
    assert FACTORIES[estimator](verbose=verbose, **PAPERS).fit(X, y).n_leaves_ > 1


@pytest.mark.parametrize("estimator", ["optimal", "greedy"])
def test_every_parameter_is_in_the_tables_above(estimator):
    names = set(FACTORIES[estimator]().get_params())
    assert names == set(IMPOSSIBLE) | set(IMPOSSIBLE_FOR[estimator])
