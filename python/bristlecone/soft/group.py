"""The two groups of the fairness penalty: a column of the table, or an array."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone.frame import Frame
from bristlecone.validation import check_sample_weight

__all__ = ["as_group", "split_group"]


def split_group(X: Any, group: Any) -> tuple[Any, Any]:
    """Features without the group, and the group of every row (None without one)."""
    if not isinstance(group, str):
        return X, group
    if isinstance(X, Frame):
        columns, frame = X.columns, None
    elif nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        columns = frame.columns
    else:
        raise ValueError(
            f"fairness_group is the column {group!r}, but X is a {type(X).__name__} without "
            "column names"
        )
    if group not in columns:
        raise ValueError(f"fairness_group is {group!r}, which is no column of X")
    if frame is None:
        return X.drop([group]), X[group]
    return frame.drop(group).to_native(), frame[group].to_list()


def as_group(group: Any, sample_weight: Any, n_kept: int) -> NDArray[np.bool_]:
    """Whether a row is of the greater of two values; rows of weight 0 are left out.

    Raises
    ------
    ValueError
        When the length does not fit or there are not exactly two values.
    """
    values = np.asarray(group.to_list() if hasattr(group, "to_list") else group)
    if sample_weight is not None and values.ndim == 1:
        weight = check_sample_weight(sample_weight, len(values))
        values = values[weight > 0] if weight is not None else values
    if values.shape != (n_kept,):
        raise ValueError(f"fairness group has shape {values.shape}; expected one value per row")
    if values.dtype == object:
        values = values.astype(str)
    found = np.unique(values)
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:4].tolist()))
        raise ValueError(f"fairness group must have two values; it has {len(found)} ({shown})")
    return values == found[1]
