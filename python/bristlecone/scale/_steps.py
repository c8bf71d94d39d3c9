"""Work of the passes on one partition: counts and sums that can be added up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import transposed
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import Feature
from bristlecone._encoder.partitions import (
    ColumnCounts,
    RowsDivided,
    checksum_of,
    part_answers,
)
from bristlecone._encoder.use import count_answers, missing_by_feature, packed
from bristlecone._search.engine import Sums
from bristlecone._search.row_sums import RowSums
from bristlecone._tree import Tree
from bristlecone._types import Bools, Floats, Integers
from bristlecone.scale._outcomes import Outcomes, Roles, read_outcomes
from bristlecone.scale._sources import select

# From this number of cells per row on, only cells with rows are added.
_FEW_CELLS = 4


@dataclass(frozen=True)
class OutcomeStep:
    """Distinct outcomes."""

    roles: Roles
    name: str = "outcomes"

    @property
    def columns(self) -> Sequence[str]:
        """Columns of the outcome."""
        return self.roles.names

    def start(self) -> Outcomes:
        """No outcomes."""
        return Outcomes()

    def add(self, state: Outcomes, part: int, frame: Any) -> dict[str, int]:
        """Add a partition."""
        state.add(read_outcomes(self.roles, frame))
        return {}


@dataclass(frozen=True)
class _WithOutcomes(ABC):
    """Base of steps that read features, and the position of every row's outcome.

    ``place`` is the training row of every outcome, or -1 if there is none.
    """

    roles: Roles
    outcomes: Outcomes
    place: Integers

    @property
    @abstractmethod
    def asked(self) -> Sequence[str]:
        """Columns of the features."""

    @property
    def needs_outcomes(self) -> bool:
        """Whether the outcomes of the rows are read."""
        return True

    @property
    def columns(self) -> Sequence[str]:
        """Columns of the features, and of the outcome if it is needed, without repetition."""
        needed = self.roles.names if self.needs_outcomes else []
        return list(dict.fromkeys([*self.asked, *needed]))

    @property
    def leaves_out(self) -> bool:
        """Whether there are rows without weight."""
        return self.outcomes.n_left_out > 0 or bool((self.place < 0).any())

    def places(self, frame: Any) -> tuple[Integers, dict[str, int]]:
        """Training row of every row of a partition, -1 if it is left out, and their checksum."""
        found = self.outcomes.index(read_outcomes(self.roles, frame))
        place = np.where(found < 0, -1, self.place[found])
        return place, {"(outcomes)": checksum_of(place)}


@dataclass(frozen=True)
class ColumnStep(_WithOutcomes):
    """Values of the features' columns; ``weight`` is that of the training rows."""

    features: Sequence[str]
    weight: Floats | None
    name: str = "columns"

    @property
    def asked(self) -> Sequence[str]:
        """The columns themselves."""
        return self.features

    @property
    def needs_outcomes(self) -> bool:
        """Whether rows have weights or are left out."""
        return self.weight is not None or self.leaves_out

    def start(self) -> ColumnCounts:
        """No values."""
        return ColumnCounts(self.features, self.weight is not None)

    def add(self, state: ColumnCounts, part: int, frame: Any) -> dict[str, int]:
        """Add a partition."""
        weight = present = None
        checks: dict[str, int] = {}
        if self.needs_outcomes:
            place, checks = self.places(frame)
            present = None if (place >= 0).all() else place >= 0
            shown = place if present is None else place[present]
            weight = None if self.weight is None else self.weight[shown]
        return checks | state.add(select(frame, self.features), weight, present)


@dataclass(frozen=True)
class _WithAnswers(_WithOutcomes):
    """Base of steps that need the answers of every row to some features of an encoder."""

    encoder: BinaryEncoder
    features: Sequence[Feature]

    @property
    def asked(self) -> Sequence[str]:
        """Columns of the features."""
        return [feature.column for feature in self.features]

    def answers(self, frame: Any) -> tuple[Bools, Integers, dict[str, int]]:
        """Answers (n_features, n), training row of every row, and the checksums of both."""
        place, own = self.places(frame)
        answers, checks = part_answers(self.encoder, frame, self.features)
        return answers, place, checks | own


@dataclass(frozen=True)
class RepeatStep(_WithAnswers):
    """How some features divide the rows."""

    name: str = "repeated features"

    @property
    def needs_outcomes(self) -> bool:
        """Whether rows are left out."""
        return self.leaves_out

    def start(self) -> RowsDivided:
        """No rows."""
        return RowsDivided(self.features)

    def add(self, state: RowsDivided, part: int, frame: Any) -> dict[str, int]:
        """Add a partition."""
        if self.leaves_out:
            answers, place, checks = self.answers(frame)
            state.add(answers, part, place >= 0)
        else:
            answers, checks = part_answers(self.encoder, frame, self.features)
            state.add(answers, part, None)
        return checks


class SumState:
    """Sums of a partition: the engine's, and counts of the features.

    Attributes
    ----------
    sums : Sums
        Those of the engine.
    among : int64 array of shape (n_features,)
        Rows with an event for which each feature holds.
    rows : RowSums
        Fingerprint of the rows.
    """

    def __init__(self, sums: Sums, n_features: int) -> None:
        self.sums = sums
        self.among = np.zeros(n_features, dtype=np.int64)
        self.rows = RowSums(n_features)

    def merge(self, other: SumState) -> None:
        """Add the sums of other partitions."""
        self.sums.merge(other.sums)
        self.among += other.among
        self.rows.merge(other.rows)


@dataclass(frozen=True)
class SumStep(_WithAnswers):
    """Sums over sets of features; ``make`` makes empty ones, ``event`` marks training rows."""

    make: Callable[[], Sums]
    event: Bools | None
    digests: NDArray[np.uint64]
    name: str = "sums"

    def start(self) -> SumState:
        """No rows."""
        return SumState(self.make(), len(self.features))

    def add(self, state: SumState, part: int, frame: Any) -> dict[str, int]:
        """Add a partition."""
        answers, place, checks = self.answers(frame)
        if (place < 0).any():
            answers, place = answers[:, place >= 0], place[place >= 0]
        features = packed(transposed(answers))
        state.sums.add(features, place.astype(np.uint32))
        if self.event is not None:
            state.among += count_answers(features, self.event[place]).among
        state.rows.add(features, self.digests[place])
        return checks


class Counts:
    """Rows by cell: counts that can be added, shape (n_cells, n_training_rows), and by node."""

    def __init__(self, shape: tuple[int, int], n_nodes: int = 0) -> None:
        self.rows: Integers = np.zeros(shape, dtype=np.int64)
        self.n_missing: Integers = np.zeros(n_nodes, dtype=np.int64)

    def add(self, cell: Integers, place: Integers) -> None:
        """Count rows by their cell and training row."""
        key = cell * self.rows.shape[1] + place
        if self.rows.size > _FEW_CELLS * max(len(key), 1):
            found, count = np.unique(key, return_counts=True)
            self.rows.ravel()[found] += count
        else:
            flat = np.bincount(key, minlength=self.rows.size)
            self.rows += flat.reshape(self.rows.shape)

    def merge(self, other: Counts) -> None:
        """Add the counts of other partitions."""
        self.rows += other.rows
        self.n_missing += other.n_missing


@dataclass(frozen=True)
class SideStep(_WithAnswers):
    """Outcomes of the rows for which each feature is true."""

    n_rows: int
    name: str = "event-free sides"

    def start(self) -> Counts:
        """No rows."""
        return Counts((len(self.features), self.n_rows))

    def add(self, state: Counts, part: int, frame: Any) -> dict[str, int]:
        """Add a partition."""
        answers, place, checks = self.answers(frame)
        for k, answer in enumerate(answers):
            shown = place[answer & (place >= 0)]
            state.add(np.full(len(shown), k), shown)
        return checks


@dataclass(frozen=True)
class LeafStep(_WithAnswers):
    """Outcomes of the rows of every leaf of a tree; ``used`` are the places of its features."""

    tree: Tree
    used: Sequence[int]
    n_rows: int
    name: str = "leaves"

    def start(self) -> Counts:
        """No rows."""
        return Counts((self.tree.n_leaves, self.n_rows), self.tree.node_count)

    def add(self, state: Counts, part: int, frame: Any) -> dict[str, int]:
        """Add a partition."""
        answers, place, checks = self.answers(frame)
        kept = place >= 0
        rows = np.zeros((len(place), len(self.encoder.features_)), dtype=bool, order="F")
        rows[:, self.used] = answers.T
        missing = missing_by_feature(self.encoder, frame, self.used)
        if not kept.all():
            place, rows = place[kept], rows[kept]
            missing = {k: mask[kept] for k, mask in missing.items()}
        state.add(self.tree.leaf_index(rows), place)
        if missing:
            state.n_missing += self.tree.missing_counts(rows, missing)
        return checks
