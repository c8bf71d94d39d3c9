"""Reading CSV files: fast and slow paths agree, odd files are understood or refused."""

import csv
import gzip
import io
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bristlecone.data.reading import CsvFile, cells, read_csv
from bristlecone.data.reading.cells import Cells
from bristlecone.data.reading.columns import NUMBER, TEXT
from bristlecone.data.reading.numbers import parse_number, parse_numbers


def table(text, **options):
    content = text if isinstance(text, bytes) else text.encode()
    return CsvFile("data.csv", lambda: io.BytesIO(content)).read(**options)


def packed(texts):
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded])
    return Cells(b"".join(encoded), np.column_stack([[0, *ends[:-1]], ends]).astype(np.uint32))


numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.text("0123456789.,+-eE infaN", max_size=24),
)


@settings(derandomize=True, max_examples=300)
@given(st.lists(numbers, min_size=1, max_size=6), st.sampled_from(".,"))
@example(["9007199254740993", "0.1", "-.5", "5.", "+1", "-", ".", "", "1.2.3", "1" * 70], ".")
@example(["1e-05", "-1.5E300", "1e999", "1e", "e5", " 2.5 ", "  ", "0" * 20 + "1", "inf"], ".")
def test_numbers_are_read_as_python_reads_them(texts, mark):
    texts = [text.replace(".", mark) for text in texts]
    found = parse_numbers(packed(texts), mark)
    odd = set(found.odd.tolist())
    spaced = [text.strip(" ") for text in texts]
    for row, (text, value) in enumerate(zip(spaced, found.values, strict=True)):
        expected = parse_number(text, mark)
        if expected is None or "inf" in text.lower():
            assert np.isnan(value)
            assert (row in odd) == bool(text)
        else:
            assert row not in odd
            assert value == expected, text
            assert np.signbit(value) == np.signbit(expected)
    read = [text for row, text in enumerate(spaced) if text and row not in odd]
    assert found.blank == ("" in spaced)
    assert found.whole == all(text.lstrip("+-").isdecimal() for text in read)
    assert found.marked == next((k for k, t in enumerate(spaced) if t in read and mark in t), None)
    digits = [sum(map(str.isdigit, text.lower().split("e")[0])) for text in read]
    assert found.n_digits == max(digits, default=0)


@settings(derandomize=True, max_examples=100)
@given(st.lists(st.text("ab 1é", max_size=3), min_size=1))
def test_levels_are_the_distinct_cells_as_they_occur(texts):
    codes, levels = packed(texts).levels()
    assert [levels[code] for code in codes] == texts
    assert levels == list(dict.fromkeys(texts))


def test_bounds_must_lie_in_the_text():
    beyond = Cells(b"ab", np.array([[1, 3]], dtype=np.uint64))
    for read in (beyond.levels, lambda: parse_numbers(beyond, ".")):
        with pytest.raises(ValueError, match="bounds beyond the text"):
            read()
    reverse = Cells(b"ab", np.array([[2, 1]], dtype=np.uint32))
    with pytest.raises(ValueError, match="bounds beyond the text"):
        reverse.levels()


def slowly(text, start, delimiter, n_columns):
    return cells._split_by_rules(text, start, delimiter, n_columns)


def written(rows, delimiter, quoting, line_end):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=line_end).writerows(rows)
    return out.getvalue()


odd_cells = st.text(st.sampled_from('ab1 ,;\t"\né.'), max_size=6)


@settings(derandomize=True, max_examples=300)
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(odd_cells, min_size=n, max_size=n), min_size=1, max_size=5)
    ),
    st.sampled_from(",;\t"),
    st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    st.sampled_from(("\n", "\r\n")),
)
def test_cells_are_those_that_were_written(rows, delimiter, quoting, line_end):
    text = written(rows, delimiter, quoting, line_end).encode() + b"\n"
    # A row of one empty cell is written as an empty line or in quotation marks.
    found = cells.split(text, 0, delimiter, len(rows[0]))
    expected = slowly(text, 0, delimiter, len(rows[0]))
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]
    assert [[cell.decode() for cell in column.tolist()] for column in found] == [
        list(column) for column in zip(*rows, strict=True)
    ]


@settings(derandomize=True, max_examples=500)
@given(st.text(st.sampled_from('a1,"\n\r '), max_size=30), st.integers(1, 3))
@example('a,5"0\n"b",1\n', 2)
@example('"a"b,1\n', 2)
@example("a\n\nb\n", 1)
@example("a\rb\n", 1)
def test_any_text_gives_the_same_cells_or_error_on_both_ways(text, n_columns):
    content = text.encode() + b"\n"
    fast = cells._split_at_marks(content, 0, ",", n_columns)
    if fast is None:
        return
    expected = slowly(content, 0, ",", n_columns)
    assert [column.tolist() for column in fast] == [column.tolist() for column in expected]


def test_a_large_regular_file_takes_the_fast_way(monkeypatch):
    generator = random.Random(0)
    rows = [
        (k, round(generator.gauss(0, 9), 3), generator.random(), generator.choice("abc"), "")
        for k in range(20_000)
    ]
    monkeypatch.setattr(cells, "_split_by_rules", None)
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        text = written([list("vwxyz"), *rows], ",", quoting, "\r\n")
        frame = table(text)
        for name, values in zip("vwxy", zip(*rows, strict=False), strict=False):
            assert frame[name].tolist() == list(values)
        assert np.isnan(frame["z"]).all()
        assert [frame[name].dtype.kind for name in "vwxyz"] == list("iffOf")


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
        ("a, b\n 1 , x y \n2,z\n", {"a": [1, 2], "b": ["x y", "z"]}),
        ("a\n1e3\n-2.5E-1\n", {"a": [1000.0, -0.25]}),
        ("a\n1e3\n2\n", {"a": [1000.0, 2.0]}),
        ("a\nx\0\nx\n", {"a": ["x\0", "x"]}),
        ("a\n1\ninf\n\t3\n", {"a": [1.0, np.inf, 3.0]}),
        ("a\n123456789012345678\n-1\n", {"a": [123456789012345678, -1]}),
        ("a\n1234567890123456789\n1\n", {"a": [1234567890123456789.0, 1.0]}),
        ("a\n" + "long " * 50 + "\nb\n", {"a": ["long " * 49 + "long", "b"]}),
    ],
)
def test_delimiters_decimal_marks_and_types(text, columns):
    frame = table(text)
    assert {name: frame[name].tolist() for name in frame} == columns


@pytest.mark.parametrize("point", ["1.250", "1.25e3"])
def test_points_and_commas_in_one_file_are_refused(point):
    text = f"a;b;c\n1;1,5;x\n{point};2;y\n"
    message = r"decimal point in column 'a' \(row 1\) and a decimal comma in column 'b' \(row 0\)"
    with pytest.raises(ValueError, match=message):
        table(text)
    assert table(text, kinds={"a": TEXT})["a"].tolist() == ["1", point]
    assert table(text, columns=["b"])["b"].tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("text", "row", "cell"),
    [
        ("a;b\n" + "".join(f"{k},5;1\n" for k in range(12)) + "7.5;1\n", 0, "0,5"),
        ("a,b\n" + "".join(f'"{k},5",1\n' for k in range(12)), 0, "0,5"),
        ("a,b\n" + "".join(f"{k}.5,1\n" for k in range(12)) + "?,1\n", 12, "?"),
        ("a\n50\n60\n70\n4o\n80\n", 3, "4o"),
    ],
)
def test_a_column_of_numbers_with_an_odd_cell_is_refused(text, row, cell):
    with pytest.raises(
        ValueError, match=rf"column 'a' holds '{cell.replace('?', '[?]')}' in row {row}"
    ):
        table(text)
    assert table(text, kinds={"a": TEXT})["a"].dtype == object


@pytest.mark.parametrize(
    "values",
    [["1", "2", "A"] * 9, ["1", "2", "3"] * 9 + ["A"], ["01", "02", "A"], ["x", "1"], ["1", "A"]],
)
def test_codes_of_which_some_are_numbers_are_text(values):
    assert table("a\n" + "".join(f"{value}\n" for value in values))["a"].tolist() == values


def test_cells_that_stand_for_a_missing_value_can_be_named():
    text = "a,b\n1,x\n-99,?\n-99.0,y\n"
    frame = table(text, missing=["-99", "?"])
    np.testing.assert_array_equal(frame["a"], [1.0, np.nan, np.nan])
    assert frame["b"].tolist() == ["x", None, "y"]


def test_columns_have_the_kinds_asked_for():
    text = "a,b,c\n01,1,true\n02,,false\n"
    frame = table(text, kinds={"a": TEXT, "b": NUMBER, "c": NUMBER})
    assert frame["a"].tolist() == ["01", "02"]
    np.testing.assert_array_equal(frame["b"], [1.0, np.nan])
    assert frame["c"].tolist() == [True, False]
    with pytest.raises(ValueError, match="column 'b' is not numeric; row 1 holds x"):
        table("a,b\n1,2\n3,x\n", kinds={"b": NUMBER})
    with pytest.raises(ValueError, match="column 'b' is not numeric; row 1 holds 2,5"):
        table("a;b\n1;1.5\n3;2,5\n", kinds={"b": NUMBER})


@pytest.mark.parametrize(
    ("content", "line"),
    [
        # The last line has no end, and the file is read as a whole at once.
        (b"a,b\xb0", 1),
        (b"a,b\n1,\xff2", 2),
        # Line ends of two kinds, the second behind what is read for the header.
        (b"a\r" + b"z" * 200_000 + b"\n", 1),
        # A quotation that does not end: where it begins.
        (b'\n"a,b\n1,2\n', 2),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(content, line):
    for read in (lambda file: file.columns, lambda file: file.read()):
        file = CsvFile("rows.csv", lambda: io.BytesIO(content))
        try:
            read(file)
        except ValueError as error:
            assert type(error) is ValueError
            assert str(error).startswith(f"rows.csv, line {line}: ")
        else:
            # The header may be legible where a row is not.
            assert file.columns == ["a"]


def test_row_names_are_left_out():
    file = CsvFile("data.csv", lambda: io.BytesIO(b'"","a"\n"1",5\n"2",6\n'))
    assert file.has_row_names
    assert file.columns == ["a"]
    assert file.read()["a"].tolist() == [5, 6]
    for header, message in ((b",a,", "column 3 has an empty name"), (b'""', "column 1 has an")):
        with pytest.raises(ValueError, match=message):
            _ = CsvFile("data.csv", lambda header=header: io.BytesIO(header + b"\n1\n")).columns


def test_the_header_is_read_without_the_rows():
    opened = []

    class Watched(io.BytesIO):
        def read(self, size=-1):
            opened.append(size)
            return super().read(size)

    content = b"a,b\n" + b"1,2\n" * 100_000 + b"3\n"
    file = CsvFile("data.csv", lambda: Watched(content))
    assert file.columns == ["a", "b"]
    assert max(opened) < len(content)
    assert min(opened) > 0
    with pytest.raises(ValueError, match=r"data\.csv, line 100002: 1 cells where the header has 2"):
        file.read()
    wide = ",".join(f"column{k}" for k in range(20_000))
    assert len(CsvFile("w", lambda: io.BytesIO(f"{wide}\n".encode())).columns) == 20_000


def test_compressed_files_are_known_by_their_content(tmp_path):
    path = Path(tmp_path) / "data.csv"
    path.write_bytes(gzip.compress("a,b\n1,é\n".encode()))
    frame = read_csv(path)
    assert (frame["a"].tolist(), frame["b"].tolist()) == ([1], ["é"])
    path.write_bytes(gzip.compress(b"a,b\n1,2\n")[:-6])
    with pytest.raises(ValueError, match="the compressed file is damaged"):
        read_csv(path)
