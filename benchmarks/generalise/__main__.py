"""The command line of the study; see the package."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import traceback
from datetime import date
from pathlib import Path
from typing import Any

import benchmarks.generalise
from benchmarks.generalise.cells import PARTS, Cell, chosen_models, computed, with_conditions
from benchmarks.generalise.frames import CONDITIONS
from benchmarks.generalise.report import report
from benchmarks.machine import machine
from benchmarks.soft import _write

CATALOGUE = Path(__file__).parents[1] / "generalise.json"


def parser(catalogue: dict[str, Any]) -> argparse.ArgumentParser:
    """Groups are of one part; the name of a part stands for all of its groups."""
    groups = [group for part in catalogue["parts"].values() for group in part["groups"]]
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.generalise",
        description=benchmarks.generalise.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("groups", nargs="+", choices=[*groups, *PARTS], metavar="GROUP")
    options.add_argument("--models", nargs="+", metavar="NAME", help="or patterns; default: all")
    options.add_argument(
        "--add", nargs="+", metavar="NAME=JSON", default=[], help="models to try beside them"
    )
    options.add_argument("--sets", nargs="+", metavar="NAME")
    options.add_argument("--repeats", type=int, help="divisions into folds")
    options.add_argument(
        "--most-rows", nargs="+", type=int, metavar="N", help="draw at most so many rows of a set"
    )
    options.add_argument(
        "--train-rows", nargs="+", type=int, metavar="N", help="fit to so many rows of a fold"
    )
    options.add_argument(
        "--censor", nargs="+", type=float, metavar="SHARE", help="of training events, in addition"
    )
    options.add_argument("--against", metavar="NAME", help="the model of the differences")
    options.add_argument(
        "--together", nargs="+", metavar="GROUP", default=[], help="one more table over groups"
    )
    options.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    options.add_argument("--out", type=Path, default=Path("benchmarks/records"))
    options.add_argument("--name", help="of the record (default: generalise-PART)")
    options.add_argument("--date", help="of the record to go on with (default: today)")
    return options


def models_of(
    chosen: argparse.Namespace, parts: dict[str, Any], part: str
) -> dict[str, dict[str, Any]]:
    """The models that were asked for, under every condition that was asked for."""
    known = parts[part]["models"]
    if "models_of" in parts[part]:
        known = parts[parts[part]["models_of"]]["models"] | known
    models = chosen_models(known, chosen.models)
    for pair in chosen.add:
        name, _, parameters = pair.partition("=")
        models[name] = json.loads(parameters)
    conditions = {key: getattr(chosen, key) for key in CONDITIONS}
    if part == "simulated" and any(conditions.values()):
        raise ValueError("the name of a simulated set states its rows and its censoring")
    if part != "survival" and chosen.censor:
        raise ValueError(f"--censor does not apply to {part}")
    return with_conditions(models, **conditions)


def opened(path: Path, part: str, models: dict[str, Any]) -> dict[str, Any]:
    """The record to go on with, or an empty one."""
    if not path.exists():
        return {"date": date.today().isoformat(), "results": {}, "models": {}}
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.get("part") != part:
        raise ValueError(f"{path} is not a record of {part}; pass --name")
    for name, parameters in models.items():
        if record["models"].get(name, parameters) != parameters:
            raise ValueError(f"{path} has other parameters of {name!r}; pass --name")
    return record


def main(arguments: list[str] | None = None) -> int:
    """Compute the cells that the record lacks."""
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    options, parts = parser(catalogue), catalogue["parts"]
    chosen = options.parse_args(arguments)
    asked = {p for p, known in parts.items() if {p, *known["groups"]} & set(chosen.groups)}
    if len(asked) > 1:
        options.error(f"one part at a time, not {' and '.join(sorted(asked))}")
    (part,) = asked
    known = parts[part]
    names = [
        name
        for group, of_group in known["groups"].items()
        if {part, group} & set(chosen.groups)
        for name in of_group
    ]
    if unknown := set(chosen.sets or ()) - set(names):
        options.error(f"not in these groups: {', '.join(sorted(unknown))}")
    if unknown := set(chosen.together) - set(known["groups"]):
        options.error(f"no group of {part}: {', '.join(sorted(unknown))}")
    stem = f"{chosen.date or date.today().isoformat()}-{chosen.name or f'generalise-{part}'}"
    path = chosen.out / f"{stem}.json"
    try:
        models = models_of(chosen, parts, part)
        record = opened(path, part, models)
    except ValueError as error:
        options.error(str(error))
    limits = {key: catalogue[key] for key in ("folds", "most_rows", "seed")}
    limits["folds"] = known.get("folds", limits["folds"])
    record |= {"part": part, "catalogue": limits | {"groups": known["groups"]}}
    record |= {"machine": machine(), "models": record["models"] | models}
    against = chosen.against or known["against"]
    cells = []
    for name, model in itertools.product(chosen.sets or names, models):
        have = len(record["results"].get(f"{name} {model}", []))
        missing = tuple(range(have, chosen.repeats or known["repeats"]))
        if missing:
            most_rows = models[model].get("most_rows", limits["most_rows"])
            rest = models[model], limits["folds"], most_rows, limits["seed"]
            cells.append(Cell(part, name, model, missing, *rest))
    failed = 0
    for count, (cell, found) in enumerate(computed(cells, chosen.jobs), 1):
        about = f"{count}/{len(cells)} {cell.name}, {cell.model}"
        if isinstance(found, Exception):
            failed += 1
            print(f"{about} failed", file=sys.stderr)
            traceback.print_exception(found)
            continue
        record["results"].setdefault(f"{cell.name} {cell.model}", []).extend(found)
        shown = {k: round(v, 4) for k, v in found[-1].items()}
        print(f"{about}: {shown}", file=sys.stderr, flush=True)
        _write(path, record, report(record, against, chosen.together))
    text = report(record, against, chosen.together)
    _write(path, record, text)
    print(text)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
