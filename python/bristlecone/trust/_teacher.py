"""Values that models predicted for the rows of a fit: smoothed outcomes, and rewards."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from bristlecone._estimators.base import in_order_of_fit, smoothed_again, unfitted
from bristlecone._teacher.lesson import moments, teacher_of
from bristlecone._types import Floats
from bristlecone.exceptions import OverlapWarning
from bristlecone.trust._compare import Checks
from bristlecone.trust._rows import Rows

# An objective may differ by this many times the difference of its outcomes' moments.
_PER_DRIFT = 10.0


def drift_of(tree: Any, rows: Rows, smoothed: Floats) -> float:
    """Share of the objective that may differ because the outcomes were computed again.

    On another machine the predictions of a teacher may differ in their last digits; the moments in
    the certificate show by how much.
    """
    found, stated = moments(smoothed, rows.weight), tree.certificate_.teacher.moments
    size = max(abs(found[2]), abs(found[3])) or 1.0
    return _PER_DRIFT * float(np.abs(np.subtract(found, stated)).max() / size)


def check_teacher(
    tree: Any, X: Any, y: Any, given: Mapping[str, Any], checks: Checks
) -> Floats | None:
    """Smoothed outcomes by a teacher that is fitted again; None if there are none to compare."""
    found = tree.certificate_
    known, parameters = found.teacher, found.parameters
    try:
        teacher = teacher_of(tree)
    except ValueError as error:
        checks.skip("teacher", known.name, str(error))
        return None
    more = {name: value for name, value in given.items() if value is not None}
    try:
        smoothed = smoothed_again(tree, teacher, X, y, **more)
    except ValueError as error:
        checks.holds("teacher", False, "the smoothed outcomes of the fit", known.name, str(error))
        return None
    pairs: list[tuple[str, Any, Any]] = [
        ("weight", float(parameters["teacher_weight"]), known.weight)
    ]
    seed = parameters["random_state"]
    if seed is None or isinstance(seed, Integral):
        pairs.append(("seed", 0 if seed is None else int(seed), known.seed))
    explained = f"it explains {100 * known.score:.3g}% of the deviance"
    checks.same("teacher", f"fitted again: {explained}", pairs)
    return np.asarray(smoothed, dtype=np.float64)


def estimated_again(tree: Any, X: Any, y: Any, weight: Any, more: Mapping[str, Any]) -> Any:
    """The rewards of the fit by models that are fitted again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        given = {name: value for name, value in more.items() if name != "sample_weight"}
        X = in_order_of_fit(tree, X)
        return unfitted(tree).estimate_rewards(X, y, weight, **given)
