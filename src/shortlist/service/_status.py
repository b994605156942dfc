"""The state of a queue in numbers: for the API, the metrics and the dashboard."""

from __future__ import annotations

import json
import math
from typing import Any

from .._core.binomial import proportion_interval
from ._follower import QueueSettings
from ._store import CAPACITY, QueueRow, Store

__all__ = ["capacities_of", "capacity_at", "describe_queue", "status_of"]

_HISTORY = 30
_POINTS = 96
_LOWEST_SHARE = 5  # one in so many of the reviewed cases, with the lowest scores


def capacities_of(store: Store, queue: int) -> list[tuple[float, int, int]]:
    """Return all changes of the capacity: from when, where in the log, and how many flags."""
    rows = store.query(
        "SELECT seq, body FROM log WHERE queue = ? AND kind = ? ORDER BY seq", queue, CAPACITY
    )
    changes = [(json.loads(body), seq) for seq, body in rows]
    return [(float(body["from"]), int(seq), int(body["count"])) for body, seq in changes]


def capacity_at(changes: list[tuple[float, int, int]], at: float) -> int:
    """Return the capacity in force at a moment."""
    begun = [change for change in changes if change[0] <= at]
    return max(begun)[2] if begun else changes[0][2]


def describe_queue(store: Store, queue: QueueRow, now: float) -> dict[str, Any]:
    """Return the name and the numbers of a queue in its present period."""
    settings = QueueSettings.from_json(queue.settings)
    at = max(now, queue.high_water)
    number = settings.periods.number(at)
    start, end = settings.periods.bounds(number)
    used, seen = (queue.used, queue.seen) if number == queue.period else (0, 0)
    capacity = capacity_at(capacities_of(store, queue.id), at)
    return {
        "name": queue.name,
        "capacity": capacity,
        "period": settings.period,
        "number": number,
        "starts": start,
        "ends": end,
        "used": used,
        "remaining": max(capacity - used, 0),
        "seen": seen,
        "total": queue.total,
    }


def status_of(store: Store, queue: QueueRow, now: float) -> dict[str, Any]:
    """Return everything that a dashboard shows about a queue, except its list."""
    described = describe_queue(store, queue, now)
    at, number = max(now, queue.high_water), described["number"]
    passed = (at - described["starts"]) / (described["ends"] - described["starts"])
    changes = capacities_of(store, queue.id)
    return {
        **described,
        "now": at,
        "seq": queue.last_seq,
        "forecast": _forecast(described, passed),
        "scheduled": [{"from": f, "count": n} for f, _, n in sorted(changes) if f > at],
        "thresholds": _thresholds(store, queue.id, number),
        "history": _history(store, queue.id, number),
        "precision": _precision(store, queue.id),
        "detection": None,
        "detection_note": (
            "Not known: cases below the threshold are never reviewed. It takes random probes."
        ),
        "more": _more(store, queue.id),
        "alarms": _alarms(store, queue, at),
    }


def _forecast(described: dict[str, Any], passed: float) -> int | None:
    """Return how many flags the period will have at this speed; None in its first minutes."""
    if passed < 0.02 or not described["seen"]:
        return None
    return min(described["capacity"], round(described["used"] / min(passed, 1.0)))


def _thresholds(store: Store, queue: int, period: int) -> list[list[float]]:
    """Return moments and thresholds through the period, at most a hundred or so."""
    [(first, last)] = store.query(
        "SELECT min(seq), max(seq) FROM log WHERE queue = ? AND period = ? AND seq > "
        "(SELECT max(last_seq) FROM queue WHERE id = ?) - 200000",
        queue, period, queue,
    )  # fmt: skip
    if first is None:
        return []
    step = max((last - first) // _POINTS, 1)
    wanted = list(range(first, last + 1, step))
    marks = ", ".join("?" * len(wanted))
    rows = store.query(
        f"SELECT at, threshold FROM log WHERE queue = ? AND seq IN ({marks}) AND kind = 0 "
        "ORDER BY seq",
        queue,
        *wanted,
    )
    return [[at, value] for at, value in rows if value is not None and math.isfinite(value)]


def _history(store: Store, queue: int, number: int) -> list[dict[str, Any]]:
    rows = store.query(
        "SELECT period, capacity, used, seen FROM budget WHERE queue = ? AND period > ? "
        "ORDER BY period",
        queue,
        number - _HISTORY,
    )
    names = ("number", "capacity", "used", "seen")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _reviewed(store: Store, queue: int) -> list[bool]:
    """Return the latest outcome of each reviewed case, the lowest score first."""
    rows = store.query(
        "SELECT outcome.rare FROM outcome JOIN log ON log.queue = outcome.queue AND "
        "log.case_id = outcome.case_id WHERE outcome.queue = ? AND outcome.number = "
        "(SELECT max(o.number) FROM outcome AS o WHERE o.queue = outcome.queue AND "
        "o.case_id = outcome.case_id) ORDER BY log.score",
        queue,
    )
    return [bool(rare) for (rare,) in rows]


def _precision(store: Store, queue: int) -> dict[str, Any]:
    outcomes = _reviewed(store, queue)
    n, found = len(outcomes), sum(outcomes)
    low, high = proportion_interval(found, n)
    share = found / n if n else None
    return {"reviewed": n, "found": found, "share": share, "low": float(low), "high": float(high)}


def _more(store: Store, queue: int) -> dict[str, Any] | None:
    """Return what was found among the reviewed cases with the lowest scores.

    Cases that more capacity would add have lower scores still. Therefore this share is what more
    capacity would find at best, as far as scores mean anything.
    """
    outcomes = _reviewed(store, queue)
    n = len(outcomes) // _LOWEST_SHARE
    if n < 5:
        return None
    found = sum(outcomes[:n])
    low, high = proportion_interval(found, n)
    return {"reviewed": n, "found": found, "low": float(low), "high": float(high)}


def _alarms(store: Store, queue: QueueRow, now: float) -> list[dict[str, Any]]:
    rows = store.query(
        "SELECT kind, message, at FROM alarm WHERE queue = ? ORDER BY at", str(queue.id)
    )
    alarms = [{"kind": kind, "message": message, "at": at} for kind, message, at in rows]
    [(stale, oldest)] = store.query(
        "SELECT count(*), min(expires) FROM claim WHERE queue = ? AND expires <= ?", queue.id, now
    )
    if stale:
        message = f"{stale} claimed cases have no outcome, and their claims have expired."
        alarms.append({"kind": "claims", "message": message, "at": oldest})
    return alarms
