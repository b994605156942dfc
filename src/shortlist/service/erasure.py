"""Forgetting persons: ids and columns of cases go, and the chain can still be checked."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from ._chain import erased_name, seal_of
from .setup import change_queue
from .store import COMMAND, DECISION, ERASED, Entry, QueueRow, Store

__all__ = ["erase_cases"]

_TOGETHER = 500  # cases of one transaction, so that deciding goes on
_WORDS = ("note", "idempotency")


def erase_cases(store: Store, cases: list[str], *, before: float | None = None) -> int:
    """Erase some cases, or all that were decided before a moment; return how many.

    Of each case the id, the columns and the words of reviewers are forgotten. Decisions, outcomes
    and counts stay, and so do the seals of what was forgotten. A note says which entries they were.
    """
    which = "at < ?" if before is not None else store.is_listed
    given = before if before is not None else json.dumps(cases)
    n_erased = 0
    for row in store.queues():
        # Replays begin after what they can no longer repeat: whatever comes later is not erased.
        last = change_queue(store, row.id, [])
        while entries := store.entries_where(
            f"queue = ? AND seq < ? AND kind = {DECISION} AND length(seal) = 16 AND {which} "
            f"LIMIT {_TOGETHER}",
            row.id,
            last,
            given,
        ):
            _erase(store, row, entries)
            n_erased += len(entries)
    return n_erased


def _erase(store: Store, row: QueueRow, entries: list[Entry]) -> None:
    forgotten: dict[int, int] = {}  # outcomes, and the entries they are about
    with store.write():
        for entry in entries:
            name = f"{erased_name(entry.seq)}{secrets.token_hex(8)}"
            outcomes = store.query(
                "SELECT number, case_id, note, idempotency, seal FROM outcome WHERE queue = ? AND "
                "case_id = ?",
                row.id,
                entry.case_id,
            )
            for number, *private in outcomes:
                forgotten[number] = entry.seq
                kept = dict(zip(("case_id", *_WORDS, "seal"), private, strict=True))
                _forget(store, "outcome", ("queue", row.id, "number", number), name, kept)
            _forget(store, "log", ("queue", row.id, "seq", entry.seq), name, entry._asdict())
            store.query("DELETE FROM claim WHERE queue = ? AND case_id = ?", row.id, entry.case_id)
        said = {"entries": [entry.seq for entry in entries], "outcomes": forgotten}
        store.note(time.time(), COMMAND, ERASED, row.name, said)


def _forget(store: Store, table: str, key: Any, name: str, row: dict[str, Any]) -> None:
    """Leave the seal of a row, and a name that only tells it from others."""
    gone = ("digest", "body") if table == "log" else _WORDS
    store.query(
        f"UPDATE {table} SET case_id = ?, seal = ?, {' = NULL, '.join(gone)} = NULL "
        f"WHERE {key[0]} = ? AND {key[2]} = ?",
        name, seal_of(row), key[1], key[3],
    )  # fmt: skip
