"""Decisions of a controller about checked items: one, or many in parts and each id only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.arrays import Floats
from ._decisions import (
    SEEN_BEFORE,
    Decision,
    DecisionBatch,
    ProbedBatch,
    ProbedDecision,
    as_batch,
    as_decision,
    is_flag,
)
from ._inputs import WORK_UNITS, Arrivals
from ._stepping import Steps, joined

if TYPE_CHECKING:
    from ._controller import Controller

__all__ = ["decide_bundle", "decide_one", "run_loop"]

Batch = DecisionBatch | ProbedBatch


def decide_one(
    controller: Controller, score: float, moment: float, id: Any, work: int | None
) -> Decision | ProbedDecision:
    """Decide about one item, whose moment is not refused and whose id is new."""
    time = controller._time
    if moment > time.now and time.schedule.changes:
        controller._make_due_changes(until=moment)
    place, at = time.n_items, time.count_one(moment)
    state = controller.state_floats, controller.state_ints
    code, threshold, probability = controller._stepper.one(
        score, at, state, id=id, place=place, work=work
    )
    flag = bool(is_flag(code))
    if id is not None:
        drawn = () if probability is None else (probability,)
        controller._answers.keep(id, flag, threshold, *drawn)
    return as_decision(flag, threshold, probability, code=code)


def decide_bundle(controller: Controller, items: Arrivals, moments: Floats) -> Batch:
    """Decide in parts between jumps in time, and about each item at a jump alone."""
    time = controller._time
    if time.guard.count_safe(moments, time.now) == items.size:
        return _decide_safe(controller, items, moments)
    batches = [
        _decide_safe(controller, items[part], moments[part])
        if safe
        else _decide_alone(controller, items, moments, part.start).as_batch()
        for part, safe in time.parts(moments)
    ]
    return type(batches[0])(*(np.concatenate(column) for column in zip(*batches, strict=True)))


def run_loop(
    controller: Controller, items: Arrivals, moments: Floats, *, deciding: bool = True
) -> Steps:
    """Run the compiled loop over items, in parts between changes of capacity."""
    time = controller._time
    moments = np.maximum.accumulate(np.maximum(moments, time.now))
    parts: list[Steps] = []
    start = 0
    while start < items.size or not parts:
        if items.size:
            controller._make_due_changes(until=moments[start])
        stop = start + int(np.searchsorted(moments[start:], time.schedule.next_moment))
        part, place = slice(start, stop), time.n_items
        times = time.count_many(moments[part])
        state = controller.state_floats, controller.state_ints
        ran = controller._stepper.many(items[part], times, state, deciding=deciding, place=place)
        parts.append(ran)
        start = stop
    return joined(parts)


def _decide_safe(controller: Controller, items: Arrivals, moments: Floats) -> Batch:
    """Decide about items of which no moment is refused."""
    if items.ids is not None:
        return _decide_new_ids(controller, items, moments)
    ran = run_loop(controller, items, moments)
    return as_batch(is_flag(ran.codes), ran.thresholds, ran.codes, ran.probabilities)


def _decide_alone(
    controller: Controller, items: Arrivals, moments: Floats, place: int
) -> Decision | ProbedDecision:
    effort = None if items.work is None else int(items.work[place]) / WORK_UNITS
    id = None if items.ids is None else items.ids[place]
    score, at = float(items.scores[place]), float(moments[place])
    return controller.decide(score, at=at, id=id, effort=effort)


def _decide_new_ids(controller: Controller, items: Arrivals, moments: Floats) -> Batch:
    """Decide about each new id once; repeated ids get the answer of the first."""
    answers = controller._answers
    ids = items.ids.tolist() if items.ids is not None else []
    sources = np.array(answers.find_sources(ids), dtype=np.intp)
    new = np.flatnonzero(sources == np.arange(sources.size))
    # A repeated id changes nothing: not even its moment counts.
    ran = run_loop(controller, items[new], moments[new])
    codes = np.full(items.size, SEEN_BEFORE, dtype=np.int8)
    codes[new] = ran.codes
    columns = [np.zeros(items.size, dtype=bool), np.empty(items.size)]
    decided = [is_flag(ran.codes), ran.thresholds]
    if ran.probabilities is not None:
        columns.append(np.empty(items.size))
        decided.append(ran.probabilities)
    repeated = np.flatnonzero((sources >= 0) & (codes == SEEN_BEFORE))
    known = np.flatnonzero(sources < 0).tolist()
    remembered = [answers.get(ids[i]) for i in known]
    for place, (column, values) in enumerate(zip(columns, decided, strict=True)):
        column[new] = values
        column[repeated] = column[sources[repeated]]
        column[known] = [answer[place] for answer in remembered if answer is not None]
    new_answers = zip(*(column[new].tolist() for column in columns), strict=True)
    for i, answer in zip(new.tolist(), new_answers, strict=True):
        answers.keep(ids[i], *answer)
    flagged, thresholds, *probabilities = columns
    return as_batch(flagged, thresholds, codes, *(probabilities or (None,)))
