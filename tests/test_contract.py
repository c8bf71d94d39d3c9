"""Every survival tree against the contract of ``survival_contract``."""

import inspect

import pytest
from bristlecone.optimal import OptimalSurvivalTree
from survival_contract import CHECKS, sample


def make_optimal(**parameters):
    return OptimalSurvivalTree(**{"max_depth": 2, **parameters})


FACTORIES = {"OptimalSurvivalTree": make_optimal}


@pytest.mark.parametrize("estimator", FACTORIES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_contract(estimator, check, tmp_path):
    places = (
        {"path": tmp_path / "model.json"} if "path" in inspect.signature(check).parameters else {}
    )
    check(FACTORIES[estimator], **places)


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        ("OptimalSurvivalTree", "objective", "brier"),
        ("OptimalSurvivalTree", "objective", None),
        ("OptimalSurvivalTree", "max_depth", -1),
        ("OptimalSurvivalTree", "max_depth", 2.0),
        ("OptimalSurvivalTree", "max_depth", True),
        ("OptimalSurvivalTree", "max_depth", None),
        ("OptimalSurvivalTree", "max_leaf_nodes", 0),
        ("OptimalSurvivalTree", "min_samples_leaf", 0),
        ("OptimalSurvivalTree", "min_samples_leaf", None),
        ("OptimalSurvivalTree", "leaf_penalty", -0.1),
        ("OptimalSurvivalTree", "leaf_penalty", float("nan")),
        ("OptimalSurvivalTree", "leaf_penalty", "0.1"),
        ("OptimalSurvivalTree", "leaf_curve", "weibull"),
        ("OptimalSurvivalTree", "time_limit", -1),
        ("OptimalSurvivalTree", "memory_limit", 0),
        ("OptimalSurvivalTree", "memory_limit", 1e9),
        ("OptimalSurvivalTree", "n_jobs", 0),
        ("OptimalSurvivalTree", "n_jobs", 1.5),
        ("OptimalSurvivalTree", "encoder", "quantiles"),
        ("OptimalSurvivalTree", "random_state", "seed"),
        ("OptimalSurvivalTree", "verbose", -1),
    ],
)
def test_unknown_parameter_values_name_the_parameter(estimator, name, value):
    X, y = sample(n=20)
    model = FACTORIES[estimator](**{name: value})
    with pytest.raises(ValueError, match=f"^{name}"):
        model.fit(X, y)
    assert not hasattr(model, "tree_")
