"""Weighted nearest neighbours."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity, CapacityClassifier
from shortlist.exceptions import CapacityError
from shortlist.learners import KernelKNeighborsClassifier
from shortlist.learners._kernel_knn import shares_by_k, vote_weights
from shortlist.metrics import detection_at_capacity

CAPACITY = Capacity.fraction(0.05)

REFERENCE = Path(__file__).with_name("kknn")


def kknn(X, y, Q, k):
    """Return the vote of class 1 by the formulas of the package, written out."""
    deviation = X.std(axis=0, ddof=1)
    distances = pairwise_distances(Q / deviation, X / deviation)
    order = np.argsort(distances, axis=1, kind="stable")[:, : k + 1]
    sorted_distances = np.take_along_axis(distances, order, axis=1)
    u = sorted_distances[:, :k] / np.maximum(sorted_distances[:, [k]], 1e-6)
    u = np.clip(u, 1e-6, 1 - 1e-6)
    weights = stats.norm.pdf(u * abs(stats.norm.ppf(1 / (2 * (k + 1)))))
    return (weights * y[order[:, :k]]).sum(axis=1) / weights.sum(axis=1)


def test_scores_equal_those_of_kknn():
    """All 300 reference cases agree to 1e-12, copies of training rows among them."""
    train = np.genfromtxt(
        REFERENCE / "train.csv", delimiter=",", skip_header=1, dtype=None, encoding=None
    )
    X = np.array([list(row)[:5] for row in train], dtype=float)
    y = np.array([row[5].strip('"') for row in train])
    Q = np.loadtxt(REFERENCE / "query.csv", delimiter=",", skiprows=1)
    expected = np.loadtxt(REFERENCE / "expected.csv", delimiter=",", skiprows=1)
    for k in (1, 2, 5, 15, 50):
        rare = KernelKNeighborsClassifier(k).fit(X, y).predict_proba(Q)[:, 1]
        assert_allclose(rare, expected[expected[:, 0] == k, 2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 4, 30])
def test_votes_equal_their_formula(k, rng):
    """The votes agree with the formulas of the package."""
    X, Q = rng.normal(size=(80, 3)) * [1, 10, 0.1], rng.normal(size=(20, 3)) * [1, 10, 0.1]
    y = rng.integers(2, size=80)
    model = KernelKNeighborsClassifier(k).fit(X, y)
    assert_allclose(model.predict_proba(Q)[:, 1], kknn(X, y, Q, k), atol=1e-12)


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e8, 1e20])
def test_the_search_is_exact(spread, rng):
    """Far from the origin, with copies and with huge numbers, no neighbour is missed."""
    X = rng.normal(size=(300, 12)) * spread + 1e4 * spread
    X[100:120] = X[0]
    Q = np.vstack([X[:40], rng.normal(size=(40, 12)) * spread + 1e4 * spread])
    model = KernelKNeighborsClassifier(6).fit(X, np.arange(300) % 2)
    distances, _ = model._nearest(model._scaled(Q), 7)
    expected = np.linalg.norm((Q[:, np.newaxis] - X) * _factors(X), axis=2)
    assert_allclose(distances, np.sort(expected, axis=1)[:, :7], rtol=1e-9, atol=1e-6)


def test_a_row_has_the_same_votes_in_every_batch(rng):
    """Alone and among others, though the search rounds otherwise."""
    X, Q = rng.normal(size=(200, 4)) + 100, rng.normal(size=(20, 4)) + 100
    X[50:60] = X[0]
    model = KernelKNeighborsClassifier(9).fit(X, np.arange(200) % 2)
    together = model.predict_proba(Q)
    alone = [model.predict_proba(item[np.newaxis])[0] for item in Q]
    assert_array_equal(alone, together)


def test_a_training_row_is_not_its_own_neighbour(rng):
    """Also when it has more copies than neighbours are requested."""
    X = rng.normal(size=(50, 10))
    X[10:30] = X[0]
    model = KernelKNeighborsClassifier(3).fit(X, np.arange(50) % 2)
    distances, rows = model._nearest(None, 4)
    assert rows.shape == distances.shape == (50, 4)
    assert (rows != np.arange(50)[:, np.newaxis]).all()
    assert_array_equal(distances[0], np.zeros(4))


def test_a_constant_feature_has_no_influence(rng):
    """A constant feature is left out, whatever its value in a new item."""
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    with_constant = np.column_stack([X, np.full(60, 0.1)])
    Q = rng.normal(size=(10, 4)) * 100
    expected = KernelKNeighborsClassifier().fit(X, y).predict_proba(Q[:, :3])
    actual = KernelKNeighborsClassifier().fit(with_constant, y).predict_proba(Q)
    assert_allclose(actual, expected, atol=1e-12)


def test_too_many_neighbours_raise_an_error(rng):
    """The message says how many rows are needed."""
    X, y = rng.normal(size=(5, 2)), [0, 1, 0, 1, 0]
    with pytest.raises(ValueError, match="n_neighbors=5 needs at least 6 training rows"):
        KernelKNeighborsClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number"),
    ],
)
def test_wrong_parameters_are_named(wrong, message, rng):
    """Each message names the argument and what it must be."""
    with pytest.raises(ValueError, match=message):
        KernelKNeighborsClassifier(**wrong).fit(rng.normal(size=(20, 2)), np.arange(20) % 2)


def test_all_k_at_once_equal_one_at_a_time(rng):
    """Each column is the vote with that many neighbours, scaled by the next one."""
    X, y, ks = rng.normal(size=(60, 3)), rng.random(60) < 0.3, np.arange(1, 11)
    found = KernelKNeighborsClassifier(10).fit(X, y)._nearest(None, 11)
    shares = shares_by_k(*found, y, ks)
    scaled = X * _factors(X)
    for item in range(0, 60, 7):
        distances = np.linalg.norm(scaled - scaled[item], axis=1)
        nearest = np.argsort(distances)[1:]  # all but the item itself
        for k in ks:
            weights = vote_weights(distances[nearest[: k + 1]][np.newaxis])[0]
            expected = weights @ y[nearest[:k]] / weights.sum()
            assert_allclose(shares[item, k - 1], expected, atol=1e-12)


def _factors(X):
    return 1 / X.std(axis=0, ddof=1)


@pytest.mark.parametrize("tie_break", ["smallest", "largest"])
def test_the_number_of_neighbours_that_detects_most_is_used(fraud, tie_break):
    """Each training item is scored by its neighbours among the others."""
    X, y = fraud
    model = KernelKNeighborsClassifier(range(1, 21), capacity=CAPACITY, tie_break=tie_break)
    model.fit(X, y)
    found = model._nearest(None, 21)
    each = shares_by_k(*found, y == 1, np.arange(1, 21)).T
    by_hand = [detection_at_capacity(y == 1, scores, CAPACITY) for scores in each]
    assert_allclose(model.detections_, by_hand)
    best = np.flatnonzero(model.detections_ == model.detections_.max()) + 1
    assert model.n_neighbors_ == (best[0] if tie_break == "smallest" else best[-1])
    alone = KernelKNeighborsClassifier(model.n_neighbors_).fit(X, y)
    assert_array_equal(alone.predict_proba(X[:50]), model.predict_proba(X[:50]))


def test_the_capacity_is_that_of_the_wrapper(fraud):
    """The choice is part of the training, and every guarantee is available."""
    X, y = fraud
    several = KernelKNeighborsClassifier([1, 5, 20, 50])
    with pytest.raises(CapacityError, match="chosen for a capacity, and there is none"):
        several.fit(X, y)
    options = {"capacity": CAPACITY, "cv": 0.5, "guarantee": "confident", "random_state": 0}
    model = CapacityClassifier(several, **options).fit(X, y)
    assert model.estimator_.capacity.as_fraction() == 0.05
    assert model.estimator_.detections_.size == 4
    assert model.calibration_.flagged_fraction <= 0.05


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_neighbors": []}, "at least one number of neighbours"),
        ({"n_neighbors": [3, 0]}, "Each of n_neighbors must be a whole number"),
        ({"n_neighbors": [3, 5_000]}, "n_neighbors=5000 needs at least 5002 training rows"),
        ({"tie_break": "first"}, "tie_break must be one of"),
        ({"n_neighbors": [3, 4], "capacity": 0.05}, "capacity must be a Capacity"),
    ],
)
def test_wrong_choices_are_named(fraud, wrong, message):
    """Each message says which argument, and what was needed."""
    with pytest.raises((ValueError, TypeError), match=message):
        KernelKNeighborsClassifier(**{"capacity": CAPACITY, **wrong}).fit(*fraud)


def test_a_pickled_model_scores_alike(rng):
    """Fitted models can be pickled."""
    X, y = rng.normal(size=(100, 10)), rng.integers(2, size=100)
    model = KernelKNeighborsClassifier().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


@parametrize_with_checks(
    [
        KernelKNeighborsClassifier(),
        KernelKNeighborsClassifier([1, 2], capacity=Capacity.multiple(1)),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """The classifier passes the checks of scikit-learn."""
    check(estimator)
