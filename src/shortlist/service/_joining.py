"""How a queue is made, and how a process joins one that is there."""

from __future__ import annotations

import json
from typing import Any

from .._core.arrays import Floats
from ._clock import SteadyClock
from ._follower import Follower, kernel_name
from ._models import calibration_of
from ._settings import QueueSettings, allowed_by, first_controller
from ._store import CAPACITY, COMMAND, KERNEL, MODEL, Entry, Group, QueueRow, Store

__all__ = ["join_queue", "make_queue"]

_LONGEST_HISTORY = 20_000


def make_queue(
    store: Store,
    name: str,
    settings: QueueSettings,
    *,
    capacity: float,
    model: int,
    at: float,
    total: str | None = None,
    kernel: str | None = None,
) -> int:
    """Make a queue, unless it is there; return its number.

    Its log begins with its capacity, its model and the state of its controller.
    """
    number = store.find_kernel(kernel or kernel_name())
    # Before the lock is taken: the first controller of a process may have to be compiled.
    controller = first_controller(settings, capacity, calibration_of(store, model))
    follower = _follower(store, number, controller, 3, model, settings)
    with store.write():
        there = store.query("SELECT id FROM queue WHERE name = ?", name)
        if there:
            return int(there[0][0])
        [(last,)] = store.query("SELECT coalesce(max(id), 0) FROM queue")
        bodies = (
            (CAPACITY, json.dumps({settings.unit: capacity, "from": at})),
            (MODEL, json.dumps({"model": model})),
            (KERNEL, follower.state()),
        )
        period = settings.periods.number(at)
        store.query(
            "INSERT INTO queue (id, name, settings, total, capacity, of_work, last_seq, "
            "high_water) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            last + 1, name, settings.to_json(), total, allowed_by(controller.capacity),
            int(settings.of_work), len(bodies), at,
        )  # fmt: skip
        for place, (kind, body) in enumerate(bodies, 1):
            store.query(
                "INSERT INTO log (queue, seq, kind, kernel, at, period, model, key_id, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                last + 1, place, kind, number, at, period, model, COMMAND, body,
            )  # fmt: skip
        store.query(
            "INSERT INTO snapshot (queue, kernel, seq, state) VALUES (?, ?, ?, ?)",
            last + 1, number, len(bodies), follower.state(),
        )  # fmt: skip
        return int(last) + 1


def join_queue(store: Store, queue: int, kernel: str, clock: SteadyClock) -> Follower:
    """Return the controller of a queue as of some entry; the caller follows the log from there.

    A version of the program that is new to the queue first writes its state into the log.
    """
    number = store.find_kernel(kernel)
    if (saved := _saved(store, queue, number)) is not None:
        return saved
    row, entries, _ = store.begin(queue, 0)
    try:
        if (saved := _saved(store, queue, number)) is not None:  # another process was faster
            store.rollback()
            return saved
        follower = _first(store, number, row, entries)
        at = max(clock.read(witness=store.clock()), row.high_water)
        seq, state = row.last_seq + 1, follower.state()
        period = QueueSettings.from_json(row.settings).periods.number(at)
        event = Entry(queue, seq, KERNEL, number, at, period, model=follower.model, body=state)
        after = row._replace(last_seq=seq, high_water=at)
        store.commit(Group(after, [event], snapshot=(number, state)))
    except BaseException:
        store.rollback()
        raise
    return _loaded(store, row.settings, number, seq, state)


def _saved(store: Store, queue: int, kernel: int) -> Follower | None:
    saved = store.query(
        "SELECT queue.settings, snapshot.kernel, snapshot.seq, snapshot.state FROM snapshot "
        "JOIN queue ON queue.id = snapshot.queue WHERE snapshot.queue = ? AND kernel = ?",
        queue,
        kernel,
    )
    return _loaded(store, *saved[0]) if saved else None


def _loaded(store: Store, settings: str, kernel: int, seq: int, state: str) -> Follower:
    return Follower.from_state(
        kernel, seq, state, lambda id: calibration_of(store, id), QueueSettings.from_json(settings)
    )


def _follower(
    store: Store, kernel: int, controller: Any, seq: int, model: int, settings: QueueSettings
) -> Follower:
    def calibration(id: int) -> Floats:
        return calibration_of(store, id)

    return Follower(
        kernel, controller, seq=seq, model=model, calibration_of=calibration, settings=settings
    )


def _first(store: Store, kernel: int, row: QueueRow, entries: list[Entry]) -> Follower:
    """Continue from the latest state of another version, or from the latest part of the log."""
    others = store.query("SELECT seq, state FROM snapshot WHERE queue = ? ORDER BY seq", row.id)
    follower = None
    for seq, state in reversed(others):
        try:
            follower = _loaded(store, row.settings, kernel, seq, state)
            break
        except (ValueError, KeyError, AssertionError):
            continue  # a state of a version that this one cannot read
    if follower is None:
        follower = _from_history(store, kernel, row, entries)
    follower.follow([entry for entry in entries if entry.seq > follower.seq])
    return follower


def _from_history(store: Store, kernel: int, row: QueueRow, entries: list[Entry]) -> Follower:
    start = max(0, len(entries) - _LONGEST_HISTORY)
    before = entries[:start] or entries[:2]
    model = max((e.seq, json.loads(e.body or "{}")["model"]) for e in before if e.kind == MODEL)[1]
    settings = QueueSettings.from_json(row.settings)
    changes = [(e.seq, json.loads(e.body or "{}")) for e in before if e.kind == CAPACITY]
    amount = max(changes, key=lambda change: change[0])[1][settings.unit]
    controller = first_controller(settings, amount, calibration_of(store, model))
    return _follower(store, kernel, controller, before[-1].seq, model, settings)
