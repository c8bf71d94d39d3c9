"""Definition of "optimal" for the whole package.

A result is optimal if its objective exceeds its lower bound by at most 1e-9 of the mean absolute
term of its tree: the sum of the absolute costs of its leaves, splits and penalties, on the scale of
the objective. If no term is negative, this sum is the objective itself, and an objective of 0 must
be proven exactly. If terms cancel, as rewards may, the rounding error is relative to the terms. If
a policy earns exactly 0 in every row, the smallest reward above 0 stands for the terms.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bristlecone.exceptions import CertificateError

RELATIVE = 1e-9
"""Part of the mean absolute term by which two values of an objective may differ."""


def tolerance(terms: float) -> float:
    """Largest difference that is ignored; ``terms`` is the mean absolute term of the tree."""
    return RELATIVE * abs(terms)


def is_optimal(objective: Fraction | float, lower_bound: float, terms: float) -> bool:
    """Whether a lower bound proves that an objective is the least."""
    return bool(objective - lower_bound <= tolerance(terms))


def assert_not_below(tree: Any, objective: float, off: float, which: str) -> None:
    """Raise a CertificateError if another tree is better than the fitted tree's lower bound.

    Parameters
    ----------
    tree : fitted tree
    objective : float
        Objective of the other tree.
    off : float
        Largest difference that counts as none.
    which : str
        Description of the other tree, for the message.
    """
    found = tree.certificate_
    least, name = found.lower_bound, "lower bound"
    if found.status == "optimal" and found.objective_value > least:
        least, name = found.objective_value, "proven optimum"
    if objective < least - off:
        raise CertificateError(
            f"{which} has objective {objective:.17g}, below the {name} {least:.17g} of the fitted "
            f"{type(tree).__name__}; bristlecone.trust.verify shows which of the two is wrong"
        )
