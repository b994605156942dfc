"""Classification by estimated densities."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity, capacity_scorer
from shortlist.learners import KernelDensityClassifier
from shortlist.learners._kde import LogDensity


@pytest.mark.parametrize("n", [1, 500])
def test_densities_equal_their_definition(n, rng):
    """Negligible terms do not change the mean of the products of kernels."""
    X, Q = rng.normal(size=(n, 3)), rng.normal(size=(60, 3))
    h = np.array([0.5, 1.0, 2.0])
    u = (Q[:, np.newaxis] - X) / h
    density = stats.norm.pdf(u).prod(axis=2).mean(axis=1) / h.prod()
    assert_allclose(LogDensity(X, h)(Q), np.log(density), rtol=0, atol=1e-11)


def test_gaussian_densities_equal_those_of_scikit_learn(rng):
    """With one bandwidth for all features, both estimates agree."""
    X, Q = rng.normal(size=(2_000, 2)), rng.normal(size=(100, 2))
    theirs = KernelDensity(bandwidth=0.3, rtol=0, atol=0).fit(X).score_samples(Q)
    assert_allclose(LogDensity(X, np.full(2, 0.3))(Q), theirs, atol=1e-7)


def test_densities_far_away_are_as_exact(rng):
    """A hundred bandwidths away, the sum over all points gives the same."""
    X, Q = rng.normal(size=(2_000, 2)), rng.normal(size=(100, 2)) * 30
    exponents = -0.5 * (((Q[:, np.newaxis] - X) / 0.3) ** 2).sum(axis=2)
    expected = logsumexp(exponents, axis=1) - np.log(2_000 * 2 * np.pi * 0.3**2)
    assert_allclose(LogDensity(X, np.full(2, 0.3))(Q), expected, rtol=1e-12)


def test_far_points_still_rank():
    """A thousand bandwidths away nothing underflows, and the class on that side leads."""
    X, y = np.array([[-1.0], [0.0], [1.0], [5.0], [6.0]]), np.array([0, 0, 0, 1, 1])
    model = KernelDensityClassifier(0.5).fit(X, y)
    scores = model.decision_function(np.array([[-1e3], [-1e2], [1e2], [1e3]]))
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0).all()


def test_the_rule_of_thumb_is_scotts(rng):
    """Each class has a bandwidth from its own deviation and size, times the factor."""
    X = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(200, 2)) * 3])
    y = np.repeat(["few", "many"], [50, 200])
    scott = KernelDensityClassifier("scott").fit(X, y).bandwidths_
    assert_allclose(scott[1], X[50:].std(axis=0, ddof=1) * 200 ** (-1 / 6))
    assert_allclose(KernelDensityClassifier(0.1, factor=2.0).fit(X, y).bandwidths_, 0.2)


def test_one_bandwidth_makes_the_kernel_rule_of_the_paper(rng):
    """Votes weighted by K(d / h): the log-odds of the rare ones' share of all weights."""
    X, y, new, h = rng.normal(size=(40, 2)), np.arange(40) % 4 == 0, rng.normal(size=(7, 2)), 0.6
    weights = np.exp(-(np.linalg.norm(new[:, np.newaxis] - X, axis=2) ** 2) / (2 * h**2))
    share = weights[:, y].sum(axis=1) / weights.sum(axis=1)
    model = KernelDensityClassifier(bandwidth=h).fit(X, y)
    assert_allclose(model.decision_function(new), np.log(share / (1 - share)))


def test_the_bandwidth_can_be_searched_for_a_capacity(fraud):
    """The factor is a parameter like any other."""
    X, y = fraud
    search = GridSearchCV(
        KernelDensityClassifier(),
        {"factor": [0.5, 1.0, 2.0]},
        scoring=capacity_scorer(Capacity.multiple(2)),
        cv=3,
    ).fit(X[:, :5], y)
    assert search.best_score_ > 0.3


def test_three_classes_get_log_odds_against_the_others(rng):
    """They agree with the logarithms of the probabilities."""
    X, y = rng.normal(size=(90, 2)) + np.arange(90)[:, np.newaxis] % 3, np.arange(90) % 3
    model = KernelDensityClassifier().fit(X, y)
    joint = model._joint_log_likelihood(X)
    logs = joint - logsumexp(joint, axis=1, keepdims=True)
    assert_allclose(model.decision_function(X), logs - np.log1p(-np.exp(logs)), atol=1e-9)
    assert_array_equal(model.predict(X), logs.argmax(axis=1))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be greater than 0"),
        ({"bandwidth": "best"}, "bandwidth must be 'scott' or a positive number; got 'best'"),
        ({"factor": -1.0}, "factor must be greater than 0"),
    ],
)
def test_wrong_parameters_are_named(params, message, rng):
    """Each message names the argument and what it must be."""
    with pytest.raises(ValueError, match=message):
        KernelDensityClassifier(**params).fit(rng.normal(size=(20, 2)), np.arange(20) % 2)


def test_a_constant_feature_has_no_rule_of_thumb(rng):
    """The error names the feature; a number can be given instead."""
    X, y = np.column_stack([rng.normal(size=20), np.full(20, 0.1)]), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"Features \[1\] are constant"):
        KernelDensityClassifier().fit(X, y)
    KernelDensityClassifier(1.0).fit(X, y)


def test_a_pickled_model_scores_alike(rng):
    """Fitted models can be pickled."""
    X, y = rng.normal(size=(100, 2)), rng.integers(2, size=100)
    model = KernelDensityClassifier().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.decision_function(X), model.decision_function(X))


@parametrize_with_checks([KernelDensityClassifier()])
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """The classifier passes the checks of scikit-learn."""
    check(estimator)
