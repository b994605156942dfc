"""Restarts, threads, and changes of capacity at awkward moments."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    WindowController,
)
from shortlist.online import _pacing as ledger
from tests.online.checks import ARRAYS, array_of, with_array, with_digest, with_number

DAY = 86_400.0
RATE = Capacity.fraction(0.05)
TIMED = {"period": DAY, "expected_arrivals": 1_000}
KINDS = {
    "ema": lambda scores, **options: EmaController(RATE, calibration_scores=scores, **options),
    "window": lambda scores, **options: WindowController(
        RATE, calibration_scores=scores, window=200, **options
    ),
    "tracker": lambda scores, **options: QuantileTracker(
        RATE, calibration_scores=scores, **options
    ),
    "bucket": lambda scores, **options: QuantileTracker(
        RATE, calibration_scores=scores, burst=10, **options
    ),
    "budget": lambda scores, **options: BudgetController(
        Capacity.count(50), calibration_scores=scores, **TIMED, **options
    ),
    "budget of items": lambda scores, **options: BudgetController(
        Capacity.count(5, per=100), calibration_scores=scores, **options
    ),
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def restarted(controller):
    """Return the controller, saved to JSON and loaded again."""
    return Controller.from_state(json.loads(json.dumps(controller.state(), allow_nan=False)))


@every_kind
def test_an_announcement_survives_a_restart(make, rng):
    """A capacity announced for later takes effect even if the process ended in between."""
    scores, times = rng.normal(size=2_000), np.arange(2_000) * DAY / 1_000
    kept, died = make(scores), make(scores)
    nothing = Capacity(kept.capacity.kind, 0, kept.capacity.per)
    for controller in (kept, died):
        controller.decide_many(scores[:300], at=times[:300])
        controller.set_capacity(nothing, at=times[1_000])
        controller.set_capacity(controller.capacity, at=times[1_500])
    died = restarted(died)
    expected = kept.decide_many(scores[300:], at=times[300:]).flagged
    assert np.array_equal(died.decide_many(scores[300:], at=times[300:]).flagged, expected)
    assert not expected[700:1_200].any()


def test_an_announcement_is_replaced_by_a_later_one_for_the_same_moment(rng):
    """Only the last announcement counts, and repeating it takes no memory."""
    budget = KINDS["budget"](rng.normal(size=500))
    for k in range(300):
        budget.set_capacity(Capacity.count(k), at=5 * DAY)
    assert len(budget.state()["scheduled"]) == 1
    budget.decide(0.0, at=5 * DAY)
    assert budget.capacity == Capacity.count(299)


def test_lowered_below_what_is_spent_and_raised_again():
    """Used flags remain used: the day's total never exceeds the largest capacity in force."""
    budget = BudgetController(Capacity.count(10), calibration_scores=np.zeros(3), **TIMED)
    rising = iter(np.arange(1.0, 1_000.0))
    counts = []
    for capacity in (10, 4, 0, 6, 12):
        budget.set_capacity(Capacity.count(capacity))
        budget = restarted(budget)
        counts.append(sum(budget.decide(next(rising), at=60.0).flag for _ in range(50)))
    assert counts == [10, 0, 0, 0, 2]


@every_kind
def test_a_controller_without_capacity_may_get_some_later(make, rng):
    """A controller that starts with a capacity of zero works normally afterwards."""
    scores, times = rng.normal(size=1_000), np.arange(1_000) * DAY / 1_000
    controller = make(scores)
    some, none = controller.capacity, Capacity(controller.capacity.kind, 0, controller.capacity.per)
    closed = type(controller).from_state(controller.set_capacity(none).state())
    assert not closed.decide_many(scores + 9, at=times).flagged.any()
    closed.set_capacity(some)
    assert closed.decide_many(scores, at=times + DAY).flagged.any()


@pytest.mark.parametrize("version", [None, 1, 2])
def test_a_state_of_an_earlier_release_is_refused(version, rng):
    """The error says what to do."""
    state = KINDS["tracker"](rng.normal(size=50)).state()
    with pytest.raises(ValueError, match="Load an older one with the release that wrote it"):
        Controller.from_state({**state, "version": version})


CALIBRATIONS = {
    "one": [0.0],
    "constant": np.ones(300),
    "two values": np.arange(300) % 2,
    "tied at the top": np.minimum(np.arange(300.0), 250),
    "enormous": [-1.7e308, 0.0, 1.7e308],
    "tiny": np.arange(300) * 5e-324,
}


@every_kind
@pytest.mark.parametrize("calibration", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_any_finite_scores_will_do_for_calibration(make, calibration):
    """Thresholds are never NaN, not even after a swap of the model and a restart."""
    controller = make(np.asarray(calibration, dtype=float))
    scores = np.tile([0.0, 1.0, -1.7e308, 1.7e308, 5e-324], 60)
    times = np.arange(300.0)
    for other in (calibration, [3.0], CALIBRATIONS["enormous"]):
        batch = controller.decide_many(scores, at=times)
        assert not np.isnan(batch.thresholds).any()
        controller = restarted(controller.swap_model(np.asarray(other, dtype=float)))


@every_kind
def test_memory_does_not_grow_with_the_stream(make, rng):
    """After a hundred thousand new ids, the saved state is as large as after ten thousand."""
    controller = make(rng.normal(size=500), remember=100)
    sizes = []
    for part in range(10):
        ids = np.arange(part * 10_000, (part + 1) * 10_000)
        times = ids * DAY / 1_000
        controller.decide_many(rng.normal(size=ids.size), at=times, ids=ids)
        sizes.append(len(json.dumps(controller.state())))
    assert len(controller.state()["answers"]) == 100
    assert max(sizes) <= 1.05 * sizes[0]
    assert sizes[-1] <= 1.02 * sizes[-2]


def test_threads_share_a_budget():
    """Eight threads with the highest scores together get exactly the day's number."""
    budget = BudgetController(Capacity.count(50), calibration_scores=np.zeros(5), **TIMED)

    def work(thread):
        return sum(budget.decide(1.0 + thread + i, at=1.0).flag for i in range(400))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 50
    assert budget.remaining == 0


def test_threads_get_one_answer_for_one_id():
    """However the threads race, one of them is first and all others get its answer."""
    budget = BudgetController(Capacity.count(50), calibration_scores=np.zeros(5), **TIMED)
    with ThreadPoolExecutor(8) as pool:
        for name in range(200):
            decide = [pool.submit(budget.decide, 5.0 + name, at=1.0, id=name) for _ in range(8)]
            answers = [each.result() for each in decide]
            assert len({answer.flag for answer in answers}) == 1
            assert sum(answer.reason != "seen before" for answer in answers) == 1
    assert budget.state()["n_items"] == 200


@every_kind
def test_copies_and_pickles_have_a_lock_of_their_own(make, rng):
    """Copies make the same decisions as the original."""
    controller = make(rng.normal(size=300))
    copies = [copy.deepcopy(controller), pickle.loads(pickle.dumps(controller))]
    scores = rng.normal(size=50)
    expected = controller.decide_many(scores, at=5.0).flagged
    for each in copies:
        assert np.array_equal(each.decide_many(scores, at=5.0).flagged, expected)


def test_a_number_beyond_counting_is_refused(rng):
    """The error leaves the capacity unchanged."""
    controller = KINDS["budget"](rng.normal(size=50))
    before = controller.state()
    with pytest.raises(CapacityError, match="at most"):
        controller.set_capacity(Capacity.count(10**30))
    assert controller.state() == before


def test_the_step_of_the_papers_rule_goes_over_to_the_new_scale(rng):
    """With scores a thousand times smaller, the flag rate stays close to the capacity."""
    scores = rng.normal(size=40_000)
    ema = EmaController(RATE, calibration_scores=scores[:5_000])
    ema.swap_model(scores[:5_000] / 1_000)
    assert ema.decide_many(scores[5_000:] / 1_000).flagged.mean() == pytest.approx(0.05, abs=0.01)


@every_kind
def test_a_state_with_a_digest_of_its_own_reaches_beyond_no_array(make, rng):
    """Compiled functions check no index: places and lengths are checked when a state is loaded."""
    scores = rng.normal(size=300)
    controller = make(scores)
    controller.decide_many(scores, at=np.arange(300) * DAY / 100)
    state = json.loads(json.dumps(controller.state()))
    for name in ARRAYS:
        array = array_of(state, name)
        assert Controller.from_state(with_digest(with_array(state, name, array))).state() == state
        for changed in (array[1:], np.append(np.tile(array, 2), array.dtype.type(1))):
            if changed.size == array.size:  # the rule of the paper has no ints
                continue
            with pytest.raises(ValueError, match="lengths or places"):
                Controller.from_state(with_digest(with_array(state, name, changed)))


PLACES = {
    "size": ("ints", ledger.SIZE, 4_096),
    "no size": ("ints", ledger.SIZE, 0),
    "listed": ("ints", ledger.LISTED, 201),
    "negative": ("ints", ledger.LISTED, -1),
    "stride": ("ints", ledger.STRIDE, -1),
    "length": ("floats", ledger.LENGTH, 0.0),
    "past": ("floats", -2 * 48 - 3 * ledger.MEMORY, 1e9),
    "no number": ("floats", 200, float("nan")),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_ledger_has_no_entries_beyond_its_lists(place, rng):
    """The lists of a budget follow one another in memory."""
    name, index, value = place
    state = KINDS["budget"](rng.normal(size=300)).state()
    with pytest.raises(ValueError, match="lengths or places"):
        Controller.from_state(with_digest(with_number(state, name, index, value)))


@pytest.mark.parametrize(("name", "index"), [("ints", 0), ("ints", 1), ("floats", 0)])
def test_a_window_has_its_own_scores_in_order(name, index, rng):
    """A wrong place, or scores out of order, would make the threshold any number."""
    state = KINDS["window"](rng.normal(size=300)).state()
    with pytest.raises(ValueError, match="lengths or places"):
        Controller.from_state(with_digest(with_number(state, name, index, -1)))


def test_a_window_survives_a_swap_that_changes_the_order_of_its_scores():
    """Translated scores can change places in their last digit; the window must still load."""
    old = [-1.95, 5.62, 3.29, 2.65, 3.95, 4.62, -8.51, 0.96, 1.01, -3.28]
    old = np.array([float(f"{score}e-3") for score in old])
    new = np.array([-118.81483, -194.83419, 111.85477, -136.34677, 180.54187])
    new = np.r_[new, 144.02328, -222.11534, 25.59861, -508.96328, 194.07469]
    window = WindowController(Capacity.fraction(0.2), calibration_scores=old, window=20)
    window.observe(np.nextafter(old, -np.inf)).swap_model(new)
    rising, ring = np.split(window.state_floats, 2)
    assert (np.diff(rising) >= 0).all()
    np.testing.assert_array_equal(np.sort(ring), rising)
    loaded = Controller.from_state(json.loads(json.dumps(window.state())))
    scores = np.random.default_rng(0).normal(scale=200, size=100)
    np.testing.assert_array_equal(
        loaded.decide_many(scores).thresholds, window.decide_many(scores).thresholds
    )
