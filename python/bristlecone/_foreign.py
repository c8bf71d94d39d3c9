"""Survival models of other packages: how to fit them and read their predictions.

Models have the methods of scikit-survival or lifelines; neither package is imported.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from bristlecone._data.rows import take_rows
from bristlecone._types import Floats

_SURVIVAL = ("predict_survival_function",)
_HAZARD = ("predict_cumulative_hazard_function", "predict_cumulative_hazard")
_RISK = ("predict_partial_hazard",)
# Models of scikit-survival without curves have this attribute: False if they predict times.
_SIGN = "_predict_risk_score"


class SteppedCurves(NamedTuple):
    """Right-continuous step functions of rows, with their value to the left of ``x[0]``.

    ``y[i, k]`` is the value for row i from ``x[k]`` on, and ``y[i, -1]`` from the last step on.
    """

    x: Floats
    y: Floats
    before: float

    def at(self, times: Floats) -> Floats:
        """Values of every row at ``times``, shape (n, n_times)."""
        padded = np.column_stack([np.full(len(self.y), self.before), self.y])
        return np.asarray(padded[:, np.searchsorted(self.x, times, side="right")])


def predicts_survival(model: Any) -> bool:
    """Whether it predicts curves, relative hazards or risks.

    Such a model may also say that it is a regressor. Models without any sign of what they predict
    are assumed to predict risks, unless they are regressors or classifiers.
    """
    known = any(hasattr(model, name) for name in (*_SURVIVAL, *_HAZARD, *_RISK, _SIGN))
    return known or not (is_regressor(model) or is_classifier(model))


def predicts_curves(model: Any) -> bool:
    """Whether it predicts survival curves or cumulative hazards."""
    return any(hasattr(model, name) for name in (*_SURVIVAL, *_HAZARD))


def takes_columns(model: Any) -> bool:
    """Whether it is fitted as in lifelines, with outcomes and weights as columns of a frame."""
    return hasattr(model, _RISK[0]) or (
        hasattr(model, _SURVIVAL[0]) and not hasattr(model, "get_params")
    )


def frame_of(X: Any, rows: NDArray[Any] | None = None) -> Any:
    """Some rows as a pandas data frame, whose columns have names."""
    import pandas as pd  # imported here because it loads slowly

    X = X if rows is None else take_rows(X, rows)
    if nw.dependencies.is_into_dataframe(X) and not isinstance(X, pd.DataFrame):
        # pandas reads no table of Arrow, and that of polars without its names and types.
        columns = nw.from_native(X, eager_only=True).iter_columns()
        X = {column.name: column.to_numpy() for column in columns}
    frame = pd.DataFrame(X).reset_index(drop=True)
    frame.columns = frame.columns.map(str)
    return frame


def fitted_to_columns(model: Any, frame: Any, y: NDArray[np.void], weight: Floats | None) -> Any:
    """A copy of a model that takes columns, fitted to the rows of a new frame."""
    own = {"event_col": y["event"], "duration_col": y["time"]}
    if "entry" in (y.dtype.names or ()):
        own["entry_col"] = y["entry"]
    if weight is not None:
        own["weights_col"] = weight
    names = {name: f"_bristlecone_{name}" for name in own}
    for name, values in own.items():
        frame[names[name]] = values
    return deepcopy(model).fit(frame, **names)


def risk_of(model: Any, X: Any, times: Floats, what: str) -> Floats:
    """Risk of every row, greater for an earlier event.

    It is the relative hazard or the risk that the model predicts, else the cumulative hazard summed
    over ``times``, the event times of the training rows.

    Raises
    ------
    TypeError
        If the model predicts no risk; ``what`` says who needs it.
    """
    if hasattr(model, _RISK[0]):
        return np.asarray(model.predict_partial_hazard(frame_of(X)), dtype=np.float64).ravel()
    if hasattr(model, "predict") and not takes_columns(model):
        predicted = np.asarray(model.predict(X), dtype=np.float64)
        return predicted if getattr(model, _SIGN, True) else -predicted
    return np.asarray(hazard_of(model, X, times, what).at(times).sum(axis=1))


def survival_of(model: Any, X: Any, times: Floats, what: str) -> SteppedCurves:
    """Survival curves of the rows; functions without steps are evaluated at ``times``.

    Raises
    ------
    TypeError
        If the model predicts no curves, or in a form that cannot be read.
    """
    method = _method_of(model, (*_SURVIVAL, *_HAZARD), what)
    found = _curves(model, X, times, method)
    return SteppedCurves(found.x, np.exp(-found.y), 1.0) if method in _HAZARD else found


def hazard_of(model: Any, X: Any, times: Floats, what: str) -> SteppedCurves:
    """Cumulative hazards of the rows: as predicted, or else minus the logarithm of survival.

    Raises
    ------
    TypeError
        As ``survival_of``.
    ValueError
        If a cumulative hazard is negative.
    """
    method = _method_of(model, (*_HAZARD, *_SURVIVAL), what)
    found = _curves(model, X, times, method)
    if method in _SURVIVAL:
        with np.errstate(divide="ignore"):
            found = SteppedCurves(found.x, -np.log(found.y), 0.0)
    if (found.y < 0).any():
        row = int(np.flatnonzero((found.y < 0).any(axis=1))[0])
        raise ValueError(f"{_name(model)} predicts a negative cumulative hazard for row {row}")
    return found


def _method_of(model: Any, names: tuple[str, ...], what: str) -> str:
    """The first of these methods that the model has."""
    method = next((name for name in names if hasattr(model, name)), None)
    if method is None:
        raise TypeError(
            f"{what} needs survival curves, but {_name(model)} has neither "
            "predict_survival_function nor predict_cumulative_hazard_function. If it predicts "
            "risks, the metrics concordance, uno and auc score them"
        )
    return method


def _curves(model: Any, X: Any, times: Floats, method: str) -> SteppedCurves:
    """Predictions by this method."""
    before = 1.0 if method in _SURVIVAL else 0.0
    rows = frame_of(X) if takes_columns(model) else X
    try:
        found = getattr(model, method)(rows)
    except ValueError as error:
        raise ValueError(f"{method} of {_name(model)} failed: {error}") from error
    if hasattr(found, "index") and hasattr(found, "columns"):
        # As in lifelines: one row per time, one column per row of X.
        x, y = np.asarray(found.index, dtype=np.float64), found.to_numpy(dtype=np.float64).T
    elif len(found) and all(callable(one) for one in found):
        x, y = _stepped(list(found), times, before)
    else:
        x, y = _times_of(model, method, np.shape(found)), np.asarray(found, dtype=np.float64)
    if y.shape != (len(rows), x.size):
        raise TypeError(
            f"{method} of {_name(model)} returns an array of shape {y.shape}; expected "
            f"({len(rows)}, {x.size}), rows and times"
        )
    if not (np.diff(x) > 0).all():
        raise TypeError(f"{method} of {_name(model)}: its times do not ascend strictly")
    return SteppedCurves(x, y, before)


def _stepped(functions: list[Any], times: Floats, before: float) -> tuple[Floats, Floats]:
    """Functions of time at all their steps; those without steps at ``times``."""
    if all(getattr(one, "smooth", False) for one in functions):
        # Curves of soft trees, which list their values at the training times.
        return times, np.array([one(times) for one in functions])
    if not all(hasattr(one, "x") for one in functions):
        return times, np.array([[float(one(t)) for t in times] for one in functions])
    by_id = {id(one.x): np.asarray(one.x, dtype=np.float64) for one in functions}
    x = np.unique(np.concatenate(list(by_id.values())))
    # They are only called at their own steps, because packages differ elsewhere.
    place = {key: np.searchsorted(steps, x, side="right") for key, steps in by_id.items()}
    return x, np.array([np.append(before, one(one.x))[place[id(one.x)]] for one in functions])


def _times_of(model: Any, method: str, shape: tuple[int, ...]) -> Floats:
    """Times of the columns of an array that a model returned."""
    for name in ("unique_times_", "event_times_"):
        x = np.asarray(getattr(model, name, ()), dtype=np.float64)
        if len(shape) == 2 and x.shape == (shape[1],):
            return x
    raise TypeError(
        f"{method} of {_name(model)} returns values of shape {shape} without times: it must return "
        "functions, a data frame with the times as index, or one column per entry of its "
        "unique_times_ or event_times_"
    )


def _name(model: Any) -> str:
    return type(model).__name__
