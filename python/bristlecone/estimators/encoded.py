"""Trees that read their rows through an encoder: what they do with it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bristlecone.encoder import BinaryEncoder
from bristlecone.encoder.missing import missing_text
from bristlecone.encoder.numeric import NumericColumns
from bristlecone.encoder.rules import Question, questions
from bristlecone.errors import ConstantFeatureWarning, InvalidParameterError
from bristlecone.estimators.base import TreeMixin

__all__ = ["EncodedTreeMixin", "binary_features", "count_distinct"]


class EncodedTreeMixin(TreeMixin):
    """Rows of the tree are what the fitted ``encoder_`` makes of ``X``.

    The parameter ``encoder`` is "auto" for ``BinaryEncoder()``, which searched trees give the cuts
    of greedy ones, or a transformer with
    ``get_feature_names_out`` whose output, dense or sparse, is two-dimensional and holds nothing
    but 0 and 1.
    """

    encoder: Any
    encoder_: Any
    verbose: int

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        return self.encoder_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns of ``X``, if they had names."""
        return self.encoder_.feature_names_in_

    def _check_encoder(self) -> None:
        methods = ("fit", "transform", "get_feature_names_out")
        automatic = isinstance(self.encoder, str) and self.encoder == "auto"
        if not automatic and (
            isinstance(self.encoder, type)
            or not all(hasattr(self.encoder, name) for name in methods)
        ):
            raise InvalidParameterError(
                "encoder must be 'auto' or a transformer such as BinaryEncoder(); "
                f"got {self.encoder!r}"
            )

    def _fitted_encoder(self, X: Any, weight: NDArray[np.float64] | None) -> Any:
        encoder = BinaryEncoder() if isinstance(self.encoder, str) else clone(self.encoder)
        if weight is not None and has_fit_parameter(encoder, "sample_weight"):
            encoder.fit(X, sample_weight=weight)
        else:
            encoder.fit(X)
        missing = missing_text(getattr(encoder, "columns_", []))
        if missing:
            level = logging.INFO if self.verbose else logging.DEBUG
            logging.getLogger("bristlecone").log(level, "missing values: %s", missing)
        return encoder

    def _asked_features(self) -> list[int]:
        """Positions of the features that the tree asks, ascending."""
        return np.unique(self.tree_.feature[~self.tree_.is_leaf]).tolist()

    def _tree_rows(self, X: Any) -> NDArray[Any]:
        if isinstance(self.encoder_, (BinaryEncoder, NumericColumns)):
            return self.encoder_.evaluate(X, self._asked_features())
        return binary_features(self.encoder_, X)

    def _used_columns(self) -> list[int]:
        if isinstance(self.encoder_, NumericColumns):
            return self._asked_features()
        if isinstance(self.encoder_, BinaryEncoder):
            asked = {self.encoder_.features_[feature].column for feature in self._asked_features()}
            columns = self.encoder_.columns_
            return [place for place, column in enumerate(columns) if column.name in asked]
        # What a transformer of one's own makes its features of is not known.
        return list(range(self.n_features_in_))

    def _missing_text(self) -> str:
        columns = getattr(self.encoder_, "columns_", [])
        return missing_text([columns[place] for place in self._used_columns()]) if columns else ""

    def _questions(self) -> list[Question]:
        return questions(self.encoder_)

    def _split_names(self) -> list[str]:
        return [str(name) for name in self.encoder_.get_feature_names_out()]

    def _warn_of_constants(self, stacklevel: int = 3) -> None:
        """Warn where nothing can be asked about; called by ``fit`` itself.

        A constant column beside others is logged only: in the folds of a cross-validation that is
        common and no reason to worry.
        """
        constant = getattr(self.encoder_, "constant_features_in_", [])
        told = ""
        if constant:
            told = f"constant columns give no split: {', '.join(map(repr, constant))}"
        if set(self._split_names()) <= set(constant):
            told += "; " * bool(told) + "nothing is left to split on, the tree is a single leaf"
            warnings.warn(told, ConstantFeatureWarning, stacklevel=stacklevel)
        elif constant:
            logging.getLogger("bristlecone").info(told)


def binary_features(encoder: Any, X: Any) -> NDArray[np.uint8]:
    """Binary features as the engine takes them: 0/1, uint8, C-contiguous.

    Raises
    ------
    ValueError
        When the encoder makes anything else.
    """
    features = encoder.transform(X)
    features = np.asarray(features.toarray() if issparse(features) else features)
    if features.ndim != 2 or not _is_binary(features):
        raise ValueError(
            f"encoder made an array of shape {features.shape} and dtype {features.dtype}; "
            "expected two dimensions and nothing but 0 and 1"
        )
    if features.dtype == np.bool_:
        return np.ascontiguousarray(features).view(np.uint8)
    return np.ascontiguousarray(features, dtype=np.uint8)


def count_distinct(features: NDArray[np.uint8], most: int) -> int:
    """Number of distinct rows of 0 and 1, or ``most`` if there are that many or more."""
    packed = np.packbits(features, axis=1)
    packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 4)))
    count, known = 1, np.zeros(len(features), dtype=np.uint64)
    # 32 columns at a time, behind the place of those before among the distinct ones.
    for word in np.ascontiguousarray(packed).view(np.uint32).T:
        if count >= most:
            break
        values, place = np.unique(known << np.uint64(32) | word, return_inverse=True)
        count, known = len(values), place.astype(np.uint64)
    return min(count, most)


def _is_binary(features: NDArray[Any]) -> bool:
    """Whether there is nothing but 0 and 1."""
    if features.dtype == np.bool_ or not features.size:
        return True
    if features.dtype.kind in "iu":  # no mask of the size of the features is needed
        return bool(features.min() >= 0 and features.max() <= 1)
    step = max(1, 2**20 // features.shape[1])  # np.isin takes eleven bytes per cell
    blocks = (features[start : start + step] for start in range(0, len(features), step))
    return all(bool(np.isin(block, (0, 1)).all()) for block in blocks)
