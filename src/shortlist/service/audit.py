"""Proof afterwards: every decision is made again from the log, and every promise is checked.

The audit reads the database, which it cannot change, and nothing else. It has code of its own for
everything that can be checked without a controller; only the replay uses the one that decided.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..online.decisions import MOMENT_REFUSED, PROBE
from ._api import Problem
from ._chain import erased_name, is_erased, link
from ._models import LoadedModel, calibration_bytes, is_own_scorer, read_model
from ._replica import ReplayError, Replica
from ._routes import digest_of, id_of
from .settings import WORK_UNITS, QueueSettings, build_name
from .store import (
    BUILD,
    CAPACITY,
    CLOCK,
    DECISION,
    ERASED,
    TOTAL_SET,
    VOUCHED,
    Entry,
    QueueRow,
    Store,
)  # fmt: skip

__all__ = ["QueueAudit", "audit_store", "read_head"]

_PAGE = 10_000
_MOST_PROBLEMS = 20
#: For each queue the entries that were erased, each with the numbers of its outcomes.
_Erased = defaultdict[str, dict[int, set[int]]]


@dataclass
class QueueAudit:
    """What the audit of a queue found.

    Attributes
    ----------
    queue : str
        Its name.
    n_entries, n_decisions, n_flags, n_periods : int
        Sizes of the log.
    n_replayed : int
        Decisions that were made again and compared, bit for bit.
    n_other : int
        Decisions by other versions of the program: they were checked, but not made again.
    n_erased : int
        Decisions whose cases were erased: their ids and columns are gone, their seals are checked.
    n_rescored : int
        Flagged cases that were scored again by their model file, and compared bit for bit. The
        columns of other cases are not kept.
    problems : list of str
        What is wrong; empty if every promise was kept.
    """

    queue: str
    n_entries: int = 0
    n_decisions: int = 0
    n_flags: int = 0
    n_periods: int = 0
    n_replayed: int = 0
    n_other: int = 0
    n_erased: int = 0
    n_rescored: int = 0
    problems: list[str] = field(default_factory=list)

    def tell(self, problem: str) -> None:
        """Add a problem, unless there are many."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


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
    must be signed by it. What is wrong with no queue in particular is told with the first one.
    """
    rows = store.queues()
    if not rows:
        raise ValueError("The database has no queue, so that there is nothing to check.")
    audits = [QueueAudit(row.name) for row in rows]
    for head in heads:
        signature = str(head.get("signature"))
        if key is not None and not hmac.compare_digest(signature, _signature(head, key)):
            audits[0].tell(f"the head of {head.get('at')} is not signed by this key")
        for name in head["queues"].keys() - {row.name for row in rows}:
            audits[0].tell(f"the queue {name!r} of a head that was kept is gone")
    erased: _Erased = defaultdict(dict)
    with _reading("notes", audits[0]):
        chain = _Chain("note", b"", [head["notes"] for head in heads], audits[0])
        erased = _check_notes(store, chain, audits[0])
    for row, found in zip(rows, audits, strict=True):
        with _reading("log", found):
            ends = [head["queues"].get(row.name, (0, "")) for head in heads]
            chain = _Chain("entry", row.first_head(), ends, found)
            _Auditor(store, row, found, build or build_name(), chain, erased[row.name]).run()
    return audits


@contextlib.contextmanager
def _reading(what: str, found: QueueAudit) -> Iterator[None]:
    """Tell that something cannot be read, rather than raise an error."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found.tell(f"the {what} cannot be read: {error!r}")


class _Chain:
    """Rows that follow from one another, and lead through the heads that were kept."""

    def __init__(self, what: str, head: bytes, ends: Iterable[Any], found: QueueAudit) -> None:
        self._what, self.head, self.last, self._tell = what, head, 0, found.tell
        self._kept = list(ends)
        self._most = max((place for place, _ in self._kept), default=0)

    def see(self, place: int, row: dict[str, Any]) -> None:
        """Check the next row."""
        where, head, hash = f"{self._what} {place}", link(self.head, row), bytes(row["hash"])
        if place != self.last + 1 or head != hash:
            self._tell(f"{where} does not follow from what comes before it")
        if any(place == each and hash.hex() != kept for each, kept in self._kept):
            self._tell(f"{where} is not the one of a head that was kept")
        self.last, self.head = place, hash

    def end(self) -> None:
        """Check that nothing is missing at the end."""
        if self._most > self.last:
            last = f"the last one is {self.last}"
            self._tell(f"a head that was kept has {self._what} {self._most}, but {last}")


def _check_notes(store: Store, chain: _Chain, found: QueueAudit) -> _Erased:
    """Check the notes, and every row they vouch for; return which entries were erased."""
    erased: _Erased = defaultdict(dict)
    vouched: dict[str, dict[str, str]] = {table: {} for table in VOUCHED}
    names = ("number", "at", "key_id", "action", "queue", "detail", "hash")
    for number, *values in store.query(f"SELECT {', '.join(names)} FROM note ORDER BY number"):
        note = dict(zip(names[1:], values, strict=True))
        chain.see(number, note)
        detail = json.loads(note["detail"])
        for table in vouched.keys() & detail.keys():
            vouched[table].update(detail[table])
        if note["action"] == ERASED:
            erased[note["queue"]] |= {seq: set() for seq in detail["entries"]}
            for number, seq in detail["outcomes"].items():
                erased[note["queue"]][seq].add(int(number))
    chain.end()
    for table, rows in vouched.items():
        there = store.hashes(table)
        for key in there.keys() | rows.keys():
            if there.get(key) != rows.get(key):
                found.tell(f"row {key} of the table {table} is not the one that was noted")
    return erased


def _fits_columns(entry: Entry, id_fields: tuple[str, ...]) -> bool:
    """Whether a flagged case has the id and the digest of its columns, unless it was erased."""
    if is_erased(entry.seal):
        return True
    fields = json.loads(entry.body or "{}")
    try:
        return id_of(fields, id_fields) == entry.case_id and digest_of(fields) == entry.digest
    except Problem:
        return False


class _Auditor:
    """Goes through the log of one queue: gaps, order, ids, slots, capacities, and a replay."""

    def __init__(
        self,
        store: Store,
        row: QueueRow,
        found: QueueAudit,
        build: str,
        chain: _Chain,
        erased: dict[int, set[int]],
    ) -> None:
        self._store, self._row, self._found = store, row, found
        self._chain, self._erased = chain, erased
        self._settings = QueueSettings.from_json(row.settings)
        known = store.query("SELECT id FROM build WHERE name = ?", build)
        self._build = int(known[0][0]) if known else None
        self._replica: Replica | None = None
        self._models: dict[int, LoadedModel | None] = {}
        self._at = float("-inf")
        self._period: int | None = None
        self._cases: set[str] = set()
        self._counts: dict[int, list[int]] = {}  # flags, cases and work of each period
        self._spent: defaultdict[int, Fraction] = defaultdict(Fraction)
        self._changes: list[tuple[float, int, Fraction]] = []
        self._forgotten: dict[int, tuple[str | None, None, None]] = {}  # what erased outcomes say
        self._tell = self._found.tell

    def run(self) -> None:
        """Tell what is wrong."""
        while page := self._store.entries(self._row.id, self._chain.last, most=_PAGE):
            for entry in page:
                self._see(entry)
            self._replay(page)
            self._rescore([e for e in page if e.kind == DECISION and e.model is not None])
        self._chain.end()
        self._check_counts()
        self._check_total()
        self._check_outcomes()

    # --- what must hold whatever a controller decided ------------------------------------------

    def _see(self, entry: Entry) -> None:
        """Check the next entry."""
        where = f"entry {entry.seq}"
        self._found.n_entries += 1
        self._chain.see(entry.seq, entry._asdict())
        if is_erased(entry.seal):
            self._found.n_erased += 1
            if entry.seq not in self._erased:
                self._tell(f"{where} was erased without a note")
            self._see_erased(entry, where)
        if entry.at < self._at and entry.kind != CLOCK:
            self._tell(f"{where} is earlier than the one before it")
        if entry.period != self._settings.periods.number(entry.at):
            self._tell(f"{where} is counted in period {entry.period}, where its moment is not")
        self._at, self._period = entry.at, entry.period
        if entry.kind == CAPACITY:
            body = json.loads(entry.body or "{}")
            amount = Fraction(str(body[self._settings.unit]))
            self._changes.append((body["from"], entry.seq, amount))
        elif entry.kind == DECISION:
            self._see_decision(entry, where)

    def _see_erased(self, entry: Entry, where: str) -> None:
        """Check that nobody has written something where a person was forgotten."""
        is_named = str(entry.case_id).startswith(erased_name(entry.seq))
        if not is_named or (entry.digest, entry.body) != (None, None):
            self._tell(f"{where} was erased, but has an id or columns again")
        for number in self._erased.get(entry.seq, ()):
            self._forgotten[number] = entry.case_id, None, None

    def _check_outcomes(self) -> None:
        """Check that what is left of erased outcomes is about the cases that notes say."""
        names = "number, case_id, note, idempotency, seal"
        rows = self._store.query(f"SELECT {names} FROM outcome WHERE queue = ?", self._row.id)
        left = {number: tuple(kept) for number, *kept, seal in rows if is_erased(seal)}
        if left != self._forgotten:
            self._tell("outcomes were erased without a note, or have words or a case again")

    def _see_decision(self, entry: Entry, where: str) -> None:
        self._found.n_decisions += 1
        may_lack = self._settings.is_guarded  # lines of a stream may have no ids
        if entry.case_id in self._cases or (entry.case_id is None and not may_lack):
            self._tell(f"{where} decides about a case without an id, or for the second time")
        if entry.case_id is not None:
            self._cases.add(entry.case_id)
        counts = self._counts.setdefault(entry.period, [0, 0, 0])
        counts[1] += entry.code != MOMENT_REFUSED
        self._found.n_periods = len(self._counts)
        if entry.slot is not None:
            self._see_flag(entry, where)

    def _see_flag(self, entry: Entry, where: str) -> None:
        self._found.n_flags += 1
        counts = self._counts[entry.period]
        counts[0], counts[2] = counts[0] + 1, counts[2] + (entry.work or 0)
        if entry.slot != counts[0]:
            self._tell(f"{where} has slot {entry.slot} where {counts[0]} is next")
        if not self._settings.is_guarded and not _fits_columns(entry, self._settings.id_fields):
            self._tell(f"{where} has another id or digest than its columns")
        if self._settings.is_capped:
            self._see_capacity(entry, where)
        if entry.score is None or entry.threshold is None:
            self._tell(f"{where} has no score or threshold")
        elif not entry.score > entry.threshold and entry.code != PROBE:
            self._tell(f"{where} is flagged, but its score does not exceed its threshold")
        if self._settings.worth is not None and (entry.score or 0) < self._settings.worth:
            self._tell(f"{where} is flagged, but worth less than {self._settings.worth:g}")

    def _see_capacity(self, entry: Entry, where: str) -> None:
        allowed = max(change for change in self._changes if change[0] <= entry.at)[2]
        if not self._settings.of_work:
            if (entry.slot or 0) > allowed:
                flag = f"flag {entry.slot} of {allowed}"
                self._tell(f"{where} is {flag} in period {entry.period}")
            return
        self._spent[entry.period] += Fraction(str(entry.effort or 0))  # as it was given
        spent = self._spent[entry.period]
        if spent > allowed:
            work = f"{float(spent):g} of {float(allowed):g}"
            self._tell(f"{where} brings the work of period {entry.period} to {work}")
        if entry.spent is None or Fraction(entry.spent, WORK_UNITS) < spent:
            self._tell(f"{where} counts less work than its flags take")

    def _check_counts(self) -> None:
        """Compare what the queue has counted with its log."""
        row, settings, query = self._row, self._settings, self._store.query
        counted = self._counts.get(self._period or 0, [0, 0, 0])
        end = (self._chain.last, self._chain.head, self._at, self._period, *counted)
        if (row.last_seq, bytes(row.head), row.high_water, row.period, *row[8:11]) != end:
            self._tell("the queue's row counts something else than its log")
        past = {p: tuple(n) for p, n in self._counts.items() if n[1] and p != self._period}
        names = "period, capacity, used, seen, spent"
        ended = query(f"SELECT {names} FROM ended WHERE queue = ?", row.id)
        if {p: tuple(n) for p, _, *n in ended if p != self._period} != past:
            self._tell("the numbers of periods that have ended are not those of the log")
        units = WORK_UNITS if settings.of_work else 1
        shown = {row.capacity, *(capacity for _, capacity, *_ in ended)}
        is_set = shown <= {int(amount * units) for *_, amount in self._changes}
        [(of_work,)] = query("SELECT of_work FROM queue WHERE id = ?", row.id)
        if settings.is_capped and not (is_set and of_work == settings.of_work):
            self._tell("the queue or a past period has a capacity that nobody has set")

    def _check_total(self) -> None:
        """Check that every flag has a slot in the shared total, without gaps or too many."""
        if self._row.total is None:
            return
        query, name, flags = self._store.query, self._row.total, self._found.n_flags
        [(slots,)] = query("SELECT count(total_slot) FROM log WHERE queue = ?", self._row.id)
        if flags != slots:
            self._tell(f"{flags} flags have {slots} slots of the total {name!r}")
        notes = query("SELECT detail FROM note WHERE action = ?", TOTAL_SET)
        [(capacity,)] = query("SELECT capacity FROM total WHERE name = ?", name)
        largest = max([capacity, *(json.loads(detail)["capacity"] for (detail,) in notes)])
        for period, n, last in query(
            "SELECT period, count(*), max(total_slot) FROM log WHERE total_slot > 0 GROUP BY period"
        ):
            if n != last:
                self._tell(f"the total {name!r} has gaps in period {period}")
            if last > largest:
                self._tell(f"the total {name!r} has {last} flags of {largest} in period {period}")

    # --- what can be computed again --------------------------------------------------------------

    def _replay(self, page: list[Entry]) -> None:
        """Make the decisions of this version of the program again, from its first state on."""
        own = [entry for entry in page if entry.build == self._build]
        mine = sum(entry.kind == DECISION for entry in own)
        self._found.n_other += sum(entry.kind == DECISION for entry in page) - mine
        if self._replica is None:
            start = next((entry for entry in own if entry.kind == BUILD), None)
            if start is None:
                return
            self._replica = Replica(
                self._store, self._settings, start.build, seq=start.seq,
                state=json.loads(start.body or "{}"),
            )  # fmt: skip
        replica, before = self._replica, self._replica.n_compared
        try:
            replica.follow([entry for entry in page if entry.seq > replica.seq])
            self._found.n_replayed += replica.n_compared - before
        except ReplayError as error:
            self._tell(str(error))
            self._replica = None

    def _rescore(self, decisions: list[Entry]) -> None:
        """Check each model when it is first used, and score flagged cases from their columns."""
        for id in {entry.model or 0 for entry in decisions}:
            if id not in self._models:
                self._models[id] = self._load(id)
            model = self._models[id]
            if model is None:
                continue
            flagged = [e for e in decisions if e.model == id and e.body is not None]
            items = model.scored([model.read(json.loads(e.body or "{}")) for e in flagged])
            for entry, item in zip(flagged, items, strict=True):
                if item.error is not None or item.score != entry.score:
                    self._tell(f"entry {entry.seq} has a score that its columns do not have")
            self._found.n_rescored += len(flagged)

    def _load(self, id: int) -> LoadedModel | None:
        """Return a model if this version of the program can repeat its scores."""
        rows = self._store.query(
            "SELECT file, sha256, scorer, calibration FROM model WHERE id = ?", id
        )
        if not rows or hashlib.sha256(bytes(rows[0][0])).hexdigest() != rows[0][1]:
            self._tell(f"the file of model {id} is gone, or was changed")
            return None
        content, _, scorer, calibration = rows[0]
        if not is_own_scorer(scorer):
            return None
        try:
            loaded = LoadedModel(id, read_model(bytes(content)))
        except (ValueError, ImportError):
            return None  # such as a model that needs a package which is not installed here
        if calibration_bytes(loaded.table) != bytes(calibration):
            self._tell(f"the calibration scores of model {id} are not those of its file")
        return loaded if loaded.scorer == scorer else None
