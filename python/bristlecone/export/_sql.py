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

_DIALECTS = ("ansi", "duckdb", "mysql", "postgresql", "sqlite")
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
# Larger whole numbers are cast to float64, because some databases do not compare them as float64.
_WHOLE = 2.0**53
# PostgreSQL truncates longer names with a notice, not an error.
_LONGEST_IN_POSTGRESQL = 63


def export_sql(
    tree: Any,
    *,
    times: ArrayLike | None = None,
    table: str | Sequence[str] | None = None,
    dialect: str = "ansi",
) -> str:
    """Return a fitted tree as SQL that predicts inside a database.

    Parameters
    ----------
    tree : fitted tree
        Any tree except a soft tree.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree predicts survival.
    table : str or sequence of str, optional
        Name of the table, or its parts ("schema", "table"); they are quoted.
    dialect : {"ansi", "duckdb", "mysql", "postgresql", "sqlite"}, default="ansi"
        "ansi" runs on DuckDB, PostgreSQL and SQLite. It also runs on any database that quotes names
        with ``"`` and text with ``'``, treats a backslash as an ordinary character and casts
        booleans to integers.
        "duckdb" also treats NaN as missing.
        "mysql" is for MySQL and MariaDB. Names are quoted with backticks, and text is compared
        exactly; by default these databases treat "a", "A" and "a " as equal.
        "postgresql" compares values of an enumerated type as text, and predicts numbers as
        ``double precision`` instead of ``numeric``.
        "sqlite" quotes names with backticks, so a name that is not a column of the table is an
        error; SQLite would treat ``"name"`` as a text.

    Returns
    -------
    str
        Without ``table``, expressions separated by commas, ``CASE ... END AS leaf, ...``. With
        ``table``, a SELECT of all columns of the table and these expressions: ``leaf`` (as from
        ``apply``); for survival trees ``risk`` and ``survival_T`` for every time T; for classifiers
        ``label`` and ``probability_CLASS``; for policies ``treatment`` and ``outcome_TREATMENT``;
        for other trees ``value``. If a column of the training data or an earlier prediction has the
        same name, ignoring case, the suffix ``_`` is added until it differs: ``leaf_``. If the
        table has further columns, make sure that none of them has the name of a prediction. A
        prediction that is not finite is NULL.

    Raises
    ------
    TypeError
        If ``tree`` is a soft tree, whose splits use many columns, or has a custom encoder.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If the dialect is unknown or the name of the table empty; if ``times`` are negative, not
        finite or repeated, or the tree does not predict survival; if a name or category has a NUL
        character, or for MySQL a name has a character beyond U+FFFF; if a number and a text in a
        column read alike; if PostgreSQL would truncate the names of two predictions to the same 63
        bytes.

    See Also
    --------
    export_rules : Every leaf with its WHERE clause.
    export_python : The same in Python.

    Notes
    -----
    NULL is a missing value and takes the same path as in the tree. A flag is true if it is TRUE or
    at least 1: its column may be boolean or integer. Numbers are read back to the last bit, except
    that SQLite may be off by one bit below 1e-290. Thresholds are compared as float64. A column
    with both numbers and text as categories is compared as text.

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
    """Conditions of every leaf, left to right; ``source`` is put before every column.

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
                f"export_sql: PostgreSQL truncates names to {_LONGEST_IN_POSTGRESQL} bytes, which "
                f"makes {other!r} and {name!r} the same; rename the labels"
            )


def _output(where: Sequence[str], values: Sequence[Value], dialect: str) -> str:
    """Expression for one prediction."""
    case = _case(where, [_literal(value, dialect) for value in values])
    # PostgreSQL reads a number with an exponent as a decimal, which may have hundreds of digits.
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
    # In DuckDB NaN is greater than every number.
    if has_nan and condition.at_most is None and condition.flag is not True:
        parts.append(f"NOT {nan}")
    return " AND ".join(parts) or f"{column} IS NOT NULL"


def _numbers(condition: Condition, column: str, dialect: str) -> Iterator[str]:
    for sign, bound in ((">", condition.above), ("<=", condition.at_most)):
        if bound is not None:
            number = _as_float(column, dialect) if abs(bound) >= _WHOLE else column
            yield f"{number} {sign} {_literal(bound)}"
    if condition.flag is not None:
        yield f"{_as_integer(column, dialect)} {'>=' if condition.flag else '<'} 1"


def _levels(
    condition: Condition, column: str, texts: dict[Category, str] | None, dialect: str
) -> Iterator[str]:
    for negated, levels in (("", condition.within), ("NOT ", condition.without)):
        if not levels:
            continue
        if texts is not None:
            value = _as_text(column, texts, dialect)
            literals = [_literal(texts[level], dialect) for level in levels]
        else:
            # The column may be boolean.
            has_flags = any(isinstance(level, bool) for level in levels)
            value = _as_integer(column, dialect) if has_flags else column
            literals = [_literal(level) for level in levels]
        if len(literals) == 1:
            yield f"{value} {'<>' if negated else '='} {literals[0]}"
        else:
            yield f"{value} {negated}IN ({', '.join(literals)})"


def _as_float(column: str, dialect: str) -> str:
    # MySQL and MariaDB have different names for float64 in CAST.
    return f"({column} + 0e0)" if dialect == "mysql" else f"CAST({column} AS DOUBLE PRECISION)"


def _as_integer(column: str, dialect: str) -> str:
    """A flag as 1 or 0, because PostgreSQL does not compare booleans with numbers."""
    return f"CAST({column} AS INTEGER)" if dialect in ("ansi", "postgresql") else column


def _as_text(column: str, texts: dict[Category, str], dialect: str) -> str:
    if dialect == "mysql":
        # Bytes are compared without a collation; numbers are compared as decimals.
        return f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)"
    if dialect == "postgresql" or not all(isinstance(level, str) for level in texts):
        return f"CAST({column} AS VARCHAR)"
    return column


def _literal(value: Value | None, dialect: str = "ansi") -> str:
    if isinstance(value, str):
        if dialect == "mysql" and ("\\" in value or not value.isascii()):
            # As bytes, because the meaning of a backslash depends on the mode and the connection.
            return f"CONVERT(x'{_without_nul(value).encode().hex()}' USING utf8mb4)"
        return "'" + _without_nul(value).replace("'", "''") + "'"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NULL"
        text = decimal(value).removesuffix(".0")
        # The exponent makes it a float64 instead of a decimal number.
        return text if "e" in text else f"{text}e0"
    return "NULL" if value is None else str(int(value))


def _name(name: str, dialect: str = "ansi") -> str:
    # SQLite treats a name in double quotes that is not a column as a text; in backquotes it fails.
    if dialect == "mysql" and any(sign > "\uffff" for sign in name):
        raise ValueError(
            "export_sql: names in MySQL and MariaDB cannot have characters beyond U+FFFF; "
            f"got {name!r}"
        )
    quote = "`" if dialect in ("mysql", "sqlite") else '"'
    return quote + _without_nul(name).replace(quote, quote * 2) + quote


def _alias(name: str, dialect: str) -> str:
    return name if _PLAIN.fullmatch(name) else _name(name, dialect)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"export_sql: {text!r} has a NUL character, which SQL does not support")
    return text
