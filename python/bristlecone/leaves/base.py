"""Base classes of the leaves of a fitted tree, which are one value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

__all__ = ["Leaves", "SurvivalLeaves", "view"]

Floats = NDArray[np.float64]
Columns = list[tuple[str, NDArray[Any]]]


def view(of: str, name: str, text: str) -> Any:
    """Attribute of a fitted tree that stands for one of its ``leaves_`` or ``certificate_``."""

    def get(tree: Any) -> Any:
        if not hasattr(tree, of):
            check_is_fitted(tree)
        return getattr(getattr(tree, of), name)

    return property(get, doc=text)


class Leaves(ABC):
    """Leaves of a fitted tree, left to right: all that is known and predicted of their rows.

    A value: nothing in it changes after the fit, and no prediction depends on anything else.
    """

    def locate(self, leaf: NDArray[np.int64], design: NDArray[Any]) -> Any:
        """Argument ``rows`` of the predictions, from the rows' leaf and features.

        Leaves that treat all their rows alike need the position only.
        """
        return leaf

    @abstractmethod
    def facts(self) -> list[dict[str, Any]]:
        """What to tell of every leaf, as plain JSON types."""

    @abstractmethod
    def text(self, facts: Mapping[str, Any]) -> str:
        """One entry of ``facts`` in a few words."""

    @abstractmethod
    def table(self, times: Sequence[float], confidence: float) -> Columns:
        """Columns of a table with one row per leaf.

        Survival leaves add what they predict at ``times``, with intervals of this confidence.
        """


class SurvivalLeaves(Leaves):
    """Leaves that predict survival; ``rows`` are what ``locate`` returns."""

    @property
    @abstractmethod
    def unique_times(self) -> Floats:
        """Distinct training times, ascending."""

    @property
    @abstractmethod
    def event_times(self) -> Floats:
        """Distinct training times at which an event happened, ascending."""

    @abstractmethod
    def risk(self, rows: Any) -> Floats:
        """Risk score of every row, shape (n,); higher means an earlier event."""

    @abstractmethod
    def survival(self, rows: Any, times: Floats) -> Floats:
        """S of every row at ``times``, shape (n, n_times)."""

    @abstractmethod
    def cumulative_hazard(self, rows: Any, times: Floats) -> Floats:
        """H of every row at ``times``, shape (n, n_times)."""

    @abstractmethod
    def functions(self, rows: Any, *, survival: bool) -> NDArray[np.object_]:
        """S, or H, of every row as a function of time, shape (n,)."""

    @abstractmethod
    def quantiles(self, rows: Any, levels: Floats) -> Floats:
        """First times by which shares ``levels`` have had the event, shape (n, n_levels)."""

    @abstractmethod
    def rmst(self, rows: Any, tau: float) -> Floats:
        """∫ S from 0 to ``tau`` of every row, shape (n,)."""

    @abstractmethod
    def ranks(self, rows: Any) -> NDArray[Any]:
        """Numbers in the order of the risk, further apart than the tolerance of concordance."""
