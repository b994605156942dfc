"""Lists of invitations: as long as the slots allow when not everyone comes."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app
from shortlist.exceptions import TableError
from shortlist.tables import WorkColumns, select_rows
from shortlist.thresholds import count_invitations


@pytest.fixture(scope="module")
def table(new_cases, tmp_path_factory):
    """Return cases with a probability to come."""
    frame = pd.read_csv(new_cases)
    frame["reply"] = np.random.default_rng(1).uniform(0.2, 0.9, len(frame)).round(2)
    path = tmp_path_factory.mktemp("turnout") / "invited.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("count", [20, [18, 20, 25, 22] * 10], ids=["known", "past"])
@pytest.mark.parametrize("turnout", [0.6, (31, 52), "reply"], ids=str)
def test_a_list_invites_as_many_as_the_slots_allow(table_fit, table, count, turnout):
    """They are the highest of the ranking, and the note says what is promised."""
    listed = select_rows(
        table_fit.model, table, count=count, turnout=turnout, confidence=0.9, keep=["reply"]
    )
    every = select_rows(table_fit.model, table, count=800, keep=["reply"])
    chances = [float(each) for each in every.columns["reply"]]
    name = {float: "rate", tuple: "history"}.get(type(turnout), "chances")
    given = chances if turnout == "reply" else turnout
    assert len(listed) == count_invitations(count, **{name: given}, confidence=0.9) > 20
    assert listed.columns["case"] == every.columns["case"][: len(listed)]
    assert f"{len(listed)} cases are invited for" in listed.notes[-1]
    assert "probability of at most 10 %" in listed.notes[-1]


def test_those_who_come_find_a_slot(table_fit, table):
    """Drawn by the chances of the column, hardly ever more than ten of the list come."""
    listed = select_rows(table_fit.model, table, count=10, turnout="reply", keep=["reply"])
    chances = np.array([float(each) for each in listed.columns["reply"]])
    came = (np.random.default_rng(5).random((4_000, chances.size)) < chances).sum(axis=1)
    # Four standard errors of a share of 0.05 in 4,000 draws are 0.014.
    assert 0.01 < (came > 10).mean() <= 0.05 + 0.014
    assert came.clip(max=10).mean() > 1.3 * chances[:10].sum()


def test_past_numbers_of_slots_if_everyone_comes(table_fit, table):
    """The second smallest of 39 days, for 95 %."""
    past = [*range(12, 51)]
    assert len(select_rows(table_fit.model, table, count=past)) == 13


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turnout": "nothing"}, "no column 'nothing', which turnout="),
        ({"turnout": "amount"}, "must hold numbers from 0 to 1; got"),
        ({"turnout": "country"}, "'country'"),
        ({"turnout": 0.5, "probe": 0.1}, "probe=... cannot be combined with"),
        ({"turnout": 0.5, "work": WorkColumns(worth=0.1)}, "turnout=... cannot be combined"),
        ({"turnout": 0.5, "segment": "country", "count": {"ar": 3}}, "cannot be combined with"),
    ],
)
def test_what_does_not_go_together_is_refused(table_fit, table, options, message):
    """With the column, the row and what to do."""
    with pytest.raises(TableError, match=message):
        select_rows(table_fit.model, table, **{"count": 9, **options})


def test_the_command(model_file, table, tmp_path):
    """A history, a probability and a column as one types them; past numbers from a file."""

    def run(*arguments):
        asked = ["select", str(model_file), str(table), *map(str, arguments)]
        return CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "list.csv")])

    for turnout, invited in (("310/520", 67), ("0.6", 72), ("reply", None)):
        result = run("--count", 50, "--turnout", turnout)
        assert result.exit_code == 0, result.output
        n_listed = len(pd.read_csv(tmp_path / "list.csv"))
        assert n_listed == (invited or n_listed) > 50
        assert f"{n_listed} cases are invited for 50 slots." in result.stderr
    past = tmp_path / "slots.csv"
    past.write_text("slots\n" + "\n".join(map(str, range(12, 51))))
    assert "13 cases are invited for a number of slots like" in run("--count", past).stderr
    past.write_text("day,slots\nMon,50\nTue,49.5\n")
    for asked, message in (
        (("--count", past), "whole numbers of at least 0; got 49.5 in row 2"),
        (("--count", 9, "--confidence", 0.9), "belongs to --turnout"),
        (("--count", 9, "--turnout", "3/2"), "how many came and how many were invited"),
        (("--count", 9, "--turnout", "0"), "no one comes"),
    ):
        refused = run(*asked)
        assert refused.exit_code == 2
        assert message in " ".join(refused.stderr.split())
