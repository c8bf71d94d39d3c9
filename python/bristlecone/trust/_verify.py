"""Verification of a fitted tree: every value it reports is recomputed from the raw rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from bristlecone._data.arrays import with_article
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.decisions import feature_decisions
from bristlecone._encoder.features import OneOf, subset_text
from bristlecone._tree import Tree
from bristlecone._types import Bools, Floats, Integers
from bristlecone._view.fitted import check_tree
from bristlecone.exceptions import InvalidParameterError
from bristlecone.trust._columns import midpoint
from bristlecone.trust._compare import Checks, Pairs, close
from bristlecone.trust._kinds import kind_of, read_rows
from bristlecone.trust._proof import (
    Value,
    check_improvements,
    check_labels,
    check_objective,
    check_proof,
    check_training_loss,
    value_of,
)
from bristlecone.trust._rows import (
    Rows,
    asked_above,
    fingerprint,
    reached_nodes,
    unordered_fingerprint,
)
from bristlecone.trust._survival import lifetimes, row_hazards
from bristlecone.trust._teacher import check_teacher
from bristlecone.trust._verification import Verification

MOST_WORK = 5e8
"""Work of an exhaustive search, in units of about 10 ns: five seconds."""

# The automatic minimum of events, and the factor by which the expected events of a side without
# events must exceed it before event-free leaves are allowed.
_AUTO_EVENTS, _CLEARLY = 5, 4


def verify(
    tree: Any, X: Any, y: Any, *, most_work: float = MOST_WORK, **fit_arguments: Any
) -> Verification:
    """Recompute every value that a fitted tree reports from its training rows.

    The code is independent of the search engine and of the fit. Leaves of rows, sizes, curves,
    relative hazards, predictions, labels, means, limits and the objective are computed in plain
    NumPy from the definitions in ``docs/maths``. Only the code that reads data frames and outcomes,
    the teachers, and the definitions of the binary features are shared.

    If ``most_work`` allows, the lower bound is proven again by trying every possible tree.
    Otherwise it is "not checked", and the values of the certificate are shown.

    The teacher of a tree is fitted again, from its parameters and its seed. The objective and its
    bound are checked for the smoothed outcomes, and leaves, labels and ``training_loss_`` for the
    real ones. A file does not contain a custom teacher: call ``set_params(teacher=...)`` first, or
    these checks are skipped.

    The models that estimated the rewards of a ``PolicyTree`` are also fitted again, and their
    predictions and the scores of censored outcomes are not checked. On another machine their last
    digits may differ, so checks that depend on them may fail.

    Parameters
    ----------
    tree : fitted tree
        Any tree of this package, fitted or loaded from a file, or a ``TreeSizeCV``, whose
        ``best_estimator_`` is verified.
    X, y : as in ``fit``
        The rows that the tree was fitted to, in the same order. For a tree from ``reestimate``,
        the rows that its leaves were estimated from.
    most_work : float, default=5e8
        Largest amount of work for the search through every tree, in units of about 10 ns. With F
        binary features, depth d and n rows, the search takes about
        (2F)^d (4 + 0.03 n / 2^(d - 2)) units at depths 2 and 3. The Brier score, F1, Matthews
        correlation, limits on groups, capacities and custom tasks take more.
    **fit_arguments
        The other arguments of ``fit`` with one entry per row: ``sample_weight``,
        ``sensitive_features``, ``treatment``, ``costs``, ...

    Returns
    -------
    Verification
        The checks by name, and whether all passed (``ok``). It prints as a table.

    Raises
    ------
    TypeError
        If ``tree`` is not a tree of this package, or its ``fit`` does not take an argument.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If rows or columns do not match, a column is missing, a weight is invalid, or ``most_work``
        is not a number of at least 0.

    See Also
    --------
    bristlecone.save_model : The files that ``bristlecone verify`` reads.

    Notes
    -----
    Sums are exact. Two numbers count as equal if they differ by at most a factor of 1e-9; if
    positive and negative terms cancel, by at most 1e-9 of the mean size of the terms. Smoothed
    outcomes have other last digits on other machines: their moments may differ by 1e-5, and the
    objective by ten times as much as they do.

    The check "rows" compares a fingerprint of the binary features, outcomes and weights, in the
    order of the rows. It fails if a row was changed, added or dropped. It also fails if the rows
    are in another order, unless the tree was fitted to partitions; all other checks then pass,
    except those of a custom teacher that depends on the order of the rows, such as a forest. A
    changed number that crosses no threshold (1.2 to 1.3, both below every threshold) is detected
    only if it changes the smallest or largest value, the mean, or a value next to a threshold.
    Texts, run times and the trace are not checked.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.trust import verify
    >>> data = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(data.X, data.y)
    >>> print(verify(tree, data.X, data.y)["objective value"].result)
    passed
    """
    is_number = isinstance(most_work, Real) and not isinstance(most_work, (bool, np.timedelta64))
    # NaN would be no limit, because no work is more than it.
    if not is_number or not most_work >= 0:
        raise InvalidParameterError(f"most_work must be a number of at least 0; got {most_work!r}")
    fitted: Any = check_tree(tree, "verify")
    fitted = getattr(fitted, "best_estimator_", fitted)
    rows = read_rows(fitted, X, y, fit_arguments)
    checks = Checks()
    subject = f"{type(fitted).__name__}, {fitted.tree_.n_leaves} leaves, {len(rows.weight)} rows"
    smoothed = partial(check_teacher, fitted, X, y, fit_arguments, checks)
    with np.errstate(all="ignore"):
        _check_all(fitted, rows, smoothed, checks, most_work)
    return Verification(subject, tuple(checks.made))


def _check_all(
    tree: Any, rows: Rows, smoothed: Callable[[], Any], checks: Checks, most_work: float
) -> None:
    """Make all checks; ``smoothed`` fits the teacher again and gives the smoothed outcomes."""
    found, nodes = tree.certificate_, tree.tree_
    reached = reached_nodes(tree, rows.answers)
    _check_rows(tree, rows, reached, checks)
    broken = [check.name for check in checks.made[1:] if check.result == "failed"]
    if broken:
        checks.skip("everything else", "", f"needs {' and '.join(broken)}")
        return
    soft = not isinstance(nodes, Tree)
    if isinstance(tree.encoder_, BinaryEncoder):
        _check_columns(tree, rows, reached, checks)
    if not soft:
        expected = _without_value(tree, rows, reached)
        if expected.any() or nodes.n_missing.any():
            checks.same("missing values", "of every node", [("of node", expected, nodes.n_missing)])
    kind_of(tree).check_leaves(tree, rows, reached, checks)
    if soft:
        asked, events = found.parameters["l2"], int(rows.facts["event"].sum())
        l2 = max(0.1, 30.0 / max(events, 1)) if asked == "auto" else asked
        checks.same("penalty", f"l2 {l2:.6g}", [("l2", l2, found.settings["l2"])])
        value = f"{found.objective_value:.10g}"
        checks.skip("objective value", value, "trained by optimisation from random starts")
        checks.skip("lower bound", "none", f"{with_article(found.status)} tree has no lower bound")
        return
    real = value_of(tree, rows, reached)
    sought: Value | None = real
    if found.is_taught:
        outcomes = smoothed()
        sought = None if outcomes is None else value_of(tree, rows, reached, outcomes)
    if sought is not None:
        check_objective(tree, sought, checks)
    if found.is_taught:
        check_training_loss(tree, real, checks)
    check_labels(tree, real, checks)
    if sought is not None:
        check_improvements(tree, sought, checks)
    if found.status == "reestimated":
        checks.skip("limits", "", "they were kept on the rows that the splits were found on")
    else:
        _check_limits(tree, rows, reached, checks)
    if found.reference_loss is not None and "reference_loss" in rows.facts:
        mean = float(np.average(rows.facts["reference_loss"], weights=rows.weight))
        checks.same("reference loss", f"{mean:.10g}", [("mean", mean, found.reference_loss)])
    if sought is not None:
        check_proof(tree, rows, sought, checks, most_work)
        return
    why = "needs the smoothed outcomes of the fit, see the check of the teacher"
    for name, value in (
        ("objective value", f"{found.objective_value:.10g}"),
        ("improvements", "of every split"),
        ("lower bound", f"{found.lower_bound:.10g}" if found.is_searched else "none"),
    ):
        checks.skip(name, value, why)


def _check_rows(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Whether these are the rows of the fit, and of every node; other checks need the latter."""
    found, nodes = tree.certificate_, tree.tree_
    ordered = not found.fingerprint.startswith("rows-")
    digest = fingerprint(rows) if ordered else unordered_fingerprint(rows)
    why = "rows, outcomes or weights are not those of the fit"
    why += ", or in another order" if ordered else ""
    had_weights = not np.isclose(nodes.weighted_n_node_samples[0], nodes.n_node_samples[0])
    if had_weights and rows.total == len(rows.weight):
        why += "; the fit had row weights: pass its sample_weight"
    same = digest == found.fingerprint
    checks.holds("rows", same, f"{digest[:16]}…", f"fingerprint {found.fingerprint[:16]}…", why)
    checks.same(
        "node sizes",
        f"{len(rows.weight)} rows of weight {rows.total:.10g} in {nodes.n_leaves} leaves",
        [
            ("rows of the fit", len(rows.weight), found.n_samples),
            ("rows of node", reached.sum(axis=0), nodes.n_node_samples),
            ("weight of node", rows.weight @ reached, nodes.weighted_n_node_samples),
        ],
    )
    labels, classes = getattr(tree.leaves_, "labels", None), rows.facts.get("classes")
    if labels is not None and classes is not None:
        checks.same("classes", str(classes.tolist()), [("", classes, labels)])
    if found.groups is not None:
        groups = rows.facts.get("groups")
        checks.same("groups of rows", str(groups), [("", groups, found.groups.groups)])


def _without_value(tree: Any, rows: Rows, reached: Bools) -> Integers:
    """Rows of every split without a value in its column; of a leaf, of any split above it."""
    nodes = tree.tree_
    lacking = np.zeros(reached.shape, dtype=bool)
    if isinstance(tree.encoder_, BinaryEncoder):
        decisions = feature_decisions(tree.encoder_)
        for node in np.flatnonzero(~nodes.is_leaf):
            decision = decisions[nodes.feature[node]]
            if decision.kind != "missing":
                lacking[:, node] = reached[:, node] & rows.columns[decision.place].missing
    counts: Integers = lacking.sum(axis=0)
    somewhere: Bools = np.asarray(lacking.any(axis=1))
    counts[nodes.leaves] = (reached[:, nodes.leaves] & somewhere[:, np.newaxis]).sum(axis=0)
    return counts


def _check_columns(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Column statistics and thresholds of the encoder."""
    encoder = tree.encoder_
    if tree.certificate_.status == "reestimated":
        checks.skip("thresholds", "", "they were computed from other rows")
        return
    pairs: Pairs = []
    for schema, column in zip(encoder.columns_, rows.columns, strict=True):
        missing = column.missing
        pairs.append((f"missing in {schema.name}", int(missing.sum()), schema.n_missing))
        if schema.kind in ("number", "flag") and column.numbers is not None and not missing.all():
            values, weight = column.numbers[~missing], rows.weight[~missing]
            if schema.kind == "number":
                pairs.append((f"least {schema.name}", values.min(), schema.low))
                pairs.append((f"greatest {schema.name}", values.max(), schema.high))
                whole = bool((values == np.floor(values)).all())
                pairs.append((f"whole numbers in {schema.name}", whole, schema.whole))
                size = float(np.abs(values).max()) or 1.0  # the sum could overflow
                mean = size * np.average(values / size, weights=weight)
                fill: Any = float(np.clip(mean, values.min(), values.max()))
            else:
                true, false = weight[values > 0.5].sum(), weight[values <= 0.5].sum()
                # If the weights differ only by rounding, either value may be the most frequent.
                tied = close(float(true), float(false), float(true + false))
                fill = schema.fill if tied else bool(true > false)
            if schema.fill is not None:
                size = float(np.abs(values).max())
                pairs.append((f"mean of {schema.name}", fill, schema.fill, size))
    checks.same("columns", f"{len(encoder.columns_)} columns", pairs)
    checks.same("thresholds", "each between neighbouring values", _thresholds(tree, rows, reached))


def _thresholds(tree: Any, rows: Rows, reached: Bools) -> list[tuple[str, Any, Any]]:
    """Every threshold, the midpoint of its neighbours, and the side of missing values."""
    nodes, encoder = tree.tree_, tree.encoder_
    pairs: list[tuple[str, Any, Any]] = []
    fills = {schema.name: schema.fill for schema in encoder.columns_}
    features = zip(feature_decisions(encoder), encoder.features_, strict=True)
    for place, (decision, feature) in enumerate(features):
        numbers = rows.columns[decision.place].numbers
        fill = fills[decision.column]
        if decision.kind == "at most":
            bound = decision.bound
            assert numbers is not None and bound is not None
            is_missing = np.isnan(numbers)
            asked, every = [numbers[~is_missing]], None
            # A cut that the search made is midway between the values of a node that it splits.
            cuts = np.flatnonzero((nodes.feature == place) & (encoder.thresholds == "all"))
            if cuts.size:
                every = numbers
                if fill is not None:
                    every = np.where(is_missing, _stand_in(asked[0], fill), numbers)
                asked = [every[~np.isnan(every) & reached[:, node]] for node in cuts]
            middles = [_middle(values, bound, every) for values in asked]
            pairs.append((feature.name, bound if bound in middles else middles[0], bound))
            answer = fill is not None and fill <= bound
            pairs.append((f"{feature.name}, missing", answer, decision.missing))
            shown = _number(feature.condition.removeprefix("<= "))
            if shown is not None:
                # The rounded threshold of the text must divide the rows in the same way.
                same = all(((values <= shown) == (values <= bound)).all() for values in asked)
                pairs.append((f"{feature.name} in words", True, same))
        elif isinstance(feature, OneOf):
            # The text names the first levels and counts the others.
            same = feature.condition.startswith(f"in {subset_text(feature.levels)}")
            pairs.append((f"{feature.name} in words", True, same))
        elif decision.kind == "flag":
            pairs.append((f"{feature.name}, missing", bool(fill), decision.missing))
    return pairs


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        # More words follow if two binary features would have the same name.
        return None


def _stand_in(values: Floats, fill: float) -> float:
    """The value that is on the side of ``fill`` of every threshold between neighbouring values."""
    distinct = np.unique(values).tolist()
    return next((v for v, w in pairwise(distinct) if fill <= midpoint(v, w)), distinct[-1])


def _middle(values: Floats, threshold: float, every: Floats | None = None) -> float:
    """Midpoint of the values next to a threshold, or this threshold if it is one.

    If only missing values are above the threshold, the next value may be any of ``every``, the
    values of the whole column.
    """
    below, above = values[values <= threshold], values[values > threshold]
    highs = [float(above.min())] if above.size else []
    if not highs and every is not None:
        highs = sorted({*every[every > threshold].tolist()})
    if not below.size or not highs:
        return math.nan
    low = float(below.max())
    middles = [(midpoint(low, high), high - low) for high in highs]
    # Rounding of the middle is relative to the gap.
    near = any(abs(middle - threshold) <= 1e-9 * gap for middle, gap in middles)
    return threshold if near else middles[0][0]


def _check_limits(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Limits on the size of the tree and of its leaves."""
    nodes, found = tree.tree_, tree.certificate_
    parameters = found.parameters
    for name, limit, size in (
        ("depth", parameters["max_depth"], max(map(len, asked_above(tree)))),
        ("number of leaves", parameters["max_leaf_nodes"], nodes.n_leaves),
    ):
        at_most = "any" if limit is None else f"at most {limit}"
        checks.holds(name, limit is None or size <= limit, at_most, size)
    leaves = reached[:, nodes.leaves]
    least = _least(parameters["min_samples_leaf"], len(rows.weight))
    _check_minimum("rows of a leaf", "min_samples_leaf", least, leaves, found, checks)
    if "min_events_leaf" in parameters:
        event, wanted = rows.facts["event"], parameters["min_events_leaf"]
        if wanted == "auto":
            events = min(_AUTO_EVENTS, int(event.sum()))
            if found.settings.get("min_events_leaf") == 0:
                if not _event_free(rows):
                    why = "min_events_leaf='auto' found a binary feature with an event-free side "
                    why += "before the thresholds were chosen; it is no longer among them"
                    checks.skip("events of a leaf", "at least 0", why)
                    return
                events = 0
        else:
            events = 0 if wanted is None else _least(wanted, int(event.sum()))
        _check_minimum("events of a leaf", "min_events_leaf", events, leaves[event], found, checks)


def _check_minimum(
    name: str, parameter: str, least: int, leaves: Bools, found: Any, checks: Checks
) -> None:
    stated, fewest = found.settings.get(parameter), int(leaves.sum(axis=0).min())
    holds = stated == least and fewest >= least
    checks.holds(name, holds, f"at least {least}", f"{fewest} ({parameter} {stated})")


def _least(value: Any, total: int) -> int:
    """Minimum as a number of rows or events; ``value`` is a number or a share of the total."""
    if isinstance(value, Integral):
        return min(int(value), total)
    return max(1, math.ceil(round(float(value) * total, 9)))


def _event_free(rows: Rows) -> bool:
    """Whether a binary feature has an event-free side although many events are expected there."""
    hazard, event = row_hazards(lifetimes(rows)), rows.facts["event"]
    for side in (*rows.answers.T, *~rows.answers.T):
        if not event[side].any() and hazard[side].sum() >= _CLEARLY * _AUTO_EVENTS:
            return True
    return False
