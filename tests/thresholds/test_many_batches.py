"""A promise for the next batches together is exact, and costs less than one for each."""

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity, CapacityClassifier, calibrate_threshold
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds.guarantees import Place, _overrun_probability, next_batch_place


def urn(k, n, max_flags, batch, n_batches):
    """Return the same probability from Polya's urn, without any integral.

    Given earlier batches with f flags among t items, the next item is flagged with probability
    (k + 1 + f) / (n + 1 + t). The urn fills batch after batch; only the total f matters later.
    """
    totals = np.zeros(n_batches * max_flags + 1)
    totals[0] = 1.0
    for number in range(n_batches):
        new = np.zeros_like(totals)
        for f in np.flatnonzero(totals):
            law = stats.betabinom(batch, k + 1 + f, n - k + number * batch - f)
            flags = np.arange(max_flags + 1)
            new[f + flags] += totals[f] * law.pmf(flags)
        totals = new
    return 1 - totals.sum()


@pytest.mark.parametrize("n_batches", [1, 2, 5])
@pytest.mark.parametrize(("k", "n"), [(0, 20), (3, 100), (12, 300)])
def test_the_probability_is_that_of_the_urn(k, n, n_batches):
    """Two derivations, one number."""
    found = _overrun_probability(Place(k), n, 5, 100, n_batches)
    assert found == pytest.approx(urn(k, n, 5, 100, n_batches), abs=1e-10)


@pytest.mark.parametrize("k", [3, 10, 40])
def test_the_integral_agrees_with_the_closed_form_of_one_batch(k):
    """Nearly one batch: the exponent 1 + 1e-12 takes the way of many."""
    closed = _overrun_probability(Place(k), 1_000, 20, 1_000, 1)
    assert _overrun_probability(Place(k), 1_000, 20, 1_000, 1 + 1e-12) == pytest.approx(
        closed, rel=1e-9
    )


# For n scores, m batches of N items and a capacity of 2 %: k of the joint promise, and of one with
# an error of 0.05 / m for each batch.
JOINT_AND_SPLIT = {
    (1_000, 1_000, 1): (10, 10),
    (1_000, 1_000, 5): (8, 7),
    (1_000, 1_000, 100): (5, 4),
    (1_000, 10_000, 5): (11, 9),
    (1_000, 10_000, 20): (10, 7),
    (1_000, 10_000, 100): (9, 6),
    (4_000, 1_000, 20): (37, 36),
    (4_000, 10_000, 100): (53, 48),
}


@pytest.mark.parametrize(("n", "batch", "m"), JOINT_AND_SPLIT)
def test_a_joint_promise_costs_less_than_splitting_the_error(n, batch, m):
    """The more so, the more the uncertainty lies in the threshold, which all batches share."""
    joint = next_batch_place(n, batch // 50, batch, error=0.05, n_batches=m).k
    split = next_batch_place(n, batch // 50, batch, error=0.05 / m).k
    assert (joint, split) == JOINT_AND_SPLIT[n, batch, m]


def test_the_rule_is_the_largest_that_keeps_the_promise():
    """k keeps it, and k + 1 would not."""
    k = next_batch_place(300, 10, 100, error=0.05, n_batches=4).k
    assert urn(k, 300, 10, 100, 4) <= 0.05 < urn(k + 1, 300, 10, 100, 4)


@pytest.mark.parametrize(("k", "n"), [(-1, 20), (0, 20), (3, 100)])
@pytest.mark.parametrize("n_batches", [1, 3])
def test_a_share_between_two_places_has_the_probability_of_a_mixture_of_urns(k, n, n_batches):
    """With a share of 1 it is the next place, and with half of it something in between."""
    whole = [_overrun_probability(Place(each), n, 5, 100, n_batches) for each in (k, k + 1)]
    all_of_it = _overrun_probability(Place(k, 1.0), n, 5, 100, n_batches)
    assert all_of_it == pytest.approx(whole[1], abs=1e-9)
    assert whole[0] < _overrun_probability(Place(k, 0.5), n, 5, 100, n_batches) < whole[1]


def test_the_share_spends_the_rest_of_the_error():
    """The probability is the error itself, and never above it."""
    for n_batches in (1, 4):
        place = next_batch_place(300, 10, 100, error=0.05, n_batches=n_batches)
        assert 0 < place.share < 1
        found = _overrun_probability(place, 300, 10, 100, n_batches)
        assert 0.05 - 1e-6 < found <= 0.05


def test_too_few_scores_are_reported_with_the_batches():
    """The warning names them."""
    with pytest.warns(InsufficientCalibrationWarning, match="7 batches, needs more"):
        calibrate_threshold(
            np.arange(20), Capacity.count(5, per=100), guarantee="next-batch", n_batches=7
        )


@pytest.mark.parametrize("n_batches", [0, -1, 1.5, True])
def test_the_number_of_batches_is_a_whole_number(n_batches):
    """Half a batch is refused."""
    with pytest.raises(ValueError, match="n_batches"):
        calibrate_threshold(
            np.arange(9), Capacity.count(5, per=10), guarantee="next-batch", n_batches=n_batches
        )


def test_batches_belong_to_the_guarantee_for_batches():
    """A promise about a rate does not know batches."""
    with pytest.raises(ValueError, match="belongs to guarantee='next-batch'"):
        calibrate_threshold(
            np.arange(9), Capacity.count(5, per=10), guarantee="confident", n_batches=3
        )


def test_classifiers_promise_for_many_batches(rng):
    """The classifier's threshold is that of its calibration scores, also after a change."""
    from sklearn.linear_model import LogisticRegression

    X = rng.normal(size=(3_000, 2))
    y = rng.uniform(size=3_000) < 1 / (1 + np.exp(3 - 2 * X[:, 0]))
    model = CapacityClassifier(
        LogisticRegression(),
        capacity=Capacity.count(50, per=1_000),
        rare_label=True,
        guarantee="next-batch",
        n_batches=20,
        random_state=0,
        cv=0.5,
    ).fit(X, y)
    n = model.calibration_.n_calibration
    assert model.calibration_.k == next_batch_place(n, 50, 1_000, error=0.05, n_batches=20).k
    other = model.with_capacity(Capacity.count(60, per=1_000))
    assert other.calibration_.k == next_batch_place(n, 60, 1_000, error=0.05, n_batches=20).k
