"""Values, efforts and worth on the command line, from fit to stream and report."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist.cli import _stream
from shortlist.cli._app import app
from shortlist.datasets import make_fraud
from shortlist.tables import _text_files

WORK = ("--value", "amount", "--effort", "minutes", "--unit", "minutes")
MODELS = ("work.model", "value.model")
FIT = ("--target", "fraud", "--id", "case", "--learner", "logistic", "--folds", "1")


def run(*arguments):
    """Run a command and return what it printed."""
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "300"})


def done(*arguments):
    """Run a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(message, *arguments, code=2):
    """Run a command that must end with one line of error."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with tables and two models: one with a budget, one with values only."""
    folder = tmp_path_factory.mktemp("worth")
    X, y = make_fraud(n_samples=5_000, prevalence=0.06, random_state=0)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X).rename(columns=lambda name: f"x{name}")
    table = table.assign(fraud=y, case=[f"c{i}" for i in range(len(y))])
    table["amount"] = rng.lognormal(4, 1, size=len(y)).round(2)
    table["minutes"] = rng.integers(5, 61, size=len(y))
    table[:4_000].to_csv(folder / "old.csv", index=False)
    table[4_000:].to_csv(folder / "new.csv", index=False)
    budget = (*WORK, "--budget", 600, "--per", 1000)
    done("fit", folder / "old.csv", *FIT, *budget, "--drop", "amount", "-o", folder / "work.model")
    limit = ("--value", "amount", "--fraction", 0.03)
    done("fit", folder / "old.csv", *FIT, *limit, "-o", folder / "value.model")
    return folder


def new(folder):
    """Return the new cases."""
    return pd.read_csv(folder / "new.csv").set_index("case")


def test_flags_spend_the_budget_on_value(folder, tmp_path):
    """The model knows its columns; flags say what they take and what they should bring.

    About ten calibration cases set this threshold: what one of them spends says nothing, and the
    laws of efforts test the mean of many.
    """
    result = done("flag", folder / "work.model", folder / "new.csv", "-o", tmp_path / "flags.csv")
    flags = pd.read_csv(tmp_path / "flags.csv").set_index("case")
    listed = flags.index[flags.flagged == 1]
    spent = new(folder).loc[listed, "minutes"].sum()
    assert spent > 0
    assert f"They take {spent:,.6g} minutes; the capacity allows 600" in result.stderr
    assert "expected value" in result.stderr
    assert (flags.score[listed] > flags.score.drop(listed).quantile(0.9)).all()


def test_scores_in_money_are_written_without_exponents(folder, tmp_path):
    """A list of large sums, on the screen and on the page."""
    large = new(folder).assign(amount=lambda table: 1e4 * table["amount"])
    large.to_csv(tmp_path / "large.csv")
    model, table = folder / "value.model", tmp_path / "large.csv"
    done("report", model, table, "-o", tmp_path / "page.html")
    scores = re.findall(r'class="score">([^<]*)<', (tmp_path / "page.html").read_text())
    assert len(scores) == 10
    for text in (done("select", model, table, "--count", 9, "--no-reasons").stdout, *scores):
        assert not re.search(r"[0-9]e[+-][0-9]", text)


def test_values_and_efforts_keep_their_names(folder, tmp_path):
    """A table without the column that the model weighs is refused."""
    new(folder).rename(columns={"amount": "sum"}).to_csv(tmp_path / "other.csv")
    refused("no column 'amount'", "flag", folder / "work.model", tmp_path / "other.csv")


def test_too_much_work_prints_nothing(folder, monkeypatch):
    """Also if the first rows of a long table are within the budget."""
    monkeypatch.setattr(_text_files, "_BLOCK_BYTES", 1_000)
    monkeypatch.setattr(_text_files, "_BLOCKS_AT_ONCE", 1)
    result = run("flag", folder / "work.model", folder / "new.csv", "--budget", 50)
    assert result.exit_code == 4, result.output
    assert result.stdout == ""


def test_flags_stop_above_a_budget_and_below_a_worth(folder, tmp_path):
    """Too much work writes nothing; flags that are not worth it are left out, and counted."""
    asked = ("flag", folder / "work.model", folder / "new.csv", "-o", tmp_path / "flags.csv")
    refused("would take more than 50 minutes", *asked, "--budget", 50, code=4)
    assert not (tmp_path / "flags.csv").exists()
    result = done(*asked, "--worth", 3)
    flags = pd.read_csv(tmp_path / "flags.csv")
    assert flags.score[flags.flagged == 1].min() >= 3
    assert "do not reach --worth 3 are not flagged" in result.stderr
    assert "shortlist check" not in result.stderr


def test_a_least_worth_counts_everywhere(folder, tmp_path):
    """`evaluate` leaves out the same flags as `flag`, and other budgets spend no more."""
    model, table, least = folder / "work.model", folder / "new.csv", ("--worth", 2.5)
    done("flag", model, table, *least, "-o", tmp_path / "flags.csv")
    flags = pd.read_csv(tmp_path / "flags.csv").flagged.sum()
    plain = json.loads(done("evaluate", model, table, "--json").stdout)
    strict = json.loads(done("evaluate", model, table, *least, "--json").stdout)
    assert strict["flag_rate"] * 1_000 == pytest.approx(flags)
    assert strict["flag_rate"] < plain["flag_rate"]
    points = strict["money"]["points"]
    spent = [point["effort"] for point in points]
    assert spent[0] <= 150
    assert spent[-1] == spent[-2] < 600


def test_a_case_larger_than_all_of_the_fit_is_never_flagged(folder, tmp_path):
    """The promise does not cover it, and the notes say so."""
    table = new(folder)
    table["minutes"] = 61
    table.to_csv(tmp_path / "large.csv")
    result = done("flag", folder / "work.model", tmp_path / "large.csv", "-o", tmp_path / "f.csv")
    assert pd.read_csv(tmp_path / "f.csv").flagged.sum() == 0
    assert "take more than 60 minutes" in result.stderr
    assert "1,000 cases take more" in result.stderr


@pytest.mark.parametrize("model", ["work.model", "value.model"])
def test_money_is_measured(folder, tmp_path, model):
    """Evaluate and report show the value found, and what one more unit finds."""
    asked = (folder / model, folder / "new.csv")
    result = done("evaluate", *asked, "--json")
    money = json.loads(result.stdout)["money"]
    _, by_worth, by_chance = money["rules"]
    assert by_worth["value"] > by_chance["value"]
    assert by_worth["effort"] <= money["allowed"]
    rare = new(folder).query("fraud == 1")
    assert money["total_value"] == pytest.approx(rare.amount.sum())
    assert "Value found" in done("evaluate", *asked).stdout
    more = "One more hour" if model == "work.model" else "One more case"
    assert more in done("evaluate", *asked).stdout
    page = tmp_path / "page.html"
    assert more in done("report", *asked, "-o", page).stdout
    assert "Value found" in page.read_text()
    words = done("inspect", folder / model).stdout
    assert "amount" in words
    done("check", *asked)


def test_a_budget_is_judged_in_its_own_unit(folder, tmp_path):
    """Rules are over capacity by their minutes, not by their number, and M counts minutes too."""
    files = folder / "work.model", folder / "new.csv"
    report = done("report", *files, "-o", tmp_path / "r.html")
    summary = json.loads(done("report", *files, "-o", tmp_path / "r.html", "--json").stdout)
    own, listed = summary["comparison"]["rules"][:2]
    spent = summary["money"]["rules"][0]["effort"]
    assert own["over_capacity"] == (spent > 600) == (summary["promise"]["verdict"] != "kept")
    assert not listed["over_capacity"]
    assert "room for 600 minutes" in report.stdout
    assert "room for 600 minutes" in (tmp_path / "r.html").read_text()
    assert "room for 600 minutes" in done("evaluate", *files).stdout
    found = json.loads(done("evaluate", *files, "--json").stdout)["rules"][0]
    assert found["detection"] == own["detection"]
    is_rare = new(folder).fraud == 1
    done("flag", *files, "-o", tmp_path / "flags.csv")
    flags = pd.read_csv(tmp_path / "flags.csv").set_index("case").flagged
    minutes = new(folder).minutes
    within = min(1, 600 / minutes[flags == 1].sum())
    assert found["detection"] == pytest.approx(
        within * (is_rare & (flags == 1)).sum() / is_rare.sum()
    )


def test_another_budget_needs_no_new_fit(folder, tmp_path):
    """`recalibrate --budget` sets a threshold for another amount of work."""
    half = ("--budget", 300, "--per", 1000, "-o", tmp_path / "half.model")
    done("recalibrate", folder / "work.model", folder / "new.csv", *half)
    done("flag", tmp_path / "half.model", folder / "new.csv", "-o", tmp_path / "flags.csv")
    flags = pd.read_csv(tmp_path / "flags.csv").set_index("case").flagged == 1
    assert 0 < new(folder).minutes[flags].sum() < 450  # 300 on average over calibrations
    refused(
        "got --budget. ",
        "recalibrate",
        folder / "work.model",
        folder / "new.csv",
        *half[:2],
        *half[4:],
    )
    refused("without --effort", "recalibrate", folder / "value.model", folder / "new.csv", *half)


def test_a_model_without_values_can_be_measured_in_money(folder, tmp_path):
    """The options name columns that its rule does not weigh."""
    model = tmp_path / "plain.model"
    done("fit", folder / "old.csv", *FIT, "--fraction", 0.03, "-o", model)
    asked = (model, folder / "new.csv", *WORK, "--budget", 480)
    money = json.loads(done("evaluate", *asked, "--json").stdout)["money"]
    assert money["allowed"] == 480
    assert money["unit"] == "minutes"
    refused("needs --budget here", "evaluate", *asked[:2], "--effort", "minutes")
    refused("fitted without --effort", "flag", *asked[:2], "--budget", 480)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--effort", "minutes", "--budget", 480), "got --budget. "),
        (
            ("--budget", 480, "--per", 1000),
            "--budget 480 --per 1000 is a budget of work. Pass --effort",
        ),
        (("--effort", "minutes", "--fraction", 0.1), "--fraction 0.1 limits the number of flags"),
        (("--effort", "minutes", "--budget", -1, "--per", 9), "--budget -1 must not be negative"),
        (("--effort", "hours", "--budget", 1, "--per", 9), "which --effort names"),
        (("--value", "fraud", "--fraction", 0.1), "both name 'fraud'"),
        (("--value", "amount", "--fraction", 0.1, "--worth", -1), "--worth must be"),
        (("--value", "x1", "--fraction", 0.1), "must hold numbers of at least 0"),
        (
            ("--effort", "minutes,max=20", "--budget", 480, "--per", 1000),
            "--effort COLUMN,max=20 must be at least the effort of every case",
        ),
        (
            ("--effort", "minutes", "--budget", 9, "--per", 99, "--guarantee", "confident"),
            "needs --effort COLUMN,max=",
        ),
    ],
)
def test_a_fit_refuses_what_makes_no_sense(folder, tmp_path, options, message):
    """Each error is one line in the words of the command line."""
    table = pd.read_csv(folder / "old.csv").head(1_000)
    table["x1"] = -1.0
    table.to_csv(tmp_path / "old.csv", index=False)
    refused(message, "fit", tmp_path / "old.csv", *FIT, *options, "-o", tmp_path / "model")


@pytest.mark.parametrize(
    ("column", "bad", "message"),
    [
        ("minutes", 0, "greater than 0; got 0 in row 3"),
        ("minutes", None, "got a missing value in row 3"),
        ("amount", -4, "at least 0; got -4 in row 3"),
        ("amount", "inf", "must be a finite number"),
    ],
)
def test_bad_numbers_are_named(folder, tmp_path, column, bad, message):
    """A new table with a bad value or effort is refused, with its row and column."""
    table = new(folder).astype({column: object})
    table.iloc[2, table.columns.get_loc(column)] = bad
    table.to_csv(tmp_path / "bad.csv")
    refused(message, "flag", folder / "work.model", tmp_path / "bad.csv", "-o", tmp_path / "f.csv")


# --- stream ---


@pytest.fixture
def stream(folder, tmp_path, monkeypatch):
    """Return a function that streams lines through the command."""

    def stream(lines, *options, model="work.model"):
        (tmp_path / "lines").write_text("\n".join(lines) + "\n")
        descriptor = os.open(tmp_path / "lines", os.O_RDONLY)
        monkeypatch.setattr(_stream, "_source", lambda: descriptor)
        result = run("stream", folder / model, "--state", tmp_path / "state", *options)
        os.close(descriptor)
        return result

    return stream


def lines_of(folder, *, every=60):
    """Return new cases as JSON lines, one every so many seconds."""
    rows = pd.read_csv(folder / "new.csv").drop(columns="fraud").to_dict("records")
    return [json.dumps(row | {"at": every * i}) for i, row in enumerate(rows)]


def answers(result):
    """Return the answers of a stream."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_no_period_of_a_stream_exceeds_the_budget(folder, stream):
    """Not even if it is stopped and resumed in the middle of a day, with repeated lines."""
    lines, day = lines_of(folder, every=600), ("--budget", 120, "--period", "day")
    answered = []
    for start in range(0, 1_000, 250):
        answered += answers(stream(lines[max(start - 20, 0) : start + 250], *day))
    flagged = {each["id"]: each["at"] for each in answered if each["flag"] and "at" in each}
    flagged = {id: at for id, at in flagged.items() if at is not None}
    minutes = new(folder).loc[list(flagged), "minutes"].to_numpy()
    spent = np.bincount((np.array(list(flagged.values())) // 86_400).astype(int), minutes)
    assert spent.max() <= 120
    assert spent.sum() > 0.6 * 120 * len(spent)


def test_a_stream_keeps_the_work_per_case_of_its_model(folder, stream):
    """Without a period, no 1,000 lines take more work than the model allows for 1,000 cases."""
    flagged = [each["id"] for each in answers(stream(lines_of(folder))) if each["flag"]]
    assert 200 < new(folder).loc[flagged, "minutes"].sum() <= 600


def test_bad_efforts_and_cases_of_little_worth_use_no_slot(folder, stream):
    """They are answered each, and counted."""
    rows = [json.loads(line) for line in lines_of(folder)[:4]]
    rows[0]["minutes"], rows[1]["amount"] = 0, None
    result = stream([json.dumps(row) for row in rows], "--worth", 1e6)
    found = answers(result)
    assert "greater than 0; got 0" in found[0]["error"]
    assert "at least 0; got nothing" in found[1]["error"]
    assert [each["reason"] for each in found[2:]] == ["not worth a slot"] * 2
    assert "2 invalid, 2 not worth a slot" in result.stderr


def test_a_stream_refuses_budgets_that_its_model_cannot_keep(folder, stream):
    """One line each, before the first decision."""
    line = lines_of(folder)[:1]
    for options, message, model in (
        (("--budget", 480), "in one way", "work.model"),
        (("--budget", 480, "--period", "day", "--count", 5), "in one way", "work.model"),
        (("--budget", 480, "--period", "day"), "fitted without --effort", "value.model"),
    ):
        result = stream(line, *options, model=model)
        assert result.exit_code == 2, result.output
        assert message in " ".join(result.stderr.split())


def test_values_rank_a_stream_of_counts(folder, stream):
    """With --value alone, a number of flags goes to the largest expected values."""
    lines = lines_of(folder, every=60)
    found = answers(stream(lines, "--count", 20, "--period", "day", model="value.model"))
    flagged = [each for each in found if each["flag"]]
    assert 10 < len(flagged) <= 20
    assert np.mean([each["score"] for each in flagged]) > 10


def test_a_model_with_values_is_not_exported(folder, tmp_path):
    """A graph would compare probabilities with a threshold of value."""
    refused("weighs values", "export", folder / "value.model", "-o", tmp_path / "graph.onnx")
