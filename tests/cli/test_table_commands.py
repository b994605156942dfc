"""The commands on tables, as a new user would type them."""

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app
from shortlist.cli._shell import in_options
from shortlist.tables.estimators import LEARNERS

FIT = ("--target", "fraud", "--id", "case", "--learner", "logistic", "--folds", "1")


def run(*arguments, **options):
    """Run a command and return what it printed."""
    arguments = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "300"}, **options)


def run_json(*arguments):
    """Run a command with --json and return what it says."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet"])
def test_from_a_table_to_a_list(tmp_path, cases, new_cases, suffix):
    """Fit, select, flag, evaluate and plan, with a table of texts and one of types."""
    for name, path in (("old", cases), ("new", new_cases)):
        frame = pd.read_csv(path)
        if suffix == "parquet":
            frame.to_parquet(tmp_path / f"{name}.{suffix}")
        else:
            frame.to_csv(tmp_path / f"{name}.{suffix}", index=False)
    old, new, model = tmp_path / f"old.{suffix}", tmp_path / f"new.{suffix}", tmp_path / "model"

    fitted = run("fit", old, *FIT[:-2], "--capacity", 100, "--per", 1000, "-o", model)
    assert fitted.exit_code == 0, fitted.output
    for words in (
        "1,500 rows",
        "Measured on all rows",
        "default threshold",
        "random",
        "95 % interval",
    ):
        assert words in fitted.stdout

    listed = run("select", model, new, "--count", 5)
    assert listed.exit_code == 0, listed.output
    assert "amount = " in listed.stdout

    flagged = run("flag", model, new, "-o", tmp_path / "flags.csv")
    assert flagged.exit_code == 0, flagged.output
    assert len(pd.read_csv(tmp_path / "flags.csv")) == 800
    assert "of 800 flagged" in flagged.stderr

    evaluated = run("evaluate", model, new, "--target", "fraud")
    assert evaluated.exit_code == 0, evaluated.output
    assert "Detection (M)" in evaluated.stdout

    planned = run("evaluate", model, new, "--load", 20)
    assert planned.exit_code == 0, planned.output
    assert "One more reviewer, with room for 20 cases" in planned.stdout


def test_a_list_ends_where_its_precision_would(tmp_path, cases, new_cases):
    """With a note; a model of folds is refused, and says what to do."""
    held_out, folds = tmp_path / "one.model", tmp_path / "folds.model"
    for model, options in ((held_out, FIT), (folds, FIT[:-2])):
        assert run("fit", cases, *options, "--fraction", 0.1, "-o", model).exit_code == 0
    asked = ("select", held_out, new_cases, "--count", 60, "--precision")
    listed = run_json(*asked, 0.5)
    assert 0 < listed["count"] < 60
    assert f"The list has {listed['count']} of 60 places" in listed["notes"][0]
    tiered = run("select", held_out, new_cases, "--count", 5, "--act", 0.3)
    assert tiered.exit_code == 0, tiered.output
    assert " act " in tiered.stdout
    assert " review " in tiered.stdout
    flags = run("flag", held_out, new_cases, "--act", 0.5)
    assert flags.stdout.splitlines()[0].replace('"', "") == "case,score,flagged,tier"
    for wrong, words in (
        ((*asked, 0.5, "--probe", 0.1), "--probe cannot be combined"),
        ((*asked, 2), "must be at most 1"),
        (("select", folds, *asked[2:], 0.5), "fit --folds 1"),
    ):
        result = run(*wrong)
        assert result.exit_code == 2, result.output
        assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "capacity",
    [
        ("--fraction", "0.1"),
        ("--multiple", "1.5"),
        ("--capacity", "100", "--per", "1000", "--guarantee", "next-batch"),
    ],
)
def test_capacities_and_guarantees(tmp_path, cases, capacity):
    """In each unit."""
    said = run_json("fit", cases, *FIT, *capacity, "-o", tmp_path / "model")
    assert said["guarantee"] == ("next-batch" if len(capacity) > 2 else "expected")
    assert 0.05 < said["capacity_fraction"] < 0.4
    assert "set the threshold" in said["measured_on"]
    assert {rule["rule"] for rule in said["rules"]} >= {"default threshold", "random"}


def test_json_on_every_command(model_file, new_cases, tmp_path):
    """One object with every number, and nothing else on standard output."""
    selected = run_json("select", model_file, new_cases, "--count", 3, "-o", tmp_path / "l.parquet")
    assert [row["rank"] for row in selected["rows"]] == [1, 2, 3]
    assert selected["rows"][0]["reasons"][0]["column"] == "amount"
    written = pd.read_parquet(tmp_path / "l.parquet")
    assert written["case"].tolist() == [row["case"] for row in selected["rows"]]

    flagged = run_json("flag", model_file, new_cases, "-o", tmp_path / "f.csv")
    assert flagged["n_flagged"] == pd.read_csv(tmp_path / "f.csv")["flagged"].sum()

    evaluated = run_json("evaluate", model_file, new_cases)
    assert evaluated["rules"][0]["flagged"] == flagged["n_flagged"]
    low, high = evaluated["rules"][0]["detection_interval"]
    assert low < evaluated["rules"][0]["detection"] < high

    own = evaluated["capacities"][3]
    assert own["n_flagged"] == 80
    low, high = own["detection_low"], own["detection_high"]
    fixed_low, fixed_high = own["at_threshold_low"], own["at_threshold_high"]
    assert low < fixed_low < own["detection"] < fixed_high < high


def test_export(model_file, tmp_path):
    """The decision as an ONNX file."""
    out = tmp_path / "model.onnx"
    assert run_json("export", model_file, "-o", out)["outputs"] == ["score", "flag", "probability"]
    in_words = run("export", model_file, "-o", out)
    assert in_words.exit_code == 0, in_words.output
    assert "Scores agree to" in in_words.stdout


def test_standard_input_and_output(model_file, new_cases):
    """Rows in, rows out: CSV, or one JSON object per line."""
    piped = run("flag", model_file, "-", input=new_cases.read_bytes())
    assert piped.exit_code == 0, piped.output
    lines = piped.stdout.splitlines()
    assert lines[0] == '"case","score","flagged"'
    assert len(lines) == 801
    as_json = run("flag", model_file, new_cases, "--json").stdout.splitlines()
    assert json.loads(as_json[0])["case"] == "c00000"
    assert len(as_json) == 800


def test_every_step_from_standard_input(cases, new_cases, tmp_path):
    """A table in a pipe is as good as one in a file."""
    model = tmp_path / "model"
    old, new = cases.read_bytes(), new_cases.read_bytes()
    fitted = run("fit", "-", *FIT, "--fraction", "0.1", "-o", model, input=old)
    assert fitted.exit_code == 0, fitted.output
    for command in (("select", "--count", 3), ("evaluate",)):
        result = run(command[0], model, "-", *command[1:], input=new)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", ["fit", "select", "flag", "evaluate", "export"])
def test_every_command_speaks_json(command):
    """And says so."""
    assert "--json" in run(command, "--help").stdout


def test_a_list_without_probabilities(cases, new_cases, tmp_path):
    """A learner that gives none leaves them out; the reasons stay."""
    options = ("--target", "fraud", "--id", "case", "--fraction", "0.1")
    fitted = run_json("fit", cases, *options, "--learner", "aware-linear", "-o", tmp_path / "m")
    assert fitted["learner"] == "aware-linear"
    (row,) = run_json("select", tmp_path / "m", new_cases, "--count", 1)["rows"]
    assert row["probability"] is None
    assert row["reasons"]


def test_a_list_longer_than_the_table(model_file, new_cases):
    """Has all of it, and says so."""
    result = run("select", model_file, new_cases, "--count", 5000, "--json")
    assert json.loads(result.stdout)["count"] == 800
    assert "has only 800 cases" in result.stderr


def test_an_id_that_was_not_named_is_noted(tmp_path, cases):
    """On standard error, and for scripts."""
    command = ("fit", cases, "--target", "fraud", "--learner", "logistic", "--fraction", "0.1")
    result = run(*command, "-o", tmp_path / "model", "--json")
    (note,) = json.loads(result.stdout)["notes"]
    assert "use id='case'" in note
    assert f"Note: {in_options(note)}" in result.stderr
    assert "use --id case" in result.stderr


def test_too_few_rows_for_the_guarantee_is_a_warning_in_one_line(tmp_path, cases):
    """The model then flags by lot, and says so."""
    capacity = ("--fraction", "0.001", "--guarantee", "confident", "--folds", "10")
    result = run("fit", cases, *FIT, *capacity, "-o", tmp_path / "model")
    assert result.exit_code == 0
    (warning,) = [line for line in result.stderr.splitlines() if line.startswith("Warning")]
    assert re.search(r"needs more .* than 1500\. .* drawn by lot", warning)


@pytest.mark.parametrize("learner", LEARNERS)
def test_help_names_every_learner(learner):
    """Those that know the capacity by the beginning of their names."""
    words = run("fit", "--help").stdout
    assert learner in words or (learner.startswith("aware-") and "aware-" in words)


def test_help_fits_one_screen():
    """Every command with one line, also on a narrow terminal; a screen has 40 lines."""
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})
    lines = result.stdout.splitlines()
    assert len(lines) <= 40
    commands = lines[next(row for row, line in enumerate(lines) if "Commands" in line) + 1 :]
    assert all(re.match(r"│ \w|╰|\s*$", line) for line in commands)
    for command in ("fit", "select", "flag", "evaluate"):
        assert command in result.stdout


def test_switches_stand_without_a_type():
    """A switch takes no value, and the help does not say that it does."""
    for command in ("fit", "flag", "stream", "export"):
        assert "<bool>" not in run(command, "--help").stdout


def test_how_to_read_has_examples():
    """In the same words in every command."""
    import typer

    commands = typer.main.get_command(app).commands
    for name in ("fit", "select", "flag", "evaluate", "report"):
        (read,) = (option for option in commands[name].params if option.name == "read")
        for option in ("sep", "encoding", "decimal", "na", "date_format", "sheet"):
            assert f"--read {option}=" in read.help
