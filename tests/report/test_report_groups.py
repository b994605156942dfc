"""Results by segment: counted by hand, and those of `evaluate`."""

import numpy as np
import pandas as pd
import pytest

from shortlist.exceptions import TableError
from shortlist.report import make_report, render_report
from shortlist.report._found import read_cases
from shortlist.tables import evaluate_table


@pytest.fixture(scope="module")
def frame(new_cases):
    """Return the new cases with a team of each."""
    frame = pd.read_csv(new_cases)
    frame["team"] = np.random.default_rng(0).choice(["north", "south", None], len(frame))
    return frame


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    """Return these cases in a file."""
    path = tmp_path_factory.mktemp("groups") / "teams.csv"
    frame.to_csv(path, index=False)
    return path


def test_segments_add_up(table_fit, frame, path):
    """Each case is counted in one segment, with the flags and labels that it has."""
    summary = make_report(table_fit.model, path, segment="team")
    cases = read_cases(table_fit.model, path)
    teams = frame["team"].fillna("(empty)").to_numpy()
    groups = summary["groups"]["groups"]
    assert {group["group"] for group in groups} == {"north", "south", "(empty)"}
    for group in groups:
        own = teams == group["group"]
        assert group["n_items"] == own.sum()
        assert group["flagged"] == cases.flagged[own].sum()
        assert group["found"] == (cases.flagged & cases.rare)[own].sum()
        assert group["detection"] == group["found"] / group["n_rare"]
        low, high = group["detection_interval"]
        assert low <= group["detection"] <= high
    assert sum(group["found"] for group in groups) == summary["comparison"]["rules"][0]["found"]


def test_segments_are_those_of_evaluate(table_fit, new_cases):
    """One number has one interval, wherever it is shown."""
    ours = make_report(table_fit.model, new_cases, segment="country")["groups"]["groups"]
    theirs = evaluate_table(table_fit.model, new_cases, segment="country").groups
    for group, other in zip(ours, theirs, strict=True):
        assert (group["n_items"], group["found"]) == (other.n_items, other.found)
        assert group["detection_interval"] == [*other.detection_interval]
        assert group["precision_interval"] == [*other.precision_interval]


def test_many_segments_become_twenty_and_the_others(table_fit, frame, tmp_path):
    """The largest ones are shown; a column may also be one that the model learns from."""
    frame.assign(branch=np.arange(len(frame)) // 5).to_csv(tmp_path / "many.csv", index=False)
    grouped = make_report(table_fit.model, tmp_path / "many.csv", segment="branch")["groups"]
    assert grouped["n_groups"] == 160
    assert len(grouped["groups"]) == 21
    assert grouped["groups"][-1]["group"] == "(all others)"
    assert sum(group["n_items"] for group in grouped["groups"]) == len(frame)
    by_vip = make_report(table_fit.model, tmp_path / "many.csv", segment="vip")["groups"]
    assert {group["group"] for group in by_vip["groups"]} == {"True", "False"}


def test_columns_that_do_not_fit_are_refused(table_fit, path):
    """With the option, the column and what to write instead."""
    with pytest.raises(TableError, match=r"no column 'nothing', which segment=\.\.\. names"):
        make_report(table_fit.model, path, segment="nothing")
    for column in ("case", "amount"):
        with pytest.raises(
            TableError, match=f"segment=... names '{column}', which has .* different"
        ):
            make_report(table_fit.model, path, segment=column)


def test_a_group_without_rare_cases_or_flags_has_dashes(table_fit, frame, tmp_path):
    """Nothing can be said about what it finds."""
    small = frame.assign(team=np.where(frame.index < 3, "tiny", "others"), fraud=frame["fraud"])
    small.loc[small.index < 3, ["fraud", "amount"]] = ["no", 1.0]
    small.to_csv(tmp_path / "tiny.csv", index=False)
    summary = make_report(table_fit.model, tmp_path / "tiny.csv", segment="team")
    tiny = summary["groups"]["groups"][1]
    assert (tiny["group"], tiny["n_rare"], tiny["flagged"]) == ("tiny", 0, 0)
    assert tiny["detection"] is tiny["precision"] is None
    page = render_report(summary)
    assert "none to find" in page
    assert "nothing flagged" in page
