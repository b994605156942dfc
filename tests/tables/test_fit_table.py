"""From a table to a model under a capacity."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity
from shortlist.exceptions import TableError
from shortlist.tables import _candidates, evaluate_table, fit_table, plan_capacity, select_rows

CAPACITY = Capacity.count(100, per=1_000)


def fit(path, **options):
    """Fit a logistic model to the table of cases."""
    options = {"target": "fraud", "capacity": CAPACITY, "learner": "logistic"} | options
    return fit_table(path, **options)


def test_columns_get_their_kinds_and_nothing_leaks(table_fit):
    """Target and id are never features."""
    schema = table_fit.model.schema
    assert {feature.name: feature.kind for feature in schema.features} == {
        "amount": "numeric",
        "country": "categorical",
        "opened": "date",
        "vip": "boolean",
    }
    assert (schema.target, schema.rare_label, schema.id) == ("fraud", "yes", "case")


def test_three_parts_share_the_rows(table_fit):
    """A fifth measures, a fifth calibrates, and the rest trains."""
    assert (table_fit.n_train, table_fit.n_calibration, table_fit.n_test) == (900, 300, 300)
    assert table_fit.model.classifier.calibration_.n_calibration == 300


def test_the_capacity_finds_more_than_chance(table_fit):
    """And the list of the batch has exactly the length that the capacity allows."""
    by_rule = {rule.rule: rule for rule in table_fit.rules}
    listed, chance = by_rule["this model, as a list"], by_rule["random"]
    assert listed.flagged == chance.flagged == 30
    assert listed.detection > 2 * chance.detection
    assert_allclose(chance.detection, 0.1)
    assert listed.detection_interval.low < listed.detection < listed.detection_interval.high


def test_test_rows_have_no_say_in_the_model(cases, tmp_path, table_fit):
    """Other values in the held-out rows change what is measured, but not the model."""
    frame = pd.read_csv(cases)
    from shortlist.tables._fit import _parts

    _, _, test = _parts((frame["fraud"] == "yes").to_numpy(), 0)
    frame.loc[test, "amount"] = 1.0
    frame.to_csv(tmp_path / "changed.csv", index=False)
    changed = fit(tmp_path / "changed.csv", id="case")
    before, after = (result.model.classifier for result in (table_fit, changed))
    assert before.threshold_ == after.threshold_
    assert table_fit.rules[0] != changed.rules[0]


def test_auto_takes_the_learner_that_finds_most(cases, monkeypatch):
    """By cross-validated detection at the capacity."""
    learners = {"chance": DummyClassifier(), "logistic": LogisticRegression(max_iter=1000)}
    monkeypatch.setattr(_candidates, "TRIED_BY_AUTO", tuple(learners))
    monkeypatch.setattr(_candidates, "_make", lambda name, capacity, random_state: learners[name])
    result = fit(cases, learner="auto", id="case")
    detection = {tried.learner: tried.detection for tried in result.candidates}
    assert detection["logistic"] > detection["chance"]
    assert result.model.learner == "logistic"


def test_progress_is_told_step_by_step(cases, monkeypatch):
    """Reading, each fold of each learner, and the fit at last."""
    monkeypatch.setattr(_candidates, "TRIED_BY_AUTO", ("logistic", "aware-linear"))
    steps = []
    fit(cases, learner="auto", on_progress=lambda *step: steps.append(step))
    assert steps[0] == ("reading", 0, 1)
    assert steps[1:11] == [
        (f"trying {name}", 5 * place + fold, 10)
        for place, name in enumerate(("logistic", "aware-linear"))
        for fold in range(5)
    ]
    assert steps[11:] == [("fitting", 0, 1), ("fitting for comparison", 0, 1)]


@pytest.mark.parametrize("learner", _candidates.LEARNERS[1:])
def test_every_learner_takes_gaps_and_unknown_categories(cases, learner, tmp_path):
    """A country that was never seen is no reason to stop."""
    model = fit(cases, learner=learner, id="case").model
    frame = pd.read_csv(cases).drop(columns="fraud").head(20)
    frame["country"], frame["amount"] = "zz", np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert len(select_rows(model, tmp_path / "new.csv", count=7)) == 7


def test_several_classes_are_one_against_the_rest(tmp_path, cases):
    """Labels of any number; --rare says which one is looked for."""
    frame = pd.read_csv(cases)
    common = frame["fraud"] == "no"
    frame.loc[common, "fraud"] = np.where(frame.index[common] % 2, "checked", "open")
    frame.to_csv(tmp_path / "three.csv", index=False)
    assert fit(tmp_path / "three.csv", rare="yes").model.schema.rare_label == "yes"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"target": "freud"}, "no column 'freud'.*'case', 'amount'"),
        ({"target": "amount"}, "looks like a measurement|is empty in"),
        ({"target": "case"}, "looks like a measurement"),
        ({"id": "nr"}, "no column 'nr', which --id names"),
        ({"id": "fraud"}, "both name 'fraud'"),
        ({"rare": "maybe"}, "--rare maybe does not occur.*'no', 'yes'"),
        ({"learner": "oracle"}, "learner must be one of 'auto'"),
    ],
)
def test_wrong_columns_and_labels_are_named(cases, options, complaint):
    """With what there is instead."""
    with pytest.raises(ValueError, match=complaint):
        fit(cases, **options)


def test_too_few_rare_rows(cases, tmp_path):
    """Three parts cannot be made of five."""
    frame = pd.read_csv(cases)
    frame = frame[(frame["fraud"] == "no") | (np.cumsum(frame["fraud"] == "yes") <= 5)]
    frame.to_csv(tmp_path / "few.csv", index=False)
    with pytest.raises(TableError, match="Only 5 rows have the rare label 'yes'"):
        fit(tmp_path / "few.csv")
    frame[frame["fraud"] == "no"].to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(TableError, match="only one class, 'no'"):
        fit(tmp_path / "one.csv")


def test_a_multiple_beyond_all_rows_flags_everything(cases):
    """The share of rare rows is an estimate: whether it exceeds 1 / b is luck, and no error."""
    classifier = fit(cases, capacity=Capacity.multiple(100)).model.classifier
    assert_allclose(classifier.capacity_fraction_, 1)


def test_a_multiple_refers_to_the_whole_table(cases):
    """Rounding in the calibration part must not make the capacity larger than it is."""
    classifier = fit(cases, capacity=Capacity.multiple(2)).model.classifier
    share = (pd.read_csv(cases)["fraud"] == "yes").mean()
    assert_allclose(classifier.capacity_fraction_, 2 * share)


def test_the_list_is_exact_ranked_and_explained(table_fit, new_cases):
    """Reasons are the columns whose usual value would lower the score most."""
    selected = select_rows(table_fit.model, new_cases, count=25)
    scores = [row.score for row in selected]
    assert len(selected) == 25
    assert scores == sorted(scores, reverse=True)
    assert [row.rank for row in selected] == list(range(1, 26))
    assert selected[0].reasons[0].column == "amount"
    effects = [reason.effect for reason in selected[0].reasons]
    assert effects == sorted(effects, reverse=True)
    assert all(effect > 0 for effect in effects)
    frame = pd.read_csv(new_cases)
    assert frame["case"][selected[0].row - 1] == selected[0].id


def test_the_list_does_not_depend_on_the_row_order(table_fit, new_cases, tmp_path):
    """Ties are broken by ids, also in the order of the list."""
    frame = pd.read_csv(new_cases)
    frame["amount"] = frame["amount"].round(-2)  # many ties
    frame["country"], frame["opened"], frame["vip"] = "ar", "2024-01-01", "true"
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "b.csv", index=False)
    first, second = (
        [row.id for row in select_rows(table_fit.model, tmp_path / name, count=40)]
        for name in ("a.csv", "b.csv")
    )
    assert first == second


def test_evaluation_counts_by_hand(table_fit, new_cases):
    """The numbers are those of the flags and the labels."""
    result = evaluate_table(table_fit.model, new_cases)
    frame = pd.read_csv(new_cases)
    assert result.n_items == 800
    assert result.n_rare == (frame["fraud"] == "yes").sum()
    assert result.flag_rate == result.model.flagged / 800
    assert result.flag_rate_interval.low < result.flag_rate < result.flag_rate_interval.high
    assert result.model.precision == result.model.found / result.model.flagged
    assert result.curve[-1].detection == 1
    flags = [point.flagged for point in result.curve]
    assert flags == sorted(set(flags))


def test_evaluation_without_a_rare_case(table_fit, new_cases, tmp_path):
    """Nothing can be found where nothing is."""
    frame = pd.read_csv(new_cases)
    for label in ("no", "yes"):
        frame.assign(fraud=label).to_csv(tmp_path / "one.csv", index=False)
        with pytest.raises(TableError, match=r"no row with the rare label|only one class"):
            evaluate_table(table_fit.model, tmp_path / "one.csv")


def test_a_plan_has_the_models_capacity_in_the_middle(table_fit, new_cases, tmp_path):
    """More capacity never finds less; the next reviewer is worth what the curve says."""
    plan = plan_capacity(table_fit.model, new_cases, load=20)
    assert [point.flagged for point in plan.points] == [20, 40, 60, 80, 100, 120, 160, 240, 320]
    found = [point.found for point in plan.points]
    assert found == sorted(found)
    at_capacity = plan.points[3]
    assert plan.next_reviewer.found == plan.points[4].found - at_capacity.found
    assert plan.next_reviewer.expected == 20 * at_capacity.marginal

    pd.read_csv(new_cases).drop(columns="fraud").to_csv(tmp_path / "new.csv", index=False)
    unlabelled = plan_capacity(table_fit.model, tmp_path / "new.csv")
    assert unlabelled.points is None
    assert [row.room for row in unlabelled.expected_flags] == [p.flagged for p in plan.points]
    with pytest.raises(TableError, match="no column 'fraud', which --target names"):
        plan_capacity(table_fit.model, tmp_path / "new.csv", target="fraud")


@pytest.mark.parametrize("capacity", [Capacity.multiple(2), Capacity.fraction(0.3)])
def test_a_plan_stops_where_everything_is_flagged(cases, new_cases, capacity):
    """In whatever unit the capacity was stated."""
    plan = plan_capacity(fit(cases, capacity=capacity, id="case").model, new_cases)
    assert plan.points[-1].fraction <= 1
    assert plan.points[0].flagged < plan.points[-1].flagged
