"""Warnings about tables that do not fit the model card, and how seldom they are wrong."""

import re

import numpy as np
import pandas as pd
import pytest

from made_cases import make_cases
from shortlist.tables import check_table
from shortlist.tables.monitor import DriftMonitor
from shortlist.tables.schema import TableRows


def rows_of(model, frame, tmp_path):
    """Return a frame as the model reads it."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    with model.schema.open(tmp_path / "t.csv") as source:
        return model.schema.read(source)


def findings_on(model, frame, tmp_path, n_chunks=1):
    """Return what the monitor finds in a frame that comes in chunks."""
    rows = rows_of(model, frame, tmp_path)
    monitor = DriftMonitor(model)
    for places in np.array_split(np.arange(len(rows.X)), n_chunks):
        part = rows.take(places)
        monitor.add(part)
        monitor.add_flags(model.classifier.flag(part.X, ids=part.ids))
    return monitor.findings()


def test_tables_of_the_same_kind_give_no_warning(table_fit, tmp_path):
    """Of any size."""
    for seed, n in enumerate([1, 3, 10, 30, 100, 300, 300, 1_000, 1_000, 3_000], 1):
        assert findings_on(table_fit.model, make_cases(n, seed=seed), tmp_path) == []


@pytest.mark.parametrize("factor", [1_000, 100, 10, 1 / 10, 1 / 100])
def test_another_unit_is_named_with_its_factor(table_fit, tmp_path, factor):
    """In one piece and in chunks."""
    frame = make_cases(600, seed=5)
    frame["amount"] *= factor
    for n_chunks in (1, 7):
        finding = findings_on(table_fit.model, frame, tmp_path, n_chunks)[0]
        assert (finding.kind, finding.column) == ("jump", "amount")
        said = re.search(r"the unit .*median is ([0-9.,]+) times", finding.message)
        assert 0.6 < float(said[1].replace(",", "")) / factor < 1.6


def test_growth_is_no_unit(table_fit, tmp_path):
    """Amounts that have doubled are drift, which check names."""
    frame = make_cases(600, seed=5)
    frame["amount"] *= 2
    assert {f.kind for f in findings_on(table_fit.model, frame, tmp_path)} <= {"many flags"}
    frame.to_csv(tmp_path / "t.csv", index=False)
    checked = check_table(table_fit.model, tmp_path / "t.csv")
    assert checked.has_drifted
    assert checked.columns[0]["name"] == "amount"


@pytest.mark.parametrize("n_chunks", [1, 9])
def test_a_value_that_stands_for_a_missing_one_is_counted(table_fit, tmp_path, n_chunks):
    """In one piece and in chunks, on both sides of the others."""
    frame = make_cases(500, seed=3)
    frame.loc[::100, "amount"] = -999
    frame.loc[1::100, "opened"] = "9999-12-31"
    found = findings_on(table_fit.model, frame, tmp_path, n_chunks)
    assert [(f.kind, f.column) for f in found] == [("stand-in", "amount"), ("stand-in", "opened")]
    assert "is -999 in 5 of 500 rows" in found[0].message
    assert "is 9999-12-31 in 5 of 500 rows" in found[1].message


def test_values_that_the_fit_had_and_later_days_are_no_stand_ins(table_fit, tmp_path):
    """Nor is a single extreme value."""
    model, frame = table_fit.model, make_cases(500, seed=3)
    frame["opened"] = np.where(frame.index % 2, "2025-03-01", "2025-09-01")
    _, highest = model.card.profiles[0].ends
    for places, amount in ((slice(7, 7), 99_999), (slice(0, 9), highest)):
        changed = frame.copy()
        changed.loc[places, "amount"] = amount
        assert "stand-in" not in {f.kind for f in findings_on(model, changed, tmp_path)}


def test_chunks_do_not_change_the_findings(table_fit, tmp_path):
    """The counts are added up."""
    frame = make_cases(500, seed=3).assign(country="AR", vip="true", amount=np.nan)
    whole, parts = (findings_on(table_fit.model, frame, tmp_path, n) for n in (1, 9))
    assert whole == parts
    assert [f.kind for f in whole[:3]] == ["empty", "constant", "constant"]


def test_a_few_unseen_values_are_not_serious(table_fit, tmp_path):
    """They are noted by name."""
    frame = make_cases(500, seed=3)
    frame.loc[4, "country"] = "mx"
    (finding,) = findings_on(table_fit.model, frame, tmp_path)
    assert (finding.kind, finding.is_serious) == ("unseen", False)
    assert "'mx'" in finding.message


def test_nothing_was_watched(table_fit):
    """Nothing is said."""
    assert DriftMonitor(table_fit.model).findings() == []


def test_rows_in_memory(table_fit):
    """A monitor takes rows in the form of the model."""
    X = pd.DataFrame({"amount": [1.0], "country": ["ar"], "opened": [19_800.0], "vip": [0.0]})
    monitor = DriftMonitor(table_fit.model)
    monitor.add(TableRows(X, np.array(["c1"], dtype=object)))
    assert (monitor.n_items, monitor.findings()) == (1, [])
