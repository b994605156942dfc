"""Proof afterwards: every decision is made again from the log, and every promise is checked.

The audit reads the database and nothing else. It has code of its own for everything that can be
checked without a controller; only the replay uses the one that decided.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from .._core.atomic import check_writable
from .._core.extras import load_extra
from ..online.decisions import PROBE
from ._models import (
    LoadedModel,
    calibration_bytes,
    is_own_scorer,
    read_model,
)
from ._replica import ReplayError, Replica
from .settings import WORK_UNITS, QueueSettings, build_name
from .store import (
    BUILD,
    CAPACITY,
    DECISION,
    MODEL,
    OBSERVATION,
    TOTAL_SET,
    Entry,
    QueueRow,
    Store,
)

__all__ = ["QueueAudit", "audit_queue", "audit_store", "export_log"]

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
    """Audit all queues of a database."""
    return [audit_queue(store, row, build=build) for row in store.queues()]


def audit_queue(store: Store, row: QueueRow, *, build: str | None = None) -> QueueAudit:
    """Audit one queue: gaps, order, ids, slots, capacities, and a replay of every decision."""
    found = QueueAudit(row.name)
    checks, replay = _Checks(row, found), _Replay(store, row, found, build or build_name())
    rescoring = _Rescoring(store, found)
    for entry in _all_entries(store, row.id):
        checks.see(entry)
        replay.see(entry)
        rescoring.see(entry)
    replay.finish()
    rescoring.finish()
    checks.finish(row)
    _check_totals(store, row, found)
    return found


def _all_entries(store: Store, queue: int) -> Iterator[Entry]:
    after = 0
    while page := store.entries(queue, after, most=_PAGE):
        yield from page
        after = page[-1].seq


class _Checks:
    """What must hold whatever a controller decided."""

    def __init__(self, row: QueueRow, found: QueueAudit) -> None:
        self._settings = QueueSettings.from_json(row.settings)
        self._found = found
        self._last, self._at = 0, float("-inf")
        self._period: int | None = None
        self._cases: set[str] = set()
        self._slots, self._spent = 0, Fraction(0)
        self._changes: list[tuple[float, int, Fraction]] = []

    def see(self, entry: Entry) -> None:
        """Check the next entry."""
        found, where = self._found, f"entry {entry.seq}"
        found.n_entries += 1
        if entry.seq != self._last + 1:
            found.tell(f"the log jumps from entry {self._last} to {entry.seq}")
        if entry.at < self._at:
            found.tell(f"{where} is earlier than the one before it")
        if entry.period != self._settings.periods.number(entry.at):
            found.tell(f"{where} is counted in period {entry.period}, where its moment is not")
        self._last, self._at = entry.seq, entry.at
        if entry.kind == CAPACITY:
            body = json.loads(entry.body or "{}")
            amount = Fraction(str(body[self._settings.unit]))
            self._changes.append((body["from"], entry.seq, amount))
        elif entry.kind == DECISION:
            self._see_decision(entry, where)

    def _see_decision(self, entry: Entry, where: str) -> None:
        found = self._found
        found.n_decisions += 1
        if entry.case_id is None and self._settings.is_guarded:
            pass  # lines of a stream may have no ids
        elif entry.case_id is None or entry.case_id in self._cases:
            found.tell(f"{where} decides about a case without an id, or for the second time")
        self._cases.add(str(entry.case_id))
        if entry.period != self._period:
            self._period, self._slots, self._spent = entry.period, 0, Fraction(0)
            found.n_periods += 1
        if entry.slot is None:
            return
        found.n_flags += 1
        self._slots += 1
        if entry.slot != self._slots:
            found.tell(f"{where} has slot {entry.slot} where {self._slots} is the next")
        if self._settings.is_capped:
            self._see_capacity(entry, where)
        if not (entry.score is not None and entry.threshold is not None):
            found.tell(f"{where} has no score or threshold")
        elif not entry.score > entry.threshold and entry.code != PROBE:
            found.tell(f"{where} is flagged, but its score does not exceed its threshold")
        if self._settings.worth is not None and (entry.score or 0) < self._settings.worth:
            found.tell(f"{where} is flagged, but worth less than {self._settings.worth:g}")

    def _see_capacity(self, entry: Entry, where: str) -> None:
        allowed = max(change for change in self._changes if change[0] <= entry.at)[2]
        if self._settings.of_work:
            self._see_work(entry, where, allowed)
        elif (entry.slot or 0) > allowed:
            self._found.tell(f"{where} is flag {entry.slot} of {allowed} in period {entry.period}")

    def _see_work(self, entry: Entry, where: str, allowed: Fraction) -> None:
        """Add the work of a flag up, from the effort as it was given."""
        self._spent += Fraction(str(entry.effort or 0))
        if self._spent > allowed:
            self._found.tell(
                f"{where} brings the work of period {entry.period} to {float(self._spent):g} of "
                f"{float(allowed):g}"
            )
        if entry.spent is None or Fraction(entry.spent, WORK_UNITS) < self._spent:
            self._found.tell(f"{where} counts less work than its flags take")

    def finish(self, row: QueueRow) -> None:
        """Compare with the queue's row."""
        if row.last_seq > self._last:
            self._found.tell(f"the queue counts {row.last_seq} entries, but the log {self._last}")


class _Replay:
    """Every decision of this version of the program, made again."""

    def __init__(self, store: Store, row: QueueRow, found: QueueAudit, build: str) -> None:
        self._store, self._found = store, found
        self._settings = QueueSettings.from_json(row.settings)
        known = store.query("SELECT id FROM build WHERE name = ?", build)
        self._build = int(known[0][0]) if known else None
        self._replica: Replica | None = None
        self._run: list[Entry] = []

    def see(self, entry: Entry) -> None:
        """Follow the log from the latest state with which this version began."""
        if entry.kind == DECISION and entry.build != self._build:
            self._found.n_other += 1
        if entry.kind == BUILD and entry.build == self._build:
            self.finish()
            self._replica = Replica(
                self._store, self._settings, entry.build, seq=entry.seq,
                state=json.loads(entry.body or "{}"), is_own=True,
            )  # fmt: skip
        elif self._replica is not None:
            self._run.append(entry)
            if len(self._run) >= _PAGE:
                self.finish()

    def finish(self) -> None:
        """Make the decisions that have been read."""
        if self._replica is None or not self._run:
            return
        try:
            self._replica.follow(self._run)
            mine = [e for e in self._run if e.kind == DECISION and e.build == self._build]
            self._found.n_replayed += len(mine)
        except ReplayError as error:
            self._found.tell(str(error))
            self._replica = None
        self._run = []


class _Rescoring:
    """The model files, and the scores of flagged cases computed again from their columns."""

    def __init__(self, store: Store, found: QueueAudit) -> None:
        self._store, self._found = store, found
        self._models: dict[int, LoadedModel | None] = {}
        self._flagged: list[Entry] = []

    def see(self, entry: Entry) -> None:
        """Note a flagged case; check each model when it is first used."""
        if entry.kind != DECISION or entry.model is None:
            return
        if entry.model not in self._models:
            self._models[entry.model] = self._load(entry.model)
        if entry.body is not None and self._models[entry.model] is not None:
            self._flagged.append(entry)
            if len(self._flagged) >= _PAGE:
                self.finish()

    def _load(self, id: int) -> LoadedModel | None:
        """Return a model if this version of the program can repeat its scores."""
        rows = self._store.query(
            "SELECT file, sha256, scorer, calibration FROM model WHERE id = ?", id
        )
        if not rows or hashlib.sha256(bytes(rows[0][0])).hexdigest() != rows[0][1]:
            self._found.tell(f"the file of model {id} is gone, or was changed")
            return None
        content, _, scorer, calibration = rows[0]
        if not is_own_scorer(scorer):
            return None
        try:
            loaded = LoadedModel(id, read_model(bytes(content)))
        except (ValueError, ImportError):
            return None  # such as a model that needs a package which is not installed here
        if calibration_bytes(loaded.table) != bytes(calibration):
            self._found.tell(f"the calibration scores of model {id} are not those of its file")
        return loaded if loaded.scorer == scorer else None

    def finish(self) -> None:
        """Score what has been noted."""
        for id, model in self._models.items():
            mine = [entry for entry in self._flagged if entry.model == id]
            if model is None or not mine:
                continue
            items = [model.read(json.loads(entry.body or "{}")) for entry in mine]
            valid = [item for item in items if item.error is None]
            scores = iter(model.score(valid).tolist())
            again = [next(scores) if item.error is None else None for item in items]
            for entry, score in zip(mine, again, strict=True):
                if entry.score != score:
                    self._found.tell(f"entry {entry.seq} has a score that its columns do not have")
            self._found.n_rescored += len(mine)
        self._flagged = []


def _check_totals(store: Store, row: QueueRow, found: QueueAudit) -> None:
    """Check that every flag of a queue has a slot in its shared total, without gaps or too many."""
    if row.total is None:
        return
    [(flags,)] = store.query(
        "SELECT count(*) FROM log WHERE queue = ? AND slot IS NOT NULL", row.id
    )
    [(slots,)] = store.query("SELECT count(*) FROM total_slot WHERE queue = ?", row.id)
    if flags != slots:
        found.tell(f"{flags} flags have {slots} slots of the total {row.total!r}")
    [(capacity,)] = store.query("SELECT capacity FROM total WHERE name = ?", row.total)
    notes = store.query("SELECT detail FROM note WHERE action = ?", TOTAL_SET)
    largest = max([capacity, *(json.loads(detail)["total"] for (detail,) in notes)])
    for period, n, last in store.query(
        "SELECT period, count(*), max(slot) FROM total_slot WHERE total = ? GROUP BY period",
        row.total,
    ):
        if n != last:
            found.tell(f"the total {row.total!r} has gaps in period {period}")
        if last > largest:
            found.tell(f"the total {row.total!r} has {last} flags of {largest} in period {period}")


def export_log(store: Store, path: Path) -> int:
    """Write all decisions and events to a Parquet file; return how many."""
    check_writable(path)
    arrow = load_extra("pyarrow", needed_for="Writing Parquet")
    parquet = load_extra("pyarrow.parquet", needed_for="Writing Parquet")
    kinds = {DECISION: "decision", CAPACITY: "capacity", MODEL: "model", BUILD: "build",
             OBSERVATION: "observation"}  # fmt: skip
    types = {
        "queue": arrow.string(), "seq": arrow.int64(), "kind": arrow.string(),
        "at": arrow.float64(), "period": arrow.int64(), "case_id": arrow.string(),
        "score": arrow.float64(), "threshold": arrow.float64(), "code": arrow.int64(),
        "slot": arrow.int64(), "model": arrow.int64(), "key_id": arrow.string(),
        "effort": arrow.float64(), "inclusion": arrow.float64(),
    }  # fmt: skip
    schema, n = arrow.schema(types.items()), 0
    unfinished = path.with_name(path.name + ".part")
    try:
        with parquet.ParquetWriter(unfinished, schema) as writer:
            for row in store.queues():
                after = 0
                while page := store.entries(row.id, after, most=_PAGE):
                    plain = [
                        {**e._asdict(), "queue": row.name, "kind": kinds[e.kind]} for e in page
                    ]
                    rows = [{name: each[name] for name in types} for each in plain]
                    writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
                    n, after = n + len(page), page[-1].seq
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return n
