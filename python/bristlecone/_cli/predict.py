"""``bristlecone predict``."""

from __future__ import annotations

import argparse
import csv
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._cli.columns import TEXT
from bristlecone._cli.features import known_columns
from bristlecone._cli.tables import DataFile, check_column, open_table, output, shown
from bristlecone._data.arrays import type_name
from bristlecone._model.files import write_files
from bristlecone._model.registry import load_model

Columns = dict[str, NDArray[Any]]


def run(arguments: argparse.Namespace) -> int:
    """Write the predictions of a saved tree."""
    times = _times(arguments.times)
    target = None
    if arguments.out is not None:
        target = output("--out", arguments.out, arguments.data, arguments.model)
    estimator: Any = load_model(arguments.model)
    if times and not hasattr(estimator, "predict_survival_function"):
        raise ValueError(
            f"--times: {arguments.model} is {type_name(estimator)}, which does not predict survival"
        )
    cause = arguments.cause
    if cause is not None and not hasattr(estimator, "predict_cumulative_incidence"):
        raise ValueError(
            f"--cause: {arguments.model} is {type_name(estimator)}, which has no causes"
        )
    table = open_table(arguments.data)
    for name in arguments.id:
        check_column(name, table.columns, "--id")
    X = known_columns(estimator, table, arguments.model, arguments.na)
    if hasattr(estimator, "predict_cumulative_incidence"):
        predicted = _incidence(estimator, X, times, 1 if cause is None else cause)
    else:
        predicted = _predictions(estimator, X, times)
    columns = {"leaf": estimator.apply(X), **predicted}
    _write({**_copied(table, arguments.id, columns), **columns}, target)
    return 0


def _times(times: list[float]) -> dict[str, float]:
    """Times with the fewest digits that keep them distinct."""
    named: dict[str, float] = {}
    for time in times:
        if not (np.isfinite(time) and time >= 0):
            raise ValueError(f"--times: {time:g} is not a finite time of at least 0")
        name = repr(time).removesuffix(".0")
        if name in named:
            raise ValueError(f"--times: {name} is given twice")
        named[name] = time
    return named


def _predictions(estimator: Any, X: Any, times: dict[str, float]) -> Columns:
    """Predictions of the tree by the first of these methods that it has."""
    for method, columns in (
        ("predict_survival_function", _survival),
        ("predict_proba", _probabilities),
        ("predict_outcomes", _outcomes),
    ):
        if hasattr(estimator, method):
            return columns(estimator, X, times)
    return {"prediction": estimator.predict(X)}


def _survival(estimator: Any, X: Any, times: dict[str, float]) -> Columns:
    columns = {"risk": estimator.predict(X), "model_median": estimator.predict_median(X)}
    if times:
        survival = estimator.predict_survival_function(X, times=list(times.values()))
        for name, values in zip(times, survival.T, strict=True):
            columns[f"survival_{name}"] = values
    return columns


def _incidence(estimator: Any, X: Any, times: dict[str, float], cause: int) -> Columns:
    columns = {"risk": estimator.predict(X, cause)}
    if times:
        at = list(times.values())
        incidence = estimator.predict_cumulative_incidence(X, cause, times=at)
        survival = estimator.predict_survival_function(X, times=at)
        for what, values in (("incidence", incidence), ("survival", survival)):
            columns |= {f"{what}_{name}": x for name, x in zip(times, values.T, strict=True)}
    return columns


def _probabilities(estimator: Any, X: Any, times: dict[str, float]) -> Columns:
    return {
        "prediction": estimator.predict(X),
        **_by_label("probability", estimator.classes_, estimator.predict_proba(X)),
    }


def _outcomes(estimator: Any, X: Any, times: dict[str, float]) -> Columns:
    return {
        "prediction": estimator.predict(X),
        **_by_label("outcome", estimator.treatments_, estimator.predict_outcomes(X)),
    }


def _by_label(what: str, labels: NDArray[Any], values: NDArray[Any]) -> Columns:
    names = [f"{what}_{shown(label)}" for label in labels.tolist()]
    return dict(zip(names, values.T, strict=True))


def _copied(table: DataFile, names: list[str], columns: Columns) -> Columns:
    """Columns that are copied to the output unchanged."""
    for name in names:
        if name in columns:
            raise ValueError(f"--id: the output has a column {name!r} of its own")
    if not names:
        return {}
    frame = table.read(names, kinds=dict.fromkeys(names, TEXT))
    return {name: frame[name].fillna("").to_numpy() for name in names}


def _write(columns: Columns, target: Any) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    if target is None:
        print(text.getvalue(), end="")
    else:
        write_files({target: text.getvalue()})


def _cells(values: NDArray[Any]) -> list[Any]:
    """Values in the form of the output; true and false keep their spelling."""
    return [shown(value) if isinstance(value, bool) else value for value in values.tolist()]
