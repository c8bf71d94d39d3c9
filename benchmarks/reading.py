"""Seconds that the command line reads a CSV file in, beside those of ``pandas.read_csv``.

``python -m benchmarks.reading`` writes files of 500,000 rows, reads each several times in turn with
the reader of the command line and with pandas alone (the same options), and prints medians of CPU
seconds; ``--out benchmarks/records`` writes a dated record. The limit is 1.2 times pandas.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.machine import machine
from bristlecone._cli.csv_file import MISSING
from bristlecone._cli.tables import open_table
from bristlecone._data.frame import correctly_rounded

MOST = 1.2
QUOTED = {"quoting": csv.QUOTE_ALL}
# With gaps there, the cells of every line are counted by the rules of quotation.
COUNTED = "every cell quoted, gaps in the last column"
KINDS: dict[str, dict[str, Any]] = {
    "commas": {},
    "commas and carriage returns": {"lineterminator": "\r\n"},
    "semicolons, decimal commas": {"sep": ";", "decimal": ","},
    "every cell quoted": QUOTED,
    COUNTED: QUOTED,
    "gzip": {"compression": "gzip"},
}


def rows(n_rows: int) -> pd.DataFrame:
    """Measurements of all digits and of two, counts, categories, text, gaps in four columns."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"measurement {k}": rng.normal(size=n_rows) for k in range(3)}
    columns |= {f"rounded {k}": rng.normal(60, 9, n_rows).round(2) for k in range(3)}
    columns |= {f"count {k}": rng.poisson(9, n_rows) for k in range(3)}
    columns["stage"] = rng.choice(["I", "II", "III", "IV"], n_rows)
    columns["centre"] = rng.choice([f"centre {k}" for k in range(50)], n_rows)
    columns["patient"] = [f"P{k:07}" for k in range(n_rows)]
    columns["event"] = rng.integers(0, 2, n_rows)
    columns["time"] = rng.exponential(1000, n_rows).round(1)
    columns["remark"] = rng.choice(["seen", "called", "moved"], n_rows)
    frame = pd.DataFrame(columns)
    for name in ("measurement 0", "rounded 0", "stage", "remark"):
        frame.loc[rng.random(n_rows) < 0.1, name] = np.nan
    return frame


def by_pandas(path: Path, kind: dict[str, Any]) -> pd.DataFrame:
    """The file as pandas reads it with the options of the command line."""
    return pd.read_csv(
        path,
        sep=kind.get("sep", ","),
        decimal=kind.get("decimal", "."),
        index_col=False,
        keep_default_na=False,
        na_values=sorted(MISSING),
        skipinitialspace=True,
        low_memory=False,
        **correctly_rounded(),
    )


def seconds(read: Callable[[], pd.DataFrame]) -> tuple[float, pd.DataFrame]:
    """CPU seconds, and what was read."""
    begun = time.process_time()
    frame = read()
    return time.process_time() - begun, frame


def measure(n_rows: int, repeats: int) -> list[dict[str, Any]]:
    """Median seconds of both for every kind of file."""
    table, found = rows(n_rows), []
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            path = Path(folder) / "rows.csv"
            written = table.drop(columns="remark") if name == "every cell quoted" else table
            written.to_csv(path, index=False, **kind)
            if "compression" in kind:
                path = path.rename(f"{path}.gz")
            ours, theirs = [], []
            for _ in range(repeats):
                ours.append(seconds(lambda path=path: open_table(str(path)).read()))
                theirs.append(seconds(lambda path=path, kind=kind: by_pandas(path, kind)))
            pd.testing.assert_frame_equal(ours[-1][1], theirs[-1][1])
            found.append(
                {
                    "file": name,
                    "bytes": path.stat().st_size,
                    "seconds": statistics.median(one for one, _ in ours),
                    "pandas_seconds": statistics.median(one for one, _ in theirs),
                }
            )
    return found


def report(record: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = [
        f"# Reading CSV files, {record['date']}",
        "",
        f"{record['rows']:,} rows of 15 columns (14 if quoted without gaps in the last one); "
        f"medians of {record['repeats']} readings in turn, in CPU seconds, by the command line and "
        f"by pandas {record['pandas']} alone with the same options. Limit of the ratio: {MOST}, "
        "except for the file with gaps in the last of its quoted columns.",
        "",
        "| file | MB | command line | pandas | ratio |",
        "|---|---|---|---|---|",
    ]
    for one in record["files"]:
        ratio = one["seconds"] / one["pandas_seconds"]
        lines.append(
            f"| {one['file']} | {one['bytes'] / 1e6:.0f} | {one['seconds']:.2f} | "
            f"{one['pandas_seconds']:.2f} | {ratio:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    record = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "pandas": version("pandas"),
        "rows": arguments.rows,
        "repeats": arguments.repeats,
        "files": measure(arguments.rows, arguments.repeats),
    }
    text = report(record)
    print(text)
    if arguments.out is not None:
        path = arguments.out / f"{record['date']}-reading"
        path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(text, encoding="utf-8")
    limited = [one for one in record["files"] if one["file"] != COUNTED]
    return int(any(one["seconds"] > MOST * one["pandas_seconds"] for one in limited))


if __name__ == "__main__":
    sys.exit(main())
