"""Probes of a budget: within its limit, drawn as they say, and the same for a retry."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController, Controller
from shortlist.online._pacing import ALLOWED, CAPACITY, DRAWN, KEPT, RATE, TOTAL
from shortlist.online.decisions import ABOVE_THRESHOLD, PROBE, PROBE_WITHOUT_SLOT
from tests.online.checks import with_number

SCORES = np.random.default_rng(0).normal(size=2_000)
DAY = 1_000.0


def make(count=40, probe=0.25, key="a key", expected=1_000, **options):
    """Return a budget of flags a day, some of them for probes."""
    return BudgetController(
        Capacity.count(count),
        calibration_scores=SCORES,
        period=DAY,
        expected_arrivals=expected,
        probe=probe,
        probe_key=key,
        **options,
    )


def arrivals(n_days, per_day=1_000, seed=0):
    """Return scores, moments and ids of some days."""
    rng = np.random.default_rng(seed)
    n = n_days * per_day
    return rng.normal(size=n), np.sort(rng.uniform(0, n_days * DAY, n)), np.arange(n)


def test_a_share_of_zero_is_no_probes():
    """A share of 0 draws nothing, and its state says nothing about probes."""
    scores, times, ids = arrivals(3)
    plain = BudgetController(
        Capacity.count(40), calibration_scores=SCORES, period=DAY, expected_arrivals=1_000
    )
    zero = make(probe=0, key=None)
    one, other = (each.decide_many(scores, at=times, ids=ids) for each in (plain, zero))
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert plain.state() == zero.state()
    assert zero.decide(0.0, at=3_500.0).probability == 0
    assert not any("probe" in name for name in zero.state()["options"])


def test_probes_get_their_share_and_scores_the_rest():
    """A quarter of the flags are probes on average, and next to nothing is left over."""
    scores, times, ids = arrivals(50)
    batch = make(count=40).decide_many(scores, at=times, ids=ids)
    days = (times // DAY).astype(int)
    # 500 expected at most; the rate is rounded down and meant for a busy day.
    assert 380 < (batch.codes == PROBE).sum() < 540
    used = np.bincount(days[batch.flagged], minlength=50)
    assert used.max() == 40
    assert used.mean() > 39


def test_probabilities_are_right_over_many_draws():
    """Over 10^5 items below the threshold, draws agree with their probabilities, by score too."""
    scores, times, ids = arrivals(100)
    batch = make(count=100, probe=0.5, key="draws").decide_many(scores, at=times, ids=ids)
    below = batch.codes != ABOVE_THRESHOLD
    drawn = np.isin(batch.codes, (PROBE, PROBE_WITHOUT_SLOT))
    rates = batch.probabilities
    assert below.sum() > 90_000
    for part in (below, below & (scores > 1), below & (scores < -1), below & (ids % 7 == 0)):
        spread = np.sqrt(np.sum(rates[part] * (1 - rates[part])))
        # Four parts and a probability of 7e-6 to lie beyond 4.5 standard deviations.
        assert abs(drawn[part].sum() - rates[part].sum()) < 4.5 * spread
    assert np.unique(rates[below]).size <= 4  # steady arrivals keep the rate
    assert (batch.codes == PROBE_WITHOUT_SLOT).sum() <= 5  # about 1 expected


def test_draws_are_independent_of_each_other():
    """The number of draws in groups of ten ids varies as much as that of independent draws."""
    scores, times, ids = arrivals(100)
    batch = make(count=100, probe=0.5, key="more draws").decide_many(scores, at=times, ids=ids)
    excess = np.isin(batch.codes, (PROBE, PROBE_WITHOUT_SLOT)) - batch.probabilities
    excess[batch.codes == ABOVE_THRESHOLD] = 0.0
    variances = np.where(
        batch.codes == ABOVE_THRESHOLD, 0, batch.probabilities * (1 - batch.probabilities)
    )
    sums, expected = excess.reshape(-1, 10).sum(axis=1), variances.reshape(-1, 10).sum(axis=1)
    # The mean of 10^4 squares has a standard deviation of about sqrt(4 / 10^4) of itself.
    assert np.mean(sums**2) == pytest.approx(expected.mean(), rel=0.1)


def test_a_retry_gets_the_same_answer():
    """Also after its id was forgotten, as long as its score stays below the threshold."""
    controller = make(remember=10)
    _, times, ids = arrivals(1)
    first = controller.decide_many(np.full(1_000, -9.0), at=times, ids=ids)
    place = int(np.flatnonzero(first.codes == PROBE)[0])
    # Forgotten by now; there is a slot left.
    again = controller.decide(-9.0, at=DAY + 1, id=place)
    assert again[2:] == ("probe", first.probabilities[place])
    retried = controller.decide(7.0, at=DAY + 2, id=place)
    assert retried == again._replace(reason="seen before")
    assert retried.flag
    assert retried.probability < 1


def test_a_probe_without_a_slot_stays_one():
    """A retry says so, also after a restart: as "not selected", it would hide what is missed."""
    budget, ids = make(count=4, probe=0.5, expected=50), np.arange(2_000)
    scores, times = np.full(ids.size, -3.0), np.linspace(0, DAY - 1, ids.size)
    first = budget.decide_many(scores, at=times, ids=ids)
    assert (first.codes == PROBE_WITHOUT_SLOT).sum() > 50
    loaded = Controller.from_state(json.loads(json.dumps(budget.state())))
    for each in (budget, loaded):
        again = each.decide_many(scores, at=DAY - 1, ids=ids)
        np.testing.assert_array_equal(again.selected_by, first.selected_by)
        np.testing.assert_array_equal(again.probabilities, first.probabilities)


def test_any_text_is_a_key():
    """Also one from bytes that are no text, as a variable of the environment may be."""
    assert make(key="a\udcff").decide(0.0, at=1.0, id=1) == make(key="a\udcff").decide(
        0.0, at=1.0, id=1
    )


def test_the_key_makes_the_draw():
    """The same key draws the same items, another one others, and none is made up twice."""
    scores, times, ids = arrivals(2)
    one, same, other = (
        make(key=key).decide_many(scores, at=times, ids=ids).codes for key in ("k", "k", "l")
    )
    np.testing.assert_array_equal(one, same)
    assert np.any((one == PROBE) != (other == PROBE))
    keys = {make(key=None).options["probe_key"] for _ in range(3)}
    assert len(keys) == 3
    assert "key" not in repr(make())


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0, 3, 8, 20]),
            st.integers(1, 60),
            st.integers(0, 3),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.text(min_size=1, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_no_period_exceeds_the_capacity(steps, probe, key):
    """Whatever the arrivals, the changes of the capacity and restarts, flags stay within it."""
    controller, rng = make(10, probe, key, expected=20), np.random.default_rng(1)
    used, limit, moment = {}, {}, 0.0
    for capacity, n, days, restart in steps:
        moment += days * DAY
        day = moment // DAY
        if capacity is not None:
            controller.set_capacity(Capacity.count(capacity), at=moment)
        if restart:
            controller = Controller.from_state(json.loads(json.dumps(controller.state())))
        batch = controller.decide_many(rng.normal(size=n), at=moment)
        before = used.get(day, 0)
        used[day] = before + int(batch.flagged.sum())
        limit[day] = int(controller.capacity.value)
        assert used[day] <= max(limit[day], before)
        assert controller.remaining == max(limit[day] - used[day], 0)


def test_draws_beyond_the_slots_are_not_flagged_and_say_so():
    """Ten times as many arrivals as expected: the capacity holds, and no draw is kept quiet."""
    controller = make(count=40, expected=1_000)
    batch = controller.decide_many(np.full(20_000, -1.0), at=5.0, ids=np.arange(20_000))
    counts = {code: int((batch.codes == code).sum()) for code in (PROBE, PROBE_WITHOUT_SLOT)}
    assert counts[PROBE] == 21  # 999 of 1,000 periods with 10 on average have no more
    assert counts[PROBE_WITHOUT_SLOT] > 10
    assert set(batch.selected_by.tolist()) == {"probe", "probe without a slot", "not selected"}
    assert batch.flagged.sum() <= 40


def test_busy_periods_lower_the_rate():
    """After a busy period fewer items are drawn, so that the slots suffice again."""
    controller = make(count=40, expected=1_000)
    scores, times, _ = arrivals(6, per_day=5_000)
    batch = controller.decide_many(scores, at=times)
    rates = [batch.probabilities[times // DAY == day].min() for day in (0, 5)]
    assert 3 < rates[0] / rates[1] < 8


def test_observed_items_are_never_drawn():
    """Items that are only observed use up no probe."""
    controller = make()
    controller.observe(np.full(5_000, -1.0), at=5.0)
    assert controller.remaining == 40


def test_bad_options_are_refused():
    """Shares, keys and capacities that make no sense raise an error."""
    for probe in (-0.1, 1.1, "0.1", np.nan):
        with pytest.raises((TypeError, ValueError), match="probe"):
            make(probe=probe)
    for key in (3, ""):
        with pytest.raises(TypeError, match="probe_key"):
            make(key=key)
    with pytest.raises(CapacityError, match="budget of work"):
        BudgetController(
            Capacity.effort(10, per=5), calibration_scores=SCORES, expected_effort=1, probe=0.1
        )


def test_damaged_states_are_refused():
    """A state whose probes do not fit its capacity cannot be loaded."""
    controller = make()
    controller.decide_many([0.0, 1.0], at=5.0, ids=["a", "b"])
    state = controller.state()
    for place, value in ((TOTAL, 41), (ALLOWED, 41), (DRAWN, -1), (CAPACITY, 41), (KEPT, -1)):
        with pytest.raises(ValueError, match="state"):
            Controller.from_state(with_number(state, "ints", place, value))
    for wrong in (
        with_number(state, "floats", RATE, 0.9),
        {"options": {**state["options"], "probe": 0.5}},
        {"options": {key: each for key, each in state["options"].items() if "probe" not in key}},
        {"answers": [["a", False, 1.0]]},
    ):
        with pytest.raises(ValueError, match="state"):
            Controller.from_state({**state, **wrong})


def test_what_is_only_observed_is_not_drawn():
    """Nor is an item at whose moment a new capacity begins."""
    budget = BudgetController(
        Capacity.count(10), period=100.0, expected_arrivals=20, probe=0.5, probe_key="a key",
        calibration_scores=np.arange(100.0),
    )  # fmt: skip
    for at in range(40):
        budget.set_capacity(Capacity.count(10), at=at)
        budget.observe([0.0], at=at)
    assert budget.remaining == 10
