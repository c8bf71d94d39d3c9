"""Targets of a teacher by kind of outcome, and the mixture of its predictions with the outcomes.

Every kind fits models, checks what they predict, scores it, combines the predictions of several
models into one, and mixes it with the outcomes. Definitions: docs/maths/teacher.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from bristlecone._data.rows import take_rows
from bristlecone._foreign import (
    fitted_to_columns,
    frame_of,
    predicts_survival,
    risk_of,
    takes_columns,
)
from bristlecone._teacher.folds import MOST_FOLDS
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError

# Predicted rates are at least this share of the rate of all rows, so that logarithms exist.
_LEAST_RATE = 1e-3

# Predicted probabilities are at least this when their logarithm is taken.
_LEAST_PROBABILITY = 1e-6

# Bits of the sum of a class's shares over all rows, and at least of each share.
_BITS, _LEAST_BITS = 30, 12

# Steps towards the best weights of mixed probabilities.
_STEPS = 200


@dataclass(frozen=True, eq=False)
class Outcomes(ABC):
    """Outcomes of training rows.

    Parameters
    ----------
    weight : array of float, shape (n,), or None
        Row weights.
    """

    # Method that a model must have in addition to fit.
    method: ClassVar[str] = "predict"
    # For messages: the reason why models need weights, and the parameter that contains the model.
    need: ClassVar[str] = "these rows"
    parameter: ClassVar[str] = "teacher"

    weight: Floats | None

    @property
    @abstractmethod
    def columns(self) -> Floats:
        """The outcomes as columns, shape (n, k): rows are equal only where these are."""

    @property
    def strata(self) -> Integers:
        """Stratum of every row; each stratum is spread over all folds."""
        return np.zeros(len(self.columns), dtype=np.int64)

    def fewest(self, fold: Integers) -> tuple[float, str]:
        """Minimum number of rows of some kind in a fold, and the kind.

        Raises
        ------
        ValueError
            If folds cannot be predicted from the others.
        """
        return len(fold) / MOST_FOLDS, "rows"

    @property
    @abstractmethod
    def target(self) -> NDArray[Any]:
        """Targets that models of scikit-learn are fitted to."""

    @property
    def importance(self) -> Floats | None:
        """Weights of the rows where models of scikit-learn are fitted."""
        return self.weight

    def scaled(self) -> tuple[Outcomes, int]:
        """The outcomes over a power of two, and its exponent, so that the largest is about 1."""
        return self, 0

    def check_teacher(self, teacher: Any) -> None:
        """Raise InvalidParameterError for an estimator that cannot be a teacher."""
        for method in ("fit", self.method):
            if isinstance(teacher, type) or not hasattr(teacher, method):
                raise InvalidParameterError(
                    f"teacher must be None, 'auto' or an estimator with fit and {self.method}; got "
                    f"{teacher!r}"
                )
        if self.method == "predict" and not predicts_survival(teacher) and is_classifier(teacher):
            raise InvalidParameterError(
                f"teacher must predict numbers, and teacher={teacher!r} is a classifier"
            )

    def fitted(self, model: Any, X: Any, rows: NDArray[Any]) -> Any:
        """A clone of the model, fitted to some rows: a mask, or positions if ``X`` is an array."""
        weight = self.importance
        if weight is not None:
            weight = weight[rows] / weight[rows].mean()
        y = self.target[rows]
        return fitted_with_weights(model, take_rows(X, rows), y, weight, self.need, self.parameter)

    def predicted(self, model: Any, X: Any, rows: Bools) -> Floats:
        """Predictions for some rows."""
        return np.asarray(model.predict(take_rows(X, rows)), dtype=np.float64)

    def empty(self) -> Floats:
        """An array for the predictions of all rows."""
        return np.full(self.target.shape, np.nan)

    def checked(self, predicted: Floats, model: Any) -> Floats:
        """Cross-fitted predictions; ValueError that names any invalid prediction."""
        self.refuse(
            ~np.isfinite(predicted), predicted, model, "predicted numbers that are not finite"
        )
        return predicted

    def refuse(self, wrong: Bools, values: Floats, model: Any, what: str) -> None:
        """Raise ValueError if a prediction is ``wrong``; it names the model and the row."""
        if wrong.any():
            row = int(np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))[0])
            value = values.reshape(len(values), -1)[row]
            value = value[0] if value.size == 1 else value.tolist()
            raise ValueError(f"{self.parameter}={model!r} {what}: {value} for training row {row}")

    @abstractmethod
    def deviance(self, predicted: Floats) -> float:
        """Mean loss of predictions; ``constant`` gives that of the best constant."""

    @abstractmethod
    def constant(self) -> Floats:
        """The best prediction that is the same for all rows."""

    @abstractmethod
    def combined(self, predictions: Sequence[Floats]) -> Floats:
        """One prediction from those of several models."""

    @abstractmethod
    def mixed(self, predicted: Floats, share: float) -> Floats:
        """The outcomes, mixed with this share of the predictions."""

    def score(self, predicted: Floats) -> float:
        """Share of the deviance that predictions explain."""
        whole = self.deviance(self.constant())
        return 1.0 - self.deviance(predicted) / whole if whole > 0 else 0.0

    def _mean(self, values: Floats) -> float:
        return float(np.average(values, weights=self.weight))


@dataclass(frozen=True, eq=False)
class Rates(Outcomes):
    """Counts of events in rows that were exposed to some time, area or hazard.

    A teacher predicts the rate of events per unit of exposure.

    Parameters
    ----------
    weight : array of float, shape (n,), or None
        Row weights.
    events, exposure : array of float, shape (n,)
        Counts of events, and the exposure of the rows.
    """

    need = "hazards or exposures"

    events: Floats
    exposure: Floats

    @property
    def columns(self) -> Floats:
        return np.column_stack([self.events, self.exposure])

    @property
    def strata(self) -> Integers:
        return (self.events > 0).astype(np.int64)

    def fewest(self, fold: Integers) -> tuple[float, str]:
        counted = np.bincount(fold, self.events > 0, MOST_FOLDS)
        if (counted > 0).sum() < 2:
            raise ValueError(
                "a teacher needs rows with events in at least two folds; the rows with events "
                f"({int(counted.sum())}) are all in one, where equal rows are together"
            )
        return float(counted.min()), "rows with an event"

    @property
    def target(self) -> Floats:
        return self.events / self.exposure

    @property
    def importance(self) -> Floats:
        return self.exposure if self.weight is None else self.exposure * self.weight

    def checked(self, predicted: Floats, model: Any) -> Floats:
        predicted = super().checked(predicted, model)
        self.refuse(predicted < 0, predicted, model, "predicted negative hazards")
        return self._scaled(predicted)

    def _scaled(self, rates: Floats) -> Floats:
        """Positive rates, scaled so that they expect the observed number of events."""
        importance = self.importance
        least = _LEAST_RATE * float(np.average(rates, weights=importance))
        rates = np.maximum(rates, least) if least > 0 else np.ones_like(rates)
        return rates * (
            np.average(self.target, weights=importance) / np.average(rates, weights=importance)
        )

    def deviance(self, predicted: Floats) -> float:
        expected = predicted * self.exposure
        return self._mean(xlogy(self.events, self.events / expected) - self.events + expected)

    def constant(self) -> Floats:
        rate = np.average(self.target, weights=self.importance)
        return np.full(len(self.events), rate)

    def combined(self, predictions: Sequence[Floats]) -> Floats:
        logs = np.column_stack([np.log(one) for one in predictions])
        return self._scaled(self._regressed(logs))

    def _regressed(self, columns: Floats) -> Floats:
        """Fitted rates of a Poisson regression on these columns, with slopes of at least zero."""
        # Imported here, because the import takes long and few trees have a teacher.
        from sklearn.linear_model import PoissonRegressor

        importance = self.importance
        spread = columns.std(axis=0)
        columns = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        target = self.target / np.average(self.target, weights=importance)
        # A standard normal prior on the slopes.
        events = float(importance @ self.target)
        model = PoissonRegressor(alpha=1.0 / max(events, 1.0), solver="newton-cholesky")
        kept = np.arange(columns.shape[1])
        while kept.size:
            model.fit(columns[:, kept], target, sample_weight=importance)
            if (model.coef_ >= 0).all():
                return np.asarray(model.predict(columns[:, kept]))
            # If a rate decreases where a model predicts an increase, that is noise of the model.
            kept = kept[model.coef_ >= 0]
        return np.ones(len(columns))

    def mixed(self, predicted: Floats, share: float) -> Floats:
        return (1.0 - share) * self.events + share * predicted * self.exposure


@dataclass(frozen=True, eq=False)
class Survivals(Rates):
    """Survival times, as events of rows that were exposed to the baseline hazard until then.

    A teacher is a regressor of relative hazards, or a survival model with a risk.

    Parameters
    ----------
    weight, events, exposure
        As in ``Rates``; the exposure is the baseline hazard of the row's time.
    y : structured array, shape (n,)
        Event, time and, where rows entered late, entry.
    """

    y: NDArray[np.void]

    @property
    def columns(self) -> Floats:
        names = self.y.dtype.names or ()
        return np.column_stack([self.y[name].astype(np.float64) for name in names])

    def check_teacher(self, teacher: Any) -> None:
        if isinstance(teacher, type) or not takes_columns(teacher):
            super().check_teacher(teacher)

    def fitted(self, model: Any, X: Any, rows: NDArray[Any]) -> Any:
        if _is_regressor(model):
            return super().fitted(model, X, rows)
        return fitted_to_survival(model, X, self.y, self.weight, rows, "teacher")

    def predicted(self, model: Any, X: Any, rows: Bools) -> Floats:
        happened = np.unique(self.y["time"][self.y["event"]])
        return risk_of(model, take_rows(X, rows), happened, "a teacher")

    def checked(self, predicted: Floats, model: Any) -> Floats:
        if _is_regressor(model):
            return super().checked(predicted, model)
        risk = Outcomes.checked(self, predicted, model)
        # Scores of a Cox model are logarithms of a risk, those of a forest are not. Both may be
        # positive, so the events decide.
        found = [self._calibrated(risk)]
        if (risk > 0).all():
            found.append(self._calibrated(np.log(risk)))
        return min(found, key=self.deviance)

    def _calibrated(self, score: Floats) -> Floats:
        """Rates that rise with the score, by a Poisson regression of two parameters."""
        return self._scaled(self._regressed(score[:, None]))


@dataclass(frozen=True, eq=False)
class Classes(Outcomes):
    """Classes; a teacher predicts the probability of each.

    Parameters
    ----------
    weight : array of float, shape (n,), or None
        Row weights.
    labels : array of int, shape (n,)
        Places in ``classes``.
    classes : array
        The classes in sorted order.
    """

    method = "predict_proba"

    labels: Integers
    classes: NDArray[Any]

    @property
    def columns(self) -> Floats:
        return self.labels[:, None].astype(np.float64)

    @property
    def strata(self) -> Integers:
        return self.labels

    def fewest(self, fold: Integers) -> tuple[float, str]:
        sizes = np.bincount(self.labels)
        sizes = sizes[sizes > 0]
        if len(sizes) < 2:
            raise InvalidParameterError("a teacher needs rows of at least two classes")
        for held in np.unique(fold):
            others = self.labels[fold != held]
            if len(np.unique(others)) < 2:
                own = np.setdiff1d(self.labels, others)[0]
                raise ValueError(
                    "a teacher needs rows of two classes in at least two folds; the rows of class "
                    f"{self.classes[own]!s} ({np.sum(self.labels == own)}) are all in one, where "
                    "equal rows are together"
                )
        return sizes.min() / MOST_FOLDS, "rows of a class"

    @property
    def target(self) -> NDArray[Any]:
        return self.classes[self.labels]

    @property
    def one_hot(self) -> Floats:
        """1 for the class of the row, else 0, shape (n, n_classes)."""
        return np.asarray(np.eye(len(self.classes))[self.labels])

    def predicted(self, model: Any, X: Any, rows: Bools) -> Floats:
        shares = np.asarray(model.predict_proba(take_rows(X, rows)), dtype=np.float64)
        # If the other folds contain no row of a class, nothing is known about it.
        found = np.zeros((len(shares), len(self.classes)))
        found[:, np.searchsorted(self.classes, model.classes_)] = shares
        return found

    def empty(self) -> Floats:
        return np.full((len(self.labels), len(self.classes)), np.nan)

    def checked(self, predicted: Floats, model: Any) -> Floats:
        predicted = super().checked(predicted, model)
        total = predicted.sum(axis=1)
        wrong = (predicted < 0).any(axis=1) | (np.abs(total - 1.0) > 1e-3)
        self.refuse(
            wrong, total, model, "predicted probabilities that are not shares of one: the sum"
        )
        return predicted / total[:, None]

    def deviance(self, predicted: Floats) -> float:
        own = predicted[np.arange(len(self.labels)), self.labels]
        return self._mean(-np.log(np.maximum(own, _LEAST_PROBABILITY)))

    def constant(self) -> Floats:
        share = np.average(self.one_hot, axis=0, weights=self.weight)
        return np.tile(share, (len(self.labels), 1))

    def combined(self, predictions: Sequence[Floats]) -> Floats:
        rows = np.arange(len(self.labels))
        own = np.column_stack([one[rows, self.labels] for one in predictions])
        own = np.maximum(own, _LEAST_PROBABILITY)
        # The weights with the largest likelihood, by the EM algorithm.
        share = np.full(len(predictions), 1.0 / len(predictions))
        for _ in range(_STEPS):
            parts = own * share
            share = np.average(
                parts / parts.sum(axis=1, keepdims=True), axis=0, weights=self.weight
            )
        return np.asarray(sum(s * one for s, one in zip(share, predictions, strict=True)))

    def mixed(self, predicted: Floats, share: float) -> Floats:
        mixed = (1.0 - share) * self.one_hot + share * predicted
        # Sums of multiples of a power of two are exact, and the search is fast if those of all rows
        # fit into 31 bits. The most likely class gets the remainder.
        unit = 2.0 ** -max(_BITS - len(mixed).bit_length(), _LEAST_BITS)
        mixed = np.round(mixed / unit) * unit
        rows, most = np.arange(len(mixed)), mixed.argmax(axis=1)
        mixed[rows, most] = 0.0
        mixed[rows, most] = 1.0 - mixed.sum(axis=1)
        return np.asarray(mixed)


@dataclass(frozen=True, eq=False)
class Numbers(Outcomes):
    """Numbers; a teacher predicts their mean.

    Parameters
    ----------
    weight : array of float, shape (n,), or None
        Row weights.
    values : array of float, shape (n,)
    """

    values: Floats

    @property
    def columns(self) -> Floats:
        return self.values[:, None] if self.values.ndim == 1 else self.values

    @property
    def target(self) -> Floats:
        return self.values

    def scaled(self) -> tuple[Numbers, int]:
        exponent = int(np.frexp(np.abs(self.values).max())[1])
        return replace(self, values=np.ldexp(self.values, -exponent)), exponent

    def deviance(self, predicted: Floats) -> float:
        square = (self.values - predicted) ** 2
        return self._mean(square if square.ndim == 1 else square.mean(axis=1))

    def constant(self) -> Floats:
        mean = np.average(self.values, axis=0, weights=self.weight)
        return np.asarray(np.broadcast_to(mean, self.values.shape))

    def combined(self, predictions: Sequence[Floats]) -> Floats:
        from sklearn.linear_model import LinearRegression

        columns = np.column_stack([one.ravel() for one in predictions])
        repeats = self.values.size // len(self.values)
        weight = None if self.weight is None else np.repeat(self.weight, repeats)
        model = LinearRegression(positive=True)
        model.fit(columns, self.values.ravel(), sample_weight=weight)
        return np.asarray(model.predict(columns)).reshape(self.values.shape)

    def mixed(self, predicted: Floats, share: float) -> Floats:
        return (1.0 - share) * self.values + share * predicted


@dataclass(frozen=True, eq=False)
class Costs(Numbers):
    """Costs of labels; a teacher predicts the mean cost of each.

    Parameters
    ----------
    weight : array of float, shape (n,), or None
        Row weights.
    values : array of float, shape (n, n_labels)
    """

    def predicted(self, model: Any, X: Any, rows: Bools) -> Floats:
        # Means of costs are not negative, but a linear model may predict negative values.
        return np.maximum(super().predicted(model, X, rows), 0.0)

    def combined(self, predictions: Sequence[Floats]) -> Floats:
        return np.maximum(super().combined(predictions), 0.0)


def _is_regressor(model: Any) -> bool:
    """Whether it predicts numbers instead of risks."""
    return not predicts_survival(model) and is_regressor(model)


def fitted_to_survival(
    model: Any, X: Any, y: NDArray[np.void], weight: Floats | None, rows: NDArray[Any], name: str
) -> Any:
    """A copy of a survival model, fitted to some rows; ``name`` is the parameter it was passed as.

    ``rows`` are a mask, or positions if ``X`` is an array.
    """
    own = None if weight is None else weight[rows]
    if takes_columns(model):
        with naming(name, model):
            return fitted_to_columns(model, frame_of(X, rows), y[rows], own)
    return fitted_with_weights(model, take_rows(X, rows), y[rows], own, "these rows", name)


def fitted_with_weights(
    model: Any, X: Any, y: Any, weight: Floats | None, need: str, name: str
) -> Any:
    """A clone of a model with scikit-learn's interface, fitted with weights if there are any."""
    model, more = clone(model), {}
    if weight is not None:
        parameter = _weight_parameter(model)
        if parameter is None:
            raise InvalidParameterError(
                f"{name}={model!r} takes no sample_weight in fit, which it needs for {need}"
            )
        more[parameter] = weight
    with naming(name, model):
        return model.fit(X, y, **more)


@contextmanager
def naming(parameter: str, model: Any) -> Iterator[None]:
    """Errors of a model that is fitted name the parameter that it was passed as."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"{parameter}={model!r} does not accept these columns or outcomes: {error}"
        ) from error


def _weight_parameter(model: Any) -> str | None:
    """Name of the weights among the arguments of ``fit``."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(model, "sample_weight") else None
