"""Warnings and errors of the package, so that a caller can filter or catch exactly one kind."""

import inspect
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "BristleconeWarning",
    "CertificateError",
    "ColumnWarning",
    "ConstantFeatureWarning",
    "EmptyLeafWarning",
    "EventFreeWarning",
    "FitConvergenceWarning",
    "InfeasibleError",
    "InfeasibleWarning",
    "InvalidParameterError",
    "ModelFormatError",
    "SearchCostWarning",
    "SearchLimitWarning",
    "SmallSampleWarning",
    "warn",
]


class BristleconeWarning(UserWarning):
    """Base of every warning raised by the package."""


class SearchLimitWarning(BristleconeWarning, ConvergenceWarning):
    """The search stopped at a limit: the tree is the best found so far, not proven optimal."""


class FitConvergenceWarning(BristleconeWarning, ConvergenceWarning):
    """A minimisation ended before its minimum; the part of the model is named."""


class SearchCostWarning(BristleconeWarning):
    """A search is forecast to need more time or memory than it may have."""


class ConstantFeatureWarning(BristleconeWarning):
    """Every column takes one value on the training rows: there is nothing to split on."""


class ColumnWarning(BristleconeWarning):
    """A column is read in a way that may not be meant, such as numbers that are text."""


class EmptyLeafWarning(BristleconeWarning):
    """Leaves of a soft tree hold few training rows or none: it is smaller than its depth says."""


class SmallSampleWarning(BristleconeWarning):
    """The smallest leaf allowed, a share of the data, is so large that nothing can be split."""


class EventFreeWarning(BristleconeWarning):
    """One side of a question has no events though many are expected: leaves may be event-free."""


class InfeasibleWarning(BristleconeWarning):
    """No tree satisfies the constraints; the fitted estimator holds none."""


class InfeasibleError(NotFittedError):
    """There is no tree that satisfies the constraints to predict with.

    Raised by ``fit`` when a limit stopped the search before it met one, and by predictions when
    there is proven to be none.
    """


class CertificateError(RuntimeError):
    """A search contradicts what a fitted tree says is proven; both values are named.

    The tree was changed after its fit, or one of the two searches is wrong.
    """


class InvalidParameterError(ValueError, TypeError):
    """A parameter of an estimator has a type or a value that is not accepted."""


class ModelFormatError(ValueError):
    """A saved model is truncated, of another version, or inconsistent; the field is named."""


_PACKAGE = str(Path(__file__).parent / "x")[:-1]


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside the package that led here."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
