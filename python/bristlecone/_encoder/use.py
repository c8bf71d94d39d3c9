"""How trees use an encoder: one of this package, or a custom transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bristlecone._core import BinaryMatrix
from bristlecone._encoder.binary import BinaryEncoder, keeps_transform
from bristlecone._encoder.features import Missing, Threshold
from bristlecone._encoder.missing import missing_text
from bristlecone._encoder.ranks import Encoded
from bristlecone._encoder.table import read_table
from bristlecone._log import log, logger, warn
from bristlecone._tree import NO_FEATURE
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import ColumnWarning, ConstantFeatureWarning

# From this number of features on, bits are worth packing.
_MANY = 256


class AnswerCounts(NamedTuple):
    """Binary features of training rows, counted.

    ``holds`` contains the number of the ``n_rows`` rows in which each feature is true, ``among``
    the number of the requested rows.
    """

    n_rows: int
    holds: Integers
    among: Integers


def count_answers(features: BinaryMatrix, among: Bools) -> AnswerCounts:
    """Answers of binary features, counted over all rows and over the rows ``among``."""
    return AnswerCounts(len(features), features.count_true(), features.count_true(among))


def fit_encoder(
    encoder: Any,
    X: Any,
    target: Callable[[], Any],
    weight: Floats | None,
    verbose: Any,
    exposure: Floats | None = None,
) -> tuple[Any, Callable[[], Encoded] | None]:
    """A fitted clone, and how to encode the rows that a ``BinaryEncoder`` read.

    Missing values are logged.

    "auto" is ``BinaryEncoder()``. ``target`` computes the y of a custom transformer; if these are
    rates, they may have exposures.
    """
    fitted = BinaryEncoder() if isinstance(encoder, str) else clone(encoder)
    # A subclass may override fit.
    ours = type(fitted).fit is BinaryEncoder.fit
    encoded = None
    if ours:
        # With "auto" thresholds are added to those of the encoder.
        whole = isinstance(encoder, str)
        encoded = fitted._fit_columns(X, target, weight, exposure=exposure, whole=whole)
    else:
        given = {"y": target()} if has_fit_parameter(fitted, "y") else {}
        if weight is not None and has_fit_parameter(fitted, "sample_weight"):
            given["sample_weight"] = weight
        fitted.fit(X, **given)
    missing = missing_text(getattr(fitted, "columns_", []))
    if missing:
        log(verbose, "missing values: %s", missing)
    # Custom features are computed by their transform.
    return fitted, encoded if ours and keeps_transform(fitted) else None


def rows_for(
    encoder: Any, X: Any, asked: Sequence[int], reader: str
) -> NDArray[Any] | BinaryMatrix:
    """Binary features of rows, at least those that are ``asked``.

    Messages about ``X`` call the tree ``reader``.
    """
    if isinstance(encoder, BinaryEncoder):
        many = len(asked) > _MANY and 8 * len(asked) > encoder.n_features_out_
        return (encoder._packed if many else encoder._evaluate)(X, asked, reader)
    return binary_features(encoder, X)


def split_columns(encoder: Any, feature: Integers) -> tuple[Integers, Floats]:
    """Column of ``X`` and threshold of every node of a tree with these features.

    The column is -2 at leaves and if it is unknown, and the threshold is NaN if there is none.
    """
    column, threshold = feature.copy(), np.full(len(feature), np.nan)
    if not isinstance(encoder, BinaryEncoder):
        # A custom transformer does not report the columns of its features.
        return np.full(len(feature), NO_FEATURE), threshold
    place = {schema.name: at for at, schema in enumerate(encoder.columns_)}
    for node in np.flatnonzero(feature >= 0).tolist():
        own = encoder.features_[feature[node]]
        column[node] = place[own.column]
        if isinstance(own, Threshold):
            threshold[node] = own.value
    return column, threshold


def columns_asked(encoder: Any, columns: Integers) -> list[int]:
    """Positions of the columns of ``X`` that splits use; all if they are unknown."""
    if isinstance(encoder, BinaryEncoder):
        return np.unique(columns[columns >= 0]).tolist()
    return list(range(encoder.n_features_in_))


def missing_in(encoder: Any, columns: Sequence[int]) -> str:
    """Missing values of these columns in training; empty if there were none."""
    schemas = getattr(encoder, "columns_", [])
    return missing_text([schemas[place] for place in columns]) if schemas else ""


def missing_by_feature(encoder: Any, X: Any, features: Sequence[int]) -> dict[int, Bools]:
    """Rows of ``X`` without a value in the column of these features, for features with such rows.

    Features that ask whether a value is missing have an answer for every row. Empty for custom
    transformers, which may treat missing values in any way.
    """
    if not isinstance(encoder, BinaryEncoder):
        return {}
    names = {
        place: encoder.features_[place].column
        for place in features
        if not isinstance(encoder.features_[place], Missing)
    }
    if not names:
        return {}
    known, named = [one.name for one in encoder.columns_], hasattr(encoder, "feature_names_in_")
    table = read_table(X, "the tree", empty=True)
    columns = table.aligned(known, named, "the tree", dict.fromkeys(names.values()))
    masks = {place: columns[name].missing for place, name in names.items()}
    return {place: mask for place, mask in masks.items() if mask is not None and mask.any()}


def warn_of_constants(encoder: Any) -> None:
    """Warn if columns have no values, or if all columns are constant.

    Single constant columns are only logged, because they are common in the folds of a
    cross-validation.
    """
    constant = getattr(encoder, "constant_features_in_", [])
    columns = getattr(encoder, "columns_", [])
    empty = [column.name for column in columns if getattr(column, "kind", None) == "empty"]
    if empty:
        names = ", ".join(map(repr, empty))
        warn(f"these columns have no values and cannot be split: {names}", ColumnWarning)
    message = ""
    if constant:
        names = ", ".join(map(repr, constant))
        message = f"these columns are constant and cannot be split: {names}"
    if isinstance(encoder, BinaryEncoder):
        is_idle = not (encoder.features_ or encoder._awaits_search)
    else:
        is_idle = {str(name) for name in encoder.get_feature_names_out()} <= set(constant)
    if is_idle:
        message += "; " * bool(message) + "nothing is left to split on, the tree is a single leaf"
        warn(message, ConstantFeatureWarning)
    elif constant:
        logger.info(message)


def binary_features(encoder: Any, X: Any) -> BinaryMatrix:
    """Binary features of rows in the form of the engine.

    Raises
    ------
    ValueError
        If the encoder makes anything else.
    """
    if keeps_transform(encoder):
        return encoder._packed(X, range(encoder.n_features_out_), type(encoder).__name__)
    features = encoder.transform(X)
    features = np.asarray(features.toarray() if issparse(features) else features)
    if features.ndim != 2 or not is_binary(features):
        raise ValueError(
            f"encoder made an array of shape {features.shape} and dtype {features.dtype}; "
            "expected two dimensions and only 0 and 1"
        )
    return packed(features)


def packed(features: NDArray[Any] | BinaryMatrix) -> BinaryMatrix:
    """Binary features, shape (n, n_features), in the form of the engine."""
    if isinstance(features, BinaryMatrix):
        return features
    return BinaryMatrix(np.ascontiguousarray(features.astype(bool, copy=False)).view(np.uint8))


def count_distinct(features: BinaryMatrix, most: int) -> int:
    """Number of distinct rows, or ``most`` if there are that many or more."""
    count, known = 1, np.zeros(len(features), dtype=np.uint64)
    # 32 columns at a time: their bits, prefixed by the code of the columns before.
    for word in features.words().view(np.uint32).T:
        if count >= most:
            break
        values, place = np.unique(known << np.uint64(32) | word, return_inverse=True)
        count, known = len(values), place.astype(np.uint64)
    return min(count, most)


def is_binary(features: NDArray[Any]) -> bool:
    """Whether all values are 0 or 1."""
    if features.dtype == np.bool_ or not features.size:
        return True
    if features.dtype.kind in "iu":  # no mask of the size of the features is needed
        return bool(features.min() >= 0 and features.max() <= 1)
    step = max(1, 2**20 // features.shape[1])  # np.isin takes eleven bytes per cell
    blocks = (features[start : start + step] for start in range(0, len(features), step))
    return all(bool(np.isin(block, (0, 1)).all()) for block in blocks)
