"""`shortlist evaluate --find` and `--segment`: what a detection takes, and who is found."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app


def run(*arguments):
    """Run `shortlist evaluate`."""
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_a_detection_is_planned(model_file, new_cases):
    """The sentence has the reviews, both ends and the escape rate; JSON has the numbers."""
    said = json.loads(run(model_file, new_cases, "--find", 0.5, "--json").stdout)
    needed = said["needed"]
    assert needed["low"] <= needed["fraction"] <= needed["high"]
    point = next(p for p in said["curve"] if p["n_flagged"] >= needed["n_flagged"])
    assert point["detection"] >= 0.5
    shown = run(model_file, new_cases, "--find", 0.5)
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.stdout.split())
    assert f"To find 50 % of the rare cases takes {needed['n_flagged']} reviews of these" in words
    assert "keep the escape rate" in words
    assert "The model's capacity of 10.0 %" in words
    without = json.loads(run(model_file, new_cases, "--json").stdout)
    assert without["needed"] is None


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5, 0.6])
def test_reviews_that_keep_a_detection_are_not_rounded_down(model_file, new_cases, share):
    """A share that is promised must be as large as it is shown."""
    high = json.loads(run(model_file, new_cases, "--find", share, "--json").stdout)["needed"][
        "high"
    ]
    words = " ".join(run(model_file, new_cases, "--find", share).stdout.split())
    shown = float(words.split("Reviews of ")[1].split(" %")[0])
    assert high <= shown / 100 < high + 0.0001


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


def test_groups_share_one_threshold(model_file, new_cases, tmp_path):
    """Their numbers add up to those of the rule; a floor says what it takes."""
    table = pd.read_csv(new_cases)
    table["region"] = ["north", "south", "west", "west"] * (len(table) // 4)
    table.to_csv(tmp_path / "regions.csv", index=False)
    options = (model_file, tmp_path / "regions.csv", "--segment", "region", "--find", 0.5)
    said = json.loads(run(*options, "--json").stdout)
    assert [group["group"] for group in said["groups"]] == ["west", "north", "south"]
    for name in ("flagged", "found"):
        assert sum(group[name] for group in said["groups"]) == said["rules"][0][name]
    assert sum(group["list_share"] for group in said["groups"]) == pytest.approx(1)
    assert said["floor"]["allowed"] == 80
    shown = run(*options)
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.stdout.split())
    assert "Who is found by the one threshold" in words
    assert "in every group takes" in words
    assert "can be unlawful" in words
    assert json.loads(run(model_file, new_cases, "--json").stdout)["groups"] == []


def test_a_column_of_groups_must_be_there(model_file, new_cases):
    """The message names the option and the columns."""
    result = run(model_file, new_cases, "--segment", "nowhere")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
