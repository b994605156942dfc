"""The work of reviewers: the list, claims and outcomes. All of it is read from the database."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import numpy as np

from ..online.decisions import PROBE
from ..tables.reasons import reasons_for
from ._api import Claim, ClaimBody, Listed, Outcome, OutcomeBody
from ._models import LoadedModel, ModelCache
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
    told = store.query(
        "SELECT rare, reviewer, note, at FROM outcome WHERE queue = ? AND case_id = ? "
        "ORDER BY number",
        queue.id,
        case,
    )
    outcomes = [
        {"rare": bool(rare), "reviewer": reviewer, "note": note, "at": at}
        for rare, reviewer, note, at in told
    ]
    decided = msgspec.structs.asdict(answer_of(entry, repeated=True))
    return {**decided, "seq": entry.seq, "period": entry.period, "outcomes": outcomes}


def _entry(store: Store, queue: QueueRow, case: str) -> Entry:
    found = store.find_cases(queue.id, [case])
    if not found:
        raise Problem(404, "not-found", f"The case {case!r:.100} has not been decided.")
    return found[0]


def _check_flagged(store: Store, queue: QueueRow, case: str) -> None:
    if _entry(store, queue, case).slot is None:
        raise Problem(409, "not-flagged", f"The case {case!r:.100} was not flagged.")


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
) -> list[Listed]:
    """Return flagged cases of a period, the highest score first, with reasons."""
    rows = store.query(_LISTED, queue.id, period, most, skip)
    entries = [Entry(*row[: len(Entry._fields)]) for row in rows]
    reasons = _reasons(models, entries)
    listed = []
    for (*_, reviewer, expires, rare), entry in zip(rows, entries, strict=True):
        is_held = expires is not None and expires > now
        listed.append(
            Listed(
                str(entry.case_id), entry.score or 0.0, entry.at, entry.slot or 0,
                entry.code == PROBE, reasons.get(entry.seq, []),
                reviewer if is_held else None, expires if is_held else None,
                None if rare is None else bool(rare),
            )
        )  # fmt: skip
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
        _explain(models, model, [e for e in mine if (e.queue, e.seq) not in models.reasons])
        found |= {entry.seq: models.reasons.get((entry.queue, entry.seq), []) for entry in mine}
    return found


def _explain(models: ModelCache, model: LoadedModel, entries: list[Entry]) -> None:
    """Let the models remember the reasons for the scores of entries."""
    read = [(entry, model.read(json.loads(entry.body or "{}"))) for entry in entries]
    known = [(entry, item) for entry, item in read if item.error is None]
    if not known:
        return
    frame = model.frame([item for _, item in known])
    scores = np.asarray(model.table.classifier.score_samples(frame), dtype=np.float64)
    reasons = reasons_for(model.table, frame, scores)
    for (entry, _), each in zip(known, reasons, strict=True):
        models.keep_reasons(entry.queue, entry.seq, [reason.__dict__ for reason in each])


def claim_case(store: Store, queue: QueueRow, body: ClaimBody, *, now: float) -> Claim:
    """Claim a flagged case for some time; a reviewer may claim a case again to keep it."""
    _check_flagged(store, queue, body.id)
    held = store.query(
        "SELECT reviewer FROM claim WHERE queue = ? AND case_id = ? AND expires > ?",
        queue.id,
        body.id,
        now,
    )
    if held not in ([], [(body.reviewer,)]):
        raise Problem(409, "claimed", f"{held[0][0]} has claimed the case.")
    store.query(
        "INSERT INTO claim (queue, case_id, reviewer, expires) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (queue, case_id) DO UPDATE SET reviewer = excluded.reviewer, "
        "expires = excluded.expires",
        queue.id, body.id, body.reviewer, now + body.seconds,
    )  # fmt: skip
    return Claim(body.id, body.reviewer, now + body.seconds)


def add_outcome(
    store: Store, queue: QueueRow, body: OutcomeBody, *, now: float, key: str | None
) -> Outcome:
    """Append what a reviewer found; the same words again change nothing.

    A reviewer who has changed their mind appends another outcome, and the latest counts. `key` is
    an Idempotency-Key: with it, a late repetition changes nothing even if others came in between.
    """
    _check_flagged(store, queue, body.id)
    words = {"case_id": body.id, "rare": body.rare, "reviewer": body.reviewer, "note": body.note}
    hashed = None if key is None else hashlib.sha256(key.encode()).hexdigest()
    number, same = _last_outcome(store, queue, "idempotency", hashed, words)
    if number is not None and not same:
        raise Problem(422, "idempotency-key", "The Idempotency-Key was used for another outcome.")
    if number is None:
        number, same = _last_outcome(store, queue, "case_id", body.id, words)
    if number is not None and same:
        return Outcome(body.id, number, repeated=True)
    row = {"queue": queue.id, **words, "at": now, "idempotency": hashed}
    number = store.insert_next("outcome", "number", row, scope=("queue",))
    store.query("DELETE FROM claim WHERE queue = ? AND case_id = ?", queue.id, body.id)
    return Outcome(body.id, number, repeated=False)


def _last_outcome(
    store: Store, queue: QueueRow, column: str, value: str | None, words: dict[str, Any]
) -> tuple[int | None, bool]:
    """Return the number of the latest outcome with a value, and whether it has the same words."""
    rows = store.query(
        f"SELECT number, case_id, rare, reviewer, note FROM outcome WHERE queue = ? AND "
        f"{column} = ? ORDER BY number DESC LIMIT 1",
        queue.id,
        value,
    )
    if not rows:
        return None, False
    number, case, rare, *rest = rows[0]
    return number, [case, bool(rare), *rest] == list(words.values())
