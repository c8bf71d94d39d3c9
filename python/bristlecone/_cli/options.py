"""Parameters of the estimators as options of the command line; nothing heavy is imported.

Parameters that several classes share are declared in ``_estimators/parameters.py``, those of one
class here.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from bristlecone._estimators.parameters import (
    PARAMETERS,
    Parameter,
    count_or_none,
    number_or_auto,
    number_or_none,
    word_or_none,
)

# Parameters that several options build as a mapping: from their names to their values, or from
# names to such mappings, if each option has values by name.
MAPPING, BY_NAME = "mapping", "mapping by name"


class Group(NamedTuple):
    """Options under one heading of the help.

    Attributes
    ----------
    title : str
    options : tuple of Parameter
    made : str
        Parameter of the estimator that the options describe together; "" if each option is a
        parameter itself.
    cls : str or mapping
        Public class of that parameter; its arguments are the options without "made_". If there
        are several classes, a mapping to them from the values of the option ``made``. MAPPING and
        BY_NAME are not classes.
    needs : mapping
        Options, of the group or of the rows, and the ones that they need.
    """

    title: str
    options: tuple[Parameter, ...]
    made: str = ""
    cls: str | Mapping[str, str] = ""
    needs: Mapping[str, str] = MappingProxyType({})

    def argument(self, option: Parameter) -> str:
        """Name of one of the options in the parameter that they describe together."""
        return option.name.removeprefix(f"{self.made}_")


def _option(
    name: str, default: Any, read: Any, metavar: str | None, help: str, **more: Any
) -> Parameter:
    return Parameter(name, default, read=read, metavar=metavar, help=help, **more)


def _shared(*names: str) -> tuple[Parameter, ...]:
    return tuple(PARAMETERS[name] for name in names)


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    if not name or not value:
        raise ValueError
    return name, value


def _amount(text: str) -> tuple[str, float]:
    name, value = _pair(text)
    return name, float(value)


def _weights(text: str) -> str | tuple[str, float]:
    return text if text == "balanced" else _amount(text)


def _matrix_rows(text: str) -> list[list[float]]:
    """One row of numbers, or the rows of a file."""
    try:
        return [_numbers(text)]
    except ValueError:
        try:
            lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise ArgumentTypeError(
                f"{text!r} is neither a row of numbers nor a readable file ({error.strerror})"
            ) from None
        return [_numbers(line) for line in lines if line.strip()]


def _numbers(line: str) -> list[float]:
    return [float(cell) for cell in line.split(",")]


# argparse shows the name of the type in its messages.
_pair.__name__ = "NAME=VALUE"
_amount.__name__ = _weights.__name__ = "NAME=NUMBER"
_matrix_rows.__name__ = "row of numbers"


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is given twice")
    return dict(pairs)


def _class_weight(given: list[Any]) -> Any:
    if given == ["balanced"]:
        return "balanced"
    if "balanced" in given:
        raise ValueError("balanced cannot be combined with weights of labels")
    return _mapping(given)


def _matrix(given: list[list[list[float]]]) -> list[list[float]]:
    rows = [row for rows in given for row in rows]
    if any(len(row) != len(rows) for row in rows):
        shape = ", ".join(str(len(row)) for row in rows)
        raise ValueError(f"{len(rows)} rows of {shape} numbers are not a square matrix")
    return rows


_LEAF_CURVE = _option("leaf_curve", "auto", str, "NAME", "survival curve of a leaf: proportional, "
    "kaplan-meier or brier-optimal; auto depends on the objective")  # fmt: skip
_SURVIVAL_SHRINKAGE = _option("shrinkage", "auto", number_or_auto, "L", "pseudo-events, or "
    "pseudo-rows of a curve, that pull the predictions of a node towards those of its parent; auto "
    "depends on the objective")  # fmt: skip
_SIZE = ("max_depth", "max_leaf_nodes", "min_samples_leaf")

TREE = Group("tree", _shared(*_SIZE, "leaf_penalty", "shrinkage"))

REGRESSION = Group("tree", (
    _option("objective", "squared-error", str, "NAME", "loss of the tree: squared-error, or "
        "poisson (deviance of counts, with --exposure)"),
    *TREE.options,
))  # fmt: skip

SURVIVAL = Group("tree", (
    _option("objective", "likelihood", str, "NAME", "loss to minimise: likelihood "
        "(proportional hazards between the leaves) or brier (integrated Brier score)"),
    *_shared(*_SIZE, "min_events_leaf", "leaf_penalty", "prior"),
    _SURVIVAL_SHRINKAGE,
    _LEAF_CURVE,
    _option("time_grid", None, float, "T", "coarser times for brier: every time is rounded up to "
    "the next of these (default: the times as they are)", nargs="+"),
))  # fmt: skip

CAUSES = Group("tree", (
    *_shared(*_SIZE, "min_events_leaf", "leaf_penalty", "prior"),
    _SURVIVAL_SHRINKAGE._replace(help="pseudo-events that pull the predictions of a node towards "
        "those of its parent, for the leaf curve proportional; auto is 0"),
    _LEAF_CURVE._replace(default="aalen-johansen", help="curves of a leaf: aalen-johansen or "
        "proportional"),
    _option("cause_weights", None, float, "U", "weight of every cause in the loss (default: 1 "
        "each)", nargs="+"),
    _option("n_causes", None, int, "K", "number of causes, of which some may have no event "
        "(default: the largest in the data, and each has one)"),
))  # fmt: skip

FAIR_SURVIVAL = Group("fairness", (
    _option("fairness_limit", None, float, "T", "largest difference of the average restricted mean "
        "survival time (RMST) of the groups of --sensitive (default: no limit)"),
    _option("fairness_tau", None, float, "T", "end of the restricted mean (default: the last "
    "training time)"),
), "fairness", "RmstParity", {"sensitive": "fairness_limit", "fairness_limit": "sensitive",
    "fairness_tau": "fairness_limit"})  # fmt: skip

GREEDY = Group("tree", (
    _option("criterion", "likelihood", str, "NAME", "measure of the best split of a node: "
        "likelihood (decrease of the loss) or logrank (log-rank statistic)"),
    *_shared(*_SIZE, "min_events_leaf", "prior"),
    _SURVIVAL_SHRINKAGE._replace(help="pseudo-events that pull the predictions of a node towards "
        "those of its parent; auto is 0"),
    _LEAF_CURVE._replace(help="survival curve of a leaf: proportional (the meaning of auto) or "
        "kaplan-meier"),
    _option("encoder", "auto", word_or_none, "NAME", "auto uses the binary features below; none "
        "splits numeric columns at every threshold, whatever its support"),
))  # fmt: skip

TEACHER = Group("teacher", (
    *_shared("teacher", "teacher_weight"),
    _option("random_state", None, int, "SEED", "seed of the teacher (default: 0)"),
), needs=dict.fromkeys(("teacher_weight", "random_state"), "teacher"))  # fmt: skip

SOFT = Group("tree", (
    _option("depth", 2, int, "D", "number of splits from the root to a leaf"),
    _option("leaf", "log-logistic", str, "NAME", "survival model of the leaves: log-logistic, "
        "exponential, weibull, spline-ph or spline-po"),
    _option("n_knots", 2, int, "K", "internal knots of the splines"),
    _option("l2", "auto", number_or_auto, "L", "ridge penalty of the leaves; auto is 0.1, or more "
        "with fewer than 300 events"),
    _option("pooling", 3.0, number_or_none, "P", "strength with which leaves are pulled together; "
    "none for a separate penalty of each leaf"),
    _option("split_l2", 0.002, float, "L", "ridge penalty of the splits"),
    _option("l1", 0.0, float, "L", "lasso penalty of the splits"),
    _option("balance", 0.01, float, "B", "weight of the penalty on uneven leaves"),
    _option("min_leaf_share", 0.05, float, "SHARE", "share of the rows that every leaf should "
        "hold"),
    _option("max_categories", 10, count_or_none, "K", "maximum number of levels of a text column "
        "with a separate weight; none for all"),
    _option("handle_unknown", "ignore", str, "NAME", "categories not seen in training: ignore or "
        "error"),
))  # fmt: skip

TRAINING = Group("training", (
    _option("solver", "nodec", str, "NAME", "nodec (one subtree at a time, then all) or joint"),
    _option("n_restarts", 5, int, "N", "number of restarts; the best is kept"),
    PARAMETERS["n_jobs"]._replace(help="number of processes for the restarts; -1 for all cores "
        "(default: 1)"),
    _option("random_state", None, int, "SEED", "seed of the restarts (default: random)"),
))  # fmt: skip

SOLVER = Group("solver", (
    _option("solver_options_init", "kmeans", str, "NAME", "starting point of a restart: kmeans or "
        "random", flag="--init"),
    _option("solver_options_n_macro", 10, int, "N", "maximum number of passes of nodec over the "
        "splits", flag="--n-macro"),
    _option("solver_options_max_iter", 1000, int, "N", "maximum number of L-BFGS steps over all "
        "parameters", flag="--max-iter"),
    _option("solver_options_tol", 1e-4, float, "TOL", "L-BFGS stops when no component of the "
        "gradient is larger", flag="--tol"),
), "solver_options", MAPPING)  # fmt: skip

FAIR_SOFT = Group("fairness", (
    _option("fairness_penalty", None, float, "RHO", "penalty on the distance between the curves of "
        "the groups of --sensitive, a sum over pairs of rows"),
), "fairness", "CurveParity",
    {"sensitive": "fairness_penalty", "fairness_penalty": "sensitive"})  # fmt: skip

_CLASS_WEIGHT = _option("class_weight", None, _weights, "LABEL=WEIGHT", "factors by which the "
    "weights of the rows are multiplied, by label; or balanced", nargs="+",
    gather=_class_weight)  # fmt: skip

CLASSIFIER = Group("tree", (
    _option("objective", "accuracy", str, "NAME", "measure to optimise: accuracy, "
        "balanced-accuracy, gini, entropy, f1 or mcc"),
    *TREE.options,
    _CLASS_WEIGHT,
))  # fmt: skip

COSTS = Group("costs", (
    _option("cost_matrix", None, _matrix_rows, "ROW", "costs of predicting every label for a row "
        "of the first, second ... label, in sorted order, such as 0,10 1,0; or a file with one "
        "such row per line (default: an error costs 1)", nargs="+", gather=_matrix),
))  # fmt: skip

FEATURE_COSTS = Group("costs of features", (
    _option("feature_costs_cost", None, _amount, "COL=COST", "cost of a column, paid at the "
        "first split on it", nargs="+", flag="--feature-costs", gather=_mapping),
    _option("feature_costs_group", None, _pair, "COL=GROUP", "groups of columns, such as blood "
        "tests that share a sample", nargs="+", flag="--feature-groups", gather=_mapping),
    _option("feature_costs_discounted_cost", None, _amount, "COL=COST", "cost of a column after "
        "another one of its group", nargs="+", flag="--feature-discounts", gather=_mapping),
    _option("feature_costs_origin", None, _pair, "COL=NAME", "measurements that columns were made "
        "from: after one column of a measurement the others are free", nargs="+",
        flag="--feature-origins", gather=_mapping),
), "feature_costs", BY_NAME)  # fmt: skip

FAIR = Group("fairness", (
    _option("fairness", "demographic-parity", str, "NAME", "rows over which the rates of the "
        "groups are compared: demographic-parity (all), equality-of-opportunity (those of the "
        "second label) or equalized-odds (those of either label)"),
    _option("fairness_limit", None, float, "SHARE", "largest difference of the rates of the "
        "groups of --sensitive; required"),
), "fairness", MappingProxyType({
    "demographic-parity": "DemographicParity", "equality-of-opportunity": "EqualityOfOpportunity",
    "equalized-odds": "EqualizedOdds",
}))  # fmt: skip

FAIR_TREE = Group("tree", (
    *(one._replace(default=5) if one.name == "min_samples_leaf" else one for one in TREE.options),
    _CLASS_WEIGHT,
))  # fmt: skip

POLICY = Group("tree", (
    _option("capacities", None, _amount, "NAME=SHARE", "largest share of the rows that may "
        "get a treatment", nargs="+", flag="--capacity", gather=_mapping),
    *_shared(*_SIZE),
    _option("min_samples_treatment", 0, int, "N", "minimum number of rows of every treatment in a "
        "leaf"),
    *_shared("leaf_penalty"),
))  # fmt: skip

REWARDS = Group("rewards", (
    _option("reward", "doubly-robust", str, "NAME", "estimate of the outcomes of other "
        "treatments: doubly-robust, inverse-propensity (no predicted outcomes) or direct (no "
        "propensity scores)"),
    _option("outcome_model", "auto", word_or_none, "auto", "cross-fitted model of the outcomes, "
        "unless --predicted-outcomes are given; auto or none"),
    _option("propensity_model", "auto", word_or_none, "auto", "cross-fitted model of the "
        "treatments, unless --propensity is given; auto or none"),
    _option("min_propensity", 0.01, float, "SHARE", "raise smaller estimated "
        "probabilities to this value"),
    _option("horizon", None, float, "T", "time up to which survival counts, for outcomes with "
        "--time and --event"),
    _option("estimand", "restricted-mean", str, "NAME", "what is maximised with --horizon: "
        "restricted-mean (mean survival time up to it) or survival (probability of surviving "
        "it)"),
    _option("random_state", None, int, "SEED", "seed of the models (default: 0)"),
), needs=dict.fromkeys(("time", "event", "estimand"), "horizon"))  # fmt: skip

SEARCH = Group("search", _shared("time_limit", "memory_limit", "n_jobs"))

BINARY = Group("binary features", (
    _option("thresholds", "quantiles", str, "NAME", "thresholds of numbers: quantiles, midpoints "
        "(every one becomes a feature), kmeans, ensemble (those of boosted trees fitted to the "
        "outcomes), or all (the search itself considers every threshold)"),
    _option("n_thresholds", 10, int, "K", "maximum number of thresholds of a column"),
    _option("max_categories", 10, count_or_none, "K", "maximum number of levels of a text column "
        "with a separate binary feature for each; none for all"),
    _option("categories", "risk", str, "NAME", "text columns with more levels: risk (the levels "
        "are ordered by risk and split like numbers) or levels (the most frequent ones have a "
        "binary feature, the others share one)"),
    _option("missing", "impute", str, "NAME", "missing numbers: impute (the mean) or branch (a "
        "separate binary feature)"),
    _option("min_support", 0.01, float, "SHARE", "leave out binary features that are true, or "
        "false, for a smaller share of the rows"),
    _option("max_features", None, count_or_none, "K", "maximum number of binary features; the most "
        "balanced ones are kept"),
    _option("handle_unknown", "ignore", str, "NAME", "categories not seen in training: ignore or "
        "error"),
), "encoder", "BinaryEncoder")  # fmt: skip
