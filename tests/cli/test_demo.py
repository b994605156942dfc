"""The command line."""

import pytest
from typer.testing import CliRunner

import shortlist
from shortlist.cli import _demo
from shortlist.cli._app import app


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Run the demonstration on fewer payments."""
    monkeypatch.setattr(_demo.run_demo, "__defaults__", (6_000, 20))


def run(*arguments):
    """Run the command and return what it printed."""
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "300"})


def test_the_demo_prints_a_table_and_saves_a_picture(tmp_path):
    """And says where the picture is."""
    result = run("demo", "--out", str(tmp_path / "curve.png"))
    assert result.exit_code == 0, result.output
    assert "default threshold" in result.stdout
    assert "curve.png" in result.stdout
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_keeps_the_capacity():
    """And finds more than the default threshold."""
    numbers, _ = _demo.run_demo()
    assert numbers["max_flags"] == 60
    by_rule = {rule.rule: rule for rule in numbers["rules"]}
    assert by_rule["capacity, exact batch"].flagged == 60
    assert by_rule["capacity, exact batch"].found > by_rule["default threshold"].found


def test_a_missing_folder_is_refused(tmp_path):
    """One line, no traceback, exit code 3, as of every command that cannot write."""
    result = run("demo", "--out", str(tmp_path / "missing" / "curve.png"))
    assert result.exit_code == 3
    assert "does not exist" in result.output


def test_the_version():
    """As in the package."""
    assert run("--version").stdout.strip() == f"shortlist {shortlist.__version__}"
