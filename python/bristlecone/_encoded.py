"""Trees that read their rows through an encoder: what they do with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bristlecone._base import TreeMixin
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import ConstantFeatureWarning, InvalidParameterError
from bristlecone.rules import Question, questions

__all__ = ["EncodedTreeMixin", "binary_features"]


class EncodedTreeMixin(TreeMixin):
    """Rows of the tree are what the fitted ``encoder_`` makes of ``X``.

    The parameter ``encoder`` is "auto" for ``BinaryEncoder()`` or a transformer with
    ``get_feature_names_out`` whose output, dense or sparse, is two-dimensional and holds nothing
    but 0 and 1.
    """

    encoder: Any
    encoder_: Any

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
            return encoder.fit(X, sample_weight=weight)
        return encoder.fit(X)

    def _tree_rows(self, X: Any) -> NDArray[Any]:
        return binary_features(self.encoder_, X)

    def _questions(self) -> list[Question]:
        return questions(self.encoder_)

    def _split_names(self) -> list[str]:
        return [str(name) for name in self.encoder_.get_feature_names_out()]

    def _warn_of_constants(self, stacklevel: int = 3) -> None:
        """Warn about columns that cannot be asked about; called by ``fit`` itself."""
        constant = getattr(self.encoder_, "constant_features_in_", [])
        problems = []
        if constant:
            problems.append(f"constant columns give no split: {', '.join(map(repr, constant))}")
        if set(self._split_names()) <= set(constant):
            problems.append("nothing is left to split on, the tree is a single leaf")
        if problems:
            warnings.warn("; ".join(problems), ConstantFeatureWarning, stacklevel=stacklevel)


def binary_features(encoder: Any, X: Any) -> NDArray[np.uint8]:
    """Binary features as the engine takes them: 0/1, uint8, C-contiguous.

    Raises
    ------
    ValueError
        When the encoder makes anything else.
    """
    features = encoder.transform(X)
    features = np.asarray(features.toarray() if issparse(features) else features)
    if features.ndim != 2 or not (features.dtype == np.bool_ or np.isin(features, (0, 1)).all()):
        raise ValueError(
            f"encoder made an array of shape {features.shape} and dtype {features.dtype}; "
            "expected two dimensions and nothing but 0 and 1"
        )
    return np.ascontiguousarray(features, dtype=np.uint8)
