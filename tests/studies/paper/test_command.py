"""The command that reproduces the paper: options, the page, and what ends it early."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.paper import ellipses, normal_cauchy
from studies.paper.__main__ import main
from studies.paper.figures import FIGURES

ROOT = Path(__file__).parents[3]
ELLIPSES = ["ellipses", "--quick", "--reps", "1"]
#: Ten repetitions, each of a fraction of a second.
SHORT = ellipses.Config(prevalences=tuple(percent / 100 for percent in range(10, 20)))
#: `python -m studies.paper`, with these instead of its own.
WITH_SHORT_ONES = (
    "import runpy; from studies.paper import ellipses; from studies.paper.ellipses import Config; "
    f"ellipses.QUICK = {SHORT}; runpy.run_module('studies.paper', run_name='__main__')"
)


def invoke(*arguments):
    """Run the command in this process."""
    main([str(argument) for argument in arguments])


def start_and_stop(how, out, *, jobs):
    """Start a run, send a signal to all of its processes when two results are there."""
    command = [
        sys.executable,
        "-c",
        WITH_SHORT_ONES,
        *ELLIPSES,
        "--jobs",
        str(jobs),
        "--out",
        str(out),
    ]
    n_before = len(list(out.glob("finished/*.json")))
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    for _ in range(6_000):
        if process.poll() is not None or len(list(out.glob("finished/*.json"))) >= n_before + 2:
            break
        time.sleep(0.02)
    os.killpg(process.pid, how)
    _, errors = process.communicate()
    return process.returncode, errors


def test_whatever_ends_a_run_the_next_one_makes_the_same_table(tmp_path, monkeypatch):
    """Ctrl-C with two processes, then a kill without warning, then to the end."""
    monkeypatch.setattr(ellipses, "QUICK", SHORT)
    out = tmp_path / "stopped"
    code, errors = start_and_stop(signal.SIGINT, out, jobs=2)
    assert code == 130
    assert "the same command resumes from there" in " ".join(errors.split())
    assert "Traceback" not in errors
    code, _ = start_and_stop(signal.SIGKILL, out, jobs=1)
    assert code == -signal.SIGKILL
    assert not list(out.glob("*.csv"))
    invoke(*ELLIPSES, "--out", out)
    whole = tmp_path / "whole"
    invoke(*ELLIPSES, "--out", whole)
    assert (out / "ellipses.csv").read_bytes() == (whole / "ellipses.csv").read_bytes()


def test_the_page_shows_figures_tables_and_versions(tmp_path, monkeypatch):
    """One page for all figures of the call."""
    monkeypatch.setattr(normal_cauchy, "QUICK", normal_cauchy.Config(n_shifts=2))
    invoke("smote-scheme", "normal-cauchy", "--quick", "--out", tmp_path)
    page = (tmp_path / "index.md").read_text()
    assert page.index("![smote-scheme](smote-scheme.png)") < page.index("## normal-cauchy")
    assert "scikit-learn" in page
    assert "| appendix | 0.005 | 20 | 0.09545 |" in page
    assert (tmp_path / "smote-scheme.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["figure-9"], "there is no figure figure-9"),
        (["credit", "--rows", "20000"], "invalid choice: 20000 (choose from 25000, 30000)"),
        (["credit", "--reps", "0"], "--reps"),
    ],
)
def test_a_wrong_option_is_refused_at_once(arguments, complaint, tmp_path, capsys):
    """Before anything is run."""
    with pytest.raises(SystemExit, match="2"):
        invoke(*arguments, "--out", tmp_path / "out")
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    """The error names the folder, and comes before any work."""
    file = tmp_path / "file"
    file.write_text("not a folder")
    for out in (file, file / "below"):
        with pytest.raises(SystemExit, match=f"^Error: The folder {out} cannot be created: "):
            invoke("smote-scheme", "--quick", "--out", out)


def test_a_folder_without_permission_is_one_line(tmp_path, monkeypatch):
    """As above, for a folder that exists."""
    monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.W_OK)
    complaint = f"^Error: The folder {tmp_path} cannot be written to. Choose another place.$"
    with pytest.raises(SystemExit, match=complaint):
        invoke("smote-scheme", "--quick", "--out", tmp_path)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_keeps_the_contract(name):
    """A frozen config for the full study and a quick one of the same kind, and what uses them."""
    module = FIGURES[name]
    assert isinstance(module.QUICK, module.Config)
    assert hash(module.QUICK) != hash(module.Config())
    assert all(callable(getattr(module, part)) for part in ("run", "draw", "digest"))
