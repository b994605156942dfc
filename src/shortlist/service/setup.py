"""Before the first request: the database, its queues and its models."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..online import DriftAlarm, PullController
from . import _models
from ._group import join_queue, make_queue, writing
from ._status import Capacities
from .databases import opened
from .settings import FAR_AHEAD, QueueSettings, build_name, first_controller
from .store import CAPACITY, CLOCK, COMMAND, TOTAL_SET, QueueRow, Store

_log = logging.getLogger("shortlist.service")
_TOTAL = "all"
#: What a queue that is made like another one has as well, besides its period and its segment.
TAKEN_OVER = ("starts_at", "worth", "probe", "entity", "window", "cooldown", "rise", "within")
_FIXED = ("period", "unit", *TAKEN_OVER)


def prepare(
    database: str,
    model_file: Path | None,
    queues: Mapping[str, float],
    *,
    total: int | None = None,
    accept_clock: bool = False,
    restored: bool = False,
    **wanted: Any,
) -> _models.ModelCache:
    """Make the tables and the queues that do not exist yet; return their models, loaded.

    A queue that exists keeps its capacity and its model, which may have changed since it was made:
    a warning says so. Another period is an error, as is everything else that cannot change. After a
    database was restored from a backup, nobody knows the flags that were given since: `restored`
    gives none until the next period. What else is wanted is as for :func:`settings_for`.
    """
    models = _models.ModelCache()
    with opened(database, create=True) as store:
        if model_file is not None:
            model = models.add(model_file.read_bytes(), store)
            settings = settings_for(model, max(1, *queues.values()), **wanted)
            if total is not None and not any(row.total for row in store.queues()):
                set_total(store, total)
            for name, amount in queues.items():
                if not add_queue(store, name, settings, amount, model.id, of_total=bool(total)):
                    kept = {"total": total, "capacity": amount, "model": model.id}
                    _compare(store, name, settings, kept)
        elif not store.queues():
            raise ValueError("The database has no queue yet. Name a model file to make one.")
        for row in store.queues():
            if restored:
                _close_period(store, row)
            if accept_clock and row.high_water - time.time() > FAR_AHEAD:
                _set_clock_back(store, row, time.time())
            id = _models.models_of(store, row.id)[0]
            models.get(id, store)
            warm_up_controller(QueueSettings.from_json(row.settings), store, id)
    return models


def settings_for(
    model: _models.LoadedModel,
    amount: float,
    *,
    of_work: bool = False,
    expect: float | None = None,
    worth: float | None = None,
    probe: float = 0.0,
    probe_key: str | None = None,
    **others: Any,
) -> QueueSettings:
    """Return the settings of a queue that begins with a model and a capacity."""
    own = model.table.schema.work
    return QueueSettings(
        expected_arrivals=expect or _models.expected_arrivals(model.table, amount, of_work=of_work),
        worth=own.worth if worth is None and own is not None else worth,
        usual_effort=_models.usual_effort(model.table) if of_work else None,
        probe=probe,
        probe_key=(probe_key or secrets.token_hex(16)) if probe else None,
        id_fields=model.id_fields,
        **others,
    )


def add_queue(
    store: Store, name: str, settings: QueueSettings, amount: float, model: int, *, of_total: bool
) -> bool:
    """Make a queue; return whether it is new."""
    controller = first_controller(settings, amount, _models.calibration_of(store, model))
    total, now = _TOTAL if of_total else None, time.time()
    made = make_queue(store, name, settings, controller, model=model, at=now, total=total)
    return made is not None


def set_total(store: Store, total: int, key_id: str = COMMAND) -> None:
    """Set the most flags of all queues that share it."""
    with store.write():
        store.put("total", {"name": _TOTAL, "capacity": total}, ("name",))
        said = {"capacity": total}
        store.note(time.time(), key_id, TOTAL_SET, None, said, vouch=[("total", _TOTAL)])


def _compare(store: Store, name: str, settings: QueueSettings, wanted: dict[str, Any]) -> None:
    """Refuse what cannot change; warn of what was changed since the queue was made."""
    [row] = [row for row in store.queues() if row.name == name]
    kept = QueueSettings.from_json(row.settings)
    totals = store.query("SELECT capacity FROM total WHERE name = ?", row.total)
    had = {
        **{name: getattr(kept, name) for name in _FIXED},
        "total": totals[0][0] if totals else None,
        "capacity": Capacities(store, row.id).at(time.time()),
        "model": _models.models_of(store, row.id)[0],
    }
    wanted = {**{name: getattr(settings, name) for name in _FIXED}, **wanted}
    differing = [name for name in wanted if had[name] != wanted[name]]
    words = "; ".join(f"{name} {had[name]!r}, and not {wanted[name]!r}" for name in differing)
    of_total = {had["total"], wanted["total"]} if "total" in differing else set()
    if None in of_total or not set(_FIXED).isdisjoint(differing):
        raise ValueError(
            f"The queue {row.name!r} was made with {words}. This cannot change. Use the old one or "
            "another database, or start without a model file to leave all queues as they are."
        )
    if differing:
        _log.warning("The queue %r keeps %s. Change it while the service runs.", row.name, words)


def change_queue(store: Store, queue: int, changes: list[tuple[int, dict[str, Any]]]) -> int:
    """Append changes to the log, as a worker would; or the state from which all go on.

    Returns the number of the last entry.
    """
    replica = join_queue(store, queue, build_name())
    with writing(replica, time.time() if changes else None) as maker:
        for kind, body in changes:
            maker.add_change(kind, body, COMMAND)
        if not changes:
            maker.add_start()
    return replica.seq


def _close_period(store: Store, row: QueueRow) -> None:
    """Give no flags until the next period, which gets what was in force."""
    settings, changes = QueueSettings.from_json(row.settings), Capacities(store, row.id)
    now = max(time.time(), row.high_water)
    _, end = settings.periods.bounds(settings.periods.number(now))
    later = {**changes.in_force(end), "from": end}
    # What was announced for the rest of the period would give flags in it.
    moments = [now, *(begins for begins in changes.after(now) if begins < end)]
    closed = [(CAPACITY, {settings.unit: 0, "from": moment}) for moment in moments]
    change_queue(store, row.id, [*closed, (CAPACITY, later)])


def _set_clock_back(store: Store, row: QueueRow, at: float) -> None:
    """Let the time of a queue be the present again; what was flagged in a period counts there."""
    changes = Capacities(store, row.id)
    again, scheduled = {**changes.in_force(row.high_water), "from": at}, changes.after(at)
    back = {"from": at, "capacity": changes.at(row.high_water), "scheduled": [*scheduled.items()]}
    change_queue(store, row.id, [(CLOCK, back), (CAPACITY, again)])


def warm_up_controller(settings: QueueSettings, store: Store, model: int) -> None:
    """Load the compiled functions, so that no worker does that while it holds the lock."""
    calibration = _models.calibration_of(store, model)
    controller = first_controller(settings, 2, calibration)
    scores, at = calibration[:2], time.time()
    efforts = [1.0, 1.0] if settings.of_work else None
    ids = ["a", "b"] if controller.has_probes else None
    controller.decide_many(scores, at=at, ids=ids, efforts=efforts)
    if isinstance(controller, PullController):
        controller.add(scores[0], id=0, at=at)
        controller.next(at=at)
    controller.observe(scores, at=at)
    controller.set_capacity(settings.capacity({settings.unit: 3}))
    controller.swap_model(calibration)
    DriftAlarm(calibration).update(scores)
