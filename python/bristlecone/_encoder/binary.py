"""``BinaryEncoder``: turns columns into the binary features that trees are searched over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeGuard

import numpy as np
from msgspec.json import decode, encode
from msgspec.structs import asdict, replace
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bristlecone._core import BinaryMatrix
from bristlecone._data.arrays import transposed
from bristlecone._data.checks import check_choice, check_integer, check_real
from bristlecone._data.exact import ExactValues
from bristlecone._data.records import convert, plain
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone._encoder.choice import (
    Chosen,
    ColumnChoice,
    choose,
    choose_of_columns,
    choose_of_flag,
    guess,
    has_many_levels,
)
from bristlecone._encoder.columns import (
    BinnedColumn,
    Column,
    EncodedColumn,
    NumericColumn,
    TrainingColumn,
    training_columns,
)
from bristlecone._encoder.counts import ValueCounts
from bristlecone._encoder.doubts import rounded_integers
from bristlecone._encoder.features import Feature, Threshold, with_distinct_names
from bristlecone._encoder.ranks import Encoded, RankedColumns
from bristlecone._encoder.records import BinaryParameters, BinaryRecord
from bristlecone._encoder.risk import LevelRisks, level_risks
from bristlecone._encoder.schema import ColumnSchema, conform
from bristlecone._encoder.scores import Ratios, outcome_ratios, outcome_scores
from bristlecone._encoder.table import read_table
from bristlecone._log import warn
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import ColumnWarning, InvalidParameterError, ModelFormatError

# From this number of rows on, columns take a noticeable amount of memory.
_MANY_ROWS = 1 << 14

_THRESHOLDS = "quantiles", "midpoints", "kmeans", "ensemble", "all"


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryEncoder(TransformerMixin, BaseEstimator):
    """Turn numeric, categorical and boolean columns into binary features.

    A numeric column gives one feature per threshold ("age <= 52"), by default at ten quantiles. A
    categorical column gives one feature per level. If its type is ordered, it gives thresholds in
    this order ("grade <= II"). Boolean columns, and integer columns of 0 and 1, are kept whatever
    their share of true rows. Missing numbers are replaced by the mean. Features that are true for
    almost no rows or almost all rows, or that repeat an earlier one, are dropped.

    The defaults are those of Huisman, van der Linden & Demirović, "Optimal Survival Trees: A
    Dynamic Programming Approach" (AAAI-24), except that imputed values place no threshold.

    Parameters
    ----------
    thresholds : {"quantiles", "midpoints", "kmeans", "ensemble", "all"}, default="quantiles"
        Thresholds of numeric columns, always midway between two neighbouring training values:

        * "quantiles": at ``n_thresholds`` evenly spaced quantiles (linear interpolation), each
          rounded up to the next midpoint;
        * "midpoints": at every midpoint;
        * "kmeans": between neighbours of ``n_thresholds + 1`` one-dimensional clusters;
        * "ensemble": at the thresholds of boosted stumps that are fitted to ``y``; ordered columns
          are treated as with "quantiles";
        * "all": a tree considers every threshold, and its ``encoder_`` has those of its splits,
          midway between the values of the node. See docs/guide/encoder.md.

        A column with at most ``n_thresholds`` midpoints is split at every one of them, except with
        "ensemble" and "all".
    n_thresholds : int, default=10
        Maximum number of thresholds per numeric or ordered column; "ensemble" keeps the most
        important ones, and "midpoints" and "all" ignore it.
    max_categories : int or None, default=10
        Maximum number of levels of a categorical column with a separate feature for each. Ordered
        columns ignore it.
    categories : {"risk", "levels"}, default="risk"
        Treatment of categorical columns with more than ``max_categories`` levels:

        * "risk": the levels are ordered by their risk in the training rows (see Notes) and split
          like numbers. A feature is a set of levels ("site in {A, B, C and 12 more}"). Without
          ``y``, or if the outcomes do not show that the levels differ, "levels" is used and a
          warning is shown;
        * "levels": each of the most frequent levels gets a feature; ties are broken by sorted
          order. The remaining levels share the feature "column = other".
    missing : {"impute", "branch"}, default="impute"
        Treatment of missing values. "impute": a missing number is replaced by the mean of its
        column, and a missing boolean by the more frequent value, both from the training rows;
        imputed values place no threshold. "branch": a column with missing values in training
        gets a feature "column is missing", and its other features are false for them; in other
        columns missing values are imputed. With both, a categorical column with missing values
        gets the feature "is missing", and a missing category matches no level.
    min_support : float, default=0.01
        Features that are true for less than this share of the rows (less than 0.5), including
        imputed values, or for more than one minus it, are dropped. Boolean and 0/1 columns are
        always kept. With ``thresholds="all"`` no split of a tree has such a threshold.
    max_features : int or None, default=None
        Maximum total number of features; thresholds of ``thresholds="all"`` do not count. Columns
        take turns, starting with the one that has the most balanced feature, and each contributes
        the most balanced of its remaining features.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Treatment in ``transform`` of a category that was not seen in ``fit``: "ignore" matches no
        level, not even "other"; "error" raises a ValueError. Levels declared by an ordered type
        count as seen.

    Attributes
    ----------
    features_ : list of Threshold, Flag, Level, Other, AtMost, OneOf or Missing
        The binary features in the order of the output columns.
    columns_ : list of ColumnSchema
        Summary of each column in ``fit``: name, kind, number of missing values and their
        replacement, levels.
    n_missing_ : ndarray of int, shape (n_features_in_,)
        Number of training rows in which the column has no value.
    n_imputed_ : ndarray of int, shape (n_features_in_,)
        Number of them that are replaced by the mean or the more frequent value.
    missing_goes_ : list of bool or None, length n_features_out_
        Value of each feature for rows whose column is missing; None if the column had no missing
        training value (``features_[k].missing`` then has the value).
    constant_features_in_ : list of str
        Columns with a single value, which give no feature.
    n_features_out_ : int
        Number of binary features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns; only when the input had names.

    See Also
    --------
    OptimalSurvivalTree : Searches all trees over these features.

    Notes
    -----
    Rows of weight zero are left out, and integer weights have the same effect as repeated rows.
    ``fit`` and ``transform`` take O(n) per numeric column and binary feature. With weights ``fit``
    takes O(n log n), and with "ensemble" forty times as long. Numbers are compared as float64:
    integers beyond 2**53 may become equal.

    The risk of a level is the ratio of its events to the events expected without features, or the
    mean of ``y`` (of its first principal component over the levels, if ``y`` has several columns
    or more than two classes). It is shrunk towards that of all rows by ten rows (ten expected
    events). Each feature lists the levels at one end of this order, such that levels that were not
    seen in ``fit``, missing categories and levels with fewer than ten rows are on the side of the
    average. The order depends on the outcomes, so scores on the training rows are too good: fit the
    encoder to training rows only.

    "ensemble" follows [McTavish2022]_: forty stumps (trees of one split) are boosted by squared
    error on the columns and the other features, which gives at most forty thresholds. For survival
    outcomes the error is that of the martingale residuals of the model without features, and for
    labels that of class indicators. A tree is proven optimal among trees over these features;
    nothing is proven about other thresholds. The thresholds depend on the outcomes, so fit the
    encoder to training rows only, as trees, pipelines and ``TreeSizeCV`` do.

    References
    ----------
    .. [McTavish2022] McTavish, Zhong, Achermann, Karimalis, Chen, Rudin, Seltzer, "Fast Sparse
       Decision Tree Optimization via Reference Ensembles", AAAI 2022.

    Examples
    --------
    >>> import pandas as pd
    >>> from bristlecone import BinaryEncoder
    >>> X = pd.DataFrame({"age": [50, 55, 61], "stage": ["I", "II", "III"]})
    >>> encoder = BinaryEncoder().fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['age <= 52.5', 'age <= 58', 'stage = II']
    >>> encoder.transform(X).astype(int).tolist()
    [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
    >>> encoder = BinaryEncoder(thresholds="ensemble").fit(X[["age"]], y=[2.5, 2.5, 9.5])
    >>> encoder.get_feature_names_out().tolist()
    ['age <= 58']
    """

    thresholds: Literal["quantiles", "midpoints", "kmeans", "ensemble", "all"] = "quantiles"
    n_thresholds: int = 10
    max_categories: int | None = 10
    categories: Literal["risk", "levels"] = "risk"
    missing: Literal["impute", "branch"] = "impute"
    min_support: float = 0.01
    max_features: int | None = None
    handle_unknown: Literal["ignore", "error"] = "ignore"

    # Whether a search is to choose the thresholds.
    _awaits_search = False

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> BinaryEncoder:
        """Choose the binary features.

        Parameters
        ----------
        X : DataFrame (pandas, polars, pyarrow, ...) or array-like of shape (n_samples, n_columns)
            Columns of numbers, booleans, strings or categories; NaN and None are missing values.
        y : structured array, DataFrame, or array-like of shape (n_samples,) or (n_samples, k)
            Outcomes, used only with ``thresholds="ensemble"`` and to order levels by risk: survival
            outcomes in the forms that trees take (an event of any cause counts as one); labels
            (text, booleans, whole numbers of integer type with at most 20 values); other numbers,
            one or several per row.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, finite and not negative.

        Returns
        -------
        BinaryEncoder
            The encoder itself.

        Raises
        ------
        ValueError
            If a parameter is invalid, there are no rows or no columns, column names are duplicate
            or empty, a value is infinite, weights do not match the rows, or, with
            ``thresholds="ensemble"``, outcomes are missing or do not match. The message names the
            parameter, column or row.
        TypeError
            If a column contains dates, nested or other unsupported values, or ``X`` is a sparse
            array or a lazy frame. The message names the column.

        Warns
        -----
        ColumnWarning
            If a text column contains only numbers, integers are beyond 2**53, a column has many
            levels and none is frequent enough for a feature, levels are merged or count as average,
            or the single value of a column also replaces its missing ones. The message names the
            column.
        """
        self._fit_columns(X, None if y is None else lambda: y, sample_weight)
        return self

    def _fit_columns(
        self,
        X: Any,
        target: Callable[[], Any] | None = None,
        sample_weight: ArrayLike | None = None,
        exposure: Floats | None = None,
        whole: bool = False,
    ) -> Callable[[], Encoded] | None:
        """As ``fit``. Returns how to encode the rows, unless rows of weight zero were left out.

        The caller then need not read the rows again. ``target`` computes the ``y``, which few
        columns need; rates may have exposures. Columns with many rows are stored as bins between
        the thresholds, or ``whole`` if other thresholds will be needed.
        """
        self._check_parameters()
        parameters = self._parameters()
        table = read_table(X, type(self).__name__)
        check_row_labels(X, sample_weight=sample_weight)
        weight = check_sample_weight(sample_weight, table.n_rows)
        present = None if weight is None or weight.all() else weight > 0
        own = weight if weight is None or present is None else weight[present]
        unit = 1.0 if own is None else min(1.0, float(own.min()))
        exact = None if own is None else ExactValues(own)
        risks: dict[str, LevelRisks | None] = {}

        @cache
        def outcomes() -> Any:
            assert target is not None
            y = target()
            check_row_labels(X, y=y)
            return y

        @cache
        def ratios() -> Ratios:
            return outcome_ratios(outcomes(), table.n_rows, weight, exposure)

        def with_risks(column: TrainingColumn) -> TrainingColumn:
            by_risk = self.categories == "risk" and target is not None
            if by_risk and has_many_levels(column, self.max_categories):
                risks[column.name] = level_risks(column, ratios(), weight, present)
            return column

        rounded: list[str] = []

        def noted(column: Column) -> Column:
            if isinstance(column, NumericColumn) and column.rounded:
                rounded.append(rounded_integers(column.name))
            return column

        read: Iterable[TrainingColumn]
        read = map(with_risks, training_columns(map(noted, table.one_by_one()), present))
        guessed: Mapping[str, Integers] = {}
        if self.thresholds == "ensemble":
            if target is None:
                raise ValueError(
                    "thresholds='ensemble' requires y to be passed, but the target y is None: "
                    "these thresholds depend on the outcomes"
                )
            scores = outcome_scores(outcomes(), table.n_rows, weight)
            scores = scores if present is None else scores[present]
            read = list(read)
            guessed = guess(parameters, read, scores, exact, unit, risks)
        if self.thresholds == "all":  # the search chooses them
            guessed = dict.fromkeys(table.names, np.zeros(0, np.int64))
        choices: list[ColumnChoice] = []
        columns: list[EncodedColumn] = []

        def is_plain(column: TrainingColumn) -> TypeGuard[NumericColumn]:
            return own is None and isinstance(column, NumericColumn) and column.missing is None

        def take(some: Sequence[TrainingColumn]) -> None:
            counts = [ValueCounts.of(one, exact) for one in some if not is_plain(one)]
            others = iter(choose_of_columns(parameters, counts, unit, guessed, risks))
            for one in some:
                choice = choose_of_flag(one) if is_plain(one) else next(others)
                choices.append(choice)
                columns.append(one if whole else choice.binned(one))

        whole = whole or self.thresholds == "all" or table.n_rows < _MANY_ROWS
        if table.n_rows < _MANY_ROWS:
            take(list(read))
        else:  # one at a time: its values and counts take more memory than its features
            for column in read:
                take([column])
                del column  # before the next one is read
        schemas = [choice.schema for choice in choices]
        known: Encoded | None = None

        def encoded(features: Sequence[Feature]) -> Encoded:
            ranked = RankedColumns.of(columns, schemas, features, columns[0].n_rows)
            questions = ranked.questions(features)
            return Encoded(ranked, questions, ranked.features(questions))

        def divided(features: Sequence[Feature]) -> list[int]:
            nonlocal known
            known = encoded(features)
            return known.features.first_alike()

        chosen = choose(choices, divided, self.max_features)
        self._take(chosen._replace(doubts=rounded + chosen.doubts), named=table.named)
        if present is not None:
            return None
        if known is not None and known.features.shape[1] == len(self.features_):
            return lambda: known  # most often, none of the candidates is a repeat
        return lambda: encoded(self.features_)

    def _take(self, chosen: Chosen, *, named: bool) -> None:
        """Warn of columns, and remember what was chosen unless a warning is an error."""
        for doubt in chosen.doubts:
            warn(doubt, ColumnWarning)
        awaits_search = self.thresholds == "all" and any(
            schema.kind == "number" and schema.name not in chosen.constant
            for schema in chosen.columns
        )
        self._remember(
            chosen.columns,
            chosen.features,
            chosen.constant,
            named=named,
            awaits_search=awaits_search,
        )

    def transform(self, X: Any) -> Bools:
        """Compute the binary features.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            The columns of ``fit``. The columns of a DataFrame may be in any order. Further columns,
            and columns without features, are ignored.

        Returns
        -------
        bool ndarray of shape (n_samples, n_features_out_), C-contiguous
            A DataFrame under ``set_output``.

        Raises
        ------
        ValueError
            If a column is missing, an array has another number of columns, a value is infinite or,
            with ``handle_unknown="error"``, a category is unknown. The message names the column and
            row.
        TypeError
            If a column contains text but contained numbers in ``fit``, or the reverse; also as in
            ``fit``. The message names the column.
        """
        self._check_chosen()
        return transposed(self._answers(X, self.features_)[0])

    def _check_chosen(self) -> None:
        check_is_fitted(self)
        if self._awaits_search:
            raise ValueError(
                "thresholds='all' are chosen by the search of a tree: pass the encoder to a tree "
                "(encoder=...) and use the encoder_ of the fitted tree"
            )

    def _answers(self, X: Any, features: Sequence[Feature]) -> tuple[Bools, dict[str, Column]]:
        """Answers of the rows, bool (n_features, n), and the columns that these features use."""
        n_rows, columns = self._columns_of(X, (feature.column for feature in features))
        answers = np.empty((len(features), n_rows), dtype=bool)
        for index, feature in enumerate(features):
            answers[index] = feature.evaluate(columns[feature.column])
        return answers, columns

    def _evaluate(self, X: Any, asked: Sequence[int], reader: str) -> Bools:
        """Compute some of the binary features; only their columns are needed.

        The same as ``transform``, but False for features whose positions are not in ``asked``.
        Columns that these features do not use may have any values and, in a DataFrame, be absent.
        Messages name the ``reader``.
        """
        check_is_fitted(self)
        used = (self.features_[index].column for index in asked)
        n_rows, columns = self._columns_of(X, used, reader)
        encoded = np.zeros((n_rows, self.n_features_out_), dtype=bool, order="F")
        for index in asked:
            feature = self.features_[index]
            encoded[:, index] = feature.evaluate(columns[feature.column])
        return encoded

    def _packed(self, X: Any, asked: Sequence[int], reader: str) -> BinaryMatrix:
        """As ``_evaluate``, in the form of the engine: faster and smaller for many features."""
        self._check_chosen()
        features = [self.features_[index] for index in asked]
        used = (feature.column for feature in features)
        n_rows, columns = self._columns_of(X, used, reader)
        cuts = defaultdict(list)
        for feature in features:
            if isinstance(feature, Threshold):
                cuts[feature.column].append(feature.value)
        schemas = [schema for schema in self.columns_ if schema.name in columns]
        read: list[EncodedColumn] = []
        for schema in schemas:
            column: Any = columns[schema.name]
            if schema.name in cuts:
                column = BinnedColumn.of(column, np.sort(cuts[schema.name]), schema.fill)
            read.append(column)
        ranked = RankedColumns.of(read, schemas, features, n_rows)
        # Features that are not asked are false: the answers of one more column.
        place = np.full(self.n_features_out_, len(ranked.ranks))
        gap = np.zeros(self.n_features_out_, dtype=np.int64)
        at = np.array(asked, dtype=np.int64)
        place[at], gap[at] = ranked.questions(features)
        ranks = [*ranked.ranks, np.zeros(n_rows, dtype=bool)]
        return BinaryMatrix.of_ranks(ranks, place.tolist(), gap.tolist(), n_rows)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the binary features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns. If ``fit`` saw names, they must be equal to those; otherwise they
            replace x0, x1, ...

        Returns
        -------
        ndarray of str, dtype object, shape (n_features_out_,)

        Raises
        ------
        ValueError
            If ``input_features`` does not match the columns.
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

    def _parameters(self) -> BinaryParameters:
        names = BinaryParameters.__struct_fields__
        return BinaryParameters(**plain({name: getattr(self, name) for name in names}))

    def _to_record(self) -> BinaryRecord:
        """The fitted encoder as it is in a file."""
        check_is_fitted(self)
        return BinaryRecord(
            parameters=self._parameters(),
            named=hasattr(self, "feature_names_in_"),
            columns=self.columns_,
            constant=list(self.constant_features_in_),
            features=self.features_,
        )

    @classmethod
    def _from_record(cls, record: BinaryRecord) -> BinaryEncoder:
        """Fitted encoder from ``_to_record``; ModelFormatError names what is wrong."""
        record.check()
        encoder = cls(**asdict(record.parameters))
        try:
            encoder._check_parameters()
        except ValueError as error:
            raise ModelFormatError(f"parameters: {error}") from None
        encoder._remember(record.columns, record.features, record.constant, named=record.named)
        return encoder

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as plain values (dict, list, str, bool, int, float, None).

        ``json`` keeps every number to the last bit: ``from_dict`` returns an equal encoder.
        """
        values: dict[str, Any] = decode(encode(self._to_record()))
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BinaryEncoder:
        """Rebuild a fitted encoder from the result of ``to_dict``.

        Raises
        ------
        ModelFormatError
            If an entry is missing, unknown or of the wrong type; the message names it.
        """
        return cls._from_record(convert(BinaryRecord, data))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = self.thresholds == "ensemble"
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for a parameter of wrong type or value."""
        check_choice("thresholds", self.thresholds, _THRESHOLDS)
        check_integer("n_thresholds", self.n_thresholds, 1)
        check_integer("max_categories", self.max_categories, 1, optional=True)
        check_choice("categories", self.categories, ("risk", "levels"))
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
        awaits_search: bool = False,
    ) -> None:
        gaps = {schema.name for schema in columns if schema.n_missing}
        fitted = {
            "columns_": columns,
            "features_": features,
            "constant_features_in_": constant,
            "n_features_in_": len(columns),
            "n_features_out_": len(features),
            "n_missing_": np.array([schema.n_missing for schema in columns], dtype=np.int64),
            "n_imputed_": np.array([schema.n_imputed for schema in columns], dtype=np.int64),
            "missing_goes_": [f.missing if f.column in gaps else None for f in features],
            "_awaits_search": awaits_search,
        }
        if named:
            names = [schema.name for schema in columns]
            fitted["feature_names_in_"] = np.array(names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)
        # All at once, so that Ctrl-C cannot leave parts of two fits.
        self.__dict__.update(fitted)

    def _replace_features(
        self, features: Sequence[Feature], *, awaits_search: bool = False
    ) -> None:
        """Have these features of the same columns instead."""
        self._remember(
            self.columns_,
            with_distinct_names(features),
            self.constant_features_in_,
            named=hasattr(self, "feature_names_in_"),
            awaits_search=awaits_search,
        )

    def _columns_of(
        self, X: Any, needed: Iterable[str], reader: str = ""
    ) -> tuple[int, dict[str, Column]]:
        """Number of rows, and the columns that are needed; messages name the ``reader``."""
        reader = reader or type(self).__name__
        table = read_table(X, reader, empty=True)
        named = hasattr(self, "feature_names_in_")
        needed = dict.fromkeys(needed)
        columns = conform(table, self.columns_, named, self.handle_unknown, reader, needed)
        return table.n_rows, columns


def keeps_transform(encoder: Any) -> TypeGuard[BinaryEncoder]:
    """Whether it is a ``BinaryEncoder`` whose features no subclass computes in its own way."""
    return isinstance(encoder, BinaryEncoder) and (
        type(encoder).transform is BinaryEncoder.transform
    )
