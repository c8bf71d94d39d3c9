"""Base class of all trees: structure, tables, texts and files of a fitted tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from fractions import Fraction
from functools import cache
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from bristlecone._core import BinaryMatrix
from bristlecone._data.arrays import type_name
from bristlecone._data.checks import check_confidence, check_times
from bristlecone._data.frame import frame_backend, in_order, native_frame
from bristlecone._encoder.missing import missing_by_leaf
from bristlecone._encoder.rules import leaf_rules, rule_text, split_questions
from bristlecone._encoder.use import columns_asked, missing_by_feature, missing_in, rows_for
from bristlecone._estimators.describe import describe
from bristlecone._estimators.parameters import check_parameters
from bristlecone._leaves.base import Columns, Leaves, view
from bristlecone._model import registry
from bristlecone._search.certificate import Certificate
from bristlecone._teacher.lesson import parameters_of_fit, teach_again
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import InvalidParameterError

Estimator = TypeVar("Estimator", bound="BaseTree")


class _AfterFit:
    """Set by ``fit``; reading it before raises NotFittedError."""

    def __get__(self, tree: BaseTree | None, kind: type[BaseTree]) -> _AfterFit:
        if tree is not None:
            check_is_fitted(tree)
        return self


class BaseTree(BaseEstimator):
    """A fitted tree is ``tree_``, ``leaves_``, ``encoder_`` and ``certificate_``.

    Its predictions and texts depend only on these four, not on the current parameters, which are
    those of the next fit.
    """

    tree_: Tree
    leaves_: Leaves
    encoder_: Any
    certificate_: Certificate = cast(Any, _AfterFit())
    verbose: int
    objective_value_ = view("certificate_", "objective_value", "Value of the objective.", float)
    fit_time_ = view("certificate_", "seconds", "Seconds that ``fit`` took.", float)
    n_features_in_ = view("encoder_", "n_features_in_", "Number of columns of ``X``.", int)
    feature_names_in_ = view(
        "encoder_", "feature_names_in_", "Names of the columns of ``X``.", NDArray[np.object_]
    )

    def set_params(self: Estimator, **params: Any) -> Estimator:
        """Set parameters by name; those of the encoder as ``encoder__name``.

        Parameters
        ----------
        **params
            New values. ``encoder__name`` needs an encoder object, not "auto".

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        ValueError
            If there is no such parameter, or the encoder has no parameters.
        """
        nested = [name for name in params if name.startswith("encoder__")]
        encoder = params.get("encoder", getattr(self, "encoder", None))
        if nested and hasattr(self, "encoder") and not hasattr(encoder, "set_params"):
            raise InvalidParameterError(
                f"{nested[0]} needs an encoder object, such as encoder=BinaryEncoder(); got "
                f"encoder={encoder!r}"
            )
        super().set_params(**params)
        return self

    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for a parameter of wrong type or value."""
        check_parameters(self)

    def _parameters(self) -> dict[str, Any]:
        """Current parameters; mutable ones are copied.

        They include those that the constructor of a subclass does not take.
        """
        kinds: list[Any] = [kind for kind in type(self).__mro__ if issubclass(kind, BaseTree)]
        names = sorted({name for kind in kinds for name in registry.parameter_names(kind)})
        return {name: _copied(getattr(self, name)) for name in names}

    def _set_fitted(
        self,
        tree: Any,
        leaves: Leaves,
        encoder: Any,
        certificate: Certificate,
        X: Any,
        *,
        with_missing: bool = True,
    ) -> None:
        """Set the four values of a fit to the rows ``X``, and count missing values in the tree.

        Tables will come from the same library as ``X``.
        """
        if isinstance(tree, Tree) and with_missing:
            asked = np.unique(tree.feature[~tree.is_leaf]).tolist()
            missing = missing_by_feature(encoder, X, asked)
            if missing:
                rows = rows_for(encoder, X, asked, type(self).__name__)
                tree = tree.with_missing_counts(tree.missing_counts(rows, missing))
        # All at once, so that Ctrl-C cannot leave parts of two fits.
        self.__dict__.update(
            tree_=tree,
            leaves_=leaves,
            encoder_=encoder,
            certificate_=certificate,
            _frame=frame_backend(X),
        )

    @property
    def _frame_kind(self) -> str:
        """Library of the data frames of tables: that of ``X`` in ``fit``, or pandas."""
        return getattr(self, "_frame", "pandas")

    @property
    def _score_name(self) -> str:
        """Name of ``score`` in texts."""
        return str(self.leaves_.score_name)

    def _check_fitted(self) -> None:
        """Raise NotFittedError, or InfeasibleError, when there is no tree."""
        if "tree_" not in self.__dict__:
            check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Data frames are read without conversion, including categories and missing values.
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # Notebooks look for these two names. Without a tree, scikit-learn's box of parameters is shown.
    @property
    def _repr_html_(self) -> Callable[[], str]:
        if get_config()["display"] != "diagram":
            raise AttributeError(
                "_repr_html_ needs display='diagram' in the configuration of scikit-learn"
            )
        return self._html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        return bundle | (
            {"text/html": self._html()} if get_config()["display"] == "diagram" else {}
        )

    def _html(self) -> str:
        # Imported here, because Jinja2 loads slowly.
        from bristlecone.report._page import notebook_html

        if "tree_" in self.__dict__:
            with suppress(ImportError):  # without Jinja2
                return notebook_html(self)
        return str(estimator_html_repr(self))

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of the tree."""
        self._check_fitted()
        return self.tree_.n_leaves

    @property
    def depth_(self) -> int:
        """Depth of the tree; 0 for a single leaf."""
        self._check_fitted()
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves of the tree, as in scikit-learn's trees."""
        return self.n_leaves_

    def get_depth(self) -> int:
        """Depth of the tree, as in scikit-learn's trees."""
        return self.depth_

    @property
    def splits_(self) -> dict[int, str]:
        """Splits in words, by node id."""
        self._check_fitted()
        asked = split_questions(self.encoder_, self.tree_)
        return {node: question.name for node, question in asked.items()}

    @property
    def feature_importances_(self) -> Floats:
        """Importance of every column of ``X``: its share in the improvement of the loss.

        The improvement of a split is the decrease of the mean loss, without ``leaf_penalty``, if
        its node is split into two leaves; an increase counts as 0. It is summed over the splits on
        the column. Shape (n_features_in_,); the shares sum to 1, or to 0 if no split improves the
        loss.

        Raises
        ------
        AttributeError
            If the objective is not a sum over leaves, or a custom encoder does not report the
            columns of its features.
        """
        self._check_fitted()
        tree = self.tree_
        split = ~tree.is_leaf
        if np.isnan(tree.improvement).any():
            raise AttributeError(
                "feature_importances_ needs an objective that is a sum over leaves; "
                f"{self.certificate_.aim.split(';')[0]} is not"
            )
        if (tree.column[split] < 0).any():
            raise AttributeError(
                "feature_importances_ needs the column of every split, which "
                f"{type(self.encoder_).__name__} does not provide"
            )
        gain = np.maximum(tree.improvement[split], 0.0)
        summed: NDArray[Any] = np.bincount(tree.column[split], gain, self.n_features_in_).astype(
            np.float64
        )
        total = summed.sum()
        return summed / total if total > 0 else summed

    @property
    def features_used_(self) -> list[Any]:
        """Columns of ``X`` that the tree uses: names, or positions if they had no names.

        Predictions need no others. With a custom encoder, these are all columns. For a soft tree
        they are the columns of the splits; its leaves may use and need others.
        """
        self._check_fitted()
        names = getattr(self, "feature_names_in_", None)
        used = self._columns_used()
        return used if names is None else [str(names[place]) for place in used]

    def _columns_used(self) -> list[int]:
        return columns_asked(self.encoder_, self.tree_.column)

    def _missing_text(self) -> str:
        """Missing values of the used columns in training; empty if there were none."""
        found = missing_in(self.encoder_, self._columns_used())
        by_leaf = missing_by_leaf(self.tree_)
        return f"{found}; by leaf: {by_leaf}" if found and by_leaf else found

    def _rows(self, X: Any) -> NDArray[Any] | BinaryMatrix:
        """Rows of ``X`` in the form that the tree reads."""
        self._check_fitted()
        asked = np.unique(self.tree_.feature[~self.tree_.is_leaf]).tolist()
        return rows_for(self.encoder_, X, asked, type(self).__name__)

    def _located(self, X: Any) -> tuple[Any, Any]:
        """The leaves, and the rows in the form that their predictions take."""
        rows = self._rows(X)
        return self.leaves_, self.leaves_.locate(self.tree_.leaf_index(rows), rows)

    def apply(self, X: Any) -> Integers:
        """Return the leaf of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of int, shape (n,)
            Node ids, preorder, as in ``tree_``.
        """
        rows = self._rows(X)
        return self.tree_.apply(rows)

    def decision_path(self, X: Any) -> csr_matrix:
        """Nodes that every row passes through.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n, tree_.node_count)
            1 where the row passes through the node, its leaf included.
        """
        rows = self._rows(X)
        return self.tree_.decision_path(rows)

    def leaf_table(self, times: Sequence[float] | None = None, confidence: float = 0.95) -> Any:
        """Return a table with one row per leaf, left to right.

        Parameters
        ----------
        times : sequence of float, optional
            Times at which to report the survival of every leaf of a survival tree.
        confidence : float, default=0.95
            Confidence level of all intervals.

        Returns
        -------
        DataFrame
            From the library of ``X`` in ``fit``, or pandas if ``X`` was an array or the tree comes
            from a file. The columns are ``leaf`` (node id, as from ``apply``), ``rule`` (not for
            soft trees), ``n_samples``, ``weight``, ``n_missing`` (rows without a value in the
            column of at least one split on their way; only if there are any), and the statistics of
            the leaves: for classifiers the weight and share of every class, for policies the value
            of every treatment, for regressors mean, variance and quantiles. Trees of counts also
            have ``count``, ``exposure``, and Garwood's limits of the rate for Poisson counts.

            For survival trees, these columns come from the rows of the leaf. Confidence limits have
            the suffixes ``_lower`` and ``_upper``:

            * ``n_events``;
            * ``median``: Kaplan–Meier median, with limits by Brookmeyer and Crowley;
            * ``kaplan_meier_T`` for every time T, with log-log limits. These are NaN before the
              first event, where ``KaplanMeier.confidence_interval`` returns 1. All three are NaN
              after the last time of the leaf, unless its curve has reached 0;
            * ``rmst``: restricted mean survival time up to ``tau``, the last time until which all
              leaves were observed, with its standard error ``rmst_error`` (Greenwood; NaN if no
              event happened by then);
            * ``hazard_ratio``: observed events divided by those expected at the hazard of all rows,
              with Garwood's limits for Poisson counts;
            * ``logrank_p``: log-rank test against all other rows, by counts without weights.

            In a leaf without rows, as a soft tree may have, all but the first are NaN.

            The tree predicts ``theta``, ``risk``, ``model_median`` and ``survival_T``; for a soft
            tree they are those at the mean linear predictor. After the last training time, step
            curves are continued as constants.

        Raises
        ------
        NotFittedError, InfeasibleError
            If there is no tree.
        InvalidParameterError
            If ``confidence`` is outside (0, 1), a time is negative or not finite, or ``times`` are
            given although the tree does not predict survival.

        Notes
        -----
        Intervals and p-values treat the leaves as groups that were fixed beforehand. They ignore
        that the splits were chosen to separate these rows: differences are exaggerated, and
        p-values are too small. For valid inference, call ``reestimate`` with rows that were not
        used in the fit.
        """
        self._check_fitted()
        check_confidence(confidence)
        at = check_times([] if times is None else times)
        if at.size and not self.leaves_.has_curves:
            raise InvalidParameterError(
                f"times needs a tree that predicts survival; got {type_name(self)}"
            )
        tree = self.tree_
        has_rules = isinstance(tree, Tree)
        columns: Columns = [("leaf", tree.leaves)]
        if has_rules:
            texts = [rule_text(conditions) for conditions in leaf_rules(self)]
            columns.append(("rule", np.array(texts, dtype=object)))
        columns += [
            ("n_samples", tree.n_node_samples[tree.leaves]),
            ("weight", tree.weighted_n_node_samples[tree.leaves]),
        ]
        if has_rules and tree.n_missing.any():
            columns.append(("n_missing", tree.n_missing[tree.leaves]))
        columns += self.leaves_.table(np.unique(at).tolist(), confidence)
        return native_frame(columns, self._frame_kind)

    def describe(self) -> str:
        """Methods section of the fitted tree, in plain text.

        Returns
        -------
        str
            The search or training, its objective, the training data, all binary features, what was
            proven, the size of the tree, the treatment of missing values and the version of this
            package. It describes the fit, even if parameters were set since.

        Raises
        ------
        NotFittedError, InfeasibleError
            If there is no tree.
        """
        self._check_fitted()
        return describe(self)

    def to_json(self, curve_points: int | None = None) -> str:
        """Return the fitted model as JSON, with thinned curves on request (see ``save_model``)."""
        return registry.dumps(self, curve_points)

    @classmethod
    def from_json(cls: type[Estimator], text: str) -> Estimator:
        """Load a fitted model from the text that ``to_json`` returns.

        Raises
        ------
        ModelFormatError
            If the text is not a complete, consistent model of this class.
        """
        return registry.loads(text, cls)


def refuse_entry(tree: BaseTree, data: Any) -> None:
    """Raise ValueError if rows of survival data entered late."""
    if data.entry is not None:
        raise ValueError(
            f"y has delayed entry, which {type(tree).__name__} does not support; use "
            "OptimalSurvivalTree"
        )


class Taught(BaseTree):
    """A tree that a teacher may help to choose its splits."""

    @property
    def training_loss_(self) -> float:
        """Loss on the real outcomes, without ``leaf_penalty``; see ``teacher``."""
        self._check_fitted()
        found = self.certificate_
        if found.teacher is not None and found.is_taught:
            return found.teacher.training_loss
        penalty = float(found.parameters.get("leaf_penalty", 0.0))
        return found.objective_value - penalty * self.tree_.n_leaves


def training_rows(tree: Any, X: Any, y: Any, sample_weight: Any, more: Mapping[str, Any]) -> Any:
    """Checked rows from the arguments of ``fit`` that describe them.

    Raises
    ------
    TypeError
        If there are other arguments, or one is missing.
    ValueError, TypeError
        As in ``fit``.
    """
    kind: Any = type(tree)
    taken, needed, of_fit = _row_arguments(kind)
    for name in more:
        if name not in taken:
            raise TypeError(
                f"{name!r} is no argument here: the rows of this {kind.__name__} are given by "
                f"{', '.join(of_fit)}"
            )
    for name in needed:
        if name not in more:
            raise TypeError(f"{kind.__name__} needs the argument {name}, as in fit")
    return tree._training_data(X, y, sample_weight, **more)


@cache
def _row_arguments(kind: Any) -> tuple[frozenset[str], list[str], list[str]]:
    """Arguments that describe rows: all, those without a default, and those of ``fit``."""
    taken, of_fit = signature(kind._training_data).parameters, signature(kind.fit).parameters
    needed = [
        name
        for name, one in taken.items()
        if one.kind is one.KEYWORD_ONLY and one.default is one.empty
    ]
    return frozenset(taken), needed, [name for name in taken if name in of_fit and name != "self"]


def in_order_of_fit(tree: Any, X: Any) -> Any:
    """A data frame with the columns of the fit first, in their order; anything else as it is.

    Models that are fitted again draw from the columns in their order.
    """
    return in_order(X, getattr(tree, "feature_names_in_", ()))


def unfitted(tree: Estimator, **changed: Any) -> Estimator:
    """Copy of a fitted tree that is not fitted, with the parameters of its fit, or changed ones."""
    copy: Estimator = clone(tree)
    # The constructor of a subclass may not take all of them.
    copy.__dict__.update(parameters_of_fit(tree), **changed)
    return copy


def smoothed_again(
    tree: Any, teacher: Any, X: Any, y: Any, sample_weight: Any = None, **data: Any
) -> Floats:
    """Smoothed outcomes of a fitted tree, by a teacher that is fitted again.

    Raises
    ------
    ValueError, TypeError
        As in ``fit``, and if the outcomes are not those of the fit.
    """
    copy = unfitted(tree, teacher=teacher)
    rows = training_rows(copy, in_order_of_fit(tree, X), y, sample_weight, data)
    smoothed: Floats = teach_again(tree, copy._objective(), rows)[0].smoothed
    return smoothed


def _copied(value: Any) -> Any:
    if isinstance(value, (list, dict, np.ndarray, np.random.RandomState)):
        return deepcopy(value)
    if isinstance(value, Fraction):
        return float(value)  # texts and files have no fractions
    if hasattr(value, "get_params") and not isinstance(value, type):
        return copy(value)
    return value
