"""Tables from files, by extension."""

import gzip
from pathlib import Path

import pandas as pd
import pytest

from shortlist.exceptions import TableError, TableNote
from shortlist.tables import _text_files as text_files
from shortlist.tables import read as formats
from shortlist.tables.read import open_table, read_whole


def read(path):
    """Return a whole table as plain columns."""
    with open_table(Path(path)) as source:
        return read_whole(source).to_pydict()


def test_the_same_table_from_every_format(tmp_path):
    """Text formats give texts; the others keep their types."""
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["1", "2"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    frame.to_parquet(tmp_path / "t.parquet")
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
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(text_files, "_BLOCKS_AT_ONCE", 1)
    monkeypatch.setattr(formats, "_CHUNK_ROWS", 100)
    frame = pd.DataFrame({"a": range(1000)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        with open_table(tmp_path / name) as source:
            sizes = [chunk.num_rows for chunk in source.chunks(["a"])]
        assert sum(sizes) == 1000
        assert max(sizes) < 500


@pytest.mark.parametrize("size", [20, 33, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_stay_whole(tmp_path, monkeypatch, size, end):
    """Quotes protect line ends, doubled quotes do not end them, and a stray quote is a sign."""
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", size)
    lines = ["a,b", '1,"x', 'y"', '2,"a ""b""', '"', '3,12" pipe', "4,", '"5","', '""', '"']
    (tmp_path / "t.csv").write_bytes(end.join(lines).encode())
    assert read(tmp_path / "t.csv") == {
        "a": ["1", "2", "3", "4", "5"],
        "b": [f"x{end}y", f'a "b"{end}', '12" pipe', None, f'{end}"{end}'],
    }


def test_a_quote_that_is_never_closed(tmp_path, monkeypatch):
    """Is said, instead of reading all of a long file into memory."""
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 300)
    (tmp_path / "t.csv").write_text('a,b\n1,"x\n' + "2,y\n" * 1_000)
    with pytest.raises(TableError, match="Is a quote"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("zipped", [False, True])
def test_rows_behind_a_quote_that_is_never_closed_are_not_lost(tmp_path, ending, zipped):
    """Arrow takes them for one value, without an error."""
    content = ending.join(["a,b,c", "1,2,x", '3,4,"y', "5,6,z", "7,8,z", ""]).encode()
    path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    path.write_bytes(gzip.compress(content) if zipped else content)
    with pytest.raises(TableError, match=r"never closed.* row 2, .*'y'"):
        read(path)


def test_the_last_value_may_end_with_a_line_end(tmp_path):
    """If its quote is closed."""
    for end in ("", "\n", " \n\n"):
        (tmp_path / "t.csv").write_text(f'a,b\n1,"x\ny ""z""\n"{end}')
        assert read(tmp_path / "t.csv")["b"][0].rstrip(" ") == 'x\ny "z"\n'


def test_a_heading_may_hold_a_stray_quote(tmp_path):
    """As a sign for inches, while values are quoted."""
    (tmp_path / "t.csv").write_text('a,12" pipe,c\n1,2,"x"\n')
    assert read(tmp_path / "t.csv") == {"a": ["1"], '12" pipe': ["2"], "c": ["x"]}


def test_a_value_that_looks_like_rows_is_noted(tmp_path):
    """Two stray quotes hide the rows between them."""
    rows = ["a,b,c", "1,2,x", '3,"4,y', "5,6,z", '7,"8,z', "9,10,z", ""]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.warns(TableNote, match=r"in row 2 of .* look like rows .*quote"):
        assert len(read(tmp_path / "t.csv")["a"]) == 3


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_any_number_of_empty_rows_at_the_end_is_left_out(tmp_path, monkeypatch, size):
    """Spreadsheets write as many as anyone ever visited."""
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", size)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n,\n3,4\n" + ",\n" * 500 + "\n" * 500)
    with pytest.warns(TableNote, match="ends with 500 empty rows"):
        assert read(tmp_path / "t.csv")["a"] == ["1", None, "3"]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.csv", b"a,b", "has no rows"),
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n", "is empty"),
        ("t.csv", b",,\n1,2,3\n", "column names; it is blank"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,a\n1,2\n", "more than one column named 'a'"),
        ("t.csv", b"a,b\n1\n", "more or fewer values than its heading"),
        ("t.csv", "a\nчай\n".encode("cp1251"), "not UTF-8.*encoding='cp1252'"),
        ("t.csv", "чай\n1\n".encode("cp1251"), "not UTF-8.*encoding='cp1252'"),
        ("t.csv", b"a\ncaf\xe9\ncaf\xc3\xa9\n", "not UTF-8.*encoding='cp1252'"),
        ("t.csv", b"a\ncaf\xe9\n\x81\n", "not UTF-8.*encoding='cp1252'"),
        ("t.jsonl", b'{"a": "caf\xe9"}\n', "not UTF-8.*encoding='cp1252'"),
        ("t.parquet", b"PAR1 and then nothing", "damaged"),
        ("t.csv.gz", gzip.compress(b"a\n" + b"1\n" * 99, mtime=0)[:-12], "damaged"),
        ("t.csv.gz", b"plain", "damaged"),
        ("t.xlsx", b"PK", "damaged"),
        ("t.xls", b"PK", "Save it as .xlsx or .csv"),
        ("t", b"a\n1\n", "Save it as .xlsx or .csv"),
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
    with pytest.raises(TableError, match=r"is empty\. Name a file"):
        read(tmp_path / "folder.csv")


def test_row_numbers_that_pandas_saved_are_no_column(tmp_path):
    """An index without a name would tell the order of the rows."""
    frame = pd.DataFrame({"a": [3.0, 1.0, 2.0]}, index=[7, 5, 9])
    frame.to_parquet(tmp_path / "t.parquet", index=True)
    assert read(tmp_path / "t.parquet") == {"a": [3.0, 1.0, 2.0]}


def test_numbers_among_texts_are_those_of_a_text_file(tmp_path):
    """1.0 is the text 1, as in a line of its own, and NaN is missing."""
    (tmp_path / "t.jsonl").write_text('{"a": 1.0}\n{"a": "x"}\n{"a": 2.5}\n{"a": NaN}\n')
    assert read(tmp_path / "t.jsonl") == {"a": ["1", "x", "2.5", None]}
