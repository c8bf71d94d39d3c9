"""Models of the propensity scores and of the outcomes, each row predicted by models without it.

The rows are divided into folds in which equal rows are together, independent of the order of the
rows, and every fold is predicted by models that were fitted to the other folds (cross-fitting;
Chernozhukov et al., The Econometrics Journal 21, 2018).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from bristlecone._data.rows import take_rows
from bristlecone._data.targets import LabelledData
from bristlecone._teacher.folds import folds_of
from bristlecone._teacher.members import Design, design_of, members_of
from bristlecone._teacher.outcomes import Classes, Numbers, Outcomes
from bristlecone._types import Bools, Floats, Integers

# Rows of a fold, and the rows of the other folds in an order that follows from their values.
Fold = tuple[Bools, Integers]

# Models that "auto" averages. A forest would take ten times as long as both together.
_MEMBERS = ("ridge", "boosting")


class _Treatments(Classes):
    parameter = "propensity_model"


class _Outcomes(Numbers):
    parameter = "outcome_model"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of treatments, all of positive weight, and how they are divided into folds.

    Parameters
    ----------
    X : table
        The features, for custom models.
    design : Design
        The same as numbers, for models of "auto".
    treatment : array of int, shape (n,)
        Positions in ``treatments``.
    treatments : array
    weight : array of float, shape (n,), or None
    fold, order : array of int, shape (n,)
        The fold of every row, and an order of the rows.
    seed : int
    heard : callable or None
        Called after every fit of a model with the seconds since ``start``.
    start : float
    """

    X: Any
    design: Design
    treatment: Integers
    treatments: NDArray[Any]
    weight: Floats | None
    fold: Integers
    order: Integers
    seed: int
    heard: Callable[..., object] | None
    start: float

    @classmethod
    def of(
        cls,
        data: LabelledData,
        outcomes: Floats,
        strata: Integers,
        seed: int,
        heard: Callable[..., object] | None = None,
    ) -> Rows:
        """Rows whose labels are treatments, with folds: equal rows share one.

        ``strata`` are spread over all folds.
        """
        start = time.perf_counter()
        design = design_of(data.X, data.weight)
        columns = np.column_stack([outcomes, data.labels])
        fold, order = folds_of(design.numbers, columns, strata, seed)
        return cls(
            data.X, design, data.labels, data.classes, data.weight, fold, order, seed, heard, start
        )

    def folds(self) -> Iterator[Fold]:
        """The rows of every fold, and the others."""
        for k in range(int(self.fold.max()) + 1):
            held = self.fold == k
            yield held, self.order[~held[self.order]]

    def selected(self, own: Integers) -> NDArray[Any]:
        """Some rows of ``X``: positions in an array, but a mask for a table.

        The order of the rows of a table is the user's.
        """
        if isinstance(self.X, np.ndarray):
            return own
        mask = np.zeros(len(self.fold), dtype=bool)
        mask[own] = True
        return mask

    def check_treatments(self, what: str, argument: str) -> None:
        """Raise ValueError unless every treatment has rows in two folds, as prediction requires.

        The message says for ``what`` there is no model, and which ``argument`` would replace it.
        """
        for k, name in enumerate(self.treatments.tolist()):
            n_folds = len(np.unique(self.fold[self.treatment == k]))
            if n_folds < 2:
                held = "no two different rows" if n_folds else "no row"
                raise ValueError(
                    f"treatment {name!r} has {held}, so its {what} cannot be estimated from other "
                    f"rows; leave it out{f' or pass {argument}' if argument else ''}"
                )

    def report(self) -> None:
        """Tell the listener that time has passed."""
        if self.heard is not None:
            self.heard(time.perf_counter() - self.start, np.inf, -np.inf, 0)


def propensity_scores(rows: Rows, model: Any) -> Floats:
    """Cross-fitted probability of every treatment, shape (n, n_treatments); rows sum to one."""
    n_treatments = len(rows.treatments)
    if n_treatments == 1:
        return np.ones((len(rows.treatment), 1))
    rows.check_treatments("propensity", "propensity")
    outcomes = _Treatments(rows.weight, rows.treatment, rows.treatments)
    found = outcomes.empty()
    for held, others in rows.folds():
        found[held] = _predicted(rows, outcomes, model, others, held)
    return outcomes.checked(found, model)


def outcome_predictions(rows: Rows, y: Floats, model: Any) -> Floats:
    """Cross-fitted prediction of the outcome under every treatment, shape (n, n_treatments).

    There is a separate model for every treatment.
    """
    rows.check_treatments("outcome", "predicted_outcomes")
    outcomes: Numbers = _Outcomes(rows.weight, y)
    exponent = 0
    if isinstance(model, str):  # Boosting computes in 32 bits. A power of two rounds nothing.
        outcomes, exponent = outcomes.scaled()
    found = np.full((len(y), len(rows.treatments)), np.nan)
    for held, others in rows.folds():
        for k in range(len(rows.treatments)):
            own = others[rows.treatment[others] == k]
            found[held, k] = _predicted(rows, outcomes, model, own, held)
    found = np.ldexp(found, exponent)
    outcomes.refuse(~np.isfinite(found), found, model, "predicted numbers that are not finite")
    # A model may predict the rounding error of the largest outcome instead of zero.
    found[np.abs(found) <= np.finfo(np.float64).eps * np.abs(y).max()] = 0.0
    return found


def _predicted(rows: Rows, outcomes: Outcomes, model: Any, own: Integers, held: Bools) -> Floats:
    """Predictions for the held-out rows, by models of some others."""
    if not isinstance(model, str):
        X = rows.X
        with threadpool_limits(limits=1):
            fitted = outcomes.fitted(model, X, rows.selected(own))
        if isinstance(outcomes, Numbers) and is_classifier(fitted):
            # The expected outcome of classes that are numbers, such as 0 and 1.
            shares = np.asarray(fitted.predict_proba(take_rows(X, held)), dtype=np.float64)
            found = shares @ np.asarray(fitted.classes_, dtype=np.float64)
        else:
            found = outcomes.predicted(fitted, X, held)
        rows.report()
        return found
    predictions = []
    with quiet():
        for name, one in members(outcomes, rows).items():
            design = rows.design.read_by(name)
            predictions.append(outcomes.predicted(outcomes.fitted(one, design, own), design, held))
            rows.report()
    return np.mean(predictions, axis=0)


def members(outcomes: Outcomes, rows: Rows) -> dict[str, Any]:
    """Models of "auto" by name."""
    models = members_of(outcomes, rows.design, rows.seed)
    return {name: models[name] for name in _MEMBERS}


@contextmanager
def quiet() -> Iterator[None]:
    """One thread for linear algebra, and no warnings about models that have not converged."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
