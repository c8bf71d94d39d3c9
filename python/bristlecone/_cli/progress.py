"""The line that shows the progress of one search or of several."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bristlecone._search.progress import SearchProgress, readable_seconds
from bristlecone.exceptions import SearchCostWarning

if TYPE_CHECKING:
    from bristlecone.scale import PassProgress


class _Line:
    """One line on standard error that is rewritten during the search."""

    def __init__(self, start: float) -> None:
        self._next = start
        self._begun = time.perf_counter()
        self._width = 0

    def show(self, progress: SearchProgress | PassProgress) -> None:
        # Passes count their own seconds.
        seconds = time.perf_counter() - self._begun
        if isinstance(progress, SearchProgress):
            seconds = max(seconds, progress.seconds)
        if seconds < self._next:
            return
        self._next = seconds + 0.1
        self.write(_text(progress) if isinstance(progress, SearchProgress) else _of_pass(progress))

    def count(self, done: int, total: int) -> None:
        seconds = time.perf_counter() - self._begun
        if seconds < self._next:
            return
        text = f"{seconds:.1f} s: {done} of {total} searches"
        if done < total:
            text += f", about {readable_seconds(seconds / done * (total - done))} left"
        self.write(text)

    def write(self, text: str) -> None:
        # Blanks overwrite the rest of a longer text.
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            print(file=sys.stderr)
        self._width = 0


def _text(progress: SearchProgress) -> str:
    if math.isinf(progress.objective) and math.isinf(progress.lower_bound):
        return f"{progress.seconds:.1f} s: fitting the teacher"
    text = (
        f"{progress.seconds:.1f} s: objective {progress.objective:.6g}, lower bound "
        f"{progress.lower_bound:.6g}, gap {100 * progress.relative_gap:.3g}%"
    )
    if progress.share is not None:
        text += f", {100 * progress.share:.0f}% done"
    if progress.seconds_left is not None:
        text += f", about {readable_seconds(progress.seconds_left)} left"
    return text


def _of_pass(progress: PassProgress) -> str:
    done = "" if not progress.n_parts_total else f" of {progress.n_parts_total}"
    text = (
        f"{progress.name}: {progress.n_parts}{done} parts, {progress.rows_per_second:.3g} rows "
        "per second"
    )
    if progress.seconds_left:
        text += f", about {readable_seconds(progress.seconds_left)} left"
    return text


@contextmanager
def _line(forced: bool) -> Iterator[_Line]:
    """Shows a line; meanwhile warnings wait, except the one before a hopeless search."""
    line = _Line(0.0 if forced else 1.0)
    held: dict[str, Warning | str] = {}
    with warnings.catch_warnings():
        show_now = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, SearchCostWarning):
                line.end()
                show_now(message, category, *where, **more)
            else:
                held[str(message)] = message

        warnings.showwarning = show
        try:
            yield line
        finally:
            line.end()
    for message in held.values():
        warnings.warn(message, stacklevel=1)


@contextmanager
def progress_line(forced: bool) -> Iterator[Callable[[Any], None] | None]:
    """Callback that shows progress: on a terminal after a second; at once if forced."""
    with _line(forced) as line:
        yield line.show if forced or sys.stderr.isatty() else None


@contextmanager
def searches_line(forced: bool) -> Iterator[Callable[[int, int], None] | None]:
    """The same for several searches: called with the number of finished and of all searches."""
    with _line(forced) as line:
        yield line.count if forced or sys.stderr.isatty() else None
