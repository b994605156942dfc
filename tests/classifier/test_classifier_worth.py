"""The classifier with values, efforts and worth."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from shortlist import Capacity, CapacityClassifier, Worth, select
from shortlist.datasets import make_fraud
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController

N = 4_000
BUDGET = Capacity.effort(480, per=1_000)


@pytest.fixture(scope="module")
def cases():
    """Return features, labels, amounts and minutes."""
    X, y = make_fraud(n_samples=2 * N, random_state=0)
    rng = np.random.default_rng(0)
    return X, y, rng.lognormal(4, 1, size=2 * N), rng.integers(5, 61, size=2 * N).astype(float)


def classifier(capacity=BUDGET, **options):
    """Return an unfitted classifier."""
    model = LogisticRegression(max_iter=1_000)
    options = {"cv": 0.5, "random_state": 0, **options}
    return CapacityClassifier(model, capacity=capacity, **options)


@pytest.fixture(scope="module")
def fitted(cases):
    """Return a classifier with a budget of work, fitted on the first half."""
    X, y, values, minutes = (each[:N] for each in cases)
    return classifier(max_effort=60).fit(X, y, values=values, efforts=minutes)


@pytest.mark.parametrize("options", [{}, {"cv": 3}])
def test_ones_change_nothing(cases, options):
    """Values and efforts of 1 give the same flags as a number of flags."""
    X, y, _, _ = (each[:N] for each in cases)
    ones = np.ones(N)
    plain = classifier(Capacity.count(30, per=1_000), **options).fit(X, y)
    same = classifier(Capacity.effort(30, per=1_000), **options)
    same.fit(X, y, values=ones, efforts=ones)
    assert np.array_equal(same.thresholds_, plain.thresholds_)
    new = cases[0][N:]
    flagged = same.flag(new, values=ones, efforts=ones)
    assert np.array_equal(flagged, plain.flag(new))
    assert np.array_equal(same.select(new, values=ones, efforts=ones), plain.select(new))


def test_the_threshold_weighs_value_and_effort(cases, fitted):
    """Items are flagged above a value per minute, each on its own as in a batch."""
    X, _, values, minutes = (each[N:] for each in cases)
    worth = fitted.predict_proba(X)[:, 1] * values / minutes
    flagged = fitted.flag(X, values=values, efforts=minutes)
    found = fitted.calibration_
    assert flagged[worth > found.value].all()
    assert not flagged[worth <= found.lower_value].any()
    alone = [
        bool(fitted.flag(X[i : i + 1], values=values[i : i + 1], efforts=minutes[i : i + 1])[0])
        for i in range(50)
    ]
    assert alone == flagged[:50].tolist()
    spent = minutes[flagged].sum() / N
    assert 0.2 < spent < 0.7


def test_the_budget_is_spent_on_average(cases):
    """By the calibration items themselves, over splits."""
    X, y, values, minutes = (each[:N] for each in cases)
    known = {"values": values, "efforts": minutes}
    spent = [
        classifier(max_effort=60, random_state=seed).fit(X, y, **known).calibration_.effort_spent
        for seed in range(20)
    ]
    assert np.mean(spent) == pytest.approx(0.48, rel=0.15)


def test_a_batch_keeps_its_budget(cases, fitted):
    """The list of a batch is that of select on the probabilities."""
    X, y, values, minutes = (each[N:] for each in cases)
    found = fitted.select(
        X, Capacity.effort(480), values=values, efforts=minutes, return_details=True
    )
    assert minutes[found.flagged].sum() <= 480
    p = fitted.predict_proba(X)[:, 1]
    best = select(p, Capacity.effort(480), values=values, efforts=minutes, return_details=True)
    assert found.gain == pytest.approx(best.gain, rel=1e-6)
    assert 0 < fitted.score(X, y, values=values, efforts=minutes) < 1


def test_it_goes_through_pickle_clone_and_another_capacity(cases, fitted):
    """A copy decides the same, a clone keeps its parameters, half the budget spends half.

    The lots of the work are drawn anew with each seed; 100 of them say what is spent on average.
    """
    X, _, values, minutes = (each[N:] for each in cases)
    again = pickle.loads(pickle.dumps(fitted))
    work = {"values": values, "efforts": minutes}
    assert np.array_equal(again.flag(X, **work), fitted.flag(X, **work))
    assert clone(fitted).max_effort == 60
    budget, (sample,) = Capacity.effort(240, per=1_000), fitted.rule_.samples
    half = fitted.with_capacity(budget)
    assert half.calibration_.effort_spent < fitted.calibration_.effort_spent
    terms = [replace(fitted.rule_.terms, seed=seed) for seed in range(100)]
    spent = [each.thresholds([sample], budget)[0].effort_spent for each in terms]
    assert np.mean(spent) == pytest.approx(0.24, rel=0.1)
    old = fitted.threshold_
    assert again.recalibrate(X, **work).threshold_ != old


def test_efforts_are_the_same_in_fit_and_use(cases, fitted):
    """Missing efforts, or larger ones than promised, raise an error."""
    X, _, values, minutes = (each[N:] for each in cases)
    with pytest.raises(ValueError, match="calibrated with efforts, and these items come without"):
        fitted.predict(X, values=values)
    with pytest.raises(ValueError, match="max_effort=60 must be at least"):
        fitted.predict(X, values=values, efforts=minutes + 1)
    with pytest.raises(CapacityError, match="Pass efforts"):
        classifier().fit(*(each[:N] for each in cases[:2]))
    with pytest.raises(ValueError, match="need max_effort"):
        classifier().fit(cases[0][:N], cases[1][:N], efforts=cases[3][:N])
    with pytest.raises(CapacityError, match="limits the number of flags"):
        classifier(Capacity.fraction(0.1)).fit(cases[0][:N], cases[1][:N], efforts=cases[3][:N])


@pytest.mark.parametrize("options", [{"cv": 0.5}, {"cv": 3}])
def test_models_without_probabilities_are_calibrated(cases, options):
    """A margin cannot be weighed; CalibratedClassifierCV makes a probability of it."""
    X, y, values, _ = (each[:N] for each in cases)
    capacity, new = Capacity.fraction(0.02), {"values": cases[2][N:]}
    options |= {"capacity": capacity, "random_state": 0}
    model = CapacityClassifier(LinearSVC(), **options).fit(X, y, values=values)
    assert isinstance(model.estimators_[0], CalibratedClassifierCV)
    flagged = model.flag(cases[0][N:], **new)
    assert 0 < flagged.mean() < 0.04
    by_hand = CapacityClassifier(CalibratedClassifierCV(LinearSVC(), cv=5), **options)
    assert np.array_equal(flagged, by_hand.fit(X, y, values=values).flag(cases[0][N:], **new))
    p = model.predict_proba(cases[0][N:])[:, 1]
    assert abs(p.mean() - cases[1][N:].mean()) < 0.01
    plain = CapacityClassifier(LinearSVC(), **options).fit(X, y)
    assert plain.response_method_ == "decision_function"


def test_margins_that_cannot_be_calibrated_are_refused(cases):
    """A trained model, and a wish for margins, say what to do."""
    X, y, values, _ = (each[:N] for each in cases)
    capacity = Capacity.fraction(0.02)
    trained = CapacityClassifier(LinearSVC().fit(X, y), capacity=capacity, cv="prefit")
    with pytest.raises(ValueError, match="CalibratedClassifierCV"):
        trained.fit(cases[0][N:], cases[1][N:], values=values)
    margins = CapacityClassifier(
        LogisticRegression(), capacity=capacity, response_method="decision_function"
    )
    with pytest.raises(ValueError, match="response_method='auto'"):
        margins.fit(X, y, values=values)


@pytest.mark.parametrize("work", [{"values": True}, {"worth": 0.001}])
def test_probes_go_with_values_and_worth(cases, fitted, work):
    """The number of flags stays, some of them are drawn below the cut, with known probabilities."""
    X, y, values, _ = cases
    model = classifier(Capacity.count(30, per=1_000)).fit(X[:N], y[:N])
    options = {"worth": work.get("worth")}
    if "values" in work:
        options["values"] = values[N:]
    plain = model.select(X[N:], Capacity.count(40), return_details=True, **options)
    found = model.select(X[N:], Capacity.count(40), probe=0.25, return_details=True, **options)
    assert found.flagged.sum() == plain.flagged.sum() == 40
    assert found.is_probe.sum() == 10
    assert (plain.flagged & found.flagged).sum() >= 30
    below = found.probabilities[found.is_probe | ~found.flagged]
    assert np.all((below > 0) & (below < 1))
    assert below.sum() == pytest.approx(10)
    assert "values" in work or np.all(below < 0.01)
    with pytest.raises(CapacityError, match="budget of work"):
        fitted.select(X[N:], values=values[N:], efforts=np.ones(N), probe=0.1)


def test_values_and_efforts_are_metadata(cases):
    """With routing on, cross-validation hands them to fit and to score."""
    X, y, values, minutes = (each[:N] for each in cases)
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier(max_effort=60)
        model.set_fit_request(values=True, efforts=True)
        model.set_score_request(values=True, efforts=True)
        found = cross_validate(model, X, y, params={"values": values, "efforts": minutes}, cv=3)
    assert np.all(found["test_score"] > 0.2)


def test_capacity_stays_empty_below_its_worth(cases):
    """The threshold is at least the worth, and a precision is kept by fewer flags."""
    X, y, values, _ = (each[:N] for each in cases)
    model = classifier(Capacity.fraction(0.5), worth=5.0).fit(X, y, values=values)
    assert model.calibration_.limited_by == "worth"
    new = cases[0][N:]
    flagged = model.flag(new, values=cases[2][N:])
    assert np.all(model.predict_proba(new)[flagged, 1] * cases[2][N:][flagged] >= 5 * (1 - 1e-9))
    precise = classifier(
        Capacity.fraction(0.5), worth=Worth.precision(0.2), guarantee="confident"
    ).fit(X, y)
    assert cases[1][N:][precise.flag(new)].mean() > 0.2
    with pytest.raises(TypeError, match="worth must be a number"):
        classifier(Capacity.fraction(0.5), worth="much").fit(X, y)


def test_every_team_keeps_its_budget(cases):
    """Teams spend their own minutes, and all together no more than the capacity for all."""
    X, y, values, minutes = (each[:N] for each in cases)
    team = np.arange(N) % 2
    model = classifier(
        Capacity.effort(600, per=1_000),
        segment_capacities={0: Capacity.effort(300, per=1_000), 1: Capacity.effort(900, per=1_000)},
        max_effort=60,
    )
    work = {"values": values, "efforts": minutes, "segments": team}
    model.fit(X, y, **work)
    flagged = model.select(X, **work)
    spent = np.bincount(team[flagged], minutes[flagged])
    assert spent[0] <= 300 * 2
    assert spent[1] <= 900 * 2
    assert spent.sum() <= 600 * 4
    assert minutes[model.flag(X, **work)].sum() < 600 * 4 * 1.3
    with pytest.raises(CapacityError, match="Pass efforts"):
        model.select(X, segments=team)


def test_controllers_start_from_the_fitted_efforts(cases, fitted):
    """Budgets per day and per so many items both take what the classifier has learned."""
    for budget in (fitted.controller(), fitted.controller(period=86_400)):
        assert isinstance(budget, BudgetController)
        assert 5 <= budget.options["expected_effort"] <= 60
    X, y, _, _ = (each[:N] for each in cases)
    with pytest.raises(CapacityError, match="fitted without efforts"):
        classifier(Capacity.fraction(0.1)).fit(X, y).controller(Capacity.effort(480))


def test_no_controller_promises_a_precision(cases):
    """Its threshold moves with what comes; the message says where a precision can be had."""
    X, y, _, _ = (each[:N] for each in cases)
    precise = classifier(Capacity.fraction(0.1), worth=Worth.precision(0.2)).fit(X, y)
    with pytest.raises(ValueError, match=r"Worth.precision\(0.2\) .*no controller keeps.*select"):
        precise.controller(Capacity.count(5), period=86_400)


def test_a_probability_of_one_can_be_weighed():
    """Scores are lifted above 1 when they are ranked, and are still probabilities."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] > 1
    model = CapacityClassifier(
        DecisionTreeClassifier(), capacity=Capacity.count(10, per=200), cv=0.5, random_state=0
    ).fit(X, y)
    assert model.score_samples(X).max() == 1
    values = rng.uniform(1, 2, size=200)
    flagged = model.select(X, values=values)
    worth = values * model.score_samples(X)
    assert flagged.sum() == 10
    assert worth[flagged].min() >= worth[~flagged].max()
    assert model.select(X, worth=0.5).sum() == 10


@pytest.mark.parametrize("options", [{"cv": 0.5}, {"cv": 3}])
def test_equal_efforts_are_a_bound_of_future_ones(cases, options):
    """A threshold that counts each flag as a minute says nothing about flags of an hour."""
    X, y, _, _ = (each[:1_000] for each in cases)
    model = classifier(Capacity.effort(250, per=1_000), **options)
    model.fit(X, y, efforts=np.ones(1_000))
    assert model.flag(X, efforts=np.full(1_000, 0.5)).any()
    with pytest.raises(ValueError, match="max_effort=1 must be at least the effort of every item"):
        model.flag(X, efforts=np.full(1_000, 60.0))
    model.recalibrate(X, efforts=np.full(1_000, 60.0))  # which makes it a threshold for hours
    model.flag(X, efforts=np.full(1_000, 60.0))
