"""Every warning and error of the package."""

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
    "OverlapWarning",
    "SearchCostWarning",
    "SearchLimitWarning",
    "SmallSampleWarning",
]


class BristleconeWarning(UserWarning):
    """Base of every warning raised by the package."""


class SearchLimitWarning(BristleconeWarning, ConvergenceWarning):
    """The search stopped at a limit: the tree is the best found so far, not proven optimal."""


class FitConvergenceWarning(BristleconeWarning, ConvergenceWarning):
    """An optimisation stopped before it converged; the message names the part of the model."""


class SearchCostWarning(BristleconeWarning):
    """A search is forecast to exceed its time or memory limit."""


class ConstantFeatureWarning(BristleconeWarning):
    """Columns have a single value in training, so they cannot be used for splits."""


class ColumnWarning(BristleconeWarning):
    """A column may be read differently from what you meant, for example numbers stored as text."""


class EmptyLeafWarning(BristleconeWarning):
    """Some leaves of a soft tree contain few or no training rows."""


class SmallSampleWarning(BristleconeWarning):
    """There are too few rows or events for the requested leaf sizes or for the teacher."""


class OverlapWarning(BristleconeWarning):
    """For some rows a treatment is so improbable that its reward relies on few similar rows.

    Either the estimated probability is below ``min_propensity``. Or, of the rows with a probability
    below 0.1, a smaller share than ``min_propensity`` had the treatment, although at least five
    such rows were expected to have had it.
    """


class EventFreeWarning(BristleconeWarning):
    """One side of a split has no events although many are expected, so leaves may be event-free."""


class InfeasibleWarning(BristleconeWarning):
    """No tree satisfies the constraints, so the fitted estimator has no tree."""


class InfeasibleError(NotFittedError):
    """No tree satisfies the constraints, or none was found in time.

    ``fit`` raises it if a limit stopped the search before it found such a tree, and predictions
    raise it if it is proven that there is none. It is a ``NotFittedError``.
    """


class CertificateError(RuntimeError):
    """A search contradicts the certificate of a fitted tree; the message has both values.

    Either the tree was changed after its fit, or one of the two searches is wrong.
    """


class InvalidParameterError(ValueError, TypeError):
    """A parameter has an invalid type or value; both a ValueError and a TypeError."""


class ModelFormatError(ValueError):
    """A model file is truncated, of another version or inconsistent; the field is named."""
