"""A new threshold for a fitted model, and a threshold for a model of one's own."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from made_cases import make_cases
from shortlist import Capacity
from shortlist.exceptions import TableError
from shortlist.learners.trained import TrainedModel
from shortlist.models import trusted_types
from shortlist.models.files import load_own_model
from shortlist.tables import fit_table, load_model, recalibrate_table, save_model


def test_the_threshold_is_that_of_the_library(table_fit, new_cases):
    """The model stays, and the old one is not changed."""
    model = table_fit.model
    before = model.classifier.thresholds_
    result = recalibrate_table(model, new_cases)
    assert_array_equal(model.classifier.thresholds_, before)
    assert result.flagged_now <= 100
    assert result.n_rows == 800
    assert result.model.card.n_recalibration == 800
    assert result.model.card.recalibrated_at is not None
    assert sum(result.model.card.profiles[0].counts) == 800


def test_other_terms(table_fit, new_cases, tmp_path):
    """Capacity, guarantee and confidence, kept in the file."""
    result = recalibrate_table(
        table_fit.model,
        new_cases,
        capacity=Capacity.count(20, per=200),
        guarantee="next-batch",
        confidence=0.9,
    )
    save_model(result.model, tmp_path / "m")
    again = load_model(tmp_path / "m").classifier
    assert (again.guarantee, again.confidence) == ("next-batch", 0.9)
    assert again.capacity == Capacity.count(20, per=200)
    assert result.model.card.rules == ()  # they were measured for another capacity


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


def make_table(n=500, seed=9):
    """Write a fresh table and return its path."""
    make_cases(n, seed=seed).to_csv("fresh.csv", index=False)
    return Path("fresh.csv")


def test_known_rows_are_left_out(table_fit, cases):
    """A threshold needs rows that the model does not know."""
    old, new = pd.read_csv(cases), make_cases(200, seed=4)
    pd.concat([old, new]).to_csv("mixed.csv", index=False)
    result = recalibrate_table(table_fit.model, Path("mixed.csv"))
    assert result.n_left_out >= 0.7 * len(old)
    assert "were left out" in result.notes[0]


@pytest.fixture
def numbers():
    """Return numbers with labels of a user's own."""
    frame = make_cases(1_000, seed=7)
    return frame[["amount"]].fillna(0), frame["fraud"]


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), HistGradientBoostingClassifier(), LinearSVC()]
)
def test_a_trained_model_keeps_its_scores(estimator, numbers):
    """Only the labels change, and the sign where the rare one comes first."""
    X, y = numbers
    estimator.fit(X, y)
    for rare, sign in (("yes", 1), ("no", -1)):
        own = TrainedModel(estimator, rare)
        assert_array_equal(own.predict(X), estimator.predict(X) == rare)
        if hasattr(estimator, "predict_proba"):
            place = list(estimator.classes_).index(rare)
            assert_allclose(own.predict_proba(X)[:, 1], estimator.predict_proba(X)[:, place])
        if hasattr(estimator, "decision_function"):
            assert_allclose(own.decision_function(X), sign * estimator.decision_function(X))


def test_a_model_of_ones_own_goes_through_a_file(numbers):
    """Calibrated on a table, saved, loaded, and with the same decisions."""
    own = HistGradientBoostingClassifier(random_state=0).fit(*numbers)
    skops.io.dump(own, "own.skops")
    loaded = load_own_model(Path("own.skops"))
    table = make_table()
    options = {"target": "fraud", "capacity": Capacity.fraction(0.1)}
    result = fit_table(table, own=loaded, id="case", **options)
    save_model(result.model, Path("m"))
    again = load_model(Path("m"))
    with again.schema.open(table) as source:
        rows = again.schema.read(source)
    assert_array_equal(
        again.classifier.flag(rows.X, ids=rows.ids),
        result.model.classifier.flag(rows.X, ids=rows.ids),
    )
    assert [feature.name for feature in again.schema.features] == ["amount"]
    assert result.card.n_calibration == 500
    assert "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor" in trusted_types()


def test_missing_texts_reach_a_trained_model_as_missing():
    """Not as the name that stands for them in a table."""

    class Recorder(LogisticRegression):
        def predict(self, X):
            self.got = X
            return np.array(["no"] * len(X))

    recorder = Recorder()
    frame = pd.DataFrame({"town": np.array(["x", "(missing)"], dtype=object)})
    TrainedModel(recorder, "yes", columns=["town"], missing="(missing)").predict(frame)
    assert recorder.got["town"].isna().tolist() == [False, True]


def test_too_few_rare_rows(numbers):
    """Say so, with the numbers."""
    own = LogisticRegression().fit(*numbers)
    frame = make_cases(300, seed=1)
    frame["fraud"] = np.where(np.arange(300) < 2, "yes", "no")
    frame.to_csv("few.csv", index=False)
    with pytest.raises(TableError, match="Only 2 rows have the rare label"):
        fit_table(Path("few.csv"), own=own, target="fraud", capacity=Capacity.fraction(0.1))


def test_all_nights_together(table_fit):
    """A table that grows is calibrated whole every night, from the model of the night before."""
    model, nights = table_fit.model, [make_cases(300, seed=seed) for seed in (11, 12, 13)]
    for n in (1, 2, 3):
        result = recalibrate_table(model, pd.concat(nights[:n]), guarantee="anytime")
        model = result.model
        assert (result.n_rows, result.n_left_out) == (300 * n, 0)
    recalibrated = recalibrate_table(model, nights[0], guarantee="confident").model
    result = recalibrate_table(recalibrated, pd.concat(nights))
    assert (result.n_rows, result.n_left_out) == (600, 300)
    assert result.notes[0].startswith("300 of 900 rows of the data frame trained or calibrated")


def test_a_confidence_covers_a_prevalence_that_was_counted():
    """Whatever the fit promised; a walk cannot cover it."""
    options = {"target": "fraud", "capacity": Capacity.multiple(1), "learner": "logistic"}
    fitted = fit_table(make_cases(800, seed=1), **options)
    found = recalibrate_table(fitted.model, make_cases(3_000, seed=2), guarantee="confident")
    assert found.model.classifier.rule_.terms.reference.is_estimated
    assert found.flagged_now < 0.8 * fitted.model.classifier.capacity_fraction_ * 3_000
    with pytest.raises(ValueError, match="needs the stated prevalence"):
        recalibrate_table(fitted.model, make_cases(300, seed=3), guarantee="anytime")
