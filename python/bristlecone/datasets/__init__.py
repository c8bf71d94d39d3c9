"""Small public survival data sets that come with the package.

``describe`` returns the source, the terms of use and the meaning of the columns of each data set.
The README beside the files lists them, too.
"""

from __future__ import annotations

import json
import textwrap
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.frame import correctly_rounded
from bristlecone._data.outcomes import outcome

__all__ = ["Dataset", "DatasetInfo", "describe", "list_datasets", "load"]

_OUTCOME = ("event", "time")


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a data set.

    Attributes
    ----------
    name, title : str
    rows, events : int
        Rows, and rows with an event.
    source, licence, citation : str
        Origin of the file, its terms of use, and the citation.
    changes : str
        How the bundled file differs from its source.
    event, time, time_unit : str
        Meaning of the event, start of the time, and its unit.
    columns : dict of str to str
        Meaning of every feature, in the order of the columns.

    See Also
    --------
    describe : Return the description by name.

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
    X : pandas DataFrame, shape (n, n_columns)
        Features, with the column names of the data set.
    y : structured array, shape (n,)
        Fields ``event`` (bool; false is right-censored) and ``time`` (float64).
    info : DatasetInfo

    See Also
    --------
    load : Return the data set by name.

    Examples
    --------
    >>> from bristlecone.datasets import load
    >>> load("veterans").y.dtype.names
    ('event', 'time')
    """

    X: Any
    y: NDArray[np.void]
    info: DatasetInfo

    def __repr__(self) -> str:
        info, columns = self.info, textwrap.fill(", ".join(self.X.columns), 88)
        size = f"{info.rows:,} rows, {info.events:,} events, {len(info.columns)} columns"
        return f"<{info.name}: {info.title}; {size}>\n{columns}"


def list_datasets() -> list[str]:
    """Names of the data sets that ``load`` accepts.

    See Also
    --------
    load : Load one of them.

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
        If there is no data set of this name.

    See Also
    --------
    load : Load the data.

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
    return deepcopy(registry[name])  # its columns are a dictionary, which the user may change


def load(name: str) -> Dataset:
    """Load a bundled data set.

    Parameters
    ----------
    name : str
        One of ``list_datasets()``.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If there is no data set of this name.

    See Also
    --------
    list_datasets : Names of the data sets.
    describe : Source and terms of use.

    Examples
    --------
    >>> from bristlecone.datasets import load
    >>> veterans = load("veterans")
    >>> veterans.X.shape
    (137, 6)
    >>> veterans.y[:2].tolist()
    [(True, 72.0), (True, 411.0)]
    """
    import pandas as pd

    info = describe(name)
    with (resources.files(__name__) / f"{name}.csv").open("rb") as file:
        # Only empty cells are missing values; "NA" would be a category.
        frame = pd.read_csv(file, keep_default_na=False, na_values=[""], **correctly_rounded())
    y = outcome(frame["event"], frame["time"])
    return Dataset(frame.drop(columns=list(_OUTCOME)), y, info)


@cache
def _registry() -> dict[str, DatasetInfo]:
    text = (resources.files(__name__) / "registry.json").read_text(encoding="utf-8")
    return {name: DatasetInfo(name=name, **entry) for name, entry in json.loads(text).items()}
