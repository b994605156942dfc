"""Tables of databases: read as files are, and answers that are appended whole or not at all."""

import datetime
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from shortlist._core.files import check_writable
from shortlist.cli._app import app
from shortlist.exceptions import TableError
from shortlist.tables import DatabaseTable, select_rows
from shortlist.tables import _databases as databases
from shortlist.tables.fit import read_to_fit
from shortlist.tables.read import open_table, read_whole
from tests.service.helpers import running_postgres

#: The address of another database, which is empty, to be tested as well, such as
#: mysql+pymysql://ann:secret@127.0.0.1/office?init_command=SET%20sql_mode='ANSI_QUOTES'
ELSEWHERE = os.environ.get("SHORTLIST_TEST_DATABASE")


def run(url, statement, rows=None):
    """Run a statement, with each of some rows; return what it finds."""
    address = DatabaseTable(f"{url}#any")
    with databases._connected(address, writes=True) as connection:
        if address.system == "other":
            return run_elsewhere(connection, statement, rows)
        cursor = connection.cursor()
        if rows is not None:
            mark = "%s" if address.system == "postgresql" else "?"
            cursor.executemany(statement.replace("?", mark), rows)
        else:
            cursor.execute(statement)
        found = cursor.fetchall() if statement.startswith("SELECT") else []
        connection.commit()
        return found


def run_elsewhere(connection, statement, rows):
    """Do the same through SQLAlchemy."""
    connection.execution_options(no_parameters=rows is None)
    found = connection.exec_driver_sql(statement.replace("?", "%s"), rows)
    found = [tuple(row) for row in found] if statement.startswith("SELECT") else []
    connection.commit()
    return found


def write(url, table, frame):
    """Write a frame as a table of texts and numbers."""
    types = ["DOUBLE PRECISION" if kind.kind == "f" else "TEXT" for kind in frame.dtypes]
    columns = ", ".join(f'"{n}" {t}' for n, t in zip(frame, types, strict=True))
    run(url, f"CREATE TABLE {table} ({columns})")
    plain = frame.astype(object).where(frame.notna(), None)
    marks = ", ".join("?" * frame.shape[1])
    rows = list(plain.itertuples(index=False, name=None))
    run(url, f"INSERT INTO {table} VALUES ({marks})", rows)


@pytest.fixture(scope="module")
def server():
    """Yield a PostgreSQL server of our own."""
    with running_postgres() as server:
        yield server


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        "duckdb",
        "postgresql",
        "postgresql+psycopg",
        *(["elsewhere"] * bool(ELSEWHERE)),
    ],
)
def url(request, cases, new_cases, tmp_path_factory):
    """Return the address of a database of each kind, with the tables of cases."""
    folder = tmp_path_factory.mktemp("database")
    if request.param.startswith("postgresql"):
        for name in ("psycopg", *["sqlalchemy"] * ("+" in request.param)):
            pytest.importorskip(name)
        database = f"office{len(request.param)}"
        address = request.getfixturevalue("server").new_database(database)
        address = address.replace("postgresql", request.param)
    elif request.param == "elsewhere":
        address = ELSEWHERE
    else:
        pytest.importorskip({"sqlite": "sqlite3"}.get(request.param, request.param))
        address = f"{request.param}:///{folder / 'office.db'}"
    write(address, "old_cases", pd.read_csv(cases, dtype={"vip": str}))
    write(address, "new_cases", pd.read_csv(new_cases, dtype={"vip": str}))
    return address


def test_rows_are_those_of_a_file(url, cases):
    """With the same kinds, ids and labels."""
    options = {"target": "fraud", "id": "case", "rare": None}
    rows, schema, _ = read_to_fit(DatabaseTable(f"{url}#old_cases"), None, **options)
    expected, plain, _ = read_to_fit(cases, None, **options)
    assert [(f.name, f.kind) for f in schema.features] == [(f.name, f.kind) for f in plain.features]
    order, same = np.argsort(rows.ids), np.argsort(expected.ids)
    assert_array_equal(rows.ids[order], expected.ids[same])
    assert_array_equal(rows.is_rare[order], expected.is_rare[same])
    pd.testing.assert_frame_equal(
        rows.X.iloc[order].reset_index(drop=True), expected.X.iloc[same].reset_index(drop=True)
    )


def test_lists_are_those_of_a_file(url, table_fit, new_cases, monkeypatch):
    """In chunks as well, and from a query."""
    monkeypatch.setattr(databases, "_CHUNK_ROWS", 100)
    expected = select_rows(table_fit.model, new_cases, count=20)
    query = "select * from new_cases where 1 = 1"
    for where in ((f"{url}#new_cases",), (f"{url}#{query};",), (url, f"{query} -- all")):
        listed = select_rows(table_fit.model, DatabaseTable(*where), count=20)
        assert [row["case"] for row in listed.rows] == [row["case"] for row in expected.rows]


def test_answers_are_appended(url, model_file, new_cases, tmp_path):
    """To a table that is made with its types; a second run adds as many rows."""
    typed = ["flag", str(model_file), f"{url}#new_cases", "-o"]
    for times in (1, 2):
        result = CliRunner().invoke(app, [*typed, f"{url}#answers"])
        assert result.exit_code == 0, result.output
        assert run(url, "SELECT count(*) FROM answers") == [(800 * times,)]
    file = CliRunner().invoke(app, ["flag", str(model_file), str(new_cases)])
    assert file.exit_code == 0
    CliRunner().invoke(
        app, ["flag", str(model_file), str(new_cases), "-o", str(tmp_path / "a.csv")]
    )
    expected = pd.read_csv(tmp_path / "a.csv")
    found = run(url, "SELECT DISTINCT * FROM answers ORDER BY 1")
    assert [row[0] for row in found] == sorted(expected["case"])
    assert (
        sum(bool(row[list(expected).index("flagged")]) for row in found) == expected.flagged.sum()
    )


def test_a_list_goes_to_a_table(url, model_file):
    """As to a file."""
    asked = ["--query", "select * from new_cases", "--count", "7"]
    typed = ["select", str(model_file), *asked, url, "-o", f"{url}#listed"]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 0, result.output
    assert [rank for (rank,) in run(url, "SELECT rank FROM listed ORDER BY 1")] == [*range(1, 8)]


@pytest.mark.parametrize(
    "words",
    [
        ("sqlite:///office.db#cases", "--query", "select * from cases"),
        ("sqlite:///office.db", "--query", " "),
        ("sqlite:///office.db",),
        ("cases.csv", "--query", "select * from cases"),
        ("--reviews", "done.csv", "--query", "select * from cases"),
    ],
)
def test_a_query_needs_the_address_of_a_database(words):
    """And one without a table; a question that nobody would answer is an error."""
    result = CliRunner().invoke(app, ["evaluate", "fraud.model", *words])
    assert result.exit_code == 2
    assert "is not the address of a table" in result.stderr
    assert "with a query, leave out #" in result.stderr


def test_answers_that_do_not_fit_leave_nothing(url, model_file, monkeypatch):
    """The table has other columns, or refuses one of the rows."""
    monkeypatch.setattr(databases, "_CHUNK_ROWS", 50)
    run(url, "CREATE TABLE other (x TEXT)")
    columns = '"case" TEXT, "row" BIGINT, score DOUBLE PRECISION, flagged BIGINT'
    last = max(case for (case,) in run(url, 'SELECT "case" FROM new_cases'))
    limit = f"CHECK (\"case\" <> '{last}')"
    run(url, f"CREATE TABLE refusing ({columns}, threshold DOUBLE PRECISION, {limit})")
    for table in ("other", "refusing"):
        typed = ["flag", str(model_file), f"{url}#new_cases", "-o", f"{url}#{table}"]
        result = CliRunner().invoke(app, typed)
        assert result.exit_code == 3, result.output
        assert [line[:7] for line in result.stderr.splitlines()][-1] == "Error: "
        assert run(url, f"SELECT count(*) FROM {table}") == [(0,)]


def test_a_type_that_no_answer_has_is_refused(url):
    """It would have become a whole number."""
    address = DatabaseTable(f"{url}#days")
    days = pa.table({"day": [datetime.date(2024, 5, 31)]})
    with (
        pytest.raises(TableError, match="'day' has the type date32"),
        databases.append_whole(address) as file,
    ):
        pq.write_table(days, file)
    with pytest.raises(OSError, match="days"):
        run(url, "SELECT * FROM days")


def test_few_rows_are_held_together(url, model_file, monkeypatch):
    """Of a table with all its columns to carry along, and of one to look at."""
    sizes, convert = [], databases.as_arrow

    def counted(values):
        sizes.append(len(values))
        return convert(values)

    monkeypatch.setattr(databases, "as_arrow", counted)
    monkeypatch.setattr(databases, "_CHUNK_ROWS", 50)
    monkeypatch.setattr("shortlist.tables.inspect._MOST_ROWS", 99)
    address = f"{url}#new_cases"
    result = CliRunner().invoke(app, ["flag", str(model_file), address, "--keep", "all"])
    assert result.exit_code == 0, result.output
    assert (max(sizes), len(result.stdout.splitlines())) == (50, 801)
    sizes.clear()
    result = CliRunner().invoke(app, ["inspect", address])
    assert result.exit_code == 0, result.output
    assert max(sizes) == 100


def test_batches_are_committed_together(url, monkeypatch):
    """Each run adds its rows."""
    monkeypatch.setattr(databases, "_CHUNK_ROWS", 3)
    for times in (1, 2):
        with databases.append_whole(DatabaseTable(f"{url}#small")) as file:
            pq.write_table(pa.table({"case": ["a", "b", None, "d"], "n": [1, 2, 3, None]}), file)
        assert run(url, "SELECT count(*), sum(n) FROM small") == [(4 * times, 6 * times)]


KILLED = """
import os, signal, sys
import pyarrow as pa, pyarrow.parquet as pq
from shortlist.tables import DatabaseTable
from shortlist.tables import _databases as databases
real = pq.ParquetFile.iter_batches
def dying(self, n):
    for number, batch in enumerate(real(self, 10)):
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch
pq.ParquetFile.iter_batches = dying
with databases.append_whole(DatabaseTable(sys.argv[1])) as file:
    pq.write_table(pa.table({"case": [str(i) for i in range(100)]}), file)
"""


def test_a_killed_run_leaves_no_half_table(url):
    """Neither rows nor the table that was made for them; the next run writes all rows."""
    ended = subprocess.run([sys.executable, "-c", KILLED, f"{url}#fresh"], check=False)
    assert ended.returncode == -signal.SIGKILL
    if url.startswith("mysql"):  # which commits a new table by itself, but no row
        assert run(url, "SELECT count(*) FROM fresh") == [(0,)]
    else:
        with pytest.raises(OSError, match="fresh"):
            run(url, "SELECT * FROM fresh")
    with databases.append_whole(DatabaseTable(f"{url}#fresh")) as file:
        pq.write_table(pa.table({"case": [str(i) for i in range(100)]}), file)
    assert sorted(int(case) for (case,) in run(url, 'SELECT "case" FROM fresh')) == [*range(100)]


def test_types_are_exact(url):
    """Decimals, moments with zones, and whole numbers beyond what a float holds."""
    if url.startswith("sqlite"):
        pytest.skip("SQLite has no such types")
    if url.startswith("duckdb"):
        pytest.importorskip("pytz")
    moment, with_zone = datetime.datetime.fromisoformat("2024-05-31T02:30:00+02:00"), "TIMESTAMPTZ"
    if url.startswith("mysql"):
        moment, with_zone = moment.astimezone(datetime.UTC).replace(tzinfo=None), "DATETIME"
    run(
        url,
        f"CREATE TABLE typed (price NUMERIC(12, 2), account NUMERIC(20, 0), seen {with_zone}, "
        "day DATE, ok BOOLEAN, big BIGINT)",
    )
    row = ("12.10", 2**60 + 1, moment, moment.date(), True, 2**60 + 1)
    run(url, "INSERT INTO typed VALUES (?, ?, ?, ?, ?, ?)", [row, (None,) * 6])
    with open_table(DatabaseTable(f"{url}#typed")) as source:
        table = read_whole(source)
    found = table.to_pydict()
    assert found["price"] == [12.1, None]
    assert found["account"] == found["big"] == [str(2**60 + 1), None]
    assert found["seen"] == [datetime.datetime(2024, 5, 31, 0, 30), None]
    assert found["ok"] == [True, None]
    assert found["day"][0].date() == moment.date()


def test_decimals_keep_all_digits(url):
    """As numbers if these have them, and otherwise as texts, as in a file."""
    if url.startswith("sqlite"):
        pytest.skip("SQLite has no decimals")
    exact = "12345678901234567.89"
    for digits, found in ((exact, exact), ("0.10", 0.1), ("12.00", 12.0), ("7", 7)):
        places = len(digits.partition(".")[2])
        query = f"select cast('{digits}' as decimal(30, {places})) as price"
        with open_table(DatabaseTable(url, query)) as source:
            assert read_whole(source).to_pydict() == {"price": [found]}


def test_a_database_is_not_changed_by_reading(url):
    """A query that writes is refused, whatever it is hidden in."""
    with pytest.raises(TableError), open_table(DatabaseTable(f"{url}#delete from old_cases")):
        pass
    assert run(url, "SELECT count(*) FROM old_cases") == [(1_500,)]


def test_no_database_is_made_or_changed_by_reading(tmp_path):
    """One that does not exist is an error, and still does not exist afterwards."""
    with (
        pytest.raises(TableError, match="cannot be used"),
        open_table(DatabaseTable(f"sqlite:///{tmp_path / 'none.db'}#cases")),
    ):
        pass
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("sqlite:///nowhere/office.db#cases", "cannot be used: unable to open"),
        ("postgresql://ann:sec%20ret@127.0.0.1:1/office#cases", "cannot be used: connection"),
    ],
)
def test_errors_are_said_in_one_line_without_the_password(address, words):
    """Neither as it was typed nor as it is meant."""
    if address.startswith("postgresql"):
        pytest.importorskip("psycopg")
    with pytest.raises(TableError, match=words) as caught, open_table(DatabaseTable(address)):
        pass
    assert "\n" not in str(caught.value)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:secret@host/office#cases",
        "postgres://ann:secret@host:5432/office#public.cases",
        "postgresql://host/office?user=ann&password=secret#cases",
        "postgresql://ann:secret@host/office#select 'secret' from cases",
    ],
)
def test_an_address_is_shown_without_its_password(address):
    """In errors, notes, reports and cards, which show it as a text."""
    shown = DatabaseTable(address)
    assert "secret" not in f"{shown!r} {shown}"
    assert "***" in str(shown)
    assert "ann" in str(shown)


@pytest.mark.parametrize(
    "address", ["sqlite:///office.db", "mysql://ann:secret@host/office#cases", "cases.csv"]
)
def test_addresses_need_a_database_that_is_known_and_a_table(address):
    """The error shows what an address looks like."""
    with pytest.raises(ValueError, match=r"sqlite:///cases\.db#cases") as caught:
        DatabaseTable(address)
    assert "secret" not in str(caught.value)


def test_nothing_is_printed_at_the_end(tmp_path):
    """DuckDB lists what is left of it in a program that ends without collecting garbage."""
    pytest.importorskip("duckdb")
    url = f"duckdb:///{tmp_path / 'office.db'}"
    run(url, "CREATE TABLE cases AS SELECT 1.5 AS amount")
    words = [sys.executable, "-m", "shortlist", "inspect", f"{url}#cases"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_paths_from_the_root_and_from_here():
    """Four slashes and three."""
    assert str(DatabaseTable("sqlite:////data/a%20b.db#cases").file) == "/data/a b.db"
    assert str(DatabaseTable("duckdb:///data/a.db#cases").file) == "data/a.db"


def test_a_new_database_is_made_by_answers_alone(tmp_path, model_file, new_cases):
    """A check before long work leaves no empty file; a missing folder is the error of a file."""
    new = tmp_path / "new.db"
    databases.check_appendable(DatabaseTable(f"sqlite:///{new}#answers"))
    assert not new.exists()
    address = f"sqlite:///{tmp_path}/none/new.db#answers"
    result = CliRunner().invoke(app, ["flag", str(model_file), str(new_cases), "-o", address])
    assert (result.exit_code, "cannot be used" in result.stderr) == (3, True)


def test_the_file_of_a_database_is_not_overwritten(tmp_path):
    """By answers that go to a file."""
    (tmp_path / "office.csv").write_bytes(b"")
    address = DatabaseTable(f"sqlite:///{tmp_path / 'office.csv'}#cases")
    with pytest.raises(ValueError, match="would overwrite"):
        check_writable(tmp_path / "office.csv", keep=(address,))


def test_a_missing_driver_is_named(monkeypatch):
    """With what to type."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    address = DatabaseTable("duckdb:///office.db#cases")
    with pytest.raises(ImportError, match=r"shortlist\[sql\]"), open_table(address):
        pass


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:top/secret@localhost:1/office#cases",
        "postgresql://ann:top@secret@localhost:1/office#cases",
        "postgresql://ann:top#secret@localhost:1/office#cases",
        "postgresql://ann:12#secret@localhost:1/office#cases",
        "postgresql://ann:12#top secret@localhost:1/office#cases",
        "postgresql+psycopg://ann:secret@localhost:1/office#cases",
        "POSTGRESQL://ann:secret@localhost:1/office#cases",
        "mysql://ann:top@secret@localhost/office#cases",
    ],
)
@pytest.mark.parametrize("command", ["check", "inspect"])
def test_a_password_of_an_odd_address_is_not_shown(address, command, model_file):
    """Not if it has signs that end it, nor in the address of a database that is not read."""
    model = [str(model_file)] if command == "check" else []
    result = CliRunner().invoke(app, [command, *model, address])
    assert result.exit_code == 2, result.output
    assert "secret" not in result.output
    assert "top" not in result.output


def test_inspect_and_evaluate_read_databases(cases, model_file, tmp_path):
    """As all other commands do."""
    url = f"sqlite:///{tmp_path / 'office.db'}"
    write(url, "old_cases", pd.read_csv(cases, dtype={"vip": str}))
    for command in (["inspect"], ["evaluate", str(model_file)]):
        result = CliRunner().invoke(app, [*command, f"{url}#old_cases"])
        assert result.exit_code == 0, result.output
