"""``BinaryEncoder``: the binarisation that every tree of this package is searched over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bristlecone.encoder import serialise
from bristlecone.encoder.columns import CategoricalColumn, Column, NumericColumn, read_table
from bristlecone.encoder.features import (
    Feature,
    Flag,
    Level,
    Missing,
    Other,
    Threshold,
    level_text,
    tell_apart,
)
from bristlecone.encoder.schema import ColumnSchema, conform, describe, sort_key
from bristlecone.encoder.thresholds import (
    choose_gaps,
    format_threshold,
    midpoints,
    weighted_distinct,
    weighted_mean,
)
from bristlecone.errors import InvalidParameterError, ModelFormatError
from bristlecone.validation import check_choice, check_integer, check_real, check_sample_weight

__all__ = ["BinaryEncoder"]


class BinaryEncoder(TransformerMixin, BaseEstimator):
    """Turn numeric, categorical and boolean columns into yes-no features.

    With the default settings this is the binarisation of Huisman, van der Linden & Demirović,
    "Optimal Survival Trees: A Dynamic Programming Approach" (AAAI-24): categories become one
    feature per level, numbers are cut at ten quantiles, missing numbers are replaced by the mean,
    and features that hold for nearly no or nearly all rows, or that repeat an earlier one, are
    dropped. Boolean columns and integer columns of 0 and 1 are used as they are, whatever their
    share of true rows.

    Parameters
    ----------
    thresholds : {"quantiles", "midpoints", "kmeans"}, default="quantiles"
        Where numeric columns are cut, always midway between two neighbouring training values:

        * "quantiles": at the first midpoint not below each i / (n_thresholds + 1) linear quantile;
        * "midpoints": at every midpoint;
        * "kmeans": between neighbours of n_thresholds + 1 one-dimensional clusters.

        Columns with at most ``n_thresholds`` midpoints are cut at all of them.
    n_thresholds : int, default=10
        Most thresholds per numeric column; "midpoints" ignores it.
    max_categories : int or None, default=10
        Most levels per categorical column that get a feature of their own: the most frequent
        ones, and of equally frequent ones the first in sorted order. The others are merged into
        the feature "column = other".
    missing : {"impute", "branch"}, default="impute"
        What becomes of missing values. "impute": a number is replaced by the mean of its column
        (which then counts as one of its values), a flag by its more frequent value. "branch": the
        column gets a feature "column is missing", and its other features are false where it is
        missing. In categorical columns "is missing" is always a feature of its own.
    min_support : float, default=0.01
        Features true for less than this share of the rows, or for more than one minus it, are
        dropped; columns used as they are stay.
    max_features : int or None, default=None
        Most features in all. The columns take turns, the one with the most balanced feature
        first, each giving the most balanced of its features that are left.
    handle_unknown : {"ignore", "error"}, default="ignore"
        What ``transform`` does with a category that was not seen in ``fit``: it matches no level,
        not even "other", or it raises.

    Attributes
    ----------
    features_ : list of Threshold, Flag, Level, Other or Missing
        The binary features in the order of the output columns.
    columns_ : list of ColumnSchema
        What ``fit`` saw of each column: name, kind, whether values were missing, levels.
    constant_features_in_ : list of str
        Columns with a single value, which give no feature.
    n_features_out_ : int
        Number of binary features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns; only when the input had names.

    Notes
    -----
    Rows of weight zero count as absent, and integer weights give exactly what repeated rows give.
    ``fit`` and ``transform`` take O(n log n) per numeric column and O(n) per binary feature.
    Numbers are compared as float64: integers beyond 2**53 may fall together.

    Examples
    --------
    >>> import pandas as pd
    >>> from bristlecone.encoder import BinaryEncoder
    >>> X = pd.DataFrame({"age": [50, 55, 61], "stage": ["I", "II", "III"]})
    >>> encoder = BinaryEncoder().fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['age <= 52.5', 'age <= 58', 'stage = II']
    >>> encoder.transform(X).astype(int).tolist()
    [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
    """

    def __init__(
        self,
        *,
        thresholds: str = "quantiles",
        n_thresholds: int = 10,
        max_categories: int | None = 10,
        missing: str = "impute",
        min_support: float = 0.01,
        max_features: int | None = None,
        handle_unknown: str = "ignore",
    ) -> None:
        self.thresholds = thresholds
        self.n_thresholds = n_thresholds
        self.max_categories = max_categories
        self.missing = missing
        self.min_support = min_support
        self.max_features = max_features
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> BinaryEncoder:
        """Choose the binary features.

        Parameters
        ----------
        X : DataFrame (pandas, polars, pyarrow, ...) or array-like of shape (n_samples, n_columns)
            Columns of numbers, booleans, strings or categories; NaN and None are missing values.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, finite and not negative.

        Returns
        -------
        BinaryEncoder
            The encoder itself.

        Raises
        ------
        ValueError
            For an unknown value of a parameter, no rows, no columns, duplicate or empty column
            names, infinite values, weights that do not fit; parameter, column and row are named.
        TypeError
            For columns of dates, nested or other unsupported values (named), for sparse arrays
            and lazy frames.
        """
        self._check_parameters()
        table = read_table(X, type(self).__name__)
        weight = check_sample_weight(sample_weight, table.n_rows)
        columns = table.columns
        if weight is not None and not weight.all():
            present = weight > 0
            columns = [column.take(present) for column in columns]
            weight = weight[present]
        features, constant = self._select(columns, weight)
        schemas = [describe(column) for column in columns]
        self._remember(schemas, features, constant, named=table.named)
        return self

    def transform(self, X: Any) -> NDArray[np.bool_]:
        """Evaluate the binary features.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            The columns of ``fit``; those of a DataFrame may come in any order.

        Returns
        -------
        bool ndarray of shape (n_samples, n_features_out_), C-contiguous
            A DataFrame under ``set_output``.

        Raises
        ------
        ValueError
            For missing or extra columns, for a value missing in a column that was complete in
            ``fit``, for infinite values and, with ``handle_unknown="error"``, for an unknown
            category; column and row are named.
        TypeError
            For text where ``fit`` saw numbers and the reverse (the column is named), and as in
            ``fit``.
        """
        check_is_fitted(self)
        reader = type(self).__name__
        table = read_table(X, reader)
        named = hasattr(self, "feature_names_in_")
        columns = conform(table, self.columns_, named, self.handle_unknown, reader)
        encoded = np.empty((table.n_rows, self.n_features_out_), dtype=bool)
        for index, feature in enumerate(self.features_):
            encoded[:, index] = feature.evaluate(columns[feature.column])
        return encoded

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the binary features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns. When ``fit`` saw names, only those; otherwise they take the
            place of x0, x1, ...

        Returns
        -------
        ndarray of str, dtype object, shape (n_features_out_,)

        Raises
        ------
        ValueError
            When ``input_features`` does not fit the columns.
        """
        check_is_fitted(self)
        features = self.features_
        if input_features is not None:
            names = [str(name) for name in np.asarray(input_features, dtype=object)]
            if len(names) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(names)}"
                )
            if hasattr(self, "feature_names_in_") and names != self.feature_names_in_.tolist():
                raise ValueError("input_features is not equal to feature_names_in_")
            renamed = {schema.name: name for schema, name in zip(self.columns_, names, strict=True)}
            features = [
                replace(feature, column=renamed[feature.column]) for feature in self.features_
            ]
        return np.array([feature.name for feature in features], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """The fitted encoder as plain values (dict, list, str, bool, int, float, None).

        ``json`` keeps every number to the last bit: ``from_dict`` gives an equal encoder.
        """
        check_is_fitted(self)
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        return {
            "parameters": parameters,
            "named": hasattr(self, "feature_names_in_"),
            "columns": [serialise.to_json(schema) for schema in self.columns_],
            "constant": list(self.constant_features_in_),
            "features": [serialise.to_json(feature) for feature in self.features_],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BinaryEncoder:
        """Rebuild a fitted encoder from the result of ``to_dict``.

        Raises
        ------
        ModelFormatError
            A ValueError that names the entry that is absent, unknown or of the wrong kind.
        """
        data = serialise.read_fields(
            data,
            {
                "parameters": lambda value: isinstance(value, dict),
                "named": lambda value: isinstance(value, bool),
                "columns": lambda value: isinstance(value, list),
                "constant": lambda value: isinstance(value, list),
                "features": lambda value: isinstance(value, list),
            },
            "data",
        )
        try:
            encoder = cls(**data["parameters"])
            encoder._check_parameters()
        except (TypeError, ValueError) as error:
            raise ModelFormatError(f"encoder: parameters: {error}") from error
        columns = serialise.columns_from_json(data["columns"])
        features = serialise.features_from_json(data["features"], columns)
        names = [schema.name for schema in columns]
        if not all(name in names for name in data["constant"]):
            raise ModelFormatError("encoder: constant names a column that does not exist")
        encoder._remember(columns, features, list(data["constant"]), named=data["named"])
        return encoder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_parameters(self) -> None:
        check_choice("thresholds", self.thresholds, ("quantiles", "midpoints", "kmeans"))
        check_integer("n_thresholds", self.n_thresholds, 1)
        check_integer("max_categories", self.max_categories, 1, optional=True)
        check_choice("missing", self.missing, ("impute", "branch"))
        check_real("min_support", self.min_support, 0.0)
        if self.min_support >= 0.5:
            raise InvalidParameterError(
                f"min_support must be less than 0.5; got {self.min_support!r}"
            )
        check_integer("max_features", self.max_features, 1, optional=True)
        check_choice("handle_unknown", self.handle_unknown, ("ignore", "error"))

    def _remember(
        self,
        columns: list[ColumnSchema],
        features: list[Feature],
        constant: list[str],
        *,
        named: bool,
    ) -> None:
        self.columns_ = columns
        self.features_ = features
        self.constant_features_in_ = constant
        self.n_features_in_ = len(columns)
        self.n_features_out_ = len(features)
        if named:
            self.feature_names_in_ = np.array([schema.name for schema in columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _select(
        self, columns: list[Column], weight: NDArray[np.float64] | None
    ) -> tuple[list[Feature], list[str]]:
        """Features worth keeping, and the names of the constant columns."""
        total = columns[0].n_rows if weight is None else np.sum(weight)
        chosen: list[Feature] = []
        balance: list[float] = []
        constant: list[str] = []
        seen: set[bytes] = set()
        for column in columns:
            varies = False
            for feature in self._candidates(column, weight):
                answer = feature.evaluate(column)
                if answer.all() or not answer.any():
                    continue
                varies = True
                true = np.count_nonzero(answer) if weight is None else np.sum(weight[answer])
                # sums of weights depend on the order of the rows in their last digits
                support = round(min(true, total - true) / total, 12)
                if support < self.min_support and not isinstance(feature, Flag):
                    continue
                # equal for a feature and its complement
                bits = np.packbits(answer ^ answer[0]).tobytes()
                if bits not in seen:
                    seen.add(bits)
                    chosen.append(feature)
                    balance.append(support)
            if not varies:
                constant.append(column.name)
        return tell_apart(self._capped(chosen, balance)), constant

    def _capped(self, features: list[Feature], balance: list[float]) -> list[Feature]:
        if self.max_features is None or len(features) <= self.max_features:
            return features
        turn: Counter[str] = Counter()
        queue: list[tuple[int, int, int]] = []
        for index in sorted(range(len(features)), key=lambda index: -balance[index]):
            column = features[index].column
            queue.append((turn[column], len(queue), index))
            turn[column] += 1
        kept = sorted(index for _, _, index in sorted(queue)[: self.max_features])
        return [features[index] for index in kept]

    def _candidates(self, column: Column, weight: NDArray[np.float64] | None) -> Iterator[Feature]:
        """Every feature the column could give."""
        missing = column.missing
        if missing is not None and missing.all():
            return
        if isinstance(column, CategoricalColumn):
            yield from self._levels(column, weight)
        elif column.is_flag:
            yield self._flag(column, weight)
        else:
            yield from self._thresholds(column, weight)
        if isinstance(column, CategoricalColumn) or self.missing == "branch":
            yield Missing(column=column.name, condition="is missing")

    def _flag(self, column: NumericColumn, weight: NDArray[np.float64] | None) -> Flag:
        fill = False
        if column.missing is not None and self.missing == "impute":
            shown = ~column.missing
            total = dict(
                zip(*weighted_distinct(column.values[shown], _rows(weight, shown)), strict=True)
            )
            fill = bool(total.get(True, 0.0) > total.get(False, 0.0))
        return Flag(column=column.name, condition="", missing=fill)

    def _thresholds(
        self, column: NumericColumn, weight: NDArray[np.float64] | None
    ) -> Iterator[Threshold]:
        values, missing, fill = column.values, column.missing, math.inf
        if missing is None:
            distinct, total = weighted_distinct(values, weight)
        else:
            distinct, total = weighted_distinct(values[~missing], _rows(weight, ~missing))
            if self.missing == "impute":
                fill = weighted_mean(distinct, total)
                # fsum does not depend on the order of the rows
                filled = missing.sum() if weight is None else math.fsum(weight[missing])
                distinct, total = weighted_distinct(
                    np.append(distinct, fill), np.append(total, filled)
                )
        unit = 1.0 if weight is None else min(1.0, weight.min())
        cuts = midpoints(distinct)
        for gap in choose_gaps(distinct, total, self.thresholds, self.n_thresholds, unit):
            value = float(cuts[gap])
            yield Threshold(
                column=column.name,
                condition=f"<= {format_threshold(value, distinct[gap], distinct[gap + 1])}",
                value=value,
                missing=fill <= value,
            )

    def _levels(
        self, column: CategoricalColumn, weight: NDArray[np.float64] | None
    ) -> Iterator[Level | Other]:
        shown = column.codes >= 0
        code, total = weighted_distinct(column.codes[shown], _rows(weight, shown))
        frequency = {column.levels[c]: t for c, t in zip(code, total, strict=True)}
        levels = sorted(frequency, key=sort_key)
        # sorted() is stable: equally frequent levels keep their order
        ranked = sorted(levels, key=lambda level: -frequency[level])
        rare = set() if self.max_categories is None else set(ranked[self.max_categories :])
        for level in levels:
            if level not in rare:
                yield Level(column=column.name, condition=f"= {level_text(level)}", level=level)
        if rare:
            merged = tuple(level for level in levels if level in rare)
            yield Other(column=column.name, condition="= other", levels=merged)


def _rows(
    weight: NDArray[np.float64] | None, rows: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    return None if weight is None else weight[rows]
