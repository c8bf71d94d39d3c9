"""What "optimal" means, for the whole package.

A result is optimal when its objective exceeds its lower bound by at most 1e-9 of the mean absolute
term of its tree: the sum of the sizes of what its leaves, questions and penalties cost, as parts
of the objective. Where no term is negative that is the objective itself, so an objective of 0 has
to be proven exactly; where terms cancel, as rewards do, rounding is relative to the terms.
"""

from __future__ import annotations

from numbers import Real

__all__ = ["RELATIVE", "is_optimal", "tolerance"]

RELATIVE = 1e-9
"""Part of the mean absolute term by which two values of an objective may differ."""


def tolerance(terms: float) -> float:
    """Largest difference that counts as none; ``terms`` is the mean absolute term of the tree."""
    return RELATIVE * abs(terms)


def is_optimal(objective: Real | float, lower_bound: Real | float, terms: float) -> bool:
    """Whether a lower bound proves an objective to be least."""
    return bool(objective - lower_bound <= tolerance(terms))  # type: ignore[operator]
