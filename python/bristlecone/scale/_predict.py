"""Predictions partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale._sources import Source, named, open_source


def predict_partitions(tree: Any, partitions: Any, method: str = "predict", **options: Any) -> Any:
    """Predict for a table that is read partition by partition.

    Memory holds one partition and its predictions.

    Parameters
    ----------
    tree : fitted estimator
        Any estimator of this package.
    partitions : path, list of paths, pyarrow dataset, Dask DataFrame, callable, ...
        As in :func:`fit_partitions`. Columns that the tree does not use are not read.
    method : str
        Method of the tree: "predict", "predict_survival_function", "predict_median", "apply", ...
    **options
        Arguments of the method besides ``X``, such as ``times``. Survival functions and cumulative
        hazards need ``times``.

    Returns
    -------
    iterator of arrays, or Dask Series or DataFrame
        The predictions for each partition, in their order. For a Dask DataFrame the result is a
        Dask Series, or a Dask DataFrame if there are several numbers per row; its columns are then
        the ``times``, the levels ``q`` or the classes.

    Raises
    ------
    NotFittedError
        If the tree is not fitted.
    ValueError, TypeError
        If the tree has no such method, or a partition cannot be read. The message begins with the
        name of the partition.

    See Also
    --------
    fit_partitions : Fits a tree to partitions.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.scale import predict_partitions
    >>> data = load("gbsg2")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
    >>> parts = [data.X[:400], data.X[400:]]
    >>> survival = predict_partitions(tree, parts, "predict_survival_function", times=[365, 730])
    >>> [part.shape for part in survival]
    [(400, 2), (286, 2)]
    """
    known = isinstance(method, str) and not method.startswith("_")
    if not known or not callable(getattr(tree, method, None)):
        raise InvalidParameterError(f"{type(tree).__name__} has no method {method!r}")
    if method.endswith("_function") and options.get("times") is None:
        raise InvalidParameterError(f"{method} needs times=: functions are not kept for each row")
    used = list(dict.fromkeys(tree.features_used_))
    if used and not isinstance(used[0], str):
        raise InvalidParameterError(
            "the tree was fitted to an array, and partitions have named columns"
        )
    source = open_source(partitions)
    absent = [name for name in used if name not in source.columns]
    if absent:
        raise ValueError(f"the partitions have no column {absent[0]!r}, which the tree uses")
    if source.is_dask:
        return _lazily(tree, partitions, used, method, options)
    return _one_by_one(tree, source, used, method, options)


def _one_by_one(
    tree: Any, source: Source, used: Sequence[str], method: str, options: dict[str, Any]
) -> Iterator[NDArray[Any]]:
    # A tree without splits still needs the number of rows.
    columns = list(used) or source.columns[:1]
    for part in source.parts(columns):
        try:
            predictions = getattr(tree, method)(part.load(), **options)
        except Exception as error:
            raise named(error, part.name) from error
        yield predictions


def _lazily(
    tree: Any, frame: Any, used: Sequence[str], method: str, options: dict[str, Any]
) -> Any:
    import pandas as pd

    columns = list(used) or list(frame.columns)[:1]
    # Predictions of an empty partition have the same types as all others.
    kinds = frame.dtypes[columns].items()
    empty = pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in kinds})
    names = _names(tree, options)
    meta = _predicted(empty, tree, method, options, names)
    return frame[columns].map_partitions(_predicted, tree, method, options, names, meta=meta)


def _names(tree: Any, options: dict[str, Any]) -> list[Any] | None:
    """Columns of predictions with several numbers per row."""
    for name in ("times", "q"):
        values = options.get(name)
        if values is not None and np.ndim(values) == 1:
            return [float(value) for value in values]
    classes = getattr(tree, "classes_", None)
    return None if classes is None else list(classes)


def _predicted(
    part: Any, tree: Any, method: str, options: dict[str, Any], names: list[Any] | None
) -> Any:
    """Predictions of a pandas partition with its index."""
    import pandas as pd

    values = getattr(tree, method)(part, **options)
    if values.ndim == 1:
        # Objects are labels of text, which pandas does not recognise where there are none.
        kind = pd.Series(["text"]).dtype if values.dtype == object else None
        return pd.Series(values, dtype=kind, index=part.index, name=method)
    own = names if names is not None and len(names) == values.shape[1] else None
    return pd.DataFrame(values, index=part.index, columns=own)
