"""Many items at once: in parts between jumps in time, and each id only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.arrays import Floats
from ._decisions import (
    SEEN_BEFORE,
    AnswerMemory,
    DecisionBatch,
    ProbedBatch,
    as_batch,
    is_flag,
)
from ._inputs import Arrivals
from ._stepping import Steps

__all__ = ["decide_in_parts", "decide_new_ids"]

Run = Callable[[Arrivals, Floats], Steps]
Batch = DecisionBatch | ProbedBatch


def decide_in_parts(
    parts: Any, decide_safe: Callable[[slice], Batch], decide_alone: Callable[[int], Any]
) -> Batch:
    """Decide in parts between jumps, and about each item at a jump alone."""
    batches = [
        decide_safe(part) if safe else decide_alone(part.start).as_batch() for part, safe in parts
    ]
    columns = (np.concatenate(column) for column in zip(*batches, strict=True))
    return type(batches[0])(*columns)


def decide_new_ids(items: Arrivals, moments: Floats, answers: AnswerMemory, run: Run) -> Batch:
    """Decide about each new id once; repeated ids get the answer of the first."""
    ids = items.ids.tolist() if items.ids is not None else []
    sources = np.array(answers.find_sources(ids), dtype=np.intp)
    new = np.flatnonzero(sources == np.arange(sources.size))
    # A repeated id changes nothing: not even its moment counts.
    ran = run(items[new], moments[new])
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
    decided_answers = zip(*(column[new].tolist() for column in columns), strict=True)
    for i, answer in zip(new.tolist(), decided_answers, strict=True):
        answers.keep(ids[i], *answer)
    flagged, thresholds, *probabilities = columns
    return as_batch(flagged, thresholds, codes, *(probabilities or (None,)))
