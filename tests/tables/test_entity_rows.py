"""Cases of several events in tables: one place each, and never more flags."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from made_cases import make_cases
from shortlist.cli._app import app
from shortlist.exceptions import TableError
from shortlist.online import EntityCases
from shortlist.tables import flag_rows, select_rows

DAY = 86_400.0
WORLDS = st.builds(
    dict,
    seed=st.integers(0, 10_000),
    n_customers=st.sampled_from([1, 4, 30]),
    window=st.sampled_from([0.5, 3.0]),
    cooldown=st.sampled_from([0.0, 2.0]),
    rise=st.sampled_from([None, 0.05]),
)


def events(seed, n_customers, n=120):
    """Return events of some customers in ten days, in the order of time."""
    rng = np.random.default_rng(seed)
    frame = make_cases(n, seed=seed)
    frame["customer"] = rng.choice([f"k{i}" for i in range(n_customers)], n)
    days = np.sort(rng.uniform(0, 10, n)).round(4)
    frame["at"] = pd.Timestamp("2026-03-01") + pd.to_timedelta(days, "D").round("s")
    return frame


def rule_of(world):
    """Return the rule of a world, which says days."""
    return EntityCases(
        window=DAY * world["window"], cooldown=DAY * world["cooldown"], rise=world["rise"]
    )


def flagged(model, path, **options):
    """Return the decisions about a table, row by row."""
    file = io.BytesIO()
    summary = flag_rows(model, path, file, format="jsonl", **options)
    rows = pd.DataFrame(map(json.loads, file.getvalue().splitlines()))
    return rows.astype(object).where(rows.notna(), None), summary


@settings(max_examples=12, deadline=None)
@given(world=WORLDS, count=st.integers(0, 12))
def test_a_list_has_each_case_once_with_its_highest_score(
    table_fit, tmp_path_factory, world, count
):
    """Whatever the order of the rows; no more places than asked for, and none is left empty."""
    path = tmp_path_factory.mktemp("events") / "events.csv"
    frame = events(world["seed"], world["n_customers"])
    frame.to_csv(path, index=False)
    every = select_rows(table_fit.model, path, count=999, keep=["at", "customer"], reasons=False)
    scored = pd.DataFrame(every.columns).sort_values("row")
    options = {"entity": "customer", "time": "at", "keep": ["customer"], "reasons": False}
    listed = select_rows(table_fit.model, path, count=count, rule=rule_of(world), **options)
    moments = (pd.to_datetime(scored["at"]) - pd.Timestamp(0)).dt.total_seconds().to_numpy()
    lasts = EntityCases(window=DAY * (world["window"] + world["cooldown"]))
    scored["number"] = lasts.number(scored["customer"].to_numpy(), moments)
    best = scored.sort_values("rank").drop_duplicates("number").head(count)
    assert listed.columns["case"] == best["case"].tolist()
    assert listed.columns["events"] == best["number"].map(scored["number"].value_counts()).tolist()
    frame.sample(frac=1, random_state=1).to_csv(path, index=False)
    again = select_rows(table_fit.model, path, count=count, rule=rule_of(world), **options)
    assert again.columns["case"] == listed.columns["case"]


@settings(max_examples=12, deadline=None)
@given(world=WORLDS, is_late=st.booleans())
def test_flags_begin_cases_and_nothing_is_flagged_besides(
    table_fit, tmp_path_factory, world, is_late
):
    """Every row joins the case of its entity while it lasts, in whatever order rows come."""
    path = tmp_path_factory.mktemp("events") / "events.csv"
    frame = events(world["seed"], world["n_customers"])
    if is_late:
        frame = frame.sample(frac=1, random_state=2)
    frame.to_csv(path, index=False)
    usual, _ = flagged(table_fit.model, path)
    options = {"entity": "customer", "time": "at", "keep": ["customer", "at"]}
    found, summary = flagged(table_fit.model, path, rule=rule_of(world), **options)
    assert (found["flagged"] <= usual["flagged"]).all()
    assert summary.n_flagged == found["flagged"].sum()
    now = (pd.to_datetime(found["at"].astype(str)) - pd.Timestamp(0)).dt.total_seconds().cummax()
    lasts, rise = DAY * (world["window"] + world["cooldown"]), world["rise"]
    for _, own in found.assign(now=now).groupby("customer"):
        begun, highest, key = -np.inf, -np.inf, None
        for row in own.itertuples():
            is_open = row.now < begun + lasts
            is_quiet = row.now < begun + DAY * world["window"]
            rises = rise is not None and not is_quiet and row.score >= highest + rise
            if row.flagged:
                assert not is_open or rises
                begun, highest, key = row.now, row.score, row.case
                assert row.joined is None
            else:
                assert row.joined == (key if is_open else None)
                highest = max(highest, row.score)


@pytest.fixture
def days(tmp_path):
    """Return the paths of two days of events of the same customers, and of a list."""
    frame = events(3, 10, n=240)
    first = frame["at"] < frame["at"].median()
    for name, part in (("monday", frame[first]), ("tuesday", frame[~first])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def customers(model, path, **options):
    """Return the customers on a list of all cases, with their scores."""
    known = {"count": 99, "entity": "customer", "reasons": False, "keep": ["customer", "at"]}
    listed = select_rows(model, path, **{**known, **options})
    return dict(zip(listed.columns["customer"], listed.columns["score"], strict=True)), listed


def test_an_earlier_list_is_not_raised_again_unless_scores_rise(table_fit, days):
    """Within the cool-down; after it, everybody is listed again."""
    model = table_fit.model
    before, listed = customers(model, days / "monday.csv", count=6)
    pd.DataFrame(listed.columns).to_csv(days / "list.csv", index=False)
    options = {"time": "at", "exclude": days / "list.csv"}
    tuesday = days / "tuesday.csv"
    every, _ = customers(model, tuesday)
    rules = {rise: EntityCases(window=1, cooldown=90 * DAY, rise=rise) for rise in (None, 0.05)}
    calm, said = customers(model, tuesday, rule=rules[None], **options)
    assert calm.keys() == every.keys() - before.keys()
    assert "events belong to earlier cases" in said.notes[0]
    risen, _ = customers(model, tuesday, rule=rules[0.05], **options)
    assert risen.keys() - calm.keys() == {
        name for name in before if name in every and every[name] >= before[name] + 0.05
    }
    over, _ = customers(model, tuesday, rule=EntityCases(window=1, cooldown=1), **options)
    assert over.keys() == every.keys()


def test_exclusions_end(table_fit, days):
    """For entities and for ids; without moments, nobody knows when."""
    model, tuesday = table_fit.model, days / "tuesday.csv"
    frame = pd.read_csv(tuesday)
    frame["at"] = pd.to_datetime(frame["at"])
    middle = frame["at"].iloc[len(frame) // 2]
    allowed = pd.DataFrame({"customer": ["k1", "k2"], "until": ["2099-01-01", f"{middle:%F %T}"]})
    allowed.to_csv(days / "allowed.csv", index=False)
    options = {"exclude": days / "allowed.csv", "time": "at"}
    _, listed = customers(model, tuesday, rule=EntityCases(window=1), **options)
    left = frame[
        (frame["customer"] != "k1") & ~((frame["customer"] == "k2") & (frame["at"] < middle))
    ]
    assert set(listed.columns["case"]) <= set(left["case"])
    assert set(listed.columns["customer"]) == set(left["customer"])
    some = frame["case"].iloc[[0, -1]].tolist()
    pd.DataFrame({"case": some, "until": middle}).to_csv(days / "done.csv", index=False)
    found, _ = flagged(model, tuesday, exclude=days / "done.csv", time="at")
    assert set(frame["case"]) - set(found["case"]) == {some[0]}
    with pytest.raises(TableError, match="time="):
        flagged(model, tuesday, exclude=days / "done.csv")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"entity": "nobody"}, "'nobody', which entity="),
        ({"entity": "customer", "time": "never"}, "'never', which time="),
        ({"entity": "customer", "time": "country"}, "'country'"),
    ],
)
def test_what_cannot_be_told_is_refused(table_fit, days, options, words):
    """With the option and the column."""
    with pytest.raises(TableError, match=words):
        flagged(table_fit.model, days / "monday.csv", **options)


def test_without_moments_an_entity_has_one_case(table_fit, days):
    """In a list, and among the flags of a table."""
    of_lists, listed = customers(table_fit.model, days / "monday.csv")
    assert len(of_lists) == len(listed) == 10
    assert sum(listed.columns["events"]) == 120
    found, _ = flagged(table_fit.model, days / "monday.csv", entity="customer", keep=["customer"])
    assert found.groupby("customer")["flagged"].sum().max() == 1


def test_the_commands(model_file, days):
    """One place and one flag for each customer, and nobody twice within the cool-down."""

    def run(command, day, *more):
        asked = [command, str(model_file), str(days / f"{day}.csv"), "--time", "at"]
        asked += ["--entity", "customer,window=1h,cooldown=90d", "--keep", "customer,at"]
        result = CliRunner().invoke(app, [*asked, *map(str, more)])
        assert result.exit_code == 0, result.output
        return result

    run("select", "monday", "--count", 4, "-o", days / "list.csv")
    first = pd.read_csv(days / "list.csv")
    assert first["customer"].nunique() == len(first) == 4
    run("select", "tuesday", "--count", 99, "--exclude", days / "list.csv", "-o", days / "b.csv")
    assert not set(first["customer"]) & set(pd.read_csv(days / "b.csv")["customer"])
    run("flag", "monday", "-o", days / "flags.csv")
    found = pd.read_csv(days / "flags.csv")
    assert found.groupby("customer")["flagged"].sum().max() == 1
    assert found["joined"].notna().any()
    asked = ["select", str(model_file), str(days / "monday.csv"), "--count", "3"]
    wrong = CliRunner().invoke(app, [*asked, "--entity", "customer,raise=1"])
    assert "customer,raise=1 is not a column, perhaps with window, cooldown, rise" in wrong.stderr
