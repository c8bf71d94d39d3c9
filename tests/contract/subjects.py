"""The estimators of the contract. Each entry defines how to fit one, and its predictions.

Data are numeric and continuous except ``mixed``, so that no two splits are equally
good. Outcomes are so random that no two trees are equally good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from papers import PAPERS
from scipy.sparse import issparse
from sklearn.linear_model import Ridge
from user_tasks import SquaredError

from bristlecone import (
    BinaryEncoder,
    CompetingRisksTree,
    CostSensitiveTreeClassifier,
    DemographicParity,
    EqualizedOdds,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
    SoftSurvivalTree,
    Task,
)
from bristlecone._objectives.parity import CurveParity
from contract.studies import (
    Study,
    causes,
    counts,
    grouped_labels,
    labels,
    lifetimes,
    mixed_columns,
    numbers,
    priced_labels,
    treated,
)

TIMES = (0.0, 3.5, 12.0, 30.0, 1e6)


@dataclass(frozen=True)
class Subject:
    """An estimator under test.

    ``predictions`` are methods, with options, that return an array. ``wrong`` has values that
    ``fit`` rejects for every parameter, and ``other`` a valid value that differs from ``small``.
    ``cannot`` has the error (a pattern) for what the estimator does not support: "files" ·
    "categories" · "missing" · "importances". ``by_weight`` are the parameters with which nothing
    counts rows instead of their weight. ``replaced`` are parameters that ``rows`` replace.
    ``scoring`` scores without arguments by row; None is the method ``score``. ``routed`` are
    parameters, and arguments by row, for tests of metadata routing. ``measures`` are figures of a
    fitted tree on rows, ``table`` columns of its ``leaf_table``.
    """

    cls: type
    outcome: Callable[..., tuple[Any, dict[str, Any]]]
    predictions: tuple[tuple[str, dict[str, Any]], ...]
    wrong: dict[str, list[Any]]
    other: dict[str, Any]
    small: dict[str, Any] = field(default_factory=lambda: {"max_depth": 2})
    by_weight: dict[str, Any] = field(default_factory=dict)
    bad: dict[str, tuple[Callable[[Study], Study], str]] = field(default_factory=dict)
    cannot: dict[str, str] = field(default_factory=dict)
    single_row: str | None = None
    searched: bool = True
    depth: str = "max_depth"
    needs_every_column: bool = False
    replaced: tuple[str, ...] = ()
    scoring: Any = None
    routed: tuple[dict[str, Any], dict[str, Callable[[int], Any]]] = ({}, {})
    measures: dict[str, Callable[[Any, Study], Any]] = field(default_factory=dict)
    table: tuple[str, ...] = ()

    def make(self, **parameters):
        return self.cls(**{**self.small, **parameters})

    def study(self, n=80, seed=0, mixed=False):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x0", "x1", "x2", "x3"])
        effect = 1.2 * (X["x0"] > 0.2) - 0.9 * (X["x1"] > -0.4) + 0.3 * X["x2"]
        if mixed:
            X, effect = mixed_columns(rng, n)
        y, rows = self.outcome(rng, np.asarray(effect, dtype=float))
        return Study(X, y, rows)

    def fitted(self, mixed=False, **parameters):
        """A fitted estimator and its rows."""
        study = self.study(mixed=mixed)
        return study.fit(self.make(**parameters)), study

    def predicted(self, model, X):
        """All predictions that are arrays."""
        found = {}
        for name, options in self.predictions:
            values = getattr(model, name)(X, **options)
            found[name] = values.toarray() if issparse(values) else values
        return found

    @property
    def survival(self):
        return hasattr(self.cls, "predict_cumulative_hazard_function")


def same(one, other, rtol=0.0):
    """Assert that two results of ``Subject.predicted`` are equal, numbers up to ``rtol``."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        if rtol and values.dtype.kind == "f":
            np.testing.assert_allclose(values, other[name], rtol=rtol, atol=rtol, err_msg=name)
        else:
            np.testing.assert_array_equal(values, other[name], err_msg=name)


def untouched(model, before):
    """Assert that every attribute is still the same object."""
    now = vars(model)
    assert now.keys() == before.keys()
    assert [name for name, value in before.items() if now[name] is not value] == []


def closeness(model, X, y):
    """The negative mean squared error."""
    return -np.mean((model.predict(X) - y) ** 2)


def promised(policy, X, y):
    """Mean outcome that a policy predicts: a scorer without arguments by row."""
    return policy.predict_outcomes(X).max(axis=1).mean()


class AbsoluteSum(Task):
    """Another task, without predictions."""

    def statistics(self, X, y):
        return np.column_stack([y, np.ones(len(y))])

    def leaf_cost(self, sums):
        return -np.abs(sums[:, 0])


# Predictions

ROUTES = (("apply", {}), ("decision_path", {}))
LABELS = (*ROUTES, ("predict", {}), ("predict_proba", {}))
VALUES = (*ROUTES, ("predict", {}))
CURVES = (
    *VALUES,
    ("predict_survival_function", {"times": TIMES}),
    ("predict_cumulative_hazard_function", {"times": TIMES}),
    ("predict_quantile", {"q": [0.2, 0.5]}),
    ("predict_median", {}),
    ("predict_rmst", {"tau": 20.0}),
)
MEMBERSHIPS = (("predict_proba_leaf", {}), ("predict_proba_branch", {}))

# Parameters: invalid values, and valid ones that differ from those of a small tree.

NAN, HUGE = float("nan"), 10**400
WRONG = {
    "max_depth": [-1, 2.0, True, 2**63, "deep"],
    "max_leaf_nodes": [0, 1.5, 10**30],
    "min_samples_leaf": [0, None, 2**63, 1.0, 0.0, "1"],
    "encoder": ["quantiles", 3, BinaryEncoder],
    "verbose": [-1, "loud"],
}
# For classes with a teacher, which uses the seed.
WRONG_TEACHER = {
    "random_state": ["seed"],
    "teacher": ["best", BinaryEncoder, 3],
    "teacher_weight": [-0.1, 1.5, NAN, None],
}
OTHER_TEACHER = {"random_state": 7, "teacher": "auto", "teacher_weight": 0.25}
WRONG_SEARCH = {
    **WRONG,
    "max_depth": [*WRONG["max_depth"], None],
    "leaf_penalty": [-0.1, NAN, "0.1", HUGE, None],
    "time_limit": [-1, float("inf"), "1"],
    "memory_limit": [0, 1e9, 2**63],
    "n_jobs": [0, 1.5, 2**63],
}
WRONG_SURVIVAL = {
    **WRONG_TEACHER,
    "min_events_leaf": [0, True, 1.5, "five", 2**63],
    "prior": [-0.5, None, NAN, "none", HUGE],
    "shrinkage": [-0.1, NAN, "much", None, HUGE],
    "leaf_curve": ["weibull", None, "brier-optimal"],
}
WRONG_LABELS = {**WRONG_SEARCH, "shrinkage": [-0.1, NAN, "auto", None, HUGE]}
OTHER = {
    "max_depth": 5,
    "max_leaf_nodes": 3,
    "min_samples_leaf": 9,
    "encoder": BinaryEncoder(n_thresholds=2, missing="branch"),
    "verbose": 1,
}
OTHER_SEARCH = {**OTHER, "leaf_penalty": 0.3, "time_limit": 5.0, "memory_limit": 10**9, "n_jobs": 2}
# Their other objectives do not accept a teacher.
OTHER_SURVIVAL = {
    **OTHER_TEACHER,
    "teacher": None,
    "min_events_leaf": 2,
    "prior": 3.0,
    "shrinkage": 2.0,
    "leaf_curve": "kaplan-meier",
}
OTHER_LABELS = {**OTHER_SEARCH, "shrinkage": 2.0}


# Invalid outcomes, and the errors.


def spoilt(change, message):
    """Rows with a changed copy of the outcomes."""

    def bad(study):
        y = study.y.copy()
        changed = change(y)
        return replace(study, y=y if changed is None else changed)

    return bad, message


def put(place, value):
    return lambda y: y.__setitem__(place, value)


def months(y, row, value):
    y["months"][row] = value


def by_row(name, change, message):
    """Rows with a changed argument of this name."""
    return lambda study: replace(
        study, rows={**study.rows, name: change(study.rows[name])}
    ), message


BAD_SURVIVAL = {
    "time missing": spoilt(lambda y: months(y, 7, NAN), "'months'.* nan in row 7"),
    "time infinite": spoilt(lambda y: months(y, 7, np.inf), "'months'.* inf in row 7"),
    "time negative": spoilt(lambda y: months(y, 7, -1.0), r"'months'.* -1\.0 in row 7"),
    "no event": spoilt(lambda y: y["dead"].fill(False), "no event"),
    "no boolean": spoilt(lambda y: y.astype([("a", float), ("b", float)]), "one boolean field"),
    "one number per row": spoilt(lambda y: y["months"], r"ndarray of shape \(80,\)"),
}
BAD_CAUSES = {
    **{name: bad for name, bad in BAD_SURVIVAL.items() if "time" in name},
    "no event": spoilt(lambda y: y["cause"].fill(0), "no event"),
    "no cause 1": spoilt(lambda y: np.put(y["cause"], np.arange(80), 2), "no event of cause 1"),
    "negative": spoilt(lambda y: y["cause"].__setitem__(7, -1), "'cause' of y is -1 in row 7"),
    "too large": spoilt(lambda y: y["cause"].__setitem__(7, 99), "but one of cause 99 in row 7"),
    "fraction": spoilt(
        lambda y: pd.DataFrame({"event": y["cause"] / 2, "time": y["months"]}), r"is 0\.5 in row"
    ),
}
BAD_NUMBERS = {
    "missing": spoilt(put(7, NAN), "y contains NaN or infinity: nan in row 7"),
    "infinite": spoilt(put(7, -np.inf), "y contains NaN or infinity: -inf in row 7"),
    "text": spoilt(lambda y: y.astype(str).astype(object) + "?", "y has dtype .*expected numbers"),
    "two columns": spoilt(lambda y: np.stack([y, y], axis=1), r"shape \(80, 2\)"),
}
BAD_LABELS = {
    "missing": spoilt(lambda y: np.where(np.arange(80) == 7, None, y), "y is missing in row 7"),
    "several types": spoilt(
        lambda y: np.where(np.arange(80) == 7, 3, y.astype(object)), "y mixes labels of several"
    ),
    "missing in a list": spoilt(lambda y: [*y[:7], NAN, *y[8:]], "y is missing in row 7"),
    "several types in a list": spoilt(lambda y: [*y[:7], 3, *y[8:]], "y mixes labels of several"),
    "infinite": spoilt(lambda y: np.where(y == "yes", np.inf, 0), "y contains NaN or infinity"),
    "continuous": spoilt(lambda y: np.linspace(0, 1, 80), "continuous"),
    "two columns": spoilt(lambda y: np.stack([y, y], axis=1), r"shape \(80, 2\)"),
}


SURVIVAL = {
    "outcome": lifetimes,
    "predictions": CURVES,
    "bad": BAD_SURVIVAL,
    "single_row": "n_samples=1: a survival tree needs at least two rows",
    "by_weight": PAPERS,
    "table": ("n_events", "median"),
}

SUBJECTS = {
    "OptimalSurvivalTree": Subject(
        OptimalSurvivalTree,
        **SURVIVAL,
        wrong={
            **WRONG_SEARCH,
            **WRONG_SURVIVAL,
            "objective": ["gini", None],
            "fairness": ["rmst", 0.5],
            "time_grid": [[1.0]],
        },
        other={
            **OTHER_SEARCH,
            **OTHER_SURVIVAL,
            "objective": "brier",
            "prior": 0,
            "shrinkage": 0,
            "fairness": RmstParity(5.0, tau=20.0),
            "time_grid": [1.0, 2.0],
        },
        routed=(
            {"fairness": RmstParity(8.0, tau=20.0)},
            {"sensitive_features": lambda n: np.where(np.arange(n) % 2, "a", "b")},
        ),
    ),
    "GreedySurvivalTree": Subject(
        GreedySurvivalTree,
        **SURVIVAL,
        searched=False,
        wrong={
            **WRONG,
            **WRONG_SURVIVAL,
            "criterion": ["gini", None],
        },
        other={**OTHER, **OTHER_SURVIVAL, "criterion": "logrank"},
    ),
    "CompetingRisksTree": Subject(
        CompetingRisksTree,
        causes,
        (
            *VALUES,
            ("predict", {"cause": 2}),
            ("predict_cumulative_incidence", {"cause": 2, "times": TIMES}),
            ("predict_survival_function", {"times": TIMES}),
        ),
        by_weight={"min_events_leaf": None},
        single_row="but one of cause 2 in row 0",
        bad=BAD_CAUSES,
        wrong={
            **WRONG_SEARCH,
            **{name: WRONG_SURVIVAL[name] for name in ("min_events_leaf", "prior")},
            "shrinkage": [*WRONG_SURVIVAL["shrinkage"], 3.0],
            "leaf_curve": ["kaplan-meier", None],
            "cause_weights": [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, NAN], "much", 3],
            "n_causes": [0, 2.0, True, 9],
        },
        other={
            **OTHER_SEARCH,
            "min_events_leaf": 2,
            "prior": 3.0,
            "shrinkage": 2.0,
            "leaf_curve": "proportional",
            "cause_weights": [1.0, 0.5, 2.0],
            "n_causes": 3,
        },
        table=("theta_1", "theta_2"),
    ),
    "SoftSurvivalTree": Subject(
        SoftSurvivalTree,
        **{**SURVIVAL, "predictions": (*CURVES, *MEMBERSHIPS), "by_weight": {"l2": 0.1}},
        searched=False,
        depth="depth",
        needs_every_column=True,
        cannot={"importances": r"^(?!.*object has no attribute).*SoftSurvivalTree"},
        # With one start and few rows, a leaf may be below its share; "joint" is the faster solver.
        small={
            "depth": 1,
            "solver": "joint",
            "solver_options": {"tol": 1e-3},
            "n_restarts": 1,
            "random_state": 0,
            "min_leaf_share": 0.0,
        },
        wrong={
            "depth": [-1, 2.0, True, 11],
            "leaf": ["cox", None],
            "n_knots": [-1, None],
            "solver": ["sgd", None],
            "n_restarts": [0, 2.5],
            "l2": [-0.1, NAN, "0.1"],
            "pooling": [-1.0, "3"],
            "split_l2": [-1],
            "balance": [-0.1, None],
            "min_leaf_share": [-0.1, None],
            "l1": [float("inf")],
            "fairness": [0.01, RmstParity(1.0), CurveParity(-1.0)],
            "max_categories": [0],
            "handle_unknown": ["drop"],
            "solver_options": [
                "fast",
                {"init": "zeros"},
                {"n_macro": -1},
                {"max_iter": 0},
                {"tol": -1e-3},
                {"steps": 3},
            ],
            "n_jobs": [0, 1.5],
            "random_state": ["seed"],
            "verbose": [-1],
        },
        other={
            "depth": 2,
            "leaf": "weibull",
            "n_knots": 3,
            "solver": "nodec",
            "n_restarts": 4,
            "l2": 0.7,
            "pooling": None,
            "split_l2": 0.5,
            "balance": 0.3,
            "min_leaf_share": 0.2,
            "l1": 0.3,
            "fairness": CurveParity(2.0),
            "max_categories": 2,
            "handle_unknown": "error",
            "solver_options": {"init": "random", "n_macro": 3, "max_iter": 10, "tol": 0.1},
            "n_jobs": 2,
            "random_state": 7,
            "verbose": 1,
        },
        routed=(
            {"fairness": CurveParity(0.0)},
            {"sensitive_features": lambda n: np.where(np.arange(n) % 2, "a", "b")},
        ),
    ),
    "OptimalTreeClassifier": Subject(
        OptimalTreeClassifier,
        labels,
        LABELS,
        bad=BAD_LABELS,
        wrong={
            **WRONG_LABELS,
            **WRONG_TEACHER,
            "objective": ["mcc2", None],
            "class_weight": [3, "even", {"yes": -1.0}],
        },
        other={
            **OTHER_LABELS,
            **OTHER_TEACHER,
            "objective": "entropy",
            "class_weight": {"no": 3.0},
        },
        table=("label",),
    ),
    "CostSensitiveTreeClassifier": Subject(
        CostSensitiveTreeClassifier,
        priced_labels,
        LABELS,
        bad={
            **BAD_LABELS,
            "costs, too few": by_row("costs", lambda v: v[:-1], r"costs has shape \(79, 2\)"),
            "costs, negative": by_row("costs", lambda v: v - 1, r"costs\[0, \d\] is -"),
        },
        wrong={
            **WRONG_LABELS,
            **WRONG_TEACHER,
            "feature_costs": [
                3,
                {"x9": 1.0},
                {"x0": -1.0},
                [1.0],
                {"x0": {"cost": 1.0, "discounted_cost": 99.0}},
                {"x0": {"group": "blood"}},
            ],
            "cost_matrix": [[[1.0]], "much", [[0, -1], [1, 0]]],
        },
        other={
            **OTHER_LABELS,
            **OTHER_TEACHER,
            "cost_matrix": [[0, 3], [1, 0]],
            "feature_costs": {
                "x0": {"cost": 0.5, "discounted_cost": 0.1, "group": "blood", "origin": "blood"},
                "x1": {"cost": 0.0, "group": "blood"},
            },
        },
        replaced=("cost_matrix",),
        single_row=r"costs has shape \(1, 2\); expected \(1, 1\)",
        measures={"mean_cost": lambda model, study: model.mean_cost(study.X, study.y)},
        table=("label",),
    ),
    "FairTreeClassifier": Subject(
        FairTreeClassifier,
        grouped_labels,
        LABELS,
        bad={
            **BAD_LABELS,
            "three labels": spoilt(
                lambda y: np.resize(["a", "b", "c"], 80), "Only binary classification"
            ),
            "one group": by_row(
                "sensitive_features", np.zeros_like, "sensitive_features has one value"
            ),
            "a group missing": by_row(
                "sensitive_features",
                lambda v: [*v[:7], NAN, *v[8:]],
                "sensitive_features is missing in row 7",
            ),
            "groups, too few": by_row(
                "sensitive_features", lambda v: v[:-1], "80 rows but sensitive_features .* 79"
            ),
        },
        single_row="sensitive_features has one value",
        small={"max_depth": 2, "fairness": DemographicParity(0.1)},
        wrong={
            **WRONG_LABELS,
            "fairness": [
                None,
                0.05,
                RmstParity(1.0),
                *(DemographicParity(limit) for limit in (-0.1, 2.0, NAN, "small")),
            ],
            "class_weight": [3, "even", {"yes": -1.0}, {"yes": 0.0}],
        },
        other={
            **OTHER_LABELS,
            "fairness": EqualizedOdds(0.2),
            "class_weight": {"no": 3.0},
        },
        table=("label",),
    ),
    "PolicyTree": Subject(
        PolicyTree,
        treated,
        (*VALUES, ("predict_outcomes", {})),
        single_row="treatment has one value",
        bad={
            **BAD_NUMBERS,
            "treatments, too few": by_row("treatment", lambda v: v[:-1], "80 rows but treatment"),
            "a treatment missing": by_row(
                "treatment", lambda v: [*v[:7], NAN, *v[8:]], "treatment is missing in row 7"
            ),
            "no probability": by_row("propensity", np.zeros_like, "propensity"),
            "one outcome": by_row(
                "predicted_outcomes", lambda v: v[:, :1], r"predicted_outcomes.*\(80, 1\)"
            ),
        },
        wrong={
            **WRONG_SEARCH,
            "random_state": ["seed"],
            "reward": ["oracle", None],
            "outcome_model": ["forest", BinaryEncoder, 3],
            "propensity_model": ["forest", Ridge(), 3],
            "min_propensity": [0.0, 0.6, NAN, None, "auto"],
            "horizon": [0.0, -1.0, NAN, "late"],
            "estimand": ["median", None],
            "capacities": [0.5, {"drug": 2.0}, {"drug": NAN}, {"placebo": 0.5}],
            "min_samples_treatment": [-1, 1.5, True, None, 80],
        },
        other={
            **OTHER_SEARCH,
            "random_state": 7,
            "reward": "direct",
            "outcome_model": None,
            "propensity_model": None,
            "min_propensity": 0.1,
            # The outcomes of this study are not censored.
            "horizon": None,
            "estimand": "survival",
            # Not with a minimum of rows of every treatment.
            "capacities": {},
            "min_samples_treatment": 2,
        },
        scoring=promised,
        measures={"policy_value_": lambda model, _: model.policy_value_},
        table=("label",),
    ),
    "OptimalTreeRegressor": Subject(
        OptimalTreeRegressor,
        numbers,
        VALUES,
        bad=BAD_NUMBERS,
        wrong={**WRONG_LABELS, **WRONG_TEACHER, "objective": ["gamma", None]},
        # These are not counts: the same objective as another object.
        other={**OTHER_LABELS, **OTHER_TEACHER, "objective": "".join(["squared", "-error"])},
        table=("mean",),
    ),
    "OptimalTree": Subject(
        OptimalTree,
        numbers,
        VALUES,
        bad={
            "missing": spoilt(put(7, NAN), "statistics.*row 7"),
            "infinite": spoilt(put(7, np.inf), "statistics.*row 7"),
        },
        small={"max_depth": 2, "task": SquaredError()},
        cannot={"files": "OptimalTree cannot be saved"},
        scoring=closeness,
        wrong={**WRONG_SEARCH, "task": [None, SquaredError]},
        other={**OTHER_SEARCH, "task": AbsoluteSum()},
        table=("value",),
    ),
}

# The same classes with parameters for which other code runs.
BRIER = replace(
    SUBJECTS["OptimalSurvivalTree"],
    small={"max_depth": 2, "objective": "brier"},
    wrong={
        "leaf_curve": ["proportional", "weibull"],
        "time_grid": ["days", [], [[1.0]], [2.0, 1.0], [-1.0, 2.0], [1.0, NAN], 3.0],
    },
    other={**SUBJECTS["OptimalSurvivalTree"].other, "objective": "likelihood"},
    routed=({}, {"reference_loss": lambda n: np.full(n, 0.25)}),
)
THRESHOLDS = replace(
    SUBJECTS["GreedySurvivalTree"],
    small={"max_depth": 2, "encoder": None},
    wrong={"encoder": ["quantiles"]},
)
F1 = replace(
    SUBJECTS["OptimalTreeClassifier"],
    small={"max_depth": 2, "objective": "f1"},
    single_row="objective='f1' needs two classes",
    wrong={"objective": ["F1"]},
    cannot={"importances": "needs an objective that is a sum over leaves"},
)
COUNTS = replace(
    SUBJECTS["OptimalTreeRegressor"],
    outcome=counts,
    small={"max_depth": 2, "objective": "poisson"},
    bad={
        **{name: bad for name, bad in BAD_NUMBERS.items() if name != "infinite"},
        "negative": spoilt(put(7, -1.0), "y has the negative count -1 in row 7"),
        "no exposure": by_row("exposure", np.zeros_like, "exposure must be positive"),
    },
    wrong={"objective": ["Poisson"]},
    other={**OTHER_LABELS, "objective": "squared-error"},
)
VARIANTS = {"brier": BRIER, "greedy over thresholds": THRESHOLDS, "f1": F1, "counts": COUNTS}
EVERY = {**SUBJECTS, **VARIANTS}
# One for each way to read columns.
READERS = (*SUBJECTS, "greedy over thresholds")
