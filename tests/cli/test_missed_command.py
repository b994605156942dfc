"""`shortlist evaluate --reviews`: estimates from reviews, and errors that name the row."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist import Capacity, select
from shortlist.cli import _stream
from shortlist.cli._app import app
from shortlist.datasets import make_fraud
from shortlist.tables import fit_table, save_model


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Return a model file, a table of reviews and the number of rare cases that were missed."""
    folder = tmp_path_factory.mktemp("missed")
    X, y = make_fraud(4_000, prevalence=0.05, random_state=0)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(fraud=y)
    table.to_csv(folder / "train.csv", index=False)
    result = fit_table(
        folder / "train.csv", target="fraud", capacity=Capacity.fraction(0.1), learner="logistic"
    )
    save_model(result.model, folder / "model")
    rng = np.random.default_rng(1)
    is_rare = rng.random(4_000) < 0.1
    picked = select(
        rng.normal(size=4_000) + is_rare, Capacity.count(800), probe=0.5, return_details=True
    )
    table = pd.DataFrame(
        {
            "id": np.arange(4_000),
            "selected_by": picked.reasons,
            "inclusion": picked.probabilities,
            "fraud": np.where(picked.flagged, is_rare.astype(int).astype(str), ""),
            "week": np.where(np.arange(4_000) < 2_000, "w1", "w2"),
        }
    )
    return folder, table, int(is_rare[~picked.flagged].sum())


def run(*arguments):
    """Run the command, and return its result."""
    model, reviews, *options = map(str, arguments)
    return CliRunner().invoke(app, ["evaluate", model, "--reviews", reviews, *options])


def test_missed_cases_are_estimated(reviews):
    """The interval covers the truth, and the sentence says it."""
    folder, table, truth = reviews
    table.to_csv(folder / "reviews.csv", index=False)
    result = run(folder / "model", folder / "reviews.csv", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 6, result.output  # a poor ranking, far below the card
    assert answer["has_fallen"]
    estimate = answer["estimate"]
    assert estimate["missed_low"] <= truth <= estimate["missed_high"]
    shown = run(folder / "model", folder / "reviews.csv", "--period", "week", "--id", "id")
    assert "Alarm: the model card says" in shown.stdout
    assert "w2" in shown.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inclusion": ""}, "probes without a probability"),
        ({"selected_by": "below threshold"}, "have an outcome but were never selected"),
        ({"id": 7}, "comes 4000 times"),
        ({"fraud": "pending"}, "such as 'pending'"),
        ({"selected_by": "seen before"}, "Keep the first answer"),
    ],
)
def test_bad_reviews_are_refused(reviews, change, words):
    """Errors name what is wrong and the rows, in one line."""
    folder, table, _ = reviews
    table.assign(**change).to_csv(folder / "bad.csv", index=False)
    result = run(folder / "model", folder / "bad.csv", "--id", "id")
    assert result.exit_code == 2
    assert words in result.output
    assert "row" in result.output


def test_a_missing_column_is_named(reviews):
    """A table without reasons is refused, with the name of the column."""
    folder, table, _ = reviews
    table.drop(columns="selected_by").to_csv(folder / "bad.csv", index=False)
    result = run(folder / "model", folder / "bad.csv")
    assert result.exit_code == 2
    assert "selected_by" in result.output


def test_a_list_with_probes_can_be_reviewed(reviews):
    """`select --probe` writes what reviews need, and lists as many cases as asked for."""
    folder, _, _ = reviews
    arguments = ["select", folder / "model", folder / "train.csv", "--count", "100"]
    options = ["--probe", "0.2", "--keep", "fraud", "-o", folder / "list.csv"]
    listed = CliRunner().invoke(app, [str(each) for each in (*arguments, *options)])
    assert listed.exit_code == 0, listed.output
    table = pd.read_csv(folder / "list.csv")
    assert len(table) == 100
    assert (table["selected_by"] == "probe").sum() == 20
    assert table.loc[table["selected_by"] == "probe", "inclusion"].iloc[0] == pytest.approx(
        20 / 3_920
    )
    result = run(folder / "model", folder / "list.csv")
    assert result.exit_code in (0, 6), result.output
    assert "of 20 probes were rare" in result.output


def test_a_stream_with_probes_can_be_reviewed(reviews, tmp_path, monkeypatch):
    """What `stream --probe` answers is a table of reviews once the labels are filled in."""
    folder, _, _ = reviews
    table = pd.read_csv(folder / "train.csv").head(2_000)
    rows = table.drop(columns="fraud").to_dict("records")
    lines = [json.dumps(row | {"id": f"c{i}", "at": 60 * i}) for i, row in enumerate(rows)]
    (tmp_path / "lines").write_text("\n".join(lines))
    with (tmp_path / "lines").open() as source:
        monkeypatch.setattr(_stream, "_source", source.fileno)
        options = ["--count", "100", "--period", "12h", "--probe", "0.5"]
        monkeypatch.setenv("SHORTLIST_PROBE_KEY", "k")
        arguments = ["stream", folder / "model", "--state", tmp_path / "state", "--id", "id"]
        result = CliRunner().invoke(app, [str(each) for each in (*arguments, *options)])
    assert result.exit_code == 0, result.output
    answers = pd.DataFrame(map(json.loads, result.stdout.splitlines()))
    reviewed = answers.assign(fraud=table["fraud"].where(answers["flag"]).astype("Int64"))
    reviewed.to_csv(tmp_path / "reviews.csv", index=False)
    shown = run(folder / "model", tmp_path / "reviews.csv", "--id", "id", "--json")
    assert shown.exit_code in (0, 6), shown.output
    estimate = json.loads(shown.stdout)["estimate"]
    assert estimate["n_probes"] == answers["selected_by"].str.startswith("probe").sum()
    truth = int(table["fraud"].sum() - reviewed["fraud"].sum())
    assert estimate["missed_low"] <= truth <= estimate["missed_high"]


def test_a_challenger_is_judged_on_the_same_probes(reviews, tmp_path):
    """The model itself, as a challenger of random lists, would find cases below their cut."""
    folder, _, _ = reviews
    table = pd.read_csv(folder / "train.csv")
    rng = np.random.default_rng(3)
    reason = rng.choice(["score", "probe", "not selected"], len(table), p=[0.1, 0.2, 0.7])
    reviewed = table.assign(
        fraud=table["fraud"].where(reason != "not selected").astype("Int64"),
        selected_by=reason,
        inclusion=np.where(reason == "score", 1.0, 0.2 / 0.9),
    )
    reviewed.to_csv(tmp_path / "reviews.csv", index=False)
    arguments = folder / "model", tmp_path / "reviews.csv", "--challenger", folder / "model"
    shown = run(*arguments)
    assert "The challenger would have selected" in shown.output
    judged = json.loads(run(*arguments, "--json").stdout)["estimate"]["challenger"]
    assert judged["gained_low"] < judged["gained"] < judged["gained_high"]
    missing = reviewed.drop(columns="x0")
    missing.to_csv(tmp_path / "reviews.csv", index=False)
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "x0" in refused.output


def test_missed_cases_have_a_value(reviews):
    """--value names the column; its numbers may be written as people write them."""
    folder, table, _ = reviews
    amounts = [f"{1 + i % 7},50 €" for i in range(len(table))]
    table.assign(amount=amounts).to_csv(folder / "worth.csv", index=False, sep=";")
    options = (folder / "model", folder / "worth.csv", "--value", "amount")
    answer = json.loads(run(*options, "--json").stdout)["estimate"]
    value = answer["value"]
    assert value["max_value"] == 7.5
    assert value["missed_low"] <= value["missed"] <= value["missed_high"]
    assert value["missed"] == pytest.approx(4.5 * answer["missed"], rel=0.2)
    assert "In value:" in run(*options).stdout
    table.to_csv(folder / "plain.csv", index=False)
    plain = json.loads(run(folder / "model", folder / "plain.csv", "--json").stdout)
    assert plain["estimate"]["value"] is None


def test_values_must_be_numbers(reviews):
    """The message names the column."""
    folder, table, _ = reviews
    table.assign(amount="much").to_csv(folder / "words.csv", index=False)
    result = run(folder / "model", folder / "words.csv", "--value", "amount")
    assert result.exit_code == 2
    assert "'amount' must hold numbers; it holds 'much'" in " ".join(result.stderr.split())
