"""The models behind ``teacher="auto"``, all of scikit-learn, and the columns they read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.table import read_table
from bristlecone._teacher.outcomes import Classes, Costs, Outcomes, Rates
from bristlecone._types import Floats

# Prior variance, for ridge, of a slope per standard deviation of a column.
_SLOPE_VARIANCE = 0.03

# Most rows from which a tree of the forest is grown, and its smallest leaf.
_MOST_ROWS, _LEAST_LEAF = 4000, 10

# Most bins of a column for boosting. With more distinct values scikit-learn computes quantiles,
# with weights one by one, which takes several times as long as the rest of boosting.
_MOST_BINS = 255

# Boosting reads a category of more levels as one column, which is as many times as fast. Fewer
# levels are separate columns, which predict slightly better.
_FEW_LEVELS = 20

# With more columns than this, second derivatives take too long.
_MOST_COLUMNS = 200


@dataclass(frozen=True, eq=False)
class Design:
    """Columns of a table in the form of the models of "auto".

    Parameters
    ----------
    numbers : array of float, shape (n, n_columns)
        Columns of mean 0 and variance 1.
    widths : list of int
        How many successive columns boosting reads as one: 1, or all levels of a category.
    """

    numbers: Floats
    widths: list[int]

    @cached_property
    def binned(self) -> Floats:
        """Numbers in bins of about equally many distinct values, and many levels as codes."""
        columns: list[NDArray[Any]] = []
        for part in np.split(self.numbers, np.cumsum(self.widths[:-1]), axis=1):
            if part.shape[1] > 1:  # levels: at most one holds in a row
                columns.append((part > 0) @ np.arange(1.0, part.shape[1] + 1))
                continue
            values, code = np.unique(part[:, 0], return_inverse=True)
            columns.append(code * min(len(values), _MOST_BINS) // len(values))
        return np.column_stack(columns).astype(np.float64)

    @property
    def categories(self) -> list[int]:
        """Positions of the categories in ``binned``."""
        return [place for place, width in enumerate(self.widths) if width > 1]

    def read_by(self, member: str) -> Floats:
        """The columns for the model of this name."""
        return self.binned if member == "boosting" else self.numbers


def design_of(X: Any, weight: Floats | None) -> Design:
    """Columns of any table as numbers.

    A category gives one column per level. A missing number is replaced by the mean, and another
    column marks it as missing.
    """
    encoder = DesignEncoder().fit(X, weight)
    design = encoder.transform(X)
    widths = []
    for _, own in groupby(encoder.design_, lambda one: one.column):
        width = len([*own])
        widths += [1] * width if width <= _FEW_LEVELS else [width]
    numbers = {one.name for one in encoder.columns_ if one.kind in ("number", "flag")}
    incomplete = numbers & {one.name for one in encoder.columns_ if one.has_missing}
    if incomplete:
        table = read_table(X, "the teacher")
        missing = [
            np.asarray(one.missing, dtype=np.float64)
            for one in table.one_by_one()
            if one.name in incomplete
        ]
        design = np.column_stack([design, *missing])
        widths += [1] * len(missing)
    if not design.shape[1]:
        # Every column is constant, so models predict means.
        return Design(np.zeros((len(design), 1)), [1])
    mean = np.average(design, axis=0, weights=weight)
    spread = np.sqrt(np.average((design - mean) ** 2, axis=0, weights=weight))
    return Design(np.asarray((design - mean) / np.where(spread > 0, spread, 1.0)), widths)


def members_of(outcomes: Outcomes, design: Design, seed: int) -> dict[str, Any]:
    """Unfitted models for these outcomes by name; the fastest first."""
    n_rows, n_columns = design.numbers.shape
    forest = {
        "n_estimators": 100,
        "min_samples_leaf": _LEAST_LEAF,
        "max_features": 1 / 3,
        "max_samples": _MOST_ROWS / n_rows if n_rows > _MOST_ROWS else None,
        "random_state": seed,
    }
    boosting = {
        "max_iter": 50,
        "max_leaf_nodes": 4,
        "max_bins": _MOST_BINS,
        "categorical_features": design.categories or None,
        "early_stopping": False,
        "random_state": seed,
    }
    solver = "newton-cholesky" if n_columns <= _MOST_COLUMNS else "lbfgs"
    if isinstance(outcomes, Rates):
        events = max(float(outcomes.importance @ outcomes.target), 1.0)
        ridge: Any = PoissonRegressor(
            alpha=1.0 / (_SLOPE_VARIANCE * events), solver=solver, max_iter=300
        )
        return {
            "ridge": ridge,
            "forest": RandomForestRegressor(criterion="poisson", **forest),
            "boosting": HistGradientBoostingRegressor(loss="poisson", **boosting),
        }
    if isinstance(outcomes, Classes):
        return {
            "ridge": LogisticRegression(C=_SLOPE_VARIANCE, solver=solver, max_iter=300),
            "forest": RandomForestClassifier(**forest),
            "boosting": HistGradientBoostingClassifier(**boosting),
        }
    found = {"ridge": Ridge(alpha=1.0 / _SLOPE_VARIANCE), "forest": RandomForestRegressor(**forest)}
    if not isinstance(outcomes, Costs):
        found["boosting"] = HistGradientBoostingRegressor(**boosting)
    return found
