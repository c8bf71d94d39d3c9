"""Parts of a page: tables, pictures, published numbers, comparisons of methods."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from benchmarks.studies.cells import COLUMNS, Key

PUBLISHED = Path(__file__).with_name("published.csv")
RECORDS = Path(__file__).parents[1] / "records"
PICTURES: dict[str, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
# One look per method in all pictures of a study.
LOOKS = ("o-", "s--", "^:", "D-.", "v-", "P--", "X:", "*-.")


def published(study: str, place: str) -> pd.DataFrame:
    """Numbers of a table of a paper: set, method, setting, metric, value."""
    rows = pd.read_csv(PUBLISHED, dtype={"setting": str}, keep_default_na=False)
    return rows[(rows["study"] == study) & (rows["place"] == place)]


def recorded(study: str) -> tuple[str, pd.DataFrame]:
    """Name of the newest record of ``benchmarks.run``, and its runs as rows of cells."""
    path = sorted(RECORDS.glob(f"????-??-??-{study}.json"))[-1]
    record = json.loads(path.read_text(encoding="utf-8"))
    rows: list[Any] = []
    for run in record["runs"]:
        about = study, run["problem"], run["library"], run["max_depth"] or 0, run["leaf_penalty"], 0
        if run["seconds"]:
            rows.append((*about, "seconds", statistics.median(run["seconds"])))
            rows.append((*about, "loss", run["loss"]))
        else:
            rows.append((*about, "timeout", float(record["timeout"])))
    return path.stem, pd.DataFrame(rows, columns=COLUMNS)


def number(value: float | str | None, digits: int = 3) -> str:
    """Significant digits without an exponent where that is readable; – for nothing."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "–"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        exponent = 0 if value == 0 else math.floor(math.log10(abs(value)))
        return f"{value:,.{max(0, digits - 1 - exponent)}f}"
    return f"{value:.{digits - 1}e}"


def fixed(value: float, decimals: int = 2) -> str:
    """So many decimals, as the papers print scores."""
    return "–" if math.isnan(value) else f"{value:.{decimals}f}"


def table(heads: Sequence[str], rows: Iterable[Sequence[float | str | None]]) -> list[str]:
    """A Markdown table with a blank line around it."""
    lines = ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [f"| {' | '.join(number(cell) for cell in row)} |" for row in rows]
    return [*lines, ""]


def grid(frame: pd.DataFrame, decimals: int | None = None) -> list[str]:
    """A table of a frame: its index, and numbers with so many decimals (significant digits)."""
    body = [
        [*(key if isinstance(key, tuple) else (key,)), *values]
        for key, values in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    n_keys = frame.index.nlevels
    rows = [
        [k if isinstance(k, str) else f"{k:,.10g}" for k in row[:n_keys]]
        + [
            v if decimals is None or isinstance(v, str) else fixed(v, decimals)
            for v in row[n_keys:]
        ]
        for row in body
    ]
    return table([*(name or "" for name in frame.index.names), *map(str, frame.columns)], rows)


def wide(rows: pd.DataFrame, metric: str, by: Sequence[str] = ("set",)) -> pd.DataFrame:
    """Mean of a metric by some columns of the key, a column per method, in their order."""
    own = rows[rows["metric"] == metric]
    frame = own.pivot_table(index=list(by), columns="method", values="value", sort=False)
    return frame.reindex(columns=list(dict.fromkeys(own["method"])))


def means(rows: pd.DataFrame, by: Sequence[str], metric: str) -> dict[Any, float]:
    """Mean of a metric by several columns of the key."""
    return rows[rows["metric"] == metric].groupby(list(by))["value"].mean().to_dict()


def times(
    rows: pd.DataFrame, by: Sequence[str], methods: Sequence[str], heads: Sequence[str]
) -> list[str]:
    """A table of seconds by some columns of the key and by method.

    A limit that was reached is shown as "> 60", and – what was not run. ``heads`` are the titles of
    the columns before those of the methods.
    """
    keys = [*by, "method"]
    seconds, limits = means(rows, keys, "seconds"), means(rows, keys, "timeout")
    body = []
    shown = rows[rows["metric"].isin(["seconds", "timeout"])]
    for key in dict.fromkeys(shown[list(by)].itertuples(index=False, name=None)):
        row: list[Any] = [k if isinstance(k, str) else f"{k:,.10g}" for k in key]
        for method in methods:
            limit = limits.get((*key, method))
            row.append(f"> {limit:g}" if limit else seconds.get((*key, method)))
        body.append(row)
    return table([*heads, *methods], body)


def ratios(rows: pd.DataFrame, other: str, least: float = 0.1) -> list[float]:
    """Seconds of another method divided by ours, where both ended and it took so many seconds."""
    keys = [*Key._fields]
    wide = rows[rows["metric"] == "seconds"].pivot_table(
        index=[k for k in keys if k != "method"], columns="method", values="value"
    )
    if other not in wide:
        return []
    both = wide[[min(m for m in wide if m.startswith("bristlecone")), other]].dropna()
    both = both[both[other] >= least]
    return (both[other] / both.iloc[:, 0]).tolist()


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of positive numbers; NaN of none."""
    logs = np.log(np.fromiter(ratios, float))
    return float(np.exp(logs.mean())) if logs.size else math.nan


def compared(scores: pd.DataFrame, *, greater_is_better: bool) -> list[str]:
    """Methods of a frame (sets by methods): mean, mean rank, wins, and a Wilcoxon test.

    The test is of the signed ranks of the differences from the first method, over the sets on which
    all methods have a score, two-sided; p is adjusted by Holm's method over the comparisons.
    """
    whole = scores.dropna()
    ranks = whole.round(4).rank(axis=1, ascending=not greater_is_better)
    best = whole.max(axis=1) if greater_is_better else whole.min(axis=1)
    wins = (whole.round(2).sub(best.round(2), axis=0).abs() < 1e-9).sum()
    first = whole.columns[0]
    p = holm({m: signed_rank(whole[first], whole[m]) for m in whole.columns[1:]})
    rows = []
    for method in whole.columns:
        difference = (whole[first] - whole[method]) * (1 if greater_is_better else -1)
        against: list[float | str] = ["–", "–", "–"]
        if method != first:
            better, worse = int((difference > 0).sum()), int((difference < 0).sum())
            against = [f"{better} : {worse}", f"{(whole[first] - whole[method]).mean():+.4f}"]
            against.append(fixed(p[method], 3))
        own = [fixed(whole[method].mean(), 4), fixed(ranks[method].mean()), str(wins[method])]
        rows.append([method, *own, *against])
    heads = ["method", "mean", "mean rank", "best, to two digits", f"{first} better : worse"]
    return [
        *table([*heads, f"mean difference of {first}", "p (Wilcoxon, Holm)"], rows),
        f"{len(whole)} sets have a score of every method.",
        "",
    ]


def versus(frame: pd.DataFrame) -> str:
    """The first method against the second in a few words; greater is better."""
    first, second = frame.columns[:2]
    both = frame[[first, second]].dropna()
    difference = both[first] - both[second]
    return (
        f"mean difference from {second} {difference.mean():+.2g}, better on "
        f"{(difference > 0).sum()} and worse on {(difference < 0).sum()} sets "
        f"(p = {signed_rank(both[first], both[second]):.2f}, not adjusted)"
    )


def signed_rank(one: pd.Series, other: pd.Series) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; 1 if nothing differs."""
    difference = (one - other).round(12)
    if not difference.any():
        return 1.0
    return float(wilcoxon(difference, method="approx").pvalue)


def holm(p: dict[str, float]) -> dict[str, float]:
    """Adjusted by Holm's step-down method."""
    adjusted, least = {}, 0.0
    for place, method in enumerate(sorted(p, key=p.__getitem__)):
        least = max(least, min(1.0, (len(p) - place) * p[method]))
        adjusted[method] = least
    return adjusted


def picture(path: Path, panels: int, draw: Callable[[Any], None], height: float = 2.6) -> None:
    """Draw panels beside each other. ``draw`` gets the axes; the legend is that of the first."""
    import matplotlib.pyplot as plt

    with plt.rc_context(PICTURES):
        figure, axes = plt.subplots(
            1, panels, figsize=(min(8.5, 3.2 * panels + 0.6), height), squeeze=False
        )
        draw(axes[0])
        axes[0][0].legend()
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without the version of matplotlib, which would change the file.
        figure.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(figure)


def curves(
    path: Path,
    rows: pd.DataFrame,
    along: str,
    labels: tuple[str, str],
    *,
    panels: str = "set",
    log: str = "",
) -> list[str]:
    """Draw the mean of ``value`` along a column, a line per method and a panel per set.

    ``labels`` are those of the axes; the second may be empty where the panels are units. ``log``
    names the axes with a logarithmic scale. Returns the lines that show the picture.
    """
    names = list(dict.fromkeys(rows[panels]))
    methods = list(dict.fromkeys(rows["method"]))

    def draw(axes: Any) -> None:
        for ax, name in zip(axes, names, strict=True):
            for look, method in zip(LOOKS, methods, strict=False):
                own = rows[(rows[panels] == name) & (rows["method"] == method)]
                mean = own.groupby(along)["value"].mean()
                ax.plot(mean.index, mean.values, look, label=method, markersize=3, linewidth=1)
            scales = {f"{axis}scale": "log" for axis in log}
            ax.set(title=name, xlabel=labels[0], **scales)
        axes[0].set_ylabel(labels[1])

    picture(path, len(names), draw)
    return [f"![{labels[1] or ', '.join(names)} by {labels[0]}]({path.name})", ""]
