"""Accepted forms of partitions, and errors in them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pace import slow_but
from sklearn.base import clone
from test_scale import FEATURES, cut, random_table

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    outcome,
)
from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale import fit_partitions

COLUMNS = [*[name for name in FEATURES if name != "grade"], "time", "event"]


def fitted(partitions, **options):
    return fit_partitions(OptimalSurvivalTree(max_depth=2), partitions, **options)


@pytest.fixture(scope="module")
def table():
    return random_table(0)[COLUMNS]


@pytest.fixture(scope="module")
def whole(table):
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder())
    features = [name for name in COLUMNS if name in FEATURES]
    return tree.fit(table[features], outcome(table["event"], table["time"]))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet")
    for number, start in enumerate(range(0, 300, 100)):
        part = pa.Table.from_pandas(table[start : start + 100], preserve_index=False)
        pq.write_table(part, path / f"part-{number}.parquet", row_group_size=40)
    return path


class Stream:
    """An object that is only Arrow data that can be read several times."""

    def __init__(self, table):
        self._table = pa.Table.from_pandas(table, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema=None):
        batches = self._table.to_batches(max_chunksize=70)
        reader = pa.RecordBatchReader.from_batches(self._table.schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


def duckdb_relation(table):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_df(table)


FORMS = {
    "folder": lambda table, folder: folder,
    "folder as text": lambda table, folder: str(folder),
    "glob": lambda table, folder: str(folder / "*.parquet"),
    "paths": lambda table, folder: sorted(folder.iterdir(), reverse=True),
    "dataset": lambda table, folder: pyarrow.dataset.dataset(folder),
    "in memory": lambda table, folder: pyarrow.dataset.dataset(
        pa.Table.from_pandas(table, preserve_index=False)
    ),
    "stream": lambda table, folder: Stream(table),
    "frame": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_pandas(table),
    "arrow": lambda table, folder: pa.Table.from_pandas(table, preserve_index=False),
    "function": lambda table, folder: lambda: iter(cut(table, 1, COLUMNS)),
    "polars function": lambda table, folder: (
        lambda: (pl.from_pandas(part) for part in cut(table, 2, COLUMNS))
    ),
    "duckdb": lambda table, folder: duckdb_relation(table),
    "frames": lambda table, folder: cut(table, 3, COLUMNS),
}


@pytest.mark.parametrize("n_jobs", slow_but([1], [1, 2]))
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_tree_of_one_frame(form, n_jobs, table, whole, folder):
    tree = fitted(FORMS[form](table, folder), n_jobs=n_jobs)
    if whole.encoder_.to_dict() != tree.encoder_.to_dict():
        raise AssertionError(form)
    assert tree.objective_value_ == whole.objective_value_
    assert tree.lower_bound_ == whole.lower_bound_
    pd.testing.assert_frame_equal(tree.leaf_table(), whole.leaf_table(), check_exact=True)


def test_columns_in_the_names_of_folders(table, whole, tmp_path):
    flags = table.assign(stage=table["stage"].fillna("none"))
    kind = pyarrow.dataset.HivePartitioning
    pq.write_to_dataset(
        pa.Table.from_pandas(flags, preserve_index=False), tmp_path, partition_cols=["stage"]
    )
    with pytest.raises(InvalidParameterError, match="folder 'stage=I' has values of a column"):
        fitted(tmp_path)
    assert fitted(f"{tmp_path}/*/*.parquet").encoder_.columns_
    tree = fitted(pyarrow.dataset.dataset(tmp_path, partitioning=kind.discover()))
    features = [name for name in COLUMNS if name in FEATURES]
    expected = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder()).fit(
        flags[features], outcome(flags["event"], flags["time"])
    )
    assert tree.objective_value_ == expected.objective_value_
    assert set(tree.encoder_.get_feature_names_out()) == set(
        expected.encoder_.get_feature_names_out()
    )


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        (iter([]), "iterator"),
        ((x for x in ()), "iterator"),
        ([], "list"),
        ({"a": 1}, "dict"),
        (lambda: [], "no frame"),
        (lambda: [3], "int"),
        (None, "NoneType"),
        (
            pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8())]), []),
            "read only once",
        ),
    ],
)
def test_other_forms_are_refused(partitions, message):
    with pytest.raises(InvalidParameterError, match=message):
        fitted(partitions)


def test_function_that_returns_one_iterator_is_refused(table):
    frames = iter([table])
    with pytest.raises(InvalidParameterError, match="same iterator"):
        fitted(lambda: frames)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file matches"):
        fitted(str(tmp_path / "*.parquet"))
    with pytest.raises(InvalidParameterError, match="no Parquet file"):
        fitted(tmp_path)
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(ValueError, match=r"a\.parquet"):
        fitted(tmp_path)
    with pytest.raises(InvalidParameterError, match=r"names .*a\.parquet 2 times"):
        fitted([tmp_path / "a.parquet", tmp_path / "*.parquet"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part.drop(columns="age"), "other columns than frame 0: it lacks 'age'"),
        (lambda part: part.assign(more=1), "other columns than frame 0: it also has 'more'"),
        # The threads decide which of two checks, and which of two partitions, is first.
        (
            lambda part: part.assign(age=part["age"].astype(str)),
            "column 'age' (has type|holds text)",
        ),
        (lambda part: part.assign(time=-part["time"]), r"column 'time' is -\d+.* in row 0"),
        (lambda part: part.assign(event=3), "column 'event'"),
        (lambda part: part.assign(age=np.inf), "column 'age' is infinite"),
        (lambda part: part.assign(stage=[["x"]] * len(part)), "stage"),
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_name_the_partition(change, message, n_jobs, table):
    parts = [table[:100], table[100:200], change(table[200:])]
    with pytest.raises((ValueError, TypeError), match=f"^frame .*{message}") as caught:
        fitted(parts, n_jobs=n_jobs)
    assert "frame 2" in str(caught.value)


@pytest.mark.parametrize(
    ("tree", "roles", "name", "value", "rule"),
    [
        (
            OptimalTreeRegressor(objective="poisson"),
            {"target": "x"},
            "x",
            -1.0,
            "count must not be",
        ),
        (
            OptimalTreeRegressor(objective="poisson"),
            {"target": "x", "exposure": "y"},
            "y",
            0.0,
            "exposure must be positive",
        ),
        (
            PolicyTree(reward="inverse-propensity"),
            {"target": "x", "treatment": "arm", "propensity": "y"},
            "y",
            0.0,
            r"propensity must lie in \(0, 1\)",
        ),
        (
            CostSensitiveTreeClassifier(),
            {"target": "arm", "costs": ["x", "y"]},
            "y",
            -0.5,
            "costs must not be negative",
        ),
    ],
)
def test_the_row_of_a_number_out_of_range_is_that_of_the_partition(
    tree, roles, name, value, rule, table
):
    rows = table[["age", "dose"]].assign(x=2.0, y=0.5, arm=np.where(table["flag"], "a", "b"), w=1.0)
    later = rows[200:].copy()
    later.iloc[7, later.columns.get_loc(name)] = value
    tree = clone(tree).set_params(max_depth=1)
    with pytest.raises(ValueError, match=f"frame 1: column '{name}' is {value} in row 7; {rule}"):
        fit_partitions(tree, [rows[:200], later], weight="w", **roles)
    later.iloc[7, later.columns.get_loc("w")] = 0.0
    fit_partitions(tree, [rows[:200], later], weight="w", **roles)


def test_files_of_other_columns_are_refused(table, tmp_path):
    table[:150].to_parquet(tmp_path / "a.parquet")
    table[150:].assign(more=1).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet: it has other columns.*also has 'more'"):
        fitted(tmp_path)
    table[150:].assign(age="old").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet: column 'age' has type .*, but double"):
        fitted(tmp_path)


def test_a_file_of_two_columns_with_one_name_is_refused(table, tmp_path):
    rows = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(rows.append_column("age", rows["dose"]), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: it has duplicate column names: 'age'"):
        fitted(tmp_path)


@pytest.mark.parametrize("name", [None, "__null_dask_index__"])
def test_an_index_that_was_written_as_a_column_is_no_feature(name, table, whole, tmp_path):
    shuffled = table.sample(frac=1, random_state=0).rename_axis(name)
    shuffled.to_parquet(tmp_path / "rows.parquet")
    tree = fitted(tmp_path)
    assert set(tree.feature_names_in_) == set(whole.feature_names_in_)
    assert tree.objective_value_ == whole.objective_value_


def test_a_type_of_another_file_is_named_beside_columns_from_folders(table, tmp_path):
    for site, age in (("a", 1), ("b", 1.5)):
        (tmp_path / f"site={site}").mkdir()
        table[:100].assign(age=age).to_parquet(tmp_path / f"site={site}" / "rows.parquet")
    with pytest.raises(ValueError, match=r"site=b.*rows\.parquet: .*another type of 'age'"):
        fitted(pyarrow.dataset.dataset(tmp_path, format="parquet", partitioning="hive"))


@pytest.mark.parametrize("empty_first", [False, True])
def test_a_column_without_values_in_one_file_is_missing_there(table, tmp_path, empty_first):
    whole = table.assign(
        stage=table["stage"].astype(object).where((table.index < 150) != empty_first, None)
    )
    whole[:150].to_parquet(tmp_path / "a.parquet")
    whole[150:].to_parquet(tmp_path / "b.parquet")
    types = {pq.read_schema(path).field("stage").type for path in tmp_path.iterdir()}
    assert pa.null() in types and len(types) == 2
    tree = fitted(tmp_path)
    assert tree.certificate_.fingerprint == fitted(whole).certificate_.fingerprint


def test_whole_numbers_may_be_floating_in_files_with_missing_ones(table, tmp_path):
    whole = table.assign(age=table["age"].round())
    whole.loc[200, "age"] = np.nan
    whole[:150].astype({"age": "int64"}).to_parquet(tmp_path / "a.parquet")
    whole[150:].to_parquet(tmp_path / "b.parquet")
    tree = fitted(tmp_path)
    assert tree.certificate_.fingerprint == fitted(whole).certificate_.fingerprint
    whole[:150].assign(age=2**53 + 1).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: .*another type of 'age'"):
        fitted(tmp_path)


@pytest.mark.parametrize("first", [np.int64, np.float64])
def test_whole_numbers_may_be_floating_in_some_frames(first, table):
    years = table.assign(age=table["age"].round().fillna(50.0))
    parts = [years[:150].astype({"age": first}), years[150:].astype({"age": np.int64})]
    assert fitted(parts).certificate_.fingerprint == fitted([years]).certificate_.fingerprint


@pytest.mark.parametrize("signed_first", [False, True])
def test_labels_of_signed_and_unsigned_partitions_do_not_become_floating(signed_first, table):
    """As floating numbers, the labels 2**60 and 2**60 + 1 would be one class."""
    labels = 2**60 + np.arange(100) % 2
    features = table[["age", "dose"]]
    parts = [
        features[:100].assign(label=labels.astype(np.int64)),
        features[100:200].assign(label=labels.astype(np.uint64)),
    ]
    with pytest.raises(ValueError, match=r"frame 1: target has dtype u?int64 here and u?int64 in"):
        fit_partitions(
            OptimalTreeClassifier(max_depth=1),
            parts if signed_first else parts[::-1],
            target="label",
        )
    # Smaller unsigned types fit into int64.
    small = [part.assign(label=(part["label"] % 2).astype(np.int64)) for part in parts]
    small[1] = small[1].astype({"label": np.uint8})
    tree = fit_partitions(OptimalTreeClassifier(max_depth=1), small, target="label")
    assert tree.classes_.dtype.kind == "i" and tree.classes_.tolist() == [0, 1]


def test_errors_of_the_reader_name_the_partition(table):
    def broken():
        yield table[:100]
        raise OSError("disk gone")

    with pytest.raises(OSError, match="frame 1: disk gone"):
        fitted(broken)

    calls = []

    def fails_later():
        calls.append(None)
        yield table[:100]
        yield table[100:].assign(time="late") if len(calls) > 4 else table[100:]

    with pytest.raises(ValueError, match=r"frame 1: .*time"):
        fitted(fails_later)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (lambda part: part[:-1], "had 200 rows in an earlier pass and 199 now"),
        (lambda part: part.assign(age=part["age"] + 1), "column 'age' has other values"),
        (lambda part: part.assign(time=part["time"] + 0.5), "changed between two passes"),
        (lambda part: part.assign(time=part["time"].to_numpy()[::-1]), "between two passes|other"),
        (lambda part: None, "found 1 partitions, and an earlier one 2"),
    ],
)
@pytest.mark.parametrize("passes", [3, 4, 5])
def test_partitions_that_change_are_an_error(later, message, passes, table):
    """The check works in whichever pass the table has changed."""
    calls = []

    def parts():
        calls.append(None)
        yield table[:100]
        part = table[100:]
        # The first two calls only read the columns.
        changed = later(part) if len(calls) >= passes + 1 else part
        if changed is not None:
            yield changed

    with pytest.raises(ValueError, match=message):
        fitted(parts)


@pytest.mark.parametrize("passes", [3, 4, 5])
def test_a_partition_that_is_added_is_an_error(passes, table):
    calls = []

    def parts():
        calls.append(None)
        return [table, table[:10]] if len(calls) >= passes + 1 else [table]

    with pytest.raises(ValueError, match="found 2 partitions, and an earlier one 1: partitions"):
        fitted(parts)


def test_parts_without_rows_are_fine_but_not_all(table, whole):
    empty = table[:0]
    tree = fitted([empty.astype(object), table[:50], empty, table[50:]])
    assert tree.objective_value_ == whole.objective_value_
    with pytest.raises(ValueError, match="no row of positive weight"):
        fitted([empty, empty])


def test_level_first_seen_late(table):
    late = table.assign(stage=["early"] * 299 + ["late"])
    encoder = BinaryEncoder(min_support=0.0)
    tree = OptimalSurvivalTree(max_depth=1, encoder=encoder)
    parts = [late[:150], late[150:299].assign(stage=None), late[299:]]
    features = [name for name in COLUMNS if name in FEATURES]
    got = fit_partitions(tree, parts)
    joined = pd.concat(parts)
    expected = OptimalSurvivalTree(max_depth=1, encoder=encoder).fit(
        joined[features], outcome(joined["event"], joined["time"])
    )
    assert got.encoder_.to_dict() == expected.encoder_.to_dict()


def test_numbers_here_and_text_there(table):
    mixed = [
        table[:100].assign(stage=np.array([1, 2] * 50, dtype=object)),
        table[100:],
    ]
    with pytest.raises(TypeError, match=r"frame 1: column 'stage' holds text or categories here"):
        fitted(mixed)


def test_too_many_distinct_values(table, monkeypatch):
    from bristlecone._encoder import partitions
    from bristlecone.scale import _outcomes

    with monkeypatch.context() as patch:
        patch.setattr(partitions, "_MOST_VALUES", 20)
        with pytest.raises(ValueError, match=r"column 'age' has .*round it"):
            fitted([table])
    monkeypatch.setattr(_outcomes, "_MOST_OUTCOMES", 20)
    with pytest.raises(ValueError, match=r"distinct outcomes.*round"):
        fitted([table])


def test_roles_and_names(table):
    with pytest.raises(InvalidParameterError, match=r"'days'.*is not a column"):
        fitted([table], time="days")
    with pytest.raises(InvalidParameterError, match="target='age': OptimalSurvivalTree has no"):
        fitted([table], target="age")
    with pytest.raises(InvalidParameterError, match=r"'nothing'.*is not a column"):
        fitted([table], drop=["nothing"])
    for drop in ("age", 5):
        with pytest.raises(InvalidParameterError, match="drop must be a list of columns"):
            fitted([table], drop=drop)
    policy = PolicyTree(reward="inverse-propensity")
    for propensity in (0.5, {"A": 0.5, "B": 0.5}):
        given = {"target": "age", "treatment": "event", "propensity": propensity}
        with pytest.raises(InvalidParameterError, match="propensity must name a column, or a list"):
            fit_partitions(policy, [table], **given)
    with pytest.raises(InvalidParameterError, match="no columns besides"):
        fitted([table[["time", "event"]]])
    tree = fitted([table], drop=["age"])
    assert "age" not in tree.feature_names_in_


def test_only_a_few_partitions_are_in_memory(table):
    alive, most = [0], [0]

    class Counted(pd.DataFrame):
        def __del__(self):
            alive[0] -= 1

    def parts():
        for start in range(0, 300, 10):
            most[0] = max(most[0], alive[0])
            part = Counted(table[start : start + 10])
            alive[0] += 1
            yield part
            del part

    fitted(parts)
    assert most[0] <= 3


@pytest.mark.slow
def test_processes_of_joblib(table, whole, folder):
    import joblib

    with joblib.parallel_config("loky", n_jobs=2):
        tree = fitted(folder)
        with pytest.raises(ValueError, match=r"^frame 1: column 'time'"):
            fitted([table[:100], table[100:].assign(time=-1.0)])
    assert tree.objective_value_ == whole.objective_value_
    pd.testing.assert_frame_equal(tree.leaf_table(), whole.leaf_table(), check_exact=True)
