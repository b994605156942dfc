"""All calibrations on a growing sample together: exact, by the law of a walk."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, Worth, calibrate_threshold
from shortlist.exceptions import CapacityError
from shortlist.thresholds.guarantees import anytime_place, confident_place, largest
from shortlist.thresholds.samples import CalibrationSample
from shortlist.thresholds.terms import Terms

pytestmark = pytest.mark.filterwarnings(
    "ignore::shortlist.exceptions.InsufficientCalibrationWarning"
)


def chance_of_ever(k_of, c, n_most):
    """Return the exact probability that some calibration of 1, 2, ... items has a rate above c.

    The rate is above c if at most k of the scores lie above the level that a share c exceeds.
    """
    kept, over = np.ones(1), 0.0
    for n in range(1, n_most + 1):
        kept = np.convolve(kept, [1 - c, c])  # the law of that number, of samples never over
        k = k_of(n)
        over += kept[: k + 1].sum()
        kept[: k + 1] = 0
    return over


@pytest.mark.parametrize(("c", "error"), [("0.05", 0.05), ("0.3", 0.2), ("0.5", 0.5), ("0.9", 0.1)])
def test_no_calibration_of_a_growing_sample_is_over(c, error):
    """The sample grows to 500 items, and is calibrated after each: exact to rounding."""
    c = Fraction(c)
    over = chance_of_ever(lambda n: anytime_place(n, c, error=error).k, float(c), 500)
    assert 0.2 * error < over <= error


def test_the_promise_of_each_calibration_does_not_add_up():
    """Under "confident", some calibration is over in far more than 5 % of all samples."""
    over = chance_of_ever(lambda n: confident_place(n, Fraction(1, 10), error=0.05).k, 0.1, 500)
    assert over > 0.2


@pytest.mark.parametrize("c", [Fraction(1, 100), Fraction(1, 3), Fraction(99, 100)])
def test_the_place_is_the_largest_that_the_average_ratio_allows(c):
    """Against the integral in exact numbers: all p below c, weighted alike."""
    for n in (1, 7, 30, 60):

        def ratio(k, n=n):
            terms = [
                Fraction((-1) ** j * comb(n - k, j), k + j + 1) * c ** (k + j + 1)
                for j in range(n - k + 1)
            ]
            return sum(terms) / c / (c**k * (1 - c) ** (n - k))

        found = [k for k in range(n + 1) if ratio(k) >= 20]
        assert anytime_place(n, c, error=0.05).k == max(found, default=-1)


@pytest.mark.parametrize("n", [0, 1, 1_000, 10**6])
def test_nothing_and_everything(n):
    """A capacity of 0 flags nothing, one of 1 everything; between them, never more than c n."""
    assert anytime_place(n, Fraction(0), error=0.05).k == -1
    assert anytime_place(n, Fraction(1), error=0.05).k == n
    assert anytime_place(n, Fraction(1, 10**5), error=0.05).k <= n / 10**5
    assert anytime_place(n, Fraction(1, 2), error=0.999).k <= n / 2


def test_growing_samples_use_more_and_more():
    """At a capacity of 5 %: figures of the documentation."""
    uses = [(anytime_place(n, Fraction(1, 20), error=0.05).k + 1) / (n + 1) for n in SIZES]
    assert [round(use / 0.05, 2) for use in uses] == [0.64, 0.84, 0.92, 0.97]


SIZES = (1_000, 7_000, 30_000, 365_000)


def test_the_threshold_of_a_classifier():
    """One model, one threshold; a growing table is recalibrated whole, with and without ids."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 2)), np.arange(900) % 9 == 0
    model = CapacityClassifier(
        LogisticRegression(), capacity=Capacity.fraction(0.1), guarantee="anytime"
    ).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.calibration_.k == anytime_place(450, Fraction(1, 10), error=0.05).k
    assert "after all calibrations together, each with all items so far" in model.promise_
    for n in (300, 900):
        found = model.recalibrate(X[:n]).calibration_
        scores = model.score_samples(X[:n])
        alone = calibrate_threshold(scores, Capacity.fraction(0.1), guarantee="anytime")
        assert found.k == alone.k == anytime_place(n, Fraction(1, 10), error=0.05).k
        assert found.share == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"capacity": Capacity.effort(3, per=30), "efforts": [1.0] * 60}, CapacityError, "work"),
        ({"groups": np.arange(60) // 2}, ValueError, "anytime' and groups cannot be combined"),
        ({"capacity": Capacity.multiple(2), "y": [1] * 6 + [0] * 54}, ValueError, "stated preval"),
        ({"worth": Worth.precision(0.5), "y": [1] * 6 + [0] * 54}, ValueError, "no promised prec"),
    ],
)
def test_what_no_walk_covers_is_refused(options, error, message):
    """With the reason, and what to do."""
    options = {"capacity": Capacity.fraction(0.1), **options}
    scores = np.linspace(0, 1, 60)
    with pytest.raises(error, match=message):
        calibrate_threshold(scores, guarantee="anytime", **options)
    stated = {"capacity": Capacity.multiple(2), "prevalence": 0.1}
    assert calibrate_threshold(scores, guarantee="anytime", **stated).k >= 0


class Untrained(LogisticRegression):
    """A model that must not be fitted."""

    def fit(self, X, y):
        """Fail, for the refusal should have come before."""
        raise AssertionError("fitted before the promise was checked")


@pytest.mark.parametrize(
    ("options", "known", "message"),
    [
        ({"capacity": Capacity.multiple(2)}, {}, r"got Capacity\.multiple\(2\)\. Use"),
        ({"worth": Worth.precision(0.5)}, {}, "no promised precision"),
        ({}, {"groups": np.arange(60) // 2}, "groups cannot be combined"),
        ({"segment_capacities": {"a": Capacity.multiple(1)}}, {"segments": ["a"] * 60}, "stated"),
    ],
)
def test_a_classifier_refuses_before_it_fits_a_model(options, known, message):
    """A fit may take an hour; what cannot be promised is said at once."""
    options = {"capacity": Capacity.fraction(0.1), "guarantee": "anytime"} | options
    model = CapacityClassifier(Untrained(), **options)
    with pytest.raises(ValueError, match=message):
        model.fit(np.linspace(0, 1, 60)[:, np.newaxis], np.arange(60) % 6 == 0, **known)


def test_samples_that_are_drawn_anew_are_refused():
    """Of more than a million rows, others are drawn as the table grows."""
    sample = CalibrationSample(np.arange(1_000_001.0))
    with pytest.raises(ValueError, match="up to 1,000,000 calibration items"):
        Terms("anytime").thresholds([sample], Capacity.fraction(0.1))


def test_folds_are_refused():
    """Each fold has a sample of its own, which does not grow."""
    with pytest.raises(ValueError, match="needs one model with one threshold"):
        Terms("anytime").thresholds([CalibrationSample(np.arange(9.0))] * 2, Capacity.fraction(0.1))


def test_the_search_ends_at_its_limits():
    """Nothing holds, or all does."""
    assert largest(lambda k: False, 5) == -1
    assert largest(lambda k: True, 5) == 5
