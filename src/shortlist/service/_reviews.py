"""The work of reviewers: the list, claims and outcomes. All of it is read from the database."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ..online.decisions import PROBE
from ..tables.reasons import reasons_for
from ._models import ModelCache
from ._requests import Problem
from ._waiting import answer_of
from .store import Entry, QueueRow, Store

__all__ = ["add_outcome", "claim_case", "count_flagged", "find_case", "list_cases"]

_LISTED = (
    f"SELECT {', '.join('log.' + name for name in Entry._fields)}, claim.reviewer, claim.expires, "
    "(SELECT outcome.rare FROM outcome WHERE outcome.queue = log.queue AND "
    "outcome.case_id = log.case_id ORDER BY number DESC LIMIT 1) "
    "FROM log LEFT JOIN claim ON claim.queue = log.queue AND claim.case_id = log.case_id "
    "WHERE log.queue = ? AND log.period = ? AND log.slot IS NOT NULL "
    "ORDER BY log.score DESC, log.seq LIMIT ? OFFSET ?"
)


def find_case(store: Store, queue: QueueRow, case: str) -> dict[str, Any]:
    """Return the decision about a case, and what reviewers said."""
    entry = _entry(store, queue, case)
    answer = answer_of(entry, repeated=True)
    outcomes = store.query(
        "SELECT rare, reviewer, note, at FROM outcome WHERE queue = ? AND case_id = ? "
        "ORDER BY number",
        queue.id,
        case,
    )
    names = ("rare", "reviewer", "note", "at")
    told = [dict(zip(names, row, strict=True)) | {"rare": bool(row[0])} for row in outcomes]
    decided = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return {**decided, "seq": entry.seq, "period": entry.period, "outcomes": told}


def _entry(store: Store, queue: QueueRow, case: str) -> Entry:
    found = store.find_cases(queue.id, [case])
    if not found:
        raise Problem(404, "not-found", f"The case {case!r:.100} has not been decided.")
    return found[0]


def count_flagged(store: Store, queue: QueueRow, period: int) -> int:
    """Return the number of flagged cases of a period."""
    [(flagged,)] = store.query(
        "SELECT count(*) FROM log WHERE queue = ? AND period = ? AND slot IS NOT NULL",
        queue.id,
        period,
    )
    return int(flagged)


def list_cases(
    store: Store,
    models: ModelCache,
    queue: QueueRow,
    *,
    period: int,
    now: float,
    most: int,
    skip: int = 0,
) -> list[dict[str, Any]]:
    """Return flagged cases of a period, the highest score first, with reasons."""
    rows = store.query(_LISTED, queue.id, period, most, skip)
    entries = [Entry(*row[: len(Entry._fields)]) for row in rows]
    reasons = _reasons(models, entries)
    listed = []
    for row, entry in zip(rows, entries, strict=True):
        reviewer, expires, rare = row[-3:]
        claimed = expires is not None and expires > now
        listed.append(
            {
                "id": entry.case_id,
                "score": entry.score,
                "at": entry.at,
                "slot": entry.slot,
                "probe": entry.code == PROBE,
                "reasons": reasons.get(entry.seq, []),
                "claimed_by": reviewer if claimed else None,
                "claim_expires": expires if claimed else None,
                "outcome": None if rare is None else bool(rare),
            }
        )
    return listed


def _reasons(models: ModelCache, entries: list[Entry]) -> dict[int, list[dict[str, Any]]]:
    """Return for each entry the columns that raised its score, by the model that decided."""
    found: dict[int, list[dict[str, Any]]] = {}
    for id in {entry.model for entry in entries if entry.model is not None}:
        try:
            model = models.get(id)
        except (ValueError, ImportError):
            continue  # a model that this program cannot load explains nothing
        mine = [entry for entry in entries if entry.model == id]
        read = [model.read(json.loads(entry.body or "{}")) for entry in mine]
        known = [(e, item) for e, item in zip(mine, read, strict=True) if item.error is None]
        missing = [pair for pair in known if (pair[0].queue, pair[0].seq) not in models.reasons]
        if missing:
            frame = model.frame([item for _, item in missing])
            scores = np.asarray(model.table.classifier.score_samples(frame), dtype=np.float64)
            reasons = reasons_for(model.table, frame, scores)
            for (entry, _), each in zip(missing, reasons, strict=True):
                models.keep_reasons(entry.queue, entry.seq, [reason.__dict__ for reason in each])
        found |= {entry.seq: models.reasons[entry.queue, entry.seq] for entry, _ in known}
    return found


def claim_case(
    store: Store, queue: QueueRow, case: str, *, reviewer: str, seconds: float, now: float
) -> dict[str, Any]:
    """Claim a flagged case for some time; a reviewer may claim a case again to keep it."""
    if _entry(store, queue, case).slot is None:
        raise Problem(409, "not-flagged", f"The case {case!r:.100} was not flagged.")
    with store.write():
        held = store.query(
            "SELECT reviewer, expires FROM claim WHERE queue = ? AND case_id = ?", queue.id, case
        )
        if held and held[0][1] > now and held[0][0] != reviewer:
            raise Problem(409, "claimed", f"{held[0][0]} has claimed the case.")
        store.query(
            "INSERT INTO claim (queue, case_id, reviewer, expires) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (queue, case_id) DO UPDATE SET reviewer = excluded.reviewer, "
            "expires = excluded.expires",
            queue.id, case, reviewer, now + seconds,
        )  # fmt: skip
    return {"id": case, "reviewer": reviewer, "expires": now + seconds}


def add_outcome(
    store: Store,
    queue: QueueRow,
    case: str,
    *,
    rare: bool,
    reviewer: str,
    note: str | None,
    now: float,
    key: str | None,
) -> dict[str, Any]:
    """Append what a reviewer found; the same words again change nothing.

    A reviewer who has changed their mind appends another outcome, and the latest counts. `key` is
    an Idempotency-Key: with it, a late repetition changes nothing even if others came in between.
    """
    if _entry(store, queue, case).slot is None:
        raise Problem(409, "not-flagged", f"The case {case!r:.100} was not flagged.")
    words = json.dumps([case, rare, reviewer, note])
    with store.write():
        last = store.query(
            "SELECT number, rare, reviewer, note FROM outcome WHERE queue = ? AND case_id = ? "
            "ORDER BY number DESC LIMIT 1",
            queue.id,
            case,
        )
        known = None if key is None else _told_with(store, queue, key, words)
        if known is None and last and (bool(last[0][1]), *last[0][2:]) == (rare, reviewer, note):
            known = last[0][0]
        if known is not None:
            return {"id": case, "number": known, "repeated": True}
        digest = _digest(words if key is not None else f"{words}{last[0][0] if last else 0}")
        key = digest if key is None else f"{_key(key)}:{digest}"
        row = {
            "queue": queue.id,
            "case_id": case,
            "rare": rare,
            "reviewer": reviewer,
            "note": note,
            "at": now,
            "idempotency": key,
        }
        number = store.insert_next("outcome", "number", row, scope=("queue",))
        store.query("DELETE FROM claim WHERE queue = ? AND case_id = ?", queue.id, case)
    return {"id": case, "number": number, "repeated": False}


def _told_with(store: Store, queue: QueueRow, key: str, words: str) -> int | None:
    """Return the number of the outcome that came with an Idempotency-Key, if there is one."""
    there = store.query(
        "SELECT number, idempotency FROM outcome WHERE queue = ? AND idempotency LIKE ?",
        queue.id,
        f"{_key(key)}:%",
    )
    if not there:
        return None
    if there[0][1] != f"{_key(key)}:{_digest(words)}":
        raise Problem(422, "idempotency-key", "The Idempotency-Key was used for another outcome.")
    return int(there[0][0])


def _key(key: str) -> str:
    return _digest(key)[:32]


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()
