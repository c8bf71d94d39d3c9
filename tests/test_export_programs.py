"""Exported programs return the leaves and predictions of their tree, to the last bit."""

import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from contract.subjects import EVERY, AbsoluteSum
from odd_columns import NAMES, odd_columns, odd_effect

from bristlecone import (
    BinaryEncoder,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone.export import (
    export_onnx,
    export_python,
    export_r,
    export_rules,
    export_sql,
)

# The many levels of one odd column do not differ.
pytestmark = pytest.mark.filterwarnings("ignore:column .* the rarest are merged")

EIGHT = pd.DataFrame({"x": np.arange(8.0)})
TIMES = (0.0, 0.5, 12.0, 30.0, 1e6)
SUBJECTS = {name: subject for name, subject in EVERY.items() if name != "SoftSurvivalTree"}


@pytest.fixture(params=SUBJECTS)
def subject(request):
    return SUBJECTS[request.param]


def small(subject):
    """A fitted tree and its rows, with categories and missing values if it accepts them."""
    model, study = subject.fitted(mixed="categories" not in subject.cannot)
    return model, study.X


def times_of(model):
    return {"times": TIMES} if hasattr(model, "predict_survival_function") else {}


def expected(model, X):
    """Leaf and predictions of the tree, by the names that exports use."""
    found = {"leaf": model.apply(X)}
    if hasattr(model, "predict_survival_function"):
        survival = model.predict_survival_function(X, times=TIMES)
        ends = ("0", "0.5", "12", "30", "1000000")
        names = [f"survival_{end}" for end in ends]
        if hasattr(model, "predict_cumulative_incidence"):
            found |= {f"risk_{k}": model.predict(X, k) for k in (1, 2)}
            found |= dict(zip(names, survival.T, strict=True))
            for k in (1, 2):
                incidence = model.predict_cumulative_incidence(X, k, times=TIMES)
                names = [f"incidence_{k}_{end}" for end in ends]
                found |= dict(zip(names, incidence.T, strict=True))
            return found
        return found | {"risk": model.predict(X)} | dict(zip(names, survival.T, strict=True))
    if hasattr(model, "predict_proba"):
        shares = zip(model.classes_.tolist(), model.predict_proba(X).T, strict=True)
        found["label"] = model.predict(X)
        return found | {f"probability_{label}": share for label, share in shares}
    if hasattr(model, "predict_outcomes"):
        outcomes = zip(model.treatments_.tolist(), model.predict_outcomes(X).T, strict=True)
        found["treatment"] = model.predict(X)
        return found | {f"outcome_{label}": outcome for label, outcome in outcomes}
    return found | {"value": model.predict(X)}


def agree(model, X, found):
    """Assert that predictions, by name, equal those of the tree to the last bit."""
    wanted = expected(model, X)
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_array_equal(np.asarray(found[name]), values, err_msg=name)


def fitted(kind, n=400, **parameters):
    """A tree with many leaves over the odd columns, and new rows."""
    X = odd_columns(n, 0)
    rng, effect = np.random.default_rng(0), odd_effect(X)
    if issubclass(kind, (OptimalSurvivalTree, GreedySurvivalTree)):
        time = np.ceil(300 * rng.exponential(size=n) / np.exp(effect)) / 10
        y = (rng.random(n) < 0.8, time)
    elif kind is OptimalTreeClassifier:
        y = np.array(["no", "it's", 'ye"s'])[
            np.digitize(effect + rng.normal(0, 0.3, n), [0.5, 1.5])
        ]
    else:
        y = effect + rng.normal(0, 0.2, n)
    return kind(**parameters).fit(X, y), new_rows()


def new_rows(n=3000):
    X = odd_columns(n, 1).astype(object)
    X.iloc[0] = None
    X.loc[1, NAMES[7:9]] = ["never seen", "other"]
    return X


MODELS = {
    "survival": lambda: fitted(
        OptimalSurvivalTree, max_depth=3, encoder=BinaryEncoder(n_thresholds=3), min_events_leaf=5
    ),
    "kaplan-meier": lambda: fitted(
        GreedySurvivalTree, max_depth=5, leaf_curve="kaplan-meier", min_events_leaf=3, shrinkage=3.0
    ),
    "branch": lambda: fitted(
        GreedySurvivalTree,
        max_depth=6,
        encoder=BinaryEncoder(missing="branch", max_categories=4, categories="levels"),
        min_events_leaf=2,
    ),
    "classifier": lambda: fitted(
        OptimalTreeClassifier,
        max_depth=4,
        encoder=BinaryEncoder(n_thresholds=2, max_categories=5, categories="levels"),
    ),
    "regressor": lambda: fitted(
        OptimalTreeRegressor, max_depth=4, encoder=BinaryEncoder(n_thresholds=2), shrinkage=1.0
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def odd(request):
    return MODELS[request.param]()


def test_the_odd_trees_ask_about_many_columns(request):
    asked = set()
    for make in MODELS.values():
        model, X = make()
        asked |= set(model.features_used_)
        assert set(model.apply(X)) == set(model.tree_.leaves.tolist())
    assert asked == set(NAMES)


# Python


def by_python(model, X, **options):
    module = {"__builtins__": {"type": type, "float": float, "__import__": __import__}}
    exec(compile(export_python(model, **options), "tree.py", "exec"), module)
    rows = [module["predict"](row) for row in X.to_dict("records")]
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_python_predicts_as_the_tree(subject):
    model, X = small(subject)
    agree(model, X, by_python(model, X, **times_of(model)))


def test_python_of_odd_columns(odd):
    model, X = odd
    agree(model, X, by_python(model, X, **times_of(model)))


def test_texts_of_numpy_and_of_enumerations_are_plain_texts():
    class Site(str, Enum):
        NORTH = "it's"
        SOUTH = "south"

    for texts in ([np.str_("u"), np.str_("v")], ["u", np.str_("v")], list(Site)):
        values = np.array(texts * 20, dtype=object)
        X = pd.DataFrame({"site": pd.Series(values, dtype=object)})
        classifier = OptimalTreeClassifier(max_depth=1).fit(X, values)
        agree(classifier, X, by_python(classifier, X))


# SQL


def sql_values(column):
    return [None if v is None or v != v else v for v in column.astype(object)]


def by_sqlite(model, X, **options):
    """Result of a query in SQLite on a table with these rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in X.columns)
        connection.execute(f'CREATE TABLE "x\'; --" ({names})')
        rows = zip(*(sql_values(X[name]) for name in X.columns), strict=True)
        places = ", ".join("?" * X.shape[1])
        connection.executemany(f'INSERT INTO "x\'; --" VALUES ({places})', rows)
        cursor = connection.execute(export_sql(model, table="x'; --", **options))
        found = predictions(cursor, X)
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
        return found


def predictions(cursor, X):
    """The selected columns that are not in X, without the suffixes of names that are in X."""
    reported = [name for name, *_ in cursor.description]
    assert len({name.casefold() for name in reported}) == len(reported)
    columns = list(zip(*cursor.fetchall(), strict=True))[X.shape[1] :]
    names = [name.removesuffix("_") for name in reported[X.shape[1] :]]
    return dict(zip(names, columns, strict=True))


@pytest.mark.parametrize("dialect", ["ansi", "sqlite"])
def test_sqlite_predicts_as_the_tree(subject, dialect):
    model, X = small(subject)
    agree(model, X, by_sqlite(model, X, dialect=dialect, **times_of(model)))


def test_sqlite_of_odd_columns(odd):
    model, X = odd
    agree(model, X, by_sqlite(model, X, **times_of(model)))


def is_text(X, name):
    return any(isinstance(value, str) for value in X[name])


def as_text(value):
    """A value of a column of text; numbers are written as Python writes them."""
    return None if value is None or value != value else str(value)


def by_duckdb(model, X, arrays=None, **options):
    """Result of a query in DuckDB on a table with columns of its own types."""
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            name: pa.array(
                [as_text(v) for v in X[name]] if is_text(X, name) else sql_values(X[name])
            )
            for name in X.columns
        }
        | (arrays or {})
    )
    connection = duckdb.connect(config={"threads": 1})
    connection.register("odd", table)
    connection.execute('CREATE TABLE "x\'; --" AS SELECT * FROM odd')
    cursor = connection.execute(export_sql(model, table="x'; --", **options))
    return predictions(cursor, X)


@pytest.mark.parametrize("dialect", ["ansi", "duckdb"])
def test_duckdb_predicts_as_the_tree(subject, dialect):
    model, X = small(subject)
    agree(model, X, by_duckdb(model, X, dialect=dialect, **times_of(model)))


@pytest.mark.parametrize("dialect", ["ansi", "duckdb"])
def test_duckdb_of_odd_columns(odd, dialect):
    model, X = odd
    agree(model, X, by_duckdb(model, X, dialect=dialect, **times_of(model)))


@pytest.mark.parametrize("missing", ["impute", "branch"])
def test_in_the_dialect_of_duckdb_nan_is_missing(missing):
    pa = pytest.importorskip("pyarrow")
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=200)})
    X.loc[::7] = np.nan
    y = np.where(X["x"].isna(), 3.0, np.round(X["x"]))
    model = OptimalTreeRegressor(max_depth=3, encoder=BinaryEncoder(missing=missing)).fit(X, y)
    for kind in (pa.float64(), pa.float32()):
        rows = pd.DataFrame({"x": X["x"].astype(kind.to_pandas_dtype())})
        with_nan = pa.array(rows["x"].to_numpy(), kind, from_pandas=False)
        assert with_nan.null_count == 0
        agree(model, rows, by_duckdb(model, rows, {"x": with_nan}, dialect="duckdb"))


def test_nan_among_categories_that_are_numbers_is_missing_too():
    pa = pytest.importorskip("pyarrow")
    values = np.tile([3.0, 5.0, 7.0, np.nan], 10)
    X = pd.DataFrame({"x": pd.Categorical(values)})
    model = OptimalTreeRegressor(max_depth=3).fit(X, np.tile([1.0, 2.0, 4.0, 9.0], 10))
    assert model.n_leaves_ == 4
    with_nan = pa.array(values, from_pandas=False)
    agree(model, X, by_duckdb(model, X, {"x": with_nan}, dialect="duckdb"))


def test_expressions_stand_in_a_query_of_ones_own(connection):
    X = pd.DataFrame({"age": [50.5, 55.0, 61.0]})
    model = OptimalTreeRegressor(max_depth=1).fit(X, [1.0, 3.0, 11.0])
    assert export_sql(model) == (
        "CASE\n"
        '  WHEN ("age" <= 58e0 OR "age" IS NULL) THEN 1\n'
        '  WHEN "age" > 58e0 THEN 2\n'
        "END AS leaf,\n"
        "CASE\n"
        '  WHEN ("age" <= 58e0 OR "age" IS NULL) THEN 2e0\n'
        '  WHEN "age" > 58e0 THEN 11e0\n'
        "END AS value"
    )
    query = f"SELECT {export_sql(model)} FROM (SELECT 58.5 AS age UNION ALL SELECT NULL)"
    assert sorted(connection.execute(query)) == [(1, 2.0), (2, 11.0)]
    assert export_sql(model, table=("main", "rows")).endswith('\nFROM "main"."rows" AS t')
    assert "`t`.`age`" not in export_sql(model, dialect="sqlite")
    assert "`age` <= 58e0" in export_sql(model, dialect="sqlite")


def test_sqlite_refuses_a_column_that_the_table_does_not_have(connection):
    model = OptimalTreeRegressor(max_depth=1).fit(pd.DataFrame({"age": [1.0, 2]}), [1.0, 3.0])
    connection.execute("CREATE TABLE x (old)")
    for query in (
        export_sql(model, table="x"),
        f"SELECT {export_sql(model, dialect='sqlite')} FROM x",
    ):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            connection.execute(query)


def test_predictions_with_the_name_of_a_column_are_renamed(connection):
    y = np.array([0.0, 1.0, 5.0, 9.0])
    X = pd.DataFrame({"leaf": [1.0, 2.0, 3.0, 4.0], "Value": [2.0, 1.0, 2.0, 1.0], "leaf_": 0.0})
    model = OptimalTreeRegressor(max_depth=2).fit(X, y)
    X.to_sql("x", connection, index=False)
    query = f"SELECT leaf__, value_, leaf FROM ({export_sql(model, table='x')})"
    found = np.array(connection.execute(query).fetchall())
    np.testing.assert_array_equal(found[:, 0], model.apply(X))
    np.testing.assert_array_equal(found[:, 1], model.predict(X))
    np.testing.assert_array_equal(found[:, 2], X["leaf"])
    # Names in R are case-sensitive.
    assert re.findall(r"^    (\w+) = ", export_r(model), re.MULTILINE) == ["leaf__", "value"]
    assert "match(leaf__, c(" in export_r(model)
    agree(model, X, by_python(model, X))
    onnx = pytest.importorskip("onnx")
    rows = pd.DataFrame({"leaf": [0, 0, 1, 1], "leaf_": [0, 1, 0, 1]})
    both = OptimalTreeRegressor(max_depth=2).fit(rows, y)
    graph = onnx.load_model_from_string(export_onnx(both)).graph
    names = [value.name for value in [*graph.input, *graph.output]]
    assert sorted(names) == ["leaf", "leaf_", "leaf__", "value"]


def test_labels_that_differ_by_case_alone_have_columns_of_their_own():
    model = OptimalTreeClassifier(max_depth=1).fit(EIGHT, np.repeat(["A", "a"], 4))
    text = export_sql(model, table="x")
    assert re.findall(r'AS "?(\w+)"?,?$', text, re.MULTILINE)[:4] == [
        "leaf",
        "label",
        "probability_A",
        "probability_a_",
    ]


def test_names_that_postgresql_would_cut_to_the_same_are_refused():
    labels = ["x" * 60 + "1", "x" * 60 + "2"]
    model = OptimalTreeClassifier(max_depth=1).fit(EIGHT, np.repeat(labels, 4))
    with pytest.raises(
        ValueError, match=r"truncates names to 63 bytes, which makes .*xx1' and .*xx2'"
    ):
        export_sql(model, dialect="postgresql")
    assert export_sql(model)


def test_names_that_mysql_does_not_have_are_refused():
    model = OptimalTreeClassifier(max_depth=1).fit(EIGHT, np.repeat(["\N{OWL}", "b"], 4))
    with pytest.raises(ValueError, match="beyond U\\+FFFF; got 'probability_\N{OWL}'"):
        export_sql(model, dialect="mysql")
    columns = EIGHT.rename(columns={"x": "\N{OWL}"})
    model = OptimalTreeRegressor(max_depth=1).fit(columns, EIGHT["x"])
    with pytest.raises(ValueError, match="got '\N{OWL}'"):
        export_sql(model, dialect="mysql")
    assert "\N{OWL}" in export_sql(model)


@pytest.mark.parametrize("kind", ["BOOLEAN", "INTEGER"])
def test_flags_are_boolean_columns_or_integers(kind):
    duckdb = pytest.importorskip("duckdb")
    X = pd.DataFrame({"auto_renew": [True, False, None] * 8})
    model = OptimalTreeRegressor(max_depth=2, encoder=BinaryEncoder(missing="branch"))
    model.fit(X, [1.0, 2.0, 7.0] * 8)
    rows = [[value] for value in (True, False, None)] * 8
    if kind == "INTEGER":
        rows = [[1], [0], [None]] * 8
    for connect, dialects in (
        (lambda: duckdb.connect(), ("ansi", "postgresql", "duckdb")),
        (lambda: sqlite3.connect(":memory:"), ("ansi", "postgresql", "sqlite")),
    ):
        with closing(connect()) as connection:
            connection.execute(f"CREATE TABLE x (auto_renew {kind})")
            connection.executemany("INSERT INTO x VALUES (?)", rows)
            for dialect in dialects:
                query = export_sql(model, table="x", dialect=dialect)
                agree(model, X, predictions(connection.execute(query), X))


# ONNX


def onnx_feeds(session, X):
    feeds = {}
    for given in session.get_inputs():
        column = X[given.name]
        if given.type == "tensor(string)":
            texts = ["" if v is None or v != v else str(v) for v in column]
            feeds[given.name] = np.array(texts, dtype=object)
        else:
            numbers = [np.nan if v is None else float(v) for v in column]
            feeds[given.name] = np.array(numbers, dtype=np.float64)
    return feeds


def by_onnx(model, X, **options):
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    content = export_onnx(model, **options)
    onnx.checker.check_model(onnx.load_model_from_string(content), full_check=True)
    session = runtime.InferenceSession(content)
    keys = session.get_modelmeta().custom_metadata_map
    found = {}
    outputs = session.run(None, onnx_feeds(session, X))
    for output, values in zip(session.get_outputs(), outputs, strict=True):
        assert values.shape[0] == len(X)
        name = output.name.removesuffix("_")
        if values.ndim == 1:
            found[name] = values
        else:
            names = [f"{name}_{key}" for key in json.loads(keys[output.name])]
            found |= dict(zip(names, values.T, strict=True))
    return found


def test_onnx_predicts_as_the_tree(subject):
    model, X = small(subject)
    agree(model, X, by_onnx(model, X, **times_of(model)))


def test_onnx_of_odd_columns(odd):
    model, X = odd
    agree(model, X, by_onnx(model, X, **times_of(model)))


def test_onnx_has_the_types_of_the_predictions():
    runtime = pytest.importorskip("onnxruntime")
    X = np.arange(8.0)[:, None]
    for labels in ([1, 2], [True, False], ["a", "b"], [0.0, 2.0]):
        model = OptimalTreeClassifier(max_depth=1).fit(X, np.repeat(labels, 4))
        session = runtime.InferenceSession(export_onnx(model))
        (label,) = session.run(["label"], {"x0": X[:, 0]})
        assert label.tolist() == model.predict(X).tolist()
        assert label.dtype.kind == {"U": "O"}.get(
            model.classes_.dtype.kind, model.classes_.dtype.kind
        )


def test_onnx_of_a_tree_without_questions_counts_the_rows():
    runtime = pytest.importorskip("onnxruntime")
    model = OptimalTreeRegressor(max_depth=0).fit(np.arange(6.0).reshape(3, 2), [1.0, 2.0, 3.0])
    session = runtime.InferenceSession(export_onnx(model))
    leaf, value = session.run(None, {"x0": np.zeros(5)})
    assert (leaf.tolist(), value.tolist()) == ([0] * 5, [2.0] * 5)
    # Also if the first column is text.
    X = pd.DataFrame({"stage": ["I", "II", None], "age": [1.0, 2.0, 3.0]})
    model = OptimalTreeRegressor(max_depth=0).fit(X, [1.0, 2.0, 3.0])
    agree(model, X, by_onnx(model, X))


# R


RUN_R = r"""
for (folder in list.dirs(recursive = FALSE)) {
  source(file.path(folder, "tree.R"))
  file <- file.path(folder, "rows")
  text <- readChar(file, file.size(file), useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  rows <- list()
  for (column in strsplit(strsplit(text, "\x02", fixed = TRUE)[[1]], "\x01", fixed = TRUE)) {
    # The last is behind the values: strsplit forgets an empty one at the end.
    values <- column[-c(1, 2, length(column))]
    values[values == "\x03"] <- NA
    rows[[column[1]]] <- as(values, column[2])
  }
  rows <- data.frame(rows, check.names = FALSE)
  found <- predict_tree(rows)
  sink(file.path(folder, "found"))
  for (name in setdiff(names(found), names(rows))) {
    x <- found[[name]]
    reported <- if (is.double(x)) sprintf("%a", x) else enc2utf8(as.character(x))
    cat(enc2utf8(name), class(x)[1], reported, sep = "\x01")
    cat("\x02")
  }
  sink()
}
"""


def write_for_r(model, X, folder, **options):
    """The tree, and the name, type and values of every column."""
    folder.mkdir()
    (folder / "tree.R").write_text(export_r(model, **options), encoding="utf-8")
    columns = []
    for name in X.columns:
        values = sql_values(X[name])
        kind = "double"
        if is_text(X, name):
            kind, values = "character", [as_text(v) for v in values]
        elif any(isinstance(value, (bool, np.bool_)) for value in values):
            kind, values = "logical", [v if v is None else str(bool(v)).upper() for v in values]
        else:
            values = [v if v is None else float(v).hex() for v in values]
        texts = ["\3" if v is None else v for v in values]
        columns.append("\1".join([name, kind, *texts, "end"]))
    (folder / "rows").write_text("\2".join(columns), encoding="utf-8")


def read_from_r(folder):
    found = {}
    for line in (folder / "found").read_text(encoding="utf-8").split("\2")[:-1]:
        name, kind, *values = line.split("\1")
        read = {"integer": int, "numeric": float.fromhex, "logical": "TRUE".__eq__}.get(kind, str)
        found[name.removesuffix("_")] = [read(value) for value in values]
    return found


@pytest.mark.slow
def test_r_predicts_as_the_trees(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("needs Rscript")
    trees = [make() for make in MODELS.values()]
    trees += [small(SUBJECTS[name]) for name in ("brier", "PolicyTree", "OptimalTreeClassifier")]
    trees += [one_leaf(), of_task(Odd([np.inf, np.nan, -np.inf, 0.1]))]
    trees.append((OptimalTreeClassifier(max_depth=1).fit(EIGHT, EIGHT["x"] > 3), EIGHT))
    for place, (model, X) in enumerate(trees):
        write_for_r(model, X, tmp_path / str(place), **times_of(model))
    (tmp_path / "run.R").write_text(RUN_R, encoding="utf-8")
    command = ["Rscript", "--vanilla", "run.R"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=300)
    if b"there is no package called" in run.stderr:
        pytest.skip("needs dplyr")
    assert run.returncode == 0, run.stderr.decode()
    for place, (model, X) in enumerate(trees):
        found = read_from_r(tmp_path / str(place))
        if isinstance(model, OptimalTreeClassifier) and X is EIGHT:
            assert found["label"] == model.predict(X).tolist()
        else:
            agree(model, X, found)


def one_leaf():
    X = pd.DataFrame({"x": [1.0, None, 3.0]})
    return OptimalTreeRegressor(max_depth=0).fit(X, [1.0, 2.0, 6.0]), X


def test_a_tree_of_one_leaf():
    model, X = one_leaf()
    for by in (by_python, by_sqlite, by_duckdb, by_onnx):
        agree(model, X, by(model, X))


# Infinite and missing predictions


class Odd(AbsoluteSum):
    """Leaves with predictions that are not finite."""

    def __init__(self, values):
        self.values = values

    def leaf_value(self, sums):
        return np.resize(self.values, (len(sums), *np.shape(self.values)[1:]))


def of_task(task):
    X = EIGHT
    return OptimalTree(task=task, max_depth=2, min_samples_leaf=2).fit(X, np.tile([1.0, -1], 4)), X


def test_predictions_that_are_not_finite():
    model, X = of_task(Odd([np.inf, np.nan, -np.inf, 0.1]))
    for by in (by_python, by_onnx):
        agree(model, X, by(model, X))
    finite = np.isfinite(model.predict(X))
    assert [v is not None for v in by_sqlite(model, X)["value"]] == finite.tolist()


def test_tasks_that_predict_nothing_or_several_numbers():
    model, X = of_task(AbsoluteSum())
    for by in (by_python, by_sqlite, by_duckdb, by_onnx):
        assert list(by(model, X)) == ["leaf"]
    assert list(export_rules(model).columns[-3:]) == ["weight", "where", "conditions"]
    model, X = of_task(Odd(np.arange(8.0).reshape(4, 2) / 3))
    wanted = {"leaf": model.apply(X), "value_0": model.predict(X)[:, 0]}
    wanted["value_1"] = model.predict(X)[:, 1]
    for by in (by_python, by_sqlite, by_duckdb):
        found = by(model, X)
        assert list(found) == list(wanted)
        for name, values in wanted.items():
            np.testing.assert_array_equal(found[name], values)


def test_labels_that_are_booleans_are_numbers_in_sql():
    X = EIGHT
    model = OptimalTreeClassifier(max_depth=1).fit(X, X["x"] > 3)
    found = by_sqlite(model, X)
    assert list(found) == ["leaf", "label", "probability_false", "probability_true"]
    assert list(found["label"]) == [0] * 4 + [1] * 4
    assert by_python(model, X)["label"] == model.predict(X).tolist()


def test_duckdb_knows_categories_as_a_type_of_their_own():
    duckdb = pytest.importorskip("duckdb")
    X = pd.DataFrame({"x": pd.Categorical(["a", "b", "c"] * 4)})
    model = OptimalTreeRegressor(max_depth=2).fit(X, [1.0, 2.0, 3.0] * 4)
    connection = duckdb.connect()
    # Rows of another table, in which a category of the tree does not occur.
    connection.execute("CREATE TYPE letter AS ENUM ('b', 'd')")
    connection.execute("CREATE TABLE t AS SELECT unnest(['b', 'd', NULL])::letter AS x")
    found = connection.execute(f"SELECT {export_sql(model)} FROM t").fetchall()
    assert [leaf for leaf, _ in found] == model.apply(
        pd.DataFrame({"x": ["b", "d", None]})
    ).tolist()


def test_a_table_with_columns_of_the_names_of_the_predictions():
    X = pd.DataFrame({"leaf": [1.0, 2.0, 3.0, 4.0], "value": [2.0, 1.0, 2.0, 1.0]})
    model = OptimalTreeRegressor(max_depth=2).fit(X, [0.0, 1.0, 5.0, 9.0])
    for by in (by_python, by_sqlite, by_duckdb, by_onnx):
        agree(model, X, by(model, X))
