"""Bad input: one line, an exit code, and no half-written file."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import lightgbm
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist import tables
from shortlist.cli import _demo
from shortlist.cli import _shell as shell
from shortlist.cli._app import app
from shortlist.cli._shell import INTERRUPTED, SYSTEM_ERROR, USER_ERROR
from shortlist.learners import members
from shortlist.tables import flag as flagging

COMMAND = [sys.executable, "-B", "-m", "shortlist"]
CAPACITY = ("--capacity", "100", "--per", "1000", "--learner", "logistic", "--folds", "1")


def run(*arguments):
    """Run a command and return what it printed."""
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300"})


def check_refused(result, code, complaint):
    """One line on standard error, nothing on standard output, no traceback."""
    assert result.exit_code == code, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, result.output
    assert complaint in errors[0]
    assert "Traceback" not in result.output
    assert result.stdout == ""


def table(change):
    """Return a maker of files with a spoiled table of cases."""

    def make(path, cases):
        change(pd.read_csv(cases)).to_csv(path, index=False)

    return make


def raw(content):
    """Return a maker of files with the given bytes."""
    return lambda path, cases: path.write_bytes(content)


def cut_off(path, cases):
    """Write a Parquet file and lose its second half."""
    pd.read_csv(cases).to_parquet(path)
    path.write_bytes(path.read_bytes()[:5000])


BAD_TABLES = {
    "empty": ("t.csv", raw(b""), "is empty"),
    "heading only": ("t.csv", raw(b"case,amount,fraud\n"), "has no rows"),
    "one class": ("t.csv", table(lambda f: f.assign(fraud="no")), "only one class, 'no'"),
    "no target": ("t.csv", table(lambda f: f.drop(columns="fraud")), "no column 'fraud'"),
    "gaps in target": (
        "t.csv",
        table(lambda f: f.assign(fraud=f["fraud"].mask(f.index == 3))),
        "'fraud' is empty in 1 of 1,500 rows",
    ),
    "numbers as target": (
        "t.csv",
        table(lambda f: f.assign(fraud=np.arange(len(f)) / 7)),
        "looks like a measurement",
    ),
    "infinite": ("t.csv", table(lambda f: f.assign(amount=np.inf)), "must be a finite number"),
    "duplicate columns": ("t.csv", raw(b"a,a,fraud\n1,2,no\n"), "more than one column named 'a'"),
    "not UTF-8": ("t.csv", raw(b"a,fraud\n\xe9\xe9\xe9,no\n"), "is not UTF-8"),
    "ragged": ("t.csv", raw(b"a,fraud\n1,no,3\n"), "more or fewer values"),
    "truncated": ("t.parquet", cut_off, "damaged"),
    "not Parquet": ("t.parquet", raw(b"hello"), "damaged"),
    "unknown format": ("t.docx", raw(b"hello"), "is none of .csv"),
    "nothing to learn from": ("t.csv", raw(b"fraud\nno\nyes\n"), "no column besides"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_refused(name, cases, tmp_path):
    """With exit code 2; what stood under the name of the output is left alone."""
    filename, make, complaint = BAD_TABLES[name]
    make(tmp_path / filename, cases)
    (tmp_path / "model").write_text("before")
    result = run(
        "fit", tmp_path / filename, "--target", "fraud", *CAPACITY, "-o", tmp_path / "model"
    )
    check_refused(result, 2, complaint)
    assert (tmp_path / "model").read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == sorted(["model", filename])


def test_gaps_everywhere_are_no_reason_to_stop(cases, tmp_path):
    """Missing features are handled, even a column without any value."""
    pd.read_csv(cases).assign(amount=np.nan).to_csv(tmp_path / "t.csv", index=False)
    result = run(
        "fit", tmp_path / "t.csv", "--target", "fraud", *CAPACITY, "-o", tmp_path / "model"
    )
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", ["select", "flag", "evaluate"])
def test_commands_refuse_what_does_not_fit_the_model(command, model_file, new_cases, tmp_path):
    """A missing column, a changed type, a file that is no model, a file that is not there."""
    more = {"select": ("--count", "5"), "flag": ("-o", tmp_path / "out.csv")}.get(command, ())
    frame = pd.read_csv(new_cases)
    frame.drop(columns="amount").to_csv(tmp_path / "missing.csv", index=False)
    check_refused(
        run(*command.split(), model_file, tmp_path / "missing.csv", *more), 2, "no column 'amount'"
    )
    frame.assign(amount="much").to_csv(tmp_path / "changed.csv", index=False)
    check_refused(
        run(*command.split(), model_file, tmp_path / "changed.csv", *more),
        2,
        "must be a finite number",
    )
    check_refused(run(*command.split(), new_cases, new_cases, *more), 2, "not a model of shortlist")
    check_refused(
        run(*command.split(), model_file, tmp_path / "none.csv", *more), 2, "There is no file"
    )
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "give the capacity"),
        (("--fraction", "0.1", "--multiple", "2"), "in one way; got --fraction, --multiple"),
        (("--capacity", "5"), "belong together"),
        (("--per", "5", "--fraction", "0.1"), "belong together"),
    ],
)
def test_capacities_are_given_in_one_way(options, complaint, cases, tmp_path):
    """Usage errors have one line and exit code 2, too."""
    result = run("fit", cases, "--target", "fraud", *options, "-o", tmp_path / "model")
    check_refused(result, 2, complaint)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nonsense",), "No such command"),
        (("fit",), "Missing argument 'DATA'"),
        (("select", "m", "d"), "Missing option '--count'"),
        (("select", "m", "d", "--count", "x"), "Invalid value for '--count'"),
        (("evaluate", "m", "d", "--lode", "3"), "--lode"),
    ],
)
def test_usage_errors_have_one_line(arguments, complaint):
    """With where to read on."""
    result = run(*arguments)
    check_refused(result, 2, complaint)
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.rstrip().endswith("--help")


def test_models_are_files_here(cases, model_file, tmp_path):
    """Only tables come from elsewhere; the address is shown as it was typed."""
    fitting = ("fit", cases, "--target", "fraud", "--fraction", "0.1")
    for command in (
        ("check", "https://x/a.model", cases),
        ("evaluate", model_file, "--reviews", cases, "--challenger", "https://x/a.model"),
        (*fitting, "-o", "https://x/a.model"),
        (*fitting, "-o", tmp_path / "a.model", "--model", "https://x/a.model"),
    ):
        check_refused(run(*command), USER_ERROR, "https://x/a.model is not on this machine")


def test_the_most_work_of_a_case_belongs_to_a_fit(cases, model_file):
    """Elsewhere the text names a column."""
    result = run("evaluate", model_file, cases, "--effort", "minutes,max=60", "--budget", "9")
    check_refused(result, USER_ERROR, "no column 'minutes,max=60'")


def test_a_cell_may_be_long(model_file, new_cases, tmp_path):
    """Also in the first row; a heading may not."""
    frame = pd.read_csv(new_cases).assign(note="x" * 200_000).head(3)
    frame.to_csv(tmp_path / "long.csv", index=False)
    assert run("flag", model_file, tmp_path / "long.csv").exit_code == 0
    frame.rename(columns={"note": "x" * 200_000}).to_csv(tmp_path / "head.csv", index=False)
    refused = run("flag", model_file, tmp_path / "head.csv")
    check_refused(refused, USER_ERROR, "does not start with a line of column names")


def test_nothing_asked_for_is_answered_with_help():
    """Rather than with a complaint."""
    result = run()
    assert "Commands" in result.output
    assert "Error" not in result.output


@pytest.mark.parametrize("options", [("--fraction", "6"), ("--fraction", "0.1", "--learner", "x")])
def test_impossible_values_are_refused(options, cases, tmp_path):
    """By the library, in the words of the library."""
    result = run("fit", cases, "--target", "fraud", *options, "-o", tmp_path / "model")
    check_refused(result, 2, "must be")


def test_an_output_that_cannot_be_written(model_file, new_cases, cases, tmp_path):
    """Exit code 3, before any work; an extension that cannot be written is exit code 2."""
    nowhere = tmp_path / "missing" / "out.csv"
    fit = ("fit", cases, "--target", "fraud", *CAPACITY)
    check_refused(run(*fit, "-o", nowhere), 3, "does not exist")
    check_refused(run("flag", model_file, new_cases, "-o", nowhere), 3, "does not exist")
    check_refused(run("flag", model_file, new_cases, "-o", tmp_path), 3, "is a folder")
    check_refused(run("flag", model_file, new_cases, "-o", tmp_path / "o.docx"), 2, "extension")


@pytest.mark.parametrize("command", ["fit", "select", "flag", "export", "demo"])
def test_a_full_disk(command, cases, model_file, new_cases, tmp_path, monkeypatch):
    """Exit code 3, and no half-written file, from every command that writes one."""

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(_demo.run_demo, "__defaults__", (6_000, 5))
    arguments = {
        "fit": (cases, "--target", "fraud", *CAPACITY),
        "select": (model_file, new_cases, "--count", "9"),
        "flag": (model_file, new_cases),
        "export": (model_file,),
        "demo": (),
    }[command]
    suffix = ".png" if command == "demo" else ".csv"
    result = run(*command.split(), *arguments, "--out", tmp_path / f"out{suffix}")
    check_refused(result, 3, "disk is full")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("command", [("flag",), ("select", "--count", "9")])
def test_standard_output_on_a_full_disk(command, model_file, new_cases):
    """A redirected list is complete, or the exit code says that it is not."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*COMMAND, command[0], str(model_file), str(new_cases), *command[1:]],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith(b"Error: The disk is full")


def test_a_reader_that_has_had_enough(model_file, new_cases):
    """As with `| head`: no complaint, no traceback."""
    with subprocess.Popen(
        [*COMMAND, "flag", str(model_file), str(new_cases)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_exit_codes_are_documented():
    """Each has its line on the page about the command line."""
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    for code in (0, 1, USER_ERROR, SYSTEM_ERROR, INTERRUPTED):
        assert f"\n| {code} | " in page


def test_an_error_ends_the_process_cleanly(cases, tmp_path):
    """No thread is left that could bring it down with another code."""
    command = [*COMMAND, "fit", str(cases), "--target", "freud", *CAPACITY]
    result = subprocess.run(
        [*command, "-o", str(tmp_path / "model")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_disk_that_fills_up_while_writing(model_file, new_cases, tmp_path):
    """With a real limit on the size of files, in a process of its own."""
    # The interpreter ignores the signal, so that the write itself fails.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))  # noqa: E731
    result = subprocess.run(
        [*COMMAND, "flag", str(model_file), str(new_cases), "-o", str(tmp_path / "out.csv")],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


def test_ctrl_c(model_file, new_cases, cases, tmp_path, monkeypatch):
    """Exit code 130, and no half-written file, while flagging as while fitting."""

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(flagging._Job, "decide", interrupt)
    monkeypatch.setattr(tables, "fit_table", interrupt)
    flag = run("flag", model_file, new_cases, "-o", tmp_path / "out.csv")
    check_refused(flag, 130, "Interrupted")
    fit = run("fit", cases, "--target", "fraud", *CAPACITY, "-o", tmp_path / "model")
    check_refused(fit, 130, "Interrupted")
    assert os.listdir(tmp_path) == []


def test_ctrl_c_in_a_long_fit_says_how_to_resume(cases, tmp_path, monkeypatch):
    """The same command goes on with what is finished, and then removes it."""
    monkeypatch.setattr("shortlist.cli._fit._MOST_BYTES", 0)
    command = (
        *("fit", cases, "--target", "fraud", "--fraction", "0.1"),
        *("--size", "quick", "--folds", "2"),
    )
    grow = members.RandomForestClassifier.fit

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(members.RandomForestClassifier, "fit", interrupt)
    stopped = run(*command, "-o", tmp_path / "model")
    parts = tmp_path / "model.parts"
    check_refused(stopped, 130, f"What is finished is in {parts}: the same command continues")
    assert os.listdir(tmp_path) == ["model.parts"]
    monkeypatch.setattr(members.RandomForestClassifier, "fit", grow)
    n_boosted = []
    boost = lightgbm.LGBMClassifier.fit
    monkeypatch.setattr(
        lightgbm.LGBMClassifier,
        "fit",
        lambda *args, **kw: n_boosted.append(1) or boost(*args, **kw),
    )
    assert run(*command, "-o", tmp_path / "model").exit_code == 0
    assert len(n_boosted) == 2  # of the folds; that of all rows was finished
    assert os.listdir(tmp_path) == ["model"]


def test_without_a_terminal_there_is_a_line_each_minute(monkeypatch, capsys):
    """With the time, what is being done, and how long the rest takes; nothing in between."""
    minute, begun, written = 0.1, time.monotonic(), ""
    monkeypatch.setattr(shell, "_MINUTE", minute)
    seconds = iter([0.0, 0.0, 1.0])
    monkeypatch.setattr(shell, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with shell.progress("reading") as show:
        show("fitting", 0, 1)
        show("fitting forest", 5.0, 10.0)
        while "forest" not in written:
            time.sleep(0.02)
            written += capsys.readouterr().err
    written += capsys.readouterr().err
    lines = written.splitlines()
    assert len(lines) <= (time.monotonic() - begun) / minute
    pattern = r"[0-9]{2}:[0-9]{2}:[0-9]{2} (reading|fitting|fitting forest, about 1 second left)"
    assert all(re.fullmatch(pattern, line) for line in lines)
    monkeypatch.undo()
    monkeypatch.setattr(shell, "_MINUTE", 0.02)
    monkeypatch.setattr(shell, "is_quiet", [True])
    with shell.progress("reading"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_ctrl_c_in_a_pipeline(model_file, new_cases, tmp_path):
    """A real signal, while rows are waited for; a terminal ends the whole pipeline with it."""
    process = subprocess.Popen(
        [*COMMAND, "flag", str(model_file), "-", "-o", str(tmp_path / "out.csv")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(new_cases.read_bytes())
    process.stdin.flush()
    while not os.listdir(tmp_path):  # the unfinished file, under its temporary name
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    # A shell reports 130 for both: Python ends by the signal itself if that interrupts an import.
    assert process.returncode in (130, -signal.SIGINT), errors
    # A library that is interrupted may have warned.
    assert errors.endswith(b"Error: Interrupted. No output file was written.\n"), errors
    assert b"Traceback" not in errors
    assert os.listdir(tmp_path) == []


def test_a_missing_extra_is_named(cases, tmp_path, monkeypatch):
    """With what to type."""
    rooms = ("shortlist.tables", "shortlist._core.arrow")
    for module in [name for name in sys.modules if name.startswith(rooms)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("fit", cases, "--target", "fraud", *CAPACITY, "-o", tmp_path / "model")
    check_refused(result, 2, "pip install 'shortlist[cli]'")
