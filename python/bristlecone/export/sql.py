"""Trees as SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import ArrayLike

from bristlecone.data.checks import check_choice
from bristlecone.encoder.columns import Category
from bristlecone.errors import InvalidParameterError
from bristlecone.export.conditions import Condition, leaf_conditions
from bristlecone.export.decimals import decimal
from bristlecone.export.program import Program, Value, level_texts, program_of

__all__ = ["export_sql", "where_clauses"]

_DIALECTS = ("ansi", "duckdb", "sqlite")
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
# Whole numbers from here on are compared as float64: not every database does so by itself.
_WHOLE = 2.0**53


def export_sql(
    tree: Any,
    *,
    times: ArrayLike | None = None,
    table: str | Sequence[str] | None = None,
    dialect: str = "ansi",
) -> str:
    """Fitted tree as SQL that a database runs where the rows are.

    Parameters
    ----------
    tree : fitted tree
        Any but a soft one.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree tells survival.
    table : str or sequence of str, optional
        Name of the table, or its parts ("schema", "table"); they are quoted.
    dialect : {"ansi", "duckdb", "sqlite"}, default="ansi"
        "ansi" is understood by both others, and by any database that quotes names by ``"`` and text
        by ``'``, in which a backslash is a sign like others.
        "duckdb" takes NaN for missing, too. "sqlite" quotes names by ```` ` ````, so that one that
        is no column of the table is an error; SQLite takes ``"name"`` for a text then.

    Returns
    -------
    str
        Without ``table`` expressions separated by commas, ``CASE ... END AS leaf, ...``; with it
        a SELECT of all columns of the table and these: ``leaf`` (as from ``apply``); of survival
        trees ``risk`` and ``survival_T`` for every time T; of classifiers ``label`` and
        ``probability_CLASS``; of policies ``treatment`` and ``outcome_TREATMENT``; else ``value``.
        A prediction that is not finite is NULL.

    Raises
    ------
    TypeError
        For soft trees, whose splits weigh many columns, and for features of an encoder of the
        user's own.
    NotFittedError, InfeasibleError
        When there is no tree.
    ValueError
        For an unknown dialect, an empty name of a table, times that are negative, not finite, given
        twice or of a tree without survival, names or categories with a NUL character, and a column
        in which a number and a text read alike; it is named.

    See Also
    --------
    export_rules : Every leaf with its WHERE clause.
    export_python : The same in Python.

    Notes
    -----
    NULL is missing, and goes where the tree sends it. A flag is true where it equals 1. Numbers are
    written so that they are read back to the last bit, but that SQLite may miss it below 1e-290;
    thresholds are compared as float64. A column that has both numbers and text as categories is
    compared as text.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_sql
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> print(export_sql(tree))
    CASE
      WHEN ("x0" <= 5e0 OR "x0" IS NULL) THEN 1
      WHEN "x0" > 5e0 THEN 2
    END AS leaf,
    CASE
      WHEN ("x0" <= 5e0 OR "x0" IS NULL) THEN 2e0
      WHEN "x0" > 5e0 THEN 11e0
    END AS value
    """
    check_choice("dialect", dialect, _DIALECTS)
    program = program_of(tree, "export_sql", times)
    source = "" if table is None else "t."
    where = where_clauses(program, "export_sql", dialect, source)
    expressions = ",\n".join(
        f"{_case(where, [_literal(value) for value in values])} AS {_alias(name, dialect)}"
        for name, values in program.columns
    )
    if table is None:
        return expressions
    parts = _parts(table)
    named = ".".join(_name(part, dialect) for part in parts)
    return f"SELECT t.*,\n{expressions}\nFROM {named} AS t"


def where_clauses(
    program: Program, what: str, dialect: str = "ansi", source: str = ""
) -> list[str]:
    """Conditions of every leaf, left to right; ``source`` stands before every column.

    Each is true for the rows of the leaf, and false or NULL for all others.
    """
    texts = level_texts(program, what)

    def clause(condition: Condition) -> str:
        column = source + _name(condition.column, dialect)
        has_nan = dialect == "duckdb" and condition.column not in texts
        return _clause(condition, column, texts.get(condition.column), has_nan)

    return [" AND ".join(map(clause, conditions)) for conditions in leaf_conditions(program)]


def _parts(table: Any) -> list[str]:
    """Parts of the name of a table."""
    parts = [table] if isinstance(table, str) or not isinstance(table, Sequence) else list(table)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidParameterError(
            f"table must be a name, or a sequence of the parts of one; got {table!r}"
        )
    return parts


def _case(where: Sequence[str], values: Sequence[str]) -> str:
    if len(values) == 1:
        return values[0]
    lines = [f"  WHEN {rows} THEN {value}" for rows, value in zip(where, values, strict=True)]
    return "\n".join(["CASE", *lines, "END"])


def _clause(
    condition: Condition, column: str, texts: dict[Category, str] | None, has_nan: bool
) -> str:
    nan = f"isnan(CAST({column} AS DOUBLE))"
    absent = f"{column} IS NULL OR {nan}" if has_nan else f"{column} IS NULL"
    if not condition.present:
        alone = f"({absent})" if has_nan else absent
        return alone if condition.missing else "1 = 0"
    parts = [*_numbers(condition, column), *_levels(condition, column, texts)]
    if condition.missing:
        return f"({' AND '.join(parts)} OR {absent})"
    # NaN is greater than every number and unlike all of them.
    if has_nan and condition.at_most is None and condition.flag is not True:
        parts.append(f"NOT {nan}")
    return " AND ".join(parts) or f"{column} IS NOT NULL"


def _numbers(condition: Condition, column: str) -> Iterator[str]:
    for sign, bound in ((">", condition.above), ("<=", condition.at_most)):
        if bound is not None:
            wide = abs(bound) >= _WHOLE
            number = f"CAST({column} AS DOUBLE PRECISION)" if wide else column
            yield f"{number} {sign} {_literal(bound)}"
    if condition.flag is not None:
        yield f"{column} {'=' if condition.flag else '<>'} 1"


def _levels(condition: Condition, column: str, texts: dict[Category, str] | None) -> Iterator[str]:
    if texts is not None and not all(isinstance(level, str) for level in texts):
        column = f"CAST({column} AS VARCHAR)"
    for negated, levels in (("", condition.within), ("NOT ", condition.without)):
        if levels:
            literals = [_literal(level if texts is None else texts[level]) for level in levels]
            if len(literals) == 1:
                yield f"{column} {'<>' if negated else '='} {literals[0]}"
            else:
                yield f"{column} {negated}IN ({', '.join(literals)})"


def _literal(value: Value | None) -> str:
    if isinstance(value, str):
        return "'" + _without_nul(value).replace("'", "''") + "'"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NULL"
        text = decimal(value).removesuffix(".0")
        # With an exponent it is a float64, not a number of so many decimals.
        return text if "e" in text else f"{text}e0"
    return "NULL" if value is None else str(int(value))


def _name(name: str, dialect: str = "ansi") -> str:
    # SQLite takes a name in quotes that is no column for a text; in grave accents it does not.
    quote = "`" if dialect == "sqlite" else '"'
    return quote + _without_nul(name).replace(quote, quote * 2) + quote


def _alias(name: str, dialect: str) -> str:
    return name if _PLAIN.fullmatch(name) else _name(name, dialect)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"export_sql: {text!r} has a NUL character, which SQL cannot write")
    return text
