"""The command line of the studies; see the package."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import benchmarks.studies
from benchmarks.machine import machine
from benchmarks.soft import _about
from benchmarks.studies import cells
from benchmarks.studies.page import table

ROOT = Path(__file__).parents[2]
STUDIES = ("surtree", "osst", "osdt", "streed", "soft", "growth", "optimality")
PEERS = ("pystreed", "osst", "gosdt", "pydl8.5", "scikit-survival", "SurvSet")


def main(arguments: list[str] | None = None) -> int:
    """Compute what is missing, and write pages; 1 if a cell failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies",
        description=benchmarks.studies.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("studies", nargs="+", choices=STUDIES)
    parser.add_argument("--quick", action="store_true", help="tiny sets: needs --out")
    parser.add_argument("--only", nargs="+", metavar="EXPERIMENT", help="of the study")
    parser.add_argument("--report", action="store_true", help="compute nothing")
    parser.add_argument("--out", type=Path, help="folder for records and pages; default: their own")
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.out is None:
        parser.error("--quick needs --out, since its numbers are no record")
    records = chosen.out or ROOT / "benchmarks" / "records" / "studies"
    pages = chosen.out or ROOT / "docs" / "studies"
    if not cells.log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        cells.log.addHandler(handler)
    cells.log.setLevel(logging.INFO)
    failed = 0
    for name in chosen.studies:
        study = importlib.import_module(f"benchmarks.studies.{name}")
        path = records / f"{name}.csv"
        if not chosen.report:
            wanted = {
                key: compute
                for key, compute in study.cells(chosen.quick).items()
                if chosen.only is None or key.experiment in chosen.only
            }
            with threadpool_limits(1):
                failed += cells.run(wanted, path)
            note(path.with_suffix(".json"), chosen.quick)
        write_page(study, path, pages)
    write_index(records, pages)
    return int(failed > 0)


def note(path: Path, quick: bool) -> None:
    """Describe the machine and the versions of the run."""
    found: dict[str, Any] = {"date": date.today().isoformat(), "quick": quick, "machine": machine()}
    for package in PEERS:
        try:
            found["machine"]["packages"][package] = version(package)
        except PackageNotFoundError:
            found["machine"]["packages"][package] = "missing"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def write_page(study: Any, path: Path, pages: Path) -> None:
    """Page of a study, made of its record; the headline is kept for the overview."""
    name = path.stem
    record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rows = cells.read(path)
    headlines, body = [], list(getattr(study, "ABOUT", []))
    for experiment, (title, section) in study.SECTIONS.items():
        own = rows[rows["experiment"].isin(experiment.split())]
        if len(own):
            text, lines = section(own, pages)
            headlines.append(text)
            body += [f"## {title}", "", *lines]
    headline = " ".join(filter(None, headlines))
    n_cells = int((rows["metric"] == cells.END).sum())
    record |= {"headline": headline, "cells": n_cells}
    path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    lines = [f"# {study.TITLE}", "", f"{study.SOURCE}", "", headline, ""]
    if record["quick"]:
        lines += ["**A reduced version on tiny sets: its numbers mean nothing.**", ""]
    lines += [
        f"`just study {name}` repeats this page. Its {n_cells} cells are in "
        f"`benchmarks/records/studies/{name}.csv`, last run on {record['date']}: {_about(record)}",
        "",
        *body,
        "## Differences from the paper" if "of the paper by" in study.SOURCE else "## What to know",
        "",
        *(f"* {difference}" for difference in study.DIFFERENCES),
    ]
    pages.mkdir(parents=True, exist_ok=True)
    # Two adapters of one program differ by this ending, which means nothing on a page.
    text = "\n".join(lines).replace("-labels", "") + "\n"
    (pages / f"{name}.md").write_text(text, encoding="utf-8")


def write_index(records: Path, pages: Path) -> None:
    """Overview of the studies that have a record."""
    rows, entries = [], []
    for name in STUDIES:
        file = records / f"{name}.json"
        record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        # A study that was stopped has no page yet.
        if "headline" in record:
            title = importlib.import_module(f"benchmarks.studies.{name}").TITLE
            rows.append([f"[{title}]({name}.md)", record["headline"], record["date"]])
            entries.append(name)
    lines = [
        "# The experiments of the papers",
        "",
        "Each page repeats the experiments of one paper, and compares our results with the",
        "published ones and with those of the programs that still run. Nothing was tuned towards a",
        "published number. Each page ends with the differences from the paper and their reasons.",
        *table(["study", "result", "date"], rows),
        "```{toctree}",
        ":hidden:",
        ":maxdepth: 1",
        "",
        *entries,
        "```",
    ]
    (pages / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
