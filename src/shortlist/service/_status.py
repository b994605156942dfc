"""The state of a queue in numbers: for the API, the metrics and the dashboard."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from functools import cached_property
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from .._core import probing
from .._core.formatting import percent
from .._core.intervals import proportion_interval
from ..feedback import estimate_missed
from ..online.decisions import PROBE, PROBE_WITHOUT_SLOT
from ._replica import DRAWN
from ._service import Call, metric_head
from .settings import FAR_AHEAD, QueueSettings
from .store import CAPACITY, QueueRow, Store

#: SQL: the latest outcome of a case of the log, and the latest before a moment.
OUTCOME_BEFORE = (
    "(SELECT outcome.rare FROM outcome WHERE outcome.queue = log.queue AND "
    "outcome.case_id = log.case_id AND outcome.at < ? ORDER BY number DESC LIMIT 1)"
)
LATEST_OUTCOME = OUTCOME_BEFORE.replace(" AND outcome.at < ?", "")
_GAUGES = {
    "capacity": "Flags allowed in the present period",
    "used": "Flags used in the present period",
    "seen": "Cases decided in the present period",
    "seq": "Entries in the log",
    "alarms": "Alarms that are raised",
}
_HISTORY = 30
_EARLY = 0.5  # share of the period before which a capacity that is used up raises an alarm
# One in so many of the reviewed cases, with the lowest scores, if these are enough.
_LOWEST_SHARE, _ENOUGH_OUTCOMES = 5, 5


#: A reviewed case: its period, the code and the chance of its selection, and its last outcome.
Reviewed = tuple[int, int, float, bool | None]


class Queue(Struct):
    """A queue and its numbers in the present period."""

    name: str
    capacity: float
    unit: str
    period: float | str | None
    number: int
    starts: float
    ends: float
    used: float
    flags: int
    remaining: float
    seen: int
    total: str | None
    seq: int


class Queues(Struct):
    """All queues."""

    queues: list[Queue]


class Capacities:
    """All changes of a queue's capacity, as its log has them."""

    def __init__(self, store: Store, queue: int) -> None:
        rows = store.query(
            "SELECT seq, body FROM log WHERE queue = ? AND kind = ? ORDER BY seq", queue, CAPACITY
        )
        self.last_seq: int = rows[-1][0]
        self._logged = [json.loads(body) for _, body in rows]
        # Of several that begin at one moment, the latest counts.
        self._changes = sorted(self._logged, key=itemgetter("from"))

    def at(self, moment: float) -> float:
        """Return the capacity in force at a moment."""
        return _amount(self.in_force(moment))

    def after(self, moment: float) -> dict[float, float]:
        """Return the capacities that begin after a moment, in order."""
        return {each["from"]: _amount(each) for each in self._changes if each["from"] > moment}

    def staff(self, moment: float) -> float | None:
        """Return the minutes that a flag takes, if the capacity in force follows who is there."""
        return self.in_force(moment).get("staff")

    @property
    def minutes(self) -> float:
        """The minutes that a flag, or a unit of effort, takes by what was said last; or one."""
        return next((each["staff"] for each in reversed(self._logged) if "staff" in each), 1.0)

    def in_force(self, moment: float) -> dict[str, Any]:
        """Return the change that is in force at a moment."""
        begun = [each for each in self._changes if each["from"] <= moment]
        return begun[-1] if begun else self._logged[0]


def _amount(change: dict[str, Any]) -> Any:
    return change.get("count", change.get("effort"))


class QueueView:
    """What the database says about a queue and its present period."""

    def __init__(self, call: Call, row: QueueRow) -> None:
        self.call, self.row, self.settings = call, row, QueueSettings.from_json(row.settings)
        self.at = max(time.time(), row.high_water)
        self.number = self.settings.periods.number(self.at)
        self._query = call.store.query
        #: Whether who asks must not know which cases are probes.
        self.is_blind = self.settings.probe > 0 and call.key.role == "review"

    @cached_property
    def capacities(self) -> Capacities:
        """All changes of the capacity."""
        return Capacities(self.call.store, self.row.id)

    def queue(self) -> Queue:
        """Return the name and the numbers of the queue."""
        row, settings = self.row, self.settings
        start, end = settings.periods.bounds(self.number)
        if self.number != row.period:
            row = row._replace(used=0, seen=0, spent=0)
        used = settings.amount(row.used, row.spent)
        capacity = self.capacities.at(self.at)
        return Queue(
            row.name, capacity, settings.unit, settings.period, self.number, start, end, used,
            row.used, self._remaining(capacity - used), row.seen, row.total, row.last_seq,
        )  # fmt: skip

    def _remaining(self, own: float) -> float:
        """Return what is left of the capacity; flags need room in a shared total, too."""
        left = self._query(
            "SELECT capacity - (SELECT coalesce(max(total_slot), 0) FROM log WHERE period = ? AND "
            "total_slot > 0) FROM total WHERE name = ?",
            self.number,
            self.row.total,
        )
        shared = max(left[0][0], 0) if left else math.inf
        return max(0, own if self.settings.of_work and shared else min(own, shared))

    def status(self) -> dict[str, Any]:
        """Return all numbers; reviewers must not see in which of them an outcome counts."""
        queue, rows = self.queue(), [] if self.is_blind else self._reviewed()
        by_score = [row for row in rows if row[1] != PROBE and row[3] is not None]
        history = self._history(by_score)
        lowest = by_score[: len(by_score) // _LOWEST_SHARE]
        decider = self.call.service.decider(self.row.name)
        return {
            **msgspec.structs.asdict(queue),
            "now": self.at,
            "model": None if decider.replica is None else decider.replica.model,
            "shadow": 0 if decider.replica is None else decider.replica.shadow,
            "ready": self.call.service.ready,
            "waiting": decider.n_waiting,
            "pool": getattr(decider.replica and decider.replica.controller, "n_waiting", None),
            "scheduled": [
                {"from": begins, "count": amount}
                for begins, amount in self.capacities.after(self.at).items()
            ],
            "history": history,
            "precision": self._found(by_score),
            **self._detection(rows, sum(each["seen"] for each in history)),
            # Cases that more capacity would add have lower scores still than the lowest of those
            # that were reviewed. So their share is what more capacity would find at best.
            "more": self._found(lowest) if len(lowest) >= _ENOUGH_OUTCOMES else None,
            "alarms": self.alarms(queue),
        }

    def _history(self, reviewed: list[Reviewed]) -> list[dict[str, Any]]:
        """Return the numbers of the latest periods, the present one last."""
        row, amount = self.row, self.settings.amount
        rows = self._query(
            "SELECT period, capacity, used, seen, spent FROM ended WHERE queue = ? AND period > ? "
            "ORDER BY period",
            row.id,
            self.number - _HISTORY,
        )
        if row.seen and row.period is not None and row.period > self.number - _HISTORY:
            rows.append((row.period, row.capacity, row.used, row.seen, row.spent))
        return [
            {
                "number": period,
                "capacity": amount(capacity, capacity),
                "used": amount(used, spent),
                "seen": seen,
                "starts": self.settings.periods.bounds(period)[0],
                "precision": self._found([row for row in reviewed if row[0] == period]),
            }
            for period, capacity, used, seen, spent in rows
        ]

    def _found(self, reviewed: list[Reviewed]) -> dict[str, Any] | None:
        """Return how many of reviewed cases were rare, and the interval of their share."""
        n, found = len(reviewed), sum(bool(rare) for *_, rare in reviewed)
        low, high = map(float, proportion_interval(found, n))
        share = found / n if n else None
        shown = {"reviewed": n, "found": found, "share": share, "low": low, "high": high}
        return None if self.is_blind else shown

    def _reviewed(self) -> list[Reviewed]:
        """Return what was selected lately, the lowest score first."""
        is_selected = "log.slot IS NOT NULL"
        if self.settings.probe:
            is_selected = f"({is_selected} OR log.code = {PROBE_WITHOUT_SLOT})"
        rows = self._query(
            f"SELECT log.period, log.code, log.inclusion, {LATEST_OUTCOME} FROM log WHERE "
            f"log.queue = ? AND log.period > ? AND {is_selected} ORDER BY log.score",
            self.row.id,
            self.number - _HISTORY,
        )
        return [(*row, None if rare is None else bool(rare)) for *row, rare in rows]

    def _detection(self, reviewed: list[Reviewed], seen: int) -> dict[str, Any]:
        """Return the share of rare cases that was found lately, which only probes can estimate."""
        note = None
        if not self.settings.probe:
            note = "Not known: cases below the threshold are never reviewed. It takes probes."
        elif self.is_blind:
            note = "Not for reviewers, like precision: it would tell which cases are probes."
        elif not any(code == PROBE and rare is not None for _, code, _, rare in reviewed):
            note = "Not known: no probe has an outcome yet."
        if note is not None:
            return {"detection": None, "base_rate": None, "detection_note": note}
        found = estimate_missed(
            np.array([rare for *_, rare in reviewed], dtype=object),
            [DRAWN.get(code, probing.BY_SCORE) for _, code, _, _ in reviewed],
            [chance for _, _, chance, _ in reviewed],
            n_cases=seen,
        )
        share = {"share": found.detection, "low": found.detection_low, "high": found.detection_high}
        rare = {
            "share": found.prevalence, "low": found.prevalence_low, "high": found.prevalence_high
        }  # fmt: skip
        note = (
            f"95 % interval from {found.n_probes} probes in the last {_HISTORY} periods, "
            f"{found.n_hits} of them rare; {found.n_unknown} outcomes are missing."
        )
        # What is not a number is null in JSON.
        return {"detection": share, "base_rate": rare, "detection_note": note}

    # --- alarms --------------------------------------------------------------------------------

    def alarms(self, queue: Queue) -> list[dict[str, Any]]:
        """Return all alarms: those that deciders raised, and those that the numbers raise."""
        raised = self._query(
            "SELECT kind, message, at FROM alarm WHERE queue = ? ORDER BY at", str(self.row.id)
        )
        found = [*raised, *self.alarms_of_numbers(queue)]
        return [{"kind": kind, "message": message, "at": at} for kind, message, at in found]

    def alarms_of_numbers(self, queue: Queue) -> Iterator[tuple[str, str, float]]:
        """Yield the alarms that the numbers raise: their kind, a message and a moment."""
        ahead = self.row.high_water - time.time()
        if ahead > FAR_AHEAD:
            message = (
                f"The last decision is {ahead / 86_400:,.2f} days ahead of the clock: no new "
                "period begins until then. If the clock is right now, start again with "
                "--accept-clock."
            )
            yield "clock", message, self.row.high_water
        replica = self.call.service.decider(self.row.name).replica
        if replica is not None and replica.drift is not None and replica.drift.raised:
            others = f"the first {len(replica.first)} of this queue and its model"
            others = others if replica.first else "the calibration scores of the model"
            message = f"Scores are no longer like {others}."
            yield "drift", message, self.at
        passed = (self.at - queue.starts) / (queue.ends - queue.starts)
        if queue.capacity and not queue.remaining and passed < _EARLY:
            message = f"The capacity was used up after {percent(passed)} of the period."
            yield "rate", message, self.at


# --- routes ---------------------------------------------------------------------------------------


def list_queues(call: Call) -> Queues:
    """All queues."""
    return Queues([view.queue() for view in visible_queues(call)])


def read_status(call: Call) -> dict[str, Any]:
    """The numbers of a queue."""
    return QueueView(call, call.row).status()


def read_metrics(call: Call) -> str:
    """Metrics for Prometheus; a key for some queues sees theirs alone."""
    queues = [(view, view.queue()) for view in visible_queues(call)]
    lines = [*call.service.metrics.lines()] if call.key.queues is None else []
    for name, words in _GAUGES.items():
        lines += metric_head(name, "gauge", words)
        for view, queue in queues:
            label = json.dumps(queue.name, ensure_ascii=False)
            value = len(view.alarms(queue)) if name == "alarms" else getattr(queue, name)
            lines.append(f"shortlist_{name}{{queue={label}}} {float(value)}")
    return "".join(f"{line}\n" for line in lines)


def visible_queues(call: Call) -> list[QueueView]:
    """Return the queues that the key may see."""
    allowed = call.key.queues
    rows = [row for row in call.store.queues() if allowed is None or row.name in allowed]
    return [QueueView(call, row) for row in rows]
