"""Tables of a record: mean scores, and paired differences with their standard errors."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

from benchmarks.generalise.cells import PARTS, WITHOUT_DIFFERENCE, under
from benchmarks.soft import _about


def report(record: dict[str, Any], against: str, together: list[str]) -> str:
    """A table of every group and condition of the record."""
    catalogue, part = record["catalogue"], record["part"]
    lines = [f"# Trees on new rows: {part}, {record['date']}", "", _about(record), ""]
    if part == "simulated":
        lines += [f"A division is {catalogue['folds']} samples. "]
    else:
        lines += [f"{catalogue['folds']} folds, at most {catalogue['most_rows']} rows per set. "]
    lines[-1] += (
        f"{PARTS[part][2]} stability: mean Jaccard index, over pairs of trees of a division, of the"
        " pairs of rows that share a leaf. proven: share of the searches that ended with a proof. "
        f"s: CPU seconds. ± is a standard error of the difference from `{against}`, over the sets, "
        "or over the divisions if there is one set."
    )
    groups = dict(catalogue["groups"])
    if together:
        groups[" and ".join(together)] = [name for group in together for name in groups[group]]
    conditions = dict.fromkeys(under(parameters) for parameters in record["models"].values())
    for group, names in groups.items():
        for condition in conditions:
            models = [m for m, p in record["models"].items() if under(p) == condition]
            if part == "simulated":
                for name in names:
                    lines += table(record, name, [name], models, condition, against)
            else:
                lines += table(record, f"Group {group}", names, models, condition, against)
    lines += ["", "## Models", ""]
    lines += [f"* {m}: `{json.dumps(p)}`" for m, p in record["models"].items()]
    return "\n".join(lines) + "\n"


def table(
    record: dict[str, Any],
    title: str,
    names: list[str],
    models: list[str],
    condition: str,
    against: str,
) -> list[str]:
    """Models by scores, over the sets on which each model that was begun has been computed."""
    results, scores = record["results"], PARTS[record["part"]][1]
    begun = [m for m in models if any(results.get(f"{n} {m}") for n in names)]
    names = [n for n in names if all(results.get(f"{n} {m}") for m in begun)]
    if not begun or not names:
        return []
    divisions = {len(results[f"{n} {m}"]) for n in names for m in begun}
    counted = " to ".join(str(n) for n in sorted({min(divisions), max(divisions)}))
    size = f"sets: {len(names)}, divisions: {counted}{condition}"
    lines = ["", f"## {title} ({size})", ""]
    of_model = {m: {s: units(results, names, m, s) for s in scores} for m in begun}
    shown = [s for s in scores if any(not math.isnan(v) for m in begun for v in of_model[m][s])]
    lines += ["| model | " + " | ".join(scores[s] for s in shown) + " |"]
    lines += ["|---" * (len(shown) + 1) + "|"]
    reference = of_model.get(against + condition)
    for model in begun:
        cells = []
        for score in shown:
            own = of_model[model][score]
            mean = statistics.fmean(own)
            text = "–" if math.isnan(mean) else f"{mean:.4g}"
            if reference is not None and reference is not of_model[model]:
                text += difference(own, reference[score], score)
            cells.append(text)
        lines.append(f"| {model.removesuffix(condition)} | " + " | ".join(cells) + " |")
    return lines


def difference(own: list[float], other: list[float], score: str) -> str:
    """Mean of the paired differences and its standard error, in brackets."""
    differences = [a - b for a, b in zip(own, other, strict=False)]
    if score in WITHOUT_DIFFERENCE or any(math.isnan(d) for d in differences):
        return ""
    text = f" ({statistics.fmean(differences):+.4f}"
    if len(differences) > 1:
        text += f" ± {statistics.stdev(differences) / math.sqrt(len(differences)):.4f}"
    return text + ")"


def units(
    results: dict[str, list[dict[str, float]]], names: list[str], model: str, score: str
) -> list[float]:
    """Means over the divisions, set by set; of a single set the divisions themselves."""
    of_set = [[r.get(score, math.nan) for r in results[f"{name} {model}"]] for name in names]
    return of_set[0] if len(of_set) == 1 else [statistics.fmean(values) for values in of_set]
