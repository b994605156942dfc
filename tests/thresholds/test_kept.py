"""Large calibration samples are kept in part, and later capacities are never less strict."""

import pickle

import numpy as np
import pytest

from shortlist import Capacity, calibrate_threshold
from shortlist.exceptions import CapacityError
from shortlist.thresholds import CalibrationSample, ReferencePrevalence, Terms, ThresholdRule, _kept
from shortlist.worth import Worth

N = 20_000
KINDS = {
    "continuous": lambda rng: rng.normal(size=N),
    "tied": lambda rng: rng.integers(0, 40, N).astype(float),
    "infinite": lambda rng: np.where(rng.random(N) < 0.3, np.inf, rng.normal(size=N)),
}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """Let twenty thousand scores be too many."""
    limits = {"MOST_SCORES": 4_000, "_TOP": 1_000, "_NEAR": 100, "_SAMPLED": 500, "_CHUNK": 3_000}
    for name, value in limits.items():
        monkeypatch.setattr(_kept, name, value)


def make(kind, hashed=True, terms=None, share=0.2):
    """Return a rule from many scores, and the same rule after it was saved."""
    rng = np.random.default_rng(0)
    keys = rng.random(N) if hashed else None
    sample = CalibrationSample(KINDS[kind](rng), keys)
    rule = ThresholdRule([sample], Capacity.fraction(share), terms or Terms())
    return rule, pickle.loads(pickle.dumps(rule))


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident", "simultaneous"])
@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_other_capacities_are_exact_or_a_little_stricter(kind, hashed, guarantee):
    """At the top and next to the threshold the cut is the same; elsewhere it is hardly stricter."""
    full, saved = make(kind, hashed, Terms(guarantee=guarantee))
    assert saved.samples[0].scores.size < 4_000
    assert saved.calibrations == full.calibrations
    for k in (0, 1, 30, 999, 2_000, 3_950, 4_000, 4_050, 9_000, 17_000, 20_000):
        capacity = Capacity.count(k, per=N)
        want = full.with_capacity(capacity).calibrations[0]
        got = saved.with_capacity(capacity).calibrations[0]
        assert (got.k, got.n_calibration) == (want.k, want.n_calibration)
        assert got.flagged_fraction <= want.flagged_fraction
        assert (got.value, -got.tie_key) >= (want.value, -want.tie_key)
        if k < 1_000 or 3_900 < want.k < 4_100:
            assert got == want
        if hashed:
            assert got.flagged_fraction >= want.flagged_fraction - 0.01


def test_the_scores_stand_for_all():
    """Drift and controllers get scores with the distribution of all."""
    full, saved = make("continuous")
    shares = np.linspace(0, 1, 101)
    want = np.quantile(full.calibration_scores, shares)
    got = np.quantile(saved.calibration_scores, shares)
    assert saved.calibration_scores.size == 4_000
    np.testing.assert_allclose(got[5:95], want[5:95], atol=0.15)


def test_what_needs_every_score_is_refused_or_kept_whole():
    """A worth needs all scores; groups and efforts are never thinned."""
    _, saved = make("continuous")
    with pytest.raises(CapacityError, match="need every calibration score"):
        saved.with_capacity(terms=Terms(worth=Worth.value(0.5)))
    sample = CalibrationSample(np.arange(float(N)), groups=np.arange(N))
    rule = ThresholdRule([sample], Capacity.fraction(0.1), Terms())
    assert pickle.loads(pickle.dumps(rule)).samples[0].scores.size == N


def test_a_multiple_of_an_estimated_prevalence_stays_covered():
    """Without the labels, half of the error covers the prevalence, so the cut is stricter."""
    terms = Terms(guarantee="confident", reference=ReferencePrevalence(None, 400, N))
    _, saved = make("continuous", terms=terms)
    looser = calibrate_threshold(
        np.asarray(saved.samples[0].scores), Capacity.fraction(0.04), guarantee="confident"
    )
    got = saved.with_capacity(Capacity.multiple(2)).calibrations[0]
    assert got.capacity_fraction < looser.capacity_fraction


def test_small_samples_are_kept_whole():
    """Up to the limit, nothing changes."""
    sample = CalibrationSample(np.arange(4_000.0))
    rule = ThresholdRule([sample], Capacity.fraction(0.1), Terms())
    assert rule.without_bulk().samples == [sample]
