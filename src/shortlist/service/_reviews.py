"""The work of reviewers: open cases, who holds them, and outcomes. All of it is in the database."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ..online.decisions import PROBE
from ._api import CaseId, Name, Problem
from ._decider import answer_of
from ._service import Call
from ._status import QueueView
from .settings import QueueSettings
from .store import DECISION, Entry, Store

# Flagged cases, with who holds them and their last outcome.
_FLAGGED = (
    "FROM log LEFT JOIN claim ON claim.queue = log.queue AND claim.seq = log.seq AND "
    "(claim.expires IS NULL OR claim.expires > ?) LEFT JOIN outcome ON "
    "outcome.queue = log.queue AND outcome.case_id = log.case_id AND outcome.number = "
    "(SELECT max(number) FROM outcome WHERE queue = log.queue AND case_id = log.case_id) "
    "WHERE log.queue = ? AND log.slot IS NOT NULL AND "
)
_COLUMNS = (
    f"{', '.join('log.' + name for name in Entry._fields)}, claim.reviewer, claim.expires, "
    "claim.assigned, outcome.number, outcome.rare, outcome.reviewer, outcome.at, (SELECT count(*) "
    "FROM log AS later WHERE later.queue = log.queue AND later.kind = 0 AND later.joined = "
    "coalesce(log.joined, log.seq))"
)
#: SQL: whether a case has no outcome yet; those of erased persons need none. And nobody has it.
OPEN = "outcome.number IS NULL AND coalesce(length(log.seal), 0) <> 32"
FREE = f"{OPEN} AND claim.reviewer IS NULL"
_VIEWS = {
    "mine": f"{OPEN} AND claim.reviewer = ?",
    "open": OPEN,
    "closed": "outcome.number IS NOT NULL",
    "period": "log.period = ?",
}
_LATEST_FIRST = "log.queue, -outcome.number, log.seq"
# What would tell a reviewer that a case is a probe.
_TELLING = ("score", "threshold", "reason", "selected_by", "inclusion")

Note = Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")]
Seconds = Annotated[float, Meta(ge=1, le=86_400)]


class Closed(Struct):
    """The latest outcome of a case; `rare` is null if the reviewer could not tell."""

    rare: bool | None
    reviewer: str
    at: float


class FlaggedCase(NamedTuple):
    """A flagged case: its entry in the log, who holds it until when, and its last outcome."""

    entry: Entry
    holder: str | None
    expires: float | None
    assigned: bool
    outcome: Closed | None
    n_joined: int = 0

    @classmethod
    def of(cls, row: Any) -> FlaggedCase:
        """Return what a row of the database says."""
        width = len(Entry._fields)
        holder, expires, assigned, number, rare, closer, at, n_joined = row[width:]
        outcome = None if number is None else Closed(_as_bool(rare), closer, at)
        return cls(Entry(*row[:width]), holder, expires, bool(assigned), outcome, n_joined)

    @property
    def id(self) -> str:
        """The id of the case."""
        return str(self.entry.case_id)


def _as_bool(value: Any) -> bool | None:
    return None if value is None else bool(value)


def select_flagged(store: Store, queue: int, what: str, where: str, *values: Any) -> list[Any]:
    """Return something about the flagged cases of a queue for which a condition holds."""
    return store.query(f"SELECT {what} {_FLAGGED} {where}", time.time(), queue, *values)


def find_flagged(store: Store, queue: int, where: str, *values: Any) -> list[FlaggedCase]:
    """Return the flagged cases of a queue for which a condition holds."""
    return [FlaggedCase.of(row) for row in select_flagged(store, queue, _COLUMNS, where, *values)]


# --- lists of cases -------------------------------------------------------------------------------


def _reasons(call: Call, cases: list[FlaggedCase]) -> dict[int, list[dict[str, Any]]]:
    """Return for each entry the columns that raised its score, by the model that decided."""
    found: dict[int, list[dict[str, Any]]] = {case.entry.seq: [] for case in cases}
    for id in {case.entry.model or 0 for case in cases}:
        # A model that this program cannot load explains nothing.
        with contextlib.suppress(ValueError, ImportError):
            model = call.service.models.get(id, call.store)
            found |= model.explain([case.entry for case in cases if case.entry.model == id])
    return found


class CasesQuery(Struct):
    """Which cases, of which segment, and after which case of the page before."""

    view: Literal["mine", "open", "closed", "period"] = "open"
    segment: Annotated[str, Meta(max_length=200)] | None = None
    reviewer: Name | None = None
    before: CaseId | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 200


class ReviewCase(Struct):
    """A case to review, until when, and who holds it.

    Reviewers of a queue with probes see no score, no effects, and not which cases are probes.
    """

    id: str
    score: float | None
    at: float
    due: float
    period: int
    reasons: list[dict[str, Any]]
    holder: str | None
    expires: float | None
    assigned: bool
    outcome: Closed | None
    n_events: int
    segment: str | None
    probe: bool | UnsetType


class ReviewCases(Struct):
    """Cases of all periods, and how many there are on all pages together."""

    queue: str
    total: int
    cases: list[ReviewCase]


def review_cases(call: Call, query: CasesQuery) -> ReviewCases:
    """The open cases of all periods in working order, one reviewer's, closed ones, or a period's.

    Earlier periods come first. Within a period the highest score does; in a queue with probes,
    the earliest flag, because the place of a probe would give it away.
    """
    store, view = call.store, QueueView(call, call.row)
    where, values = _VIEWS[query.view], list[Any]()
    if query.view == "mine":
        values.append(call.reviewer(query.reviewer))
    elif query.view == "period":
        values.append(view.number)
    if query.segment is not None:
        where += f" AND {store.field} = ?"
        values += [view.settings.segment or "", query.segment]
    order = _LATEST_FIRST if query.view == "closed" else working_order(view.settings)
    [(total,)] = select_flagged(store, view.row.id, "count(*)", where, *values)
    if query.before is not None:
        place = select_flagged(store, view.row.id, order, "log.case_id = ?", query.before)
        if not place:
            raise Problem(404, "not-found", f"The case {query.before!r:.100} was not flagged.")
        where += f" AND ({order}) > (?, ?, ?)"
        values += place[0]
    where += f" ORDER BY {order} LIMIT ?"
    cases = find_flagged(store, view.row.id, where, *values, query.limit)
    return ReviewCases(view.row.name, total, to_review(call, view, cases))


class Backlog(Struct):
    """Open cases: their period and its beginning, who holds them (or null), and how many."""

    queue: str
    backlog: list[dict[str, Any]]


def count_open(call: Call) -> Backlog:
    """Open cases by period and by who holds them."""
    view = QueueView(call, call.row)
    what, group = "log.period, claim.reviewer, count(*)", f"{OPEN} GROUP BY 1, 2 ORDER BY 1, 2"
    rows = select_flagged(call.store, view.row.id, what, group)
    starts = {period: view.settings.periods.bounds(period)[0] for period, *_ in rows}
    names = ("period", "holder", "open", "starts")
    found = [dict(zip(names, (*row, starts[row[0]]), strict=True)) for row in rows]
    return Backlog(view.row.name, found)


def working_order(settings: QueueSettings) -> str:
    """Return the SQL of the order in which cases are to be reviewed."""
    return f"log.period, {'log.slot' if settings.probe else '-log.score'}, log.seq"


def to_review(call: Call, view: QueueView, cases: list[FlaggedCase]) -> list[ReviewCase]:
    """Return cases as reviewers see them."""
    reasons, settings = _reasons(call, cases), view.settings
    # How far columns raised a score shows how high it is.
    hidden = {"effect": None} if view.is_blind else {}
    return [
        ReviewCase(
            case.id, None if view.is_blind else case.entry.score, case.entry.at,
            settings.periods.bounds(case.entry.period)[1], case.entry.period,
            [{**each, **hidden} for each in reasons[case.entry.seq]],
            case.holder, case.expires, case.assigned, case.outcome,
            1 + case.n_joined, settings.segment_of(case.entry.body),
            UNSET if view.is_blind else case.entry.code == PROBE,
        )
        for case in cases
    ]  # fmt: skip


def find_case(call: Call) -> dict[str, Any]:
    """The decision about a case, its columns if it was flagged, and its outcomes."""
    entry, names = _entry(call, call.case), ("rare", "reviewer", "note", "at")
    words = f"SELECT {', '.join(names)} FROM outcome WHERE queue = ? AND case_id = ?"
    rows = call.store.query(f"{words} ORDER BY number", entry.queue, call.case)
    outcomes = [dict(zip(names, (_as_bool(rare), *rest), strict=True)) for rare, *rest in rows]
    decided = msgspec.structs.asdict(answer_of(entry, repeated=True))
    shown = {"seq": entry.seq, "period": entry.period, "outcomes": outcomes}
    shown["events"] = _events(call.store, entry)
    shown["columns"] = None if entry.slot is None else json.loads(entry.body or "{}")
    hidden = _TELLING if QueueView(call, call.row).is_blind else ()
    return {name: value for name, value in (decided | shown).items() if name not in hidden}


def _events(store: Store, entry: Entry) -> list[dict[str, Any]]:
    """Return the events of the case that an entry began or joined, the first thousand."""
    first = entry.joined or entry.seq
    where = f"queue = ? AND kind = {DECISION} AND (seq = ? OR joined = ?) ORDER BY seq LIMIT 1000"
    return [
        {"id": each.case_id, "at": each.at, "columns": json.loads(each.body or "{}")}
        for each in store.entries_where(where, entry.queue, first, first)
    ]


def _entry(call: Call, case: str) -> Entry:
    found = call.store.find_cases(call.row.id, [case])
    if not found:
        raise Problem(404, "not-found", f"The case {case!r:.100} has not been decided.")
    return found[-1]


# --- who holds a case -----------------------------------------------------------------------------


class ClaimBody(Struct, forbid_unknown_fields=True):
    """A claim of a case, for some time; the reviewer is named only where nobody has keys."""

    id: CaseId
    reviewer: Name | None = None
    seconds: Seconds = 1_800


class Claim(Struct):
    """A case, whose it is, and until when; an assigned case has no end."""

    id: str
    reviewer: str
    expires: float | None


class OutcomeBody(Struct, forbid_unknown_fields=True):
    """What a reviewer found: whether the case was a rare one, or null if nobody can tell."""

    id: CaseId
    rare: bool | None
    reviewer: Name | None = None
    note: Note | None = None


class Outcome(Struct):
    """Where an outcome stands among all of its queue."""

    id: str
    number: int
    repeated: bool


def find_held(call: Call, id: str, reviewer: str | None) -> FlaggedCase:
    """Return a flagged case, unless it is another reviewer's."""
    found = find_flagged(call.store, call.row.id, "log.case_id = ?", id)
    if not found:
        entry = _entry(call, id)
        raise Problem(409, "not-flagged", f"The case {entry.case_id!r:.100} was not flagged.")
    holder, is_open = found[0].holder, found[0].outcome is None
    is_anothers = holder is not None and reviewer not in (None, holder)
    if is_anothers and (is_open or call.key.person is not None):
        raise Problem(409, "claimed", f"{holder} has the case.")
    return found[0]


def hold(store: Store, case: FlaggedCase, holder: str, expires: float | None, **more: Any) -> None:
    """Let a reviewer hold a case, until a moment or for good."""
    key = {"queue": case.entry.queue, "seq": case.entry.seq}
    row = {"reviewer": holder, "expires": expires, "assigned": int(case.assigned), **more}
    store.put("claim", {**key, **row}, tuple(key))


def let_go(store: Store, case: FlaggedCase) -> None:
    """Let nobody hold a case."""
    key = case.entry.queue, case.entry.seq
    store.query("DELETE FROM claim WHERE queue = ? AND seq = ?", *key)


def claim_case(call: Call, body: ClaimBody) -> Claim:
    """Claim a flagged case for some time; its reviewer may claim it again, to keep it."""
    reviewer = call.reviewer(body.reviewer)
    with call.store.write():
        case = find_held(call, body.id, reviewer)
        if case.outcome is not None:
            raise Problem(409, "closed", f"{case.outcome.reviewer} has closed the case.")
        return take(call, case, reviewer, body.seconds)


def take(call: Call, case: FlaggedCase, reviewer: str, seconds: float) -> Claim:
    """Let a reviewer hold a case for some time; what is assigned to them has no end."""
    expires = None if case.assigned else time.time() + seconds
    hold(call.store, case, reviewer, expires)
    call.note("claim", vouch=[("claim", case.entry.queue, case.entry.seq)])
    return Claim(case.id, reviewer, expires)


def add_outcome(call: Call, body: OutcomeBody) -> Outcome:
    """Append what a reviewer found; the same words again change nothing.

    A reviewer who has changed their mind appends another outcome, and the latest counts. With an
    Idempotency-Key, a late repetition changes nothing even if others came in between.
    """
    reviewer = call.reviewer(body.reviewer)
    words = {"case_id": body.id, "rare": body.rare, "reviewer": reviewer, "note": body.note}
    key = call.headers.get(b"idempotency-key")
    hashed = None if key is None else hashlib.sha256(key).hexdigest()
    with call.store.write():
        case = find_held(call, body.id, reviewer)
        queue = case.entry.queue
        keyed = _last_outcome(call, queue, "idempotency", hashed)
        if keyed is not None and keyed[1:] != tuple(words.values()):
            detail = "The Idempotency-Key was used for another outcome."
            raise Problem(422, "idempotency-key", detail)
        last = keyed or _last_outcome(call, queue, "case_id", body.id)
        if last is not None and last[1:] == tuple(words.values()):
            return Outcome(body.id, last[0], repeated=True)
        row = {"queue": queue, **words, "at": time.time(), "idempotency": hashed}
        number = call.store.insert_next("outcome", "number", row, scope=("queue",))
        hold(call.store, case, reviewer, None, assigned=0)  # who closes a case has it for good
        vouch = [("outcome", queue, number), ("claim", queue, case.entry.seq)]
        call.note("outcome", {"number": number}, vouch=vouch)
    return Outcome(body.id, number, repeated=False)


def _last_outcome(call: Call, queue: int, column: str, value: str | None) -> Any:
    """Return the number and the words of the latest outcome with a value, or None."""
    rows = call.store.query(
        f"SELECT number, case_id, rare, reviewer, note FROM outcome WHERE queue = ? AND "
        f"{column} = ? ORDER BY number DESC LIMIT 1",
        queue,
        value,
    )
    return next(((*row[:2], _as_bool(row[2]), *row[3:]) for row in rows), None)
