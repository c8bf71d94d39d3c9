"""Trees as a table of rules."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.frame import native_frame
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone.export._conditions import leaf_conditions, plain_condition
from bristlecone.export._program import program_of
from bristlecone.export._sql import where_clauses


def export_rules(tree: Any, *, times: ArrayLike | None = None) -> Any:
    """Return the leaves of a fitted tree as a table of rules, in words and for programs.

    Parameters
    ----------
    tree : fitted tree
        Any tree except a soft tree.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree predicts survival.

    Returns
    -------
    DataFrame
        From the library of ``X`` in ``fit``, or pandas if ``X`` was an array. One row per leaf,
        left to right, with the columns

        * ``leaf``: its number, as from ``apply``;
        * ``rule``: in words, as in ``leaf_table``;
        * ``n_samples``, ``weight``: training rows;
        * the predictions: for survival trees ``risk`` and ``survival_T`` for every time T, for
          classifiers ``label`` and ``probability_CLASS``, for policies ``treatment`` and
          ``outcome_TREATMENT``, for other trees ``value``;
        * ``where``: the same rule in SQL, for a WHERE clause (see Notes of ``export_sql``);
        * ``conditions``: the same rule as JSON, a list with one object per column: ``column``; the
          conditions on a value that apply, ``above`` < value <= ``at_most``, ``flag``, or
          categories it is ``within`` or ``without``; ``present``, whether rows with such a value
          are in the leaf; ``missing``, whether rows without a value are.

        Every row is in exactly one leaf. ``leaf_table`` returns more statistics of the leaves.

    Raises
    ------
    TypeError
        If ``tree`` is a soft tree, whose splits use many columns, or has a custom encoder.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If ``times`` are negative, not finite or repeated, or the tree does not predict survival; if
        a name or category cannot be written in SQL.

    See Also
    --------
    export_sql : One expression for all leaves.
    export_dict : The tree as a dictionary.

    Examples
    --------
    >>> import pandas as pd
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_rules
    >>> X = pd.DataFrame({"age": [50.5, 55.0, 61.0]})
    >>> rules = export_rules(OptimalTreeRegressor(max_depth=1).fit(X, [1.0, 3.0, 11.0]))
    >>> rules["rule"].tolist(), rules["value"].tolist()
    (['age <= 58', 'age > 58'], [2.0, 11.0])
    >>> print(rules["where"][0])
    ("age" <= 58e0 OR "age" IS NULL)
    >>> print(rules["conditions"][0])
    [{"column": "age", "at_most": 58.0, "present": true, "missing": true}]
    """
    program = program_of(tree, "export_rules", times)
    structure = program.tree
    leaves = structure.leaves
    conditions = [
        json.dumps([plain_condition(one) for one in path], ensure_ascii=False)
        for path in leaf_conditions(program)
    ]
    columns = {
        "leaf": leaves,
        "rule": _texts([rule_text(parts) for parts in leaf_rules(tree)]),
        "n_samples": structure.n_node_samples[leaves],
        "weight": structure.weighted_n_node_samples[leaves],
    }
    for output in program.outputs[1:]:
        columns |= output.columns()
    columns["where"] = _texts(
        [clause or "1 = 1" for clause in where_clauses(program, "export_rules")]
    )
    columns["conditions"] = _texts(conditions)
    return native_frame(list(columns.items()), tree._frame_kind)


def _texts(values: list[str]) -> NDArray[np.object_]:
    return np.array(values, dtype=object)
