"""Trees as SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import ArrayLike

from bristlecone._data.checks import check_choice
from bristlecone._encoder.columns import Category
from bristlecone.exceptions import InvalidParameterError
from bristlecone.export._conditions import Condition, leaf_conditions
from bristlecone.export._decimals import decimal
from bristlecone.export._program import Program, Value, level_texts, program_of, unlike

__all__ = ["export_sql", "where_clauses"]

_DIALECTS = ("ansi", "duckdb", "mysql", "postgresql", "sqlite")
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
# Whole numbers from here on are compared as float64: not every database does so by itself.
_WHOLE = 2.0**53
# PostgreSQL cuts longer names, with a notice and no error.
_LONGEST_IN_POSTGRESQL = 63


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
    dialect : {"ansi", "duckdb", "mysql", "postgresql", "sqlite"}, default="ansi"
        "ansi" runs on DuckDB, PostgreSQL and SQLite, and on any database that quotes names by ``"``
        and text by ``'``, in which a backslash is a sign like others, and that casts booleans to
        integers.
        "duckdb" takes NaN for missing, too.
        "mysql" is for MySQL and MariaDB: names are quoted by ```` ` ````, and text is compared sign
        by sign, where these databases take "a", "A" and "a " for the same.
        "postgresql" compares values of an enumerated type as text, and predicts numbers as
        ``double precision``, where "ansi" gives ``numeric``.
        "sqlite" quotes names by ```` ` ````, so that one that is no column of the table is an
        error; SQLite takes ``"name"`` for a text then.

    Returns
    -------
    str
        Without ``table`` expressions separated by commas, ``CASE ... END AS leaf, ...``; with it
        a SELECT of all columns of the table and these: ``leaf`` (as from ``apply``); of survival
        trees ``risk`` and ``survival_T`` for every time T; of classifiers ``label`` and
        ``probability_CLASS``; of policies ``treatment`` and ``outcome_TREATMENT``; else ``value``.
        A name that a column of the training data has, or an earlier prediction, in upper or lower
        case, gets as many ``_`` at its end as it takes to differ: ``leaf_``. If the table has
        further columns, see that none of them has the name of a prediction.
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
        twice or of a tree without survival, names or categories with a NUL character, a column
        in which a number and a text read alike (it is named), and predictions whose names
        PostgreSQL would cut to the same 63 bytes.

    See Also
    --------
    export_rules : Every leaf with its WHERE clause.
    export_python : The same in Python.

    Notes
    -----
    NULL is missing, and goes where the tree sends it. A flag is true where it is TRUE or 1: its
    column may be boolean or hold integers. Numbers are written so that they are read back to the
    last bit, except that SQLite may miss it below 1e-290; thresholds are compared as float64.
    A column that has both numbers and text as categories is compared as text.

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
    given, values = zip(*program.columns, strict=True)
    names = unlike(given, program.names, str.casefold)
    if dialect == "postgresql":
        _check_lengths(names)
    expressions = ",\n".join(
        f"{_output(where, column, dialect)} AS {_alias(name, dialect)}"
        for name, column in zip(names, values, strict=True)
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
        return _clause(condition, column, texts.get(condition.column), has_nan, dialect)

    return [" AND ".join(map(clause, conditions)) for conditions in leaf_conditions(program)]


def _parts(table: Any) -> list[str]:
    """Parts of the name of a table."""
    parts = [table] if isinstance(table, str) or not isinstance(table, Sequence) else list(table)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidParameterError(
            f"table must be a name, or a sequence of the parts of one; got {table!r}"
        )
    return parts


def _check_lengths(names: Sequence[str]) -> None:
    cut: dict[bytes, str] = {}
    for name in names:
        other = cut.setdefault(name.encode()[:_LONGEST_IN_POSTGRESQL], name)
        if other is not name:
            raise ValueError(
                f"export_sql: PostgreSQL cuts names to {_LONGEST_IN_POSTGRESQL} bytes, which makes "
                f"{other!r} and {name!r} the same; rename the labels"
            )


def _output(where: Sequence[str], values: Sequence[Value], dialect: str) -> str:
    """What the leaves predict under one name."""
    case = _case(where, [_literal(value, dialect) for value in values])
    # There a number with an exponent is a decimal, which may have hundreds of digits.
    if dialect == "postgresql" and any(isinstance(value, float) for value in values):
        return f"CAST({case} AS DOUBLE PRECISION)"
    return case


def _case(where: Sequence[str], values: Sequence[str]) -> str:
    if len(values) == 1:
        return values[0]
    lines = [f"  WHEN {rows} THEN {value}" for rows, value in zip(where, values, strict=True)]
    return "\n".join(["CASE", *lines, "END"])


def _clause(
    condition: Condition,
    column: str,
    texts: dict[Category, str] | None,
    has_nan: bool,
    dialect: str,
) -> str:
    nan = f"isnan(CAST({column} AS DOUBLE))"
    absent = f"{column} IS NULL OR {nan}" if has_nan else f"{column} IS NULL"
    if not condition.present:
        alone = f"({absent})" if has_nan else absent
        return alone if condition.missing else "1 = 0"
    parts = [*_numbers(condition, column, dialect), *_levels(condition, column, texts, dialect)]
    if condition.missing:
        return f"({' AND '.join(parts)} OR {absent})"
    # NaN is greater than every number and unlike all of them.
    if has_nan and condition.at_most is None and condition.flag is not True:
        parts.append(f"NOT {nan}")
    return " AND ".join(parts) or f"{column} IS NOT NULL"


def _numbers(condition: Condition, column: str, dialect: str) -> Iterator[str]:
    for sign, bound in ((">", condition.above), ("<=", condition.at_most)):
        if bound is not None:
            number = _as_float(column, dialect) if abs(bound) >= _WHOLE else column
            yield f"{number} {sign} {_literal(bound)}"
    if condition.flag is not None:
        yield f"{_as_integer(column, dialect)} {'=' if condition.flag else '<>'} 1"


def _levels(
    condition: Condition, column: str, texts: dict[Category, str] | None, dialect: str
) -> Iterator[str]:
    for negated, levels in (("", condition.within), ("NOT ", condition.without)):
        if not levels:
            continue
        if texts is not None:
            asked = _as_text(column, texts, dialect)
            literals = [_literal(texts[level], dialect) for level in levels]
        else:
            # A column of booleans, perhaps.
            has_flags = any(isinstance(level, bool) for level in levels)
            asked = _as_integer(column, dialect) if has_flags else column
            literals = [_literal(level) for level in levels]
        if len(literals) == 1:
            yield f"{asked} {'<>' if negated else '='} {literals[0]}"
        else:
            yield f"{asked} {negated}IN ({', '.join(literals)})"


def _as_float(column: str, dialect: str) -> str:
    # CAST has other names for float64 in MySQL than in MariaDB.
    return f"({column} + 0e0)" if dialect == "mysql" else f"CAST({column} AS DOUBLE PRECISION)"


def _as_integer(column: str, dialect: str) -> str:
    """A flag as 1 or 0; PostgreSQL compares no boolean with a number."""
    return f"CAST({column} AS INTEGER)" if dialect in ("ansi", "postgresql") else column


def _as_text(column: str, texts: dict[Category, str], dialect: str) -> str:
    if dialect == "mysql":
        # Bytes, which no collation compares; of numbers, their decimals.
        return f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)"
    if dialect == "postgresql" or not all(isinstance(level, str) for level in texts):
        return f"CAST({column} AS VARCHAR)"
    return column


def _literal(value: Value | None, dialect: str = "ansi") -> str:
    if isinstance(value, str):
        if dialect == "mysql" and ("\\" in value or not value.isascii()):
            # Bytes: what a backslash and other signs mean depends on the mode and the connection.
            return f"CONVERT(x'{_without_nul(value).encode().hex()}' USING utf8mb4)"
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
    quote = "`" if dialect in ("mysql", "sqlite") else '"'
    return quote + _without_nul(name).replace(quote, quote * 2) + quote


def _alias(name: str, dialect: str) -> str:
    return name if _PLAIN.fullmatch(name) else _name(name, dialect)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"export_sql: {text!r} has a NUL character, which SQL cannot write")
    return text
