"""Trees as R."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike

from bristlecone._encoder.columns import Category
from bristlecone.export._conditions import Condition, leaf_conditions
from bristlecone.export._decimals import decimal, is_short
from bristlecone.export._program import Value, exact, level_texts, program_of, unlike

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")


def export_r(tree: Any, *, times: ArrayLike | None = None) -> str:
    """Return a fitted tree as R code that uses dplyr.

    Parameters
    ----------
    tree : fitted tree
        Any tree except a soft tree.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree predicts survival.

    Returns
    -------
    str
        A function ``predict_tree(data)`` for R's ``source``. It adds columns to a data frame:
        ``leaf`` (as from ``apply``) by ``dplyr::case_when``; for survival trees ``risk`` and
        ``survival_T`` for every time T; for classifiers ``label`` and ``probability_CLASS``; for
        policies ``treatment`` and ``outcome_TREATMENT``; for other trees ``value``. If a column of
        the training data has the same name, the suffix ``_`` is added. NA is a missing value.
        Factors, text, logicals and numbers need no conversion. Numbers are equal to the last bit;
        long ones are hexadecimal because some versions of R read long decimals inexactly.

    Raises
    ------
    TypeError
        If ``tree`` is a soft tree, whose splits use many columns, or has a custom encoder.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If ``times`` are negative, not finite or repeated, or the tree does not predict survival; if
        a name or category has a NUL character; if a number and a text in a column read alike; if a
        category or label is a whole number of 2**53 or more.

    See Also
    --------
    export_sql : SQL that predicts inside a database.
    export_rules : The conditions as a table.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_r
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> print(export_r(tree), end="")
    predict_tree <- function(data) {
      dplyr::mutate(
        data,
        leaf = dplyr::case_when(
          (.data[["x0"]] <= 5 | is.na(.data[["x0"]])) ~ 1L,
          .data[["x0"]] > 5 ~ 2L
        ),
        value = c(2, 11)[match(leaf, c(1L, 2L))]
      )
    }
    """
    program = program_of(tree, "export_r", times)
    texts = level_texts(program, "export_r")
    given, (leaves, *columns) = zip(*program.columns, strict=True)
    leaf_name, *names = unlike(given, program.names)
    conditions = [
        " & ".join(_condition(one, texts.get(one.column)) for one in path) or "TRUE"
        for path in leaf_conditions(program)
    ]
    cases = ",\n".join(
        f"      {rows} ~ {_literal(leaf)}" for rows, leaf in zip(conditions, leaves, strict=True)
    )
    parts = [f"    {leaf_name} = dplyr::case_when(\n{cases}\n    )"]
    chosen = f"match({leaf_name}, c({', '.join(map(_literal, leaves))}))"
    for name, column in zip(names, columns, strict=True):
        values = ", ".join(map(_literal, column))
        parts.append(f"    {_name(name)} = c({values})[{chosen}]")
    listed = ",\n".join(parts)
    return f"predict_tree <- function(data) {{\n  dplyr::mutate(\n    data,\n{listed}\n  )\n}}\n"


def _condition(condition: Condition, texts: dict[Category, str] | None) -> str:
    """One condition; TRUE exactly for the rows that take the path, else FALSE or NA."""
    column = f".data[[{_literal(condition.column)}]]"
    if not condition.present:
        return f"is.na({column})" if condition.missing else "FALSE"
    parts = [*_parts(condition, column, texts)]
    test = " & ".join(parts) or f"!is.na({column})"
    if condition.missing:
        return f"({test} | is.na({column}))"
    # NA is in no list of levels, so it would take the path without this test.
    return f"!is.na({column}) & {test}" if condition.without else test


def _parts(condition: Condition, column: str, texts: dict[Category, str] | None) -> Iterator[str]:
    for sign, bound in ((">", condition.above), ("<=", condition.at_most)):
        if bound is not None:
            yield f"{column} {sign} {_literal(bound)}"
    if condition.flag is not None:
        yield f"{column} {'>' if condition.flag else '<='} 0.5"
    for negated, levels in (("", condition.within), ("!", condition.without)):
        if levels:
            given = [_literal(level if texts is None else texts[level]) for level in levels]
            test = f"{column} %in% c({', '.join(given)})"
            yield f"!({test})" if negated else test


def _literal(value: Value | None) -> str:
    if isinstance(value, str):
        return '"' + "".join(map(_sign, value)) + '"'
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"{value}L" if abs(value) < 2**31 else _literal(float(exact(value, "export_r")))
    if value is None:
        return "NA"
    if not math.isfinite(value):
        return {math.inf: "Inf", -math.inf: "-Inf"}.get(value, "NaN")
    text = decimal(value)
    return text.removesuffix(".0") if is_short(text) else value.hex()


def _sign(sign: str) -> str:
    """One character; outside ASCII as its number, so the encoding of the file does not matter."""
    if sign in '"\\':
        return f"\\{sign}"
    if " " <= sign <= "~":
        return sign
    if sign == "\0":
        raise ValueError(
            "export_r: a name or category has a NUL character, which R does not support"
        )
    return f"\\U{{{ord(sign):X}}}"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _literal(name)
