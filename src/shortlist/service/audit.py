"""Proof afterwards: every decision is made again from the log, and every promise is checked.

The audit reads the database, which it cannot change, and nothing else. It has code of its own for
everything that can be checked without a controller; only the replay uses the one that decided.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import Any

import msgspec

from ..online.decisions import MOMENT_REFUSED, PROBE, WAITS
from . import store as log
from ._api import Problem
from ._chain import CheckedChain, is_erased
from ._models import ModelCache
from ._replica import ReplayError, Replica
from .settings import WORK_UNITS, QueueSettings, build_name, digest_of, entity_of, id_of
from .store import Entry, QueueRow, Store

_PAGE = 10_000
_MOST_PROBLEMS = 20


@dataclass
class QueueAudit:
    """What the audit of a queue found.

    Attributes
    ----------
    queue : str
        Its name.
    n_decisions, n_flags, n_periods : int
        Sizes of the log.
    n_replayed : int
        Decisions that were made again and compared, bit for bit.
    n_other : int
        Decisions that were checked, but not made again: those of other versions of the program.
    n_erased : int
        Decisions whose cases were erased: their ids and columns are gone, their seals are checked.
    n_rescored : int
        Flagged or waiting cases that were scored again by their model file, and compared bit for
        bit. The columns of other cases are not kept.
    problems : list of str
        What is wrong; empty if every promise was kept.
    """

    queue: str
    n_decisions: int = 0
    n_flags: int = 0
    n_periods: int = 0
    n_replayed: int = 0
    n_other: int = 0
    n_erased: int = 0
    n_rescored: int = 0
    problems: list[str] = field(default_factory=list)

    def expect(self, is_right: bool, problem: str) -> None:
        """Add a problem if something is not right, unless there are many."""
        if not is_right and len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)

    @contextlib.contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Add a problem if something cannot be read, rather than raise an error."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.expect(False, f"the {what} cannot be read: {error!r}")


class Head(msgspec.Struct):
    """Where the chains of the queues and of the notes ended: the place and the hash of each."""

    queues: dict[str, tuple[int, str]]
    notes: tuple[int, str]


def read_head(store: Store, *, key: bytes | None = None) -> dict[str, Any]:
    """Return where the chains of a database end, signed if a key is given; keep it elsewhere."""
    last = store.query("SELECT number, hash FROM note ORDER BY number DESC LIMIT 1")
    ends = {row.name: [row.last_seq, bytes(row.head).hex()] for row in store.queues()}
    head: dict[str, Any] = {"at": time.time(), "queues": ends}
    head["notes"] = [last[0][0], bytes(last[0][1]).hex()] if last else [0, ""]
    return head if key is None else {**head, "signature": _signature(head, key)}


def _signature(head: dict[str, Any], key: bytes) -> str:
    signed = {name: value for name, value in head.items() if name != "signature"}
    return hmac.new(key, json.dumps(signed, sort_keys=True).encode(), "sha256").hexdigest()


def audit_store(
    store: Store,
    *,
    heads: Sequence[dict[str, Any]] = (),
    key: bytes | None = None,
    build: str | None = None,
) -> list[QueueAudit]:
    """Audit all queues of a database; one without queues proves nothing, and is an error.

    With heads that were kept elsewhere, the chains must lead through all of them; with a key, they
    must be signed by it. What concerns no queue in particular is reported with the first one.
    """
    rows = store.queues()
    if not rows:
        raise ValueError("The database has no queue, so that there is nothing to check.")
    audits = [QueueAudit(row.name) for row in rows]
    first = audits[0]
    for head in heads:
        is_signed = key is None or hmac.compare_digest(
            str(head.get("signature")), _signature(head, key)
        )
        first.expect(is_signed, f"the head of {head.get('at')} is not signed by this key")
        gone = sorted(head["queues"].keys() - {row.name for row in rows})
        first.expect(not gone, f"the queues {gone} of a head that was kept are gone")
    with first.reading("notes"):
        ends = [head["notes"] for head in heads]
        _check_notes(store, CheckedChain("note", b"", ends, first.expect), first)
    first.expect(not store.missing_locks(), f"the database lacks its locks {store.missing_locks()}")
    for id, content, digest in store.query("SELECT id, file, sha256 FROM model"):
        is_same = hashlib.sha256(bytes(content)).hexdigest() == digest
        first.expect(is_same, f"the file of model {id} was changed")
    for row, found in zip(rows, audits, strict=True):
        with found.reading("log"):
            ends = [head["queues"].get(row.name, (0, "")) for head in heads]
            chain = CheckedChain("entry", row.first_head(), ends, found.expect)
            _Auditor(store, row, found, build or build_name(), chain).run()
    return audits


def _check_notes(store: Store, chain: CheckedChain, found: QueueAudit) -> None:
    """Check the notes, and every row they vouch for."""
    vouched: dict[str, dict[str, str | None]] = {table: {} for table in log.VOUCHED}
    names = ("number", "at", "key_id", "action", "queue", "detail", "hash")
    for number, *values in store.query(f"SELECT {', '.join(names)} FROM note ORDER BY number"):
        note = dict(zip(names[1:], values, strict=True))
        chain.see(number, note)
        detail = json.loads(note["detail"])
        for table in vouched.keys() & detail.keys():
            vouched[table].update(detail[table])
    chain.end()
    for table, noted in vouched.items():
        there = {key: hash for key, hash in noted.items() if hash is not None}  # null: it is gone
        for key in dict(there.items() ^ store.hashes(table).items()):
            found.expect(False, f"row {key} of the table {table} is not the one that was noted")


def _fits_columns(entry: Entry, settings: QueueSettings) -> bool:
    """Whether a flagged case has the id, entity and digest of its columns, unless erased."""
    if is_erased(entry.seal):
        return True
    fields = json.loads(entry.body or "{}")
    try:
        is_own = entity_of(fields, settings.entity) == entry.entity
        is_own = is_own and id_of(fields, settings.id_fields) == entry.case_id
        return is_own and digest_of(fields) == entry.digest
    except Problem:
        return False


class _Auditor:
    """Goes through the log of one queue: gaps, order, ids, slots, capacities, and a replay."""

    def __init__(
        self, store: Store, row: QueueRow, found: QueueAudit, build: str, chain: CheckedChain
    ) -> None:
        self._store, self._row, self._found, self._chain = store, row, found, chain
        self._expect, self._settings = found.expect, QueueSettings.from_json(row.settings)
        known = store.query("SELECT id FROM build WHERE name = ?", build)
        self._build = int(known[0][0]) if known else None
        self._replica: Replica | None = None
        self._models = ModelCache()
        self._at = float("-inf")
        self._period: int | None = None
        self._cases: set[str] = set()
        self._entities = self._settings.entity_cases()
        # Since when, and whose, by the entries with which cases began to wait.
        self._waiting: dict[int, tuple[float, str | None]] = {}
        self._counts: dict[int, list[int]] = {}  # flags, cases and work of each period
        self._spent: defaultdict[int, Fraction] = defaultdict(Fraction)
        self._changes: list[tuple[float, int, Fraction]] = []

    def run(self) -> None:
        """Report what is wrong."""
        while page := self._store.entries(self._row.id, self._chain.last, most=_PAGE):
            for entry in page:
                self._see(entry)
            self._replay(page)
            self._rescore([e for e in page if e.kind == log.DECISION and e.model is not None])
        self._found.n_other = self._found.n_decisions - self._found.n_replayed
        self._found.n_periods = len(self._counts)
        self._chain.end()
        self._check_counts()
        if self._row.total is not None:
            self._check_total()

    # --- what must hold whatever a controller decided ------------------------------------------

    def _see(self, entry: Entry) -> None:
        """Check the next entry."""
        where, period = f"entry {entry.seq}", self._settings.periods.number(entry.at)
        self._found.n_erased += is_erased(entry.seal) and entry.kind != log.PULLED
        self._chain.see(entry.seq, entry._asdict())
        is_later = entry.at >= self._at or entry.kind == log.CLOCK
        self._expect(is_later, f"{where} is earlier than the one before it")
        self._expect(
            entry.period == period,
            f"{where} is counted in period {entry.period}, but its moment is in period {period}",
        )
        before, self._at, self._period = self._at, entry.at, entry.period
        if entry.kind == log.CAPACITY:
            body = json.loads(entry.body or "{}")
            amount = Fraction(str(body[self._settings.unit]))
            self._changes.append((body["from"], entry.seq, amount))
        elif entry.kind == log.CLOCK:
            self._set_back(before)
        elif entry.kind == log.DECISION:
            self._see_decision(entry, where)
        elif entry.kind == log.PULLED:
            is_there = entry.at <= self._end_of(entry.joined)
            self._expect(is_there, f"{where} hands out a case that does not wait, or no longer")
            if entry.slot is not None:
                self._see_entity(entry, where)
                self._see_flag(entry, where)
            self._waiting.pop(entry.joined or 0, None)

    def _end_of(self, key: Any) -> float:
        """Return until when a case can wait."""
        return self._waiting.get(key, (float("-inf"), None))[0] + (self._settings.within or 0.0)

    def _set_back(self, before: float) -> None:
        """Let the cases that waited before the clock was set back wait again."""
        self._entities = self._settings.entity_cases()
        still = [(key, each) for key, each in self._waiting.items() if self._end_of(key) > before]
        self._waiting = {key: (self._at, entity) for key, (_, entity) in still}
        for key, (_, entity) in self._waiting.items():
            self._entities.wait(entity, key, -math.inf)

    def _see_decision(self, entry: Entry, where: str) -> None:
        self._found.n_decisions += 1
        if entry.case_id is None:
            self._expect(self._settings.is_guarded, f"{where} decides about a case without an id")
        else:
            is_new = entry.case_id not in self._cases
            self._expect(is_new, f"{where} decides about a case for the second time")
            self._cases.add(entry.case_id)
        self._see_entity(entry, where)
        counts = self._counts.setdefault(entry.period, [0, 0, 0])
        counts[1] += entry.code != MOMENT_REFUSED
        if entry.code == WAITS:
            self._waiting[entry.seq] = entry.at, entry.entity
        if entry.slot is not None:
            self._see_flag(entry, where)

    def _see_entity(self, entry: Entry, where: str) -> None:
        """Check that a case has one flag, and that its other events refer to it."""
        cases, score, entity = self._entities, entry.score or 0.0, entry.entity
        if entity is None:
            return
        case = cases.case_of(entity, entry.at)
        if case is not None and case.at == math.inf and self._end_of(case.key) <= entry.at:
            cases.end(entity)
        if entry.slot is not None or entry.code == WAITS:
            is_own = case is not None and case.key == entry.joined and score >= case.highest
            is_due = is_own or cases.settle(entity, score, entry.at) is None
            self._expect(is_due, f"{where} is flagged, although its entity has a case")
            cases.wait(entity, entry.seq, score)
            if entry.slot is not None:
                cases.begin(entity, entry.joined or entry.seq, score, entry.at)
        elif entry.joined is not None:
            is_own = cases.join(entity, score, entry.at) in (entry.joined, None)
            self._expect(is_own, f"{where} joins another case than that of its entity")

    def _see_flag(self, entry: Entry, where: str) -> None:
        self._found.n_flags += 1
        counts = self._counts.setdefault(entry.period, [0, 0, 0])
        counts[0], counts[2] = counts[0] + 1, counts[2] + (entry.work or 0)
        self._expect(
            entry.slot == counts[0], f"{where} has slot {entry.slot} where {counts[0]} is next"
        )
        settings, score, threshold = self._settings, entry.score, entry.threshold
        has_columns = settings.is_guarded or _fits_columns(entry, settings)
        self._expect(has_columns, f"{where} has another id or digest than its columns")
        is_shared = (entry.total_slot is None) == (self._row.total is None)
        self._expect(is_shared, f"{where} has no slot of the shared total, or one of none")
        exceeds = score is not None and threshold is not None and score > threshold
        is_drawn = entry.code == PROBE or entry.kind == log.PULLED
        is_chosen = exceeds or (is_drawn and threshold is not None)
        self._expect(is_chosen, f"{where} is flagged, but its score does not exceed its threshold")
        worth = float("-inf") if settings.worth is None else settings.worth
        is_worth = score is not None and score >= worth
        self._expect(is_worth, f"{where} is flagged, but worth less than {worth:g}")
        if settings.is_capped:
            self._see_capacity(entry, where)

    def _see_capacity(self, entry: Entry, where: str) -> None:
        allowed = max(change for change in self._changes if change[0] <= entry.at)[2]
        used, what = Fraction(entry.slot or 0), "flag"
        if self._settings.of_work:
            self._spent[entry.period] += Fraction(str(entry.effort or 0))  # as it was given
            used, what = self._spent[entry.period], "work"
            is_counted = Fraction(entry.spent or 0, WORK_UNITS) >= used
            self._expect(is_counted, f"{where} counts less work than its flags take")
        what = f"{what} {float(used):g} of {float(allowed):g} in period {entry.period}"
        self._expect(used <= allowed, f"{where} is {what}")

    def _check_counts(self) -> None:
        """Compare what the queue has counted with its log."""
        row, settings, query = self._row, self._settings, self._store.query
        used, seen, spent = self._counts.get(self._period or 0, [0, 0, 0])
        counted = row._replace(
            last_seq=self._chain.last, head=self._chain.head, high_water=self._at,
            period=self._period, used=used, seen=seen, spent=spent,
        )  # fmt: skip
        is_counted = row._replace(head=bytes(row.head)) == counted
        self._expect(is_counted, "the queue's row counts something else than its log")
        past = {p: tuple(n) for p, n in self._counts.items() if any(n) and p != self._period}
        names = "period, capacity, used, seen, spent"
        ended = query(f"SELECT {names} FROM ended WHERE queue = ?", row.id)
        is_past = {p: tuple(n) for p, _, *n in ended if p != self._period} == past
        self._expect(is_past, "the numbers of periods that have ended are not those of the log")
        units = WORK_UNITS if settings.of_work else 1
        shown = {row.capacity, *(capacity for _, capacity, *_ in ended)}
        is_set = shown <= {int(amount * units) for *_, amount in self._changes}
        [(of_work,)] = query("SELECT of_work FROM queue WHERE id = ?", row.id)
        is_set = not settings.is_capped or (is_set and of_work == settings.of_work)
        self._expect(is_set, "the queue or a past period has a capacity that nobody has set")

    def _check_total(self) -> None:
        """Check that the flags of all queues with a shared total have its slots, without gaps."""
        query = self._store.query
        notes = query("SELECT detail FROM note WHERE action = ?", log.TOTAL_SET)
        [(capacity,)] = query("SELECT capacity FROM total")
        largest = max([capacity, *(json.loads(detail)["capacity"] for (detail,) in notes)])
        for period, n, last in query(
            "SELECT period, count(*), max(total_slot) FROM log WHERE total_slot > 0 GROUP BY period"
        ):
            self._expect(n == last, f"the shared total has gaps in period {period}")
            amount = f"{last} flags of {largest}"
            self._expect(last <= largest, f"the shared total has {amount} in period {period}")

    # --- what can be computed again --------------------------------------------------------------

    def _replay(self, page: list[Entry]) -> None:
        """Make the decisions of this version of the program again, from its first state on."""
        if self._replica is None:
            starts = (e for e in page if e.kind == log.BUILD and e.build == self._build)
            if (start := next(starts, None)) is None:
                return
            state = json.loads(start.body or "{}")
            self._replica = Replica(
                self._store, self._settings, start.build, seq=start.seq, state=state
            )
        replica, before = self._replica, self._replica.n_compared
        saved = "SELECT seq, state FROM snapshot WHERE queue = ? AND build = ?"
        [(seq, state)] = self._store.query(saved, self._row.id, self._build) or [(0, "")]
        try:
            for _, part in groupby(page, key=lambda entry: entry.seq > seq):
                replica.follow([entry for entry in part if entry.seq > replica.seq])
                is_same = replica.seq != seq or not replica.is_own or replica.state() == state
                self._expect(is_same, f"the saved state is not the one after entry {seq}")
            self._found.n_replayed += replica.n_compared - before
        except ReplayError as error:
            self._expect(False, str(error))
            self._replica = None

    def _rescore(self, decisions: list[Entry]) -> None:
        """Score flagged cases from their columns, if this version can repeat that."""
        for id in {entry.model or 0 for entry in decisions}:
            flagged = [e for e in decisions if e.model == id and e.body is not None]
            try:
                model = self._models.get(id, self._store)
            except (ValueError, ImportError):
                continue  # such as one of another version, or that needs a package
            items = model.scored([model.read(json.loads(e.body or "{}")) for e in flagged])
            for entry, item in zip(flagged, items, strict=True):
                is_same = item.error is None and item.score == entry.score
                self._expect(is_same, f"entry {entry.seq} has a score that its columns do not have")
            self._found.n_rescored += len(flagged)
