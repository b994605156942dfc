"""Small networks trained for a capacity."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from shortlist import Capacity, CapacityClassifier, select
from shortlist.aware import CapacityAwareLinearClassifier, CapacityAwareNetworkClassifier

torch = pytest.importorskip("torch")
CAPACITY = Capacity.fraction(0.05)
LOSSES = ["lagrangian", "detection", "pat-mat", "top-push"]


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
    """The stored weights apply to the original features and need no torch."""
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
    """Another seed gives another network; torch's own generator is not used."""
    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = fit(data)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    assert_array_equal(fit(data).coefs_[0], first.coefs_[0])
    assert not np.array_equal(fit(data, random_state=1).coefs_[0], first.coefs_[0])


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


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_keeps_the_promise(data, loss):
    """The calibration sample is within the capacity, and every guarantee is available."""
    options = {"loss": loss, "n_members": 2, "max_iter": 60, "alpha": 0.03, "random_state": 0}
    learner = CapacityAwareNetworkClassifier(**options)
    model = CapacityClassifier(learner, capacity=CAPACITY, guarantee="confident").fit(*data)
    assert model.calibration_.flagged_fraction <= 0.05
    assert model.calibration_.n_calibration == 1500
    assert np.isnan(model.estimator_.prices_).all() == (loss != "lagrangian")


def test_without_hidden_layers_it_is_a_scorecard(data):
    """The score is linear and close to that of the linear classifier with the same loss."""
    X, y = data
    X = X + np.outer(y == "bad", [1.5, 50])
    options = {"loss": "detection", "random_state": 0, "C": 0.1}
    model = fit((X, y), hidden_layer_sizes=(), alpha=0.0, max_iter=300, **options)
    scores = model.score_samples(X)
    assert_allclose(scores - scores[0], (X - X[0]) @ model.coef_[0], atol=1e-9)
    linear = CapacityAwareLinearClassifier(CAPACITY, **options).fit(X, y)
    direction = model.coef_[0] / np.linalg.norm(model.coef_[0] * [1, 100])
    other = linear.coef_[0] / np.linalg.norm(linear.coef_[0] * [1, 100])
    assert_allclose(direction * [1, 100], other * [1, 100], atol=0.05)


def test_weight_decay_is_chosen_where_it_matters(data):
    """A ring has no direction: strong decay misses it and is not chosen."""
    X, y = data
    assert fit((X, y), alpha="auto", max_iter=5).alpha_ == 0.03
    flat = fit((X, y), alpha=10.0, max_iter=0)
    assert np.isfinite(flat.score_samples(X)).all()


def test_a_network_with_hidden_layers_has_no_coef(data):
    """The error says where the weights are."""
    with pytest.raises(AttributeError, match="see coefs_"):
        fit(data).coef_  # noqa: B018


def test_training_for_the_capacity_changes_the_network(data):
    """Without steps after the log loss, the capacity plays no part."""
    wider = Capacity.fraction(0.4)
    plain, same = fit(data, max_iter=0), fit(data, wider, max_iter=0)
    assert_array_equal(plain.coefs_[0], same.coefs_[0])
    assert not np.array_equal(fit(data).coefs_[0], fit(data, wider).coefs_[0])


def test_many_items_are_looked_at_in_batches(data):
    """Batches are stratified; the result differs, but detects as well."""
    model = fit(data, batch_size=400, alpha=0.01, hidden_layer_sizes=(12,))
    assert not np.array_equal(model.coefs_[0], fit(data).coefs_[0])
    X, y = data
    top = select(model.score_samples(X), CAPACITY)
    assert np.mean(y[top] == "bad") > 2 * np.mean(y == "bad")


def test_prediction_needs_no_torch(data, monkeypatch):
    """A pickled model predicts where torch cannot be imported."""
    model = fit(data)
    stored = pickle.dumps(model)
    expected = model.predict(data[0])
    monkeypatch.setitem(sys.modules, "torch", None)
    assert_array_equal(pickle.loads(stored).predict(data[0]), expected)


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


def test_without_torch_the_error_names_the_extra(data, monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "shortlist.aware._training", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'shortlist\[network\]'"):
        fit(data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of 'lagrangian'"),
        ({"C": 0}, "C must be greater than 0; got 0"),
        ({"alpha": -1}, "alpha must be 'auto', or not negative; got -1"),
        ({"n_members": 0}, "n_members must be a whole number of at least 1; got 0"),
        ({"max_iter": -1}, "max_iter must be a whole number of at least 0"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2"),
        ({"hidden_layer_sizes": (4, 0)}, "each of hidden_layer_sizes must be a whole number"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    """The error names the parameter and what it must be."""
    with pytest.raises(ValueError, match=message):
        fit(data, **options)
