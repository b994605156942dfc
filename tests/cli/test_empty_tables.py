"""A table without rows has one answer in every command, whatever holds it."""

import os
import sqlite3

import pandas as pd
import pytest
import typer.main
from typer.testing import CliRunner

from shortlist.cli._app import app

COMMANDS = typer.main.get_command(app).commands
#: What each command is given beside its table, and which of its files it would write.
GIVEN = {
    "fit": ("TABLE", "--target", "fraud", "--fraction", "0.1", "-o", "OUT"),
    "inspect": ("TABLE",),
    "select": ("MODEL", "TABLE", "--count", "5", "-o", "OUT.csv"),
    "flag": ("MODEL", "TABLE", "-o", "OUT.csv"),
    "check": ("MODEL", "TABLE"),
    "evaluate": ("MODEL", "TABLE"),
    "report": ("MODEL", "TABLE", "-o", "OUT.html"),
    "recalibrate": ("MODEL", "TABLE", "-o", "OUT"),
}


def test_every_command_with_a_table_is_here():
    """A new one has to give the same answer."""
    takes = {"data", "file"}
    assert {n for n, c in COMMANDS.items() if takes & {p.name for p in c.params}} == set(GIVEN)


@pytest.fixture(params=["csv", "parquet", "xlsx", "sqlite"])
def table(request, new_cases, tmp_path):
    """Return a table with a heading and no rows."""
    frame = pd.read_csv(new_cases).head(0)
    path = tmp_path / f"empty.{request.param}"
    if request.param == "sqlite":
        with sqlite3.connect(path) as connection:
            frame.to_sql("cases", connection, index=False)
        return f"sqlite:///{path}#cases"
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}
    write[request.param](path, index=False)
    return str(path)


@pytest.mark.parametrize("command", GIVEN)
def test_no_rows_no_answer(command, table, model_file, tmp_path):
    """Exit code 2, one sentence that says what it means, and no file; a query may find none."""
    query = ["--query", "select * from cases"] if table.startswith("sqlite") else []
    address = table.removesuffix("#cases") if query else table
    names = {"TABLE": address, "MODEL": str(model_file)}
    words = [names.get(word, word.replace("OUT", f"{tmp_path}/out")) for word in GIVEN[command]]
    result = CliRunner().invoke(app, [command, *words, *query])
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    said = "has no rows below its heading. If there were no cases, there is nothing to do"
    assert f"{'#'.join((address, *query[1:]))} {said}" in result.stderr
    assert not result.stdout
    assert not list(tmp_path.glob("out*"))


def test_a_stream_that_ends_at_once_has_decided_nothing(model_file, tmp_path, monkeypatch):
    """No line is no error: a stream may be quiet."""
    read, write = os.pipe()
    os.close(write)
    monkeypatch.setattr("shortlist.cli._stream._source", lambda: read)
    asked = ["stream", str(model_file), "--state", str(tmp_path / "state"), "--fraction", "0.1"]
    result = CliRunner().invoke(app, asked)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 lines: 0 flagged" in result.stderr


def test_a_table_of_a_database_is_fitted_by_the_default_learner(tmp_path, monkeypatch):
    """Parts of a long fit are kept for local files only."""
    seen = []
    monkeypatch.setattr("shortlist.tables.fit_table", lambda *a, **k: seen.append(k) or 1 / 0)
    address = f"sqlite:///{tmp_path}/office.db#cases"
    asked = ["fit", address, "--target", "y", "--fraction", "0.1", "-o", str(tmp_path / "m")]
    CliRunner().invoke(app, asked)
    assert seen[0]["memory"] is None
