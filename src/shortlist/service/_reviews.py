"""The work of reviewers: the list, claims and outcomes. All of it is read from the database."""

from __future__ import annotations

import contextlib
import hashlib
import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..online.decisions import PROBE
from ._api import Problem, Seq
from ._decider import answer_of
from ._service import Call
from ._status import LATEST_OUTCOME, QueueView
from .store import Entry

_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
_FLAGGED = "log.queue = ? AND log.period = ? AND log.slot IS NOT NULL"
_LISTED = (
    f"SELECT {', '.join('log.' + name for name in Entry._fields)}, claim.reviewer, claim.expires, "
    f"{LATEST_OUTCOME} FROM log LEFT JOIN claim ON claim.queue = log.queue AND "
    f"claim.case_id = log.case_id WHERE {_FLAGGED} ORDER BY log.score DESC, log.seq "
    "LIMIT ? OFFSET ?"
)

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=_PRINTABLE)]
CaseId = Annotated[str, Meta(min_length=1, max_length=200, pattern=_PRINTABLE)]
Note = Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")]


class ListQuery(Struct):
    """Which part of the list of a period; -1 is the present one."""

    period: Annotated[int, Meta(ge=-1, le=1 << 53)] = -1
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 200
    skip: Seq = 0


class Listed(Struct):
    """A flagged case."""

    id: str
    score: float
    at: float
    slot: int
    probe: bool
    reasons: list[dict[str, Any]]
    claimed_by: str | None
    claim_expires: float | None
    outcome: bool | None


class Listing(Struct):
    """Flagged cases of a period, and how many there are."""

    queue: str
    period: int
    flagged: int
    cases: list[Listed]


class ClaimBody(Struct, forbid_unknown_fields=True):
    """A claim of a case, for some time."""

    id: CaseId
    reviewer: Name
    seconds: Annotated[float, Meta(ge=1, le=86_400)] = 1_800


class Claim(Struct):
    """A case, whose it is, and until when."""

    id: str
    reviewer: str
    expires: float


class OutcomeBody(Struct, forbid_unknown_fields=True):
    """What a reviewer found: whether the case was one of the rare ones."""

    id: CaseId
    rare: bool
    reviewer: Name
    note: Note | None = None


class Outcome(Struct):
    """Where an outcome stands among all of its queue."""

    id: str
    number: int
    repeated: bool


def find_case(call: Call) -> dict[str, Any]:
    """The decision about a case, and its outcomes."""
    entry, names = _entry(call, call.case), ("rare", "reviewer", "note", "at")
    rows = call.store.query(
        f"SELECT {', '.join(names)} FROM outcome WHERE queue = ? AND case_id = ? ORDER BY number",
        entry.queue,
        call.case,
    )
    outcomes = [dict(zip(names, (bool(rare), *rest), strict=True)) for rare, *rest in rows]
    decided = msgspec.structs.asdict(answer_of(entry, repeated=True))
    return {**decided, "seq": entry.seq, "period": entry.period, "outcomes": outcomes}


def _entry(call: Call, case: str) -> Entry:
    found = call.store.find_cases(call.row.id, [case])
    if not found:
        raise Problem(404, "not-found", f"The case {case!r:.100} has not been decided.")
    return found[0]


def list_cases(call: Call, query: ListQuery) -> Listing:
    """The flagged cases of a period, the highest score first."""
    store, queue, now = call.store, call.row, time.time()
    period = query.period if query.period >= 0 else QueueView(call, queue).number
    [(flagged,)] = store.query(f"SELECT count(*) FROM log WHERE {_FLAGGED}", queue.id, period)
    rows = store.query(_LISTED, queue.id, period, query.limit, query.skip)
    entries = [Entry(*row[: len(Entry._fields)]) for row in rows]
    reasons = _reasons(call, entries)
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
    return Listing(queue.name, period, flagged, listed)


def _reasons(call: Call, entries: list[Entry]) -> dict[int, list[dict[str, Any]]]:
    """Return for each entry the columns that raised its score, by the model that decided."""
    found: dict[int, list[dict[str, Any]]] = {}
    for id in {entry.model or 0 for entry in entries}:
        # A model that this program cannot load explains nothing.
        with contextlib.suppress(ValueError, ImportError):
            model = call.service.models.get(id, call.store)
            found |= model.explain([entry for entry in entries if entry.model == id])
    return found


def claim_case(call: Call, body: ClaimBody) -> Claim:
    """Claim a flagged case for some time; its reviewer may claim it again, to keep it."""
    store, now = call.store, time.time()
    with store.write():
        entry = _flagged(call, body.id)
        queue = entry.queue
        held = store.query(
            "SELECT reviewer FROM claim WHERE queue = ? AND case_id = ? AND expires > ?",
            queue,
            body.id,
            now,
        )
        if held not in ([], [(body.reviewer,)]):
            raise Problem(409, "claimed", f"{held[0][0]} has claimed the case.")
        claim = Claim(body.id, body.reviewer, now + body.seconds)
        store.query(
            "INSERT INTO claim (queue, case_id, reviewer, expires) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (queue, case_id) DO UPDATE SET reviewer = excluded.reviewer, "
            "expires = excluded.expires",
            queue, *msgspec.structs.astuple(claim),
        )  # fmt: skip
        call.note("claim", {"seq": entry.seq, "expires": claim.expires})
    return claim


def _flagged(call: Call, case: str) -> Entry:
    """Return the decision about a flagged case."""
    entry = _entry(call, case)
    if entry.slot is None:
        raise Problem(409, "not-flagged", f"The case {case!r:.100} was not flagged.")
    return entry


def add_outcome(call: Call, body: OutcomeBody) -> Outcome:
    """Append what a reviewer found; the same words again change nothing.

    A reviewer who has changed their mind appends another outcome, and the latest counts. With an
    Idempotency-Key, a late repetition changes nothing even if others came in between.
    """
    words = {"case_id": body.id, "rare": body.rare, "reviewer": body.reviewer, "note": body.note}
    key = call.headers.get(b"idempotency-key")
    hashed = None if key is None else hashlib.sha256(key).hexdigest()
    with call.store.write():
        queue = _flagged(call, body.id).queue
        keyed = _last_outcome(call, queue, "idempotency", hashed)
        if keyed is not None and keyed[1:] != tuple(words.values()):
            detail = "The Idempotency-Key was used for another outcome."
            raise Problem(422, "idempotency-key", detail)
        last = keyed or _last_outcome(call, queue, "case_id", body.id)
        if last is not None and last[1:] == tuple(words.values()):
            return Outcome(body.id, last[0], repeated=True)
        row = {"queue": queue, **words, "at": time.time(), "idempotency": hashed}
        number = call.store.insert_next("outcome", "number", row, scope=("queue",))
        call.store.query("DELETE FROM claim WHERE queue = ? AND case_id = ?", queue, body.id)
        call.note("outcome", {"number": number}, vouch=("outcome", queue, number))
    return Outcome(body.id, number, repeated=False)


def _last_outcome(call: Call, queue: int, column: str, value: str | None) -> Any:
    """Return the number and the words of the latest outcome with a value, or None."""
    rows = call.store.query(
        f"SELECT number, case_id, rare, reviewer, note FROM outcome WHERE queue = ? AND "
        f"{column} = ? ORDER BY number DESC LIMIT 1",
        queue,
        value,
    )
    return next(((*row[:2], bool(row[2]), *row[3:]) for row in rows), None)
