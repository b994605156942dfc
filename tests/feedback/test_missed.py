"""Estimates of what is missed: exact intervals, unknown outcomes, periods and bad input."""

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from shortlist import Capacity, select
from shortlist.feedback import estimate_missed
from shortlist.feedback._reviews import from_shares, from_strata


def reviewed(*, found=30, hits=12, probes=200, unknown=0, probability=0.1):
    """Return outcomes, reasons and probabilities of cases that were reviewed."""
    outcomes = [True] * found + [True] * hits + [None] * unknown
    outcomes += [False] * (probes - hits - unknown)
    reasons = ["score"] * found + ["probe"] * probes
    return outcomes, reasons, [1.0] * found + [probability] * probes


@pytest.mark.parametrize(("total", "drawn"), [(30, 10), (60, 6), (20, 15), (8, 8), (200, 3)])
def test_probes_of_one_batch_are_covered(total, drawn):
    """By enumeration: drawn without replacement, whatever the number of rare cases."""
    for rare in range(total + 1):
        hits = np.arange(max(0, drawn - (total - rare)), min(rare, drawn) + 1)
        covered = 0.0
        for x in hits:
            low, high = from_shares(int(x), drawn / total, error=0.05)
            covered += hypergeom.pmf(x, total, rare, drawn) * (low <= rare <= high)
        assert covered >= 0.95 - 1e-9


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_equal_probabilities_are_covered_exactly(share):
    """By enumeration: independent draws with one probability."""
    for rare in (0, 1, 3, 10, 60, 300):
        covered = sum(
            binom.pmf(x, rare, share)
            for x in range(rare + 1)
            if binom.pmf(x, rare, share) > 1e-12
            and _covers(from_shares(x, share, error=0.05), rare)
        )
        assert covered >= 0.95 - 1e-9


def _covers(interval, value):
    return interval.low <= value <= interval.high


def test_strata_with_equal_weights_are_poisson():
    """With equal weights the gamma interval is the exact one for a Poisson count."""
    from scipy.stats import chi2

    low, high = from_strata(np.array([4, 8]), np.array([0.1, 0.1]), error=0.05)
    assert low == pytest.approx(10 * chi2.ppf(0.025, 24) / 2)
    assert high == pytest.approx(10 * chi2.ppf(0.975, 26) / 2)


def test_strata_cover():
    """Two strata with different shares are covered in a design where one weight dominates."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(1_500):
        hits = np.array([rng.binomial(40, 0.3), rng.binomial(60, 0.03)])
        missed += not _covers(from_strata(hits, np.array([0.3, 0.03]), error=0.05), 100)
    assert missed / 1_500 <= 0.05


def test_an_estimate_counts_what_it_should():
    """Thirty found by score and twelve of two hundred probes at one in ten: 108 missed."""
    answer = estimate_missed(*reviewed())
    assert (answer.n_probes, answer.n_hits, answer.found) == (200, 12, 30)
    assert answer.missed == pytest.approx(108)
    assert answer.detection == pytest.approx(42 / 150)
    assert answer.missed_low < 108 < answer.missed_high
    assert answer.is_enough
    assert math.isnan(answer.prevalence)
    assert answer.has_fallen_below(0.9)
    assert not answer.has_fallen_below(0.3)
    assert "Detection: 28.0 %" in str(answer)


def test_all_cases_of_a_batch_give_the_prevalence():
    """With the cases that were not selected, the whole batch is known."""
    rng = np.random.default_rng(1)
    is_rare = rng.random(5_000) < 0.05
    picked = select(
        rng.normal(size=5_000) + is_rare, Capacity.count(500), probe=0.5, return_details=True
    )
    outcomes = np.where(picked.flagged, is_rare, None)
    answer = estimate_missed(outcomes, picked.reasons, picked.probabilities)
    assert answer.prevalence_low <= is_rare.mean() <= answer.prevalence_high
    assert answer.missed_low <= is_rare[~picked.flagged].sum() <= answer.missed_high


def test_unknown_outcomes_widen_the_interval():
    """Probes without an outcome may all be rare, or none of them."""
    known, late = estimate_missed(*reviewed()), estimate_missed(*reviewed(unknown=20))
    assert late.missed_high > known.missed_high
    assert late.detection_low < known.detection_low
    assert late.detection_high >= known.detection_high
    assert late.n_unknown == 20


def test_no_estimate_uses_what_nobody_reviewed():
    """An outcome of a case that was not selected is an error that names the row."""
    outcomes, reasons, probabilities = reviewed(probes=20, hits=1)
    with pytest.raises(ValueError, match=r"never selected.*row 50"):
        estimate_missed([*outcomes, True], [*reasons, "not selected"], [*probabilities, 0.1])


def test_bad_input_names_the_row():
    """Repeated ids, probes without a probability and words as outcomes are refused."""
    outcomes, reasons, probabilities = reviewed(probes=20, hits=1)
    with pytest.raises(ValueError, match="'a' comes 2 times"):
        estimate_missed(outcomes, reasons, probabilities, ids=["a", "a", *range(48)])
    for wrong in (None, 0.0, 1.2):
        with pytest.raises(ValueError, match=r"probability.*row 49"):
            estimate_missed(outcomes, reasons, [*probabilities[:-1], wrong])
    with pytest.raises(ValueError, match=r"outcome True, False or None.*row 0"):
        estimate_missed(["fraud", *outcomes[1:]], reasons, probabilities)
    with pytest.raises(ValueError, match="one entry per outcome"):
        estimate_missed(outcomes, reasons[1:], probabilities)


def test_few_hits_are_not_enough_yet():
    """With three hits the answer says how many probes it would take; with none it cannot."""
    answer = estimate_missed(*reviewed(hits=3))
    assert str(answer).startswith("Not enough yet.")
    assert answer.probes_needed == 667
    assert estimate_missed(*reviewed(hits=0)).probes_needed is None
    assert estimate_missed(*reviewed(hits=0)).missed_low == 0


def test_without_probes_nothing_is_known():
    """Detection lies anywhere between 0 and 1 if nobody looked below the cut."""
    answer = estimate_missed([True, False], ["score", "score"], [1.0, 1.0])
    assert (answer.detection_low, answer.detection_high) == (0.0, 1.0)
    assert answer.missed_high == math.inf


def test_repeated_looks_spend_the_error():
    """The intervals of all looks together hold: each look is wider than the one look."""
    once, third = estimate_missed(*reviewed()), estimate_missed(*reviewed(), look=3)
    assert third.missed_high > once.missed_high
    assert sum(1 / (k * (k + 1)) for k in range(1, 1_000)) < 1


def test_periods_get_their_own_estimates():
    """Each period is estimated on its own, and all together."""
    one, other = reviewed(hits=10), reviewed(hits=20, probability=0.2)
    columns = [first + second for first, second in zip(one, other, strict=True)]
    answer = estimate_missed(*columns, periods=["may"] * 230 + ["june"] * 230)
    assert list(answer.by_period) == ["june", "may"]
    assert answer.by_period["may"].missed == pytest.approx(90)
    assert answer.missed == pytest.approx(90 + 80)


def test_a_challenger_is_judged_on_the_same_probes():
    """A model that would have selected all hits and lost two found cases is better."""
    outcomes, reasons, probabilities = reviewed(found=30, hits=12, probes=200)
    chosen = [True] * 28 + [False] * 2 + [True] * 12 + [False] * 188
    result = estimate_missed(outcomes, reasons, probabilities, challenger=chosen).challenger
    assert (result.gained, result.lost) == (pytest.approx(120), 2)
    assert result.is_better


def test_a_draw_without_a_slot_counts_as_unknown():
    """It may have been rare or not: the interval covers both, and nobody can have its outcome."""
    outcomes, reasons, probabilities = reviewed()
    plain = estimate_missed(outcomes, reasons, probabilities)
    more = [None], ["probe without a slot"], [0.1]
    columns = [own + extra for own, extra in zip(reviewed(), more, strict=True)]
    answer = estimate_missed(*columns)
    assert (answer.n_probes, answer.n_hits, answer.n_unknown) == (201, 12, 1)
    assert answer.missed_high > plain.missed_high
    assert answer.missed_low <= plain.missed_low
    assert answer.found == plain.found
    with pytest.raises(ValueError, match="row 230"):
        estimate_missed([*outcomes, True], *columns[1:])


def test_words_may_be_spelled_in_another_way_but_retries_are_refused():
    """`Probe` is a probe; a retry has no reason of its own."""
    outcomes, reasons, probabilities = reviewed()
    spelled = estimate_missed(outcomes, [f" {word.title()}" for word in reasons], probabilities)
    assert repr(spelled) == repr(estimate_missed(outcomes, reasons, probabilities))
    with pytest.raises(ValueError, match="row 3"):
        estimate_missed(outcomes, [*reasons[:3], "seen before", *reasons[4:]], probabilities)


def test_a_period_without_any_draw_is_known_by_its_probabilities():
    """Nobody was drawn in the second period, but its cases say how likely that was."""
    outcomes = [True, False, None, None, None]
    reasons = ["probe", "probe", "not selected", "not selected", "not selected"]
    answer = estimate_missed(outcomes, reasons, [0.2, 0.2, 0.2, 0.1, 0.1], periods=[1, 1, 1, 2, 2])
    second = answer.by_period[2]
    assert (second.n_probes, second.missed, second.missed_low) == (0, 0.0, 0.0)
    assert second.missed_high == 2.0
