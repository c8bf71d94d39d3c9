"""Trees as nested dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from bristlecone._encoder.decisions import Decision, tree_decisions
from bristlecone._soft.tree import SoftTree
from bristlecone._view.fitted import check_tree


def export_dict(tree: Any) -> dict[str, Any]:
    """Return a fitted tree as a nested dictionary of plain types, ready for JSON.

    Parameters
    ----------
    tree : fitted tree

    Returns
    -------
    dict
        Every node has ``node`` (its number, as from ``apply``), ``n_samples`` and ``weight``.

        A split adds ``split`` (its text, such as "age <= 52"), ``yes`` and ``no`` (the nodes
        below), and the split in a form for programs: ``column``, ``kind`` and ``missing``, the
        answer for a missing value. ``kind`` is "at most" (yes if the number, as float64, is at most
        ``bound``), "level" (yes if the category is one of ``levels``), "flag" or "missing". A split
        of a soft tree has the kind "soft", ``intercept`` and ``coefficients`` by design column (yes
        if the sum is at least 0). A split on a feature of a custom encoder has the kind "own" and
        ``feature``.

        A leaf of a survival tree adds ``n_events`` and ``event_weight``, ``theta`` (relative
        hazard), ``median`` (Kaplan–Meier) with ``median_interval`` (95% confidence limits) and
        ``model_median`` (of the predicted curve), each None if it is not reached. A leaf of a
        classifier or policy adds ``label`` and the statistics of every label; a leaf of a regressor
        adds ``value`` and ``variance``. These values come from the leaf's own rows. Predictions
        changed by ``shrinkage`` are in ``shrunk_theta``, ``shrunk_shares`` or ``shrunk_value``.

    Raises
    ------
    TypeError
        If ``tree`` is not a fitted tree.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    export_text : The tree as text for people.
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
        left, right = int(structure.children_left[node]), int(structure.children_right[node])
        split = {"split": questions[node], **splits[node]}
        return described | split | {"yes": describe(left), "no": describe(right)}

    return describe(0)


def _splits(tree: Any) -> dict[int, dict[str, Any]]:
    """Every split in a form for programs."""
    structure = tree.tree_
    if isinstance(structure, SoftTree):
        weights = (dict(zip(tree.design_names_, row, strict=True)) for row in tree.coef_.tolist())
        nodes, intercepts = np.sort(structure.splits).tolist(), tree.intercept_.tolist()
        return {
            node: {"kind": "soft", "intercept": intercept, "coefficients": coefficients}
            for node, intercept, coefficients in zip(nodes, intercepts, weights, strict=True)
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
