"""`shortlist evaluate --find` and `--segment`: what a detection takes, and who is found."""

import json

import pytest
from typer.testing import CliRunner

from shortlist.cli import app


def run(*arguments):
    """Run `shortlist evaluate`."""
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_a_detection_is_planned(model_file, new_cases):
    """The sentence has the reviews, both ends and the escape rate; JSON has the numbers."""
    said = json.loads(run(model_file, new_cases, "--find", 0.5, "--json").stdout)
    needed = said["needed"]
    assert needed["low"] <= needed["fraction"] <= needed["high"]
    point = next(p for p in said["curve"] if p["flagged"] >= needed["n_flagged"])
    assert point["detection"] >= 0.5
    shown = run(model_file, new_cases, "--find", 0.5)
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.stdout.split())
    assert f"To find 50.0 % of the rare cases takes {needed['n_flagged']} reviews of these" in words
    assert "keep the escape rate" in words
    assert "The model's capacity of 10.0 %" in words
    without = json.loads(run(model_file, new_cases, "--json").stdout)
    assert without["needed"] is None


@pytest.mark.parametrize("share", ["0", "1.5", "-1", "nan"])
def test_a_share_that_is_none_is_refused_before_anything_is_read(model_file, share):
    """The message names the option."""
    result = run(model_file, "nowhere.csv", "--find", share)
    assert result.exit_code == 2
    assert "--find" in result.stderr


def test_a_detection_needs_labelled_cases(model_file, new_cases):
    """Reviews say what is missed, and not what another capacity would find."""
    result = run(model_file, "--reviews", new_cases, "--find", 0.5)
    assert result.exit_code == 2
    assert "--find needs labelled cases" in result.stderr
