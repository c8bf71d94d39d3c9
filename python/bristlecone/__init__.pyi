"""Optimal and soft survival trees."""

from . import (
    curves,
    datasets,
    exceptions,
    export,
    metrics,
    plot,
    reference,
    report,
    scale,
    trust,
    tune,
)
from ._core import __version__
from ._data.outcomes import outcome
from ._encoder.binary import BinaryEncoder
from ._estimators.causes import CompetingRisksTree
from ._estimators.classifier import OptimalTreeClassifier
from ._estimators.cost_sensitive import CostSensitiveTreeClassifier
from ._estimators.fair import FairTreeClassifier
from ._estimators.greedy import GreedySurvivalTree
from ._estimators.own import OptimalTree
from ._estimators.policy import PolicyTree
from ._estimators.regressor import OptimalTreeRegressor
from ._estimators.soft import SoftSurvivalTree
from ._estimators.survival import OptimalSurvivalTree
from ._model.registry import load_model, save_model
from ._objectives.own import Task
from ._objectives.parity import (
    CurveParity,
    DemographicParity,
    EqualityOfOpportunity,
    EqualizedOdds,
    RmstParity,
)

__all__ = [
    "BinaryEncoder",
    "CompetingRisksTree",
    "CostSensitiveTreeClassifier",
    "CurveParity",
    "DemographicParity",
    "EqualityOfOpportunity",
    "EqualizedOdds",
    "FairTreeClassifier",
    "GreedySurvivalTree",
    "OptimalSurvivalTree",
    "OptimalTree",
    "OptimalTreeClassifier",
    "OptimalTreeRegressor",
    "PolicyTree",
    "RmstParity",
    "SoftSurvivalTree",
    "Task",
    "__version__",
    "curves",
    "datasets",
    "exceptions",
    "export",
    "load_model",
    "metrics",
    "outcome",
    "plot",
    "reference",
    "report",
    "save_model",
    "scale",
    "trust",
    "tune",
]
