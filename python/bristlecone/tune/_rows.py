"""The arguments of ``fit``, split by row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bristlecone._data.outcomes import as_structured, check_causes, either_outcome, is_outcome
from bristlecone._data.rows import (
    check_row_labels,
    check_sample_weight,
    is_only_array_like,
    row_count,
)
from bristlecone.exceptions import InvalidParameterError

# Arguments of splitters and of the estimators of this package that have one entry per row. Arrays
# for models of other packages may have any length.
_BY_ROW = {
    "costs",
    "exposure",
    "groups",
    "predicted_outcomes",
    "propensity",
    "reference_loss",
    "sensitive_features",
    "treatment",
}


class GivenRows(NamedTuple):
    """Rows with the keyword arguments of ``fit`` and of scorers.

    ``by_row`` holds arguments with one entry per row, such as weights; ``whole`` holds the others.
    """

    X: Any
    y: Any
    by_row: dict[str, Any]
    whole: dict[str, Any]

    @classmethod
    def of(cls, X: Any, y: Any, more: Mapping[str, Any]) -> GivenRows:
        """Rows as they are given; a pair (event, time) becomes one array.

        Raises
        ------
        ValueError
            If ``X``, ``y`` and arguments by row differ in their number or order of rows, and as
            in ``check_sample_weight``.
        """
        n_rows = row_count(X)
        X, y = (np.asarray(given) if is_only_array_like(given) else given for given in (X, y))
        more = {
            name: np.asarray(values) if is_only_array_like(values) else values
            for name, values in more.items()
            if values is not None
        }
        if "sample_weight" in more:
            check_sample_weight(more["sample_weight"], n_rows)
        if isinstance(y, (tuple, list)) and is_outcome(y) and len(y) != n_rows:
            y = as_structured(either_outcome(y))
        by_row = {name: values for name, values in more.items() if _length(values) == n_rows}
        if y is not None and _length(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows but y has {_length(y) or 'none'}")
        for name in sorted(_BY_ROW & more.keys() - by_row.keys()):
            # A propensity may be one number or a mapping.
            if name != "propensity" or _length(more[name]) is not None:
                raise InvalidParameterError(f"{name} must have one entry per row of X ({n_rows})")
        check_row_labels(X, y=y, **by_row)
        return cls(X, y, by_row, {name: x for name, x in more.items() if name not in by_row})

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return row_count(self.X)

    @property
    def more(self) -> dict[str, Any]:
        """All keyword arguments except X and y."""
        return {**self.by_row, **self.whole}

    def taken(self, index: NDArray[np.intp]) -> GivenRows:
        """These rows, in this order."""
        by_row = {name: _taken(values, index) for name, values in self.by_row.items()}
        return GivenRows(_taken(self.X, index), _taken(self.y, index), by_row, self.whole)


def accepted(function: Callable[..., Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the keywords that the signature of a function names."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in more.items() if name in names}


def of_all_causes(estimator: Any, y: Any) -> Any:
    """The estimator with the number of causes of all rows, because a fold may lack some causes.

    Estimators without the parameter ``n_causes``, or with a value for it, are returned as they are.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return estimator
    unset = [
        name
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "n_causes" and value is None
    ]
    if not unset or not is_outcome(y):
        return estimator
    number = int(check_causes(y).event.max())
    return clone(estimator).set_params(**dict.fromkeys(unset, number))


def _length(values: Any) -> int | None:
    """Number of rows; None for a value without rows."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return int(shape[0]) if shape else None
    return len(values) if isinstance(values, (list, tuple, range)) else None


def _taken(values: Any, index: NDArray[np.intp]) -> Any:
    if values is None:
        return None
    if nw.dependencies.is_into_dataframe(values) or nw.dependencies.is_into_series(values):
        return nw.from_native(values, eager_only=True, allow_series=True)[index].to_native()
    if isinstance(values, (list, tuple, range)):
        return [values[row] for row in index]
    return values[index]
