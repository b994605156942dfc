"""The loop: what reviewers found becomes a table, and the table next month's model."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from made_cases import make_cases
from service.helpers import serving
from shortlist.cli._app import app
from shortlist.tables import DatabaseTable, load_model, save_model
from shortlist.tables.fit import OF_LISTS

QUEUE = "/v1/queues/default"


def run(*arguments):
    """Run a command."""
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def month(tmp_path_factory, table_fit):
    """Return the database of a service with reviews, the cases that came, and the outcomes."""
    folder = tmp_path_factory.mktemp("month")
    model_file = folder / "fraud.model"
    save_model(table_fit.model, model_file)
    cases, database, labels = make_cases(1_500, seed=11), folder / "service.db", {}
    sent = cases.drop(columns="fraud").astype(object).where(cases.notna(), None)
    probes = {"probe": 0.5, "probe_key": "k"}
    with serving(database, model_file, count=120, made=probes) as client:
        for row, fraud in zip(sent.to_dict("records"), cases["fraud"], strict=True):
            answer = client.post(f"{QUEUE}/decisions", json=row).json()
            if answer["flag"] and len(labels) < 90:
                outcome = {"id": row["case"], "rare": fraud == "yes", "reviewer": "ann"}
                client.post(f"{QUEUE}/outcomes", json={**outcome, "rare": not outcome["rare"]})
                client.post(f"{QUEUE}/outcomes", json=outcome)  # the latest counts
                labels[row["case"]] = fraud
    return database, cases, labels


def test_the_table_has_every_flag_with_its_latest_outcome(month, tmp_path):
    """And the columns as they were sent, how each was selected, and by which model."""
    database, cases, labels = month
    result = run("serve", "export", database, "-o", tmp_path / "reviewed.csv")
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "reviewed.csv").set_index("case")
    assert f"{len(table)} cases, {len(labels)} of them with an outcome" in result.stdout
    without_slot = table["selected_by"] == "probe without a slot"
    assert len(labels) < (~without_slot).sum() <= 120
    assert table[without_slot]["fraud"].isna().all()
    table = table[~without_slot]
    assert table["fraud"].dropna().to_dict() == labels
    sent = cases.set_index("case").loc[table.index]
    assert np.allclose(table["amount"], sent["amount"], equal_nan=True)
    is_probe = table["selected_by"] == "probe"
    assert (table.loc[~is_probe, "inclusion"] == 1).all()
    assert 0 < table.loc[is_probe, "inclusion"].max() < 1
    assert table["decided_by"].nunique() == 1
    assert set(table) - set(sent) <= {*OF_LISTS}


def test_columns_with_the_names_of_ours_are_kept_beside_them(tmp_path, model_file):
    """What was sent as `score` is not lost, and the command says what it is called."""
    database = tmp_path / "service.db"
    with serving(database, model_file) as client:
        case = {"id": "a", "amount": 900.0, "country": "US", "score": 700, "inclusion": "by phone"}
        answer = client.post(f"{QUEUE}/decisions", json=case).json()
        assert answer["flag"]
    result = run("serve", "export", database, "-o", tmp_path / "reviewed.csv")
    assert result.exit_code == 0, result.output
    assert "called score_in_table, inclusion_in_table here" in " ".join(result.stderr.split())
    [row] = pd.read_csv(tmp_path / "reviewed.csv").to_dict("records")
    assert (row["score_in_table"], row["inclusion_in_table"]) == (700, "by phone")
    assert row["score"] == pytest.approx(answer["score"], rel=1e-14)  # as pandas reads its digits
    assert row["inclusion"] == 1.0


def test_reviews_become_the_next_model(month, tmp_path):
    """Which decides within the capacity, and says what it cannot tell."""
    database, cases, _ = month
    model_file = database.with_name("fraud.model")
    reviewed, recent = tmp_path / "reviewed.csv", tmp_path / "recent.csv"
    run("serve", "export", database, "-o", reviewed)
    make_cases(1_000, seed=12).drop(columns="fraud").to_csv(recent, index=False)
    missed = run("evaluate", model_file, "--reviews", reviewed)
    assert missed.exit_code in (0, 6), missed.output
    fit = ["fit", reviewed, "--target", "fraud", "--id", "case", "--fraction", "0.06", "--size"]
    fit += ["quick", "--labelled-only", "--weight", "inclusion", "--unlabelled", recent]
    result = run(*fit, "-o", tmp_path / "next.model")
    assert result.exit_code == 0, result.output
    assert "is of reviewed cases" in result.stderr
    model = load_model(tmp_path / "next.model")
    assert {feature.name for feature in model.schema.features} == set(cases) - {"case", "fraud"}
    flags = run("flag", tmp_path / "next.model", recent, "--json")
    assert 0 < sum('"flagged": 1' in line for line in flags.stdout.splitlines()) <= 60


def test_other_formats_queues_and_what_is_refused(month, tmp_path):
    """A table of a database as well; an unknown queue and a missing file are errors."""
    database = month[0]
    address = f"sqlite:///{tmp_path / 'training.db'}#reviewed"
    assert run("serve", "export", database, "-o", address).exit_code == 0
    assert DatabaseTable(address).file.exists()
    for options, words in (
        (("--queue", "none", "-o", tmp_path / "a.csv"), "'none' is not a queue"),
        ((), "--out"),
        (("-o", tmp_path / "a.doc"), "cannot be written with the extension"),
    ):
        result = run("serve", "export", database, *options)
        assert (result.exit_code, words in result.output) == (2, True), result.output
