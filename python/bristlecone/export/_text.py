"""Trees as text, in the user's own column names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from bristlecone._data.texts import plain_number
from bristlecone._soft.tree import SoftTree
from bristlecone._view.fitted import check_tree
from bristlecone.export._document import export_dict

# Names and levels may contain line breaks, and signs that control a terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def export_text(tree: Any) -> str:
    r"""Return a fitted tree as text, with one line per node.

    Parameters
    ----------
    tree : fitted tree

    Returns
    -------
    str
        The splits and leaves. A leaf shows its number as from ``apply``, its training rows (and
        their weight, if there are weights) and its prediction: for a survival tree the Kaplan–Meier
        median with its 95% confidence interval, with "-" for a limit that is not reached. If
        columns in the tree had missing values in training, a last line lists them. A soft split
        shows its largest weights, each over the range of its column in training. Everything except
        the names of columns, categories and labels is ASCII; line breaks and control characters in
        these are escaped, such as ``\n``.

    Raises
    ------
    TypeError
        If ``tree`` is not a fitted tree.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    export_dict : The tree as a dictionary of plain types.
    bristlecone.report.html_report : The tree as a page.

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
    fitted = check_tree(tree, "export_text")

    def leaf_text(node: dict[str, Any]) -> str:
        of_rows = plain_number(node["weight"], 6)
        weight = f" (weight {of_rows})" if fitted.tree_.is_weighted else ""
        return f"[{node['node']}] n={node['n_samples']}{weight}, {fitted.leaves_.text(node)}"

    lines = [*_lines(export_dict(tree), leaf_text, "", "")]
    if isinstance(fitted.tree_, SoftTree) and len(lines) > 1:
        lines.append("weights: over the range of each column in training, largest first")
    missing = fitted._missing_text()
    if missing:
        lines.append(f"missing in training: {missing}")
    return "".join(f"{_CONTROL.sub(_escaped, line)}\n" for line in lines)


def _escaped(sign: re.Match[str]) -> str:
    return repr(sign[0])[1:-1]


def _lines(
    node: dict[str, Any], leaf_text: Callable[[dict[str, Any]], str], first: str, rest: str
) -> Iterator[str]:
    """Lines of a subtree; ``first`` comes before its own line, ``rest`` before those below."""
    if "split" not in node:
        yield f"{first}{leaf_text(node)}"
        return
    yield f"{first}{node['split']}"
    yield from _lines(node["yes"], leaf_text, f"{rest}|-- yes: ", f"{rest}|   ")
    yield from _lines(node["no"], leaf_text, f"{rest}`-- no:  ", f"{rest}    ")
