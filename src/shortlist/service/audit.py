"""Proof afterwards: every decision is made again from the log, and every promise is checked.

The audit reads the database, which it cannot change, and nothing else. It has code of its own for
everything that can be checked without a controller; only the replay uses the one that decided.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from ..online.decisions import PROBE
from ._models import LoadedModel, calibration_bytes, is_own_scorer, read_model
from ._replica import ReplayError, Replica
from .settings import WORK_UNITS, QueueSettings, build_name
from .store import BUILD, CAPACITY, CLOCK, DECISION, TOTAL_SET, Entry, QueueRow, Store

__all__ = ["QueueAudit", "audit_store"]

_PAGE = 10_000
_MOST_PROBLEMS = 20


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
    n_rescored: int = 0
    problems: list[str] = field(default_factory=list)

    def tell(self, problem: str) -> None:
        """Add a problem, unless there are many."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


def audit_store(store: Store, *, build: str | None = None) -> list[QueueAudit]:
    """Audit all queues of a database; one without queues proves nothing, and is an error."""
    rows = store.queues()
    if not rows:
        raise ValueError("The database has no queue, so that there is nothing to check.")
    return [_Auditor(store, row, build or build_name()).run() for row in rows]


class _Auditor:
    """Goes through the log of one queue: gaps, order, ids, slots, capacities, and a replay."""

    def __init__(self, store: Store, row: QueueRow, build: str) -> None:
        self._store, self._row, self._found = store, row, QueueAudit(row.name)
        self._settings = QueueSettings.from_json(row.settings)
        known = store.query("SELECT id FROM build WHERE name = ?", build)
        self._build = int(known[0][0]) if known else None
        self._replica: Replica | None = None
        self._models: dict[int, LoadedModel | None] = {}
        self._last, self._at = 0, float("-inf")
        self._cases: set[str] = set()
        self._slots: dict[int, int] = {}  # of each period, and its work
        self._spent: defaultdict[int, Fraction] = defaultdict(Fraction)
        self._changes: list[tuple[float, int, Fraction]] = []
        self._tell = self._found.tell

    def run(self) -> QueueAudit:
        """Return what is wrong."""
        while page := self._store.entries(self._row.id, self._last, most=_PAGE):
            for entry in page:
                self._see(entry)
            self._replay(page)
            self._rescore([e for e in page if e.kind == DECISION and e.model is not None])
        if self._row.last_seq > self._last:
            self._tell(f"the queue counts {self._row.last_seq} entries, but the log {self._last}")
        self._check_total()
        return self._found

    # --- what must hold whatever a controller decided ------------------------------------------

    def _see(self, entry: Entry) -> None:
        """Check the next entry."""
        where = f"entry {entry.seq}"
        self._found.n_entries += 1
        if entry.seq != self._last + 1:
            self._tell(f"the log jumps from entry {self._last} to {entry.seq}")
        if entry.at < self._at and entry.kind != CLOCK:
            self._tell(f"{where} is earlier than the one before it")
        if entry.period != self._settings.periods.number(entry.at):
            self._tell(f"{where} is counted in period {entry.period}, where its moment is not")
        self._last, self._at = entry.seq, entry.at
        if entry.kind == CAPACITY:
            body = json.loads(entry.body or "{}")
            amount = Fraction(str(body[self._settings.unit]))
            self._changes.append((body["from"], entry.seq, amount))
        elif entry.kind == DECISION:
            self._see_decision(entry, where)

    def _see_decision(self, entry: Entry, where: str) -> None:
        self._found.n_decisions += 1
        may_lack = self._settings.is_guarded  # lines of a stream may have no ids
        if entry.case_id in self._cases or (entry.case_id is None and not may_lack):
            self._tell(f"{where} decides about a case without an id, or for the second time")
        if entry.case_id is not None:
            self._cases.add(entry.case_id)
        self._slots.setdefault(entry.period, 0)
        self._found.n_periods = len(self._slots)
        if entry.slot is not None:
            self._see_flag(entry, where)

    def _see_flag(self, entry: Entry, where: str) -> None:
        self._found.n_flags += 1
        self._slots[entry.period] += 1
        if entry.slot != self._slots[entry.period]:
            self._tell(f"{where} has slot {entry.slot} where {self._slots[entry.period]} is next")
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
        largest = max([capacity, *(json.loads(detail)["total"] for (detail,) in notes)])
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
        replica = self._replica
        try:
            replica.follow([entry for entry in page if entry.seq > replica.seq])
            self._found.n_replayed += mine
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
