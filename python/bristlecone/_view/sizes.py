"""Trees of every size, and scores by size: what picture and page of a size path show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._types import Floats
from bristlecone._view.fitted import check_tree

_WORDS = {
    "concordance": "concordance index",
    "uno": "concordance index (Uno)",
    "ibs": "negative integrated Brier score",
    "auc": "mean AUC over time",
    "likelihood": "log-likelihood per row",
    "calibration": "negative calibration error",
}


class Scores(NamedTuple):
    """Cross-validated scores of sizes, greater is better, and the size that was chosen."""

    name: str
    sizes: list[int]
    mean: Floats
    error: Floats
    chosen: int


def scores_of(path: Any) -> Scores | None:
    """Scores of a fitted ``TreeSizeCV``, by the metric that chose; None for anything else."""
    results = getattr(path, "cv_results_", None)
    if results is None or not hasattr(path, "best_n_leaves_"):
        return None
    names = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
    refit = getattr(path, "refit", None)
    name = refit if refit in names else names[0]
    scoring = path.scoring if name == "score" else name
    words = path.best_estimator_._score_name
    if scoring is not None:
        words = _WORDS.get(scoring, scoring) if isinstance(scoring, str) else name
    return Scores(
        words.replace("_", " "),
        np.asarray(results["n_leaves"]).tolist(),
        np.asarray(results[f"mean_test_{name}"]),
        np.asarray(results[f"se_test_{name}"]),
        path.best_n_leaves_,
    )


def trees_of(path: Any, what: str) -> list[tuple[int, Any]]:
    """Largest number of leaves and tree of every entry of a path, where there is a tree.

    Raises
    ------
    TypeError
        If ``path`` is no sequence of trees that were searched for; ``what`` is the function.
    ValueError
        If it has no tree.
    """
    if isinstance(path, (str, bytes)) or not isinstance(path, Sequence):
        raise TypeError(
            f"{what} takes the list that size_path returns, or a fitted TreeSizeCV; got "
            f"{type_name(path)}"
        )
    trees = []
    for size, tree in enumerate(path, start=1):
        found = getattr(tree, "certificate_", None)
        if found is None:
            check_tree(tree, what)
        elif not found.is_searched:
            raise TypeError(
                f"{what} takes trees that were searched for; entry {size - 1} is {type_name(tree)}"
            )
        elif not found.is_treeless:
            trees.append((size, tree))
    if not trees:
        raise ValueError("the size path has no tree")
    return trees
