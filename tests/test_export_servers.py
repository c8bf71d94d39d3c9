"""SQL that PostgreSQL and MariaDB run; skipped if their servers are not installed."""

import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from sql_servers import MariaDB, PostgreSQL, running
from test_export_programs import MODELS, SUBJECTS, as_text, expected, is_text, small, times_of

from bristlecone import BinaryEncoder, OptimalTreeClassifier, OptimalTreeRegressor
from bristlecone.export import export_sql

# The many levels of one odd column do not differ.
pytestmark = pytest.mark.filterwarnings("ignore:column .* the rarest are merged")

FLAGS = pd.DataFrame({"auto_renew": [True, False, None] * 8})
DOUBLE = '"'


# One server is started per dialect.
@pytest.fixture(scope="module", params=slow_but({"ansi"}, ["ansi", "postgresql", "mysql"]))
def database(request):
    """A server and the dialect of its queries."""
    kind = MariaDB if request.param == "mysql" else PostgreSQL
    with running(kind) as server:
        if server is None:
            pytest.skip(f"needs {kind.__name__}")
        server.dialect = request.param
        yield server


def quoted(name, sign):
    return sign + name.replace(sign, sign * 2) + sign


def literal(value):
    if value is None or value != value:
        return "NULL"
    if isinstance(value, str):
        return quoted(value, "'")
    if isinstance(value, (bool, np.bool_)):
        return "TRUE" if value else "FALSE"
    # The fewest digits that give the same number, for float32, too.
    return repr(value.item() if isinstance(value, np.generic) else value)


def kind_of(X, name):
    values = [value for value in X[name] if value is not None and value == value]
    if is_text(X, name):
        return "TEXT"
    if all(isinstance(value, (bool, np.bool_)) for value in values):
        return "BOOLEAN"
    whole = all(isinstance(value, (int, np.integer)) for value in values)
    return "INTEGER" if whole else "DOUBLE PRECISION"


def select(server, X, query, kinds=None):
    """Result of the query on a table "x'; --" with these rows, by column."""
    kinds = kinds or {name: kind_of(X, name) for name in X.columns}
    columns = ", ".join(f"{quoted(name, DOUBLE)} {kind}" for name, kind in kinds.items())
    cells = [[as_text(v) for v in X[n]] if kinds[n] == "TEXT" else list(X[n]) for n in kinds]
    rows = ",\n".join(f"({', '.join(map(literal, row))})" for row in zip(*cells, strict=True))
    table = quoted("x'; --", DOUBLE)
    server.run(
        f"{server.standard}DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns});\n"
        f"INSERT INTO {table} VALUES {rows};\n"
    )
    return server.select(query)


def agree(server, model, X, kinds=None, **options):
    """Assert that the predictions of the server equal those of the tree to the last bit."""
    query = export_sql(model, table="x'; --", dialect=server.dialect, **options)
    found = list(select(server, X, query, kinds).items())[X.shape[1] :]
    wanted = expected(model, X)
    assert [name.removesuffix("_") for name, _ in found] == list(wanted)
    for (name, texts), values in zip(found, wanted.values(), strict=True):
        if values.dtype.kind in "fib":
            texts = [float(text) for text in texts]
        np.testing.assert_array_equal(texts, values, err_msg=name)


@pytest.mark.slow
def test_servers_predict_as_the_tree(database):
    for subject in SUBJECTS.values():
        model, X = small(subject)
        agree(database, model, X, **times_of(model))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_servers_predict_odd_columns(database, name):
    model, X = MODELS[name]()
    X = X[:400]
    assert {"leaf", "0/1"} <= {n for n in X.columns if kind_of(X, n) in ("BOOLEAN", "INTEGER")}
    agree(database, model, X, **times_of(model))


@pytest.mark.slow
def test_flags_are_boolean_columns_or_integers(database):
    model = OptimalTreeRegressor(max_depth=2, encoder=BinaryEncoder(missing="branch"))
    model.fit(FLAGS, [1.0, 2.0, 7.0] * 8)
    assert model.n_leaves_ == 3
    for kind in ("BOOLEAN", "INTEGER", "SMALLINT"):
        rows = FLAGS if kind == "BOOLEAN" else FLAGS.replace({True: 1, False: 0})
        agree(database, model, rows, {"auto_renew": kind})
    category = pd.DataFrame({"x": pd.Categorical([True, False] * 12)})
    model = OptimalTreeRegressor(max_depth=1).fit(category, [1.0, 2.0] * 12)
    agree(database, model, category, {"x": "BOOLEAN"})


def test_numbers_of_every_type_are_compared_alike(database):
    kinds = ["REAL" if database.dialect != "mysql" else "FLOAT", "NUMERIC(30, 10)", "BIGINT"]
    rng = np.random.default_rng(0)
    single = rng.normal(size=200).astype(np.float32)
    X = pd.DataFrame({"a": single, "b": np.round(rng.normal(size=200), 3)})
    X["c"] = 2**53 + 2 * rng.integers(0, 9, 200)
    for column, kind in zip(X.columns, kinds, strict=True):
        model = OptimalTreeRegressor(max_depth=3).fit(X[[column]], rng.normal(size=200))
        assert model.n_leaves_ > 4
        agree(database, model, X[[column]], {column: kind})


def test_text_is_compared_sign_by_sign(database):
    levels = ["a", "A", "a ", "é", "e", "\\", "\\\\", "%"]
    X = pd.DataFrame({"x": levels * 5})
    model = OptimalTreeClassifier(
        max_depth=7,
        min_samples_leaf=1,
        encoder=BinaryEncoder(max_categories=20, categories="levels"),
    ).fit(X, levels * 5)
    assert model.score(X, levels * 5) == 1
    query = export_sql(model, table="x'; --", dialect=database.dialect)
    assert select(database, X, query, {"x": "TEXT"})["label"] == levels * 5


def test_values_of_an_enumerated_type(database):
    if database.dialect == "ansi":
        pytest.skip("the plain dialect compares no enumerated types of PostgreSQL")
    X = pd.DataFrame({"x": ["a", "b", "c"] * 4})
    model = OptimalTreeRegressor(max_depth=2).fit(X, [1.0, 2.0, 3.0] * 4)
    kind = "ENUM ('b', 'd')"
    if isinstance(database, PostgreSQL):
        database.run(f'DROP TABLE IF EXISTS "x\'; --"; CREATE TYPE letter AS {kind};')
        kind = "letter"
    agree(database, model, pd.DataFrame({"x": ["b", "d", None]}), {"x": kind})


def test_predictions_of_a_server_are_float64(database):
    if database.dialect == "ansi":
        pytest.skip("of the plain dialect they are decimals in PostgreSQL")
    X = pd.DataFrame({"x": [1.0, 2.0]})
    model = OptimalTreeRegressor(max_depth=1).fit(X, [1e-200, 0.3])
    agree(database, model, X)
    query = export_sql(model, table="x'; --", dialect=database.dialect)
    found = database.select(f"SELECT value / 3 AS third FROM ({query}) AS p")
    assert [float(third) for third in found["third"]] == [1e-200 / 3, 0.3 / 3]
