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

__all__ = ["parse"]

_DATA = (
    "CSV file (compressed by gzip or not), Parquet file, - for standard input, or the name of a "
    "bundled set"
)
_WIDTH = 80
_FORMS = ("sql", "python", "r", "onnx", "dot", "rules", "text", "json")
_DIALECTS = ("ansi", "duckdb", "mysql", "postgresql", "sqlite")
RULES = ("one-standard-error", "best")
"""Of ``TreeSizeCV``."""
# From which similarity an option is suggested in place of another.
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
        description="Optimal survival trees, and others, from the command line.",
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
        ("export", "write a saved tree as SQL, Python, R, ONNX and more", _add_export),
        ("verify", "compute all that a saved tree says anew from its rows", _add_verify),
        ("datasets", "list the bundled data sets, or describe one", _add_datasets),
    ):
        add(commands.add_parser(name, help=short))
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
    """Which estimator the options are of; the default where it is not known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--estimator", nargs="?")
    name = parser.parse_known_args(argv)[0].estimator
    return name if name in KINDS else DEFAULT


def _refuse(arguments: argparse.Namespace, unknown: list[str]) -> None:
    """Raise for arguments that nothing is known of."""
    parser = arguments.parser
    option = next((text for text in unknown if text.startswith("--")), unknown[0])
    option = option.partition("=")[0]
    message = f"unrecognized arguments: {' '.join(unknown)}"
    if arguments.command == "fit":
        others = [name for name in KINDS if option in _fit_parser(name).options]
        if others:
            message = f"--estimator {arguments.estimator} has no {option}, which is of "
            message += ", ".join(others)
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
        f"{kind.aim} Every column is a feature but those named below and those dropped.", _WIDTH
    )
    parser.epilog = f"""estimators, each with options of its own (--estimator NAME --help):
{_list_of_kinds()}
  The task of an OptimalTree is code: fit it in Python.

examples:
{_examples(chosen, kind)}
  bristlecone fit study.csv --estimator classifier --target stage --model tree.json
  zcat study.csv.gz | bristlecone fit - --time days --event status --estimate
"""
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument(
        "--estimator",
        metavar="NAME",
        choices=tuple(KINDS),
        default=DEFAULT,
        help=f"what to fit, see below (default: {DEFAULT})",
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
                help=f"{option.help} (default: {str(option.default).lower()})",
            )


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
    if kind.predicts_survival:
        _add_event_value(group)
    group.add_argument("--drop", help="columns to ignore", **_LISTED)
    group.add_argument(
        "--categorical",
        help="columns to take as text though their cells are numbers",
        **_LISTED,
    )
    _add_missing(group)


def _add_output(group: Any, kind: Kind) -> None:
    add = group.add_argument
    add("--model", metavar="JSON", help="save the tree to this file")
    _add_report(group, "names the data")
    if kind.predicts_survival:
        _add_time_label(group, "names the column")
    if kind.is_searched:
        add("--estimate", action="store_true", help="print what the search would take, and stop")
        add(
            "--progress",
            action="store_true",
            help="show best tree and bound from the start, on a terminal or not (default: on a "
            "terminal, after a second)",
        )


def _add_report(group: Any, title: str) -> None:
    group.add_argument("--report", metavar="HTML", help="write an interactive page about the tree")
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
        help="choose the number of leaves by cross-validation, up to what the other options allow",
    )
    add("--folds", metavar="N", type=_at_least(2), help="number of folds (default: 5)")
    add(
        "--repeats",
        metavar="N",
        type=_at_least(1),
        help="times that the folds are drawn (default: 1)",
    )
    add(
        "--rule",
        choices=RULES,
        help=f"the smallest size within one standard error of the best, or the best (default: "
        f"{RULES[0]})",
    )
    add(
        "--scoring",
        metavar="NAME",
        help="metric that chooses: concordance, uno, ibs, auc or likelihood for survival trees, a "
        "scorer of scikit-learn for others (default: score of the class, of costs the mean cost)",
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
        help="cells that stand for a missing value (default: empty cells, NA, N/A, NaN, nan, "
        "NULL and null, which always do)",
        **{**_LISTED, "metavar": "CELL"},
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a CSV with one line per row of DATA: the leaf and the prediction. Of a survival\n"
        "tree that is the risk (higher is earlier), the median of the model's survival curve (inf\n"
        "where it is not reached) and the survival at the given times; of a classifier the label\n"
        "and the probability of every label; of a policy the treatment and the estimated outcome\n"
        "of every treatment."
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
        help="times to tell the survival at (default: none)",
        **{**_LISTED, "metavar": "T", "type": float},
    )
    add(
        "--id",
        help="columns to copy to the output, such as an identifier (default: none)",
        **_LISTED,
    )
    _add_missing(parser)
    add("--out", metavar="CSV", help="file to write (default: standard output)")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print a saved tree as fit printed it, and write a page about it."
    parser.epilog = """examples:
  bristlecone show tree.json
  bristlecone show tree.json --report tree.html --time-label "days from surgery"
"""
    parser.add_argument("model", metavar="MODEL", help="file written by fit --model")
    _add_report(parser, "names the file")
    _add_time_label(parser, "time")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = fill(
        "Write a saved tree in a form that runs without this package, with its leaf and "
        "predictions: sql, python, r and onnx. dot is a picture for Graphviz, rules a CSV with a "
        "line per leaf, text what show prints of the tree, and json the tree as data.",
        _WIDTH,
    )
    parser.epilog = """examples:
  bristlecone export tree.json --to sql --table patients --times 365 1825
  bristlecone export tree.json --to onnx --out tree.onnx
"""
    add = parser.add_argument
    add("model", metavar="MODEL", help="file written by fit --model")
    add("--to", metavar="FORM", required=True, choices=_FORMS, help=", ".join(_FORMS))
    add(
        "--times",
        help="times to tell the survival at (default: none)",
        **{**_LISTED, "metavar": "T", "type": float},
    )
    add("--table", metavar="NAME", help="table to select from (default: expressions alone)")
    add(
        "--dialect",
        metavar="NAME",
        choices=_DIALECTS,
        help=f"{', '.join(_DIALECTS)} (default: {_DIALECTS[0]})",
    )
    add("--out", metavar="FILE", help="file to write (default: standard output)")


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compute everything that a saved tree says anew from the rows of its fit, with code\n"
        "that shares nothing with the search: leaves, sizes, curves, predictions, limits,\n"
        "objective; and, where that is small, the lower bound from every tree there is. The\n"
        "exit status is 0 when all checks hold and 1 when one fails. Columns that hold the\n"
        "outcomes are named as in fit; the tree knows the others."
    )
    parser.epilog = """examples:
  bristlecone verify tree.json gbsg2
  bristlecone verify tree.json study.csv --time days --event status
"""
    add = parser.add_argument
    add("model", metavar="MODEL", help="file written by fit --model")
    add("data", metavar="DATA", help=f"{_DATA}: the rows of the fit, in their order")
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
        help="work that the search through every tree may take, in units of about 10 ns "
        "(default: 5e8, five seconds)",
    )


def _add_datasets(parser: argparse.ArgumentParser) -> None:
    parser.description = "List the bundled data sets, or tell the source and columns of one."
    parser.epilog = "example: bristlecone datasets gbsg2"
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="data set to describe (default: list all)"
    )
