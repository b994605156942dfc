"""Decisions of a controller about many checked items: in parts, and each id only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._core.arrays import Floats, Ints
from ._inputs import Arrivals
from .decisions import SEEN_BEFORE, DecisionBatch, is_flag, joined

if TYPE_CHECKING:
    from .controller import Controller


class LoopItems(NamedTuple):
    """What a compiled loop knows of items: as Arrivals, and the numbers by which they are drawn."""

    scores: Floats
    times: Floats
    works: Ints
    numbers: Floats


def decide_bundle(controller: Controller, items: Arrivals) -> DecisionBatch:
    """Decide in parts between jumps in time, and about each item at a jump alone."""
    return joined(
        [
            _decide_safe(controller, items[part])
            if safe
            else controller._decide_checked(*items.item(part.start)).as_batch()
            for part, safe in controller._time.parts(items.moments)
        ]
    )


def run_loop(controller: Controller, items: Arrivals, *, deciding: bool = True) -> DecisionBatch:
    """Run the compiled loop over items, in parts between changes of capacity."""
    time, n, start = controller._time, items.size, 0
    moments = np.maximum.accumulate(np.maximum(items.moments, time.now))
    numbers = _draw_numbers(controller, items) if deciding else np.ones(n)
    batch = DecisionBatch(np.empty(n, bool), np.empty(n), np.empty(n, np.int8), np.empty(n))
    while start < n:
        controller._make_due_changes(until=moments[start])
        part = slice(start, start + int(np.searchsorted(moments[start:], time.next_change)))
        times = time.count_many(moments[part])
        controller.compiled_loop(
            LoopItems(items.scores[part], times, items.work[part], numbers[part]),
            deciding,
            batch.part(part),
            controller.state_floats,
            controller.state_ints,
        )
        start = part.stop
    batch.flagged[:] = is_flag(batch.codes)
    return batch


def _draw_numbers(controller: Controller, items: Arrivals) -> Floats:
    """Return the number of each item, by which it is drawn; 1 is never drawn."""
    draws = controller._draws
    if draws is None:
        return np.ones(items.size)
    if items.ids is not None:
        return draws.of_ids(items.ids)
    first = controller.n_items
    return np.array([draws.of_place(first + i) for i in range(items.size)])


def _decide_safe(controller: Controller, items: Arrivals) -> DecisionBatch:
    """Decide about items of which no moment is refused, and about each new id once."""
    if items.ids is None:
        return run_loop(controller, items)
    answers, ids = controller._answers, items.ids.tolist()
    sources = np.array(answers.find_sources(ids), dtype=np.intp)
    new = np.flatnonzero(sources == np.arange(sources.size))
    # A repeated id changes nothing: not even its moment counts.
    ran = run_loop(controller, items[new])
    codes = np.full(items.size, SEEN_BEFORE, dtype=np.int8)
    codes[new] = ran.codes
    parts = np.empty((3, items.size))
    parts[:, new] = ran.flagged, ran.thresholds, ran.probabilities
    repeated = np.flatnonzero((sources >= 0) & (codes == SEEN_BEFORE))
    parts[:, repeated] = parts[:, sources[repeated]]
    for place in np.flatnonzero(sources < 0).tolist():
        parts[:, place] = answers.get(ids[place])
    columns = (ran.flagged.tolist(), ran.thresholds.tolist(), ran.probabilities.tolist())
    for place, flag, threshold, probability in zip(new.tolist(), *columns, strict=True):
        answers.keep(ids[place], flag, threshold, probability)
    return DecisionBatch(parts[0] > 0, parts[1], codes, parts[2])
