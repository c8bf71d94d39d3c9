"""Distinct outcomes of all partitions, with the number of rows of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import as_array, listed
from bristlecone._data.frame import native_frame
from bristlecone._data.groups import codes_of
from bristlecone._data.outcomes import Survival, as_cause, as_structured, as_survival
from bristlecone._data.rows import check_weights
from bristlecone._data.targets import check_numbers
from bristlecone._estimators.causes import MOST_CAUSES, CompetingRisksTree
from bristlecone._estimators.partitioned import POLICIES, SURVIVAL, checked_outcomes
from bristlecone._estimators.regressor import OptimalTreeRegressor
from bristlecone._search.row_sums import OF_ALL
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError

Arrays = dict[str, NDArray[Any]]

# Numbers that a row of positive weight may have. They are checked here, where the row is known.
_RANGES: dict[str, tuple[Callable[[Floats], Bools], str]] = {
    "count": (lambda values: values >= 0, "must not be negative"),
    "exposure": (lambda values: values > 0, "must be positive"),
    "propensity": (lambda values: (values > 0) & (values <= 1), "must lie in (0, 1)"),
    "costs": (lambda values: values >= 0, "must not be negative"),
}

# Most distinct outcomes that are stored.
_MOST_OUTCOMES = 1 << 23


class Roles(NamedTuple):
    """Columns that are not features, by their role; costs and propensities may be several.

    ``kind`` is "survival", "causes", "labels", "numbers", "counts" or "policy".
    """

    kind: str
    columns: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> list[str]:
        """All the columns, without repetition."""
        return list(dict.fromkeys(name for names in self.columns.values() for name in names))


def roles_of(estimator: Any, **given: Any) -> Roles:
    """Columns of the roles that an estimator has; ``given`` are the arguments of the fit.

    Raises
    ------
    InvalidParameterError
        For a role that the estimator does not have, and for a missing one that it needs.
    """
    kind = _kind(estimator)
    needed = {
        "survival": ("time", "event"),
        "causes": ("time", "event"),
        "labels": ("target",),
        "numbers": ("target",),
        "counts": ("target",),
        "policy": ("target", "treatment", "propensity"),
    }[kind]
    optional = {"survival": ("entry",), "causes": ("entry",), "counts": ("exposure",)}.get(kind, ())
    if hasattr(estimator, "cost_matrix"):
        optional = ("costs",)
    if kind not in ("survival", "causes"):
        # Their defaults are the usual names in survival data.
        given = {**given, "time": None, "event": None}
    who = type(estimator).__name__
    columns: dict[str, tuple[str, ...]] = {}
    for role, value in given.items():
        if value is None:
            if role in needed:
                raise InvalidParameterError(f"{role} is needed: name its column for {who}")
            continue
        if role not in (*needed, *optional, "weight"):
            raise InvalidParameterError(f"{role}={value!r}: {who} has no {role}")
        many = role in ("costs", "propensity")
        listed = many and isinstance(value, Iterable) and not isinstance(value, (str, Mapping))
        names = tuple(value) if listed else (value,)
        if not names or not all(isinstance(name, str) for name in names):
            what = "a column, or a list of them" if many else "a column"
            raise InvalidParameterError(f"{role} must name {what}; got {value!r}")
        columns[role] = names
    return Roles(kind, columns)


def _kind(estimator: Any) -> str:
    if isinstance(estimator, SURVIVAL):
        return "causes" if isinstance(estimator, CompetingRisksTree) else "survival"
    if isinstance(estimator, POLICIES):
        return "policy"
    if isinstance(estimator, OptimalTreeRegressor):
        return "counts" if estimator.objective == "poisson" else "numbers"
    return "labels"


def read_outcomes(roles: Roles, frame: Any) -> Arrays:
    """Outcomes of the rows of a partition, checked row by row; arrays of shape (n,) by name.

    Raises
    ------
    ValueError
        As ``fit``: for values that are missing, of a wrong type or out of range. The message names
        the column and the row.
    """
    table = nw.from_native(frame, eager_only=True)
    n_rows = table.shape[0]
    if not n_rows:
        return {}

    def given(role: str) -> list[tuple[Any, str]]:
        names = roles.columns.get(role, ())
        return [(table.get_column(name), f"column {name!r}") for name in names]

    weights = [check_weights(values, label, n_rows) for values, label in given("weight")]

    def numbers(role: str, values: Any, label: str) -> Floats:
        array = check_numbers(label, values, n_rows)
        if role in _RANGES:
            is_within, rule = _RANGES[role]
            wrong = ~is_within(array)
            if weights:
                wrong &= weights[0] > 0
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(f"{label} is {array[row]} in row {row}; {role} {rule}")
        return array

    found: Arrays = {}
    if roles.kind in ("survival", "causes"):
        (event,), (time,), entry = given("event"), given("time"), given("entry")
        # Whether each cause has an event is known once all partitions are read.
        reader = partial(as_cause, most=MOST_CAUSES) if roles.kind == "causes" else None
        survival = as_survival(event, time, entry[0] if entry else None, reader)
        found = {k: v for k, v in survival._asdict().items() if v is not None}
    else:
        (target,) = given("target")
        if roles.kind == "labels":
            found["target"] = _labels(*target, n_rows)
        else:
            found["target"] = numbers("count" if roles.kind == "counts" else "target", *target)
        if "treatment" in roles.columns:
            found["treatment"] = _labels(*given("treatment")[0], n_rows)
        for role in ("exposure", "propensity", "costs"):
            for place, (values, label) in enumerate(given(role)):
                found[f"{role} {place}"] = numbers(role, values, label)
    if weights:
        found["weight"] = weights[0]
    return {
        name: values + 0 if values.dtype.kind == "f" else values for name, values in found.items()
    }


def _labels(values: Any, label: str, n_rows: int) -> NDArray[Any]:
    """Labels of the rows, as ``codes_of`` reads them from the distinct ones."""
    from pandas import factorize

    array = as_array(values, label)
    if array.dtype == object and array.ndim == 1:
        codes, found = factorize(array)
        if (codes < 0).any():
            raise ValueError(f"{label} is missing in row {int(np.argmax(codes < 0))}")
        codes_of(found, len(found), label)
        return array
    classes, codes = codes_of(array, n_rows, label)
    return classes[codes]


def _table(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> Any:
    """Columns side by side, with their names: those of classes or treatments are in any order."""
    if len(set(names)) < len(names):
        return np.column_stack(columns)
    return native_frame(list(zip(names, columns, strict=True)), "pandas")


class Outcomes:
    """Distinct outcomes in sorted order, and the number of rows of each.

    Rows of weight zero are not counted.

    Attributes
    ----------
    columns : dict of arrays, shape (m,)
        What an outcome consists of.
    count : int64 array of shape (m,)
        Rows with each outcome.
    n_left_out : int
        Rows of weight zero.
    """

    def __init__(self) -> None:
        self.columns: Arrays = {}
        self.count: Integers = np.zeros(0, np.int64)
        self.n_left_out = 0
        self._index: Any = None

    def add(self, rows: Arrays) -> None:
        """Count the outcomes of a partition."""
        if not rows:
            return
        if "weight" in rows and not rows["weight"].all():
            kept = rows["weight"] > 0
            self.n_left_out += int(len(kept) - np.count_nonzero(kept))
            rows = {name: values[kept] for name, values in rows.items()}
        self._include(*_grouped(rows, None))

    def merge(self, other: Outcomes) -> None:
        """Add the outcomes of other partitions."""
        self.n_left_out += other.n_left_out
        if other.columns:
            self._include(other.columns, other.count)

    def _include(self, columns: Arrays, count: Integers) -> None:
        if self.columns:
            _check_types(self.columns, columns)
            both = {k: np.concatenate([self.columns[k], columns[k]]) for k in self.columns}
            columns, count = _grouped(both, np.concatenate([self.count, count]))
        self.columns, self.count = columns, count
        if len(count) > _MOST_OUTCOMES:
            sizes = {name: len(np.unique(values)) for name, values in columns.items()}
            most = max(sizes, key=lambda name: sizes[name])
            raise ValueError(
                f"there are more than {_MOST_OUTCOMES:,} distinct outcomes, and {sizes[most]:,} "
                f"values of {most.split(' ')[0]} alone; round it (times to days, weights and "
                "targets to fewer digits)"
            )

    def index(self, rows: Arrays) -> Integers:
        """Position of every row's outcome, shape (n,); -1 for rows that are left out.

        Raises
        ------
        ValueError
            If an outcome is not among them: the rows are not those that were counted.
        """
        if self._index is None:
            self._index = _index_of(self.columns)
        place = _places(self._index, [rows[name] for name in self.columns])
        unknown = place < 0
        if "weight" in rows:
            unknown &= rows["weight"] > 0
        if unknown.any():
            row = int(np.argmax(unknown))
            raise ValueError(
                f"the outcome of row {row} was not there in the first pass: the rows changed "
                "between two passes"
            )
        return place

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None}


def _check_types(known: Arrays, own: Arrays) -> None:
    for name in known:
        kinds = known[name].dtype.kind, own[name].dtype.kind
        is_one = len({"t" if kind in "OU" else kind for kind in kinds}) == 1
        # NumPy joins int64 and uint64 as floats, which would merge large labels.
        are_whole = set(kinds) == {*"iu"} and np.result_type(known[name], own[name]).kind in "iu"
        if not (is_one or are_whole):
            raise ValueError(
                f"{name.split(' ')[0]} has dtype {own[name].dtype} here and {known[name].dtype} in "
                "other partitions; write it with one type"
            )


def _codes(values: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Distinct values in sorted order, and the position of each value among them."""
    from pandas import factorize

    codes, found = factorize(values, sort=True)
    return np.asarray(found), codes


def _grouped(columns: Arrays, count: Integers | None) -> tuple[Arrays, Integers]:
    """Distinct rows of the columns in sorted order, and the number of each."""
    key, distinct = np.zeros(len(next(iter(columns.values()))), dtype=np.int64), []
    for values in columns.values():
        found, code = _codes(values)
        distinct.append(found)
        # There are no more keys than rows, so products stay within 64 bits.
        key = _codes(key * len(found) + code)[1]
    size = int(key.max(initial=-1)) + 1
    first = np.zeros(size, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key))[::-1]
    # Sums of fewer than 2^53 rows are exact in float64.
    rows = np.bincount(key, count, minlength=size).astype(np.int64)
    return {name: values[first] for name, values in columns.items()}, rows


def _index_of(columns: Arrays) -> Any:
    """Index of pandas with the distinct outcomes."""
    from pandas import MultiIndex

    index = MultiIndex.from_arrays(list(columns.values()))
    # Tables of hashes are built by the first look-up, which several threads might do at once.
    for one in (index, *index.levels):
        one.get_indexer(one[:1])
    return index


def _places(index: Any, columns: Sequence[NDArray[Any]]) -> Integers:
    """Position of every row in the index; -1 for others."""
    from pandas import MultiIndex

    pairs = zip(index.levels, columns, strict=True)
    codes = [level.get_indexer(values) for level, values in pairs]
    rows = MultiIndex(levels=index.levels, codes=codes, verify_integrity=False)
    place: Integers = index.get_indexer(rows)
    return place


class Training(NamedTuple):
    """Outcomes as training rows of an estimator.

    Attributes
    ----------
    data : named tuple
        Rows of the distinct outcomes, as the estimator reads its own.
    counts : int64 array
        Rows that each stands for.
    place : int64 array
        Position in ``data`` of every outcome of the table; -1 for those that weigh nothing.
    """

    data: Any
    counts: Integers
    place: Integers

    @property
    def summed(self) -> Any:
        """``data`` in which the weight of an outcome is the total weight of its rows."""
        return self.cells(np.arange(len(self.counts)), self.counts)

    def cells(self, place: Integers, count: Integers) -> Any:
        """Training rows; each stands for ``count`` rows with the outcome at ``place``."""
        of_row = {
            name: values[place]
            for name, values in self.data._asdict().items()
            if isinstance(values, np.ndarray) and name not in ("X", *OF_ALL)
        }
        mass = count.astype(np.float64)
        weight = mass if self.data.weight is None else of_row["weight"] * mass
        X: Floats = np.broadcast_to(np.zeros(1), (len(place), 1))
        return self.data._replace(**{**of_row, "weight": weight, "X": X})


def training_rows(estimator: Any, roles: Roles, outcomes: Outcomes) -> Training:
    """Training rows of an estimator from its outcomes.

    Raises
    ------
    ValueError
        As ``fit``, for what is wrong with all rows together.
    """
    columns, count = dict(outcomes.columns), outcomes.count
    if not len(count):
        raise ValueError("no row of positive weight in any partition")
    is_single = len(count) == 1 and count[0] > 1
    if is_single:
        # Survival trees need two rows; these are equal, and the first will stand for both.
        columns = {name: values.repeat(2) for name, values in columns.items()}
        count = count.repeat(2)
    weight = columns.get("weight")
    more: dict[str, Any] = {}
    if roles.kind in ("survival", "causes"):
        y: Any = as_structured(Survival(columns["event"], columns["time"], columns.get("entry")))
    else:
        y = columns["target"]
        if "treatment" in columns:
            more["treatment"] = columns["treatment"]
        for role in ("exposure", "propensity", "costs"):
            names = [name for name in columns if name.startswith(f"{role} ")]
            if names:
                values = [columns[name] for name in names]
                one = role != "costs" and len(names) == 1
                more[role] = values[0] if one else _table(roles.columns[role], values)
    if "costs" in more:
        n_classes = len(np.unique(y))
        if more["costs"].shape[1] != n_classes:
            raise ValueError(
                f"costs names {more['costs'].shape[1]} columns; expected one per class of "
                f"{listed(np.unique(y).tolist())}"
            )
    data = checked_outcomes(estimator, y, weight, count, **more)
    if is_single:
        by_row = {k: v for k, v in data._asdict().items() if isinstance(v, np.ndarray)}
        data = data._replace(**{k: v[:1] for k, v in by_row.items() if len(v) == 2})
        count = count[:1]
    kept = getattr(data, "kept", None)
    kept = np.ones(len(count), dtype=bool) if kept is None else kept
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return Training(data, count[kept], place)
