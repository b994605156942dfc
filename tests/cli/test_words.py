"""What the command line says: options instead of arguments, and an example in every help page."""

import functools
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import shortlist
from shortlist.cli._app import app
from shortlist.cli._options import HELP
from shortlist.cli._shell import OPTIONS, in_options
from shortlist.tables.read import formats_in_words
from shortlist.thresholds.promise import GUARANTEES, guarantee_of

COMMANDS = typer.main.get_command(app).commands
NEW = {
    "select": ("--count", "--segment", "--keep", "--exclude", "--id"),
    "flag": ("--keep", "--exclude", "--at-most", "--id"),
    "recalibrate": ("--per", "--fraction", "--multiple", "--guarantee", "--confidence"),
    "fit": ("--confidence", "--folds", "--model"),
}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Capacity.multiple(3) counts", "--multiple 3 counts"),
        (
            "use Capacity.fraction(...) or Capacity.count(...).",
            "use --fraction or --capacity and --per.",
        ),
        ("Capacity.count(600, per=10_000)", "--capacity 600 --per 10000"),
        ("for 6 % use Capacity.fraction(0.06).", "for 6 % use --fraction 0.06."),
        ("Say how: date_format='day=DD.MM.YY'.", "Say how: --read date_format=day=DD.MM.YY."),
        ("Use decimal=',' or sep='|'.", "Use --read decimal=, or --read 'sep=|'."),
        (
            "max_effort=20 belongs to guarantee='next-batch'",
            "--effort COLUMN,max=20 belongs to --guarantee next-batch",
        ),
        ("learner must be one of 'auto'", "--learner must be one of 'auto'"),
        ("seed must be greater than 0", "--seed must be greater than 0"),
        ("Raise probe=..., or leave it out.", "Raise --probe, or leave it out."),
        ("The table has no column 'guarantee'.", "The table has no column 'guarantee'."),
    ],
)
def test_arguments_become_options(message, words):
    """And other words stay as they are."""
    assert in_options(message) == words


def test_every_argument_that_becomes_an_option_is_one():
    """Of some command, under the name that a message gives it."""
    known = {
        name for command in COMMANDS.values() for param in command.params for name in param.opts
    }
    assert {option.split()[0] for option in OPTIONS.values()} <= known


def test_options_about_files_that_are_none_are_refused(model_file, new_cases):
    """And those that are for a fit."""
    for wrong, words in (
        ("seperator=;", "is not NAME=VALUE; names: sep,"),
        ("german.toml", "is not NAME=VALUE; names: sep,"),
        ("numeric=x", "for fit"),
        ("sep=ab", "sep must be one sign"),
        ("encoding=3", "is unknown"),
        ("keep_total=ja", "must be true or false, not 'ja'"),
        ("date_format=x=DD/MM/YYYY", "has no column 'x'"),
    ):
        asked = ["flag", str(model_file), str(new_cases), "--read", wrong]
        refused = CliRunner().invoke(app, asked)
        assert refused.exit_code == 2
        assert words in refused.stderr


def test_the_help_names_every_guarantee_and_every_format():
    """Without loading the packages that know them."""
    assert all(name in HELP["guarantee"] for name in GUARANTEES)
    sure = [name for name in GUARANTEES if guarantee_of(name).surely]
    assert all((name in HELP["confidence"]) == (name in sure) for name in GUARANTEES)
    assert all(each in HELP["data"] for each in re.findall(r"\.\w+", formats_in_words()))


@pytest.mark.parametrize("command", ["select", "flag", "check", "recalibrate", "inspect"])
def test_every_new_command_has_an_example(command):
    """In its help page, and no type after a switch."""
    words = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert f"Example: shortlist {command}" in words
    assert "<bool>" not in words


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_with_a_value_has_an_example(command):
    """In its help, as one types it; `--capacity 600 --per 10000` is shared by two."""
    for param in COMMANDS[command].params:
        if param.param_type_name == "option" and not param.is_flag:
            told = any(re.search(rf"{option} \S", param.help or "") for option in param.opts)
            assert told or param.name in ("capacity", "help"), (command, param.opts, param.help)


@pytest.mark.parametrize(("command", "option"), [(c, o) for c, os in NEW.items() for o in os])
def test_every_new_option_shows_how_it_is_typed(command, option):
    """With a value."""
    params = COMMANDS[command].params
    (help,) = [param.help for param in params if option in param.opts]
    assert re.search(rf"{option} \S", help)


def test_numbers_are_written_in_one_place():
    """No sentence has a format of its own for shares, or one with exponents for large numbers."""
    source = Path(shortlist.__file__).parent
    own = re.compile(r":,?\.[0-9]+%}|:,g}|:,\.[0-9]+g}")
    found = [path for path in source.rglob("*.py") if own.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_quiet_leaves_out_notes_but_no_warnings(tmp_path, model_file, new_cases):
    """And the next command speaks again."""
    table = tmp_path / "cut.csv"
    table.write_text(new_cases.read_text().rstrip("\n"))
    run = functools.partial(CliRunner().invoke, app)
    asked = ["flag", str(model_file), str(table)]
    quiet, usual = run(["--quiet", *asked]), run(asked)
    assert quiet.stdout == usual.stdout
    assert "Note: The last line" in usual.stderr
    assert "Note: " not in quiet.stderr
    assert "Error: There is no file" in run(["--quiet", "flag", str(model_file), "none.csv"]).stderr
