"""Bases of the objectives: engine, cuts, leaves and description of what is minimised."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from bristlecone._data.rows import RowsT
from bristlecone._encoder.cuts import Cut
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._leaves.base import Leaves
from bristlecone._search.certificate import GroupValues
from bristlecone._search.cuts import Growth, cuts_of_task
from bristlecone._search.engine import Engine, Problem, Task, engine_of
from bristlecone._teacher.outcomes import Outcomes
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import InvalidParameterError

LeavesT = TypeVar("LeavesT", bound=Leaves)


class Objective(ABC, Generic[RowsT, LeavesT]):
    """Objective that a search minimises.

    A subclass defines the calls of the engine, the thresholds of greedy trees, the ``leaves`` of
    its trees, and its ``aim`` in words. The other methods have defaults that suit most objectives.
    """

    # Name of an admissible tree in messages.
    admissible: ClassVar[str] = "a tree that satisfies the constraints"
    infeasible: ClassVar[str] = "no tree satisfies the constraints"

    @abstractmethod
    def engine(self, problem: Problem[RowsT]) -> Engine:
        """Functions of the engine that find the best tree of this problem."""

    @abstractmethod
    def target(self, data: RowsT) -> Any:
        """Outcomes of training rows as the ``y`` of an encoder that learns from them."""

    @abstractmethod
    def cuts(self, data: RowsT, columns: RankedColumns, growth: Growth) -> list[Cut]:
        """Cuts of greedy trees over every threshold, without what constrains whole trees."""

    @abstractmethod
    def leaves(self, tree: Tree, problem: Problem[RowsT], solution: Any) -> LeavesT:
        """Leaves of a tree that was found."""

    def outcomes(self, data: RowsT) -> Outcomes:
        """Target of a teacher for these rows.

        Raises
        ------
        InvalidParameterError
            If the objective cannot be smoothed.
        """
        raise InvalidParameterError("teacher needs an objective that is a sum over rows")

    def losses(self, tree: Tree, problem: Problem[RowsT], leaves: LeavesT) -> Floats | None:
        """Share of the objective that every node has as a leaf, up to a sum over its rows.

        Shape (node_count,); None where the objective is no sum over leaves.
        """
        return None

    @property
    def chooses_labels(self) -> bool:
        """Whether the search chooses the labels of leaves; otherwise the rows determine them."""
        return False

    def value(self, tree: Tree, problem: Problem[RowsT], leaves: LeavesT) -> float:
        """Objective of a tree with these leaves over these rows, without the penalty of leaves.

        It is that of the smoothed outcomes, where the rows have some.
        """
        losses = self.losses(tree, problem, leaves)
        assert losses is not None
        return float(losses[tree.leaves].sum())

    @abstractmethod
    def aim(self, problem: Problem[RowsT], leaves: LeavesT) -> str:
        """Aim of the search with its source: "the least mean cost (...)"."""

    def favoured(self, tree: Tree, problem: Problem[RowsT], leaves: LeavesT) -> Integers | None:
        """Label of every leaf by the smoothed outcomes alone; None where leaves have no labels."""
        return None

    def remarks(self) -> tuple[tuple[str, str], ...]:
        """Remarks on the objective value, as names and texts."""
        return ()

    def groups(self, tree: Tree, problem: Problem[RowsT], leaves: LeavesT) -> GroupValues | None:
        """Quantity whose difference between two groups is limited, with its values."""
        return None


class TaskObjective(Objective[RowsT, LeavesT]):
    """Objective with a task in the engine's registry.

    A new objective is a subclass in a file of its own: its ``task``, the ``target`` of encoders
    that learn from outcomes, the ``leaves`` of its trees, and its ``aim`` in words.
    """

    @abstractmethod
    def task(self, data: RowsT) -> Task:
        """Task of the engine whose leaf costs are sums over rows; its greedy tree gives cuts."""

    def task_of(self, problem: Problem[RowsT]) -> Task:
        """Task of a problem, with what constrains whole trees or follows from the features."""
        return self.task(problem.data)

    def engine(self, problem: Problem[RowsT]) -> Engine:
        return engine_of(self.task_of(problem), problem.features)

    def cuts(self, data: RowsT, columns: RankedColumns, growth: Growth) -> list[Cut]:
        return cuts_of_task(*self.task(data), columns, growth)
