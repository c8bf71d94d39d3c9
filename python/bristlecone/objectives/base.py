"""What an objective has to say to ``OptimalSurvivalTree``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone.data.checks import TrainingData
from bristlecone.leaves.survival import LeafStatistics

if TYPE_CHECKING:
    from bristlecone.estimators.survival import OptimalSurvivalTree

__all__ = ["Objective"]


class Objective(ABC):
    """Functions of the engine, the leaf curves that go with them, and the risk of a leaf."""

    name: ClassVar[str]
    # Values of the parameter leaf_curve besides "auto", which is the first of them.
    leaf_curves: ClassVar[tuple[str, ...]]
    # Whether anything useful can be told before the search.
    has_forecast: ClassVar[bool]
    # What shrinkage="auto" is: pseudo-events, or pseudo-rows of step curves.
    auto_shrinkage: ClassVar[float]
    # Whether θ is what predictions follow from.
    predicts_theta: ClassVar[bool]

    @classmethod
    def engine(cls, what: str) -> Callable[..., Any]:
        """Function "solve", "path", "all_optimal" or "forecast" of the engine.

        Takes features, time, event and weight, then by name what ``engine_options`` returns and the
        settings of the search.
        """
        return getattr(_core, f"{what}_{cls.name}")

    @staticmethod
    @abstractmethod
    def check_parameters(tree: OptimalSurvivalTree) -> None:
        """Raise InvalidParameterError for parameters that do not go with the objective."""

    @staticmethod
    @abstractmethod
    def prepare(tree: OptimalSurvivalTree, data: TrainingData) -> TrainingData:
        """Rows as the objective takes them; ValueError for outcomes that it cannot score."""

    @staticmethod
    @abstractmethod
    def engine_options(tree: OptimalSurvivalTree, data: TrainingData) -> dict[str, Any]:
        """Keywords of the engine that only this objective has."""

    @staticmethod
    @abstractmethod
    def fair_options(tree: OptimalSurvivalTree, data: TrainingData) -> dict[str, Any]:
        """Data of the engine's fair trees that only this objective has."""

    @staticmethod
    @abstractmethod
    def prior(value: float | str) -> float:
        """Pseudo-events that a value of the parameter ``prior`` means."""

    @staticmethod
    @abstractmethod
    def finish_leaves(
        tree: OptimalSurvivalTree,
        leaves: tuple[LeafStatistics, ...],
        leaf: NDArray[np.int64],
        data: TrainingData,
    ) -> tuple[LeafStatistics, ...]:
        """Leaves with what only this objective adds; ``leaf`` is the leaf of every row."""

    @staticmethod
    @abstractmethod
    def leaf_risk(tree: OptimalSurvivalTree) -> NDArray[np.float64]:
        """Risk score of every leaf, higher for earlier events."""

    @staticmethod
    @abstractmethod
    def aim(tree: OptimalSurvivalTree) -> str:
        """What a fitted tree has least of, in words and with its source."""

    @staticmethod
    def remarks(tree: OptimalSurvivalTree) -> list[tuple[str, str]]:
        """What a reader of the objective value should know, as (name, text) pairs."""
        return []

    @classmethod
    def curve(cls, leaf_curve: str) -> str:
        """Curve that a value of the parameter ``leaf_curve`` means."""
        return cls.leaf_curves[0] if leaf_curve == "auto" else leaf_curve
