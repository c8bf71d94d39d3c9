"""A fitted tree as ``fit`` and ``show`` print it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bristlecone._cli.tables import shown
from bristlecone._search.certificate import Certificate
from bristlecone.export import export_text


def tree_text(estimator: Any, source: str) -> str:
    """Text with the source and size of a tree, the tree, and its proof."""
    tree = export_text(estimator)  # raises if there is none
    proof = "".join(f"{name:16}{value}\n" for name, value in _proof(estimator.certificate_))
    return f"{source}: {size(estimator)}\n\n{tree}\n{proof}"


def size_text(results: Mapping[str, Any], chosen: int, metric: str) -> str:
    """Scores of trees by their number of leaves, as a table."""
    columns = (results[name] for name in ("n_leaves", "mean_test_score", "se_test_score"))
    lines = [f"leaves  {metric:>11}  standard error"]
    for place, (leaves, mean, error) in enumerate(zip(*columns, strict=True)):
        mark = "  chosen" if place == chosen else ""
        lines.append(f"{leaves:>6}  {mean:>{max(11, len(metric))}.4f}  {error:>14.4f}{mark}")
    return "\n".join(lines) + "\n"


def size(estimator: Any) -> str:
    """Number of rows, events and columns the tree was fitted with."""
    counts = {"row": int(estimator.tree_.n_node_samples[0])}
    events = [fact["n_events"] for fact in estimator.leaves_.facts() if "n_events" in fact]
    if events:
        counts["event"] = sum(events)
    counts["column"] = estimator.n_features_in_
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items())


def _proof(found: Certificate) -> list[tuple[str, str]]:
    """Objective, lower bound, gap, status, binary features, seconds, groups and remarks."""
    if found.is_searched:
        lines = [*found.numbers[:3], ("status", found.sentence), *found.numbers[3:]]
    else:
        objective, *_ = found.numbers
        lines = [objective, ("status", found.sentence), ("seconds", f"{found.seconds:.3g}")]
    if found.groups is not None:
        compared = "RMST" if found.groups.confusion is None else "rates"
        rows = [[f"{compared} by group", *(values for _, values in found.groups.lines)]]
        # The rates are above, or follow from these.
        rows += [row for row in found.groups.table if row[0].endswith(("positives", "negatives"))]
        names = [shown(name) for name, _ in found.groups.lines]
        for what, *values in rows:
            of_groups = zip(names, values, strict=True)
            lines.append((what, ", ".join(f"{name}: {value}" for name, value in of_groups)))
    return lines
