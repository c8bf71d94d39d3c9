"""Objectives of classifiers: sums over the classes of a leaf, and measures of the whole tree."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bristlecone._data.rows import CheckedRows
from bristlecone._data.targets import LabelledData
from bristlecone._encoder.cuts import Cut
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._leaves.labels import ClassLeaves, sum_by_leaf
from bristlecone._objectives.base import TaskObjective
from bristlecone._search.cuts import Growth, cuts_by_gini, cuts_of_task
from bristlecone._search.engine import Problem, Task
from bristlecone._teacher.outcomes import Classes
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.metrics._inputs import sums_by_cell

AIMS = {
    "accuracy": "the least share of misclassified weight",
    "balanced-accuracy": "the least mean, over the classes, of the share that is misclassified",
    "gini": "the least Gini impurity of the leaves, weighted by leaf",
    "entropy": "the least entropy of the leaves, weighted by leaf",
    "f1": "the greatest F1 score of the second class; the objective is 1 minus it (van der "
    "Linden, de Weerdt and Demirović, NeurIPS 2023)",
    "mcc": "the greatest Matthews correlation; the objective is 1 minus it",
}


class ClassRows(CheckedRows, Protocol):
    """Checked rows with labels, which are positions in ``classes``."""

    @property
    def labels(self) -> Integers: ...

    @property
    def classes(self) -> NDArray[Any]: ...


ClassRowsT = TypeVar("ClassRowsT", bound=ClassRows)


@dataclass(frozen=True, kw_only=True)
class ClassObjective(TaskObjective[ClassRowsT, ClassLeaves]):
    """Base of objectives whose leaves are classes, by the weights of the rows' classes.

    Parameters
    ----------
    shrinkage : float
        λ of the shares.
    """

    shrinkage: float

    # Whether errors are weighted so that all classes count the same.
    balanced = False

    def target(self, data: ClassRowsT) -> NDArray[Any]:
        # As text, because whole numbers could be mistaken for numbers.
        return data.classes.astype(str)[data.labels]

    def task(self, data: ClassRowsT) -> Task:
        return _of_labels("accuracy", data.labels, data.weight)

    def cuts(self, data: ClassRowsT, columns: RankedColumns, growth: Growth) -> list[Cut]:
        """Also those of a tree by Gini impurity, as few single splits change a label."""
        start = time.perf_counter()
        cuts = super().cuts(data, columns, growth)
        gini = _of_labels("gini", *self._weighed(data))
        return cuts + cuts_by_gini(gini.data, columns, growth.after(start))

    def _weighed(self, data: ClassRowsT) -> tuple[Integers, Floats | None]:
        """Label of every row and its weight in the objective."""
        return data.labels, data.weight

    def leaves(self, tree: Tree, problem: Problem[ClassRowsT], solution: Any) -> ClassLeaves:
        data, leaf = problem.data, problem.leaf_index(tree)
        shape = tree.n_leaves, len(data.classes)
        values = sums_by_cell(leaf, data.labels, data.weight, shape)
        if self.balanced:
            total = values.sum(axis=0)
            values = values / np.where(total > 0, total, 1.0)
        if hasattr(solution, "labels"):
            labels = solution.labels[tree.leaves]
        else:
            labels = self.best_labels(leaf, values, data)
        return ClassLeaves(
            labels=data.classes,
            label=np.asarray(labels, dtype=np.int64),
            values=values,
            shrinkage=self.shrinkage,
            shares=ClassLeaves.shares_of(tree, values, self.shrinkage, balanced=self.balanced),
            price=self.prices(tree, problem),
        )

    def errors(self, tree: Tree, problem: Problem[ClassRowsT], leaves: ClassLeaves) -> list[float]:
        """Weight of the rows of every class that have the label of another."""
        data, leaf = problem.data, problem.leaf_index(tree)
        shape = tree.n_leaves, len(data.classes)
        values = sums_by_cell(leaf, data.labels, data.weight, shape)
        np.put_along_axis(values, leaves.label[:, None], 0.0, axis=1)
        return [float(value) for value in values.sum(axis=0)]

    def best_labels(self, leaf: Integers, values: Floats, data: ClassRowsT) -> NDArray[Any]:
        """Best class of every leaf if the search does not return it.

        It is the class with the largest value; the first of several.
        """
        return values.argmax(axis=1)

    def prices(self, tree: Tree, problem: Problem[ClassRowsT]) -> Floats | None:
        """Feature costs along the path to every leaf; None if features are free."""
        return None


def sums_of_others(values: Floats) -> Floats:
    """For each class, the summed weight of all others; a difference would lose small ones."""
    n = values.shape[1]
    return np.stack([np.delete(values, k, axis=1).sum(axis=1) for k in range(n)], axis=1)


def misclassified(leaves: ClassLeaves) -> float:
    """Share of the weight that does not have the label of its leaf."""
    others = np.take_along_axis(sums_of_others(leaves.values), leaves.label[:, None], axis=1)
    return float(others.sum() / leaves.values.sum())


@dataclass(frozen=True, kw_only=True)
class LabelSums(ClassObjective[LabelledData]):
    """Loss that is a sum over the leaves.

    Parameters
    ----------
    shrinkage : float
        As in ClassObjective.
    name : {"accuracy", "balanced-accuracy", "gini", "entropy"}
    """

    name: str

    @property
    def balanced(self) -> bool:  # type: ignore[override]
        return self.name == "balanced-accuracy"

    def outcomes(self, data: LabelledData) -> Classes:
        return Classes(data.weight, data.labels, data.classes)

    def task(self, data: LabelledData) -> Task:
        if data.smoothed is None:
            return _of_labels(self.name, data.labels, data.weight)
        if self.name in ("gini", "entropy"):
            return Task(self.name, {"shares": data.smoothed, "weight": data.weight})
        # Expected errors: the cost of a label is the share of the other classes.
        counted = data.smoothed * self._class_scale(data)
        # Nothing is subtracted, so that shares close to 1 leave exact costs.
        below, above = np.zeros_like(counted), np.zeros_like(counted)
        below[:, 1:] = counted[:, :-1].cumsum(axis=1)
        above[:, :-1] = counted[:, :0:-1].cumsum(axis=1)[:, ::-1]
        return Task("label-costs", {"costs": below + above, "weight": data.weight})

    def _class_scale(self, data: LabelledData) -> Floats:
        """Weight of a row of every class, shape (n_classes,)."""
        n_classes = len(data.classes)
        if not self.balanced:
            return np.ones(n_classes)
        total = np.bincount(data.labels, data.weight, n_classes)
        present = total > 0
        scale = np.zeros(n_classes)
        scale[present] = total.sum() / (present.sum() * total[present])
        return scale

    def _sums(self, tree: Tree, problem: Problem[LabelledData], leaves: ClassLeaves) -> Floats:
        """Weights of the classes in every node, smoothed or not, shape (node_count, n_classes)."""
        data = problem.data
        if data.smoothed is None:
            return tree.node_sums(leaves.values)
        leaf = problem.leaf_index(tree)
        counted = data.smoothed * self._class_scale(data)
        return tree.node_sums(sum_by_leaf(leaf, tree.n_leaves, counted, data.weight))

    def favoured(self, tree: Tree, problem: Problem[LabelledData], leaves: ClassLeaves) -> Integers:
        return self._sums(tree, problem, leaves)[tree.leaves].argmax(axis=1)

    def cuts(self, data: LabelledData, columns: RankedColumns, growth: Growth) -> list[Cut]:
        if self.name in ("gini", "entropy"):
            return cuts_of_task(*self.task(data), columns, growth)
        return super().cuts(data, columns, growth)

    def _weighed(self, data: LabelledData) -> tuple[Integers, Floats | None]:
        labels, weight, scale = data.labels, data.weight, self._class_scale(data)
        if self.balanced:
            weight = scale[labels] if weight is None else weight * scale[labels]
        if data.smoothed is not None:
            labels = (data.smoothed * scale).argmax(axis=1)
        return labels, weight

    def losses(
        self, tree: Tree, problem: Problem[LabelledData], leaves: ClassLeaves
    ) -> Floats | None:
        values = self._sums(tree, problem, leaves)
        if self.name in ("accuracy", "balanced-accuracy"):
            # Smoothed classes have the same total weight as the real ones, but not each of them.
            taught = problem.data.smoothed is not None
            whole = tree.weighted_n_node_samples[0] if taught else values[0].sum()
            return sums_of_others(values).min(axis=1) / whole
        total = values.sum(axis=1, keepdims=True)
        share, rest = values / total, sums_of_others(values) / total
        if self.name == "gini":
            return (values * rest).sum(axis=1) / total[0]
        logs = np.where(share > 0.5, np.log1p(-rest * (share > 0.5)), 0.0)
        logs[share <= 0.5] = xlogy(share > 0, share)[share <= 0.5]
        return -(values * logs).sum(axis=1) / total[0]

    def value(self, tree: Tree, problem: Problem[LabelledData], leaves: ClassLeaves) -> float:
        if problem.data.smoothed is None and self.name in ("accuracy", "balanced-accuracy"):
            return misclassified(leaves)  # leaves of a front may have other labels than the best
        return super().value(tree, problem, leaves)

    def aim(self, problem: Problem[LabelledData], leaves: ClassLeaves) -> str:
        return AIMS[self.name]


@dataclass(frozen=True, kw_only=True)
class Measure(ClassObjective[LabelledData]):
    """Measure of the whole tree, chosen from the front of false positives and false negatives.

    Parameters
    ----------
    shrinkage : float
        As in ClassObjective.
    name : {"f1", "mcc"}
    """

    name: str

    @property
    def chooses_labels(self) -> bool:
        return True

    def task_of(self, problem: Problem[LabelledData]) -> Task:
        arrays = {"labels": problem.data.labels, "weight": problem.data.weight}
        if self.name == "f1":
            return Task("f-measure", {**arrays, "beta": 1.0})
        return Task("matthews", arrays)

    def value(self, tree: Tree, problem: Problem[LabelledData], leaves: ClassLeaves) -> float:
        """1 minus the measure; the correlation is 0 if all leaves have the same label."""
        positive = leaves.label == 1
        (tn, fn), (fp, tp) = (
            leaves.values[~positive].sum(axis=0),
            leaves.values[positive].sum(axis=0),
        )
        if self.name == "f1":
            return float((fp + fn) / (2 * tp + fp + fn))
        if positive.all() or not positive.any():
            return 1.0
        tn, fn, fp, tp = np.array([tn, fn, fp, tp]) / (tn + fn + fp + tp)
        scale = np.sqrt((tp + fp) * (tn + fn)) * np.sqrt((tp + fn) * (tn + fp))
        product = tp * tn - fp * fn
        if product < 0:
            return float(1 - product / scale)
        # scale² - product² without subtracting nearly equal numbers.
        rest = tp * tn * (fp + fn) + fp * fn * (tp + tn)
        return float(rest / (scale * (scale + product)))

    def aim(self, problem: Problem[LabelledData], leaves: ClassLeaves) -> str:
        return AIMS[self.name]


def _of_labels(name: str, labels: Integers, weight: Floats | None) -> Task:
    present = np.bincount(labels) > 0
    if not present.all():
        # The engine has no classes of weight zero.
        labels = (np.cumsum(present) - 1)[labels]
    return Task(name, {"labels": labels, "n_classes": int(present.sum()), "weight": weight})
