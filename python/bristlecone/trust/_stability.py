"""Stability of a tree: searches over resampled rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from bristlecone._core import BinaryMatrix
from bristlecone._data.checks import check_integer, check_seed
from bristlecone._data.frame import native_frame
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._estimators.regressor import explained_deviance
from bristlecone._estimators.searched import Again
from bristlecone._fit.assemble import settle
from bristlecone._leaves.minimum import smallest_leaf
from bristlecone._log import warn
from bristlecone._search.engine import Problem
from bristlecone._search.row_sums import OF_ALL
from bristlecone._tree import NO_FEATURE
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import SearchLimitWarning
from bristlecone.metrics import concordance_index_cause, concordance_index_censored
from bristlecone.trust._alternatives import key, search_again

# Most rows whose shared leaves are counted for every pair.
_MOST_PAIRED = 2000


@dataclass(frozen=True, eq=False)
class Stability:
    """Result of ``stability``. The tables come from the same library as ``X`` in ``fit``.

    Attributes
    ----------
    n_resamples : int
        Number of resamples with a tree. Those without an event, or without a row that a limit on
        groups needs, have none.
    columns : DataFrame
        One row per column of ``X``, those used most often first: ``root``, the share of resamples
        whose tree splits on the column at the root; ``anywhere``, the share whose tree splits on
        it at any node; and ``is_used``, whether the tree itself uses it.
    splits : DataFrame
        One row per split of the tree: ``node``, ``split``, ``n_reached``, ``same_split`` and
        ``same_column``. ``n_reached`` counts the resamples whose tree has the same splits above
        the node; below the root they may be few. ``same_split`` and ``same_column`` are the shares
        of these whose tree has the same split, or splits on the same column, at the node.
    leaves : DataFrame
        One row per leaf of the tree: ``leaf``, ``n_samples``, ``predicted`` and ``expected``.
        ``predicted`` is the prediction of the tree: for survival trees the restricted mean of the
        curve, for competing risks the incidence of cause 1 at the end of the common follow-up, for
        classifiers the share of the leaf's label. ``expected`` is the mean prediction
        for the rows of the leaf by the trees of resamples that do not contain the row. Both are NaN
        for an ``OptimalTree``.
    score, optimism, corrected : float
        ``score`` is ``tree.score`` on the training rows (see the notes of ``stability``),
        ``optimism`` is how much better trees of resamples score on their own rows than on all rows,
        and ``corrected`` is ``score - optimism``, an estimate for new rows.
    together : array of float, shape (m, m)
        Share of the resamples in which two rows share a leaf, for each pair of ``rows``.
    rows : array of int, shape (m,)
        Positions of these rows among the training rows of positive weight.

    See Also
    --------
    bristlecone.trust.stability : Computes it.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.trust import stability
    >>> X, y = [[0.0], [0.0], [1.0], [1.0]], [1.0, 2.0, 8.0, 9.0]
    >>> tree = OptimalTreeRegressor(max_depth=1).fit(X, y)
    >>> found = stability(tree, X, y, n_resamples=10, random_state=0)
    >>> found.n_resamples, found.together.shape
    (10, (4, 4))
    """

    n_resamples: int
    columns: Any
    splits: Any
    leaves: Any
    score: float
    optimism: float
    corrected: float
    together: Floats = field(repr=False)
    rows: Integers = field(repr=False)


def stability(
    tree: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    n_resamples: int = 200,
    random_state: Any = None,
    **data: Any,
) -> Stability:
    """Repeat the search on resampled rows to see which splits recur.

    Each resample draws as many rows as there are, with replacement. The binary features stay
    those of the fit, which makes splits of different trees comparable. With ``thresholds="all"``
    each search considers every threshold between the values of its rows, and splits are the same
    if they divide all rows of the fit in the same way.

    The teacher of a tree is fitted again, from its parameters and its seed, but only to all rows:
    resamples draw from the smoothed outcomes of the fit. Leaves, predictions and scores of all
    trees come from the real outcomes. If a tree with a custom teacher comes from a file, call
    ``set_params(teacher=...)`` first.

    Parameters
    ----------
    tree : fitted tree
        A tree found by search.
    X, y, sample_weight, **data
        The arguments of ``fit``, with the same rows, except ``callback`` and ``reference_loss``.
    n_resamples : int, default=200
        Number of resamples, with one search each.
    random_state : int, RandomState or None
        Seed for drawing the rows; None is random.

    Returns
    -------
    Stability
        Tables of columns, splits and leaves, and the optimism of the score.

    Raises
    ------
    TypeError
        If the tree was not found by search.
    ValueError
        If the rows are not those of the fit, or its teacher is unknown.
    NotFittedError, InfeasibleError
        If there is no tree.
    KeyboardInterrupt
        On Ctrl-C.

    Warns
    -----
    SearchLimitWarning
        If searches stopped at the tree's limit on time or memory. Their best trees count.

    See Also
    --------
    alternatives : How much worse other splits are on the same rows.

    Notes
    -----
    The optimism is that of Harrell, Lee and Mark, "Multivariable prognostic models", Statistics in
    Medicine 15 (1996). Each resample's tree is scored on the resample and on all rows; the optimism
    is the mean difference; resamples whose scores are not finite are left out. The score is
    ``tree.score`` (with ``class_weight``, the accuracy in which rows count as in the fit), but NaN
    for a ``PolicyTree``, an ``OptimalTree``, and a ``CompetingRisksTree`` of rows with delayed
    entry.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.trust import stability
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> found = stability(tree, veterans.X, veterans.y, n_resamples=20, random_state=0)
    >>> found.columns["column"][0], bool(found.columns["root"][0] > 0.8)
    ('Karnofsky_score', True)
    """
    check_integer("n_resamples", n_resamples, 1)
    check_seed("random_state", random_state)
    rerun = search_again(tree, "stability", X, y, sample_weight, data)
    problem = rerun.problem
    random = check_random_state(random_state)
    tally, stops = _Tally(tree, problem), list[str]()
    for _ in range(n_resamples):
        drawn = np.sort(random.randint(len(problem.features), size=len(problem.features)))
        found = _searched(rerun, drawn)
        if found is None:
            continue
        other, features = found
        if other.certificate_.status.endswith("_limit"):
            stops.append(other.certificate_.status)
        tally.add(other, features, drawn)
    if stops:
        names = " and ".join(sorted(set(stops)))
        text = f"{len(stops)} of {tally.n} searches stopped ({names}) before their tree was proven"
        warn(f"{text}; a longer search may find others", SearchLimitWarning)
    return tally.result()


def _searched(rerun: Again, drawn: Integers) -> tuple[Any, BinaryMatrix] | None:
    """Tree over these rows, and the features of all rows that it splits.

    None if these rows lack events or a group, or no tree is allowed.
    """
    search, problem = rerun.search, rerun.searched
    data, features = problem.data, problem.features.take(drawn)
    n = len(problem.features)
    by_row = {
        name: values[drawn]
        for name, values in data._asdict().items()
        if isinstance(values, np.ndarray) and len(values) == n and name not in ("X", *OF_ALL)
    }
    part = data._replace(**by_row, X=features)
    if hasattr(part, "event") and not part.event.any():
        return None
    start = time.perf_counter()
    least = smallest_leaf(search.limits, part)
    sample = replace(problem, data=part, features=features, least=least, memo={})
    try:
        solution = search.engine(sample).solve(**search.limits.settings(sample))
    except ValueError:  # no row of a group, or of its positive or negative class, was drawn
        return None
    if solution.status == "interrupted":
        raise KeyboardInterrupt
    if not np.isfinite(solution.objective):
        return None
    everywhere = problem.features
    if isinstance(features, RankedFeatures):
        # The features of all rows of the fit: the resample is only in ranks.
        settled, solution = settle(replace(sample, data=part._replace(X=data.X)), solution)
        everywhere = settled.features
        features = everywhere.take(drawn)
        sample = replace(settled, data=part._replace(X=features), features=features)
    return rerun.tree(solution, sample, start), everywhere


class _Tally:
    """Counts over resamples."""

    def __init__(self, tree: Any, problem: Problem) -> None:
        self.tree, self.problem = tree, problem
        n, structure = len(problem.features), tree.tree_
        self.leaf = structure.leaf_index(problem.features)
        self.n = 0
        self.root = np.zeros(tree.n_features_in_, dtype=np.int64)
        self.anywhere = np.zeros(tree.n_features_in_, dtype=np.int64)
        nodes = structure.node_count
        self.reached, self.split, self.column = (np.zeros(nodes, np.int64) for _ in range(3))
        self.rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_PAIRED)).round().astype(np.int64))
        self.together = np.zeros((self.rows.size, self.rows.size))
        self.predicted = self._predictions(tree.leaves_, self.leaf)
        self.left_out, self.times_left_out = np.zeros(n), np.zeros(n)
        self.optimisms: list[float] = []

    def add(self, other: Any, features: BinaryMatrix, drawn: Integers) -> None:
        """Count a tree of the rows that were drawn; ``features`` are those of all rows."""
        self.n += 1
        structure = other.tree_
        used = structure.column[~structure.is_leaf]
        used = used[used >= 0]
        self.anywhere[np.unique(used)] += 1
        if structure.column[0] >= 0:
            self.root[structure.column[0]] += 1
        self._compare(0, 0, structure, features)
        leaf = structure.leaf_index(features)
        of_rows = leaf[self.rows]
        self.together += of_rows[:, np.newaxis] == of_rows
        out = np.ones(len(features), dtype=bool)
        out[drawn] = False
        predicted = self._predictions(other.leaves_, leaf)
        self.left_out[out] += predicted[out]
        self.times_left_out += out
        data = self.problem.data
        self.optimisms.append(_score(other, leaf, data, drawn) - _score(other, leaf, data))

    def _compare(self, mine: int, other: int, structure: Any, features: BinaryMatrix) -> None:
        """Compare splits from the root down, as long as they divide the rows in the same way."""
        own = self.tree.tree_
        if own.is_leaf[mine]:
            return
        self.reached[mine] += 1
        if structure.is_leaf[other]:
            return
        self.column[mine] += own.column[mine] == structure.column[other] != NO_FEATURE
        one = self.problem.features.column(own.feature[mine])
        two = features.column(structure.feature[other])
        if key(one) != key(two):
            return
        self.split[mine] += 1
        sides = structure.children_left, structure.children_right
        # The other split may send the same rows to the other side.
        left, right = sides if one[0] == two[0] else sides[::-1]
        self._compare(int(own.children_left[mine]), int(left[other]), structure, features)
        self._compare(int(own.children_right[mine]), int(right[other]), structure, features)

    def _predictions(self, leaves: Any, leaf: Integers) -> Floats:
        """Predictions of a tree; for classifiers the share of the label that the own tree gives."""
        own = self.tree.leaves_
        if own.compared == "survival":
            return leaves.rmst(leaf, own.common_follow_up)
        if own.compared == "incidences":
            end = np.array([own.any_cause.common_follow_up])
            return leaves.incidence_at(1, end)[leaf, 0]
        if own.compared == "shares":
            return leaves.shares[leaf, own.label[self.leaf]]
        if own.compared == "means":
            return leaves.predicted[leaf]
        if own.has_labels:
            return leaves.values[leaf, leaves.label[leaf]]
        return np.full(len(leaf), np.nan)

    def result(self) -> Stability:
        """The tables."""
        tree, structure, n = self.tree, self.tree.tree_, max(self.n, 1)
        # Columns without names are listed by their positions.
        given = [str(name) for name in getattr(tree, "feature_names_in_", [])]
        listed, used = given or range(tree.n_features_in_), set(tree.features_used_)
        names = given or [f"x{k}" for k in listed]
        order = np.lexsort((-self.root, -self.anywhere))
        columns = [
            ("column", np.array(names, dtype=object)[order]),
            ("root", self.root[order] / n),
            ("anywhere", self.anywhere[order] / n),
            ("is_used", np.array([column in used for column in listed])[order]),
        ]
        names_of = tree.splits_
        split = np.flatnonzero(~structure.is_leaf)
        reached = np.maximum(self.reached[split], 1)
        splits = [
            ("node", split),
            ("split", np.array([names_of[k] for k in split.tolist()], dtype=object)),
            ("n_reached", self.reached[split]),
            ("same_split", self.split[split] / reached),
            ("same_column", self.column[split] / reached),
        ]
        seen = self.times_left_out > 0
        means = np.full(len(self.leaf), np.nan)
        np.divide(self.left_out, self.times_left_out, out=means, where=seen)
        left_out = [means[seen & (self.leaf == k)] for k in range(structure.n_leaves)]
        expected = [float(np.mean(of)) if of.size else np.nan for of in left_out]
        first = [int(np.argmax(self.leaf == k)) for k in range(structure.n_leaves)]
        leaves = [
            ("leaf", structure.leaves),
            ("n_samples", structure.n_node_samples[structure.leaves]),
            ("predicted", self.predicted[first]),
            ("expected", np.array(expected)),
        ]
        score = _score(tree, self.leaf, self.problem.data)
        known = [optimism for optimism in self.optimisms if np.isfinite(optimism)]
        optimism = float(np.mean(known)) if known else np.nan
        kind = tree._frame_kind
        return Stability(
            n_resamples=self.n,
            columns=native_frame(columns, kind),
            splits=native_frame(splits, kind),
            leaves=native_frame(leaves, kind),
            score=score,
            optimism=optimism,
            corrected=score - optimism,
            together=self.together / n,
            rows=self.rows,
        )


def _score(tree: Any, leaf: Integers, data: Any, rows: Any = slice(None)) -> float:
    """``score`` of a tree on some training rows; NaN if it is unknown, see ``stability``."""
    leaves, at = tree.leaves_, leaf[rows]
    weight = None if data.weight is None else data.weight[rows]
    if leaves.compared in ("survival", "incidences"):
        return _concordance(leaves, at, data, rows, weight)
    if hasattr(data, "costs"):
        return -leaves.mean_cost(at, data.costs[rows], weight)
    if leaves.compared == "shares":
        return float(np.average(leaves.label[at] == data.labels[rows], weights=weight))
    if leaves.compared != "means":
        return np.nan
    if tree.certificate_.parameters["objective"] == "poisson":
        exposure = None if data.exposure is None else data.exposure[rows]
        part = data._replace(target=data.target[rows], weight=weight, exposure=exposure)
        return explained_deviance(part, leaves.predicted[at])
    return float(r2_score(data.target[rows], leaves.predicted[at], sample_weight=weight))


def _concordance(leaves: Any, at: Integers, data: Any, rows: Any, weight: Any) -> float:
    """Concordance index; NaN if no two rows can be compared, or causes with delayed entry."""
    time, entry = data.time[rows], None if data.entry is None else data.entry[rows]
    try:
        if leaves.compared == "survival":
            event, risk = data.event[rows], leaves.ranks(at)
            found = concordance_index_censored(event, time, risk, entry=entry, sample_weight=weight)
            return float(found.cindex)
        if entry is None:
            risk = leaves.theta[0][at]
            return concordance_index_cause((data.cause[rows], time), risk, sample_weight=weight)
    except ValueError:  # few events were drawn, or none of cause 1
        pass
    return np.nan
