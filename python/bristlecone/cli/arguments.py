"""The arguments of every command; nothing heavy is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from bristlecone._core import __version__

__all__ = ["ENCODER", "SEARCH", "TREE", "Option", "parse"]

_DATA = (
    "CSV file (compressed by gzip or not), Parquet file, - for standard input, or the name of a "
    "bundled set"
)


class Option(NamedTuple):
    """A parameter of an estimator or encoder; left out, it has its default there.

    Attributes
    ----------
    parameter : str
        Its name; that of the option has hyphens.
    type : callable
        Reads the argument.
    metavar : str or None
    default : object
        As the signature has it (a test compares them).
    help : str
    nargs : str or None
    """

    parameter: str
    type: Callable[[str], Any]
    metavar: str | None
    default: Any
    help: str
    nargs: str | None = None


def _integer_or_none(text: str) -> int | None:
    return None if text.lower() == "none" else int(text)


_integer_or_none.__name__ = "integer"  # argparse names the type in its messages


def _count_or_share(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


_count_or_share.__name__ = "number"


def _events(text: str) -> int | float | str | None:
    if text.lower() in ("none", "auto"):
        return None if text.lower() == "none" else "auto"
    return _count_or_share(text)


_events.__name__ = "number"


def _number_or_auto(text: str) -> float | str:
    return "auto" if text.lower() == "auto" else float(text)


_number_or_auto.__name__ = "number"

TREE = (
    Option("objective", str, "NAME", "likelihood", "what the best tree is best in: likelihood "
           "(proportional hazards between the leaves) or brier (integrated Brier score)"),
    Option("max_depth", _integer_or_none, "D", 3, "most questions from root to leaf; none for any "
           "number, which needs --max-leaf-nodes or --leaf-penalty"),
    Option("max_leaf_nodes", _integer_or_none, "N", None, "most leaves"),
    Option("min_samples_leaf", _count_or_share, "N", 1, "fewest rows of a leaf; below 1 a share of "
           "the rows"),
    Option("min_events_leaf", _events, "N", "auto", "fewest events of a leaf; below 1 a share of "
           "the events; auto or none"),
    Option("leaf_penalty", float, "LOSS", 0.0, "loss added for every leaf: a split must gain "
           "more"),
    Option("prior", _number_or_auto, "EVENTS", "auto", "pseudo-events at the baseline hazard in "
           "every leaf, for likelihood; or auto"),
    Option("shrinkage", _number_or_auto, "L", "auto", "pseudo-events, or pseudo-rows of a curve, "
           "by which predictions are pulled towards those of the node above; auto is the "
           "objective's own"),
    Option("leaf_curve", str, "NAME", "auto", "survival curve of a leaf: proportional, "
           "kaplan-meier or brier-optimal; auto is the objective's own"),
    Option("time_grid", float, "T", None, "coarser times for brier: every time is moved up to the "
           "next one of these", "+"),
)  # fmt: skip
"""Options of the tree."""

SEARCH = (
    Option("time_limit", float, "SECONDS", None, "end the search then, with the best tree so far"),
    Option("memory_limit", int, "BYTES", None, "end the search when it needs more"),
    Option("n_jobs", int, "N", None, "threads; -1 for all cores"),
)
"""Options of the search."""

ENCODER = (
    Option("thresholds", str, "NAME", "quantiles", "where numbers are cut: quantiles, midpoints "
           "(everywhere) or kmeans"),
    Option("n_thresholds", int, "K", 10, "most cuts of a column"),
    Option("max_categories", _integer_or_none, "K", 10, "most levels of a text column that get a "
           "question of their own, the commonest ones; none for all"),
    Option("missing", str, "NAME", "impute", "missing numbers: impute (the mean) or branch (a "
           "question of their own)"),
    Option("min_support", float, "SHARE", 0.01, "leave questions out that fewer rows answer with "
           "yes, or with no"),
    Option("max_features", _integer_or_none, "K", None, "most questions in all, the most balanced "
           "ones"),
)  # fmt: skip
"""Options of the binary features."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace | None:
    """Arguments, with the name of the command as ``command``; None after printing the help.

    Raises
    ------
    ValueError
        For arguments that are not understood.
    SystemExit
        After ``--help`` and ``--version``.
    """
    parser = _Parser(
        prog="bristlecone",
        description="Optimal survival trees from the command line.",
        epilog="example: bristlecone fit gbsg2 --max-depth 2 --report gbsg2.html",
    )
    parser.add_argument("--version", action="version", version=f"bristlecone {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, short, add in (
        ("fit", "find the best survival tree of a data set", _add_fit),
        ("predict", "apply a saved tree to new rows", _add_predict),
        ("show", "print a saved tree", _add_show),
        ("datasets", "list the bundled data sets, or describe one", _add_datasets),
    ):
        command = commands.add_parser(name, help=short)
        command.set_defaults(command=name, parser=command)
        add(command)
    arguments, unknown = parser.parse_known_args(argv)
    if not hasattr(arguments, "command"):
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        parser.print_help()
        return None
    if unknown:
        options = arguments.parser._option_string_actions
        close = get_close_matches(unknown[0].partition("=")[0], options, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Find the survival tree of least loss and print it with the proof. Every column is a\n"
        "feature but those of the outcome and those dropped."
    )
    parser.epilog = """examples:
  bristlecone fit gbsg2 --max-depth 2
  bristlecone fit study.csv --time days --event status --event-value dead --drop id
  bristlecone fit study.csv --min-samples-leaf 20 --model tree.json --report tree.html
  zcat study.csv.gz | bristlecone fit - --time days --event status --estimate
"""
    add = parser.add_argument
    add("data", metavar="DATA", help=_DATA)
    columns = parser.add_argument_group("columns")
    add = columns.add_argument
    add("--time", metavar="COL", help="column of times (default: time)")
    add("--event", metavar="COL", help="column of events, 1 or true (default: event)")
    add("--event-value", metavar="V", help="value of the event column that means an event")
    add("--entry", metavar="COL", help="column of times from which the rows were observed")
    add("--drop", metavar="COL", nargs="+", action="extend", default=[], help="columns to ignore")
    add(
        "--categorical",
        metavar="COL",
        nargs="+",
        action="extend",
        default=[],
        help="columns to take as text though their cells are numbers",
    )
    _add_missing(columns)

    output = parser.add_argument_group("output")
    add = output.add_argument
    add("--model", metavar="JSON", help="save the tree to this file")
    add("--report", metavar="HTML", help="write a page with the tree, its curves and the proof")
    add("--title", metavar="TEXT", help="headline of the report (default: names the data)")
    add("--time-label", metavar="TEXT", help="label of its time axes (default: names the column)")
    add("--estimate", action="store_true", help="print what the search would take, and stop")
    add(
        "--progress",
        action="store_true",
        help="show best tree and bound from the start, on a terminal or not (default: on a "
        "terminal, after a second)",
    )
    for title, options in (("tree", TREE), ("search", SEARCH), ("binary features", ENCODER)):
        group = parser.add_argument_group(title)
        for option in options:
            group.add_argument(
                f"--{option.parameter.replace('_', '-')}",
                dest=option.parameter,
                type=option.type,
                metavar=option.metavar,
                nargs=option.nargs,
                default=argparse.SUPPRESS,
                help=f"{option.help} (default: {str(option.default).lower()})",
            )


def _add_missing(group: Any) -> None:
    group.add_argument(
        "--na",
        metavar="CELL",
        nargs="+",
        action="extend",
        default=[],
        help="cells that stand for a missing value (default: empty cells, NA, N/A, NaN, nan, "
        "NULL and null, which always do)",
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a CSV with one line per row of DATA: the leaf and the prediction. Of a survival\n"
        "tree that is the risk (higher is earlier), the median of the model's survival curve (inf\n"
        "where it is not reached) and the survival at the given times."
    )
    parser.epilog = """examples:
  bristlecone predict tree.json new.csv --times 365 1825 --out predictions.csv
  bristlecone predict tree.json new.csv --id patient
"""
    add = parser.add_argument
    add("model", metavar="MODEL", help="file written by fit --model")
    add("data", metavar="DATA", help=f"{_DATA}; columns that the tree does not know are ignored")
    add(
        "--times",
        metavar="T",
        nargs="+",
        action="extend",
        default=[],
        type=float,
        help="times to tell the survival at (default: none)",
    )
    add(
        "--id",
        metavar="COL",
        nargs="+",
        action="extend",
        default=[],
        help="columns to copy to the output, such as an identifier (default: none)",
    )
    _add_missing(parser)
    add("--out", metavar="CSV", help="file to write (default: standard output)")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print a saved tree as fit printed it."
    parser.epilog = "example: bristlecone show tree.json"
    parser.add_argument("model", metavar="MODEL", help="file written by fit --model")


def _add_datasets(parser: argparse.ArgumentParser) -> None:
    parser.description = "List the bundled data sets, or tell the source and columns of one."
    parser.epilog = "example: bristlecone datasets gbsg2"
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="data set to describe (default: list all)"
    )
