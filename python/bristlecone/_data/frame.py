"""Data frames: the library of a user's frame, and frames of this library and of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray


def frame_backend(X: Any) -> str:
    """Name of the library of a data frame, such as "polars"; "pandas" for anything else."""
    if isinstance(X, (np.ndarray, list)) or not nw.dependencies.is_into_dataframe(X):
        return "pandas"
    return str(nw.get_native_namespace(X).__name__)


def native_frame(columns: Sequence[tuple[str, NDArray[Any]]], backend: str) -> Any:
    """Columns as a data frame of this library (as from ``frame_backend``)."""
    return nw.from_dict(dict(columns), backend=cast(Any, backend)).to_native()


def correctly_rounded() -> dict[str, str]:
    """Options with which ``pandas.read_csv`` rounds numbers correctly.

    From 3.1 on this is the default of pandas, which warns of the option.
    """
    import pandas as pd

    major, minor = pd.__version__.split(".")[:2]
    return {} if (int(major), int(minor)) >= (3, 1) else {"float_precision": "round_trip"}
