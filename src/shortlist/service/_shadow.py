"""A model that scores the same cases and decides nothing: would it find more?

Both models are judged alike, by what a new controller of each would have flagged at the same
moments with the same capacity. Only complete periods since both began count, and only outcomes that
were known at the end of the last one. So asking again within a period is the same look, and the
error of all looks together is limited.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from .._core import probing
from .._core.arrays import Mask
from ..feedback import estimate_missed
from ..online.decisions import ABOVE_THRESHOLD, ALLOWED, JOINED
from ._api import Problem
from ._models import Arrival, models_of
from ._replica import DRAWN, Replica
from ._service import Call
from ._status import OUTCOME_BEFORE, QueueView
from .store import CLOCK, MODEL, SHADOW

Verdict = Literal["promote", "keep", "not enough evidence"]
Range = tuple[float, float]
_ERROR = 0.05  # of all looks together
_MOST_READ = 200_000
_DECIDED = (
    "SELECT score, shadow, period, at, case_id, code, slot, effort, inclusion, CASE WHEN slot > 0 "
    f"THEN {OUTCOME_BEFORE} END FROM log WHERE queue = ? AND seq > ? AND period > ? AND period < ? "
    f"AND kind = 0 AND code NOT IN ({JOINED}, {ALLOWED}) ORDER BY seq"
)


class Comparison(Struct):
    """What two models would have flagged in complete periods, and which of them finds more.

    `only_shadow` and `only_model` are intervals for the rare cases that one of them would have
    found and the other not. `error` bounds the chance that "promote" or "keep" is ever wrong.
    """

    model: int
    shadow: int
    periods: int
    cases: int
    unscored: int
    flagged_by_model: int
    flagged_by_shadow: int
    flagged_by_both: int
    only_model: Range
    only_shadow: Range
    drift: bool | None
    verdict: Verdict
    error: float = _ERROR


def compare(call: Call) -> Comparison:
    """Compare the shadow model with the model in force."""
    view = QueueView(call, call.row)
    models = models_of(call.store, view.row.id)[:2]
    if not models[1] or view.settings.within is not None:
        detail = (
            "The queue has no shadow model, or its cases wait. Send one with PUT, where none do."
        )
        raise Problem(404, "not-found", detail)
    rows, n_periods = _read(view)
    reviews = Reviews(rows, n_periods)
    replicas = [
        Replica(call.store, view.settings, 0, seq=0, state={"model": model}) for model in models
    ]
    by_model, by_shadow = (
        _flags(view, replica, [row[place] for row in rows], rows)
        for place, replica in enumerate(replicas)
    )
    lost, gained = (
        reviews.rare_in(part) for part in (by_model & ~by_shadow, by_shadow & ~by_model)
    )
    drift = replicas[1].drift
    return Comparison(
        *models, n_periods, len(rows), sum(row[1] is None for row in rows), int(by_model.sum()),
        int(by_shadow.sum()), int((by_model & by_shadow).sum()), lost, gained,
        None if drift is None else drift.raised, judge(gained, lost),
    )  # fmt: skip


def judge(gained: Range, lost: Range) -> Verdict:
    """Say which model finds more, if the intervals do not overlap."""
    if gained[0] > lost[1]:
        return "promote"
    return "keep" if gained[1] < lost[0] else "not enough evidence"


class Reviews:
    """The outcomes of cases that were selected by score or drawn as probes."""

    def __init__(self, rows: list[Any], look: int) -> None:
        codes, slots, chances, rare = ([row[place] for row in rows] for place in (5, 6, 8, 9))
        self._rare = np.array([None if each is None else bool(each) for each in rare], object)
        self._names = np.array([DRAWN.get(code, probing.BY_SCORE) for code in codes], object)
        self._chances, self._look = np.array(chances, float), max(look, 1)
        is_reviewed = np.array([slot is not None for slot in slots], bool)
        self._by_score = is_reviewed & (self._names == probing.BY_SCORE)
        self._drawn = is_reviewed | (self._names == probing.PROBE_WITHOUT_SLOT)

    def rare_in(self, part: Mask) -> Range:
        """Return an interval for the rare cases in a part: probes speak for what nobody saw."""
        known, drawn = self._rare[part & self._by_score], self._drawn
        unseen = int((part & ~self._by_score).sum())
        found = estimate_missed(
            self._rare[drawn], self._names[drawn], self._chances[drawn], n_cases=part.size,
            challenger=part[drawn], confidence=1 - _ERROR / 2, look=self._look,
        ).challenger  # fmt: skip
        low, high = (0.0, unseen) if found is None else (found.gained_low, found.gained_high)
        n_rare, n_unknown = sum(known == True), sum(known == None)  # noqa: E711, E712
        return float(n_rare + low), float(n_rare + n_unknown + min(high, unseen))


def _read(view: QueueView) -> tuple[list[Any], int]:
    """Return the cases of complete periods since both models began, and how many periods."""
    store, row = view.call.store, view.row
    [(seq, period)] = store.query(
        f"SELECT seq, period FROM log WHERE queue = ? AND kind > 0 AND kind IN ({MODEL}, {SHADOW}, "
        f"{CLOCK}) ORDER BY seq DESC LIMIT 1",
        row.id,
    )
    # Of very many cases, only those of the latest periods are read.
    first = max(seq, row.last_seq - _MOST_READ)
    [(left_out,)] = store.query("SELECT period FROM log WHERE queue = ? AND seq = ?", row.id, first)
    present, _ = view.settings.periods.bounds(view.number)
    rows = store.query(_DECIDED, present, row.id, first, max(period, left_out), view.number)
    return rows, max(view.number - period - 1, 0)


def _flags(view: QueueView, replica: Replica, scores: list[Any], rows: list[Any]) -> Mask:
    """Return which cases a new controller would have flagged by scores; without one, not."""
    flags = np.zeros(len(rows), dtype=bool)
    begins = view.settings.periods.bounds(rows[0][2])[0] if rows else 0.0
    replica.start_again(view.capacities.at(begins), view.capacities.after(begins).items())
    scored = [place for place, score in enumerate(scores) if score is not None]
    for _, part in groupby(scored, key=lambda place: rows[place][2]):
        places = list(part)
        arrivals = [
            Arrival(scores[place], rows[place][4], rows[place][3], rows[place][7])
            for place in places
        ]
        codes = [code for code, *_ in replica.decide(arrivals)]
        flags[places] = np.array(codes) == ABOVE_THRESHOLD
        replica.watch([each.score for each in arrivals])
    return flags
