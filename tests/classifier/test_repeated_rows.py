"""Rows that repeat share a fold and are one case, unless they are alike by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from shortlist import Capacity, CapacityClassifier, MulticlassCapacityClassifier, Worth
from shortlist._core.ids import repeats_of
from shortlist.metrics import out_of_fold_detection
from shortlist.thresholds.samples import RowFacts

TENTH = Capacity.fraction(0.1)


@pytest.fixture(scope="module")
def copies():
    """Return 200 random rows with random labels, each of them four times."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.random(200) < 0.2
    order = rng.permutation(np.repeat(np.arange(200), 4))
    return X[order], y[order], order


def nearest(**options):
    """Return a classifier that knows the labels of copies."""
    model = KNeighborsClassifier(1)
    return CapacityClassifier(model, capacity=TENTH, random_state=0, **options)


def test_copies_do_not_make_a_model_look_perfect(copies):
    """Labels are random, so that a tenth of the rows finds about a tenth of the rare ones."""
    X, y, order = copies
    model = nearest().fit(X, y)
    found = out_of_fold_detection(y, model.out_of_fold_scores_, model.folds_, TENTH, groups=order)
    assert found.low < 0.1 < found.high
    assert found.detection < 0.4
    apart = nearest().fit(X, y, groups=range(800))
    seen = out_of_fold_detection(y, apart.out_of_fold_scores_, apart.folds_, Capacity.multiple(1))
    assert seen.detection > 0.95


def test_copies_are_one_case(copies):
    """The same threshold as with the groups named, and copies of whole cases in each fold."""
    X, y, order = copies
    model, named = nearest(cv=0.5).fit(X, y), nearest(cv=0.5).fit(X, y, groups=order)
    assert model.rule_.samples[0].scores.size == 400
    assert model.calibration_.share == named.calibration_.share
    folds = nearest().fit(X, y)
    assert_array_equal(folds.folds_, folds.rule_.fold_of(RowFacts(X, ids=np.arange(800))))
    for each in folds.rule_.samples:
        assert np.unique(each.groups).size * 4 == each.scores.size


class Known(ClassifierMixin, BaseEstimator):
    """Scores rows by their only column, whatever it has learned from."""

    def fit(self, X, y):
        """Remember the labels."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        """Return the column as probabilities."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("share", [0.02, 0.1])
@pytest.mark.parametrize("named", [False, True], ids=["rows", "ids"])
def test_equal_rows_that_are_different_cases_keep_the_capacity(share, named):
    """Five rows are rare, with a tenth of all cases, and 300 are common: no label is mixed.

    If such cases were taken for copies alone, 1.6 and 1.2 times the capacity would be flagged.
    """
    rows = np.linspace(0.99, 0.01, 305)[:, np.newaxis]
    weights, rates = np.repeat([0.1 / 5, 0.9 / 300], [5, 300]), []
    model = CapacityClassifier(Known(), capacity=Capacity.fraction(share), rare_label=1)
    for seed in range(40):
        drawn = np.random.default_rng(seed).choice(305, size=300, p=weights)
        ids = np.arange(300) if named else None
        model.set_params(random_state=seed).fit(rows[drawn], (drawn < 5).astype(int), ids=ids)
        assert model.rule_.samples[0].groups is not None
        rates.append(weights @ model.flag(rows, ids=300 + np.arange(305) if named else None))
    assert np.mean(rates) <= share


@pytest.mark.parametrize(
    "options",
    [
        {"guarantee": "next-batch", "capacity": Capacity.count(40, per=400)},
        {"guarantee": "confident", "worth": Worth.precision(0.2)},
        {"capacity": Capacity.effort(1, per=10)},
        {"cv": 0.25},
        {"cv": "oob", "estimator": RandomForestClassifier(10)},
    ],
    ids=["next-batch", "precision", "work", "share", "out of bag"],
)
@pytest.mark.filterwarnings("ignore")
def test_what_groups_refuse_still_works(copies, options):
    """There, copies only share a fold."""
    X, y, order = copies
    known = {"efforts": np.ones(800)} if "capacity" in options and len(options) == 1 else {}
    options = {"estimator": KNeighborsClassifier(1), "capacity": TENTH, **options}
    model = CapacityClassifier(random_state=0, **options).fit(X, y, **known)
    if options.get("cv") != "oob":
        for fold in range(len(model.estimators_)):
            left_out = model.folds_ == fold
            assert not np.isin(order[left_out], order[~left_out]).any()


def test_several_classes_keep_copies_together(copies):
    """No model scores a copy of a row that it has learned from."""

    class Records(KNeighborsClassifier):
        def fit(self, X, y):
            self.rows_ = X
            return super().fit(X, y)

        def predict_proba(self, X):
            assert not np.isin(X[:, 0], self.rows_[:, 0]).any()
            return super().predict_proba(X)

    X, y, _ = copies
    three = y + 2 * (X[:, 0] > 1)
    capacities = dict.fromkeys([1, 2, 3], TENTH)
    model = MulticlassCapacityClassifier(Records(1), capacities=capacities, random_state=0)
    model.fit(X, three)


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, sparse.csr_array, np.ndarray.tolist])
def test_copies_are_found_in_any_table(copies, make):
    """By the hash that breaks ties."""
    X, y, order = copies
    repeats = repeats_of(make(X), y)
    assert repeats.n_repeated == 600
    assert repeats.matter
    pairs = np.unique(np.stack([repeats.groups, order]), axis=1)
    assert pairs.shape[1] == 200


def test_rows_with_few_values_are_different_cases():
    """Equal rows with different labels are alike by chance, and nothing is grouped."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(3, size=(500, 3)), rng.random(500) < 0.2
    repeats = repeats_of(X, y)
    assert repeats.by_chance
    assert repeats.groups is None
    assert repeats.n_repeated > 400
    assert nearest().fit(X, y).rule_.samples[0].groups is None


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([2, 3, 50]))
def test_only_equal_rows_with_equal_labels_are_grouped(seed, n_columns, n_values):
    """And every label has two units or more, so that it can be learned from."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(n_values, size=(40, n_columns)), rng.random(40) < 0.3
    repeats = repeats_of(X, y)
    whole = np.column_stack([X, y])
    assert repeats.n_repeated == 40 - len(np.unique(whole, axis=0))
    if repeats.groups is not None:
        together = repeats.groups[:, None] == repeats.groups
        assert_array_equal(together, (whole[:, None] == whole).all(axis=2))
        assert min(np.unique(repeats.groups[y == label]).size for label in np.unique(y)) > 1


def test_a_few_copies_share_a_fold_and_change_nothing_else():
    """One pair among 400 rows says nothing about the others; intervals stay known."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.random(400) < 0.2
    X[1], y[1] = X[0], y[0]
    model = CapacityClassifier(LogisticRegression(), capacity=TENTH, random_state=0).fit(X, y)
    assert model.folds_[0] == model.folds_[1]
    assert model.rule_.samples[0].groups is None
    assert np.isfinite(model.rule_.flag_rate_interval).all()


class Rises(LogisticRegression):
    """Its score is the first column."""

    def fit(self, X, y):
        """Learn nothing."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        """Return the first column."""
        return np.asarray(X)[:, 0].astype(float)


@pytest.mark.parametrize("capacity", [0.03, 0.15, 0.3])
@pytest.mark.parametrize("n", [23, 57])
@pytest.mark.filterwarnings("ignore:.*needs more calibration scores")
def test_repeated_rows_without_ids_keep_the_capacity_on_average(n, capacity):
    """A hash of the row picks the fold, always the same one for rows that are equal.

    A calibration flags whole values. On average over samples and seeds these are not more rows than
    the capacity allows, since no fold has more places than the others.
    """
    shares, rates = np.array([0.5, 0.3, 0.1, 0.1]), []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, y = rng.choice(4, size=(n, 1), p=shares), np.arange(n) % 3 == 0
        options = {"cv": 5, "random_state": seed, "response_method": "decision_function"}
        model = CapacityClassifier(Rises(), capacity=Capacity.fraction(capacity), **options)
        rates.append(model.fit(X, y).flag(np.arange(4)[:, None]) @ shares)
    assert np.mean(rates) <= capacity + 3 * np.std(rates) / len(rates) ** 0.5
    assert np.mean(rates) > 0.2 * capacity
