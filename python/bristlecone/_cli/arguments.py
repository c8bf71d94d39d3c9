"""The arguments of every command; nothing heavy is imported here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from shlex import join
from textwrap import fill
from typing import Any, NoReturn

from bristlecone._cli.kinds import DEFAULT, KINDS, Kind, Role, flag
from bristlecone._core import __version__
from bristlecone._estimators.parameters import Parameter

_DATA = (
    "CSV file (compressed by gzip or not), Parquet file, - for standard input, or the name of a "
    "bundled data set (see bristlecone datasets)"
)
_PARTS = "or a folder or glob of Parquet files, which are read in parts"
_WIDTH = 80
_FORMS = ("sql", "python", "r", "onnx", "dot", "rules", "text", "json")
_DIALECTS = ("ansi", "duckdb", "mysql", "postgresql", "sqlite")
RULES = ("best", "one-standard-error")
"""Rules of ``TreeSizeCV``."""
# Similarity from which another option is suggested.
_ALIKE = 0.75
_LISTED: dict[str, Any] = {"metavar": "COL", "nargs": "+", "action": "extend", "default": []}


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **options,
        )

    @property
    def options(self) -> list[str]:
        """Every option by its name."""
        return list(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace | None:
    """Arguments, with ``command`` and the whole ``line``; None after printing the help.

    Raises
    ------
    ValueError
        For arguments that are not understood.
    SystemExit
        After ``--help`` and ``--version``.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser = _Parser(
        prog="bristlecone",
        description="Fit optimal survival trees and other trees from the command line.",
        epilog="example: bristlecone fit gbsg2 --max-depth 2 --report gbsg2.html",
    )
    parser.add_argument("--version", action="version", version=f"bristlecone {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    estimator = _estimator_of(argv)
    fit = "bristlecone fit" + (f" --estimator {estimator}" if estimator != DEFAULT else "")
    _add_fit(commands.add_parser("fit", help="fit a tree to a data set", prog=fit), estimator)
    for name, short, add in (
        ("predict", "apply a saved tree to new rows", _add_predict),
        ("show", "print a saved tree", _add_show),
        ("export", "write a saved tree as SQL, Python, R, ONNX and other formats", _add_export),
        ("verify", "recompute every value of a saved tree from its rows", _add_verify),
        ("datasets", "list the bundled data sets, or describe one", _add_datasets),
    ):
        command = commands.add_parser(name, help=short)
        if name != "datasets":
            command.add_argument("model", metavar="MODEL", help="file written by fit --model")
        add(command)
    for name, command in commands.choices.items():
        command.set_defaults(command=name, parser=command)
    arguments, unknown = parser.parse_known_args(argv)
    if not hasattr(arguments, "command"):
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        parser.print_help()
        return None
    if unknown:
        _refuse(arguments, unknown)
    arguments.line = join(["bristlecone", *argv])
    return arguments


def _estimator_of(argv: Sequence[str]) -> str:
    """The estimator whose options to show; the default if it is not known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--estimator", nargs="?")
    name = parser.parse_known_args(argv)[0].estimator
    return name if name in KINDS else DEFAULT


def _refuse(arguments: argparse.Namespace, unknown: list[str]) -> None:
    """Raise for unknown arguments."""
    parser = arguments.parser
    option = next((text for text in unknown if text.startswith("--")), unknown[0])
    option = option.partition("=")[0]
    message = f"unrecognized arguments: {' '.join(unknown)}"
    if arguments.command == "fit":
        others = [name for name in KINDS if option in _fit_parser(name).options]
        if others:
            message = f"--estimator {arguments.estimator} has no option {option}; it is an option "
            message += f"of {', '.join(others)}"
    close = get_close_matches(option, parser.options, n=1, cutoff=_ALIKE)
    parser.error(message + (f"; did you mean {close[0]}?" if close else ""))


def _fit_parser(estimator: str) -> _Parser:
    parser = _Parser()
    _add_fit(parser, estimator)
    return parser


def _add_fit(parser: argparse.ArgumentParser, estimator: str) -> None:
    kind = KINDS[estimator]
    chosen = f"--estimator {estimator} " if estimator != DEFAULT else ""
    parser.usage = f"{parser.prog} DATA [options]"
    parser.description = fill(
        f"{kind.aim} All columns are features, except those named below and those dropped.", _WIDTH
    )
    parser.epilog = f"""estimators; each has its own options (--estimator NAME --help):
{_list_of_kinds()}
  OptimalTree is not available here, because its task is Python code.

examples:
{_examples(chosen, kind)}
  bristlecone fit study.csv --estimator classifier --target stage --model tree.json
  zcat study.csv.gz | bristlecone fit - --time days --event status --estimate
"""
    parser.add_argument("data", metavar="DATA", help=f"{_DATA}; {_PARTS}")
    parser.add_argument(
        "--estimator",
        metavar="NAME",
        choices=tuple(KINDS),
        default=DEFAULT,
        help=f"estimator to fit, see below (default: {DEFAULT})",
    )
    _add_columns(parser.add_argument_group("columns"), kind)
    _add_output(parser.add_argument_group("output"), kind)
    parser.set_defaults(estimate=False, progress=False, time_label=None, tune=None)
    if kind.has_sizes:
        _add_size(parser.add_argument_group("size"))
    for group in kind.groups:
        options = parser.add_argument_group(group.title)
        for option in group.options:
            options.add_argument(
                flag(option),
                dest=option.name,
                type=option.read,
                metavar=option.metavar,
                nargs=option.nargs,
                action="extend" if option.nargs else "store",
                default=argparse.SUPPRESS,
                help=_help(option),
            )


def _help(option: Parameter) -> str:
    """Help of an option; its default is added unless the text has one or it is required."""
    if "(default: " in option.help or option.help.endswith("; required"):
        return option.help
    return f"{option.help} (default: {str(option.default).lower()})"


def _list_of_kinds() -> str:
    width = max(map(len, KINDS))
    return "\n".join(f"  {name:{width}}  {kind.what}" for name, kind in KINDS.items())


def _examples(chosen: str, kind: Kind) -> str:
    examples = [kind.example]
    if kind.cls == KINDS[DEFAULT].cls:
        examples = ["gbsg2 --max-depth 2 --report gbsg2.html", *examples]
    return "\n".join(
        f"  bristlecone fit {data} {chosen}{rest}"
        for data, _, rest in (example.partition(" ") for example in examples)
    )


def _add_columns(group: Any, kind: Kind) -> None:
    for role in kind.roles:
        _add_role(group, role)
    if kind.predicts_survival and not kind.has_causes:
        _add_event_value(group)
    group.add_argument("--drop", help="columns to ignore", **_LISTED)
    group.add_argument(
        "--categorical",
        help="columns to treat as categories although they contain numbers",
        **_LISTED,
    )
    _add_missing(group)


def _add_output(group: Any, kind: Kind) -> None:
    add = group.add_argument
    add("--model", metavar="JSON", help="save the tree to this file")
    _add_report(group, "the name of the data")
    if kind.predicts_survival:
        _add_time_label(group, "the name of the time column")
    if kind.is_searched:
        add(
            "--estimate",
            action="store_true",
            help="print a forecast of the time and memory of the search, and stop",
        )
        add(
            "--progress",
            action="store_true",
            help="show the progress of the search from the start, even if the output is not a "
            "terminal (default: on a terminal, after a second)",
        )


def _add_report(group: Any, title: str) -> None:
    group.add_argument(
        "--report", metavar="HTML", help="write an interactive report about the tree"
    )
    group.add_argument("--title", metavar="TEXT", help=f"headline of the report (default: {title})")


def _add_time_label(group: Any, label: str) -> None:
    group.add_argument(
        "--time-label", metavar="TEXT", help=f"label of its time axes (default: {label})"
    )


def _add_role(group: Any, role: Role) -> None:
    several = {"nargs": "+", "action": "extend"} if role.is_many else {}
    group.add_argument(flag(role), metavar="COL", help=role.help, **several)


def _add_event_value(group: Any) -> None:
    group.add_argument(
        "--event-value", metavar="V", help="value of the event column that means an event"
    )


def _add_size(group: Any) -> None:
    add = group.add_argument
    add(
        "--tune",
        action="store_true",
        default=None,
        help="choose the number of leaves by cross-validation, within the limits of the other "
        "options",
    )
    add("--folds", metavar="N", type=_at_least(2), help="number of folds (default: 5)")
    add(
        "--repeats",
        metavar="N",
        type=_at_least(1),
        help="number of times the folds are drawn (default: 1)",
    )
    add(
        "--rule",
        choices=RULES,
        help=f"the best size, or the smallest one within one standard error of it (default: "
        f"{RULES[0]})",
    )
    add(
        "--scoring",
        metavar="NAME",
        help="metric for the choice: concordance, uno, ibs, auc, likelihood or calibration for "
        "survival trees, a scorer of scikit-learn for others (default: the score method; "
        "for costs the mean cost)",
    )


def _at_least(least: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}; got {number}")
        return number

    return integer


def _add_missing(group: Any) -> None:
    group.add_argument(
        "--na",
        help="additional cell values to read as missing (always: empty cells, NA, N/A, NaN, nan, "
        "NULL and null)",
        **{**_LISTED, "metavar": "CELL"},
    )


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--times",
        help="times at which to predict survival (default: none)",
        **{**_LISTED, "metavar": "T", "type": float},
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a CSV with one line per row of DATA: the leaf and the prediction. A survival tree\n"
        "predicts the risk (higher means an earlier event), the median of its survival curve (inf\n"
        "if it is not reached) and the survival at the given times. A classifier predicts the\n"
        "label and the probability of every label. A policy predicts the treatment and the\n"
        "estimated outcome of every treatment. A competing-risks tree predicts the risk of one\n"
        "cause and, at the given times, its cumulative incidence and the event-free survival."
    )
    parser.epilog = """examples:
  bristlecone predict tree.json new.csv --times 365 1825 --out predictions.csv
  bristlecone predict tree.json new.csv --id patient
"""
    add = parser.add_argument
    add("data", metavar="DATA", help=f"{_DATA}; columns that the tree does not use are ignored")
    _add_times(parser)
    add(
        "--cause",
        metavar="K",
        type=int,
        help="cause to predict with a competing-risks tree (default: 1)",
    )
    add(
        "--id",
        help="columns to copy to the output, such as an identifier (default: none)",
        **_LISTED,
    )
    _add_missing(parser)
    add("--out", metavar="CSV", help="file to write (default: standard output)")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a saved tree in the same form as fit, and optionally write a report."
    )
    parser.epilog = """examples:
  bristlecone show tree.json
  bristlecone show tree.json --report tree.html --time-label "days from surgery"
"""
    _add_report(parser, "the name of the file")
    _add_time_label(parser, "time")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = fill(
        "Write a saved tree in another format. sql, python, r and onnx run without this package "
        "and return the leaf and the predictions. dot is a picture for Graphviz, rules a CSV with "
        "one line per leaf, text the tree as printed by show, and json the tree as data.",
        _WIDTH,
    )
    parser.epilog = """examples:
  bristlecone export tree.json --to sql --table patients --times 365 1825
  bristlecone export tree.json --to onnx --out tree.onnx
"""
    add = parser.add_argument
    add("--to", metavar="FORM", required=True, choices=_FORMS, help=", ".join(_FORMS))
    _add_times(parser)
    add("--table", metavar="NAME", help="table to select from (default: only the expressions)")
    add(
        "--dialect",
        metavar="NAME",
        choices=_DIALECTS,
        help=f"{', '.join(_DIALECTS)} (default: {_DIALECTS[0]})",
    )
    add("--out", metavar="FILE", help="file to write (default: standard output)")


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Recompute every value of a saved tree from the rows of its fit, with code that shares\n"
        "nothing with the search: leaves, sizes, curves, predictions, limits and the objective.\n"
        "For small problems, the lower bound is proven again by trying every tree. The exit\n"
        "status is 0 if all checks pass and 1 if one fails. Name the columns of the outcome as\n"
        "in fit; the tree contains the names of the others."
    )
    parser.epilog = """examples:
  bristlecone verify tree.json gbsg2
  bristlecone verify tree.json study.csv --time days --event status
"""
    add = parser.add_argument
    add("data", metavar="DATA", help=f"{_DATA}: the rows of the fit, in the same order")
    group = parser.add_argument_group("columns")
    roles: dict[str, Role] = {}
    for role in (role for kind in KINDS.values() for role in kind.roles):
        roles.setdefault(role.name, role)
    for role in roles.values():
        _add_role(group, role)
    _add_event_value(group)
    _add_missing(group)
    parser.set_defaults(drop=[], categorical=[])
    add(
        "--most-work",
        type=float,
        metavar="N",
        default=5e8,
        help="largest amount of work for the search through every tree, in units of 10 ns "
        "(default: 5e8, five seconds)",
    )


def _add_datasets(parser: argparse.ArgumentParser) -> None:
    parser.description = "List the bundled data sets, or describe one of them."
    parser.epilog = "example: bristlecone datasets gbsg2"
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="data set to describe (default: list all)"
    )
