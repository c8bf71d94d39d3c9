"""Trees as nested dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from bristlecone._encoder.decisions import Decision, tree_decisions
from bristlecone._soft.tree import SoftTree
from bristlecone._view.fitted import check_tree

__all__ = ["export_dict"]


def export_dict(tree: Any) -> dict[str, Any]:
    """Nested dictionary of a fitted tree, of plain types ready for JSON.

    Parameters
    ----------
    tree : fitted tree

    Returns
    -------
    dict
        Every node has ``node`` (id, as from ``apply``), ``n_samples`` and ``weight``. A split adds
        ``question`` (such as "age <= 52"), ``yes`` and ``no`` (nodes), and the same for a program:
        ``column``; ``kind``, which is "at most" (yes where the number, as float64, is at most
        ``bound``), "level" (yes where the category is one of ``levels``), "flag" or "missing"; and
        ``missing``, the answer where there is no value. A split of a soft tree has the kind "soft",
        ``intercept`` and ``coefficients`` by design column (yes where the sum is at least 0), one
        over features of an encoder of the user's own the kind "own" and ``feature``.

        A leaf of a survival tree adds ``n_events`` and ``event_weight``, ``theta`` (relative
        hazard), ``median`` (Kaplan–Meier) with ``median_interval`` (95 % confidence limits) and
        ``model_median`` (of the curve that the tree predicts), each None where it is not reached;
        of a classifier or policy ``label`` and what is known of every label; of a regressor
        ``value`` and ``variance``. These are of the leaf's own rows; what ``shrinkage`` predicts in
        their place is in ``shrunk_theta``, ``shrunk_shares`` or ``shrunk_value``.

    Raises
    ------
    TypeError
        For anything but a fitted tree.
    NotFittedError, InfeasibleError
        When there is no tree.

    See Also
    --------
    export_text : The same to be read.
    export_python : A function that predicts.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_dict
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> root = export_dict(tree)
    >>> root["split"], root["column"], root["kind"], root["bound"], root["missing"]
    ('x0 <= 5', 'x0', 'at most', 5.0, True)
    """
    fitted = check_tree(tree, "export_dict")
    structure = fitted.tree_
    leaves = dict(zip(structure.leaves.tolist(), fitted.leaves_.facts(), strict=True))
    questions, splits = fitted.splits_, _splits(fitted)

    def describe(node: int) -> dict[str, Any]:
        described: dict[str, Any] = {
            "node": node,
            "n_samples": int(structure.n_node_samples[node]),
            "weight": float(structure.weighted_n_node_samples[node]),
        }
        if node in leaves:
            return described | leaves[node]
        return (
            described
            | {"split": questions[node]}
            | splits[node]
            | {
                "yes": describe(int(structure.children_left[node])),
                "no": describe(int(structure.children_right[node])),
            }
        )

    return describe(0)


def _splits(tree: Any) -> dict[int, dict[str, Any]]:
    """What every split asks, for a program."""
    structure = tree.tree_
    if isinstance(structure, SoftTree):
        splits = np.sort(structure.splits).tolist()
        return {
            node: {
                "kind": "soft",
                "intercept": intercept,
                "coefficients": dict(zip(tree.design_names_, weights, strict=True)),
            }
            for node, intercept, weights in zip(
                splits, tree.intercept_.tolist(), tree.coef_.tolist(), strict=True
            )
        }
    try:
        decisions = tree_decisions(tree.encoder_, structure)
    except TypeError:
        names = tree.encoder_.get_feature_names_out()
        asked = np.flatnonzero(~structure.is_leaf).tolist()
        return {
            node: {"kind": "own", "feature": str(names[structure.feature[node]])} for node in asked
        }
    return {node: _split(decision) for node, decision in decisions.items()}


def _split(decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"column": decision.column, "kind": decision.kind}
    if decision.bound is not None:
        found["bound"] = decision.bound
    if decision.levels:
        found["levels"] = list(decision.levels)
    return found | {"missing": decision.missing}
