"""Of very many calibration scores some are drawn, and everything that is promised still holds."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist._core import ids
from shortlist._core.ids import is_drawn
from shortlist.thresholds import samples
from shortlist.thresholds.samples import CalibrationSample, RowFacts

N = 20_000


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Let twenty thousand scores be too many."""
    for module in (ids, samples):
        monkeypatch.setattr(module, "MOST_ITEMS", 4_000)


def make(*, is_rare=None, **known):
    """Return what is kept of many scores, each of which is the position of its item."""
    facts = RowFacts(np.empty((N, 1)), **known)
    return CalibrationSample.of(
        np.arange(float(N)), np.arange(N), facts, tie_keys=None, is_rare=is_rare
    )


def test_about_as_many_as_allowed_are_drawn_and_never_more():
    """Whatever the number of items, from all parts of them; a few are kept whole."""
    for n in (4_001, N, 10**6):
        drawn = np.flatnonzero(is_drawn(np.arange(n), n))
        assert 0.8 * 4_000 < drawn.size <= 4_000
        assert abs(drawn.mean() / n - 0.5) < 0.03
    assert is_drawn(np.arange(4_000), 4_000).all()


def test_blocks_are_drawn_as_the_whole():
    """An item is drawn by its position alone."""
    blocks = np.split(np.arange(N), [17, 5_000])
    together = np.concatenate([is_drawn(block, N) for block in blocks])
    np.testing.assert_array_equal(together, is_drawn(np.arange(N), N))


def test_a_sample_keeps_labels_and_scores_together():
    """Everything that is known about an item goes with it."""
    sample = make(is_rare=np.arange(N) % 3 == 0)
    assert sample.scores.size <= 4_000
    np.testing.assert_array_equal(sample.is_rare, np.rint(sample.scores) % 3 == 0)


@pytest.mark.parametrize("name", ["groups", "segments"])
def test_groups_and_segments_are_kept_whole(name):
    """Items of a group depend on each other, and a segment may have few items."""
    assert make(**{name: np.arange(N) % 7}).scores.size == N


@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident", "simultaneous"])
def test_a_model_does_not_grow_with_its_calibration_data(guarantee):
    """It keeps its promise, can be asked for other capacities, and is saved with what it has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y = rng.random(N) < 0.02 + 0.2 * (X[:, 0] > 1)
    model = CapacityClassifier(
        LogisticRegression(), capacity=Capacity.fraction(0.1), guarantee=guarantee, cv=0.5
    )
    model.fit(X, y).recalibrate(X)
    saved = pickle.loads(pickle.dumps(model))
    (found,) = saved.with_capacity(Capacity.fraction(0.2)).calibrations_
    assert found.n_calibration == saved.calibration_scores_.size <= 4_000
    assert found == model.with_capacity(Capacity.fraction(0.2)).calibrations_[0]
    assert 0.08 < model.flag(X).mean() < 0.12
