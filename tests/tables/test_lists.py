"""Lists: exactly so many, each id once, quotas kept, and safe in spreadsheets."""

import io
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_cases import make_cases
from shortlist import Capacity, Worth
from shortlist._core.formatting import number
from shortlist.exceptions import TableError, TooManyFlagsError
from shortlist.tables import WorkColumns, flag_rows, select_rows
from shortlist.tables.reasons import reasons_for
from shortlist.tables.write import TableWriter, spreadsheet_safe


@pytest.mark.parametrize("count", [0, 1, 7, 80, 799, 800])
def test_a_list_is_what_the_classifier_selects(table_fit, new_cases, count):
    """Ties included."""
    model = table_fit.model
    with model.schema.open(new_cases) as source:
        rows = model.schema.read(source)
    selected = model.classifier.select(rows.X, Capacity.count(count), ids=rows.ids)
    listed = select_rows(model, new_cases, count=count)
    assert {row["row"] - 1 for row in listed.rows} == set(np.flatnonzero(selected))
    assert [row["score"] for row in listed.rows] == sorted(
        (row["score"] for row in listed.rows), reverse=True
    )


def test_quotas_take_the_best_of_each_segment(table_fit, new_cases):
    """No segment gets more than its own, and the ranks are those of one list."""
    listed = select_rows(
        table_fit.model, new_cases, count={"ar": 4, "cl": 6}, segment="country", keep=["country"]
    )
    everyone = select_rows(table_fit.model, new_cases, count=800, keep=["country"])
    for name, most in {"ar": 4, "cl": 6}.items():
        best = [row["case"] for row in everyone.rows if row["country"] == name][:most]
        assert [row["case"] for row in listed.rows if row["country"] == name] == best
    assert [row["rank"] for row in listed.rows] == list(range(1, 11))


def test_a_repeated_id_takes_one_place(table_fit, tmp_path):
    """With its highest score."""
    frame = make_cases(50, seed=2)
    both = pd.concat([frame, frame.assign(amount=500.0)])
    both.to_csv(tmp_path / "t.csv", index=False)
    listed = select_rows(table_fit.model, tmp_path / "t.csv", count=50)
    assert len({row["case"] for row in listed.rows}) == len(listed) == 50
    assert all(row["row"] > 50 for row in listed.rows)
    assert "50 rows repeat an id" in listed.notes[0]


def test_flags_and_lists_have_the_same_id_name(table_fit, new_cases):
    """That of the table."""
    listed = select_rows(table_fit.model, new_cases, count=2)
    assert "case" in listed.types
    file = io.BytesIO()
    flag_rows(table_fit.model, new_cases, file, format="jsonl", keep=["all"])
    first = json.loads(file.getvalue().splitlines()[0])
    assert list(first)[:3] == ["case", "score", "flagged"]
    assert set(first) >= set(pd.read_csv(new_cases).columns)


def test_a_limit_stops_before_anything_is_written_of_the_chunk(table_fit, new_cases):
    """And the message says what to do."""
    file = io.BytesIO()
    with pytest.raises(TooManyFlagsError, match="shortlist check"):
        flag_rows(table_fit.model, new_cases, file, at_most=5)
    assert file.getvalue() == b""


def test_excluded_rows_do_not_change_the_others(table_fit, new_cases, tmp_path):
    """Each row is decided on its own."""
    frame = pd.read_csv(new_cases)
    frame[["case"]].head(300).to_csv(tmp_path / "done.csv", index=False)
    files = [io.BytesIO(), io.BytesIO()]
    flag_rows(table_fit.model, new_cases, files[0])
    summary = flag_rows(table_fit.model, new_cases, files[1], exclude=tmp_path / "done.csv")
    every, rest = (file.getvalue().splitlines() for file in files)
    assert rest[1:] == every[301:]
    assert summary.n_items == 500


def test_quotas_and_segments_belong_together(table_fit, new_cases):
    """One without the other is an error."""
    with pytest.raises(TableError, match="segment="):
        select_rows(table_fit.model, new_cases, count={"ar": 1})
    with pytest.raises(TableError, match="segment="):
        select_rows(table_fit.model, new_cases, count=3, segment="country")


@given(st.text(max_size=12))
def test_no_cell_begins_like_a_formula(text):
    """Unless it is a number; and the text can be had back."""
    safe = spreadsheet_safe(text)
    assert safe.removeprefix("'") == text or safe == text
    if safe[:1] in "=+-@\t\r\n" and safe:
        assert float(safe.replace(",", ".")) is not None


def test_headings_are_escaped_too():
    """A column name is a cell."""
    file = io.BytesIO()
    with TableWriter(file, "csv", {"=a": "string", "b": "int64"}) as listed:
        listed.write({"=a": ["@x", "-1", None], "b": [-1, 2, 3]})
    lines = file.getvalue().decode().splitlines()
    assert lines[0] == '"\'=a","b"'
    assert lines[1] == '"\'@x",-1'
    assert listed.n_escaped == 1


@pytest.mark.parametrize("precision", [0.1, 0.5, 0.9])
def test_a_precise_list_is_what_the_classifier_selects(
    table_fit, new_cases, precision, monkeypatch
):
    """Also where only the first rows of a long table are held; the note counts what is left."""
    model, new = table_fit.model, new_cases
    with model.schema.open(new) as source:
        rows = model.schema.read(source)
    worth = Worth.precision(precision)
    selected = model.classifier.select(rows.X, Capacity.count(60), ids=rows.ids, worth=worth)
    monkeypatch.setattr("shortlist.tables._places._SPARE", 0)
    listed = select_rows(model, new, count=60, precision=precision)
    assert {row["row"] - 1 for row in listed.rows} == set(np.flatnonzero(selected))
    assert [f"{len(listed):,} of 60 places" in note for note in listed.notes] == [True] * (
        len(listed) < 60
    )


def test_fewer_are_invited_if_a_longer_list_is_not_precise(table_fit, new_cases):
    """The note counts those on the list, and not those for whom there would be slots."""
    listed = select_rows(table_fit.model, new_cases, count=200, turnout=0.5, precision=0.2)
    assert 0 < len(listed) < 200
    assert f"{len(listed)} cases are invited for 200 slots" in listed.notes[-1]
    assert f"The list has {len(listed)} of" in listed.notes[-2]


def test_a_promised_precision_counts_every_row_of_an_id(table_fit, new_cases, tmp_path):
    """Each row is a test; with four times as many, as many cases need stronger evidence."""
    model, new = table_fit.model, new_cases
    once = select_rows(model, new, count=200, precision=0.2)
    pd.concat([pd.read_csv(new)] * 4).to_csv(tmp_path / "repeated.csv", index=False)
    often = select_rows(model, tmp_path / "repeated.csv", count=200, precision=0.2)
    assert len(often) < len(once)


def test_probes_of_a_list_with_values_are_drawn_by_expected_loss(table_fit, new_cases, tmp_path):
    """The list has as many places as before, and each probe stands for its part below the cut."""
    cases = pd.read_csv(new_cases)
    cases["amount"] = cases["amount"].fillna(5)
    cases.to_csv(filled := tmp_path / "filled.csv", index=False)
    options = {"count": 60, "work": WorkColumns(value="amount")}
    plain = select_rows(table_fit.model, filled, **options)
    drawn = select_rows(table_fit.model, filled, probe=0.2, **options)
    by, inclusion = (np.array(drawn.columns[name]) for name in ("selected_by", "inclusion"))
    assert len(drawn) == len(plain) == 60
    assert (by == "probe").sum() == 12
    assert drawn.columns["case"][:48] == plain.columns["case"][:48]
    assert np.unique(inclusion[by == "probe"]).size == 4
    n_below = cases["case"].nunique() - 48
    assert (1 / inclusion[by == "probe"]).sum() == pytest.approx(n_below)
    listed = cases["amount"].to_numpy()[np.array(drawn.columns["row"]) - 1]
    worth = number(float(np.sum(listed * drawn.columns["probability"])))
    said = [note for note in drawn.notes if "expected value" in note]
    assert f"its expected value is {worth} (the best list has at most" in said[0]
    work = WorkColumns(effort="amount", budget=480)
    with pytest.raises(TableError, match=r"probe=\.\.\. cannot be combined"):
        select_rows(table_fit.model, filled, probe=0.2, work=work)


def test_what_a_precise_list_cannot_have(table_fit, new_cases):
    """Probes, values, and more than everything."""
    model, new = table_fit.model, new_cases
    with pytest.raises(ValueError, match=r"probe=\.\.\. cannot be combined"):
        select_rows(model, new, count=5, precision=0.5, probe=0.5)
    with pytest.raises(TableError, match=r"precision=\.\.\. cannot be combined with value"):
        select_rows(model, new, count=5, precision=0.5, work=WorkColumns(value="amount"))
    with pytest.raises(ValueError, match="at most 1"):
        select_rows(model, new, count=5, precision=1.5)


def test_too_few_common_rows_are_named(table_fit, new_cases):
    """The note says how many any list needs."""
    model, new = table_fit.model, new_cases
    listed = select_rows(model, new, count=1, precision=0.5)
    assert len(listed) == 0
    assert "Any list needs 1,599 of these" in listed.notes[-1]


def test_reasons_are_the_falls_of_the_score(table_fit, new_cases, monkeypatch):
    """However many changes are scored together; without reasons, the list is the same."""
    model = table_fit.model
    with model.schema.open(new_cases) as source:
        X = model.schema.read(source).X.head(30)
    scores = model.classifier.score_samples(X)
    falls = {
        feature.name: scores
        - model.classifier.score_samples(X.assign(**{feature.name: model.reference[feature.name]}))
        for feature in model.schema.features
    }
    monkeypatch.setattr("shortlist.tables.reasons._AT_ONCE", 7)
    found = reasons_for(model, X)
    for row, reasons in enumerate(found):
        order = sorted(falls, key=lambda name: -falls[name][row])
        largest = [name for name in order if falls[name][row] > 0.01 * falls[order[0]][row]][:3]
        assert [reason.column for reason in reasons] == largest
        effects = [reason.effect for reason in reasons]
        assert effects == pytest.approx([falls[name][row] for name in largest])
    every, bare = (select_rows(model, new_cases, count=9, reasons=each) for each in (True, False))
    assert set(every.columns) - set(bare.columns) == {"reasons"}
    assert bare.columns["case"] == every.columns["case"]


def test_many_columns_take_few_passes(table_fit, new_cases, monkeypatch):
    """Columns are not scored one by one, and not where they have their usual value."""
    model = table_fit.model
    with model.schema.open(new_cases) as source:
        X = model.schema.read(source).X.head(20)
    X["amount"] = model.reference["amount"]
    scored = []
    score = type(model.classifier).score_samples
    monkeypatch.setattr(
        type(model.classifier),
        "score_samples",
        lambda self, X: scored.append(len(X)) or score(self, X),
    )
    assert "amount" not in {reason.column for each in reasons_for(model, X) for reason in each}
    assert len(scored) == 2
    assert scored[1] <= 20 * (len(model.schema.features) - 1)


def test_a_list_in_tiers_is_what_the_classifier_selects(table_fit, new_cases):
    """Rows to act on come first and take no place of the others; each has its tier."""
    model = table_fit.model
    with model.schema.open(new_cases) as source:
        rows = model.schema.read(source)
    tiers = model.classifier.select(rows.X, Capacity.count(30), ids=rows.ids, act=0.3)
    listed = select_rows(model, new_cases, count=30, act=0.3)
    found = {row["row"] - 1: row["tier"] for row in listed.rows}
    assert found == {i: tier for i, tier in enumerate(tiers) if tier != "pass"}
    assert list(found.values()).count("review") == 30
    assert len(listed) > 30
    assert [row["tier"] for row in listed.rows] == sorted(found.values())
    assert listed.types["tier"] == "string"
    by_team = select_rows(
        model, new_cases, count={"ar": 4, "cl": 6}, segment="country", keep=["country"], act=0.3
    )
    reviews = Counter(row["country"] for row in by_team.rows if row["tier"] == "review")
    assert reviews == {"ar": 4, "cl": 6}


def test_flags_in_tiers(table_fit, new_cases):
    """Flags are the same, and the column says which of the rows to act on at once."""
    model, files = table_fit.model, [io.BytesIO(), io.BytesIO()]
    flag_rows(model, new_cases, files[0])
    summary = flag_rows(model, new_cases, files[1], act=0.15)
    plain, tiered = (pd.read_csv(io.BytesIO(file.getvalue())) for file in files)
    pd.testing.assert_frame_equal(tiered.drop(columns="tier"), plain)
    review = tiered.tier == "review"
    assert (tiered.flagged[review] == 1).all()
    assert (tiered.tier[tiered.flagged == 1] != "pass").all()
    n_acted = int((tiered.tier == "act").sum())
    assert n_acted > 0
    assert f"{n_acted} cases to act on at once, of which at least 15 %" in summary.notes[-1]
    assert f"{review.sum()} to review within the capacity" in summary.notes[-1]
