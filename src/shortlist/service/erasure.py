"""Forgetting persons: ids and columns of cases go, and the chain can still be checked."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from ._chain import seal_of
from .setup import change_queue
from .store import ALLOW, COMMAND, DECISION, QueueRow, Store

_TOGETHER = 500  # cases of one transaction, so that deciding goes on
# What is about a person: in which tables, the number of a row there, and columns besides the id.
_FORGOTTEN = {
    "log": ("seq", "entity", "digest", "body"),
    "outcome": ("number", "note", "idempotency"),
}


def erase_cases(store: Store, cases: list[str], *, before: float | None = None) -> int:
    """Erase some cases, all events of entities, or what was decided before a moment.

    Returns how many entries of the log were erased.

    Of each case the id, the columns and the words of reviewers are forgotten. Decisions, outcomes
    and counts stay, and so do the seals of what was forgotten. A note vouches for what is left.
    """
    of_entities = store.is_listed.replace("case_id", "entity")
    which = "at < ?" if before is not None else f"({store.is_listed} OR {of_entities})"
    given = [before] if before is not None else [json.dumps(cases)] * 2
    found = (
        f"SELECT seq, case_id FROM log WHERE queue = ? AND seq > ? AND seq < ? AND "
        f"length(seal) = 16 AND kind IN ({DECISION}, {ALLOW}) AND {which} ORDER BY seq "
        f"LIMIT {_TOGETHER}"
    )
    n_erased = 0
    for row in store.queues():
        # Replays begin after what they can no longer repeat: whatever comes later is not erased.
        after, last = 0, change_queue(store, row.id, [])
        while entries := store.query(found, row.id, after, last, *given):
            _erase(store, row, entries)
            after, n_erased = entries[-1][0], n_erased + len(entries)
    return n_erased


def _erase(store: Store, row: QueueRow, entries: list[tuple[int, str | None]]) -> None:
    left: dict[str, Any] = {table: {} for table in _FORGOTTEN}
    with store.write():
        for seq, case in entries:
            name = f"erased {seq} {secrets.token_hex(8)}"
            # A case that waited has a second entry with its columns: that of its slot.
            which = {"seq": seq} if case is None else {"case_id": case}
            left["log"] |= _forget(store, "log", row.id, which, name)
            left["outcome"] |= _forget(store, "outcome", row.id, {"case_id": case}, name)
        store.note(time.time(), COMMAND, "erased", row.name, left)


def _forget(
    store: Store, table: str, queue: int, which: dict[str, Any], name: str
) -> dict[str, str]:
    """Leave the seals of a case, and a name that only tells it from others; return their hashes."""
    number, *words = _FORGOTTEN[table]
    names, left = (number, "case_id", *words, "seal"), dict[str, str]()
    columns, set_to = ", ".join(names), " = NULL, ".join(words)
    [(column, value)] = which.items()
    for row in store.query(
        f"SELECT {columns} FROM {table} WHERE queue = ? AND {column} = ?", queue, value
    ):
        store.query(
            f"UPDATE {table} SET case_id = ?, seal = ?, {set_to} = NULL "
            f"WHERE queue = ? AND {number} = ?",
            name, seal_of(dict(zip(names, row, strict=True))), queue, row[0],
        )  # fmt: skip
        left |= store.hashes(table, queue, row[0])
    return left
