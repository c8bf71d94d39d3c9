"""How much better a tree over every threshold could be."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

from bristlecone._data.checks import check_real
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone.exceptions import InvalidParameterError
from bristlecone.trust._alternatives import refusal, search_again


class ThresholdGap(NamedTuple):
    """Bound on how much better a tree with other thresholds could be.

    Attributes
    ----------
    gap : float
        No tree with the same limits and any thresholds is better by more than this; at least 0.
    lower_bound : float
        No such tree has a smaller objective.
    objective_value : float
        Objective of the tree.
    status : str
        "optimal": the bound is attained by a tree. Otherwise the search was stopped, and the bound
        holds but may be far from any tree.

    See Also
    --------
    threshold_gap : Computes it.

    Examples
    --------
    >>> from bristlecone.trust import ThresholdGap
    >>> ThresholdGap(0.2, 0.0, 0.2, "optimal").gap
    0.2
    """

    gap: float
    lower_bound: float
    objective_value: float
    status: str


def threshold_gap(
    tree: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    time_limit: float | None = 1.0,
    **data: Any,
) -> ThresholdGap:
    """Bound how much better a tree could be if every threshold were available.

    Trees of the same depth, number of leaves and smallest leaves are searched over every threshold
    of the numeric columns. Flags and categories are encoded as for the tree. The bound is valid
    whenever the search stops; up to depth 3 and a few thousand rows it is usually exact within a
    second.

    Parameters
    ----------
    tree : fitted tree
        A tree found by search over the features of a ``BinaryEncoder``, whose objective is a sum
        over leaves of functions of sums over their rows: not the Brier score, constraints,
        feature costs or custom tasks.
    X, y, sample_weight, **data
        The arguments of ``fit``, with the same rows, except ``callback`` and ``reference_loss``.
    time_limit : float or None, default=1.0
        Seconds for the search; None for no limit.

    Returns
    -------
    ThresholdGap
        The named tuple ``(gap, lower_bound, objective_value, status)``.

    Raises
    ------
    TypeError
        If the tree was not found by search.
    ValueError
        If the rows are not those of the fit, the encoder is a custom transformer, or the objective
        is not supported.

    See Also
    --------
    bristlecone.BinaryEncoder : ``thresholds="all"`` searches over every threshold from the start.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import BinaryEncoder, OptimalTreeClassifier
    >>> from bristlecone.trust import threshold_gap
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = X[:, 0] > 13
    >>> encoder = BinaryEncoder(n_thresholds=1)
    >>> tree = OptimalTreeClassifier(max_depth=1, encoder=encoder).fit(X, y)
    >>> found = threshold_gap(tree, X, y)
    >>> found.objective_value, found.lower_bound, found.status
    (0.2, 0.0, 'optimal')
    """
    check_real("time_limit", time_limit, 0.0, optional=True)
    start = time.perf_counter()
    search, problem, *_ = search_again(tree, "threshold_gap", X, y, sample_weight, data)
    if not isinstance(problem.encoder, BinaryEncoder):
        raise InvalidParameterError(
            f"{type(problem.encoder).__name__} does not report the columns of its features; "
            "threshold_gap needs a tree over a BinaryEncoder"
        )
    # All thresholds of the tree are among these, even those that it left out for lack of support.
    encoder, ranked = RankedFeatures.again(tree.encoder_, problem.data.X, problem.data.weight, 0.0)
    every = replace(
        problem,
        encoder=encoder,
        features=ranked,
        seconds=time.perf_counter() - start,
        memo={},
    )
    limits = replace(search.limits, time_limit=time_limit)
    try:
        engine = search.engine(every)
    except InvalidParameterError:  # it names an encoder that the user did not pass
        needed = "of sums over the rows of every leaf, without constraints or feature costs"
        raise InvalidParameterError(refusal(tree, "threshold_gap", needed)) from None
    solution = engine.solve(**limits.settings(every))
    own, bound = tree.certificate_.objective_value, solution.lower_bound
    return ThresholdGap(max(0.0, own - bound), bound, own, solution.status)
