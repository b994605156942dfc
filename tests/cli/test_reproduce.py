"""The command that reproduces the paper: options, the page, and what ends it early."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shortlist.cli import app
from shortlist.cli._reproduce import FIGURE_NAMES
from shortlist.reproduce import FIGURES, normal_cauchy

WIDE = {"COLUMNS": "300"}
ELLIPSES = ["reproduce", "ellipses", "--quick", "--reps", "1"]


def invoke(*arguments):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=WIDE)


def start_and_stop(how, out, *, jobs):
    """Start a run, send a signal to all of its processes when two results are there."""
    command = [sys.executable, "-m", "shortlist", *ELLIPSES, "--jobs", str(jobs), "--out", str(out)]
    n_before = len(list(out.glob("finished/*.json")))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for _ in range(6_000):
        if process.poll() is not None or len(list(out.glob("finished/*.json"))) >= n_before + 2:
            break
        time.sleep(0.02)
    os.killpg(process.pid, how)
    _, errors = process.communicate()
    return process.returncode, errors


def test_whatever_ends_a_run_the_next_one_makes_the_same_table(tmp_path):
    """Ctrl-C with two processes, then a kill without warning, then to the end."""
    out = tmp_path / "stopped"
    code, errors = start_and_stop(signal.SIGINT, out, jobs=2)
    assert code == 130
    assert "the same command resumes from there" in " ".join(errors.split())
    assert "Traceback" not in errors
    code, _ = start_and_stop(signal.SIGKILL, out, jobs=1)
    assert code == -signal.SIGKILL
    assert not list(out.glob("*.csv"))
    assert invoke(*ELLIPSES, "--out", out).exit_code == 0
    whole = tmp_path / "whole"
    assert invoke(*ELLIPSES, "--out", whole).exit_code == 0
    assert (out / "ellipses.csv").read_bytes() == (whole / "ellipses.csv").read_bytes()


def test_the_page_shows_figures_tables_and_versions(tmp_path, monkeypatch):
    """One page for all figures of the call."""
    monkeypatch.setattr(normal_cauchy, "QUICK", normal_cauchy.Config(n_shifts=2))
    run = invoke("reproduce", "smote-scheme", "normal-cauchy", "--quick", "--out", tmp_path)
    assert run.exit_code == 0, run.output
    page = (tmp_path / "index.md").read_text()
    assert page.index("![smote-scheme](smote-scheme.png)") < page.index("## normal-cauchy")
    assert "scikit-learn" in page
    assert "| appendix | 0.005 | 20 | 0.09545 |" in page
    assert (tmp_path / "smote-scheme.png").stat().st_size > 10_000


def test_json_names_every_file(tmp_path, monkeypatch):
    """With --json, one object and nothing else on standard output."""
    monkeypatch.setattr(normal_cauchy, "QUICK", normal_cauchy.Config(n_shifts=2))
    done = invoke("reproduce", "normal-cauchy", "--quick", "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert set(answer["figures"]) == {"normal-cauchy"}
    for file in [answer["page"], *answer["figures"]["normal-cauchy"].values()]:
        assert Path(file).is_file()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["figure-9"], "there is no figure figure-9"),
        (["credit", "--rows", "20000"], "choose 25000 or 30000; got 20000"),
        (["credit", "--reps", "0"], "--reps"),
    ],
)
def test_a_wrong_option_is_refused_at_once(arguments, complaint, tmp_path):
    """Before anything is run."""
    run = invoke("reproduce", *arguments, "--out", tmp_path / "out")
    assert run.exit_code == 2
    assert complaint in run.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    """The error names the folder, comes before any work, and shows no traceback."""
    file = tmp_path / "file"
    file.write_text("not a folder")
    for out in (file, file / "below"):
        run = invoke("reproduce", "smote-scheme", "--quick", "--out", out)
        assert run.exit_code == 3
        (line,) = run.stderr.splitlines()
        assert line.startswith(f"Error: The folder {out} cannot be created: ")
        assert run.stdout == ""
        assert isinstance(run.exception, SystemExit)


def test_a_folder_without_permission_is_one_line(tmp_path, monkeypatch):
    """As above, for a folder that exists."""
    monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.W_OK)
    run = invoke("reproduce", "smote-scheme", "--quick", "--out", tmp_path)
    assert run.exit_code == 3
    (line,) = run.stderr.splitlines()
    assert line == f"Error: The folder {tmp_path} cannot be written to. Choose another place."


def test_the_command_offers_every_figure():
    """In the order of the paper."""
    assert tuple(FIGURES) == FIGURE_NAMES


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_keeps_the_contract(name):
    """A frozen config for the full study and a quick one of the same kind, and what uses them."""
    module = FIGURES[name]
    assert isinstance(module.QUICK, module.Config)
    assert hash(module.QUICK) != hash(module.Config())
    assert all(callable(getattr(module, part)) for part in ("run", "draw", "digest"))
