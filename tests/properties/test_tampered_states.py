"""A saved state that was edited is refused or harmless."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    WindowController,
)

SCORES = np.random.default_rng(0).normal(size=60)
TIMED = {"period": 50.0, "expected_arrivals": 40}
RATE, K, BURST = Capacity.fraction(0.1), 4, 2
MAKERS = {
    "ema": lambda: EmaController(RATE, calibration_scores=SCORES),
    "window": lambda: WindowController(RATE, calibration_scores=SCORES, window=30),
    "tracker": lambda: QuantileTracker(RATE, calibration_scores=SCORES, step=0.5),
    "bucket": lambda: QuantileTracker(RATE, calibration_scores=SCORES, burst=BURST, step=1),
    "budget": lambda: BudgetController(Capacity.count(K), calibration_scores=SCORES, **TIMED),
}


def used(make):
    """Return the state of a controller that has seen some items."""
    controller = make()
    rng = np.random.default_rng(1)
    controller.decide_many(rng.normal(size=70), at=np.arange(70.0), ids=list(range(70)))
    controller.set_capacity(controller.capacity, at=500.0)
    return json.loads(json.dumps(controller.state(), allow_nan=False))


STATES = {name: used(make) for name, make in MAKERS.items()}


def places(value, path=()):
    """Return the paths to all numbers, strings and lists of a state."""
    if path:
        yield path
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from places(value[key], (*path, key))


PLACES = {name: list(places(state)) for name, state in STATES.items()}
WRONG = [None, True, -1, 0, 1, 7, 10**6, 2**62, 2**70, -(2**62), 0.5, -3.5, 1e9, -1e9, 1e300]
values = st.sampled_from([*WRONG, float("nan"), "inf", "-inf", "x", [], [1, 2], {}])


def tampered(state, path, value):
    """Return a copy of a state with another value in one place."""
    edited = copy.deepcopy(state)
    inside = edited
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return edited


@given(st.sampled_from(sorted(STATES)), st.data())
@settings(max_examples=600, deadline=None)
def test_an_edited_state_is_refused_or_keeps_its_guarantee(kind, data):
    """No single edit makes a controller crash, return NaN, or flag more than its capacity."""
    heads = [path for path in PLACES[kind] if path[-1] in range(25) or isinstance(path[-1], str)]
    path = data.draw(st.sampled_from(heads) | st.sampled_from(PLACES[kind]))
    state = tampered(STATES[kind], path, data.draw(values))
    try:
        controller = Controller.from_state(state)
    except (TypeError, ValueError):
        return
    now = max(controller.now, 0.0)
    times = now + np.arange(300) * 0.7
    scores = np.tile(np.arange(30.0), 10)
    batch = controller.decide_many(scores, at=times)
    assert not np.isnan(batch.thresholds).any()
    json.dumps(controller.state(), allow_nan=False)
    if kind == "budget":
        capacity, options = controller.capacity.value, controller.options
        periods = np.floor((times - options["starts_at"]) / options["period"])
        for period in np.unique(periods):
            assert batch.flagged[periods == period].sum() <= capacity
    if kind == "bucket":
        total = np.cumsum(batch.flagged - float(controller.capacity.as_ratio()))
        most = total - np.minimum.accumulate(np.append(0.0, total)[:-1])
        assert most.max() <= controller.options["burst"] + 1e-9


@pytest.mark.parametrize("kind", sorted(STATES))
def test_every_whole_number_that_could_reach_beyond_an_array_is_checked(kind):
    """Numbers far too large or negative are refused or harmless: compiled code checks no bounds."""
    for path in PLACES[kind]:
        if path[0] != "ints" or len(path) < 2:
            continue
        for value in (2**40, -(2**40), 31):
            try:
                controller = Controller.from_state(tampered(STATES[kind], path, value))
            except ValueError:
                continue
            controller.decide_many(np.arange(100.0), at=600.0 + np.arange(100.0))
            json.dumps(controller.state(), allow_nan=False)
