"""The state of a queue in numbers: for the API, the metrics and the dashboard."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from .._core import probing
from .._core.intervals import proportion_interval
from .._core.written import number, percent
from ..feedback import estimate_missed
from ..online.decisions import PROBE, PROBE_WITHOUT_SLOT
from ._api import Queue, Queues
from ._replica import Replica
from ._service import Call
from .settings import FAR_AHEAD, QueueSettings
from .store import CAPACITY, QueueRow, Store

__all__ = [
    "LATEST_OUTCOME",
    "capacities_of",
    "capacity_at",
    "describe_queue",
    "list_queues",
    "read_metrics",
    "read_status",
]

#: SQL: the latest outcome of a case of the log.
LATEST_OUTCOME = (
    "(SELECT outcome.rare FROM outcome WHERE outcome.queue = log.queue AND "
    "outcome.case_id = log.case_id ORDER BY number DESC LIMIT 1)"
)
_HISTORY = 30
_POINTS, _MOST_READ = 96, 200_000
# A rate alarm: the capacity is used up before this share of the period, or cases differ from the
# mean of at least so many periods by this factor and so many standard deviations.
_EARLY, _ENOUGH_PERIODS, _FACTOR, _DEVIATIONS = 0.5, 3, 2.0, 5.0
# One in so many of the reviewed cases, with the lowest scores, if these are enough.
_LOWEST_SHARE, _ENOUGH_OUTCOMES = 5, 5


def capacities_of(store: Store, queue: int) -> list[tuple[float, int, float]]:
    """Return all changes of the capacity: from when, where in the log, and how much."""
    rows = store.query(
        "SELECT seq, body FROM log WHERE queue = ? AND kind = ? ORDER BY seq", queue, CAPACITY
    )
    changes = [(json.loads(body), seq) for seq, body in rows]
    return [
        (float(body["from"]), int(seq), body.get("count", body.get("effort")))
        for body, seq in changes
    ]


def capacity_at(changes: list[tuple[float, int, float]], at: float) -> float:
    """Return the capacity in force at a moment."""
    begun = [change for change in changes if change[0] <= at]
    return max(begun)[2] if begun else changes[0][2]


def describe_queue(store: Store, queue: QueueRow, now: float) -> Queue:
    """Return the name and the numbers of a queue in its present period."""
    settings = QueueSettings.from_json(queue.settings)
    at = max(now, queue.high_water)
    number = settings.periods.number(at)
    start, end = settings.periods.bounds(number)
    if number != queue.period:
        queue = queue._replace(used=0, seen=0, spent=0)
    used = settings.amount(queue.used, queue.spent)
    capacity = capacity_at(capacities_of(store, queue.id), at)
    return Queue(
        queue.name, capacity, settings.unit, settings.period, number, start, end, used, queue.used,
        _remaining(store, queue, number, capacity - used), queue.seen, queue.total, queue.last_seq,
    )  # fmt: skip


def _remaining(store: Store, queue: QueueRow, number: int, own: float) -> float:
    """Return what is left of the capacity in a period; its flags need room in the total, too."""
    left = store.query(
        "SELECT capacity - (SELECT coalesce(max(slot), 0) FROM total_slot WHERE total = name AND "
        "period = ?) FROM total WHERE name = ?",
        number,
        queue.total,
    )
    shared = max(left[0][0], 0) if left else math.inf
    of_work = QueueSettings.from_json(queue.settings).of_work
    return max(0, own if of_work and shared else min(own, shared))


def _visible(call: Call) -> list[QueueRow]:
    """Return the queues that the key may see."""
    allowed = None if call.key is None else call.key.queues
    return [row for row in call.store.queues() if allowed is None or row.name in allowed]


def list_queues(call: Call) -> Queues:
    """All queues."""
    return Queues([describe_queue(call.store, row, time.time()) for row in _visible(call)])


def read_metrics(call: Call) -> str:
    """Metrics for Prometheus; a key for some queues sees theirs alone."""
    numbers = [(row, describe_queue(call.store, row, time.time())) for row in _visible(call)]
    described = [
        {**msgspec.structs.asdict(queue), "alarms": len(_every_alarm(call, row, queue))}
        for row, queue in numbers
    ]
    of_all = call.key is None or call.key.queues is None
    return call.service.metrics.render(described, of_all=of_all)


def read_status(call: Call) -> dict[str, Any]:
    """The numbers of a queue."""
    store, queue = call.store, call.row
    described = describe_queue(store, queue, time.time())
    at = max(time.time(), queue.high_water)
    passed = (at - described.starts) / (described.ends - described.starts)
    history = _history(store, queue, described.number)
    reviewed = _reviewed(store, queue, described.number)
    outcomes = [rare for code, _, rare in reviewed if code != PROBE and rare is not None]
    lowest = outcomes[: len(outcomes) // _LOWEST_SHARE]
    decider = call.service.decider(call.queue)
    replica = decider.replica
    return {
        **msgspec.structs.asdict(described),
        "now": at,
        "model": None if replica is None else replica.model,
        "ready": call.service.ready,
        "waiting": decider.n_waiting,
        "forecast": _forecast(described, passed),
        "scheduled": [
            {"from": begins, "count": amount}
            for begins, _, amount in sorted(capacities_of(store, queue.id))
            if begins > at
        ],
        "thresholds": _thresholds(store, queue, described),
        "history": history,
        "precision": _found(outcomes),
        **_detection(queue, reviewed, sum(each["seen"] for each in history)),
        # Cases that more capacity would add have lower scores still than the lowest of those that
        # were reviewed. Therefore their share is what more capacity would find at best.
        "more": _found(lowest) if len(lowest) >= _ENOUGH_OUTCOMES else None,
        "alarms": _every_alarm(call, queue, described),
    }


def _forecast(described: Queue, passed: float) -> float | None:
    """Return how many flags the period will have at this speed; None in its first minutes."""
    if passed < 0.02 or not described.seen:
        return None
    return min(float(described.capacity), round(described.used / min(passed, 1.0)))


def _thresholds(store: Store, queue: QueueRow, described: Queue) -> list[list[float]]:
    """Return moments and thresholds through the period, at most a hundred or so."""
    rows = store.query(
        "SELECT at, threshold FROM log WHERE queue = ? AND period = ? AND kind = 0 AND seq > ? "
        "AND seq % ? = 0 ORDER BY seq",
        queue.id,
        described.number,
        queue.last_seq - _MOST_READ,
        max(min(described.seen, _MOST_READ) // _POINTS, 1),
    )
    return [[at, value] for at, value in rows if value is not None and math.isfinite(value)]


def _history(store: Store, queue: QueueRow, number: int) -> list[dict[str, Any]]:
    """Return the numbers of the latest periods, the present one last."""
    rows = store.query(
        "SELECT period, capacity, used, seen, spent FROM ended WHERE queue = ? AND period > ? "
        "ORDER BY period",
        queue.id,
        number - _HISTORY,
    )
    if queue.seen and queue.period is not None and queue.period > number - _HISTORY:
        rows.append((queue.period, queue.capacity, queue.used, queue.seen, queue.spent))
    amount = QueueSettings.from_json(queue.settings).amount
    return [
        {
            "number": period,
            "capacity": amount(capacity, capacity),
            "used": amount(used, spent),
            "seen": seen,
        }
        for period, capacity, used, seen, spent in rows
    ]


def _reviewed(store: Store, queue: QueueRow, number: int) -> list[tuple[int, float, bool | None]]:
    """Return what was selected lately, the lowest score first: code, chance and latest outcome."""
    is_selected = "log.slot IS NOT NULL"
    if QueueSettings.from_json(queue.settings).probe:
        is_selected = f"({is_selected} OR log.code = {PROBE_WITHOUT_SLOT})"
    rows = store.query(
        f"SELECT log.code, log.inclusion, {LATEST_OUTCOME} FROM log WHERE log.queue = ? AND "
        f"log.period > ? AND {is_selected} ORDER BY log.score",
        queue.id,
        number - _HISTORY,
    )
    return [(code, chance, None if rare is None else bool(rare)) for code, chance, rare in rows]


def _detection(
    queue: QueueRow, reviewed: list[tuple[int, float, bool | None]], seen: int
) -> dict[str, Any]:
    """Return the share of all rare cases that was found lately, which only probes can estimate."""
    if not QueueSettings.from_json(queue.settings).probe:
        note = "Not known: cases below the threshold are never reviewed. It takes random probes."
        return {"detection": None, "detection_note": note}
    if not any(code == PROBE and rare is not None for code, _, rare in reviewed):
        return {"detection": None, "detection_note": "Not known: no probe has an outcome yet."}
    names = {PROBE: probing.PROBE, PROBE_WITHOUT_SLOT: probing.PROBE_WITHOUT_SLOT}
    found = estimate_missed(
        np.array([rare for _, _, rare in reviewed], dtype=object),
        [names.get(code, probing.BY_SCORE) for code, _, _ in reviewed],
        [chance for _, chance, _ in reviewed],
        n_cases=seen,
    )
    share = {"share": found.detection, "low": found.detection_low, "high": found.detection_high}
    note = (
        f"95 % interval from {found.n_probes} probes in the last {_HISTORY} periods, of which "
        f"{found.n_hits} are rare; {found.n_unknown} outcomes are missing."
    )
    return {"detection": share, "detection_note": note}  # what is not a number is null in JSON


def _found(outcomes: list[bool]) -> dict[str, Any]:
    """Return how many of reviewed cases were rare, and the interval of their share."""
    n, found = len(outcomes), sum(outcomes)
    low, high = proportion_interval(found, n)
    share = found / n if n else None
    return {"reviewed": n, "found": found, "share": share, "low": float(low), "high": float(high)}


def _alarm(kind: str, message: str, at: float) -> dict[str, Any]:
    return {"kind": kind, "message": message, "at": at}


def _every_alarm(call: Call, row: QueueRow, described: Queue) -> list[dict[str, Any]]:
    """Return all alarms of a queue, as its status shows and its metrics count them."""
    at = max(time.time(), row.high_water)
    passed = (at - described.starts) / (described.ends - described.starts)
    return [
        *_alarms(call.store, row, at),
        *_rate_alarms(described, passed, _history(call.store, row, described.number), at),
        *_drift_alarms(call.service.decider(row.name).replica, at),
    ]


def _alarms(store: Store, queue: QueueRow, now: float) -> Iterator[dict[str, Any]]:
    """Return the alarms that deciders raised, and one for claims that have expired."""
    ahead = queue.high_water - time.time()
    if ahead > FAR_AHEAD:
        message = (
            f"The last decision is {ahead / 86_400:,.2f} days ahead of the clock: no new period "
            "begins until then. If the clock is right now, start again with --accept-clock."
        )
        yield _alarm("clock", message, queue.high_water)
    for row in store.query(
        "SELECT kind, message, at FROM alarm WHERE queue = ? ORDER BY at", str(queue.id)
    ):
        yield _alarm(*row)
    [(stale, oldest)] = store.query(
        "SELECT count(*), min(expires) FROM claim WHERE queue = ? AND expires <= ?", queue.id, now
    )
    if stale:
        message = f"{stale} claimed cases have no outcome, and their claims have expired."
        yield _alarm("claims", message, oldest)


def _rate_alarms(
    described: Queue, passed: float, history: list[dict[str, Any]], now: float
) -> Iterator[dict[str, Any]]:
    """Say if cases come much faster or slower than in the last periods, or the capacity is gone."""
    before = [each["seen"] for each in history if each["number"] < described.number]
    usual, seen = passed * sum(before) / max(len(before), 1), described.seen
    unlikely = _DEVIATIONS * math.sqrt(usual + 1)
    if described.capacity and not described.remaining and passed < _EARLY:
        yield _alarm(
            "rate", f"The capacity was used up after {percent(passed)} of the period.", now
        )
    elif len(before) >= _ENOUGH_PERIODS and not (
        usual / _FACTOR - unlikely <= seen <= _FACTOR * usual + unlikely
    ):
        message = f"{seen:,} cases have arrived, where {number(round(usual))} are usual by now."
        yield _alarm("rate", message, now)


def _drift_alarms(replica: Replica | None, now: float) -> Iterator[dict[str, Any]]:
    if replica is not None and replica.drift is not None and replica.drift.raised:
        message = "Scores are no longer like the calibration scores of the model."
        yield _alarm("drift", message, now)
