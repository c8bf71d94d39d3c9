"""The command line: ``bristlecone fit``, ``predict``, ``show`` and ``datasets``.

Exit status: 0 after success, 2 after an error (one line on standard error, no file written), 130
after Ctrl-C; a ``fit`` that Ctrl-C stopped still reports the best tree it had found.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bristlecone import datasets
from bristlecone._core import __version__
from bristlecone._survival import SurvivalTreeMixin
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import BristleconeWarning
from bristlecone.export import export_text
from bristlecone.files import check_target, write_files
from bristlecone.frame import Frame, read_csv, read_parquet
from bristlecone.optimal import OptimalSurvivalTree
from bristlecone.report import certificate, html_report
from bristlecone.search import SearchCost, SearchProgress, readable_bytes, readable_seconds
from bristlecone.serialise import load_model

__all__ = ["main"]

_ERROR, _INTERRUPTED = 2, 130
_OUTCOME = ("time", "event")
_FIT_OPTIONS = (
    "objective",
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "leaf_penalty",
    "leaf_curve",
    "time_grid",
    "time_limit",
    "memory_limit",
    "n_jobs",
)
_ENCODER_OPTIONS = (
    "thresholds",
    "n_thresholds",
    "max_categories",
    "missing",
    "min_support",
    "max_features",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; those of the process by default.

    Returns
    -------
    int
        Exit status.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of columns and categories may not exist in the terminal's encoding.
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser().parse_args(argv)
        with _warnings_as_lines():
            status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has seen enough; without this Python complains once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")
    except (ValueError, TypeError, ImportError, MemoryError, RuntimeError) as error:
        return _fail(str(error) or type(error).__name__)


def _fail(message: str) -> int:
    print(f"bristlecone: error: {' '.join(message.split())}", file=sys.stderr)
    return _ERROR


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print every warning as one line."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"bristlecone: warning: {' '.join(str(message).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", BristleconeWarning)
        warnings.showwarning = show
        yield


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bristlecone", description="Optimal survival trees from the command line."
    )
    parser.add_argument("--version", action="version", version=f"bristlecone {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_fit(commands.add_parser("fit", help="find the best survival tree of a data set"))
    _add_predict(commands.add_parser("predict", help="apply a saved tree to new rows"))
    show = commands.add_parser("show", help="print a saved tree")
    show.add_argument("model", metavar="MODEL", help="file written by fit --model")
    show.set_defaults(run=_show)
    sets = commands.add_parser("datasets", help="list the bundled data sets, or describe one")
    sets.add_argument("name", metavar="NAME", nargs="?", help="data set to describe")
    sets.set_defaults(run=_datasets)
    return parser


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_fit)
    parser.description = (
        "Find the survival tree of least loss and print it. Options that are left out have the "
        "defaults of OptimalSurvivalTree and BinaryEncoder."
    )
    add = parser.add_argument
    add("data", metavar="DATA", help="CSV or Parquet file, or the name of a bundled set")
    add("--time", metavar="COL", help="column of times (bundled sets: time)")
    add("--event", metavar="COL", help="column of events, 1 or true (bundled sets: event)")
    add("--entry", metavar="COL", help="column of times from which the rows were observed")
    add("--event-value", metavar="V", help="value of the event column that means an event")
    add("--drop", metavar="COL", nargs="+", action="extend", default=[], help="columns to ignore")
    add("--report", metavar="HTML", help="write a report to this file")
    add("--model", metavar="JSON", help="save the tree to this file")
    add("--estimate", action="store_true", help="print what the search would take, and stop")

    tree = parser.add_argument_group("tree")
    left_out = argparse.SUPPRESS
    tree.add_argument("--objective", default=left_out, help="likelihood or brier")
    tree.add_argument(
        "--max-depth", type=_integer_or_none, default=left_out, metavar="D", help="or none"
    )
    tree.add_argument("--max-leaf-nodes", type=int, default=left_out, metavar="N")
    tree.add_argument("--min-samples-leaf", type=int, default=left_out, metavar="N")
    tree.add_argument("--leaf-penalty", type=float, default=left_out, metavar="LOSS")
    tree.add_argument(
        "--leaf-curve", default=left_out, help="proportional, kaplan-meier or brier-optimal"
    )
    tree.add_argument(
        "--time-grid",
        type=float,
        nargs="+",
        default=left_out,
        metavar="T",
        help="coarser times for brier: every time is moved up to the next one",
    )

    search = parser.add_argument_group("search")
    search.add_argument("--time-limit", type=float, default=left_out, metavar="SECONDS")
    search.add_argument("--memory-limit", type=int, default=left_out, metavar="BYTES")
    search.add_argument("--n-jobs", type=int, default=left_out, metavar="N", help="threads")
    search.add_argument(
        "--progress",
        action="store_true",
        help="show best tree and bound from the start, on a terminal or not (by default on a "
        "terminal, after a second)",
    )

    encoder = parser.add_argument_group("binary features")
    encoder.add_argument("--thresholds", default=left_out, help="quantiles, midpoints or kmeans")
    encoder.add_argument("--n-thresholds", type=int, default=left_out, metavar="K")
    encoder.add_argument("--max-categories", type=_integer_or_none, default=left_out, metavar="K")
    encoder.add_argument("--missing", default=left_out, help="impute or branch")
    encoder.add_argument("--min-support", type=float, default=left_out, metavar="SHARE")
    encoder.add_argument("--max-features", type=_integer_or_none, default=left_out, metavar="K")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_predict)
    parser.description = (
        "Write a CSV with one line per row of DATA: leaf, risk (higher is earlier), median "
        "survival time (inf if not reached), and the survival at the given times."
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="file written by fit --model")
    add("data", metavar="DATA", help="CSV or Parquet file, or the name of a bundled set")
    add("--times", metavar="T", type=float, nargs="+", action="extend", default=[])
    add("--out", metavar="CSV", help="file to write; standard output by default")


def _integer_or_none(text: str) -> int | None:
    return None if text.lower() == "none" else int(text)


_integer_or_none.__name__ = "integer"  # argparse names the type in its messages


def _fit(arguments: argparse.Namespace) -> int:
    frame = _read(arguments.data)
    bundled = _is_bundled(arguments.data)
    time_name, event_name = (_outcome_name(arguments, role, frame, bundled) for role in _OUTCOME)
    if time_name == event_name:
        raise ValueError(f"--time and --event are the same column {time_name!r}")
    outcome = [time_name, event_name]
    if arguments.entry is not None:
        _check_column(frame, arguments.entry, "--entry")
        if arguments.entry in outcome:
            raise ValueError(f"--entry: {arguments.entry!r} is the column of --time or --event")
        outcome.append(arguments.entry)
    for name in arguments.drop:
        _check_column(frame, name, "--drop")
        if name in outcome:
            raise ValueError(f"--drop: {name!r} is the column of --time, --event or --entry")
    X = frame.drop([*outcome, *arguments.drop])
    if not X.columns:
        raise ValueError(f"{arguments.data} has no columns besides {_listed(outcome)}")
    targets = {
        option: _output(option, path, arguments.data)
        for option, path in (("--model", arguments.model), ("--report", arguments.report))
        if path is not None
    }
    if len(set(targets.values())) < len(targets):
        raise ValueError("--model and --report are the same file")
    y = _survival(frame, *outcome, event_value=arguments.event_value)

    given = vars(arguments)
    parameters = {name: given[name] for name in _FIT_OPTIONS if name in given}
    encoding = {name: given[name] for name in _ENCODER_OPTIONS if name in given}
    if encoding:
        parameters["encoder"] = BinaryEncoder(**encoding)
    estimator = OptimalSurvivalTree(**parameters)
    # Without a forecast only whoever asked for one need know.
    if arguments.estimate or estimator.objective != "brier":
        cost = estimator.estimate_cost(X, y)
    if arguments.estimate:
        print(_forecast(cost), end="")
        return 0
    with _progress(arguments.progress) as callback:
        estimator.fit(X, y, callback=callback)

    about = _size(estimator)
    print(f"{arguments.data}: {about}\n\n{export_text(estimator)}\n{_proof(estimator)}", end="")
    documents: dict[str | os.PathLike[str], str] = {}
    if "--model" in targets:
        documents[targets["--model"]] = estimator.to_json()
    if "--report" in targets:
        name = Path(arguments.data).name
        documents[targets["--report"]] = html_report(
            estimator, title=f"Survival tree of {name}", about=about, time_label=time_name
        )
    write_files(documents)
    return _INTERRUPTED if estimator.status_ == "interrupted" else 0


def _predict(arguments: argparse.Namespace) -> int:
    estimator: Any = load_model(arguments.model)
    frame = _read(arguments.data)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{arguments.model}: the tree was fitted without column names; predict with it in "
            "Python"
        )
    for name in estimator.features_used_:
        _check_column(frame, name, arguments.model)
    known = {*names, *(_OUTCOME if _is_bundled(arguments.data) else ())}
    unused = [repr(name) for name in frame if name not in known]
    if unused:
        warnings.warn(
            f"{arguments.data}: columns the tree was not fitted with are ignored: "
            f"{', '.join(unused)}",
            BristleconeWarning,
            stacklevel=1,
        )
    target = None
    if arguments.out is not None:
        target = _output("--out", arguments.out, arguments.data, arguments.model)

    columns = {"leaf": estimator.apply(frame), **_predictions(estimator, frame, arguments)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    if target is None:
        print(text.getvalue(), end="")
    else:
        write_files({target: text.getvalue()})
    return 0


def _predictions(
    estimator: Any, X: Frame, arguments: argparse.Namespace
) -> dict[str, NDArray[Any]]:
    if not isinstance(estimator, SurvivalTreeMixin):
        if arguments.times:
            raise ValueError(
                f"--times: {arguments.model} is a {type(estimator).__name__}, which predicts no "
                "survival"
            )
        return {"prediction": estimator.predict(X)}
    columns = {"risk": estimator.predict(X), "median": estimator.predict_median(X)}
    survival = estimator.predict_survival_function(X, times=arguments.times)
    for time, values in zip(arguments.times, survival.T, strict=True):
        columns[f"survival_{time:g}"] = values
    return columns


def _show(arguments: argparse.Namespace) -> int:
    estimator = load_model(arguments.model)
    proof = f"\n{_proof(estimator)}" if hasattr(estimator, "status_") else ""
    print(f"{arguments.model}: {_size(estimator)}\n\n{export_text(estimator)}{proof}", end="")
    return 0


def _datasets(arguments: argparse.Namespace) -> int:
    if arguments.name is not None:
        info = datasets.describe(arguments.name)
        print(f"{info.name}: {info.title}\n{info.rows} rows, {info.events} events")
        print(f"event: {info.event}\ntime: {info.time}\n\ncolumns:")
        width = max(map(len, info.columns))
        for name, meaning in info.columns.items():
            print(f"  {name:{width}}  {meaning}")
        print(f"\nsource: {info.source}\nlicence: {info.licence}")
        print(f"changes: {info.changes}\ncitation: {info.citation}")
        return 0
    infos = [datasets.describe(name) for name in datasets.list_datasets()]
    width = max(len(info.name) for info in infos)
    print(f"{'name':{width}}  rows  events  columns  title")
    for info in infos:
        print(
            f"{info.name:{width}}  {info.rows:4}  {info.events:6}  {len(info.columns):7}  "
            f"{info.title}"
        )
    return 0


class _ProgressLine:
    """One line on standard error that is written anew while the search goes on."""

    def __init__(self, start: float) -> None:
        self._next = start
        self._width = 0

    def show(self, progress: SearchProgress) -> None:
        if progress.seconds < self._next:
            return
        self._next = progress.seconds + 0.1
        text = (
            f"{progress.seconds:.1f} s: objective {progress.objective:.6g}, lower bound "
            f"{progress.lower_bound:.6g}, gap {100 * progress.relative_gap:.3g} %"
        )
        # Blanks cover what a longer text has left.
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            print(file=sys.stderr)


@contextmanager
def _progress(forced: bool) -> Iterator[Callable[[SearchProgress], None] | None]:
    """Callback that shows progress: on a terminal after a second; anywhere, at once if forced.

    Warnings wait until the line has ended.
    """
    line = _ProgressLine(0.0 if forced else 1.0)
    with warnings.catch_warnings(record=True) as held:
        try:
            yield line.show if forced or sys.stderr.isatty() else None
        finally:
            line.end()
    for warning in held:
        warnings.warn(warning.message, stacklevel=1)


def _forecast(cost: SearchCost) -> str:
    rows = {
        "binary features": cost.n_features,
        "distinct rows": cost.n_distinct_rows,
        "depth": cost.max_depth,
        "time": readable_seconds(cost.seconds),
        "memory": readable_bytes(cost.memory),
    }
    return "".join(f"{name:16}{value}\n" for name, value in rows.items())


def _size(estimator: Any) -> str:
    counts = {"row": int(estimator.tree_.n_node_samples[0])}
    if isinstance(estimator, SurvivalTreeMixin):
        counts["event"] = sum(leaf.n_events for leaf in estimator.leaf_statistics_)
    counts["column"] = estimator.n_features_in_
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items())


def _proof(estimator: Any) -> str:
    """Lines for objective, lower bound, gap, status, binary features, seconds and remarks."""
    sentence, numbers = certificate(estimator)
    lines = [*numbers[:3], ("status", sentence), *numbers[3:]]
    return "".join(f"{name:16}{value}\n" for name, value in lines)


def _is_bundled(data: str) -> bool:
    return data in datasets.list_datasets()


def _read(data: str) -> Frame:
    if _is_bundled(data):
        return datasets.load_frame(data)
    path = Path(data)
    if not path.exists():
        close = get_close_matches(data, datasets.list_datasets(), n=1)
        hint = f"; did you mean the bundled set {close[0]}?" if close else ""
        raise ValueError(f"{data}: no such file, and no bundled set of that name{hint}")
    if path.suffix.lower() in (".parquet", ".pq"):
        return read_parquet(path)
    return read_csv(path)


def _output(option: str, path: str, *inputs: str) -> Path:
    """Path of a file to write, checked before the work begins."""
    try:
        target = check_target(path)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if target in [Path(name).resolve() for name in inputs]:
        raise ValueError(f"{option}: {path} is the file that is read")
    return target


def _check_column(frame: Frame, name: str, asker: str) -> None:
    if name not in frame:
        close = get_close_matches(name, frame.columns, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"{asker}: the data have no column {name!r}; {hint}There are {_listed(frame.columns)}"
        )


def _outcome_name(arguments: argparse.Namespace, role: str, frame: Frame, bundled: bool) -> str:
    name: str | None = getattr(arguments, role)
    if name is None:
        if not bundled:
            raise ValueError(
                f"--{role} is needed: which column holds the {role}s? There are "
                f"{_listed(frame.columns)}"
            )
        name = role
    _check_column(frame, name, f"--{role}")
    return name


def _survival(
    frame: Frame,
    time_name: str,
    event_name: str,
    entry_name: str | None = None,
    *,
    event_value: str | None,
) -> NDArray[np.void]:
    """Outcomes as the estimators take them."""
    event = _event(frame[event_name], event_name, event_value)
    time = _time(frame[time_name], time_name, "--time")
    columns: dict[str, NDArray[Any]] = {"event": event, "time": time}
    if entry_name is not None:
        entry = columns["entry"] = _time(frame[entry_name], entry_name, "--entry")
        late = entry >= time
        if late.any():
            row = int(np.argmax(late))
            raise ValueError(
                f"column {entry_name!r} is {entry[row]:g} in row {row}, where {time_name!r} is "
                f"{time[row]:g}; a row must enter before its time"
            )
    y = np.empty(len(event), dtype=[(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        y[name] = values
    return y


def _time(values: NDArray[Any], name: str, option: str) -> NDArray[np.float64]:
    _check_present(values, name)
    if values.dtype.kind not in "iuf":
        row = next((k for k, value in enumerate(values) if not _is_number(value)), 0)
        raise ValueError(
            f"{option}: column {name!r} is not numeric; row {row} holds {_shown(values[row])}"
        )
    time = values.astype(np.float64)
    wrong = ~(np.isfinite(time) & (time >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"column {name!r} is {time[row]:g} in row {row}; times must be finite and not negative"
        )
    return time


def _event(values: NDArray[Any], name: str, wanted: str | None) -> NDArray[np.bool_]:
    _check_present(values, name)
    found = dict.fromkeys(values.tolist())
    if wanted is None:
        if not all(isinstance(value, (bool, int, float)) and value in (0, 1) for value in found):
            raise ValueError(
                f"--event: column {name!r} holds {_listed(found)}, not 0 and 1 or true and false; "
                "say with --event-value which one is the event"
            )
        return values.astype(bool)
    meant = [value for value in found if _is_written(value, wanted)]
    if not meant:
        raise ValueError(
            f"--event-value: {wanted} does not occur in column {name!r}, which holds "
            f"{_listed(found)}"
        )
    return np.array([value in meant for value in values.tolist()])


def _check_present(values: NDArray[Any], name: str) -> None:
    for row, value in enumerate(values.tolist()):
        if value is None or value != value:
            raise ValueError(f"column {name!r} has no value in row {row}")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_written(value: Any, text: str) -> bool:
    """Whether the text stands for the value: 1 and 1.0 are the same number."""
    if isinstance(value, bool):
        return _shown(value) == text.lower()
    if isinstance(value, (int, float)):
        return _is_number(text) and value == float(text)
    return bool(value == text)


def _shown(value: Any) -> str:
    """A value as it stands in a file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(values: Any, most: int = 12) -> str:
    shown = [_shown(value) for value in values]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")
