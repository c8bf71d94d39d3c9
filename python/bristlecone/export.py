"""Fitted trees as text and as plain dictionaries, in the user's own column names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bristlecone.estimators.base import BaseTree

__all__ = ["export_dict", "export_text"]


def export_dict(estimator: BaseTree) -> dict[str, Any]:
    """Nested dictionary of a fitted tree, of plain types ready for JSON.

    Parameters
    ----------
    estimator : fitted tree

    Returns
    -------
    dict
        Every node has ``node`` (id, as from ``apply``), ``n_samples`` and ``weight``. A split adds
        ``question`` (such as "age <= 52"), ``yes`` and ``no`` (nodes). A leaf of a survival tree
        adds ``n_events`` and ``event_weight``, ``theta`` (relative hazard), ``median``
        (Kaplan–Meier) with ``median_interval`` (95 % confidence limits) and ``model_median`` (of
        the curve that the tree predicts), each None where it is not reached; of a classifier or
        policy ``label`` and what is known of every label; of a regressor ``value`` and
        ``variance``. These are of the leaf's own rows; what ``shrinkage`` predicts in their place
        is in ``shrunk_theta``, ``shrunk_shares`` or ``shrunk_value``.

    Raises
    ------
    NotFittedError
        When the estimator is not fitted.

    See Also
    --------
    export_text : The same to be read.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_dict
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> export_dict(tree)["question"]
    'x0 <= 5'
    """
    estimator.check_fitted()
    tree = estimator.tree_
    leaves = dict(zip(tree.leaves.tolist(), estimator.leaves_.facts(), strict=True))
    questions = estimator.questions_

    def describe(node: int) -> dict[str, Any]:
        described: dict[str, Any] = {
            "node": node,
            "n_samples": int(tree.n_node_samples[node]),
            "weight": float(tree.weighted_n_node_samples[node]),
        }
        if node in leaves:
            return described | leaves[node]
        return described | {
            "question": questions[node],
            "yes": describe(int(tree.children_left[node])),
            "no": describe(int(tree.children_right[node])),
        }

    return describe(0)


def export_text(estimator: BaseTree) -> str:
    """Fitted tree as text, one line per node.

    Parameters
    ----------
    estimator : fitted tree

    Returns
    -------
    str
        Questions and, per leaf, its number as from ``apply``, its training rows (with their
        weight, if they have weights) and what it predicts; of a survival tree the Kaplan–Meier
        median with its 95 % confidence interval, "-" where a limit is not reached. A last line for
        columns that are asked about and had missing values in training. ASCII but for the names of
        columns, categories and labels.

    Raises
    ------
    NotFittedError
        When the estimator is not fitted.

    See Also
    --------
    export_dict : The same as plain types.
    bristlecone.report.html_report : As a page.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_text
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> print(export_text(tree), end="")
    x0 <= 5
    |-- yes: [1] n=2, 2 (variance 1)
    `-- no:  [2] n=1, 11 (variance 0)
    """

    def leaf_text(node: dict[str, Any]) -> str:
        weight = f" (weight {node['weight']:.6g})" if estimator.tree_.is_weighted else ""
        return f"[{node['node']}] n={node['n_samples']}{weight}, {estimator.leaves_.text(node)}"

    lines = list(_lines(export_dict(estimator), leaf_text, "", ""))
    missing = estimator.missing_text()
    return "\n".join([*lines, *([f"missing in training: {missing}"] if missing else []), ""])


def _lines(
    node: dict[str, Any], leaf_text: Callable[[dict[str, Any]], str], first: str, rest: str
) -> Iterator[str]:
    """Lines of a subtree; ``first`` stands before its own line, ``rest`` before those below."""
    if "question" not in node:
        yield f"{first}{leaf_text(node)}"
        return
    yield f"{first}{node['question']}"
    yield from _lines(node["yes"], leaf_text, f"{rest}|-- yes: ", f"{rest}|   ")
    yield from _lines(node["no"], leaf_text, f"{rest}`-- no:  ", f"{rest}    ")
