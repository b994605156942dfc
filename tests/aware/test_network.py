"""Small networks trained for a capacity."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from shortlist import Capacity, CapacityClassifier, select
from shortlist.aware import CapacityAwareNetworkClassifier, _network
from shortlist.aware._network import draw_layers, slopes_of, values_of

CAPACITY = Capacity.fraction(0.05)


@pytest.fixture(scope="module")
def data():
    """Return 3,000 points in a plane; 150 of them are rare and lie on a ring."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * [1, 100]
    angle = rng.uniform(0, 2 * np.pi, 150)
    X[:150] = 2.2 * np.column_stack([np.cos(angle), 100 * np.sin(angle)])
    order = rng.permutation(3000)
    return X[order], np.where(np.arange(3000) < 150, "bad", "good")[order]


def fit(data, capacity=CAPACITY, **options):
    """Fit two small networks with a seed."""
    options = {"n_members": 2, "max_iter": 60, "alpha": 0.03, "random_state": 0, **options}
    return CapacityAwareNetworkClassifier(capacity, **options).fit(*data)


def forward(model, X):
    """Score by one network after the other, by the formula."""
    scores = []
    for member in range(model.n_members):
        values = X
        for layer, (weights, intercepts) in enumerate(
            zip(model.coefs_, model.intercepts_, strict=True)
        ):
            values = (np.tanh(values) if layer else values) @ weights[member] + intercepts[member]
        scores.append(values[:, 0])
    return np.mean(scores, axis=0)


@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_the_score_is_the_mean_of_the_networks(data, hidden):
    """The stored weights apply to the original features."""
    model = fit(data, hidden_layer_sizes=hidden)
    sizes = [2, *hidden, 1]
    assert [w.shape for w in model.coefs_] == [(2, a, b) for a, b in pairwise(sizes)]
    assert all(type(w) is np.ndarray for w in [*model.coefs_, *model.intercepts_])
    assert_allclose(model.score_samples(data[0]), forward(model, data[0]), rtol=1e-10)


def test_the_rare_label_gets_the_higher_scores(data):
    """It is detected although it sorts first; a ring needs hidden units."""
    X, y = data
    model = fit(data, hidden_layer_sizes=(12,), alpha=0.01)
    scores = model.score_samples(X)
    assert scores[y == "bad"].mean() > scores[y == "good"].mean() + 0.5


def test_the_same_seed_gives_the_same_weights(data):
    """Another seed gives another network."""
    first = fit(data)
    assert_array_equal(fit(data).coefs_[0], first.coefs_[0])
    assert not np.array_equal(fit(data, random_state=1).coefs_[0], first.coefs_[0])


@pytest.mark.parametrize("sizes", [[3, 1], [3, 4, 1], [3, 4, 5, 1]])
def test_slopes_are_those_of_finite_differences(sizes, rng):
    """Of a weighted sum of the scores, in every weight and intercept of every network."""
    X, gradient = rng.normal(size=(6, 3)), rng.normal(size=(2, 6))
    layers = [layer.astype(np.float64) for layer in draw_layers(sizes, 2, rng)]

    def total():
        return (values_of(layers, X)[-1][..., 0] * gradient).sum()

    slopes = slopes_of(layers, values_of(layers, X), gradient)
    for each, slope in zip(layers, slopes, strict=True):
        for place in np.ndindex(each.shape):
            each[place] += 1e-6
            above = total()
            each[place] -= 2e-6
            assert (above - total()) / 2e-6 == pytest.approx(slope[place], abs=1e-5)
            each[place] += 1e-6


def test_the_dual_variable_brings_the_flagged_rate_to_the_capacity(data):
    """After training, the smooth rate of each network lies near what it was trained for."""
    model = fit(data, max_iter=400)
    target = model._target_fraction(len(data[0]))
    for member in range(2):
        alone = pickle.loads(pickle.dumps(model))
        alone.coefs_ = [w[[member]] for w in model.coefs_]
        alone.intercepts_ = [w[[member]] for w in model.intercepts_]
        rate = expit(1.5 * alone.score_samples(data[0])).mean()
        assert rate == pytest.approx(target, rel=0.05)
    assert (model.prices_ > 0).all()


def test_it_keeps_the_promise(data):
    """The calibration sample is within the capacity, and every guarantee is available."""
    options = {"n_members": 2, "max_iter": 60, "alpha": 0.03, "random_state": 0}
    learner = CapacityAwareNetworkClassifier(**options)
    model = CapacityClassifier(learner, capacity=CAPACITY, guarantee="confident").fit(*data)
    assert model.calibration_.flagged_fraction <= 0.05
    assert model.calibration_.n_calibration == 1500


def test_weight_decay_is_chosen_where_it_matters(data):
    """A ring has no direction: strong decay misses it and is not chosen."""
    X, y = data
    assert fit((X, y), alpha="auto", max_iter=5).alpha_ == 0.03
    flat = fit((X, y), alpha=10.0, max_iter=0)
    assert np.isfinite(flat.score_samples(X)).all()


def test_training_for_the_capacity_changes_the_network(data):
    """Without steps after the log loss, the capacity plays no part."""
    wider = Capacity.fraction(0.4)
    plain, same = fit(data, max_iter=0), fit(data, wider, max_iter=0)
    assert_array_equal(plain.coefs_[0], same.coefs_[0])
    assert not np.array_equal(fit(data).coefs_[0], fit(data, wider).coefs_[0])


def test_of_many_items_a_sample_trains(data, monkeypatch):
    """It is stratified; the result differs, but detects as well."""
    whole = fit(data)
    monkeypatch.setattr(_network, "_MOST_ITEMS", 1_000)
    model = fit(data, alpha=0.01, hidden_layer_sizes=(12,))
    assert not np.array_equal(fit(data).coefs_[0], whole.coefs_[0])
    X, y = data
    top = select(model.score_samples(X), CAPACITY)
    assert np.mean(y[top] == "bad") > 2 * np.mean(y == "bad")


def test_a_network_can_be_stored_without_code(data):
    """skops needs to trust types of this package, numbers and arrays only."""
    skops = pytest.importorskip("skops.io")
    model = fit(data)
    stored = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=stored)
    assert all(name.startswith(("shortlist.", "numpy.", "fractions.")) for name in unknown)
    assert_array_equal(
        skops.loads(stored, trusted=unknown).predict(data[0]), model.predict(data[0])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C must be greater than 0; got 0"),
        ({"alpha": -1}, "alpha must be 'auto', or not negative; got -1"),
        ({"n_members": 0}, "n_members must be a whole number of at least 1; got 0"),
        ({"max_iter": -1}, "max_iter must be a whole number of at least 0"),
        ({"hidden_layer_sizes": (4, 0)}, "each of hidden_layer_sizes must be a whole number"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    """The error names the parameter and what it must be."""
    with pytest.raises(ValueError, match=message):
        fit(data, **options)
