"""CSV files with anything in them: a table, or an error that says where."""

import csv
import gzip
import io
import re

import numpy as np

from bristlecone.data.reading.csv_file import CsvFile

NAME = "rows.csv"
# fmt: off
CELLS = (
    *("", "1", "0", "-3.5", "1e5", "1,5", "1.5", ".", "-", "+1", "1e999", "NaN", "NA", "inf"),
    *("true", "False", "yes", "a", "b c", "it's", 'say "x"', "ö身", "a,b", "a;b", "a\tb", "null"),
    *("2020-02-29", "2020-02-30", "12:30", "9" * 30, "x" * 300, "\ufeff", "\u2028", " ", "\x00"),
    *("new\nline", "1 000"),
)
ODD = (
    b'"', b"\n", b"\r", b"\r\n", b"\0", b",", b";", b"\t", b"\xff", b"\xc3", b"\xef\xbb\xbf", b'""',
)
# fmt: on
# How an error says where it is, or that it is the file as a whole.
WHERE = re.compile(r"line \d|row \d|column|rows below the header|file is empty|compressed file")


def written(rng):
    """A table as text, and how it is written."""
    columns, n = int(rng.integers(1, 6)), int(rng.integers(0, 12))
    names = [f"c{k}" if rng.random() < 0.8 else str(rng.choice(CELLS)) for k in range(columns)]
    pools = [rng.choice(CELLS, int(rng.integers(1, 5))) for _ in range(columns)]
    rows = [[str(rng.choice(pool)) for pool in pools] for _ in range(n)]
    mark = str(rng.choice([",", ";", "\t"]))
    line_end = str(rng.choice(["\n", "\r\n"]))
    quoting = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL][rng.integers(2)]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark, quoting=quoting, lineterminator=line_end).writerows(
        [names, *rows]
    )
    return names, rows, out.getvalue()


def damaged(rng, content):
    """Bytes changed, cells and lines dropped or doubled, another encoding, packed and cut."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = int(rng.integers(len(content) + 1))
        kind = rng.integers(8)
        if kind == 0:
            content = content[:at] + ODD[rng.integers(len(ODD))] + content[at:]
        elif kind == 1:
            content = content[:at] + content[at + int(rng.integers(1, 9)) :]
        elif kind == 2:
            content = content[:at] + bytes(rng.integers(0, 256, 3).tolist()) + content[at:]
        elif kind == 3:
            content = content[:at] + content[:at]
        elif kind == 4:
            lines = content.split(b"\n")
            k = int(rng.integers(len(lines)))
            lines[k : k + 1] = [lines[k]] * int(rng.choice([0, 2, 3]))
            content = b"\n".join(lines)
        elif kind == 5:
            text = content.decode(errors="replace")
            content = text.encode(str(rng.choice(["utf-16", "latin-1", "utf-8-sig"])), "replace")
        elif kind == 6:
            content = content[:at] + b"z" * int(rng.choice([70, 5000, 200_000])) + content[at:]
        else:
            packed = gzip.compress(content, mtime=0)
            content = packed[: rng.integers(len(packed) + 1)] if rng.random() < 0.7 else packed
    return content


def file_of(content):
    return CsvFile(NAME, lambda: io.BytesIO(content))


def csv_files(rng):
    """Tables as they were written, and whatever becomes of them."""
    names, rows, text = written(rng)
    content = text.encode()
    intact = rng.random() < 0.3
    if not intact:
        content = damaged(rng, content)
    kind = [None, "text", "text", "number", "time"][rng.integers(5)]
    return check(content, kind, rows if intact and kind == "text" else None, names)


def check(content, kind=None, rows=None, names=()):
    """Read the bytes; the rows, where they are known, are those that come out."""
    file = file_of(content)
    try:
        columns = file.columns
        frame = file.read(kinds=dict.fromkeys(columns, kind) if kind else None)
    except ValueError as error:
        assert not isinstance(error, UnicodeError) and type(error) is ValueError, repr(error)
        assert WHERE.search(str(error)), error
        return "refused"
    assert list(frame) == columns
    lengths = {len(values) for values in frame.values()}
    assert len(lengths) <= 1
    for values in frame.values():
        assert isinstance(values, np.ndarray) and values.dtype.kind in "biufO"
    if rows is not None and columns == [name.strip() for name in names]:
        same(frame, rows)
    return "read"


def same(frame, rows):
    """Text is what was written, but for spaces around it and words for missing values."""
    for k, values in enumerate(frame.values()):
        assert len(values) == len(rows)
        for value, row in zip(values, rows, strict=True):
            assert value is None or value == row[k] or value == row[k].strip(), (value, row[k])
