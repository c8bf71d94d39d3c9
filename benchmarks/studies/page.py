"""Parts of a page: tables, pictures, published numbers, comparisons of methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

PUBLISHED = Path(__file__).with_name("published.csv")
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


def means(rows: pd.DataFrame, by: Sequence[str], metric: str) -> dict[Any, float]:
    """Mean of a metric by some columns of the key; a single column gives plain keys."""
    of_metric = rows[rows["metric"] == metric]
    return of_metric.groupby(by[0] if len(by) == 1 else list(by))["value"].mean().to_dict()


def seconds_or_limit(found: dict[Any, float], limits: dict[Any, float], key: Any) -> str:
    """Seconds, the limit that was reached ("> 60"), or – if it was not run."""
    if key in limits:
        return f"> {limits[key]:g}"
    return number(found.get(key))


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


def lines_by_method(axes: Any, rows: pd.DataFrame, along: str, methods: Sequence[str]) -> None:
    """A line per method: mean of ``value`` along a column of the key."""
    for look, method in zip(LOOKS, methods, strict=False):
        own = rows[rows["method"] == method].groupby(along)["value"].mean()
        if len(own):
            axes.plot(own.index, own.values, look, label=method, markersize=3, linewidth=1)
