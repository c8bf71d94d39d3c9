"""``bristlecone predict``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from bristlecone._cli.columns import TEXT
from bristlecone._cli.features import known_columns
from bristlecone._cli.tables import (
    DataFile,
    check_column,
    csv_text,
    open_table,
    output,
    shown,
    write_output,
)
from bristlecone._data.arrays import type_name
from bristlecone._model.registry import load_model
from bristlecone.export._program import named_times

Columns = dict[str, NDArray[Any]]


def run(arguments: argparse.Namespace) -> int:
    """Write the predictions of a saved tree."""
    times = named_times(arguments.times)
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
        if arguments.id.count(name) > 1:
            raise ValueError(f"--id: {name!r} is given twice")
    X = known_columns(estimator, table, arguments.model, arguments.na)
    if hasattr(estimator, "predict_cumulative_incidence"):
        predicted = _incidence(estimator, X, times, 1 if cause is None else cause)
    else:
        predicted = _predictions(estimator, X, times)
    columns = {"leaf": estimator.apply(X), **predicted}
    write_output(csv_text({**_copied(table, arguments.id, columns), **columns}), target)
    return 0


def _predictions(estimator: Any, X: Any, times: dict[str, float]) -> Columns:
    """Predictions of a tree without causes, by the methods that it has."""
    if hasattr(estimator, "predict_survival_function"):
        columns = {"risk": estimator.predict(X), "model_median": estimator.predict_median(X)}
        if times:
            survival = estimator.predict_survival_function(X, times=list(times.values()))
            columns |= _by_name("survival", times, survival)
        return columns
    columns = {"prediction": estimator.predict(X)}
    if hasattr(estimator, "predict_proba"):
        labels, shares = estimator.classes_.tolist(), estimator.predict_proba(X)
        columns |= _by_name("probability", labels, shares)
    elif hasattr(estimator, "predict_outcomes"):
        labels, outcomes = estimator.treatments_.tolist(), estimator.predict_outcomes(X)
        columns |= _by_name("outcome", labels, outcomes)
    return columns


def _incidence(estimator: Any, X: Any, times: dict[str, float], cause: int) -> Columns:
    columns: Columns = {"risk": estimator.predict(X, cause)}
    if times:
        at = list(times.values())
        incidence = estimator.predict_cumulative_incidence(X, cause, times=at)
        survival = estimator.predict_survival_function(X, times=at)
        columns |= _by_name("incidence", times, incidence) | _by_name("survival", times, survival)
    return columns


def _by_name(what: str, names: Iterable[Any], values: NDArray[Any]) -> Columns:
    """A matrix as columns: one for every time or label."""
    return dict(zip([f"{what}_{shown(name)}" for name in names], values.T, strict=True))


def _copied(table: DataFile, names: list[str], columns: Columns) -> Columns:
    """Columns that are copied to the output unchanged."""
    for name in names:
        if name in columns:
            raise ValueError(f"--id: the output has a column {name!r} of its own")
    if not names:
        return {}
    frame = table.read(names, kinds=dict.fromkeys(names, TEXT))
    return {name: frame[name].fillna("").to_numpy() for name in names}
