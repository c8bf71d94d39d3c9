"""A pass over all partitions: here, in threads, or on the workers of Dask."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from bristlecone._log import log
from bristlecone._search.progress import readable_seconds
from bristlecone.scale._sources import (
    Part,
    Source,
    check_same_columns,
    itself,
    n_rows_of,
    named,
    schema_of,
)

# Seconds between two messages about the progress of a pass.
_BETWEEN = 5.0

# Seconds to wait for the name of a partition that Dask could not compute.
_PATIENCE = 1.0

# Number of partitions per worker that joblib is given at once.
_PER_WORKER = 4

# Number of tables that one task of Dask merges.
_MERGED_AT_ONCE = 8


class Step(Protocol):
    """Work of a pass, which can be sent to another process."""

    @property
    def name(self) -> str:
        """Name of the pass."""

    @property
    def columns(self) -> Sequence[str]:
        """Columns that it reads."""

    def start(self) -> Any:
        """State without rows; ``a.merge(b)`` adds the rows of b to it."""

    def add(self, state: Any, part: int, frame: Any) -> dict[str, int]:
        """Add a partition to the state; returns checksums of columns by name."""


@dataclass(frozen=True)
class PassProgress:
    """Progress of a pass over the partitions.

    Parameters
    ----------
    name : str
        The pass: "outcomes", "columns", "repeated features", "sums" or "leaves".
    seconds : float
        Time since the pass began.
    n_parts : int
        Partitions that are done.
    n_parts_total : int or None
        Partitions in all; None if it is not known before they are read.
    n_rows : int
        Rows that are done.

    See Also
    --------
    fit_partitions : Calls its ``callback`` with this.

    Examples
    --------
    >>> from bristlecone.scale import PassProgress
    >>> progress = PassProgress("sums", 2.0, 10, 40, 5_000_000)
    >>> progress.rows_per_second, progress.seconds_left
    (2500000.0, 6.0)
    """

    name: str
    seconds: float
    n_parts: int
    n_parts_total: int | None
    n_rows: int

    @property
    def rows_per_second(self) -> float:
        """Rows per second so far."""
        return self.n_rows / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Time that the other partitions will take; None if their number is unknown."""
        if self.n_parts_total is None or not self.n_parts:
            return None
        return self.seconds / self.n_parts * (self.n_parts_total - self.n_parts)


@dataclass
class Runner:
    """Runs passes over a source, and checks that its partitions do not change.

    Parameters
    ----------
    source : Source
    n_threads : int
        Number of threads; each works on one partition at a time.
    client : distributed.Client or None
        Dask's scheduler, which then runs the passes.
    callback : callable or None
        Called with a PassProgress after every partition.
    verbose : int
        Whether progress is logged at level INFO.
    """

    source: Source
    n_threads: int = 1
    client: Any = None
    callback: Callable[[Any], object] | None = None
    verbose: int = 0
    # Number of partitions of the last pass.
    n_parts: int = 0
    # What must be the same in every pass, by the number of the partition.
    _known: dict[int, _Done] = field(default_factory=dict)
    _first: tuple[str, dict[str, Any]] | None = None

    def run(self, step: Step) -> Any:
        """The state of all partitions after a step.

        Raises
        ------
        Exception
            What a partition raises, with its name; ValueError if a partition changed since an
            earlier pass.
        """
        start = time.perf_counter()
        parts = self.source.parts(step.columns)
        state: Any = step.start()
        if self.client is not None:
            run = _on_dask(self.client, step, parts, self._first)
        elif not getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False):
            run = _by_joblib(step, parts, self._first)
        elif self.n_threads > 1:
            run = _in_threads(step, parts, self.n_threads, self._first)
        else:
            run = _here(step, parts, self._first, state)
        progress = PassProgress(step.name, 0.0, 0, self.source.n_parts, 0)
        said = 0.0
        for done, merged in run:
            for one in done:
                self._check(one)
                progress = replace(
                    progress,
                    seconds=time.perf_counter() - start,
                    n_parts=progress.n_parts + 1,
                    n_rows=progress.n_rows + one.n_rows,
                )
                if self.callback is not None:
                    self.callback(progress)
                if progress.seconds - said > _BETWEEN:
                    said = progress.seconds
                    self._say(progress)
            if merged is not None:
                state.merge(merged)
        earlier, self.n_parts = self.n_parts, progress.n_parts
        if earlier and self.n_parts != earlier:
            raise ValueError(
                f"the pass for {step.name} found {self.n_parts} partitions, and an earlier one "
                f"{earlier}: partitions must not change during a fit"
            )
        self._say(replace(progress, seconds=time.perf_counter() - start))
        return state

    def _check(self, found: _Done) -> None:
        name = found.name
        if found.schema:
            if self._first is None:
                self._first = name, {}
            try:
                _compare(found.schema, self._first)
            except ValueError as error:
                raise named(error, name) from None
            self._first[1].update(found.schema)
        known = self._known.setdefault(found.number, found._replace(schema={}))
        if known.n_rows != found.n_rows:
            raise ValueError(
                f"{name} had {known.n_rows} rows in an earlier pass and {found.n_rows} "
                "now: partitions must not change during a fit"
            )
        for column, check in found.checks.items():
            if known.checks.setdefault(column, check) != check:
                raise ValueError(
                    f"{name}: column {column!r} has other values than in an earlier pass: "
                    "partitions must not change during a fit"
                )

    def _say(self, progress: PassProgress) -> None:
        total, left = progress.n_parts_total, progress.seconds_left
        log(
            self.verbose,
            "%s: %d%s partitions, %d rows, %.3g rows/s%s",
            progress.name,
            progress.n_parts,
            "" if total is None else f" of {total}",
            progress.n_rows,
            progress.rows_per_second,
            f", about {readable_seconds(left)} left" if left else "",
        )


class _Done(NamedTuple):
    """A partition that was added to a state: its rows, checksums and types of columns."""

    number: int
    name: str
    n_rows: int
    checks: dict[str, int]
    schema: dict[str, Any]


Found: TypeAlias = tuple[list[_Done], Any]
"""Some partitions, and the state that they were added to; None if that state comes later."""


def _add(step: Step, state: Any, part: Part, first: Any) -> _Done:
    """Add a partition to a state; errors get the name of the partition."""
    try:
        frame = part.load()
        n_rows = n_rows_of(frame)
        # Partitions without rows add nothing, and their types are often wrong.
        if not n_rows:
            return _Done(part.number, part.name, 0, {}, {})
        schema = schema_of(frame)
        _compare(schema, first)
        checks = step.add(state, part.number, frame)
        return _Done(part.number, part.name, n_rows, checks, schema)
    except Exception as error:
        raise named(error, part.name) from error


def _compare(schema: dict[str, Any], first: tuple[str, dict[str, Any]] | None) -> None:
    """Raise ValueError if known columns have another type."""
    if first is not None:
        shared = {column: first[1][column] for column in schema if column in first[1]}
        check_same_columns({column: schema[column] for column in shared}, shared, first[0])


def _here(step: Step, parts: Iterator[Part], first: Any, state: Any) -> Iterator[Found]:
    """One partition after the other is added to the state of the pass itself."""
    for part in parts:
        yield [_add(step, state, part, first)], None


def _in_threads(step: Step, parts: Iterator[Part], n_threads: int, first: Any) -> Iterator[Found]:
    """Every thread has its own state, and no more partitions than threads are in memory."""
    states: list[Any] = []
    local = threading.local()

    def work(part: Part) -> _Done:
        if not hasattr(local, "state"):
            local.state = step.start()
            states.append(local.state)
        return _add(step, local.state, part, first)

    pool = ThreadPoolExecutor(n_threads)
    waiting: set[Future[_Done]] = set()
    try:
        for part in parts:
            waiting.add(pool.submit(work, part))
            if len(waiting) > n_threads:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield [future.result() for future in done], None
        for future in as_completed(waiting):
            yield [future.result()], None
    finally:
        # After an error or Ctrl-C no further partition is started.
        pool.shutdown(wait=True, cancel_futures=True)
    for state in states:
        yield [], state


def _by_joblib(step: Step, parts: Iterator[Part], first: Any) -> Iterator[Found]:
    """A task per partition, by the backend of joblib that ``parallel_config`` chose."""
    parallel = Parallel(prefer="threads")
    most = max(1, effective_n_jobs(-1 if parallel.n_jobs is None else parallel.n_jobs))
    at_once = most * _PER_WORKER
    while chunk := list(itertools.islice(parts, at_once)):
        here = [part if part.delayed is None else _computed(part) for part in chunk]
        yield from parallel(delayed(_task)(step, part, None, first) for part in here)


def _computed(part: Part) -> Part:
    """The same partition of Dask, with its rows."""
    try:
        return _of_frame(part, part.load())
    except Exception as error:
        raise named(error, part.name) from error


def _of_frame(part: Part, frame: Any) -> Part:
    return part._replace(load=partial(itself, frame), delayed=None)


def _task(step: Step, part: Part, frame: Any, first: Any) -> Found:
    """One partition in another process; ``frame`` is what Dask computed for it."""
    state = step.start()
    part = part if frame is None else _of_frame(part, frame)
    return [_add(step, state, part, first)], state


def _merge(step: Step, groups: list[Found]) -> Found:
    """Merge the states of workers into a new one, because Dask may need the parts again."""
    state = step.start()
    done: list[_Done] = []
    for found, other in groups:
        done += found
        state.merge(other)
    return done, state


def _on_dask(client: Any, step: Step, parts: Iterator[Part], first: Any) -> Iterator[Found]:
    """A task per partition, and a tree of tasks that merge their states.

    Tasks only depend on their partition and the step, which is a task as well, so Dask runs them
    again if a worker is lost.
    """
    import distributed

    sent = client.submit(itself, step, pure=False)
    tasks = []
    # Partitions that Dask could not compute, by the message of the error.
    failed: dict[str, str] = {}
    names: tuple[str, ...] = ()

    def note_failure(name: str, frame: Any) -> None:
        if frame.status == "error":
            failed.setdefault(str(frame.exception()), name)

    for part in parts:
        frame = None
        if part.delayed is not None:
            frame = client.compute(part.delayed)
            frame.add_done_callback(partial(note_failure, part.name))
            names = (*names, f"{part.name}: ")
        # Dask computes the frame when it is an argument of its own.
        bare = part if frame is None else _of_frame(part, None)
        tasks.append(client.submit(_task, sent, bare, frame, first, pure=False))
    if not tasks:
        return

    def merged(some: list[Any]) -> list[Any]:
        """Tasks that merge a few others each."""
        starts = range(0, len(some), _MERGED_AT_ONCE)
        groups = (some[start : start + _MERGED_AT_ONCE] for start in starts)
        return [client.submit(_merge, sent, group, pure=False) for group in groups]

    level = merged(tasks)
    # Dask forgets the state of a partition as soon as nothing refers to it.
    del tasks
    reports = [client.submit(itemgetter(0), one, pure=False) for one in level]
    while len(level) > 1:
        level = merged(level)
    try:
        for report in distributed.as_completed(reports):
            yield report.result(), None
        yield [], level[0].result()[1]
    except Exception as error:
        # The notes are made in another thread.
        until = time.perf_counter() + _PATIENCE
        unnamed = not str(error).startswith(names) if names else False
        while unnamed and str(error) not in failed and time.perf_counter() < until:
            time.sleep(0.01)
        if str(error) in failed:
            raise named(error, failed[str(error)]) from error
        raise
    finally:
        # Dask forgets tasks that nothing refers to; cancelling them may upset its scheduler.
        for future in [*reports, *level, sent]:
            future.release()
