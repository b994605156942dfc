"""Checks that every controller must pass."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from shortlist import Capacity
from shortlist.online import Controller
from shortlist.online.decisions import (
    ABOVE_THRESHOLD,
    CAPACITY_USED_UP,
    PROBE,
    PROBE_WITHOUT_SLOT,
    REASONS,
    SEEN_BEFORE,
    Decision,
    DecisionBatch,
    is_flag,
)

Make = Callable[[], Controller]
_N = 400


def check_controller(make: Make) -> None:
    """Run all checks on what `make` returns: the same new controller on every call.

    It is for scores around Normal(0, 1). About one item will arrive per second.
    """
    for check in CHECKS:
        check(make)


def _items(n: int = _N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and moments; some scores are tied, and some moments go back in time."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=n), 1)
    return scores, np.cumsum(rng.exponential(size=n)) + rng.normal(size=n)


def _work(scores: Any) -> np.ndarray:
    """Return efforts for scores, the same for the same score, and one for what is no score."""
    return np.array([1 + 7 * abs(x) % 3 if isinstance(x, float) else 1.0 for x in scores])


def _many(
    controller: Controller, scores: Any, *, like: Any = None, **options: Any
) -> DecisionBatch:
    """Decide about items, which take some work (that of other scores) if it is counted."""
    if controller.counts_work:
        numbers = np.asarray(scores if like is None else like).tolist()
        options["efforts"] = np.nan_to_num(_work(numbers), nan=1.0, posinf=1.0)
    return controller.decide_many(scores, **options)


ARRAYS = {"floats": np.float64, "ints": np.int64}


def array_of(state: dict[str, Any], name: str) -> Any:
    """Return an array of a saved state."""
    return np.frombuffer(base64.b64decode(state[name]), ARRAYS[name]).copy()


def with_array(state: dict[str, Any], name: str, array: Any) -> dict[str, Any]:
    """Return a state with another array."""
    return {**state, name: base64.b64encode(array.tobytes()).decode()}


def with_number(state: dict[str, Any], name: str, place: int, value: float) -> dict[str, Any]:
    """Return a state with another number in an array."""
    array = array_of(state, name)
    array[place] = value
    return with_array(state, name, array)


def with_digest(state: dict[str, Any]) -> dict[str, Any]:
    """Return an edited state with the digest that it would have."""
    parts = {name: part for name, part in state.items() if name != "digest"}
    digest = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
    return {**parts, "digest": digest.hexdigest()}


def _one(controller: Controller, score: Any, **options: Any) -> Any:
    if controller.counts_work:
        options["effort"] = float(np.nan_to_num(_work([score])[0], nan=1.0, posinf=1.0))
    return controller.decide(score, **options)


def _one_by_one(controller: Controller, scores: Any, times: Any, ids: Any = None) -> list[Any]:
    ids = [None] * len(scores) if ids is None else ids
    return [
        _one(controller, float(score), at=float(at), id=key)
        for score, at, key in zip(scores, times, ids, strict=True)
    ]


def decision_of(batch: DecisionBatch, i: int) -> Decision:
    """Return the decision about item `i` of a batch, as `decide` would return it."""
    flag, threshold, code, probability = (column[i].item() for column in batch)
    return Decision(flag, threshold, REASONS[code], probability)


def _same(one_by_one: list[Any], batch: DecisionBatch) -> bool:
    return one_by_one == [decision_of(batch, i) for i in range(len(one_by_one))]


def _plain(controller: Controller) -> str:
    return json.dumps(controller.state(), allow_nan=False)


def check_one_by_one_equals_many(make: Make) -> None:
    """How items are batched changes neither the decisions nor what is learned."""
    scores, times = _items()
    alone, batched = make(), make()
    decisions = _one_by_one(alone, scores, times)
    for part in (slice(0, 1), slice(1, 150), slice(150, _N)):
        batch = _many(batched, scores[part], at=times[part])
        assert _same(decisions[part], batch), "decide and decide_many differ"
    assert _plain(alone) == _plain(batched), "decide and decide_many learn differently"


def check_ids_in_batches(make: Make) -> None:
    """Repeated ids get the same answers one by one and in a batch."""
    scores, times = _items()
    ids = [f"case {number}" for number in np.random.default_rng(1).integers(_N // 2, size=_N)]
    alone, batched = make(), make()
    decisions = _one_by_one(alone, scores, times, ids)
    first = _many(batched, scores[:100], at=times[:100], ids=ids[:100])
    second = _many(batched, scores[100:], at=times[100:], ids=ids[100:])
    assert _same(decisions[:100], first), "decide and decide_many differ on ids"
    assert _same(decisions[100:], second), "decide and decide_many differ on ids"
    assert _plain(alone) == _plain(batched), "decide and decide_many remember differently"


def check_repeated_ids_change_nothing(make: Make) -> None:
    """A repeated id gets its first answer, whatever its score is now."""
    _, times = _items()
    controller = make()
    first = _one(controller, 9.0, at=float(times[0]), id="again")
    before = _plain(controller)
    second = _one(controller, -9.0, at=float(times[-1]), id="again")
    assert second == first._replace(reason=REASONS[SEEN_BEFORE])
    assert _plain(controller) == before, "a repeated id changed the state"


def check_state_goes_through_json(make: Make) -> None:
    """A controller that was saved and loaded makes the same decisions."""
    scores, times = _items()
    kept = make()
    _many(kept, scores[:200], at=times[:200], ids=list(range(200)))
    saved = _plain(kept)
    loaded = Controller.from_state(json.loads(saved))
    assert type(loaded) is type(kept)
    assert _plain(loaded) == saved, "the state changes when it is saved and loaded"
    expected = _many(kept, scores[200:], at=times[200:])
    assert _same(_one_by_one(loaded, scores[200:], times[200:]), expected)
    assert _plain(loaded) == _plain(kept)


def check_foreign_states_are_refused(make: Make) -> None:
    """A state of another version, format or kind, or with wrong sizes, raises an error."""
    state = make().state()
    for wrong in ({"version": 99}, {"format": "?"}, {"controller": "Unknown"}):
        _must_raise(Controller.from_state, {**state, **wrong})
    for name in ("floats", "ints"):
        _must_raise(Controller.from_state, {key: state[key] for key in state if key != name})
        _must_raise(Controller.from_state, {**state, name: [*state[name], 1]})


def check_invalid_input_changes_nothing(make: Make) -> None:
    """An invalid score or moment raises an error, and the state does not change."""
    scores, times = _items()
    controller = make()
    _many(controller, scores[:50], at=times[:50])
    before, now = _plain(controller), float(times[:50].max())
    for bad in (np.nan, np.inf, -np.inf, "0.5", None):
        _must_raise(_one, controller, bad, at=now)
        _must_raise(_many, controller, [0.0, bad], at=now)
        _must_raise(controller.observe, [0.0, bad], at=now)
    for bad in (np.nan, np.inf, 1e300, "noon"):
        _must_raise(_one, controller, 0.0, at=bad)
        _must_raise(_many, controller, [0.0, 0.0], at=[now, bad])
    _must_raise(_one, controller, 0.0, at=now, id=1.5)
    _must_raise(controller.set_capacity, 0.5)
    assert _plain(controller) == before, "invalid input changed the state"


def check_flags_are_above_their_threshold(make: Make) -> None:
    """An item is flagged when its score exceeds the threshold, unless the capacity is used up.

    Only probes, which are drawn, are flagged all the same.
    """
    scores, times = _items()
    batch = _many(make(), scores, at=times)
    above, by_score = scores > batch.thresholds, batch.codes == ABOVE_THRESHOLD
    assert np.all(above[by_score]), "an item at or below its threshold was flagged"
    refused = above & ~by_score
    assert np.isin(batch.codes[refused], (CAPACITY_USED_UP, PROBE, PROBE_WITHOUT_SLOT)).all(), (
        "an item above its threshold was not flagged"
    )
    assert np.array_equal(batch.flagged, is_flag(batch.codes))


def check_probabilities_belong_to_the_answers(make: Make) -> None:
    """A flag by score has probability 1; without probes nothing else has any, and with them all."""
    scores, times = _items()
    controller = make()
    batch = _many(controller, scores, at=times)
    by_score = batch.codes == ABOVE_THRESHOLD
    assert np.all(batch.probabilities[by_score] == 1)
    others = batch.probabilities[~by_score]
    if not controller.has_probes:
        assert not np.any(others)
        assert not np.any(batch.codes == PROBE)
        return
    assert np.all((others > 0) & (others < 1)), "an item below the threshold cannot be drawn"
    drawn = np.isin(batch.codes, (PROBE, PROBE_WITHOUT_SLOT))
    rates = batch.probabilities[~by_score]
    spread = np.sqrt(np.sum(rates * (1 - rates)))
    assert abs(drawn.sum() - rates.sum()) <= 4 * spread + 1, "draws contradict their probabilities"


def check_time_does_not_run_backwards(make: Make) -> None:
    """An item from the past counts as of the latest moment."""
    scores, times = _items()
    steady = np.maximum.accumulate(times)
    backwards, forwards = make(), make()
    expected = _many(forwards, scores, at=steady)
    assert _same(_one_by_one(backwards, scores, times), expected)


def check_work_stays_within_its_budget(make: Make) -> None:
    """If the controller counts work, every item needs its effort, and a bad one changes nothing."""
    _, times = _items()
    controller = make()
    if not controller.counts_work:
        _must_raise(controller.decide, 0.0, at=float(times[0]), effort=1.0)
        return
    before = _plain(controller)
    for bad in (None, 0.0, -1.0, np.nan, np.inf, "1"):
        _must_raise(controller.decide, 9.0, at=float(times[0]), effort=bad)
        _must_raise(controller.decide_many, [9.0], at=float(times[0]), efforts=[bad])
    assert _plain(controller) == before, "an invalid effort changed the state"
    largest = float(controller.capacity.value) * 1.001
    one = controller.decide(9.0, at=float(times[0]), effort=largest)
    assert not one.flag, "an item larger than the whole budget was flagged"


def check_no_capacity_flags_nothing(make: Make) -> None:
    """A capacity of zero flags nothing, whether set at once or announced for later."""
    scores, times = _items()
    now, later = make(), make()
    _many(now, scores[:100], at=times[:100])
    now.set_capacity(_none(now))
    assert not _many(now, scores[100:] + 9, at=times[100:]).flagged.any()
    change = float(times[:300].max())
    later.set_capacity(_none(later), at=change)
    batch = _many(later, scores + 9, at=times)
    assert not batch.flagged[np.maximum.accumulate(times) >= change].any()


def check_scheduled_changes_take_effect(make: Make) -> None:
    """A change announced beforehand acts the same one by one and in a batch."""
    scores, times = _items()
    alone, batched = make(), make()
    for controller in (alone, batched):
        controller.set_capacity(_none(controller), at=100.0)
        controller.set_capacity(controller.capacity, at=200.0)
    decisions = _one_by_one(alone, scores, times)
    assert _same(decisions, _many(batched, scores, at=times))
    assert _plain(alone) == _plain(batched)


def check_scheduled_changes_survive_a_restart(make: Make) -> None:
    """An announced change takes effect in a controller that was saved and loaded meanwhile."""
    scores, times = _items()
    kept = make()
    _many(kept, scores[:50], at=times[:50])
    kept.set_capacity(_none(kept), at=150.0)
    loaded = Controller.from_state(json.loads(_plain(kept)))
    batch = _many(loaded, scores[50:] + 9, at=times[50:])
    assert not batch.flagged[np.maximum.accumulate(times[50:]) >= 150.0].any()
    assert _same(_one_by_one(kept, scores[50:] + 9, times[50:]), batch)


def check_observing_flags_nothing(make: Make) -> None:
    """Items can be observed before the first decision, one by one or together."""
    scores, times = _items()
    one, many = make(), make()
    for score, at in zip(scores, times, strict=True):
        assert one.observe(score, at=at) is one
    many.observe(scores, at=times)
    assert _plain(one) == _plain(many)


def check_copies_are_independent(make: Make) -> None:
    """A copy is in the same state, and its decisions and changes do not change the original."""
    scores, times = _items()
    controller = make()
    controller.set_capacity(controller.capacity, at=times[-1] + 1)
    before = _plain(controller)
    for other in (copy.deepcopy(controller), pickle.loads(pickle.dumps(controller))):
        assert _plain(other) == before
        _many(other, scores, at=times)
        other.set_capacity(controller.capacity, at=times[-1] + 2)
        assert _plain(controller) == before


def check_swapping_the_model_keeps_the_flags(make: Make) -> None:
    """After a swap of the model, the same items are flagged on the new scale."""
    scores, times = _items()
    calibration = np.random.default_rng(2).normal(size=4_000)
    kept, swapped = make().swap_model(calibration), make().swap_model(calibration)
    swapped.swap_model(3 * calibration + 7)
    differ = (
        _many(kept, scores, at=times).flagged
        != _many(swapped, 3 * scores + 7, like=scores, at=times).flagged
    )
    assert differ.mean() <= 0.02, "a swap of the model changes the flags"


def check_memory_is_bounded(make: Make) -> None:
    """Neither the arrays nor the remembered answers grow with the stream."""
    scores, times = _items(3_000)
    controller = make()
    _many(controller, scores[:1_500], at=times[:1_500], ids=list(range(1_500)))
    sizes = controller.state_floats.shape, controller.state_ints.shape
    _many(controller, scores[1_500:], at=times[1_500:], ids=list(range(1_500, 3_000)))
    assert (controller.state_floats.shape, controller.state_ints.shape) == sizes
    assert len(controller.state()["answers"]) <= controller.options["remember"]


CHECKS = (
    check_one_by_one_equals_many,
    check_ids_in_batches,
    check_repeated_ids_change_nothing,
    check_state_goes_through_json,
    check_foreign_states_are_refused,
    check_invalid_input_changes_nothing,
    check_flags_are_above_their_threshold,
    check_probabilities_belong_to_the_answers,
    check_time_does_not_run_backwards,
    check_work_stays_within_its_budget,
    check_no_capacity_flags_nothing,
    check_scheduled_changes_take_effect,
    check_scheduled_changes_survive_a_restart,
    check_observing_flags_nothing,
    check_copies_are_independent,
    check_swapping_the_model_keeps_the_flags,
    check_memory_is_bounded,
)


def _none(controller: Controller) -> Capacity:
    return Capacity(controller.capacity.kind, 0, controller.capacity.per)


def _must_raise(call: Callable[..., Any], *args: Any, **options: Any) -> None:
    try:
        call(*args, **options)
    except (TypeError, ValueError):
        return
    raise AssertionError(f"{call} accepted {args} {options} without an error")
