"""The column that holds the two groups of the fairness penalty: it is no feature."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from bristlecone.data.frame import Frame

__all__ = ["without_group"]


def without_group(X: Any, column: str | None) -> Any:
    """``X`` without the column of that name; ``X`` itself where it has none.

    Whether a fit has the column is checked where its values are read.
    """
    if column is None:
        return X
    if isinstance(X, Frame):
        return X.drop([column])
    if nw.dependencies.is_into_dataframe(X):
        return nw.from_native(X, eager_only=True).drop(column, strict=False).to_native()
    return X
