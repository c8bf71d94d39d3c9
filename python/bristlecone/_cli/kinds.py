"""Estimators of ``--estimator``: classes with the columns and options they take.

Nothing heavy is imported here, because the help is generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bristlecone._cli import options
from bristlecone._estimators.parameters import Parameter


class Role(NamedTuple):
    """Columns that are not features.

    Attributes
    ----------
    name : str
        Name of the option and, if a needed role is not given, of its column.
    holds : str
        What the column holds, in the plural.
    help : str
    argument : str
        Keyword of ``fit``; "" for parts of y.
    is_needed, is_many : bool
        Whether there must be such a column, and whether there may be several.
    reads : str or None
        Kind of the column when the file is read; None finds out.
    """

    name: str
    holds: str
    help: str
    argument: str = ""
    is_needed: bool = False
    is_many: bool = False
    reads: str | None = None


class Kind(NamedTuple):
    """An estimator of the command line.

    Attributes
    ----------
    cls : str
        Public class.
    what, aim : str
        What it fits in few words, for the list; and in a sentence or two.
    headline : str
        Of the report.
    example : str
        Arguments of an example.
    roles : tuple of Role
    groups : tuple of options.Group
    keyed : mapping
        Parameters that are mappings, and the role whose values their names are; "" for features.
    """

    cls: str
    what: str
    aim: str
    headline: str
    example: str
    roles: tuple[Role, ...]
    groups: tuple[options.Group, ...]
    keyed: Mapping[str, str] = MappingProxyType({})

    @property
    def is_searched(self) -> bool:
        """Whether the tree is found by search: with limits, progress and possibly a forecast."""
        return options.SEARCH in self.groups

    @property
    def has_sizes(self) -> bool:
        """Whether there is a best tree of every number of leaves."""
        return options.SOFT not in self.groups

    @property
    def predicts_survival(self) -> bool:
        """Whether the outcome is a time."""
        return TIME in self.roles

    def narrowed(self, censored: bool) -> Kind:
        """The same for an outcome that is a time, or a number, if it accepts both."""
        numbers = {role.name for role in self.roles} & {"target"}
        if not (numbers and self.predicts_survival):
            return self
        dropped = numbers if censored else {TIME.name, EVENT.name}
        return self._replace(roles=tuple(role for role in self.roles if role.name not in dropped))

    @property
    def has_causes(self) -> bool:
        """Whether events have causes."""
        return CAUSE in self.roles


def flag(option: Parameter | Role | str) -> str:
    """Option of the command line for a parameter, a role or a name."""
    name = option if isinstance(option, str) else option.name
    given = option.flag if isinstance(option, Parameter) else ""
    return given or f"--{name.replace('_', '-')}"


TIME = Role("time", "times", "column of times: numbers, or dates if --entry has dates (default: "
    "time, or stop or exit if there is a column start or entry)", is_needed=True,
    reads="time")  # fmt: skip
EVENT = Role("event", "events", "column of events, 1 or true (default: event)", is_needed=True)
ENTRY = Role("entry", "times of entry", "column of the times at which rows came under observation, "
    "or of the start dates of the times (default without --time: entry, or start if "
    "there is a column stop)", reads="time")  # fmt: skip
CAUSE = EVENT._replace(holds="causes of the events", help="column of the causes of the events: 1, "
                       "2, ..., and 0 if censored (default: event)", reads="number")  # fmt: skip
LABEL = Role("target", "labels", "column of labels (default: target)", is_needed=True)
NUMBER = Role("target", "numbers", "column of numbers (default: target)", is_needed=True,
              reads="number")  # fmt: skip
OUTCOME = NUMBER._replace(help="column of outcomes, higher is better; with --horizon pass "
                          "--time and --event (default: target)", holds="outcomes")  # fmt: skip
SENSITIVE = Role("sensitive", "groups", "column of the groups that the fairness limit or "
                 "penalty compares", "sensitive_features")  # fmt: skip
TREATMENT = Role("treatment", "treatments", "column of the treatment that every row had (default: "
                 "treatment)", "treatment", is_needed=True)  # fmt: skip
PROPENSITY = Role("propensity", "probabilities", "column of the probability of the treatment that "
                  "the row had; or one column per treatment, in sorted order unless they have "
                  "their names (default: they are estimated)", "propensity",
                  is_many=True, reads="number")  # fmt: skip
PREDICTED = Role("predicted_outcomes", "predicted outcomes", "columns of the outcomes that a model "
                 "predicts, one per treatment, in sorted order unless they have their names "
                 "(default: they are predicted)",
                 "predicted_outcomes",
                 is_many=True, reads="number")  # fmt: skip
EXPOSURE = Role("exposure", "exposures", "column of the exposure of each count, for --objective "
                "poisson", "exposure", reads="number")  # fmt: skip
WEIGHT = Role("weight", "weights", "column of row weights", "sample_weight",
              reads="number")  # fmt: skip

OF_TUNING = {"cv": "folds", "n_repeats": "repeats", "rule": "rule", "scoring": "scoring"}
"""Parameters of ``TreeSizeCV`` and the options that set them."""

_TIMES = (TIME, EVENT, ENTRY)
_STUDY = "study.csv --time days --event status"

DEFAULT = "survival"

KINDS = {
    "survival": Kind(
        "OptimalSurvivalTree",
        "survival tree with the smallest loss, proven optimal",
        "Find the survival tree with the smallest loss and print it with its proof of optimality.",
        "Survival tree",
        f"{_STUDY} --event-value dead --drop id",
        (*_TIMES, SENSITIVE, WEIGHT),
        (options.SURVIVAL, options.FAIR_SURVIVAL, options.TEACHER, options.SEARCH, options.BINARY),
    ),
    "greedy": Kind(
        "GreedySurvivalTree",
        "survival tree grown greedily",
        "Grow a survival tree greedily, with the best split at each node, and print it.",
        "Greedy survival tree",
        f"{_STUDY} --criterion logrank",
        (*_TIMES, WEIGHT),
        (options.GREEDY, options.TEACHER, options.BINARY),
    ),
    "competing-risks": Kind(
        "CompetingRisksTree",
        "survival tree for competing risks, proven optimal",
        "Find the competing-risks tree with the smallest loss and print it with its proof of "
        "optimality.",
        "Competing risks tree",
        "study.csv --time days --event cause --drop id",
        (TIME, CAUSE, ENTRY, WEIGHT),
        (options.CAUSES, options.SEARCH, options.BINARY),
    ),
    "soft": Kind(
        "SoftSurvivalTree",
        "survival tree with soft splits on many columns",
        "Train a survival tree with soft splits on many columns and a survival model in every "
        "leaf, and print it.",
        "Soft survival tree",
        f"{_STUDY} --depth 1 --random-state 0",
        (*_TIMES, SENSITIVE, WEIGHT),
        (options.SOFT, options.FAIR_SOFT, options.TRAINING, options.SOLVER),
    ),
    "classifier": Kind(
        "OptimalTreeClassifier",
        "classification tree with the smallest loss, proven optimal",
        "Find the classification tree with the smallest loss and print it with its proof of "
        "optimality.",
        "Classification tree",
        "study.csv --target stage --objective balanced-accuracy",
        (LABEL, WEIGHT),
        (options.CLASSIFIER, options.TEACHER, options.SEARCH, options.BINARY),
        keyed={"class_weight": "target"},
    ),
    "cost-sensitive": Kind(
        "CostSensitiveTreeClassifier",
        "classification tree with the least cost of errors and features",
        "Find the classification tree with the least cost of errors and features, and print it "
        "with its proof of optimality.",
        "Cost-sensitive tree",
        "study.csv --target ill --cost-matrix 0,1 10,0 --feature-costs scan=3",
        (LABEL, WEIGHT),
        (
            options.COSTS,
            options.FEATURE_COSTS,
            options.TREE,
            options.TEACHER,
            options.SEARCH,
            options.BINARY,
        ),
        keyed={"feature_costs": ""},
    ),
    "fair": Kind(
        "FairTreeClassifier",
        "classification tree that treats groups alike",
        "Find the tree with the fewest errors among those that treat groups alike, and print "
        "it with its proof of optimality.",
        "Fair tree",
        "study.csv --target hired --sensitive sex --drop id --fairness-limit 0.02",
        (LABEL, SENSITIVE._replace(is_needed=True), WEIGHT),
        (options.FAIR, options.FAIR_TREE, options.SEARCH, options.BINARY),
        keyed={"class_weight": "target"},
    ),
    "regressor": Kind(
        "OptimalTreeRegressor",
        "regression tree with the least squared error or Poisson deviance, proven optimal",
        "Find the regression tree with the least squared error, or for counts with the least "
        "Poisson deviance, and print it with its proof of optimality.",
        "Regression tree",
        "study.csv --target price --max-depth 2",
        (NUMBER, EXPOSURE, WEIGHT),
        (options.REGRESSION, options.TEACHER, options.SEARCH, options.BINARY),
    ),
    "policy": Kind(
        "PolicyTree",
        "tree that prescribes treatments",
        "Find the tree that prescribes the treatments with the greatest mean outcome, and print it "
        "with its proof of optimality.",
        "Policy",
        "study.csv --target gain --treatment arm --drop id",
        (OUTCOME, TIME, EVENT, TREATMENT, PROPENSITY, PREDICTED, WEIGHT),
        (options.POLICY, options.REWARDS, options.SEARCH, options.BINARY),
        keyed={"capacities": "treatment"},
    ),
}
"""The estimators by the names of ``--estimator``."""
