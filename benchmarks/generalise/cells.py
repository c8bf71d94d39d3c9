"""Cells of a study: models, their conditions, and processes that compute them."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from benchmarks.generalise import labels, simulated, survival
from benchmarks.generalise.frames import CONDITIONS

Scores = list[dict[str, float]]
# Module, titles of its scores, and what a report says of them.
PARTS: dict[str, tuple[Any, dict[str, str], str]] = {
    "survival": (survival, survival.SCORES, survival.ABOUT),
    "simulated": (simulated, simulated.SCORES, simulated.ABOUT),
    "classification": (labels, labels.CLASS_SCORES, labels.CLASS_ABOUT),
    "regression": (labels, labels.NUMBER_SCORES, labels.NUMBER_ABOUT),
}
# Where less is better, or neither: such scores are shown without a difference.
WITHOUT_DIFFERENCE = ("leaves", "proven", "seconds")


class Cell(NamedTuple):
    """A model on a set: the divisions that are still to be computed."""

    part: str
    name: str
    model: str
    divisions: tuple[int, ...]
    parameters: dict[str, Any]
    folds: int
    most_rows: int
    seed: int


def under(parameters: dict[str, Any]) -> str:
    """The conditions of a model in words, to be added to its name."""
    words = ""
    if "most_rows" in parameters:
        words += f", sets of at most {parameters['most_rows']} rows"
    if "train_rows" in parameters:
        words += f", {parameters['train_rows']} training rows"
    if parameters.get("censor"):
        words += f", {parameters['censor']:.0%} of events censored"
    return words


def chosen_models(
    known: dict[str, dict[str, Any]], patterns: list[str] | None
) -> dict[str, dict[str, Any]]:
    """The models whose name matches one of the patterns; all without patterns."""
    if patterns is None:
        return dict(known)
    models = {}
    for pattern in patterns:
        # A name with brackets or the like is meant as it is.
        found = [pattern] if pattern in known else fnmatch.filter(known, pattern)
        if not found:
            raise ValueError(f"no model matches {pattern!r}")
        models |= {name: known[name] for name in found}
    return models


def with_conditions(
    models: dict[str, dict[str, Any]], **values: list[Any] | None
) -> dict[str, dict[str, Any]]:
    """Every model under every combination of the conditions that were given."""
    given = [[(key, value) for value in values[key]] for key in CONDITIONS if values.get(key)]
    varied = {}
    for combination in itertools.product(*given):
        for name, parameters in models.items():
            changed = parameters | dict(combination)
            if not changed.get("censor"):
                changed.pop("censor", None)
            base = name.removesuffix(under(parameters))
            varied[base + under(changed)] = changed
    return varied


def compute(cell: Cell) -> Scores:
    """Scores of the divisions of a cell, by one thread."""
    module = PARTS[cell.part][0]
    with threadpool_limits(limits=1):
        data = _loaded(cell.part, cell.name, cell.most_rows, cell.seed)
        return [
            module.run_cell(data, cell.parameters, cell.folds, cell.seed + division)
            for division in cell.divisions
        ]


@functools.lru_cache(maxsize=2)
def _loaded(part: str, name: str, most_rows: int, seed: int) -> Any:
    return PARTS[part][0].load(name, most_rows, seed)


def computed(cells: list[Cell], jobs: int) -> Iterator[tuple[Cell, Scores | Exception]]:
    """Every cell with its scores, or the error that ended it, as they become ready."""
    if jobs == 1:
        for cell in cells:
            try:
                yield cell, compute(cell)
            except Exception as error:
                yield cell, error
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        ready: dict[Future[Scores], Cell] = {pool.submit(compute, cell): cell for cell in cells}
        for future in as_completed(ready):
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            yield ready[future], error or future.result()
