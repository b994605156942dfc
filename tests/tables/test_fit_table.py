"""From a table to a model under a capacity."""

import importlib
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from shortlist import Capacity, CapacityClassifier
from shortlist.exceptions import TableError
from shortlist.tables import (
    estimators,
    evaluate_table,
    fit_table,
    recalibrate_table,
    select_rows,
)
from shortlist.tables.fit import folds_for

CAPACITY = Capacity.count(100, per=1_000)
fitting = importlib.import_module("shortlist.tables.fit")


def fit(path, **options):
    """Fit a logistic model to the table of cases."""
    options = {"target": "fraud", "capacity": CAPACITY, "learner": "logistic"} | options
    return fit_table(path, **options)


def load_rows(model, path):
    """Return the rows of a table, as a model reads them."""
    with model.schema.open(path) as source:
        return model.schema.read(source)


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


def test_every_row_is_learned_from_and_measured(folded_fit):
    """Ten models learn from nine tenths each, and score the tenth that they have not seen."""
    assert (folded_fit.card.n_train, folded_fit.card.n_calibration, folded_fit.card.n_test) == (
        1_500,
    ) * 3
    calibrations = folded_fit.model.classifier.calibrations_
    assert [each.n_calibration for each in calibrations] == [150] * 10
    assert folded_fit.card.measured_on == "out-of-fold"


def test_a_single_model_leaves_a_quarter_of_the_rows_to_its_threshold(table_fit):
    """They are measured on, too."""
    assert (table_fit.card.n_train, table_fit.card.n_calibration, table_fit.card.n_test) == (
        1_125,
        375,
        375,
    )
    assert table_fit.model.classifier.calibration_.n_calibration == 375
    assert table_fit.card.measured_on == "calibration"


def test_the_capacity_finds_more_than_chance(folded_fit):
    """And the list of the batch has exactly the length that the capacity allows."""
    by_rule = {rule.rule: rule for rule in folded_fit.card.rules}
    listed, chance = by_rule["this model, as a list"], by_rule["random"]
    assert listed.flagged == chance.flagged == 150
    assert listed.detection > 2 * chance.detection
    assert_allclose(chance.detection, 0.1)
    assert listed.detection_interval.low < listed.detection < listed.detection_interval.high


def test_row_by_row_the_whole_capacity_is_measured(cases, tmp_path):
    """300 rows at 2 %: the top row of a fold of 30 is drawn with a chance of 0.6, ten times.

    Five seeds give 30 flags on average, with a standard deviation of 3.5, and at most one a fold.
    A threshold that has seen the row which it judges never flags it.
    """
    pd.read_csv(cases).head(300).to_csv(tmp_path / "few.csv", index=False)
    options = {"capacity": Capacity.fraction(0.02), "rare": "yes"}
    fits = [fit(tmp_path / "few.csv", random_state=seed, **options) for seed in range(5)]
    flagged = [each.card.rules[0].flagged for each in fits]
    assert max(flagged) <= 10
    assert abs(sum(flagged) - 30) <= 14


def test_the_latest_rows_have_no_say_in_the_model(cases, tmp_path):
    """Other values in them change what is measured, but not the model."""
    frame = pd.read_csv(cases)
    frame["day"] = np.arange(len(frame)) // 15
    frame.to_csv(tmp_path / "days.csv", index=False)
    frame.loc[frame["day"] >= 80, "amount"] = 1.0
    frame.to_csv(tmp_path / "changed.csv", index=False)
    before, after = (
        fit(tmp_path / name, id="case", time="day") for name in ("days.csv", "changed.csv")
    )
    assert (before.card.n_train, before.card.n_test, before.card.measured_on) == (
        1_200,
        300,
        "latest",
    )
    thresholds = [result.model.classifier.thresholds_ for result in (before, after)]
    assert_array_equal(*thresholds)
    assert before.card.rules[0] != after.card.rules[0]


def test_with_a_time_the_past_trains_and_the_latest_rows_test(cases, tmp_path):
    """And the time itself is not learned from."""
    frame = pd.read_csv(cases)
    frame["day"] = np.random.default_rng(0).integers(0, 100, len(frame))
    frame.to_csv(tmp_path / "days.csv", index=False)
    result = fit(tmp_path / "days.csv", time="day")
    assert result.card.measured_on == "latest"
    assert result.card.n_test == (frame["day"] >= frame["day"].quantile(0.8)).sum()
    assert "day" not in [feature.name for feature in result.model.schema.features]


def test_a_group_column_is_not_learned_from(cases, tmp_path):
    """It only keeps rows together."""
    frame = pd.read_csv(cases)
    frame["customer"] = np.arange(len(frame)) // 2
    frame.to_csv(tmp_path / "groups.csv", index=False)
    model = fit(tmp_path / "groups.csv", group="customer").model
    assert "customer" not in [feature.name for feature in model.schema.features]
    assert all(sample.groups is not None for sample in model.classifier.rule_.samples)
    folds = model.classifier.folds_
    assert np.array_equal(folds[::2], folds[1::2])


def test_copies_of_random_rows_are_not_found(tmp_path):
    """200 random rows with random labels, each four times: no better than chance, and said."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame["fraud"] = np.where(rng.random(200) < 0.2, "yes", "no")
    copies = frame.loc[rng.permutation(np.repeat(np.arange(200), 4))]
    copies.to_csv(tmp_path / "copies.csv", index=False)
    result = fit(tmp_path / "copies.csv", own=KNeighborsClassifier(1))
    own, listed, *_ = result.card.rules
    assert max(own.detection, listed.detection) < 0.35
    assert any("600 of 800 rows are copies of others" in note for note in result.card.notes)


@pytest.fixture(scope="module")
def ensemble_fit(cases):
    """Return the steps of a fit with an ensemble, and its result."""
    steps = []
    options = {"learner": "auto", "size": "quick", "id": "case", "folds": 3}
    result = fit(cases, on_progress=lambda *step: steps.append(step), **options)
    return steps, result


def test_auto_is_an_ensemble(ensemble_fit):
    """One of all rows for lists, and one for each fold, with all members."""
    _, result = ensemble_fit
    names = ["boosting", "extra-trees", "forest", "logistic", "network"]
    classifier = result.model.classifier
    models = [classifier.list_estimator_, *classifier.estimators_]
    assert [sorted(each.weights_) for each in models] == [names] * 4


def test_recent_rows_without_labels_set_the_threshold(cases, new_cases, tmp_path):
    """One threshold for the model of lists comes from them: in a fit as in `recalibrate`."""
    recent = tmp_path / "recent.csv"
    pd.read_csv(new_cases).drop(columns="fraud").to_csv(recent, index=False)
    before = fit(cases, id="case")
    later = recalibrate_table(before.model, recent).model
    atonce = fit(cases, id="case", unlabelled=recent)
    X = load_rows(later, recent)
    for model in (later, atonce.model):
        assert [each.n_calibration for each in model.classifier.calibrations_] == [800]
        assert_array_equal(model.decide(X).scores, model.classifier.score_samples(X.X))
    assert_array_equal(atonce.model.decide(X).flagged, later.decide(X).flagged)
    assert atonce.model.decide(X).flagged.sum() <= 80
    assert atonce.card.n_recalibration == 800
    assert atonce.card.rules == before.card.rules  # of the folds, which measure
    assert "rests on 800 rows" in atonce.card.notes[-1]
    assert atonce.card.notes[-1].endswith("what is measured here is that before it.")
    frame = pd.read_csv(cases).assign(day=np.arange(1_500) // 15)
    frame.to_csv(tmp_path / "days.csv", index=False)
    tested = fit(tmp_path / "days.csv", id="case", unlabelled=recent, time="day")
    assert tested.card.notes[-1].endswith(f"{recent}.")  # the new threshold is what is tested


def test_the_rows_of_the_fit_are_no_unlabelled_rows(cases, tmp_path, monkeypatch):
    """This is said before any model is fitted, whatever the file is called."""
    copied = tmp_path / "recent.csv"
    copied.write_bytes(cases.read_bytes())
    monkeypatch.setattr(CapacityClassifier, "fit", lambda *_, **__: pytest.fail("too late"))
    for path in (cases, copied):
        with pytest.raises(TableError, match=r"1,500 of 1,500 rows of .* more recent rows"):
            fit(cases, id="case", unlabelled=path)


def test_unlabelled_rows_are_opened_before_the_fit(cases, tmp_path):
    """A file that is not there, or lacks a column, costs no time."""
    steps = []
    options = {"on_progress": lambda *step: steps.append(step[0])}
    with pytest.raises(TableError, match="There is no file"):
        fit(cases, unlabelled=tmp_path / "nowhere.csv", **options)
    (tmp_path / "other.csv").write_text("amount\n1\n2\n")
    with pytest.raises(TableError, match="which the model needs"):
        fit(cases, unlabelled=tmp_path / "other.csv", **options)
    assert set(steps) == {"reading"}


@pytest.mark.parametrize(
    ("size", "n_rows", "expected"),
    [
        ("quick", 1_000, ("quick", 3)),
        ("default", 50_000, ("quick", 5)),
        ("default", 50_001, ("quick", 3)),
        ("thorough", 10**6, ("default", 10)),
    ],
)
def test_folds_are_few_and_small(size, n_rows, expected):
    """Lists do not need them: the larger the table, the fewer there are."""
    assert folds_for(size, n_rows) == expected


def test_an_interrupted_fit_resumes_all_ensembles(cases, tmp_path):
    """The members of the model of lists and of the folds are kept alike."""
    options = {"learner": "auto", "size": "quick", "folds": 2, "memory": str(tmp_path)}
    first = fit(cases, **options).model
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("output.pkl")}
    assert len(kept) == 3 * (5 + 1)  # the members, and the logistic model that prefers a form
    again = fit(cases, **options).model
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("output.pkl")} == kept
    assert_array_equal(first.classifier.thresholds_, again.classifier.thresholds_)


def test_progress_is_told_step_by_step(ensemble_fit):
    """Reading, and each member of the ensemble for lists and of each fold, with the work done."""
    steps, _ = ensemble_fit
    assert steps[:2] == [("reading", 0, 1), ("fitting", 0, 1)]
    names, done, totals = zip(*steps[2:], strict=True)
    assert names[0] == "fitting boosting"
    assert done[0] == 0
    assert len(done) == 20
    assert all(np.diff(done) > 0)
    assert done[-1] < totals[0]
    assert len(set(totals)) == 1


def test_a_long_fit_is_timed_with_a_piece_of_the_rows(cases, monkeypatch):
    """Then work is in seconds, and the time of the whole fit is estimated before it begins."""
    monkeypatch.setattr(fitting, "_SHORT", 1_000)
    monkeypatch.setattr(estimators, "_PIECE", 400)
    steps = []
    options = {"learner": "auto", "size": "quick", "folds": 2}
    fit(cases, on_progress=lambda *step: steps.append(step), **options)
    words = [step[0] for step in steps[:3]]
    assert words[:2] == ["reading", "timing a piece of the rows"]
    assert re.fullmatch(r"fitting, about [0-9]+ seconds? in all", words[2])
    total = steps[-1][2]
    assert 0 < total < len(pd.read_csv(cases))  # seconds, and not rows of all fits
    assert len(steps) == 3 + 15


@pytest.mark.parametrize("learner", estimators.LEARNERS[1:])
def test_every_learner_takes_gaps_and_unknown_categories(cases, learner_model, learner, tmp_path):
    """A country that was never seen is no reason to stop."""
    model = learner_model(learner)
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


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.TableNote")  # comes with an error
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"target": "freud"}, "no column 'freud'.*'case', 'amount'"),
        ({"target": "amount"}, "looks like a measurement|is empty in"),
        ({"target": "case"}, "looks like a measurement"),
        ({"id": "nr"}, "no column 'nr', which id=... names"),
        ({"id": "fraud"}, "both name 'fraud'"),
        ({"rare": "maybe"}, "rare='maybe' does not occur.*'no', 'yes'"),
        ({"learner": "oracle"}, "learner must be one of 'auto'"),
        ({"size": "huge"}, "size must be one of 'quick'"),
        ({"time": "nope"}, "time=... names 'nope'"),
        ({"time": "country"}, "time=... names 'country', which holds texts"),
        ({"time": "amount"}, "time=... names 'amount', which has .* missing values"),
        ({"group": "nope"}, "group=... names 'nope'"),
        ({"group": "amount"}, "group=... names 'amount', which has .* missing values"),
    ],
)
def test_wrong_columns_and_labels_are_named(cases, options, complaint):
    """With what there is instead."""
    with pytest.raises(ValueError, match=complaint):
        fit(cases, **options)


def test_too_few_rare_rows(cases, tmp_path):
    """Ten folds cannot be made of five."""
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
    scores = [row["score"] for row in selected.rows]
    assert len(selected) == 25
    assert scores == sorted(scores, reverse=True)
    assert [row["rank"] for row in selected.rows] == list(range(1, 26))
    first = selected.rows[0]
    assert first["reasons"][0].column == "amount"
    effects = [reason.effect for reason in first["reasons"]]
    assert effects == sorted(effects, reverse=True)
    assert all(effect > 0 for effect in effects)
    frame = pd.read_csv(new_cases)
    assert frame["case"][first["row"] - 1] == first["case"]


def test_the_list_does_not_depend_on_the_row_order(table_fit, new_cases, tmp_path):
    """Ties are broken by ids, also in the order of the list."""
    frame = pd.read_csv(new_cases)
    frame["amount"] = frame["amount"].round(-2)  # many ties
    frame["country"], frame["opened"], frame["vip"] = "ar", "2024-01-01", "true"
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "b.csv", index=False)
    first, second = (
        [row["case"] for row in select_rows(table_fit.model, tmp_path / name, count=40).rows]
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
    assert result.curve[-1]["detection"] == 1
    flags = [point["n_flagged"] for point in result.curve]
    assert flags == sorted(set(flags))


def test_evaluation_without_a_rare_case(table_fit, new_cases, tmp_path):
    """Nothing can be found where nothing is."""
    frame = pd.read_csv(new_cases)
    for label in ("no", "yes"):
        frame.assign(fraud=label).to_csv(tmp_path / "one.csv", index=False)
        with pytest.raises(TableError, match=r"no row with the rare label|only one class"):
            evaluate_table(table_fit.model, tmp_path / "one.csv")


def test_other_capacities_lie_around_the_models_own(table_fit, new_cases, tmp_path):
    """More capacity never finds less; the next reviewer is worth what the curve says."""
    evaluation = evaluate_table(table_fit.model, new_cases, load=20)
    points = evaluation.capacities
    assert [point["n_flagged"] for point in points] == [20, 40, 60, 80, 100, 120, 160, 240, 320]
    found = [point["n_found"] for point in points]
    assert found == sorted(found)
    assert evaluation.next_reviewer.found == points[4]["n_found"] - points[3]["n_found"]
    assert evaluation.next_reviewer.expected == 20 * points[3]["marginal"]

    pd.read_csv(new_cases).drop(columns="fraud").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(TableError, match="no column 'fraud', the column with the labels"):
        evaluate_table(table_fit.model, tmp_path / "new.csv")


@pytest.mark.parametrize("capacity", [Capacity.multiple(2), Capacity.fraction(0.3)])
def test_other_capacities_end_where_everything_is_flagged(cases, new_cases, capacity):
    """In whatever unit the capacity was stated."""
    model = fit(cases, capacity=capacity, id="case").model
    points = evaluate_table(model, new_cases).capacities
    assert points[-1]["fraction"] <= 1
    assert points[0]["n_flagged"] < points[-1]["n_flagged"]
