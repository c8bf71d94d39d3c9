"""Reading CSV and Parquet without a data frame library."""

import sys
from datetime import date

import numpy as np
import pytest

from bristlecone.data.frame import Frame
from bristlecone.data.reading import read_csv, read_parquet


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def column(write, *cells):
    return read_csv(write("x,y\n" + "".join(f"{cell},0\n" for cell in cells)))["x"]


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (("1", "-2", " 3 "), np.int64, [1, -2, 3]),
        (("1", "2.5", "1e-3", ".5"), np.float64, [1.0, 2.5, 0.001, 0.5]),
        (("1", "inf", "-Infinity"), np.float64, [1.0, np.inf, -np.inf]),
        (("true", "False", "TRUE"), np.bool_, [True, False, True]),
        (("true", "", "false"), object, [True, None, False]),
        (("a", "1", "NA"), object, ["a", "1", None]),
        (("1_000", "2"), object, ["1_000", "2"]),
        (("007", "x"), object, ["007", "x"]),
    ],
)
def test_a_column_has_the_narrowest_type_of_all_its_cells(write, cells, dtype, values):
    read = column(write, *cells)
    assert read.dtype == dtype
    assert read.tolist() == values


@pytest.mark.parametrize("missing", ["", " ", "NA", "N/A", "NaN", "nan", "NULL", "null"])
def test_missing_cells_make_a_number_column_float(write, missing):
    read = column(write, "1", missing, "3")
    np.testing.assert_array_equal(read, [1.0, np.nan, 3.0])


def test_a_column_of_missing_cells_only_is_float(write):
    assert np.isnan(column(write, "", "NA")).all()


def test_numbers_read_back_to_the_same_float(write):
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    np.testing.assert_array_equal(column(write, *map(repr, values.tolist())), values)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_tells_the_delimiter(write, delimiter):
    frame = read_csv(write(f"a{delimiter}b\n1{delimiter}x\n"))
    assert frame.columns == ["a", "b"]
    assert frame["b"].tolist() == ["x"]


def test_quotes_byte_order_mark_line_ends_and_empty_lines_are_understood(write):
    frame = read_csv(write('\ufeff"a, b",c\r\n"one ""two""\nthree",1\r\n\r\nx,2\r\n'))
    assert frame.columns == ["a, b", "c"]
    assert frame["a, b"].tolist() == ['one "two"\nthree', "x"]
    assert frame["c"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "data.csv: the file is empty"),
        ("a,b\n", "data.csv: no rows below the header"),
        ("a,b\n1,2\n3\n", "data.csv, line 3: 1 cells where the header has 2 columns"),
        ("a,b\n1,2,3\n", "data.csv, line 2: 3 cells where the header has 2 columns"),
        ("a,,c\n1,2,3\n", "data.csv: column 2 has an empty name"),
        ("a,b,a\n1,2,3\n", r"data.csv: duplicate column name 'a' \(columns 1 and 3\)"),
        ('a,b\n1,"2\n', "data.csv, line 2: unexpected end of data"),
        (b"a,b\n1,2\n\xff,3\n", "data.csv, line 3: byte 0xff is not UTF-8"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_csv(write(content))


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_csv(tmp_path / "none.csv")


def test_rows_and_columns_of_a_frame_can_be_chosen():
    frame = Frame([("a", np.array([1, 2, 3])), ("b", np.array(["x", "y", "z"], dtype=object))])
    assert frame.shape == (3, 2)
    assert frame[np.array([True, False, True])]["a"].tolist() == [1, 3]
    assert frame[np.array([2, 0])]["b"].tolist() == ["z", "x"]
    assert frame.select(["b"]).columns == ["b"]
    assert frame.drop(["b"]).columns == ["a"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([("a", [1]), ("a", [2])], "duplicate column name 'a'"),
        ([("a", [1]), (" ", [2])], "column 2 has an empty name"),
        ([("a", [1]), ("b", [1, 2])], "column 'b' has 2 rows but 'a' has 1"),
    ],
)
def test_a_frame_refuses_columns_that_do_not_fit_together(columns, message):
    with pytest.raises(ValueError, match=message):
        Frame((name, np.array(values)) for name, values in columns)


def test_parquet_reads_to_the_same_columns_as_csv(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {
            "whole": [1, 2, 3],
            "holes": pa.array([1, None, 3], pa.int64()),
            "real": [0.5, None, 2.0],
            "flag": [True, False, True],
            "maybe": [True, None, False],
            "text": ["a", None, "b"],
            "level": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "data.csv").write_text(
        "whole,holes,real,flag,maybe,text,level\n"
        "1,1.0,0.5,true,true,a,u\n2,,,false,,,v\n3,3,2,true,false,b,u\n"
    )
    ours, theirs = read_parquet(tmp_path / "data.parquet"), read_csv(tmp_path / "data.csv")
    assert ours.columns == theirs.columns
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_dates_and_nested_values_of_parquet_are_kept_as_objects(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"day": [date(2020, 1, 2), date(2021, 3, 4)], "list": [[1, 2], [3, 4]]})
    parquet.write_table(table, tmp_path / "data.parquet")
    frame = read_parquet(tmp_path / "data.parquet")
    assert frame["day"].tolist() == [date(2020, 1, 2), date(2021, 3, 4)]
    assert frame["list"].tolist() == [[1, 2], [3, 4]]


def test_what_is_no_parquet_file_is_refused(write):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"data\.parquet: "):
        read_parquet(write("a,b\n1,2\n", "data.parquet"))


def test_missing_pyarrow_is_explained(monkeypatch, write):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'bristlecone\[parquet\]'"):
        read_parquet(write("", "data.parquet"))
