"""Fitted trees as text and as plain dictionaries, in the user's own column names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from bristlecone._survival import SurvivalTreeMixin

__all__ = ["export_dict", "export_text"]


def export_dict(estimator: SurvivalTreeMixin) -> dict[str, Any]:
    """Nested dictionary of a fitted survival tree, of plain types ready for JSON.

    Parameters
    ----------
    estimator : fitted survival tree

    Returns
    -------
    dict
        Every node has ``node`` (id), ``n_samples`` and ``weight``. A split adds ``question``
        (such as "age <= 52.5"), ``yes`` and ``no`` (nodes); a leaf adds ``n_events``, ``theta``
        (relative hazard) and ``median`` (survival time, None where it is not reached).

    Raises
    ------
    NotFittedError
        When the estimator is not fitted.
    """
    check_is_fitted(estimator)
    tree, names = estimator.tree_, estimator._split_names()
    leaves = {leaf.node: leaf for leaf in estimator.leaf_statistics_}
    medians = dict(zip(leaves, estimator._leaf_quantiles(0.5).tolist(), strict=True))

    def describe(node: int) -> dict[str, Any]:
        described: dict[str, Any] = {
            "node": node,
            "n_samples": int(tree.n_node_samples[node]),
            "weight": float(tree.weighted_n_node_samples[node]),
        }
        if node in leaves:
            median = medians[node]
            return described | {
                "n_events": leaves[node].n_events,
                "theta": leaves[node].theta,
                "median": median if np.isfinite(median) else None,
            }
        question = names[tree.feature[node]]
        if tree.threshold is not None:
            question += f" <= {tree.threshold[node]:.10g}"
        return described | {
            "question": question,
            "yes": describe(int(tree.children_left[node])),
            "no": describe(int(tree.children_right[node])),
        }

    return describe(0)


def export_text(estimator: SurvivalTreeMixin) -> str:
    """Fitted survival tree as text, one line per node.

    Parameters
    ----------
    estimator : fitted survival tree

    Returns
    -------
    str
        Questions and, per leaf, rows, events, θ and median survival time. ASCII but for the
        names of columns and categories.

    Raises
    ------
    NotFittedError
        When the estimator is not fitted.
    """
    return "\n".join(_lines(export_dict(estimator), "", "")) + "\n"


def _lines(node: dict[str, Any], first: str, rest: str) -> Iterator[str]:
    """Lines of a subtree; ``first`` stands before its own line, ``rest`` before those below."""
    if "question" not in node:
        median = "not reached" if node["median"] is None else f"{node['median']:g}"
        yield (
            f"{first}n={node['n_samples']}, events={node['n_events']}, "
            f"theta={node['theta']:.4g}, median={median}"
        )
        return
    yield f"{first}{node['question']}"
    yield from _lines(node["yes"], f"{rest}|-- yes: ", f"{rest}|   ")
    yield from _lines(node["no"], f"{rest}`-- no:  ", f"{rest}    ")
