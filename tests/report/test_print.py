"""PDFs: printed by a browser, or an error that says how to get one."""

import os
import shutil
import stat

import pytest
from typer.testing import CliRunner

from shortlist.cli import app
from shortlist.report import make_report, print_report, render_report
from shortlist.report.pdf import find_browser

pytestmark = pytest.mark.xdist_group("chromium")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def page(table_fit, new_cases):
    """Return a page."""
    return render_report(make_report(table_fit.model, new_cases))


def a_program(path, text):
    """Write a script that can be run."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def refused(monkeypatch, program, page):
    """Return what is said when this browser is used."""
    monkeypatch.setenv("SHORTLIST_BROWSER", program)
    with pytest.raises(OSError) as caught:
        print_report(page)
    return str(caught.value)


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
def test_the_command_writes_a_pdf(model_file, new_cases, tmp_path):
    """By its extension, and a page stays a page."""
    out = tmp_path / "report.pdf"
    arguments = ["report", str(model_file), str(new_cases), "--title", "March", "-o", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    paper = out.read_bytes()
    assert paper.startswith(b"%PDF")
    assert 4 <= paper.count(b"/Type /Page\n") <= 12
    assert os.listdir(tmp_path) == ["report.pdf"]


def test_without_a_browser_the_error_says_how(model_file, new_cases, tmp_path, monkeypatch):
    """Before any work, with exit code 3 and no file."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHORTLIST_BROWSER", raising=False)
    with pytest.raises(FileNotFoundError, match="apt install chromium"):
        find_browser()
    out = tmp_path / "report.pdf"
    result = CliRunner().invoke(app, ["report", "no model", str(new_cases), "-o", str(out)])
    assert result.exit_code == 3
    assert "-o report.html" in result.stderr
    assert not out.exists()
    monkeypatch.setenv("SHORTLIST_BROWSER", "no-such-browser")
    with pytest.raises(FileNotFoundError, match="SHORTLIST_BROWSER names no-such-browser"):
        find_browser()


def test_a_browser_that_fails_is_reported(page, tmp_path, monkeypatch):
    """With what it said, or that it wrote nothing."""
    failing = a_program(tmp_path / "failing", "echo no display >&2; exit 7")
    assert "could not print: no display" in refused(monkeypatch, failing, page)
    lazy = a_program(tmp_path / "lazy", "exit 0")
    assert "wrote no PDF" in refused(monkeypatch, lazy, page)
    monkeypatch.setattr("shortlist.report.pdf._SECONDS", 0.2)
    slow = a_program(tmp_path / "slow", "exec sleep 5")
    assert "did not print within" in refused(monkeypatch, slow, page)


def test_another_extension_is_refused(model_file, new_cases, tmp_path):
    """A report is a page or a PDF."""
    for name in ("report.docx", "report"):
        arguments = ["report", str(model_file), str(new_cases), "-o", str(tmp_path / name)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert ".html or .pdf" in " ".join(result.stderr.split())
        assert os.listdir(tmp_path) == []
