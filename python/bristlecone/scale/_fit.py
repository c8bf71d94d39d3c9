"""``fit_partitions``: a tree from counts and sums over partitions."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from bristlecone._data.arrays import listed
from bristlecone._data.checks import thread_count
from bristlecone._data.exact import product_sum
from bristlecone._data.survival import TrainingData
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import Feature
from bristlecone._encoder.missing import missing_text
from bristlecone._encoder.partitions import check_for_partitions, fit_counts, rows_that_hold
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.use import AnswerCounts
from bristlecone._estimators.parameters import has_methods
from bristlecone._estimators.partitioned import check_supported, keep, search_of
from bristlecone._fit.encode import warn_of_shares
from bristlecone._fit.search import Search
from bristlecone._leaves.minimum import event_free_sides, smallest_leaf, worst_side
from bristlecone._leaves.statistics import baseline_hazard, row_hazard
from bristlecone._log import log
from bristlecone._search.certificate import reporter
from bristlecone._search.engine import MOST_DEPTH, Problem, Sums
from bristlecone._search.row_sums import outcome_digests
from bristlecone._tree import Tree
from bristlecone._types import Integers
from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale._outcomes import Outcomes, Roles, Training, roles_of, training_rows
from bristlecone.scale._run import Runner
from bristlecone.scale._sources import Source, open_source
from bristlecone.scale._steps import (
    ColumnStep,
    Counts,
    LeafStep,
    OutcomeStep,
    RepeatStep,
    SideStep,
    SumState,
    SumStep,
)

Tree_ = TypeVar("Tree_")

# Columns in which pandas, pyarrow and Dask write an index without a name.
_UNNAMED_INDEX = re.compile("__index_level_[0-9]+__|__null_dask_index__")


def fit_partitions(
    estimator: Tree_,
    partitions: Any,
    *,
    time: str | None = "time",
    event: str | None = "event",
    entry: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    exposure: str | None = None,
    treatment: str | None = None,
    propensity: str | Sequence[str] | None = None,
    costs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    client: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[Any], object] | None = None,
) -> Tree_:
    """Fit a tree to a table that is read in partitions.

    The table need not fit into memory. Each pass reads all partitions and keeps only counts and
    sums, which are exact. The tree and objective are those of ``fit`` for the whole table, for any
    partitions in any order; the lower bound is the same up to rounding. ``max_depth`` is at most 4.

    Parameters
    ----------
    estimator : OptimalSurvivalTree, CompetingRisksTree, OptimalTreeClassifier, \
CostSensitiveTreeClassifier, OptimalTreeRegressor or PolicyTree
        It is fitted in place. Its objective must be a sum over rows: not ``objective="brier"``,
        "f1" or "mcc", and no ``fairness``, ``teacher`` or ``capacities``; a PolicyTree needs
        ``reward="inverse-propensity"``, without ``horizon`` and ``min_samples_treatment``.
        ``encoder`` is a ``BinaryEncoder`` whose thresholds do not depend on the outcomes, or
        "auto", which means ``BinaryEncoder()`` here: no thresholds of greedy trees are added.
    partitions : path, list of paths, pyarrow dataset, Dask DataFrame, callable, ...
        One of: a Parquet file, folder or glob, or a list of them; a pyarrow dataset; a Dask
        DataFrame; a list of data frames; an object with ``__arrow_c_stream__`` that can be read
        again; a function without arguments that returns an iterable of data frames, for example a
        generator function. All partitions have the same columns and types. The row groups of a
        Parquet file are partitions.
    time, event, entry : str or None
        Columns of the outcome of a survival tree, as in :func:`bristlecone.outcome`.
    target : str, optional
        Column of the outcome of all other trees.
    weight : str, optional
        Column of row weights. Rows of weight zero are left out.
    exposure : str, optional
        Column of exposures, for ``objective="poisson"``.
    treatment : str, optional
        Column of the treatment that each row had, for a PolicyTree.
    propensity : str or sequence of str, optional
        Column of the probability of this treatment, or one column per treatment, in sorted order
        unless their names are those of the treatments.
    costs : sequence of str, optional
        Columns of the cost of each class, for a CostSensitiveTreeClassifier, in sorted order unless
        their names are those of the classes.
    drop : sequence of str
        Columns to ignore. All other columns are features, except an index without a name that
        pandas or Dask wrote as a column.
    client : distributed.Client, optional
        Dask cluster that reads the partitions. The search itself runs here. A Dask DataFrame uses
        the current client by default.
    n_jobs : int, optional
        Number of partitions that are read at the same time, in threads; -1 means one per core.
        It is not used with ``client``.
    callback : callable, optional
        Called with a :class:`PassProgress` after each partition, and with the progress of the
        search as in ``fit``. An exception that it raises ends the fit.

    Returns
    -------
    estimator
        The fitted estimator. It predicts, plots, exports and saves as after ``fit``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is invalid, a column cannot be read, a partition has other columns or types
        than the first, or a partition changes while the fit reads it again. The message names the
        partition, column and row. Also if the sums need more than ``memory_limit``: the message
        names smaller settings. An earlier fit is kept.
    OSError, RuntimeError
        If a partition cannot be read; the message begins with its name.
    KeyboardInterrupt
        On Ctrl-C while the partitions are read. An earlier fit is kept.

    Warns
    -----
    ColumnWarning, ConstantFeatureWarning, EventFreeWarning, SearchLimitWarning
        As in ``fit``.

    See Also
    --------
    DaskOptimalSurvivalTree : The same as an estimator for Dask.
    predict_partitions : Predictions partition by partition.

    Notes
    -----
    There are four passes: the distinct outcomes, the values of the columns, the sums over sets of
    binary features, and the outcomes of the rows of each leaf. A further pass is needed if features
    of two columns may be duplicates. Memory holds the distinct outcomes, the distinct values of the
    columns, and the sums, whose size depends on the number of features and the depth but not on the
    rows. ``certificate_.fingerprint`` does not depend on the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import BinaryEncoder, OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.scale import fit_partitions
    >>> data = load("gbsg2")
    >>> table = data.X.assign(time=data.y["time"], event=data.y["event"])
    >>> def parts():
    ...     for start in range(0, len(table), 100):
    ...         yield table[start : start + 100]
    >>> tree = fit_partitions(OptimalSurvivalTree(max_depth=2), parts)
    >>> whole = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder()).fit(data.X, data.y)
    >>> tree.objective_value_ == whole.objective_value_
    True
    """
    fitted: Any = estimator
    start = clock.perf_counter()
    check_supported(fitted)
    if callback is not None and not callable(callback):
        raise InvalidParameterError(f"callback must be callable or None; got {callback!r}")
    if isinstance(fitted.encoder, str):
        log(fitted.verbose, "encoder='auto' means quantiles of all rows with partitions")
    check_for_partitions(fitted.encoder)
    named = {"time": time, "event": event, "entry": entry, "target": target, "weight": weight}
    more = {"exposure": exposure, "treatment": treatment, "propensity": propensity}
    roles = roles_of(fitted, **named, **more, costs=costs)
    source = open_source(partitions)
    features = _features(source, roles, drop)
    runner = Runner(source, thread_count(n_jobs), _client(source, client), callback, fitted.verbose)
    _Fit(fitted, runner, roles, features, start).run()
    return estimator


def _features(source: Source, roles: Roles, drop: Sequence[str]) -> list[str]:
    """Columns that are features."""
    if isinstance(drop, str) or not isinstance(drop, Iterable):
        raise InvalidParameterError(f"drop must be a list of columns; got {drop!r}")
    for names, who in ((roles.names, "a column of the outcome"), (drop, "drop")):
        for name in names:
            if name not in source.columns:
                raise InvalidParameterError(
                    f"{name!r} ({who}) is not a column of the partitions; there are "
                    f"{listed(source.columns, 12)}"
                )
    left_out = {*roles.names, *drop}
    features = [n for n in source.columns if n not in left_out and not _UNNAMED_INDEX.fullmatch(n)]
    if not features:
        raise InvalidParameterError("the partitions have no columns besides those of the outcome")
    return features


def _client(source: Source, client: Any) -> Any:
    """The client of Dask to use; a Dask DataFrame has a current one, or none."""
    if client is not None and not has_methods(client, "submit", "compute"):
        raise InvalidParameterError(f"client must be a distributed.Client or None; got {client!r}")
    if client is not None or not source.is_dask:
        return client
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


class _Fit:
    """The passes of a fit, one after the other."""

    def __init__(
        self, estimator: Any, runner: Runner, roles: Roles, features: list[str], start: float
    ) -> None:
        self.estimator, self.runner, self.roles = estimator, runner, roles
        self.features, self.start = features, start
        self.search: Search = search_of(estimator)

    def run(self) -> None:
        """Read the partitions, search, and set the results."""
        outcomes: Outcomes = self.runner.run(OutcomeStep(self.roles))
        rows = training_rows(self.estimator, self.roles, outcomes)
        known = self.roles, outcomes, rows.place
        encoder, holds = self._encoder(known, rows)
        data, count = rows.data, rows.counts
        n_rows, n_features = int(count.sum()), len(holds)
        limits = self.search.limits
        # Only the shape of the features is needed.
        shape = n_rows, n_features
        unread = np.broadcast_to(np.zeros(1, dtype=np.uint8), shape)
        problem: Problem = Problem(data, encoder, unread, {"min_samples_leaf": 1}, 0.0, {})
        depth = limits.depth(shape)
        if depth > MOST_DEPTH:
            raise InvalidParameterError(
                f"a tree may have depth {depth} here, and sums over partitions go to depth "
                f"{MOST_DEPTH}; pass max_depth={MOST_DEPTH} or less"
            )
        objective: Any = self.search.objective
        settings = limits.settings(problem, max_depth=max(1, depth), time_limit=None)
        make = partial(Sums, objective.task_of(problem), count, 2 * holds > n_rows, settings)
        event = data.event if isinstance(data, TrainingData) else None
        sums: SumState = self.runner.run(
            SumStep(*known, encoder, encoder.features_, make, event, outcome_digests(data))
        )
        answers = AnswerCounts(n_rows, holds, sums.among)
        data = self._event_free(known, rows, encoder, answers)
        problem = replace(
            problem,
            data=data,
            least=smallest_leaf(limits, data, count),
            seconds=clock.perf_counter() - self.start,
            memo={
                "binary_features": question_names(encoder),
                "fingerprint": sums.rows.fingerprint(data),
            },
        )
        warn_of_shares(limits, replace(problem, count=count), lambda: answers)
        settings = limits.settings(problem)
        feature, left, right = sums.sums.search(reporter(self.runner.callback), **settings)
        tree = Tree.bare(left, right, feature)
        used = np.unique(tree.feature[~tree.is_leaf]).tolist()
        asked = [encoder.features_[k] for k in used]
        leaves: Counts = self.runner.run(LeafStep(*known, encoder, asked, tree, used, len(count)))
        if not np.array_equal(leaves.rows.sum(axis=0), count):
            raise ValueError("partitions must not change during a fit: their outcomes did")
        leaf, place = np.nonzero(leaves.rows)
        cells = leaves.rows[leaf, place]
        solution = sums.sums.certify(place, leaf, cells, **settings)
        rows = rows._replace(data=data)
        problem = replace(problem, data=rows.cells(place, cells), count=cells, leaf=leaf)
        found = problem, solution, leaves.n_missing, self.runner.n_parts
        keep(self.estimator, self.search, *found, self.start)

    def _encoder(
        self, known: tuple[Roles, Outcomes, Integers], rows: Training
    ) -> tuple[BinaryEncoder, Integers]:
        """The fitted encoder, and the number of rows in which each feature is true."""
        counted = self.runner.run(ColumnStep(*known, self.features, rows.data.weight))

        def divided(draft: BinaryEncoder, features: Sequence[Feature]) -> Any:
            return self.runner.run(RepeatStep(*known, draft, features)).keys()

        counts = counted.counts()
        encoder = fit_counts(self.estimator.encoder, counts, counted.least_weight, divided)
        missing = missing_text(encoder.columns_)
        if missing:
            log(self.estimator.verbose, "missing values: %s", missing)
        return encoder, rows_that_hold(encoder, counts)

    def _event_free(
        self,
        known: tuple[Roles, Outcomes, Integers],
        rows: Training,
        encoder: BinaryEncoder,
        answers: AnswerCounts,
    ) -> Any:
        """The training rows, with the side of a feature without events where many are expected."""
        data, count = rows.data, rows.counts
        if self.search.limits.min_events_leaf != "auto":
            return data
        n_events = int(count[data.event].sum())
        sides = event_free_sides(answers, n_events)
        if not sides:
            return data
        asked = list(dict.fromkeys(feature for _, feature in sides))
        features = [encoder.features_[k] for k in asked]
        found: Counts = self.runner.run(SideStep(*known, encoder, features, len(count)))
        summed = rows.summed
        hazard = row_hazard(summed, baseline_hazard(summed))

        def expected(answer: bool, feature: int) -> float:
            own = found.rows[asked.index(feature)]
            return product_sum(hazard, own if answer else count - own)

        return data._replace(event_free=worst_side(encoder, answers, sides, expected))
