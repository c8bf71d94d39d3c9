"""``PartialSums``: sums over rows of binary features that add up across processes and sites."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.arrays import type_name
from bristlecone._data.checks import check_integer, check_real
from bristlecone._encoder.use import is_binary, packed
from bristlecone._search.engine import MOST_DEPTH, Sums, Task, sum_tasks
from bristlecone._types import Integers
from bristlecone.exceptions import InvalidParameterError

# Version of the bytes around the sums; the sums have their own version.
_VERSION = 1
# Settings of the bytes that are integers; -1 is None.
_INTEGERS = ("max_depth", "max_leaf_nodes", "min_samples_leaf", "min_events_leaf", "memory_limit")


class PartialTree(NamedTuple):
    """Best tree of :class:`PartialSums`; arrays describe its nodes in preorder.

    Parameters
    ----------
    feature : array of int, shape (n_nodes,)
        Binary feature of each split, -2 at leaves.
    children_left, children_right : array of int, shape (n_nodes,)
        Nodes for rows where the feature is true and where it is false, -1 at leaves.
    objective_value, lower_bound : float
        Mean loss per unit of weight plus the penalty of the leaves, and a lower bound for all
        trees.
    status : str
        "optimal", or the limit that ended the search.
    """

    feature: Integers
    children_left: Integers
    children_right: Integers
    objective_value: float
    lower_bound: float
    status: str


class PartialSums:
    """Sums of an objective over rows that are added in parts, and the optimal tree from them.

    Each process, machine or site adds its own rows; the sums are exact integers, so the merged sums
    are those of all rows in one table, and so is the tree. :func:`fit_partitions` uses them for
    whole estimators. Use this class with other frameworks, such as Spark, and for sites that
    exchange sums instead of rows.

    Parameters
    ----------
    objective : str
        Objective of the engine: "likelihood", "accuracy", "balanced-accuracy", "gini", "entropy",
        "label-costs", "policy", "competing-risks", "poisson", "regression" or "priced-costs".
    outcomes : mapping of str to array or number
        Columns of the objective with one entry per distinct outcome of all parts: for "likelihood"
        ``time`` (float) and ``event`` (bool), optionally ``entry``, ``weight`` and the number
        ``prior``; for classes ``labels`` (int64) and the number ``n_classes``; for "regression"
        ``target``; for "poisson" ``target`` and ``exposure``; for "label-costs" and "policy" the
        tables ``costs`` or ``rewards``, shape (n_outcomes, n_labels); for "competing-risks" also
        ``cause`` (int64) and ``cause_weights``. Every objective accepts ``weight``.
    counts : array of int, shape (n_outcomes,)
        Number of rows of all parts with each outcome.
    n_features : int
        Number of binary features.
    max_depth : int, default=3
        Depth of the tree and of the sums, 1 to 4.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf.
    min_events_leaf : int, default=0
        Minimum number of rows with an event in a leaf.
    leaf_penalty : float, default=0.0
        Penalty per leaf.
    memory_limit : int or None, default=None
        Maximum size of the sums in bytes.
    flipped : array of bool, shape (n_features,), or None, default=None
        Features that are true in most rows. Their negations are summed, which is faster. All parts
        need the same values.

    Raises
    ------
    InvalidParameterError
        If the objective is unknown or not a function of sums, or a parameter is invalid.
    ValueError
        If a column of ``outcomes`` is missing, or it, ``counts`` or ``flipped`` is wrong; or if the
        sums exceed ``memory_limit``. The message names the depth that fits.

    See Also
    --------
    fit_partitions : Whole estimators from partitions.

    Notes
    -----
    The sums take 8 (K + 2) bytes for each set of at most ``max_depth`` features, with K statistics
    per row (docs/maths/partial-sums.md). Adding a row takes time in proportion to the number of
    sets of ``max_depth`` features that are true in it.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone.scale import PartialSums
    >>> features = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], dtype=bool)
    >>> label = np.array([0, 1, 1, 0])
    >>> def new():
    ...     outcomes = {"labels": np.array([0, 1]), "n_classes": 2}
    ...     return PartialSums("accuracy", outcomes, [2, 2], n_features=2, max_depth=1)
    >>> one, other = new(), new()
    >>> one.add(features[:3], label[:3])
    >>> other.add(features[3:], label[3:])
    >>> one.merge(PartialSums.from_bytes(other.to_bytes()))
    >>> found = one.solve()
    >>> found.feature.tolist(), found.objective_value, found.status
    ([0, -2, -2], 0.0, 'optimal')
    """

    def __init__(
        self,
        objective: str,
        outcomes: Mapping[str, Any],
        counts: ArrayLike,
        *,
        n_features: int,
        max_depth: int = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 1,
        min_events_leaf: int = 0,
        leaf_penalty: float = 0.0,
        memory_limit: int | None = None,
        flipped: ArrayLike | None = None,
    ) -> None:
        if objective not in sum_tasks():
            raise InvalidParameterError(
                f"objective must be one of {', '.join(map(repr, sum_tasks()))}; got {objective!r}"
            )
        if not isinstance(outcomes, Mapping):
            raise InvalidParameterError(f"outcomes must be a mapping; got {type_name(outcomes)}")
        check_integer("n_features", n_features, 1)
        check_integer("max_depth", max_depth, 1)
        if max_depth > MOST_DEPTH:
            raise InvalidParameterError(f"max_depth must be at most {MOST_DEPTH}; got {max_depth}")
        check_integer("max_leaf_nodes", max_leaf_nodes, 1, optional=True)
        check_integer("min_samples_leaf", min_samples_leaf, 1)
        check_integer("min_events_leaf", min_events_leaf, 0)
        check_real("leaf_penalty", leaf_penalty, 0)
        check_integer("memory_limit", memory_limit, 1, optional=True)
        n_rows = np.asarray(counts)
        if n_rows.ndim != 1 or n_rows.dtype.kind not in "iu":
            raise ValueError(
                f"counts has shape {n_rows.shape} and dtype {n_rows.dtype}; expected one whole "
                "number per outcome"
            )
        columns = {
            name: value if isinstance(value, str | int | float) else np.ascontiguousarray(value)
            for name, value in outcomes.items()
            if value is not None
        }
        negated = np.zeros(n_features, dtype=bool) if flipped is None else np.asarray(flipped)
        if negated.shape != (n_features,):
            raise ValueError(f"flipped has shape {negated.shape}; expected ({n_features},)")
        if not is_binary(negated[np.newaxis]):
            raise ValueError("flipped must hold True or False only")
        self._settings = {
            "max_depth": max_depth,
            "max_leaf_nodes": max_leaf_nodes,
            "min_samples_leaf": min_samples_leaf,
            "min_events_leaf": min_events_leaf,
            "leaf_penalty": float(leaf_penalty),
            "n_threads": 1,
            "time_limit": None,
            "memory_limit": memory_limit,
            "options": None,
        }
        self._given = objective, columns, n_rows.astype(np.int64), negated.astype(bool)
        self._sums = Sums(Task(objective, columns), *self._given[2:], self._settings)

    @property
    def n_rows(self) -> int:
        """Number of rows added so far."""
        return self._sums.n_rows

    def add(self, features: ArrayLike, outcome: ArrayLike) -> None:
        """Add rows.

        Parameters
        ----------
        features : array of bool or 0/1, shape (n, n_features)
            Binary features.
        outcome : array of int, shape (n,)
            Position in ``outcomes`` of the outcome of each row.

        Raises
        ------
        ValueError
            If a shape is wrong, a feature is neither 0 nor 1, or an outcome does not exist. The
            message names the row.
        """
        answers, place = np.asarray(features), np.asarray(outcome)
        if place.ndim != 1:
            raise ValueError(f"outcome has shape {place.shape}; expected one dimension")
        expected = place.size, len(self._given[3])
        if answers.shape != expected:
            raise ValueError(f"features has shape {answers.shape}; expected {expected}")
        if not is_binary(answers):
            row, column = np.argwhere(~np.isin(answers, (0, 1)))[0]
            raise ValueError(
                f"feature {column} of row {row} is {answers[row, column]!s}; expected 0 or 1"
            )
        if place.size and place.dtype.kind not in "iu":
            raise ValueError(f"outcome must hold whole numbers; its dtype is {place.dtype}")
        if place.size and (place.min() < 0 or place.max() >= 2**32):
            row = int(np.argmax((place < 0) | (place >= 2**32)))
            raise ValueError(f"outcome of row {row} is {place[row]}, not a position in outcomes")
        binary = packed(answers.astype(bool))
        self._sums.add(binary, np.ascontiguousarray(place, dtype=np.uint32))

    def merge(self, other: PartialSums) -> None:
        """Add the sums of other rows with the same objective, outcomes, features and depth.

        Raises
        ------
        TypeError
            If ``other`` is not a PartialSums.
        ValueError
            If they differ, or are these sums themselves. The message says in what.
        """
        if not isinstance(other, PartialSums):
            raise TypeError(f"other must be PartialSums; got {type_name(other)}")
        if other is self:
            raise ValueError("other is this object itself: its rows would count twice")
        objective, task = self._given[0], other._given[0]
        own, theirs = self._given[1], other._given[1]
        # The engine compares what the outcomes add to the sums, including their weights. That
        # depends only on the order of the times, so it is the same in days and in months.
        names = (own.keys() | theirs.keys()) - {"weight"} if objective == task else set()
        for name in sorted(names):
            in_both = name in own and name in theirs
            if not (in_both and np.array_equal(own[name], theirs[name])):
                raise ValueError(f"sums are of other outcomes: {name!r} differs")
        self._sums.merge(other._sums)

    def to_bytes(self, *, min_cell_count: int = 1) -> bytes:
        """Return the sums as bytes, with a version and a checksum.

        Parameters
        ----------
        min_cell_count : int, default=1
            The sums show the number of rows in every combination of values of ``max_depth``
            features. If one that occurs has fewer rows than this, nothing is returned. This
            protects a single table only: two tables can be subtracted from each other.

        Raises
        ------
        ValueError
            If a combination has too few rows. The message names the features.
        """
        check_integer("min_cell_count", min_cell_count, 1)
        smallest = self._sums.smallest_cell() if min_cell_count > 1 else None
        if smallest is not None and smallest[0] < min_cell_count:
            cell = " and ".join(f"feature {at} = {int(value)}" for at, value in smallest[1])
            raise ValueError(
                f"{smallest[0]} rows have {cell}, fewer than min_cell_count={min_cell_count}; "
                "leave out a feature or lower max_depth"
            )
        objective, columns, counts, flipped = self._given
        arrays = {f"outcome_{name}": np.asarray(value) for name, value in columns.items()}
        settings = ((name, self._settings[name]) for name in (*_INTEGERS, "leaf_penalty"))
        numbers = {name: np.asarray(-1 if value is None else value) for name, value in settings}
        file = io.BytesIO()
        np.savez(
            file,
            allow_pickle=False,
            version=np.asarray(_VERSION),
            objective=np.asarray(objective),
            counts=counts,
            flipped=flipped,
            sums=np.frombuffer(self._sums.to_bytes(), dtype=np.uint8),
            **numbers,
            **arrays,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> PartialSums:
        """Return the sums of :meth:`to_bytes`.

        Raises
        ------
        ValueError
            If the bytes are damaged or of another version.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            version = int(found.pop("version"))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, NotImplementedError) as error:
            raise ValueError("the bytes are not partial sums, or are damaged") from error
        if version != _VERSION:
            raise ValueError(f"the bytes are of version {version}; this is version {_VERSION}")
        try:
            outcomes = {
                name.removeprefix("outcome_"): value.item() if value.ndim == 0 else value
                for name, value in found.items()
                if name.startswith("outcome_")
            }
            numbers = ((name, int(found[name])) for name in _INTEGERS)
            limits: dict[str, Any] = {name: None if x < 0 else x for name, x in numbers}
            sums = cls(
                str(found["objective"]),
                outcomes,
                found["counts"],
                n_features=len(found["flipped"]),
                flipped=found["flipped"],
                leaf_penalty=float(found["leaf_penalty"]),
                **limits,
            )
            content = found["sums"].tobytes()
        except KeyError as error:
            raise ValueError(f"the bytes lack {error}") from error
        sums._sums.merge_bytes(content)
        return sums

    def solve(self, *, time_limit: float | None = None) -> PartialTree:
        """Return the optimal tree over all rows added.

        Parameters
        ----------
        time_limit : float or None, default=None
            Seconds after which the search stops with the best tree so far.

        Returns
        -------
        named tuple
            ``feature``, ``children_left`` and ``children_right``: arrays of int, shape (n_nodes,),
            nodes in preorder; rows whose feature is true go left, leaves have -2 and -1.
            ``objective_value`` and ``lower_bound``: mean loss per unit of weight plus the penalty
            of the leaves, and a bound that no tree is below. They are right to 1e-9 of themselves
            or, if splits cost nothing, of the loss of all rows in one leaf. ``status``: "optimal",
            or the limit that ended the search.

        Raises
        ------
        ValueError
            If the sums do not hold each row of ``counts`` once, if no tree satisfies the limits, or
            if the sums do not give the objective to 1e-9 of itself: values span too wide a range,
            or the tree fits almost perfectly and its penalties are tiny.
        """
        check_real("time_limit", time_limit, 0, optional=True)
        settings = {**self._settings, "time_limit": time_limit}
        feature, left, right = self._sums.search(None, **settings)
        found = self._sums.certify_by_sums(**settings)
        return PartialTree(feature, left, right, found.objective, found.lower_bound, found.status)
