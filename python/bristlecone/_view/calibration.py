"""Calibration: the predictions for similar rows, compared with their observed outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binomtest, t

from bristlecone._core import RiskTable
from bristlecone._data.arrays import listed
from bristlecone._data.checks import check_confidence
from bristlecone._data.groups import codes_of
from bristlecone._data.outcomes import Survival, as_structured, check_survival, read_causes
from bristlecone._data.rows import check_row_labels
from bristlecone._data.texts import number
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone._view.palette import label_colour, leaf_colours
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._calibration import prediction_groups
from bristlecone.metrics._inputs import finite_floats

# Observed value and its confidence limits; NaN if they are unknown.
Observed = tuple[float, float, float]
_UNKNOWN = (np.nan, np.nan, np.nan)
# Number of groups by prediction for a soft tree.
_GROUPS = 10


class Compared(NamedTuple):
    """A group of rows: their mean prediction, and the observed value."""

    name: str
    n: int
    predicted: float
    observed: float
    lower: float
    upper: float
    colour: str


class Calibration(NamedTuple):
    """One predicted quantity; ``label`` is the position of a class or cause, or -1."""

    quantity: str
    points: list[Compared]
    label: int = -1


def calibrations(
    tree: Any,
    X: Any,
    y: Any,
    *,
    times: Sequence[float] = (),
    confidence: float = 0.95,
    n_groups: int | None = None,
    by_leaf: bool = False,
) -> list[Calibration]:
    """Survival or incidences at each time, the share of each class (of two the second), or means.

    Survival is compared with the Kaplan–Meier estimate and its log-log limits, incidences with the
    Aalen–Johansen estimate and limits on the same scale, shares with frequencies and Wilson's
    limits, and means with means and limits by Student's t. If nothing varies, there are no limits.
    Rows are grouped by leaf; with ``n_groups`` or for a soft tree by prediction, unless
    ``by_leaf``.
    """
    check_confidence(confidence)
    if tree.certificate_.parameters.get("objective") == "poisson":
        raise InvalidParameterError(
            "calibration is not available with objective='poisson': rates depend on the exposure "
            "of the rows"
        )
    check_row_labels(X, y=y)
    leaves, leaf = tree.leaves_, tree.apply(X)
    if not len(leaf):
        raise ValueError("there are no rows to compare predictions with: X is empty")
    predicted, observe, quantities, labels = _KINDS[leaves.compared](tree, X, y, times, confidence)
    colours = leaf_colours(tree)
    by_leaf = by_leaf or (n_groups is None and isinstance(tree.tree_, Tree))
    found = []
    for j, (quantity, label) in enumerate(zip(quantities, labels, strict=True)):
        values, points = predicted[:, j], []
        if by_leaf:
            groups = [(f"leaf {node}", leaf == node, colours[node]) for node in colours]
        else:
            group = prediction_groups(values, _GROUPS if n_groups is None else n_groups)
            every = range(int(group.max()) + 1)
            groups = [(f"group {k}", group == k, label_colour(0)) for k in every]
        for name, own, colour in groups:
            n, rows = int(own.sum()), np.flatnonzero(own)
            mean = float(values[rows].mean()) if n else np.nan
            seen = observe(rows, j) if n else _UNKNOWN
            colour = label_colour(label) if label >= 0 else colour
            points.append(Compared(name, n, mean, *seen, colour))
        found.append(Calibration(quantity, points, label))
    return found


# Predictions, observations, quantities, and their labels.
_Kind = tuple[Floats, Callable[[Integers, int], Observed], list[str], list[int]]


def _check_length(rows: int, outcomes: int) -> None:
    if rows != outcomes:
        raise InvalidParameterError(f"X has {rows} rows but y has {outcomes}")


def _survival(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> _Kind:
    outcome = as_structured(check_survival(y))
    predicted = tree.predict_survival_function(X, times=list(times))
    _check_length(len(predicted), len(outcome))

    def observe(rows: Integers, j: int) -> Observed:
        curve, at = kaplan_meier(outcome[rows]), times[j]
        if at > curve.x[-1] and curve.y[-1] > 0:
            return _UNKNOWN
        step = int(np.searchsorted(curve.x, at, side="right")) - 1
        if step < 0 or curve.y[step] == 1:
            return 1.0, np.nan, np.nan
        low, high = (float(limit[step]) for limit in curve.confidence_interval(confidence))
        return float(curve.y[step]), low, high

    return predicted, observe, [f"survival at {number(t)}" for t in times], [-1] * len(times)


def _incidences(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> _Kind:
    outcomes = read_causes(y)
    pairs = [(t, cause) for t in times for cause in range(1, tree.leaves_.n_causes + 1)]
    predicted = np.stack(
        [tree.predict_cumulative_incidence(X, cause, times=[t])[:, 0] for t, cause in pairs], axis=1
    )
    _check_length(len(predicted), len(outcomes.time))

    def observe(rows: Integers, j: int) -> Observed:
        entry = None if outcomes.entry is None else outcomes.entry[rows]
        own = Survival(outcomes.event[rows], outcomes.time[rows], entry)
        t, cause = pairs[j]
        return aalen_johansen(own, cause, t, confidence)

    names = [f"incidence of cause {cause} by {number(t)}" for t, cause in pairs]
    return predicted, observe, names, [cause - 1 for _, cause in pairs]


def aalen_johansen(outcomes: Survival, cause: int, at: float, confidence: float) -> Observed:
    """Incidence of a cause by a time, with confidence limits; ``event`` is the cause.

    The variance follows from the delta method (Dinse and Larson, "A note on semi-Markov models for
    partially censored data", Biometrika 73, 1986, eq. 6), and the limits are symmetric for ln(−ln(1
    − F)). With one cause both are those of Kaplan–Meier.
    """
    codes: NDArray[Any] = outcomes.event
    table = RiskTable(outcomes.time, codes > 0, None, outcomes.entry)
    times, n, d = table.time, table.at_risk, table.events
    survival = table.kaplan_meier()
    if at > times[-1] and survival[-1] > 0:
        return _UNKNOWN
    own = np.bincount(np.searchsorted(times, outcomes.time[codes == cause]), minlength=times.size)
    before = np.append(1.0, survival[:-1])
    incidence = np.cumsum(before * own / np.maximum(n, 1.0))
    inside = (times <= at) & (d > 0)
    F = float(incidence[inside][-1]) if inside.any() else 0.0
    n, d, own, before = n[inside], d[inside], own[inside], before[inside]
    later = F - incidence[inside]
    # After the last row had an event nothing is left to vary: later is 0 where n = d.
    share = np.divide(d, n * (n - d), out=np.zeros_like(n), where=n > d)
    variance = later**2 * share + before**2 * (n - own) * own / n**3
    total = float(np.sum(variance - 2 * later * before * own / n**2))
    if not (total > 0 and 0 < F < 1):
        return F, np.nan, np.nan
    scale = np.sqrt(total) / ((1 - F) * abs(np.log1p(-F)))
    factor = np.exp(ndtri((1 + confidence) / 2) * scale)
    low, high = (1 - (1 - F) ** power for power in (1 / factor, factor))
    return F, float(low), float(high)


def _shares(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> _Kind:
    classes, predicted = tree.leaves_.labels, tree.predict_proba(X)
    _check_length(len(predicted), len(y))
    values, codes = codes_of(y, len(predicted), "y")
    given = values[codes]
    if set(values.tolist()).isdisjoint(classes.tolist()):
        raise ValueError(
            f"y holds {listed(values.tolist())}, none of which is among the classes of the tree, "
            f"{classes.tolist()}"
        )
    # With two classes, the share of one gives that of the other.
    first = 1 if len(classes) == 2 else 0

    def observe(rows: Integers, j: int) -> Observed:
        hits = int((given[rows] == classes[first + j]).sum())
        test = binomtest(hits, len(rows))
        limits = test.proportion_ci(confidence, method="wilson")
        return float(test.statistic), float(limits.low), float(limits.high)

    places = range(first, len(classes))
    labels = [-1] if first else list(places)
    return predicted[:, first:], observe, [f"share of {classes[k]}" for k in places], labels


def _means(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> _Kind:
    values = finite_floats(y, "y")
    predicted = tree.predict(X)[:, np.newaxis]
    _check_length(len(predicted), len(values))

    def observe(rows: Integers, j: int) -> Observed:
        own = values[rows]
        mean, spread = float(own.mean()), own.std(ddof=1) if len(own) > 1 else 0.0
        if not spread > 0:
            return mean, np.nan, np.nan
        half = float(t.ppf((1 + confidence) / 2, len(own) - 1) * spread / np.sqrt(len(own)))
        return mean, mean - half, mean + half

    return predicted, observe, ["mean"], [-1]


_KINDS: dict[str, Callable[[Any, Any, Any, Sequence[float], float], _Kind]] = {
    "survival": _survival,
    "incidences": _incidences,
    "shares": _shares,
    "means": _means,
}
