"""Invitations: hardly ever do more come than there are slots, in exactly enumerated worlds."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.thresholds import count_invitations

CONFIDENCES = ["0.5", "0.8", "0.95", "0.99"]
#: A probability that equals the error to nine digits is taken for a larger one.
ROUNDED = 1 + Fraction(1, 10**8)


def tail(m, q, slots):
    """Return the probability that more than so many of m come, exactly."""
    q = Fraction(q)
    return sum(comb(m, x) * q**x * (1 - q) ** (m - x) for x in range(slots + 1, m + 1))


def law_of(chances):
    """Return the law of how many come, from all 2^n ways to come or not."""
    law = [Fraction(0)] * (len(chances) + 1)
    for come in product((0, 1), repeat=len(chances)):
        p = Fraction(1)
        for each, chance in zip(come, chances, strict=True):
            p *= Fraction(chance) if each else 1 - Fraction(chance)
        law[sum(come)] += p
    return law


@pytest.mark.parametrize(
    ("who", "invited"),
    [({"rate": 0.6}, 72), ({"rate": 0.3}, 138), ({"history": (310, 520)}, 67),
     ({"history": (31, 52)}, 60), ({"rate": 1}, 50), ({"history": (52, 52)}, 50)],
    ids=str,
)  # fmt: skip
def test_fifty_slots(who, invited):
    """The figures of the theory; what is less known invites fewer."""
    assert count_invitations(50, **who) == invited


@pytest.mark.parametrize("slots", [0, 1, 3, 7])
@pytest.mark.parametrize("rate", ["0.05", "0.3", "0.5", "0.9"])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_largest_number_that_keeps_the_slots(slots, rate, confidence):
    """By the binomial law in exact numbers: this many keep them, and one more would not."""
    error = 1 - Fraction(confidence)
    m = count_invitations(slots, rate=float(rate), confidence=float(confidence))
    assert tail(m, rate, slots) <= error < tail(m + 1, rate, slots) * ROUNDED


@given(
    chances=st.lists(st.integers(0, 8).map(lambda x: x / 8), max_size=9),
    slots=st.integers(0, 5),
    confidence=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_cases_of_different_chances(chances, slots, confidence):
    """Against all ways to come or not: the first m keep the slots, and one more would not."""
    m = count_invitations(slots, chances=chances, confidence=confidence)
    error = 1 - Fraction(str(confidence))
    assert sum(law_of(chances[:m])[slots + 1 :]) <= error
    assert m == len(chances) or sum(law_of(chances[: m + 1])[slots + 1 :]) * ROUNDED > error


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
def test_equal_chances_are_a_rate(rate):
    """One law, computed in two ways."""
    many = np.full(400, rate)
    for slots in (0, 4, [3, 9, 5, 4, 6, 7, 8, 9, 9]):
        got = count_invitations(slots, chances=many, confidence=0.8)
        assert got == min(400, count_invitations(slots, rate=rate, confidence=0.8))


@given(
    past=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    confidence=st.sampled_from([0.5, 0.75, 0.9]),
)
def test_past_slots_if_everyone_comes(past, confidence):
    """The order statistic that a smaller number undercuts with probability 1 - confidence."""
    place = int((1 - Fraction(str(confidence))) * (len(past) + 1))
    if place == 0:
        with pytest.raises(ValueError, match=f"slots has {len(past)} past numbers"):
            count_invitations(past, rate=1, confidence=confidence)
        return
    assert count_invitations(past, rate=1, confidence=confidence) == sorted(past)[place - 1]


@pytest.mark.parametrize("rate", ["0.25", "0.5", "1"])
@pytest.mark.parametrize(
    "law", [{0: "0.5", 1: "0.5"}, {0: "0.1", 3: "0.9"}, {1: "0.25", 2: "0.5", 5: "0.25"}], ids=str
)
@pytest.mark.parametrize(("n", "confidence"), [(3, "0.75"), (4, "0.6"), (3, "0.5")])
def test_unknown_slots_are_kept_in_every_world(rate, law, n, confidence):
    """All histories and all next days: more come than there are slots as seldom as promised."""
    over = Fraction(0)
    for days in product(law, repeat=n):
        p_days = Fraction(1)
        for day in days:
            p_days *= Fraction(law[day])
        m = count_invitations(list(days), rate=float(rate), confidence=float(confidence))
        over += p_days * sum(Fraction(p) * tail(m, rate, slots) for slots, p in law.items())
    assert over <= 1 - Fraction(confidence)


@pytest.mark.parametrize("rate", ["0.1", "0.5", "0.7", "0.95"])
@pytest.mark.parametrize(("slots", "invited"), [(2, 10), (6, 25)])
def test_a_history_is_paid_for(rate, slots, invited):
    """Over all histories: the slots are kept with the confidence, whatever the true rate is."""
    over, without = Fraction(0), Fraction(0)
    for came in range(invited + 1):
        p = comb(invited, came) * Fraction(rate) ** came * (1 - Fraction(rate)) ** (invited - came)
        over += p * tail(count_invitations(slots, history=(came, invited)), rate, slots)
        if came:
            as_known = count_invitations(slots, rate=came / invited)
            without += p * tail(min(as_known, 400), rate, slots)
    assert over <= Fraction("0.05")
    if (
        rate == "0.5" and invited == 25
    ):  # a rate that is taken for the true one does not keep the promise
        assert without > Fraction("0.05")


def test_far_more_slots_than_cases_invite_everyone():
    """A trillion slots for two cases take no memory."""
    assert count_invitations(10**12, chances=[0.5, 0.6]) == 2


@pytest.mark.parametrize(
    ("slots", "who", "message"),
    [
        (50, {}, "in one way"),
        (50, {"rate": 0.5, "history": (1, 2)}, "in one way"),
        (50, {"rate": 0}, "no one comes"),
        (2**63, {"rate": 0.5}, "slots must be a whole number from 0 to 1,000,000,000,000"),
        (50, {"rate": 1e-30}, "rate=1e-30 is too small for 50 slots"),
        (0, {"rate": 1e-30}, "rate=1e-30 is too small for 0 slots"),
        (50, {"rate": 1.5}, "between 0 and 1; got 1.5"),
        (5, {"chances": [0.5, float("nan")]}, "got nan for case 2"),
        (50, {"history": (3, 2)}, "such as \\(310, 520\\); got"),
        (50, {"history": (0, 0)}, "such as"),
        (50, {"history": (310.9, 520)}, "such as"),
        (50, {"history": (3,)}, "such as"),
        (50, {"chances": 0.5}, "a list of probabilities"),
        (-1, {"rate": 0.5}, "whole number from 0"),
        (2.5, {"rate": 0.5}, "whole number from 0"),
        ([], {"rate": 0.5}, "whole number from 0"),
        ([5] * 18, {"rate": 0.5}, "needs at least 19"),
        ([5] * 38, {"history": (5, 9)}, "needs at least 39"),
    ],
)
def test_what_cannot_be_is_refused(slots, who, message):
    """With what arrived and what is needed."""
    with pytest.raises(ValueError, match=message):
        count_invitations(slots, **who)
    if "needs at least" in message:
        assert count_invitations([*slots, 5], **who) >= 5
