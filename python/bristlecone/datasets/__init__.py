"""Small public survival data sets that come with the package.

Where each one comes from, under which terms, and what its columns mean is in ``describe`` and in
the README beside the files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.data.frame import Frame
from bristlecone.data.outcomes import outcome
from bristlecone.data.reading import read_csv

__all__ = ["Dataset", "DatasetInfo", "describe", "list_datasets", "load"]

_OUTCOME = ("event", "time")
_FRAMES = ("auto", "pandas", "polars", "plain")


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set.

    Attributes
    ----------
    name, title : str
    rows, events : int
        Rows, and rows with an event.
    source, licence, citation : str
        Where the file comes from, its terms, and what to cite.
    changes : str
        How the bundled file differs from its source.
    event, time, time_unit : str
        What the event is, what the time is counted from, and its unit.
    columns : dict of str to str
        Meaning of every feature, in the order of the columns.

    See Also
    --------
    describe : Gives it by name.

    Examples
    --------
    >>> from bristlecone.datasets import describe
    >>> info = describe("veterans")
    >>> info.rows, info.events, info.time_unit
    (137, 128, 'days')
    """

    name: str
    title: str
    rows: int
    events: int
    source: str
    licence: str
    citation: str
    changes: str
    event: str
    time: str
    time_unit: str
    columns: dict[str, str]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and outcomes.

    Attributes
    ----------
    X : DataFrame or Frame, shape (n, n_columns)
        Features in the set's own columns.
    y : structured array, shape (n,)
        Fields ``event`` (bool; false is right-censored) and ``time`` (float64).
    info : DatasetInfo

    See Also
    --------
    load : Gives it by name.

    Examples
    --------
    >>> from bristlecone.datasets import load
    >>> load("veterans").y.dtype.names
    ('event', 'time')
    """

    X: Any
    y: NDArray[np.void]
    info: DatasetInfo


def list_datasets() -> list[str]:
    """Names that ``load`` knows.

    See Also
    --------
    load : Reads one of them.

    Examples
    --------
    >>> from bristlecone.datasets import list_datasets
    >>> "veterans" in list_datasets()
    True
    """
    return sorted(_registry())


def describe(name: str) -> DatasetInfo:
    """Source, terms, size and columns of a data set.

    Parameters
    ----------
    name : str
        One of ``list_datasets()``.

    Returns
    -------
    DatasetInfo

    Raises
    ------
    ValueError
        When there is no set of this name.

    See Also
    --------
    load : The data themselves.

    Examples
    --------
    >>> from bristlecone.datasets import describe
    >>> list(describe("veterans").columns)[:3]
    ['Age_in_years', 'Celltype', 'Karnofsky_score']
    """
    registry = _registry()
    if name not in registry:
        close = get_close_matches(str(name), registry, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"no data set named {name!r}; {hint}the bundled ones are {', '.join(sorted(registry))}"
        )
    return registry[name]


def load(name: str, *, as_frame: str = "auto") -> Dataset:
    """Load a bundled data set.

    Parameters
    ----------
    name : str
        One of ``list_datasets()``.
    as_frame : {"auto", "pandas", "polars", "plain"}, default="auto"
        What ``X`` is: a pandas or polars DataFrame, or a ``Frame``, which needs
        neither and which every estimator accepts. "auto" is the first that is installed.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        For an unknown name or value of ``as_frame``.
    ImportError
        When the library asked for is not installed.

    See Also
    --------
    list_datasets : Names of the sets.
    describe : Source and terms.

    Examples
    --------
    >>> from bristlecone.datasets import load
    >>> veterans = load("veterans")
    >>> veterans.X.shape
    (137, 6)
    >>> veterans.y[:2].tolist()
    [(True, 72.0), (True, 411.0)]
    """
    if as_frame not in _FRAMES:
        raise ValueError(f"as_frame must be one of {', '.join(_FRAMES)}; got {as_frame!r}")
    info = describe(name)
    frame = load_frame(name)
    y = outcome(frame["event"], frame["time"])
    return Dataset(_as_frame(frame.drop(_OUTCOME), as_frame), y, info)


def load_frame(name: str) -> Frame:
    """All columns of a bundled set: the features, then ``event`` (0 or 1) and ``time``."""
    with resources.as_file(resources.files(__name__) / f"{describe(name).name}.csv") as path:
        return read_csv(path)


@cache
def _registry() -> dict[str, DatasetInfo]:
    text = (resources.files(__name__) / "registry.json").read_text(encoding="utf-8")
    return {name: DatasetInfo(name=name, **entry) for name, entry in json.loads(text).items()}


def _as_frame(frame: Frame, kind: str) -> Any:
    if kind == "auto":
        kind = next((name for name in ("pandas", "polars") if find_spec(name)), "plain")
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(dict(frame))
    if kind == "polars":
        import polars

        return polars.DataFrame({name: _without_nan(values) for name, values in frame.items()})
    return frame


def _without_nan(values: NDArray[Any]) -> Any:
    """Values with None in place of NaN: polars distinguishes NaN from null."""
    if values.dtype.kind == "f":
        return [None if value != value else value for value in values.tolist()]
    return values.tolist()
