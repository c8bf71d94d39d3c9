"""Files that the command line reads: accepted forms, rejected ones, and the errors."""

import csv
import gzip
import io
import sys
from datetime import date, datetime
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from command_line import run
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bristlecone._cli import csv_file
from bristlecone._cli.columns import NUMBER, TEXT, TIME
from bristlecone._cli.csv_file import CsvFile
from bristlecone._cli.parquet_file import ParquetFile


def table(text, **options):
    return file_of(text).read(**options)


def file_of(text):
    content = text if isinstance(text, bytes) else text.encode()
    return CsvFile("data.csv", lambda: io.BytesIO(content))


def listed(column):
    """Values, with None if missing."""
    return [None if pd.isna(value) else value for value in column.tolist()]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (("1", "-2", " 3 "), "i", [1, -2, 3]),
        (("1", "2.5", "1e-3", ".5"), "f", [1.0, 2.5, 0.001, 0.5]),
        (("1", "inf", "-Infinity"), "f", [1.0, np.inf, -np.inf]),
        (("true", "False", "TRUE"), "b", [True, False, True]),
        (("true", "", "false"), "O", [True, None, False]),
        (("a", "1", "NA"), "O", ["a", "1", None]),
        (("1_000", "2"), "O", ["1_000", "2"]),
        (("007", "x"), "O", ["007", "x"]),
        (("1", "  ", " 3"), "f", [1.0, None, 3.0]),
        (("a ", "  ", " b c"), "O", ["a ", None, "b c"]),
        (("123456789012345678", "-1"), "i", [123456789012345678, -1]),
        (("9" * 30, "1"), "f", [1e30, 1.0]),
        (("", "NA"), "f", [None, None]),
        (('"a, ""b"""', "c"), "O", ['a, "b"', "c"]),
    ],
)
def test_a_column_has_the_narrowest_type_of_all_its_cells(cells, kind, values):
    read = table("x,y\n" + "".join(f"{cell},0\n" for cell in cells))["x"]
    assert read.dtype.kind == kind
    assert listed(read) == values


@pytest.mark.parametrize("missing", ["", " ", "NA", "N/A", "NaN", "nan", "NULL", "null"])
def test_missing_cells_make_a_number_column_float(missing):
    np.testing.assert_array_equal(table(f"x,y\n1,0\n{missing},0\n3,0\n")["x"], [1.0, np.nan, 3.0])


@pytest.mark.parametrize("mark", [".", ","])
def test_numbers_read_back_to_the_same_float(mark):
    values = np.random.default_rng(0).normal(size=5000) * 10.0 ** np.arange(-250, 250, 0.1)
    cells = "".join(f"{value!r};0\n".replace(".", mark) for value in values.tolist())
    np.testing.assert_array_equal(table(f"x;y\n{cells}")["x"], values)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a;b\n1,5;2\n", {"a": [1.5], "b": [2]}),
        ("a;b\n1,5;x\n-2;y\n", {"a": [1.5, -2.0], "b": ["x", "y"]}),
        ("a\tb\n1,25\t2,5e1\n", {"a": [1.25], "b": [25.0]}),
        ("a;b\n1.5;2\n", {"a": [1.5], "b": [2]}),
        ('"size, cm";b\n1,5;2\n', {"size, cm": [1.5], "b": [2]}),
        ("size, cm;b;c\n1,5;2;3\n", {"size, cm": [1.5], "b": [2], "c": [3]}),
        ("a,b;c\n1,2\n3,4\n", {"a": [1, 3], "b;c": [2, 4]}),
        ("a\n1\n2\n", {"a": [1, 2]}),
        ("\ufeffa,b\r1,2\r", {"a": [1], "b": [2]}),
        ("a, b\n 1 , x y \n2,z\n", {"a": [1, 2], "b": ["x y ", "z"]}),
        ("a\n1e3\n-2.5E-1\n", {"a": [1000.0, -0.25]}),
        ("a\n1\ninf\n\t3\n", {"a": [1.0, np.inf, 3.0]}),
        ("a\n" + "long " * 50 + "\nb\n", {"a": ["long " * 50, "b"]}),
        ('\ufeff"a, b",c\r\n"one ""two""\nthree",1\r\n\r\nx,2\r\n',
         {"a, b": ['one "two"\nthree', "x"], "c": [1, 2]}),
        ('a,b\n1, "x, y"\n', {"a": [1], "b": ["x, y"]}),
        ("a,b\n5'0,1\n\n3\"0,2\n", {"a": ["5'0", '3"0'], "b": [1, 2]}),
        ("a,b\n5,1\n\n \t\n6,2\n", {"a": [5, 6], "b": [1, 2]}),
        ("a;b\n" + "1;2\n" * 2000 + "1;2,5\n", {"a": [1] * 2001, "b": [2.0] * 2000 + [2.5]}),
    ],
)  # fmt: skip
def test_delimiters_decimal_marks_and_quotations(text, columns):
    frame = table(text)
    assert {name: frame[name].tolist() for name in frame} == columns


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "data.csv: the file is empty"),
        ("a,b\n", "data.csv: no rows below the header"),
        ("a,b\n1,2\n3\n", "data.csv, line 3: 1 cells where the header has 2 columns"),
        ("a,b\n1,2,3\n", "data.csv, line 2: 3 cells where the header has 2 columns"),
        ("a,b\n1,2\n1\n1,2,3\n", "data.csv, line 3: 1 cells where the header has 2 columns"),
        ("a\n1\n1,2\n", "data.csv, line 3: 2 cells where the header has 1 columns"),
        ('a,b\n1,2\n"3\n4",5\n6\n', "data.csv, line 5: 1 cells where the header has 2 columns"),
        ("a,,c\n1,2,3\n", "data.csv: column 2 has an empty name"),
        (",a,\n1,2,3\n", "data.csv: column 3 has an empty name"),
        ('""\n1\n', "data.csv: column 1 has an empty name"),
        ("a,b,a\n1,2,3\n", r"data.csv: duplicate column name 'a' \(columns 1 and 3\)"),
        ('a,b\n1,"2\n', "data.csv, line 2: unexpected end of data"),
        ("a,b\n1,2\r3,4\n", "data.csv, line 2: new-line character seen in unquoted field"),
        ('\n"a,b\n1,2\n', "data.csv, line 2: unexpected end of data"),
        ("a\n1\n   \n2\n", "data.csv: there are 3 rows below the header, but pandas reads 2"),
        (b"a,b\n1,2\n\xff,3\n", "data.csv, line 3: byte 0xff is not text in UTF-8"),
        (b"a,b\xb0", "data.csv, line 1: byte 0xb0 is not text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), "data.csv, line 1: byte 0x00 is not text; if it is"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-6], "data.csv: the compressed file is damaged"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(content, message):
    with pytest.raises(ValueError, match=message) as caught:
        table(content)
    assert type(caught.value) is ValueError


cells = st.text(st.sampled_from('ab1 ,;\t"\né.'), max_size=6)


def stripped(rows):
    """Cells without surrounding blanks; None if missing."""
    return [[None if pd.isna(cell) else cell.strip() or None for cell in row] for row in rows]


@pytest.mark.slow
@settings(derandomize=True, max_examples=300)
@given(
    st.integers(2, 4).flatmap(
        lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=1, max_size=5)
    ),
    st.sampled_from(",;\t"),
    st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    st.sampled_from(("\n", "\r\n")),
)
def test_cells_are_those_that_were_written(rows, delimiter, quoting, line_end):
    names = list("vwxyz")[: len(rows[0])]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=line_end).writerows(
        [names, *rows]
    )
    file = file_of(out.getvalue())
    file._delimiter = delimiter
    frame = file.read(kinds=dict.fromkeys(names, TEXT))
    assert stripped(row for _, row in frame.iterrows()) == stripped(rows)


@pytest.mark.slow
@settings(derandomize=True, max_examples=500)
@given(
    st.text(st.sampled_from('a1,"\n\r '), max_size=30), st.integers(2, 3), st.sampled_from((3, 999))
)
@example('a,5"0\n"b",1\n', 2, 999)
@example('"a"b,1\n', 2, 999)
@example('"a""b",1\n""x"",1\n', 2, 999)
@example('"a""",\n"b"\n', 2, 3)
@example('"\n",1\n2\n,3,4\n', 2, 999)
@example("a,b\rc,d\n", 2, 999)
@example("a,b\n\r,1\n", 2, 999)
@example(',1",', 2, 999)
def test_any_text_has_the_cells_of_the_csv_module_or_is_refused(text, n_columns, block):
    names = list("xyz")[:n_columns]
    content = ",".join(names) + "\n" + text

    def rows(strict):
        """Rows below the header; None if a line is broken or has another number of cells."""
        lines = io.StringIO(content, newline="\n")
        try:
            found = [row for row in csv.reader(lines, skipinitialspace=True, strict=strict) if row]
        except csv.Error:
            return None
        # The csv module reads a line of blanks as one cell.
        found = [row for row in found if strict or row != [""] or '""' in content]
        return found[1:] if {len(row) for row in found} == {n_columns} else None

    file = file_of(content)
    file._delimiter = ","
    try:
        with mock.patch.object(csv_file, "_BLOCK", block):
            frame = file.read(kinds=dict.fromkeys(names, TEXT))
    except ValueError:
        assert not rows(strict=True)
    else:
        assert stripped(row for _, row in frame.iterrows()) == stripped(rows(strict=False))


@pytest.mark.parametrize("point", ["1.250", "1.25e3"])
def test_points_and_commas_in_one_file_are_refused(point):
    text = f"a;b;c\n1;1,5;x\n{point};2;y\n"
    with pytest.raises(
        ValueError, match=rf"data\.csv, line 3, column 'a': '{point}' has a decimal point; .*points"
    ):
        table(text)
    assert table(text, kinds={"a": TEXT})["a"].tolist() == ["1", point]
    assert table(text, columns=["b"])["b"].tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("text", "line", "cell"),
    [
        ("a;b\n" + "".join(f"{k},5;1\n" for k in range(12)) + "7.5;1\n", 2, "0,5"),
        ("a,b\n" + "".join(f'"{k},5",1\n' for k in range(12)), 2, "0,5"),
        ("a,b\n" + "".join(f"{k}.5,1\n" for k in range(12)) + "?,1\n", 14, "?"),
        ("a\n50\n60\n\n70\n4o\n80\n", 6, "4o"),
        ('a,b\n50,"x\ny"\n60,\n70,\n4o,\n80,\n', 6, "4o"),
        ("a,b\n950,1\n" + "".join(f'"{k},012.50",1\n' for k in range(1, 12)), 3, "1,012.50"),
        ("a\n" + "".join(f"{k}%\n" for k in range(11)), 2, "0%"),
    ],
)
def test_a_column_of_numbers_with_an_odd_cell_is_refused(text, line, cell):
    with pytest.raises(ValueError, match="column 'a': ") as caught:
        table(text)
    assert str(caught.value).startswith(f"data.csv, line {line}, column 'a': {cell!r} ")
    assert table(text, kinds={"a": TEXT})["a"].dtype.kind == "O"


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2", "A"] * 9,
        ["1", "2", "3"] * 9 + ["A"],
        ["01", "02", "A"],
        ["x", "1"],
        ["1", "A"],
        ["5%", "10%"] * 9,
        [f"{k}.{k}.2020" for k in range(12)],
    ],
)
def test_codes_of_which_some_are_numbers_are_text(values):
    assert table("a\n" + "".join(f"{value}\n" for value in values))["a"].tolist() == values


def test_cells_that_stand_for_a_missing_value_can_be_named():
    frame = table("a,b\n1,x\n-99,?\n-99.0,y\n", missing=["-99", "?"])
    np.testing.assert_array_equal(frame["a"], [1.0, np.nan, np.nan])
    assert listed(frame["b"]) == ["x", None, "y"]


def test_columns_have_the_kinds_asked_for():
    text = "a,b,c,d\n01,1,true,2024-03-01\n02,,false,2024-03-02T12:00Z\n"
    frame = table(text, kinds={"a": TEXT, "b": NUMBER, "c": NUMBER})
    assert frame["a"].tolist() == ["01", "02"]
    np.testing.assert_array_equal(frame["b"], [1.0, np.nan])
    assert frame["c"].tolist() == [True, False]
    days = table("a\n2024-03-01\n\n2024-03-02\n", kinds={"a": TIME})["a"]
    assert days.tolist() == [datetime(2024, 3, 1), datetime(2024, 3, 2)]
    for text, kind, message in (
        ("a,b\n1,2\n3,x\n", NUMBER, "line 3, column 'b': 'x' is not a number"),
        ("a;b\n1;1.5\n3;2,5\n", NUMBER, "line 3, column 'b': '2,5' is not a number"),
        ("a,b\n1,soon\n", TIME, "line 2, column 'b': 'soon' is not a number"),
        ("a,b\n1,2024-03-01\n1,soon\n", TIME, "line 3, column 'b': 'soon' is not a date"),
    ):
        with pytest.raises(ValueError, match=message):
            table(text, kinds={"b": kind})


def test_row_names_are_left_out():
    file = file_of('"","a"\n"1",5\n"2",6\n')
    assert file.has_row_names
    assert file.columns == ["a"]
    assert file.read()["a"].tolist() == [5, 6]


def test_a_file_can_be_read_twice():
    file = file_of("a,b\n1,x\n")
    assert file.read(["a"])["a"].tolist() == [1]
    assert file.read(["b"])["b"].tolist() == ["x"]


def test_compressed_files_are_known_by_their_content():
    frame = table(gzip.compress("a,b\n1,é\n".encode()))
    assert (frame["a"].tolist(), frame["b"].tolist()) == ([1], ["é"])


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def read(columns, **options):
        path = tmp_path / "data.parquet"
        parquet.write_table(pa.table(columns), path)
        return ParquetFile("data.parquet", lambda: path.open("rb")).read(**options)

    return read


def test_parquet_reads_to_the_same_columns_as_csv(parquet):
    import pyarrow as pa

    ours = parquet(
        {
            "whole": [1, 2, 3],
            "holes": pa.array([1, None, 3], pa.int64()),
            "real": [0.5, None, 2.0],
            "exact": pa.array([1, None, 3]).cast(pa.decimal128(30, 2)),
            "flag": [True, False, True],
            "maybe": [True, None, False],
            "text": ["a", None, "b"],
            "level": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    theirs = table(
        "whole,holes,real,exact,flag,maybe,text,level\n"
        "1,1.0,0.5,1.00,true,true,a,u\n2,,,,false,,,v\n3,3,2,3.00,true,false,b,u\n"
    )
    assert list(ours) == list(theirs)
    for name in ours:
        assert ours[name].dtype.kind == theirs[name].dtype.kind, name
        assert listed(ours[name]) == listed(theirs[name])


def test_dates_of_parquet_are_kept(parquet):
    days = [date(2020, 1, 2), date(2021, 3, 4)]
    assert parquet({"day": days}, kinds={"day": TIME})["day"].tolist() == days


@pytest.mark.parametrize("values", [[[1, 2], [3, 4]], [{"a": 1}, {"a": 2}]])
def test_nested_columns_of_parquet_are_refused_by_name(parquet, values):
    with pytest.raises(ValueError, match=r"data\.parquet: column 'codes' holds nested values \("):
        parquet({"a": [1, 2], "codes": values})


def test_columns_of_parquet_have_the_kinds_asked_for(parquet):
    frame = parquet(
        {"a": [1, 2], "b": [1.0, 2.5], "c": ["2024-03-01", None], "d": ["x", "?"]},
        kinds={"a": TEXT, "b": TEXT, "c": TIME},
        missing=["?"],
    )
    assert (frame["a"].tolist(), frame["b"].tolist()) == (["1", "2"], ["1", "2.5"])
    assert listed(frame["c"]) == [datetime(2024, 3, 1), None]
    assert listed(frame["d"]) == ["x", None]
    with pytest.raises(ValueError, match=r"data\.parquet, row 1, column 'a': 'x' is not a number"):
        parquet({"a": [None, "x"]}, kinds={"a": NUMBER})
    with pytest.raises(ValueError, match=r"data\.parquet: no rows"):
        parquet({"a": []})


def test_large_whole_numbers_of_parquet_beside_missing_ones_keep_their_digits(parquet):
    import pyarrow as pa

    codes = pa.array([2**53 + 1, None, 2**64 - 1], pa.uint64())
    frame = parquet({"code": codes}, kinds={"code": TEXT})
    assert listed(frame["code"]) == [str(2**53 + 1), None, str(2**64 - 1)]


def test_what_is_no_parquet_file_is_refused():
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.table({"a": np.arange(100.0)}), file)
    damaged = file.getvalue()[:4] + b"\xff" * 100 + file.getvalue()[104:]
    for content in (b"a,b\n1,2\n", damaged):
        with pytest.raises(ValueError, match=r"data\.parquet: "):
            ParquetFile("data.parquet", lambda content=content: io.BytesIO(content)).read()


def test_missing_pyarrow_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'bristlecone\[parquet\]'"):
        ParquetFile("data.parquet", lambda: io.BytesIO(b"")).read()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            "31.01.2020",
            "'31.01.2020' is not a number; write dates as year-month-day, here 2020-01-31",
        ),
        ("01/31/2020", "'01/31/2020' is not a number; write dates as year-month-day$"),
        ("1.2.3", "'1.2.3' is not a number$"),
    ],
)
def test_other_dates_are_refused_with_the_way_to_write_them(cell, message):
    with pytest.raises(ValueError, match=message):
        table(f"a,b\n1,{cell}\n2,{cell}\n", kinds={"b": TIME})


@pytest.mark.parametrize("form", ["2020-01-{:02}", "{:02}.01.2020"])
def test_a_feature_of_dates_is_reported(form, tmp_path, capsys):
    rows = "\n".join(f"{k},{k % 2},{form.format(k % 28 + 1)}" for k in range(1, 60))
    (tmp_path / "d.csv").write_text(f"time,event,when\n{rows}\n")
    status, _, err = run(capsys, "fit", tmp_path / "d.csv", "--max-depth", 1)
    assert status == 0
    assert "column 'when' contains dates, which are treated as categories" in err
