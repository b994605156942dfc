"""`shortlist report`: a page and its numbers, or one line on what went wrong."""

import json
import os
import re
import zipfile

import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist import report as reports
from shortlist.cli._app import app


def run(*arguments):
    """Run a command and return what it printed."""
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300"})


def check_refused(result, code, complaint):
    """One line on standard error, nothing on standard output, no traceback."""
    assert result.exit_code == code, result.output
    (error,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert complaint in error
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_page_and_its_numbers(model_file, new_cases, tmp_path):
    """The JSON that is printed is the JSON inside the page."""
    out = tmp_path / "report.html"
    result = run("report", model_file, new_cases, "--target", "fraud", "-o", out, "--json")
    assert result.exit_code == 0, result.output
    page = out.read_text(encoding="utf-8")
    inside = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page)
    printed = json.loads(result.stdout)
    assert printed.pop("out") == str(out)
    assert json.loads(inside[1]) == printed
    assert {rule["rule"] for rule in printed["comparison"]["rules"]} >= {
        "Default threshold",
        "Random choice",
    }
    assert "http" not in page.replace("http-equiv", "")


def test_the_command_says_how_it_went(model_file, new_cases, tmp_path):
    """What was flagged, what was found, and where the page is."""
    result = run("report", model_file, new_cases, "-o", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    assert re.search(r"of 800 flagged, room for 80\.\n\d+ of 65 rare cases", result.stdout)
    assert "within the capacity" in result.stdout
    assert str(tmp_path / "report.html") in result.stdout


def test_a_page_advises_in_options(model_file, new_cases, tmp_path):
    """What does not fit the model card is corrected where the command is typed."""
    frame = pd.read_csv(new_cases)
    frame.loc[:200, "amount"] = -999
    frame.to_csv(tmp_path / "odd.csv", index=False)
    run("report", model_file, tmp_path / "odd.csv", "-o", tmp_path / "odd.html")
    page = (tmp_path / "odd.html").read_text(encoding="utf-8")
    assert "If that means missing, use --read na=-999" in page


def test_a_wrong_target_is_refused(model_file, new_cases, tmp_path):
    """With exit code 2, and what stood there before is left alone."""
    out = tmp_path / "report.html"
    out.write_text("before")
    named = run("report", model_file, new_cases, "--target", "nothing", "-o", out)
    check_refused(named, 2, "no column 'nothing'")
    other = run("report", model_file, new_cases, "--target", "vip", "-o", out)
    check_refused(other, 2, "no row with the rare label 'yes'")
    assert out.read_text() == "before"
    assert os.listdir(tmp_path) == ["report.html"]


def test_an_output_that_cannot_be_written(model_file, new_cases, tmp_path, monkeypatch):
    """Exit code 3: no folder, a folder, a full disk; never half a page."""
    out = tmp_path / "report.html"
    check_refused(
        run("report", model_file, new_cases, "-o", tmp_path / "no" / "r.html"), 3, "not exist"
    )
    check_refused(run("report", model_file, new_cases, "-o", tmp_path), 3, "is a folder")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    check_refused(run("report", model_file, new_cases, "-o", out), 3, "disk is full")
    assert os.listdir(tmp_path) == []


def test_ctrl_c(model_file, new_cases, tmp_path, monkeypatch):
    """Exit code 130, and no page."""

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(reports, "make_report", interrupt)
    result = run("report", model_file, new_cases, "-o", tmp_path / "report.html")
    check_refused(result, 130, "Interrupted")
    assert os.listdir(tmp_path) == []


def rewritten(path, new, change):
    """Copy a model file with another manifest."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])
    change(manifest)
    parts["manifest.json"] = json.dumps(manifest)
    with zipfile.ZipFile(new, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return new


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda m: m.update(format_version=9), "has format 9"),
        (lambda m: m.update(scikit_learn_version="0.1.0"), "fitted with scikit-learn 0.1.0"),
        (lambda m: m["card"].pop("n_rows"), "manifest cannot be read"),
        (lambda m: m.pop("card"), "its manifest lacks card"),
        (lambda m: m["card"].update(profiles=[7]), "manifest cannot be read"),
    ],
)
def test_models_of_other_versions_are_refused(model_file, new_cases, tmp_path, change, complaint):
    """And damaged ones."""
    other = rewritten(model_file, tmp_path / "other", change)
    check_refused(run("report", other, new_cases, "-o", tmp_path / "r.html"), 2, complaint)


def test_every_option_has_its_place_on_the_page(model_file, new_cases, tmp_path):
    """Groups, and another column with labels."""
    out = tmp_path / "report.html"
    options = ["--segment", "country", "--target", "fraud"]
    result = run("report", model_file, new_cases, *options, "-o", out)
    assert result.exit_code == 0, result.output
    page = out.read_text(encoding="utf-8")
    for text in ("800 cases", "By country"):
        assert text in page
    wrong = run("report", model_file, new_cases, "--segment", "amount", "-o", out)
    check_refused(wrong, 2, "--segment names 'amount'")


def test_inputs_are_not_overwritten(model_file, new_cases, tmp_path):
    """Not even by a link."""
    link = tmp_path / "link.html"
    link.symlink_to(new_cases)
    before = new_cases.read_bytes()
    result = run("report", model_file, new_cases, "-o", link)
    assert result.exit_code == 2, result.output
    assert new_cases.read_bytes() == before


def test_another_extension_is_refused(model_file, new_cases, tmp_path):
    """A report is a page, which any browser prints."""
    for name in ("report.pdf", "report"):
        check_refused(run("report", model_file, new_cases, "-o", tmp_path / name), 2, ".html")
    assert os.listdir(tmp_path) == []
