"""Turns checked rows into the binary features of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bristlecone._core import BinaryMatrix
from bristlecone._data.rows import RowsT
from bristlecone._encoder.cuts import add_cuts
from bristlecone._encoder.ranked import RankedFeatures, awaits_search
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._encoder.use import (
    AnswerCounts,
    binary_features,
    count_answers,
    fit_encoder,
)
from bristlecone._fit.search import Limits, Search
from bristlecone._leaves.minimum import event_free_rows, smallest_leaf, warn_of_small_sample
from bristlecone._search.certificate import Certificate, fingerprint
from bristlecone._search.cuts import Growth
from bristlecone._search.engine import Problem
from bristlecone._search.row_sums import unordered_fingerprint
from bristlecone._types import Integers

# Largest share of the remaining time that choosing cuts may take, and how much longer than reading
# the rows it may take to rank, cut and encode them again.
_SHARE_FOR_CUTS, _CUTS_BY_READING = 0.5, 5.0

# Longer time limits are ignored; the engine's clock might overflow.
_MOST_SECONDS = 1e9


def encode(search: Search, data: RowsT, start: float | None = None) -> Problem[RowsT]:
    """The problem of these training rows, whose preparation began at ``start``."""
    start = time.perf_counter() if start is None else start
    encoder, encoded = fit_encoder(
        search.encoder,
        data.X,
        partial(search.objective.target, data),
        data.weight,
        search.verbose,
        getattr(data, "exposure", None),
    )
    # The columns are sorted once; thresholds, greedy trees and features use the ranks.
    columns = None
    if encoded is None:
        bits = binary_features(encoder, data.X)
    else:
        columns, questions, bits = encoded()
    del encoded
    holds: Integers | None = None
    if search.limits.min_events_leaf == "auto":  # its meaning follows from the features
        rows: Any = data  # only survival outcomes have events
        answers = count_answers(bits, rows.event)
        data = rows._replace(event_free=event_free_rows(encoder, bits, answers, rows))
        holds = answers.holds
    least = smallest_leaf(search.limits, data)
    features: BinaryMatrix | RankedFeatures = bits
    if columns is not None:
        growth = _growth(search, columns, least, start)
        if growth is not None:
            holds = bits.count_true() if holds is None else holds
            cuts = search.objective.cuts(data, columns, growth)
            added = add_cuts(encoder, columns, questions, holds, cuts)
            if added is not None:
                features = columns.features(added)
        if awaits_search(encoder):
            # No feature is written out, because there are as many as thresholds.
            features = RankedFeatures(columns, data.weight, encoder.min_support)
    return Problem(data, encoder, features, least, time.perf_counter() - start, {})


def encode_again(
    encoder: Any, certificate: Certificate, data: RowsT, start: float
) -> Problem[RowsT]:
    """The problem of a fit, from its rows, its fitted encoder and its certificate.

    Raises
    ------
    ValueError
        If these are not the rows of the fit.
    """
    features = binary_features(encoder, data.X)
    known = certificate.fingerprint
    unordered = certificate.is_of_partitions
    own = unordered_fingerprint(features, data) if unordered else fingerprint(features, data)
    if own != known:
        raise ValueError(
            "X and y are not the rows of the fit: the outcomes, the weights, the order of "
            "the rows or the features made of X differ (certificate_.fingerprint)"
        )
    seconds = time.perf_counter() - start
    return Problem(data, encoder, features, dict(certificate.settings), seconds, {})


def warn_of_shares(
    limits: Limits, problem: Problem, counted: Callable[[], AnswerCounts] | None = None
) -> None:
    """Warn if the smallest leaves rule out every split.

    ``counted`` counts the features of the rows, by default those of the problem.
    """
    if not limits.depth(problem.features.shape):
        return
    least, events, event = problem.least, None, None
    if "min_events_leaf" in least:
        event = problem.data.event
        n_events = int((event if problem.count is None else problem.count[event]).sum())
        events = limits.min_events_leaf, least["min_events_leaf"], n_events
    if counted is None:
        among = np.zeros(len(problem.features), dtype=bool) if event is None else event
        counted = partial(count_answers, problem.features, among)
    n_rows = len(problem.features) if problem.count is None else int(problem.count.sum())
    rows = limits.min_samples_leaf, least["min_samples_leaf"], n_rows
    # The search over every threshold checks the sizes of leaves itself.
    known = None if isinstance(problem.features, RankedFeatures) else counted
    warn_of_small_sample(known, rows, events)


def _growth(
    search: Search, columns: RankedColumns, least: dict[str, int], start: float
) -> Growth | None:
    """Limits of the greedy trees whose cuts are added to the features; None to add none."""
    limits, most = search.limits, columns.n_rows
    if not isinstance(search.encoder, str) or all(values is None for values in columns.values):
        return None
    seconds = None
    if limits.time_limit is not None:
        read = time.perf_counter() - start
        left = limits.time_limit - (1.0 + _CUTS_BY_READING) * read
        seconds = min(_SHARE_FOR_CUTS * left, _MOST_SECONDS)
    none_left = seconds is not None and seconds <= 0.0
    if limits.max_depth == 0 or limits.max_leaf_nodes == 1 or none_left:
        return None
    depth, leaves = limits.max_depth, limits.max_leaf_nodes
    return Growth(
        max_depth=most if depth is None else min(depth, most),
        max_leaf_nodes=None if leaves is None else min(leaves, most),
        leaf_penalty=float(limits.leaf_penalty),
        seconds=seconds,
        **least,
    )
