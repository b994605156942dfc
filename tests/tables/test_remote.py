"""Files elsewhere, and names with a *: read as files are."""

import functools
import http.server
import sys
import threading

import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from shortlist._core.files import RemoteFile, as_path
from shortlist.cli._app import app
from shortlist.exceptions import TableError
from shortlist.tables import DatabaseTable, select_rows
from shortlist.tables.read import open_table, read_whole

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory(new_cases):
    """Return a place in memory with the table of cases, whole and in two parts."""
    system = fsspec.filesystem("memory")
    frame = pd.read_csv(new_cases, dtype=str, keep_default_na=False)
    parts = {"whole.csv": frame, "a/day.csv": frame[:300], "b/day.csv": frame[300:]}
    for name, part in parts.items():
        system.pipe_file(f"/office/{name}", part.to_csv(index=False).encode())
    yield "memory://office"
    system.rm("/office", recursive=True)


def read(path):
    """Return a table as a data frame of texts."""
    with open_table(path) as source:
        return read_whole(source).to_pandas()


def shortlist(*words):
    """Run a command."""
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize("place", ["/whole.csv", "/*/day.csv"])
def test_files_elsewhere_are_read_as_local_ones(memory, new_cases, place):
    """Two files of one name are two parts of the table."""
    pd.testing.assert_frame_equal(read(as_path(memory + place)), read(new_cases))


def test_a_pattern_is_one_table(new_cases, tmp_path):
    """In the order of the names; a file that has such a name is read itself."""
    frame = pd.read_csv(new_cases, dtype=str, keep_default_na=False)
    for number, part in enumerate((frame[:300], frame[300:])):
        part.to_csv(tmp_path / f"day-{number}.csv", index=False)
    pd.testing.assert_frame_equal(read(tmp_path / "day-*.csv"), read(new_cases))
    frame[:9].to_csv(tmp_path / "day*.csv", index=False)
    assert len(read(tmp_path / "day*.csv")) == 9
    with pytest.raises(TableError, match=r"No file matches .*night-\*\.csv"):
        read(tmp_path / "night-*.csv")
    (tmp_path / "hour-0.jsonl").write_text('{"a": 1, "b": null}\n')
    (tmp_path / "hour-1.jsonl").write_text('{"a": 0.5, "b": "x"}\n')
    hours = read(tmp_path / "hour-*.jsonl").fillna("none").to_dict("list")
    assert hours == {"a": [1, 0.5], "b": ["none", "x"]}
    (tmp_path / "hour-2.jsonl").write_text('{"a": "y", "b": "x"}\n')
    with pytest.raises(TableError, match="Field a has incompatible types"):
        read(tmp_path / "hour-*.jsonl")
    (tmp_path / "day-2.jsonl").write_text("{}")
    with pytest.raises(TableError, match=r"one extension, .*; got \.csv, \.jsonl"):
        read(tmp_path / "day-*")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://office/none.csv", "cannot be read"),
        ("memory://office/none-*.csv", "No file matches memory://office/none-"),
        ("nowhere://ann:secret@host/x.csv?token=secret", "cannot be read: Protocol not known"),
    ],
)
def test_what_cannot_be_read_is_said_without_secrets(address, message):
    """A password and a token may stand in an address."""
    with pytest.raises(TableError, match=message) as caught:
        read(as_path(address))
    assert "secret" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    """The extra, or the package that fsspec asks for."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ImportError, match="s3fs"):
        read(as_path("s3://bucket/cases.csv"))
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"shortlist\[remote\]"):
        read(as_path("s3://bucket/cases.csv"))


def test_a_table_comes_over_http(new_cases):
    """From a server of our own, with a token behind the name."""
    pytest.importorskip("aiohttp")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=new_cases.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/{new_cases.name}?token=secret"
        pd.testing.assert_frame_equal(read(as_path(address)), read(new_cases))
        with pytest.raises(TableError, match="cannot be read") as caught:
            read(as_path(address.replace(".csv", ".none.csv")))
        server.shutdown()
    assert "secret" not in str(caught.value)


def test_texts_become_what_they_name():
    """Files, files elsewhere, and tables of databases."""
    assert isinstance(as_path("s3://bucket/day.csv"), RemoteFile)
    assert as_path("data/day.csv").name == "day.csv"
    with pytest.raises(ValueError, match=r"such as mysql\+pymysql://") as caught:
        as_path("mysql://ann:secret@host/office#cases")
    assert "secret" not in str(caught.value)


def test_a_list_comes_from_elsewhere_and_goes_to_a_file(memory, model_file, table_fit, new_cases):
    """The same list as of a local file; from Python, the address is a text."""
    asked = ["select", str(model_file), f"{memory}/whole.csv", "--count", "9", "-o"]
    result = CliRunner().invoke(app, [*asked, f"{memory}/list.csv"])
    assert (result.exit_code, "cannot be written to" in result.stderr) == (2, True)
    there = select_rows(table_fit.model, f"{memory}/whole.csv", count=9, reasons=False)
    here = select_rows(table_fit.model, new_cases, count=9, reasons=False)
    assert_array_equal(there.columns["case"], here.columns["case"])


def test_passwords_of_other_databases_are_not_shown():
    """Also not those of ODBC, or among the options."""
    assert "secret" not in str(DatabaseTable("mysql+mysqldb://h/office?passwd=secret#cases"))
    address = "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx;PWD%3Dsecret#cases"
    assert "secret" not in str(DatabaseTable(address))
    assert "secret" not in str(DatabaseTable("mysql+pymysql://ann:secret@host/office#cases"))
    with pytest.raises(ValueError, match="not shown as it may hold a password"):
        DatabaseTable("mysql+pymysql://ann:sec/ret@host/office#cases")


def test_a_missing_driver_of_another_database_is_named():
    """SQLAlchemy knows which one."""
    pytest.importorskip("sqlalchemy")
    with (
        pytest.raises(ImportError, match="pip install pyodbc"),
        open_table(DatabaseTable("mssql+pyodbc://host/office#cases")),
    ):
        pass
