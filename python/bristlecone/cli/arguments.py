"""The arguments of every command; nothing heavy is imported here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from bristlecone._core import __version__
from bristlecone.estimators.parameters import (
    PARAMETERS,
    Parameter,
    count_or_none,
    number_or_auto,
)

__all__ = ["ENCODER", "SEARCH", "TREE", "parse"]

_DATA = (
    "CSV file (compressed by gzip or not), Parquet file, - for standard input, or the name of a "
    "bundled set"
)


TREE = (
    Parameter("objective", "likelihood", metavar="NAME", help="what the best tree is best in: "
              "likelihood (proportional hazards between the leaves) or brier (integrated Brier "
              "score)"),
    *map(PARAMETERS.__getitem__, (
        "max_depth", "max_leaf_nodes", "min_samples_leaf", "min_events_leaf", "leaf_penalty",
        "prior",
    )),
    Parameter("shrinkage", "auto", read=number_or_auto, metavar="L", help="pseudo-events, or "
              "pseudo-rows of a curve, by which predictions are pulled towards those of the node "
              "above; auto is the objective's own"),
    Parameter("leaf_curve", "auto", metavar="NAME", help="survival curve of a leaf: proportional, "
              "kaplan-meier or brier-optimal; auto is the objective's own"),
    Parameter("time_grid", None, read=float, metavar="T", nargs="+", help="coarser times for "
              "brier: every time is moved up to the next one of these"),
)  # fmt: skip
"""Options of the tree."""

SEARCH = tuple(PARAMETERS[name] for name in ("time_limit", "memory_limit", "n_jobs"))
"""Options of the search."""

ENCODER = (
    Parameter("thresholds", "quantiles", metavar="NAME", help="where numbers are cut: quantiles, "
              "midpoints (everywhere) or kmeans"),
    Parameter("n_thresholds", 10, read=int, metavar="K", help="most cuts of a column"),
    Parameter("max_categories", 10, read=count_or_none, metavar="K", help="most levels of a text "
              "column that get a question of their own, the commonest ones; none for all"),
    Parameter("missing", "impute", metavar="NAME", help="missing numbers: impute (the mean) or "
              "branch (a question of their own)"),
    Parameter("min_support", 0.01, read=float, metavar="SHARE", help="leave questions out that "
              "fewer rows answer with yes, or with no"),
    Parameter("max_features", None, read=count_or_none, metavar="K", help="most questions in all, "
              "the most balanced ones"),
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
        options = re.findall(r"--[\w-]+", arguments.parser.format_help())
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
    add(
        "--time",
        metavar="COL",
        help="column of times: numbers, or dates with --entry (default: time; or stop, exit "
        "beside start, entry)",
    )
    add("--event", metavar="COL", help="column of events, 1 or true (default: event)")
    add("--event-value", metavar="V", help="value of the event column that means an event")
    add(
        "--entry",
        metavar="COL",
        help="column of times from which the rows were observed, or of the dates that the time is "
        "counted from (default without --time: entry, or start beside stop)",
    )
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
                f"--{option.name.replace('_', '-')}",
                dest=option.name,
                type=option.read,
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
