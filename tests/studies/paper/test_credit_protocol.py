"""How samples are drawn, and how a rule is judged."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from shortlist import adjusted_detection_score
from studies.paper.credit_protocol import (
    capacity_of,
    draw_split,
    judge,
    judge_threshold,
)
from studies.tables import read_table, summarise, write_table


@pytest.fixture
def split(rng):
    """Return a split of 1,000 numbered clients, a fifth of them rare."""
    X, y = np.arange(1_000.0).reshape(-1, 1), (np.arange(1_000) % 5 == 0).astype(int)
    return draw_split(X, y, prevalence=0.05, rng=rng, n_train=200, n_test=300)


def test_samples_are_disjoint_and_have_the_nominal_share(split):
    """Nobody is drawn twice, and five per cent are rare in both samples."""
    drawn = np.concatenate([split.X_train, split.X_test]).ravel()
    assert np.unique(drawn).size == 500
    assert (split.y_train.sum(), split.y_test.sum()) == (10, 15)


def test_halves_share_out_the_training_sample(split):
    """Each training item is in one half."""
    both = np.concatenate([split.fit_half, split.calibration_half])
    assert_array_equal(np.sort(both), np.arange(200))


def test_the_others_are_all_but_the_test_sample(split):
    """The ceiling trains on everybody else."""
    assert split.X_others.shape == (700, 1)
    assert not np.isin(split.X_others, split.X_test).any()


def test_too_few_rare_clients_are_reported(rng):
    """The message counts them."""
    with pytest.raises(ValueError, match="there are 5"):
        draw_split(
            np.zeros((1_000, 1)), (np.arange(1_000) < 5).astype(int), prevalence=0.05, rng=rng
        )


def test_a_rule_is_judged_by_m(rng):
    """The metric of the package at the nominal capacity, and the counts behind it."""
    y = (rng.uniform(size=500) < 0.1).astype(int)
    flagged = rng.uniform(size=500) < 0.2
    capacity = capacity_of(2, 0.02)
    outcome = judge(flagged, y, capacity)
    expected = adjusted_detection_score(y, flagged.astype(int), capacity=capacity, rare_label=1)
    assert outcome.adjusted_detection == pytest.approx(expected)
    assert (outcome.flagged, outcome.found) == (flagged.sum(), (flagged & (y == 1)).sum())


def test_the_threshold_is_strict():
    """A tie at the threshold is not flagged."""
    scores, y = np.repeat([3.0, 2.0, 1.0], [1, 4, 95]), np.arange(100) % 2
    assert judge_threshold(scores, scores, y, capacity_of(1, 0.03)).flagged == 1


def test_tables_survive_a_file(tmp_path):
    """Numbers come back as numbers, with all their digits."""
    table = [{"method": "a", "n": 1, "value": 1 / 3}, {"method": "a", "n": 2, "value": 1.0}]
    assert read_table(write_table(table, tmp_path / "sub" / "table.csv")) == table
    (row,) = summarise(table, ["method"], "value")
    assert row["count"] == 2
    assert row["mean"] == pytest.approx(2 / 3)
    assert row["error"] == pytest.approx(1 / 3)
