"""Every number of a report, against the functions of the library."""

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_cases import percent
from shortlist import Capacity, capacity_curve
from shortlist._core.formatting import number
from shortlist.exceptions import TableError, TableNote
from shortlist.report import make_report, render_report
from shortlist.report._found import compare_rules, detection_in_words, read_cases, spread_cuts
from shortlist.report._summary import guarantee_in_words, judge_promise
from shortlist.tables import WorkColumns, evaluate_table, recalibrate_table, select_rows
from shortlist.tables.drift import stability_index
from shortlist.tables.reviews import missed_in_table
from shortlist.thresholds import GUARANTEES


@pytest.fixture(scope="module")
def summary(table_fit, new_cases):
    """Return the summary of the model on new cases."""
    return make_report(table_fit.model, new_cases)


def test_the_rules_are_those_of_evaluate(summary, table_fit, new_cases):
    """The same flags, finds, detection with its interval, and precision."""
    evaluated = {rule.rule: rule for rule in evaluate_table(table_fit.model, new_cases).rules}
    names = {
        "This model, case by case": "this model",
        "Default threshold": "default threshold",
        "Random choice": "random",
    }
    rules = {rule["rule"]: rule for rule in summary["comparison"]["rules"]}
    for ours, theirs in names.items():
        assert rules[ours]["flagged"] == evaluated[theirs].flagged
        assert rules[ours]["found"] == evaluated[theirs].found
        assert rules[ours]["detection"] == evaluated[theirs].detection
        assert rules[ours]["precision"] == evaluated[theirs].precision
        interval = evaluated[theirs].detection_interval
        assert rules[ours]["detection_interval"] == (None if interval is None else list(interval))


def test_a_cut_is_the_list_of_select(summary, table_fit, new_cases):
    """Each number of flags finds what `select` finds, in the same order."""
    is_rare = pd.read_csv(new_cases)["fraud"].eq("yes").to_numpy()
    cuts = summary["cuts"]
    for count in (1, 17, summary["promise"]["n_flagged"], 200):
        rows = select_rows(table_fit.model, new_cases, count=count).rows
        place = cuts["flags"].index(count)
        found = sum(bool(is_rare[row["row"] - 1]) for row in rows)
        assert cuts["found"][place] == found
        assert cuts["precision"][place] == found / count
        assert cuts["detection"][place] == found / is_rare.sum()


def test_the_rule_flags_a_beginning_of_the_ranking(table_fit, new_cases):
    """Apart from those between two calibration scores, of which some are drawn by lot."""
    cases = read_cases(table_fit.model, new_cases)
    (found,) = table_fit.model.classifier.calibrations_
    assert cases.flagged[cases.scores > found.value].all()
    assert not cases.flagged[cases.scores <= found.lower_value].any()
    by_lot = cases.flagged & (cases.scores <= found.value)
    between = (cases.scores > found.lower_value) & (cases.scores <= found.value)
    is_a_list = compare_rules(table_fit.model, cases)["rule_is_a_list"]
    assert is_a_list == (by_lot.sum() in (0, between.sum()))


def test_a_multiple_counts_the_rare_cases_here(table_fit, new_cases):
    """Lists of other rules are as long as M allows; the promise is about the share in fit."""
    classifier = table_fit.model.classifier.with_capacity(Capacity.multiple(2))
    summary = make_report(replace(table_fit.model, classifier=classifier), new_cases)
    n_rare = summary["data"]["n_rare"]
    assert summary["comparison"]["room"] == 2 * n_rare
    listed = summary["comparison"]["rules"][1]
    assert listed["flagged"] == 2 * n_rare
    assert listed["detection"] == listed["found"] / n_rare
    assert summary["promise"]["room"] != 2 * n_rare
    assert "counts in rare cases" in render_report(summary)


def test_the_summary_is_plain_json(summary):
    """Without numbers that JSON does not have, and the same after a way through it."""
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert render_report(json.loads(json.dumps(summary))) == render_report(summary)


@pytest.mark.parametrize(
    ("n_flagged", "verdict"), [(0, "kept"), (80, "kept"), (95, "chance"), (200, "broken")]
)
def test_verdicts(table_fit, n_flagged, verdict):
    """Within the room, over it by luck, and over it beyond luck."""
    promise = judge_promise(table_fit.model, 800, n_flagged, room=80)
    assert promise["room"] == 80
    assert promise["verdict"] == verdict
    assert f"{n_flagged} of 800" in promise["explanation"]


def test_far_too_few_flags_are_worth_a_word(table_fit):
    """The capacity is kept, but not used."""
    assert "left unused" in judge_promise(table_fit.model, 800, 5, room=80)["explanation"]
    assert "left unused" not in judge_promise(table_fit.model, 800, 70, room=80)["explanation"]


def test_a_model_without_enough_calibration_says_so(table_fit, new_cases):
    """It flags nothing, and the page can still be made."""
    classifier = copy.copy(table_fit.model.classifier)
    classifier.guarantee = "plug-in"
    with pytest.warns(UserWarning, match="flags nothing"):
        silent = classifier.with_capacity(Capacity.fraction(0.0001))
    summary = make_report(replace(table_fit.model, classifier=silent), new_cases)
    assert summary["promise"]["verdict"] == "silent"
    assert "flags nothing" in render_report(summary)


def test_drift_is_seen_where_it_is(table_fit, new_cases, tmp_path):
    """In the column that moved, in the scores, and nowhere else."""
    frame = pd.read_csv(new_cases)
    calm = make_report(table_fit.model, new_cases)["drift"]
    assert {column["shift"] for column in [calm["score"], *calm["columns"]]} == {"none seen"}
    frame.assign(amount=3 * frame["amount"]).to_csv(tmp_path / "moved.csv", index=False)
    moved = make_report(table_fit.model, tmp_path / "moved.csv")["drift"]
    shifts = {column["name"]: column["shift"] for column in moved["columns"]}
    assert shifts == {
        "amount": "large",
        "country": "none seen",
        "opened": "none seen",
        "vip": "none seen",
    }
    assert moved["score"]["shift"] in ("moderate", "large")
    assert moved["columns"][0]["name"] == "amount"
    assert "scores have shifted" in moved["verdict"]


def test_the_stability_index_by_hand():
    """Nothing moved is zero; half against nine tenths is a textbook case."""
    assert stability_index([50, 50], [50, 50]) == 0
    p, q = np.array([50.5, 50.5]) / 101, np.array([90.5, 10.5]) / 101
    assert stability_index([50, 50], [90, 10]) == pytest.approx(np.sum((q - p) * np.log(q / p)))
    assert np.isfinite(stability_index([10, 0], [0, 10]))


def test_missing_shares_are_told(table_fit, new_cases):
    """Of each column, before and now."""
    drift = make_report(table_fit.model, new_cases)["drift"]
    by_name = {column["name"]: column for column in drift["columns"]}
    assert 0 < by_name["amount"]["missing_after"] < 0.1


@pytest.mark.parametrize("n_items", [1, 30, 5_000, 10**7])
def test_cuts_are_bounded_and_hold_the_rule_and_the_room(n_items):
    """However long the table is."""
    room, n_flagged = n_items // 17, n_items // 11
    cuts = spread_cuts(n_items, room=room, n_flagged=n_flagged)
    assert cuts.size <= 1_001
    assert {0, room, n_flagged} <= set(cuts.tolist())
    assert cuts[-1] <= n_items
    assert (np.diff(cuts) > 0).all()


def test_a_long_table_makes_no_long_page(table_fit, new_cases, tmp_path):
    """Half a million bytes more at most, and ids are cut short."""
    frame = pd.concat([pd.read_csv(new_cases)] * 25, ignore_index=True)
    frame["case"] = [f"{'x' * 300}{i}" for i in range(len(frame))]
    frame.to_csv(tmp_path / "long.csv", index=False)
    page = render_report(make_report(table_fit.model, tmp_path / "long.csv"))
    assert len(page) < 2_000_000
    assert "x" * 81 not in page


def test_a_wrong_target_is_refused(table_fit, new_cases):
    """As by evaluate."""
    with pytest.raises(TableError, match="no column 'nothing'"):
        make_report(table_fit.model, new_cases, target="nothing")
    noted = pytest.warns(TableNote, match="'vip' holds 'false', 'true', which was not a label")
    with noted, pytest.raises(TableError, match="no row with the rare label"):
        make_report(table_fit.model, new_cases, target="vip")


def test_numbers_as_people_read_them():
    """Digits where they matter, dashes where there is nothing."""
    nbsp = "\u00a0"
    assert percent(0.0612) == f"6.1{nbsp}%"
    assert percent(0.0012) == f"0.12{nbsp}%"
    assert percent(1e-9) == f"below 0.01{nbsp}%"
    assert percent(1.0) == f"100{nbsp}%"
    assert percent(None) == percent(float("nan")) == number(None) == "–"
    assert number(12_345) == "12,345"
    assert number(15.118) == "15.1"


def curve_of(cases):
    """Return the capacity curve of the ranking."""
    places = np.arange(cases.rare.size)
    return capacity_curve(cases.rare[cases.order], -places, rare_label=True)


def test_one_number_has_one_interval(summary, table_fit, new_cases):
    """Everywhere that of the detection at a capacity; rule, list and slider agree."""
    curve, cuts = curve_of(read_cases(table_fit.model, new_cases)), summary["cuts"]
    own, listed, *_ = summary["comparison"]["rules"]
    for rule in (own, listed):
        place = cuts["flags"].index(rule["flagged"])
        interval = [cuts["detection_low"][place], cuts["detection_high"][place]]
        assert rule["detection_interval"] == pytest.approx(interval)
        assert interval == pytest.approx([*curve.interval_at(Capacity.count(rule["flagged"]))])
        precision = [cuts["precision_low"][place], cuts["precision_high"][place]]
        assert rule["precision_interval"] == pytest.approx(precision)
    assert "at_threshold" not in json.dumps(summary)
    page = render_report(summary)
    assert "for the same share of flags among new cases" in page
    assert "when the same share of new cases is followed up" in page


def test_the_interval_of_m_shrinks_with_what_can_be_followed_up(table_fit, new_cases):
    """With half the room for its flags, a rule finds half of what it flags."""
    model = table_fit.model
    summary = make_report(model, new_cases)
    for rule in summary["comparison"]["rules"]:
        if rule["over_capacity"]:
            share = summary["comparison"]["room"] / rule["flagged"]
            assert rule["detection"] == pytest.approx(share * rule["found"] / 65)
            assert rule["detection_interval"][1] <= share + 1e-12


def test_a_multiple_has_one_interval_too(table_fit, new_cases):
    """The slider counts in the unit of the capacity."""
    classifier = table_fit.model.classifier.with_capacity(Capacity.multiple(2))
    model = replace(table_fit.model, classifier=classifier)
    summary = make_report(model, new_cases)
    listed = summary["comparison"]["rules"][1]
    place = summary["cuts"]["flags"].index(listed["flagged"])
    low, high = curve_of(read_cases(model, new_cases)).interval_at(Capacity.multiple(2))
    assert listed["detection_interval"] == pytest.approx([low, high])
    assert summary["cuts"]["detection_low"][place] == pytest.approx(low)
    assert "for each rare case" in render_report(summary)


def test_after_a_recalibration_the_results_of_the_fit_are_old(table_fit, new_cases):
    """With another capacity they are gone, and the page can be made; with the same, it says so."""
    model = copy.deepcopy(table_fit.model)
    other = recalibrate_table(model, new_cases, capacity=Capacity.fraction(0.05)).model
    page = render_report(make_report(other, pd.read_csv(new_cases).drop(columns="fraud")))
    assert "Found in the fit" not in page
    assert "expectations-title" not in page
    same = recalibrate_table(model, new_cases).model
    page = render_report(make_report(same, new_cases))
    assert "before the recalibration" in page
    assert "before the recalibration" not in render_report(make_report(model, new_cases))


def test_every_guarantee_is_said_in_words(table_fit, new_cases):
    """A model with a simultaneous promise has a report, too, and each guarantee has its words."""
    model = copy.deepcopy(table_fit.model)
    model = recalibrate_table(model, new_cases, guarantee="simultaneous").model
    promise = make_report(model, new_cases)["promise"]
    assert "whichever capacity is chosen" in promise["in_words"]
    said = set()
    for guarantee in GUARANTEES:
        model.classifier.rule_.terms = replace(model.classifier.rule_.terms, guarantee=guarantee)
        said.add(guarantee_in_words(model))
    assert len(said) == len(GUARANTEES)


def test_m_is_said_in_words(summary):
    """With the numbers of the page."""
    own, n_rare = summary["comparison"]["rules"][0], summary["data"]["n_rare"]
    within = detection_in_words(own, n_rare=n_rare)
    assert summary["comparison"]["in_words"] == within
    assert f"{own['found']} of {n_rare} rare cases are among the flags" in within
    half = own | {"detection": own["detection"] / 2, "over_capacity": True}
    over = detection_in_words(half, n_rare=n_rare)
    assert f"not enough room to follow up all {own['flagged']} flags" in over
    assert f"find {number(own['found'] / 2)} rare cases on average" in over


def test_reviews_say_what_is_missed(table_fit, new_cases, tmp_path):
    """The numbers are those of `missed`, by period, and the page shows them with an alarm."""
    table = pd.read_csv(new_cases)
    n = len(table)
    drawn = np.random.default_rng(0).random(n) < 0.3
    shuffled = table["fraud"].sample(frac=1, random_state=0, ignore_index=True)  # found by chance
    reviews = pd.DataFrame(
        {
            "fraud": shuffled.where(drawn),
            "selected_by": np.where(drawn, "probe", "not selected"),
            "inclusion": 0.3,
            "week": np.where(np.arange(n) < n // 2, "w1", "<w2>"),
        }
    )
    reviews.to_csv(tmp_path / "reviews.csv", index=False)
    made = make_report(
        table_fit.model, new_cases, reviews=tmp_path / "reviews.csv", reviews_period="week"
    )
    result = missed_in_table(table_fit.model, tmp_path / "reviews.csv", period="week")
    rows = {row["period"]: row for row in made["missed"]["periods"]}
    assert rows["all"]["missed"] == result.estimate.missed
    assert rows["w1"]["missed_high"] == result.estimate.by_period["w1"].missed_high
    assert made["missed"]["has_fallen"]
    page = render_report(made)
    assert "Alarm: the model card says" in page
    assert "&lt;w2&gt;" in page
    assert rows["all"]["value"] is None
    assert "missed-title" not in render_report(make_report(table_fit.model, new_cases))


def test_reviews_of_a_model_with_values_say_what_is_missed_in_value(table_fit, new_cases, tmp_path):
    """The column of the fit is taken if it has no gaps; the page and its numbers show it."""
    n = len(pd.read_csv(new_cases))
    drawn = np.arange(n) % 3 == 0
    reviews = pd.DataFrame(
        {
            "fraud": np.where(drawn, np.where(np.arange(n) % 2, "yes", "no"), None),
            "selected_by": np.where(drawn, "probe", "not selected"),
            "inclusion": 1 / 3,
            "amount": 10.0,
        }
    )
    work = WorkColumns(value="amount")
    model = replace(table_fit.model, schema=replace(table_fit.model.schema, work=work))
    for name, amounts in {"full": 10.0, "gap": np.where(np.arange(n), 10.0, np.nan)}.items():
        reviews.assign(amount=amounts).to_csv(tmp_path / f"{name}.csv", index=False)
    value = missed_in_table(model, tmp_path / "full.csv").estimate.value
    hits = int((drawn & (np.arange(n) % 2 == 1)).sum())
    assert value.missed == pytest.approx(10 * (3 * hits - hits))
    assert missed_in_table(model, tmp_path / "gap.csv").estimate.value is None
    made = make_report(table_fit.model, new_cases, reviews=tmp_path / "full.csv")
    assert made["missed"]["periods"][-1]["value"] is None  # this model knows no values
