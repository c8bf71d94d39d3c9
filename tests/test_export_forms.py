"""Exports as data, rules and pictures, names that contain code, and errors."""

import ast
import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract.subjects import EVERY
from decisions_plainly import decide
from odd_columns import INJECTION, SHELL, odd_columns, odd_effect
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import KBinsDiscretizer

from bristlecone import (
    BinaryEncoder,
    GreedySurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone._encoder.decisions import Decision
from bristlecone.exceptions import ColumnWarning
from bristlecone.export import (
    export_dict,
    export_dot,
    export_onnx,
    export_python,
    export_r,
    export_rules,
    export_sql,
    export_text,
)
from bristlecone.export._decimals import decimal, is_short

EXPORTS = (export_dict, export_dot, export_onnx, export_python, export_r, export_rules, export_sql)
PROGRAMS = (export_onnx, export_python, export_r, export_rules, export_sql)


@pytest.fixture(scope="module")
def odd():
    """A tree with many leaves over odd columns, and new rows."""
    X = odd_columns(400, 0)
    y = odd_effect(X) + np.random.default_rng(0).normal(0, 0.2, 400)
    encoder = BinaryEncoder(n_thresholds=2, missing="branch")
    new = odd_columns(2000, 1).astype(object)
    new.iloc[0] = None
    with pytest.warns(ColumnWarning, match="the rarest are merged"):
        return OptimalTreeRegressor(max_depth=4, encoder=encoder).fit(X, y), new


# Dictionary


def reached(node, row):
    while "yes" in node:
        levels, bound = tuple(node.get("levels", ())), node.get("bound")
        decision = Decision(
            column=node["column"],
            place=0,
            kind=node["kind"],
            numeric=False,
            missing=node["missing"],
            bound=bound,
            levels=levels,
        )
        node = node["yes" if decide(decision, row[node["column"]]) else "no"]
    return node["node"]


def test_the_dictionary_leads_to_the_leaf_without_words(odd):
    model, X = odd
    root = json.loads(json.dumps(export_dict(model), allow_nan=False))
    found = [reached(root, row) for row in X.to_dict("records")]
    assert found == model.apply(X).tolist()


def test_splits_of_soft_trees_and_of_own_encoders_say_what_they_are():
    soft, study = EVERY["SoftSurvivalTree"].fitted()
    root = export_dict(soft)
    assert root["kind"] == "soft"
    logit = root["intercept"] + sum(
        study.X[name] * weight for name, weight in root["coefficients"].items()
    )
    np.testing.assert_array_equal(logit >= 0, soft.apply(study.X) == root["yes"]["node"])
    tree, _ = of_own_encoder()
    root = export_dict(tree)
    assert (root["kind"], root["feature"]) == ("own", root["split"])


def of_own_encoder():
    study = EVERY["OptimalTreeRegressor"].study()
    own = KBinsDiscretizer(n_bins=2, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    return OptimalTreeRegressor(max_depth=1, encoder=own).fit(study.X, study.y), study


# Rules


def holds(condition, value):
    if value is None or value != value:
        return condition["missing"]
    return condition["present"] and (
        ("above" not in condition or float(value) > condition["above"])
        and ("at_most" not in condition or float(value) <= condition["at_most"])
        and ("flag" not in condition or bool(value) is condition["flag"])
        and ("within" not in condition or value in condition["within"])
        and ("without" not in condition or value not in condition["without"])
    )


def test_every_row_is_in_one_rule_and_that_is_its_leaf(odd):
    model, X = odd
    rules = export_rules(model)
    assert rules["leaf"].tolist() == model.tree_.leaves.tolist()
    assert rules["rule"].tolist() == model.leaf_table()["rule"].tolist()
    parsed = [json.loads(text) for text in rules["conditions"]]
    for row, leaf in zip(X.to_dict("records"), model.apply(X), strict=True):
        inside = [all(holds(one, row[one["column"]]) for one in each) for each in parsed]
        assert rules["leaf"][inside].tolist() == [leaf]


def test_where_clauses_select_the_rows_of_the_leaf(odd, connection):
    model, X = odd
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in X.columns)
    connection.execute(f"CREATE TABLE x (row, {names})")
    values = X.where(X.notna(), None).itertuples(name=None)
    connection.executemany(f"INSERT INTO x VALUES (?{', ?' * X.shape[1]})", values)
    leaf = model.apply(X)
    rules = export_rules(model)
    for number, where in zip(rules["leaf"], rules["where"], strict=True):
        rows = [row for (row,) in connection.execute(f"SELECT row FROM x WHERE {where}")]
        assert sorted(rows) == np.flatnonzero(leaf == number).tolist()


def test_rules_come_in_the_frame_of_the_user():
    X, y = np.arange(12.0)[:, None], np.repeat(["a", "b", "a"], 4)
    shape = OptimalTreeClassifier(max_depth=2)
    for frame, kind in (
        (pd.DataFrame(X, columns=["age"]), pd.DataFrame),
        (pl.DataFrame(X, schema=["age"]), pl.DataFrame),
        (X, pd.DataFrame),
    ):
        rules = export_rules(shape.fit(frame, y))
        assert isinstance(rules, kind)
        assert list(rules["label"]) == ["a", "b", "a"]
        assert list(rules["probability_b"]) == [0.0, 1.0, 0.0]
    alone = export_rules(OptimalTreeClassifier(max_depth=0).fit(X, y))
    assert alone["rule"].tolist() == ["every row"]
    assert (alone["where"].tolist(), alone["conditions"].tolist()) == (["1 = 1"], ["[]"])


@pytest.mark.parametrize("labels", [["a", "b"], [1, 2], [True, False]])
def test_labels_keep_their_type_in_the_frame(labels):
    X = pl.DataFrame({"age": np.arange(12.0)})
    model = OptimalTreeClassifier(max_depth=1).fit(X, np.repeat(labels, 6))
    assert export_rules(model)["label"].dtype == pl.Series(labels).dtype


def test_rules_have_survival_at_times():
    model, study = EVERY["OptimalSurvivalTree"].fitted()
    rules = export_rules(model, times=[1, 2.5])
    place = np.searchsorted(rules["leaf"], model.apply(study.X))
    survival = model.predict_survival_function(study.X, times=[1, 2.5])
    np.testing.assert_array_equal(rules[["survival_1", "survival_2.5"]].to_numpy()[place], survival)
    np.testing.assert_array_equal(rules["risk"].to_numpy()[place], model.predict(study.X))


# Graphviz


def drawn(model):
    if shutil.which("dot") is None:
        pytest.skip("needs Graphviz")
    run = subprocess.run(
        ["dot", "-Tsvg"], input=export_dot(model).encode(), capture_output=True, timeout=60
    )
    assert run.returncode == 0 and not run.stderr, run.stderr.decode()
    root = ElementTree.fromstring(run.stdout)
    found = {}
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        if group.get("class") == "node":
            texts = [text.text or "" for text in group.iter("{http://www.w3.org/2000/svg}text")]
            found[int(group[0].text)] = [text.replace("\xa0", " ") for text in texts]
    return found


def test_graphviz_draws_every_node_in_the_words_of_the_tree(odd):
    model, _ = odd
    found = drawn(model)
    assert len(found) == model.tree_.node_count
    for node, question in model.splits_.items():
        assert "".join(found[node]) == question.replace("\n", " ")
    for leaf, facts in zip(model.tree_.leaves.tolist(), model.leaves_.facts(), strict=True):
        rows = model.tree_.n_node_samples[leaf]
        assert found[leaf] == [f"leaf {leaf}, n={rows}", model.leaves_.text(facts)]


@pytest.mark.parametrize("name", EVERY)
def test_graphviz_draws_every_estimator(name):
    model, _ = EVERY[name].fitted()
    assert len(drawn(model)) == model.tree_.node_count


# Names that contain code


@pytest.mark.parametrize(
    "text", [INJECTION, SHELL, '"""', "\\", "'", '"', "{0}", "\n\rx", "$(x)`x`"]
)
def test_names_and_categories_stay_data(text, tmp_path, connection):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"{text}a": rng.choice([text, "b"], 60), f"{text}c": rng.normal(size=60)})
    y = np.where(X[f"{text}a"] == text, text, np.where(X[f"{text}c"] > 0, "d", "e"))
    model = OptimalTreeClassifier(max_depth=2).fit(X, y)
    source = export_python(model)
    calls = {node.func.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    assert calls <= {"is_missing", "at_most", "one_of", "float", "type"}
    module = {}
    exec(source, module)
    predicted = [module["predict"](row)["label"] for row in X.to_dict("records")]
    assert predicted == y.tolist() == model.predict(X).tolist()
    X.to_sql("x", connection, index=False)
    # There is only one statement, because sqlite3 does not execute two.
    for dialect in ("ansi", "sqlite"):
        query = f"SELECT label FROM ({export_sql(model, table='x', dialect=dialect)})"
        assert [label for (label,) in connection.execute(query)] == y.tolist()
    assert len(drawn(model)) == model.tree_.node_count
    assert export_onnx(model)


def test_what_a_language_cannot_write_is_refused():
    X = pd.DataFrame({"a\0b": [1.0, 2.0, 3.0], "c": ["", "x", "x"], "d": ["1", 1, 1]})
    by_name = OptimalTreeRegressor(max_depth=1).fit(X[["a\0b"]], [0.0, 1, 1])
    for export in (export_sql, export_r, export_rules):
        with pytest.raises(ValueError, match="NUL"):
            export(by_name)
    empty = OptimalTreeRegressor(max_depth=1).fit(X[["c"]], [0.0, 1, 1])
    with pytest.raises(ValueError, match="export_onnx: the empty text is a category of column 'c'"):
        export_onnx(empty)
    alike = OptimalTreeRegressor(max_depth=1).fit(X[["d"]], [0.0, 1, 1])
    for export in (export_sql, export_r, export_onnx):
        with pytest.raises(ValueError, match=r"column 'd' has a number and a text .* read alike"):
            export(alike)
    module = {}
    exec(export_python(alike), module)
    assert [module["predict"]({"d": value})["value"] for value in ("1", 1, True)] == [0, 1, 1]


# Numbers


def test_decimals_are_read_back_by_a_reader_of_more_digits(connection):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 100, 4000), np.exp(rng.uniform(-100, 100, 4000))])
    values = np.concatenate([values, np.round(values[:4000], 6), [0.0, 5e-324, 1.7e308, 0.1]])
    for value in values.tolist():
        assert float(decimal(value)) == value
    for start in range(0, 12000, 500):
        part = values[start : start + 500].tolist()
        (found,) = connection.execute("SELECT " + ", ".join(f"{decimal(v)}" for v in part))
        assert list(found) == part


def test_short_decimals():
    assert is_short("52.5") and is_short("-3") and is_short("1e-07") and is_short("1e+22")
    assert not is_short("0.12345678901234567") and not is_short("1e+23") and not is_short("1e-23")


@pytest.mark.parametrize("bound", [0.1, 1 / 3, 61.234567, 2.0**53, -(2.0**60), 5e-5])
def test_thresholds_between_neighbours_are_kept(bound, connection):
    low, high = bound, float(np.nextafter(bound, np.inf))
    X = pd.DataFrame({"x": [low, high]})
    model = OptimalTreeRegressor(max_depth=1).fit(X, [0.0, 1.0])
    query = f"SELECT {export_sql(model)} FROM (SELECT ? AS x)"
    found = [connection.execute(query, (x,)).fetchone()[1] for x in (low, high)]
    assert found == [0.0, 1.0]


def test_whole_numbers_are_compared_as_float64(connection):
    X = pd.DataFrame({"x": [2.0**53, 2.0**53 + 2]})
    model = OptimalTreeRegressor(max_depth=1).fit(X, [0.0, 1.0])
    query = f"SELECT {export_sql(model)} FROM (SELECT ? AS x)"
    module = {}
    exec(export_python(model), module)
    for x in (2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3):
        (expected,) = model.predict(pd.DataFrame({"x": [x]}))
        assert connection.execute(query, (x,)).fetchone()[1] == expected
        assert module["predict"]({"x": x})["value"] == expected


def test_categories_and_labels_that_float64_would_merge_are_refused_or_exact():
    big, code = 2**53 + 1, pd.Categorical([2**53, 2**53 + 1] * 4)
    by_code = OptimalTreeRegressor(max_depth=1).fit(pd.DataFrame({"x": code}), [0.0, 1.0] * 4)
    X = pd.DataFrame({"x": [0.0, 1.0] * 4})
    labelled = OptimalTreeClassifier(max_depth=1).fit(X, [5, big] * 4)
    for export, model in ((export_onnx, by_code), (export_r, by_code), (export_r, labelled)):
        with pytest.raises(ValueError, match=r"label 900719925474099\d has the same float64"):
            export(model)
    labels = np.array([5, 2**63 + 1] * 4, dtype=np.uint64)
    unsigned = OptimalTreeClassifier(max_depth=1).fit(X, labels)
    module = {}
    exec(export_python(unsigned), module)
    assert [module["predict"](row)["label"] for row in X.to_dict("records")] == labels.tolist()
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(export_onnx(unsigned))
    (found,) = session.run(["label"], {"x": X["x"].to_numpy()})
    assert found.tolist() == labels.tolist()


# Errors


@pytest.mark.parametrize("export", PROGRAMS)
def test_trees_that_no_program_can_write_are_refused_with_a_sentence(export):
    soft, _ = EVERY["SoftSurvivalTree"].fitted()
    with pytest.raises(TypeError, match=f"{export.__name__} .* a SoftSurvivalTree has neither"):
        export(soft)
    tree, _ = of_own_encoder()
    with pytest.raises(TypeError, match=f"{export.__name__}: KBinsDiscretizer does not report"):
        export(tree)


@pytest.mark.parametrize("export", (*EXPORTS, export_text))
def test_only_fitted_trees_are_exported(export):
    with pytest.raises(NotFittedError):
        export(OptimalTreeRegressor())
    with pytest.raises(TypeError, match=f"{export.__name__} takes .* got a LinearRegression"):
        export(LinearRegression())


@pytest.mark.parametrize("export", PROGRAMS)
def test_times_are_checked(export):
    model, _ = EVERY["OptimalSurvivalTree"].fitted()
    for times, message in (
        ([-1], "times must be finite and not negative"),
        ([float("inf")], "times must be finite and not negative"),
        ([2, 2.0], "times has 2 twice"),
        ([[1.0]], r"times has shape \(1, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            export(model, times=times)
    regressor, _ = EVERY["OptimalTreeRegressor"].fitted()
    with pytest.raises(
        ValueError, match="times needs a tree that predicts survival; got an OptimalTreeRegressor"
    ):
        export(regressor, times=[1])


def test_unknown_dialects_and_tables_are_refused():
    model, _ = EVERY["OptimalTreeRegressor"].fitted()
    with pytest.raises(ValueError, match=r"dialect must be one of .*duckdb.*; got 'oracle'"):
        export_sql(model, dialect="oracle")
    for table in ("", [], ["a", ""], 3):
        with pytest.raises(ValueError, match=r"table must be a name, or .*; got"):
            export_sql(model, table=table)


def test_without_onnx_the_extra_is_named(monkeypatch):
    model, _ = EVERY["OptimalTreeRegressor"].fitted()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'bristlecone[onnx]'")):
        export_onnx(model)


def test_the_source_needs_nothing_but_python(odd):
    model, _ = odd
    imported = [
        node
        for node in ast.walk(ast.parse(export_python(model)))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert [node.module for node in imported] == ["math"]


@pytest.mark.slow
def test_deep_trees_are_exported(connection):
    # Every split separates one row, so the tree is deeper than the blocks that Python can nest.
    X = pd.DataFrame(np.eye(160), columns=[f"x{k}" for k in range(160)])
    y = (np.ones(160, dtype=bool), 1.1 ** np.arange(160.0))
    model = GreedySurvivalTree(
        max_depth=None, encoder=None, min_samples_leaf=1, min_events_leaf=1, prior=0
    ).fit(X, y)
    assert model.depth_ > 100
    module = {}
    exec(export_python(model), module)
    leaf = model.apply(X).tolist()
    assert [module["predict"](row)["leaf"] for row in X.to_dict("records")] == leaf
    X.to_sql("x", connection, index=False)
    query = f"SELECT leaf FROM ({export_sql(model, table='x')})"
    assert [found for (found,) in connection.execute(query)] == leaf
    assert export_onnx(model)


@pytest.mark.parametrize("dialect", ["ansi", "sqlite"])
def test_a_flag_is_true_for_larger_numbers_in_sql_too(dialect, connection):
    flag = np.arange(20) % 2
    model = OptimalTreeRegressor(max_depth=1).fit(pd.DataFrame({"flag": flag}), 10.0 * flag)
    new = pd.DataFrame({"flag": [0, 1, 2]})
    new.to_sql("new", connection)
    query = f"SELECT leaf FROM ({export_sql(model, table='new', dialect=dialect)})"
    assert [leaf for (leaf,) in connection.execute(query)] == model.apply(new).tolist() == [2, 1, 1]
