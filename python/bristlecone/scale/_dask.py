"""Estimators whose ``fit`` and predictions take Dask collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from bristlecone._data.arrays import type_name
from bristlecone._data.outcome_names import role_of
from bristlecone._data.outcomes import check_survival
from bristlecone._data.rows import check_row_labels
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale._fit import fit_partitions
from bristlecone.scale._predict import predict_partitions
from bristlecone.scale._sources import delayed_parts

# Attributes of a fit.
_FITTED = ("tree_", "leaves_", "encoder_", "certificate_", "_frame")


class _OnCluster(BaseEstimator):
    """An estimator with a client, which can be neither copied nor pickled."""

    client: Any

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        cloned: Any = super(_OnCluster, copy(self)).__sklearn_clone__()
        cloned.client = self.client
        return cloned


@dataclass(kw_only=True, eq=False, repr=False)
class DaskOptimalSurvivalTree(_OnCluster, OptimalSurvivalTree):
    """Optimal survival tree for Dask DataFrames.

    ``fit`` gives the tree that :class:`bristlecone.OptimalSurvivalTree` finds for all rows in one
    frame. The workers count and add up; the search runs where ``fit`` is called. If a worker is
    lost, Dask repeats its work.

    Parameters
    ----------
    client : distributed.Client, optional
        Dask cluster to use; by default the current one. Without any, the partitions are computed in
        this process. ``sklearn.base.clone`` keeps it. A pickled or copied tree has none.
    **parameters
        All parameters of :class:`bristlecone.OptimalSurvivalTree`. The restrictions of
        :func:`fit_partitions` apply.

    See Also
    --------
    fit_partitions : The same for Parquet, Arrow and other partitions.

    Examples
    --------
    >>> from bristlecone import load_model
    >>> from bristlecone.scale import DaskOptimalSurvivalTree
    >>> tree = DaskOptimalSurvivalTree(max_depth=2)
    >>> tree.get_params()["max_depth"], tree.client is None
    (2, True)
    """

    client: Any = None

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        callback: Callable[[Any], object] | None = None,
    ) -> DaskOptimalSurvivalTree:
        """Find the best tree.

        Parameters
        ----------
        X : Dask DataFrame
            The features.
        y : Dask DataFrame
            Columns of the event, the time and perhaps the entry, under the names that
            ``OptimalSurvivalTree.fit`` recognises, in the partitions of ``X``.
        sample_weight : Dask Series, optional
            Row weights, in the partitions of ``X``.
        callback : callable, optional
            As in :func:`fit_partitions`.

        Returns
        -------
        DaskOptimalSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            As :func:`fit_partitions`, and if the partitions of ``X``, ``y`` and ``sample_weight``
            differ in number or length.
        """
        roles = ["event", "time"]
        if any(role_of(name) == "entry" for name in getattr(y, "columns", [])):
            roles.append("entry")
        return _fitted(self, X, y, sample_weight, roles, callback)

    def to_local(self, *, fitted: bool = True) -> OptimalSurvivalTree:
        """The same estimator without Dask.

        Parameters
        ----------
        fitted : bool
            Whether to keep the fitted tree.

        Returns
        -------
        OptimalSurvivalTree
            It can be saved and needs no Dask.
        """
        return _local(self, OptimalSurvivalTree, fitted)


@dataclass(kw_only=True, eq=False, repr=False)
class DaskOptimalTreeClassifier(_OnCluster, OptimalTreeClassifier):
    """Optimal classification tree for Dask DataFrames.

    ``fit`` gives the tree that :class:`bristlecone.OptimalTreeClassifier` finds for all rows in one
    frame. The workers count and add up; the search runs where ``fit`` is called. If a worker is
    lost, Dask repeats its work.

    Parameters
    ----------
    client : distributed.Client, optional
        Dask cluster to use; by default the current one. Without any, the partitions are computed in
        this process. ``sklearn.base.clone`` keeps it. A pickled or copied tree has none.
    **parameters
        All parameters of :class:`bristlecone.OptimalTreeClassifier`. The restrictions of
        :func:`fit_partitions` apply.

    See Also
    --------
    fit_partitions : The same for Parquet, Arrow and other partitions.

    Examples
    --------
    >>> from bristlecone.scale import DaskOptimalTreeClassifier
    >>> DaskOptimalTreeClassifier(max_depth=2).get_params()["objective"]
    'accuracy'
    """

    client: Any = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        callback: Callable[[Any], object] | None = None,
    ) -> DaskOptimalTreeClassifier:
        """Find the best tree.

        Parameters
        ----------
        X : Dask DataFrame
            The features.
        y : Dask Series
            Labels, in the partitions of ``X``.
        sample_weight : Dask Series, optional
            Row weights, in the partitions of ``X``.
        callback : callable, optional
            As in :func:`fit_partitions`.

        Returns
        -------
        DaskOptimalTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            As :func:`fit_partitions`, and if the partitions of ``X``, ``y`` and ``sample_weight``
            differ in number or length.
        """
        return _fitted(self, X, y, sample_weight, ["target"], callback)

    def to_local(self, *, fitted: bool = True) -> OptimalTreeClassifier:
        """The same estimator without Dask.

        Parameters
        ----------
        fitted : bool
            Whether to keep the fitted tree.

        Returns
        -------
        OptimalTreeClassifier
            It can be saved and needs no Dask.
        """
        return _local(self, OptimalTreeClassifier, fitted)


def _local(estimator: Any, kind: type, fitted: bool) -> Any:
    parameters = estimator.get_params(deep=False)
    del parameters["client"]
    local = kind(**parameters)
    if fitted:
        local.__dict__.update({k: v for k, v in vars(estimator).items() if k in _FITTED})
    return local


def _fitted(
    estimator: Any, X: Any, y: Any, sample_weight: Any, roles: Sequence[str], callback: Any
) -> Any:
    """The estimator, fitted to columns of an outcome with these roles."""
    joined = _Joined(X, y, sample_weight, roles)
    local = estimator.to_local(fitted=False)
    columns: dict[str, Any] = {role: joined.names[role] for role in roles}
    columns["weight"] = joined.names.get("sample_weight")
    fit_partitions(local, joined, **columns, client=estimator.client, callback=callback)
    estimator.__dict__.update({k: v for k, v in vars(local).items() if k in _FITTED})
    return estimator


def _for_dask(kind: type, name: str) -> None:
    """Make a method of predictions accept Dask DataFrames as well."""
    local = getattr(kind, name)

    def predict(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not hasattr(X, "npartitions"):
            return local(self, X, *args, **options)
        if args:
            raise TypeError(f"{name}: pass the arguments besides X by name")
        return predict_partitions(self.to_local(), X, name, **options)

    predict.__doc__, predict.__name__ = local.__doc__, name
    predict.__qualname__ = f"{kind.__name__}.{name}"
    setattr(kind, name, predict)


class _Joined:
    """Features, outcome and weights with the same partitions, as one Dask DataFrame.

    It has the methods that ``fit_partitions`` needs.
    """

    def __init__(self, X: Any, y: Any, weight: Any, roles: Sequence[str]) -> None:
        weights = {} if weight is None else {"sample_weight": weight}
        parts: dict[str, list[Any]] = {}
        for name, values in {"X": X, "y": y, **weights}.items():
            _check_is_dask(values, name)
            parts[name] = delayed_parts(values)
            if len(parts[name]) != len(parts["X"]):
                raise ValueError(
                    f"X has {len(parts['X'])} partitions and {name} has {len(parts[name])}; they "
                    "must have the same rows in the same partitions"
                )
        self._parts = list(zip(*parts.values(), strict=True))
        features = list(X.columns)
        self.names: dict[str, str] = {}
        for role in [*roles, *weights]:
            name = role
            while name in features:
                name += "'"
            self.names[role] = name
        self.columns = [*features, *self.names.values()]
        self.npartitions = len(self._parts)

    def __getitem__(self, columns: Sequence[str]) -> _Joined:
        some = copy(self)
        some.columns = list(columns)
        return some

    def to_delayed(self) -> list[Any]:
        """The partitions."""
        from dask import delayed

        join = delayed(_join, pure=True)
        return [
            join(X, y, weight[0] if weight else None, self.names, self.columns)
            for X, y, *weight in self._parts
        ]


def _check_is_dask(values: Any, name: str) -> None:
    if not (hasattr(values, "npartitions") and hasattr(values, "to_delayed")):
        raise InvalidParameterError(
            f"{name} is {type_name(values)}; expected a Dask "
            f"{'DataFrame' if name == 'X' else 'collection'}. For other data use fit_partitions, "
            "or the estimator without Dask"
        )
    if name == "X" and not (hasattr(values, "columns") and values.ndim == 2):
        raise InvalidParameterError(
            f"X is {type_name(values)} of Dask; expected a DataFrame, as from "
            "dask.dataframe.from_dask_array or to_frame()"
        )


def _join(X: Any, y: Any, weight: Any, names: dict[str, str], columns: Sequence[str]) -> Any:
    """The columns of one partition."""
    if len(X) != len(y) or (weight is not None and len(X) != len(weight)):
        raise ValueError(
            f"X has {len(X)} rows, y has {len(y)}"
            + ("" if weight is None else f" and sample_weight has {len(weight)}")
        )
    check_row_labels(X, y=y, sample_weight=weight)
    found = X.copy(deep=False)
    if not len(X):
        return found.reindex(columns=list(columns))
    if "target" in names:
        if y.ndim == 2 and y.shape[1] != 1:
            raise ValueError(f"y has {y.shape[1]} columns; expected one, with the labels")
        found[names["target"]] = np.asarray(y if y.ndim == 1 else y.iloc[:, 0])
    else:
        event, time, entry = check_survival(y)
        found[names["event"]], found[names["time"]] = event, time
        if "entry" in names:
            found[names["entry"]] = np.zeros(len(time)) if entry is None else entry
    if weight is not None:
        found[names["sample_weight"]] = np.asarray(weight)
    return found[list(columns)]


for _name in (
    "predict",
    "predict_survival_function",
    "predict_cumulative_hazard_function",
    "predict_median",
    "predict_quantile",
    "predict_rmst",
    "apply",
):
    _for_dask(DaskOptimalSurvivalTree, _name)
for _name in ("predict", "predict_proba", "apply"):
    _for_dask(DaskOptimalTreeClassifier, _name)
