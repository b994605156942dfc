"""Tables from files, by extension."""

import gzip
import io
from pathlib import Path

import pandas as pd
import pytest

from shortlist.exceptions import TableError
from shortlist.tables import _text_files as text_files
from shortlist.tables import read as formats
from shortlist.tables._text_files import whole_lines
from shortlist.tables.read import open_table


def read(path):
    """Return a whole table as plain columns."""
    with open_table(Path(path)) as source:
        return source.read().to_pydict()


def test_the_same_table_from_every_format(tmp_path):
    """Text formats give texts; the others keep their types."""
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["1", "2"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather")
    for path in tmp_path.iterdir():
        assert read(path) == frame.to_dict("list"), path


def test_quotes_protect_commas_and_line_ends(tmp_path):
    """In the heading as in the rows."""
    (tmp_path / "t.csv").write_text('a,"b,\nc"\n1,"x,\ny"\n')
    assert read(tmp_path / "t.csv") == {"a": ["1"], "b,\nc": ["x,\ny"]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system(tmp_path, end):
    """Unix, Windows, and old Macintosh."""
    (tmp_path / "t.csv").write_bytes(end.join(["a,b", "1,x", "2,y", ""]).encode())
    assert read(tmp_path / "t.csv") == {"a": ["1", "2"], "b": ["x", "y"]}


def test_chunks_are_small(tmp_path, monkeypatch):
    """A long table never stands in memory as a whole."""
    monkeypatch.setattr(formats, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(text_files, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(text_files, "_END_BYTES", 10)
    monkeypatch.setattr(formats, "_CHUNK_ROWS", 100)
    frame = pd.DataFrame({"a": range(1000)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        with open_table(tmp_path / name) as source:
            sizes = [chunk.num_rows for chunk in source.chunks(["a"], ["a"])]
        assert sum(sizes) == 1000
        assert max(sizes) < 500


def test_nothing_is_read_ahead(tmp_path, monkeypatch):
    """A file is read no further than the chunk that was asked for, and a few lines held back."""
    monkeypatch.setattr(text_files, "_CHUNK_BYTES", 4_000)
    monkeypatch.setattr(text_files, "_END_BYTES", 100)
    pd.DataFrame({"a": range(100_000)}).to_csv(tmp_path / "t.csv", index=False)
    opened = []
    open_binary = text_files.open_binary
    monkeypatch.setattr(
        text_files, "open_binary", lambda *args: opened.append(open_binary(*args)) or opened[0]
    )
    with open_table(tmp_path / "t.csv") as source:
        for number, _ in enumerate(source.chunks(["a"], ["a"])):
            assert opened[0].tell() <= 2 + 4_000 * (number + 1) + 100


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_stay_whole(size, end):
    """Quotes protect line ends, doubled quotes do not end them, and a stray quote is a sign."""
    lines = ['1,"x', 'y"', '2,"a ""b""', '"', '3,12" pipe', "4,", '"5","', '""', '"']
    text = end.join(lines).encode()
    blocks = list(whole_lines(io.BytesIO(text), size, delimiter=",", name="t"))
    assert b"".join(blocks) == text
    rows = [1, 3, 4, 5, 8]  # lines after which a row is over
    ends = {len((end.join(lines[: n + 1]) + end).encode()) for n in rows}
    places = {sum(map(len, blocks[:n])) for n in range(1, len(blocks))}
    # A block may end between the two signs of a line end; what follows is then an empty line.
    assert places <= ends | {place - 1 for place in ends if end == "\r\n"}


def test_a_quote_that_is_never_closed(tmp_path, monkeypatch):
    """Is said, instead of reading all of a long file into memory."""
    monkeypatch.setattr(text_files, "_LONGEST_LINE", 1_000)
    monkeypatch.setattr(formats, "_CHUNK_BYTES", 300)
    monkeypatch.setattr(text_files, "_CHUNK_BYTES", 300)
    monkeypatch.setattr(text_files, "_END_BYTES", 10)
    (tmp_path / "t.csv").write_text('a,b\n1,"x\n' + "2,y\n" * 1_000)
    with pytest.raises(TableError, match="Is a quote"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n", "is empty"),
        ("t.csv", b",,\n1,2,3\n", "column names; it is blank"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,a\n1,2\n", "more than one column named 'a'"),
        ("t.csv", b"a,b\n1\n", "more or fewer values than its heading"),
        ("t.csv", b"a\ncaf\xe9\n", "not UTF-8.*encoding='cp1252'"),
        ("t.csv", b"caf\xe9\n1\n", "not UTF-8.*encoding='cp1252'"),
        ("t.parquet", b"PAR1 and then nothing", "damaged"),
        ("t.feather", b"ARROW1 and then nothing", "damaged"),
        ("t.csv.gz", gzip.compress(b"a\n" + b"1\n" * 99, mtime=0)[:-12], "damaged"),
        ("t.csv.gz", b"plain", "damaged"),
        ("t.xlsx", b"PK", "damaged"),
        ("t.xls", b"PK", "Save it as .xlsx"),
        ("t", b"a\n1\n", "Use .csv"),
    ],
)
def test_what_cannot_be_read_is_said_in_words(tmp_path, name, content, complaint):
    """In one line, with the name of the file."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=complaint) as caught:
        read(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_parquet_file(tmp_path):
    """Cut off in the middle, as a failed download is."""
    pd.DataFrame({"a": range(1000)}).to_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(TableError, match="damaged"):
        read(tmp_path / "t.parquet")


def test_a_missing_file_and_an_empty_folder(tmp_path):
    """Neither is a table."""
    with pytest.raises(TableError, match="There is no file"):
        read(tmp_path / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="it has no files"):
        read(tmp_path / "folder.csv")


def test_row_numbers_that_pandas_saved_are_no_column(tmp_path):
    """An index without a name would tell the order of the rows."""
    frame = pd.DataFrame({"a": [3.0, 1.0, 2.0]}, index=[7, 5, 9])
    frame.to_parquet(tmp_path / "t.parquet", index=True)
    assert read(tmp_path / "t.parquet") == {"a": [3.0, 1.0, 2.0]}
