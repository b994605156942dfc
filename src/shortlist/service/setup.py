"""Before the first request: the database, its queues and its models."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from ..online import DriftAlarm
from ._group import GroupMaker, join_queue, make_queue
from ._models import (
    LoadedModel,
    ModelCache,
    add_model,
    calibration_of,
    expected_arrivals,
    least_worth,
    read_model,
    usual_effort,
)
from ._status import capacities_of, capacity_at
from .config import SteadyClock
from .databases import open_store
from .settings import QueueSettings, build_name, first_controller
from .store import CAPACITY, COMMAND, MODEL, TOTAL_SET, QueueRow, Store, StoreError

__all__ = ["prepare", "warm_up"]


def prepare(
    database: str,
    model_file: Path | None,
    queues: Mapping[str, float],
    *,
    period: float | str,
    starts_at: float = 0.0,
    expect: float | None = None,
    total: int | None = None,
    of_work: bool = False,
    worth: float | None = None,
    probe: float = 0.0,
    probe_key: str | None = None,
    adopt: bool = False,
) -> ModelCache:
    """Make the tables and the queues that are not there yet; return their models, loaded.

    A queue that is there keeps its period, its capacity and its model. If the given ones differ,
    this is an error, unless `adopt` is true: then its capacity and its model are changed.
    """
    store = open_store(database)
    try:
        store.connect(create=True)
    except StoreError as error:
        raise ValueError(f"The database cannot be used: {error}") from None
    store.make_tables()
    models = ModelCache(store)
    content = None if model_file is None else model_file.read_bytes()
    there = {row.name: row for row in store.queues()}
    if content is None:
        if not there:
            raise ValueError("The database has no queue yet. Name a model file to make one.")
    else:
        model = read_model(content)
        id = add_model(store, content, model)
        models.keep(LoadedModel(id, model))
        settings = QueueSettings(
            period, 1.0, starts_at, worth=least_worth(model, worth), probe=probe,
            usual_effort=usual_effort(model) if of_work else None,
            probe_key=(probe_key or secrets.token_hex(16)) if probe else None,
        )  # fmt: skip
        arrivals = expect or expected_arrivals(model, max([*queues.values(), 1]), of_work=of_work)
        settings = settings._replace(expected_arrivals=arrivals)
        for name in filter(there.__contains__, queues):
            _compare(store, name, settings, queues[name], id, total, adopt=adopt)
        if total is not None:
            _set_total(store, total)
        for name, count in queues.items():
            if name not in there:
                controller = first_controller(settings, count, calibration_of(store, id))
                make_queue(
                    store, name, settings, controller, model=id, at=time.time(),
                    total=None if total is None else "all",
                )  # fmt: skip
    for row in store.queues():
        models.get(_model_of(store, row.id)).warm_up()
        warm_up(QueueSettings.from_json(row.settings), store, _model_of(store, row.id))
    store.close()
    return models


def _set_total(store: Store, total: int) -> None:
    with store.write():
        if _total_of(store, "all") == total:
            return
        store.query(
            "INSERT INTO total (name, capacity) VALUES ('all', ?) "
            "ON CONFLICT (name) DO UPDATE SET capacity = excluded.capacity",
            total,
        )
        store.note(time.time(), COMMAND, TOTAL_SET, None, {"total": total})


def _total_of(store: Store, name: str | None) -> int | None:
    rows = store.query("SELECT capacity FROM total WHERE name = ?", name)
    return int(rows[0][0]) if rows else None


def _model_of(store: Store, queue: int) -> int:
    [(body,)] = store.query(
        "SELECT body FROM log WHERE queue = ? AND kind = ? ORDER BY seq DESC LIMIT 1", queue, MODEL
    )
    return int(json.loads(body)["model"])


def _compare(
    store: Store,
    name: str,
    settings: QueueSettings,
    count: float,
    model: int,
    total: int | None,
    *,
    adopt: bool,
) -> None:
    row = next(row for row in store.queues() if row.name == name)
    kept = QueueSettings.from_json(row.settings)
    if (kept.period, kept.starts_at) != (settings.period, settings.starts_at):
        raise ValueError(
            f"The queue {name!r} has the period {kept.period!r}, and not {settings.period!r}. A "
            "period cannot change. Use the old one, or another database."
        )
    new = {"worth": settings.worth, "probe": settings.probe, "unit": settings.unit}
    for what, given in new.items():
        if (had := getattr(kept, what)) != given:
            raise ValueError(
                f"The queue {name!r} was made with {what}={had!r}, and not {given!r}. This cannot "
                "change. Use the old one, or another database."
            )
    had_total = _total_of(store, row.total)
    if (had_total is None) != (total is None):
        had, now = ("no total", "one") if had_total is None else (f"--total {had_total}", "none")
        raise ValueError(
            f"The queue {name!r} was made with {had}, and not with {now}. This cannot change. Use "
            "another database, or start without a model file to leave all queues as they are."
        )
    differing = []
    if had_total != total:
        differing.append(f"a total of {had_total}, and not {total}")
    in_force = capacity_at(capacities_of(store, row.id), time.time())
    if in_force != count:
        differing.append(f"a capacity of {in_force}, and not {count}")
    if _model_of(store, row.id) != model:
        differing.append("another model")
    if differing and not adopt:
        raise ValueError(
            f"The queue {name!r} has {' and '.join(differing)}. Start with --adopt to change it, "
            "or change it while the service runs (PUT .../capacity, POST .../model)."
        )
    if differing:
        _adopt(store, row, in_force, count, model)


def _adopt(store: Store, queue: QueueRow, in_force: float, count: float, model: int) -> None:
    """Append the changes to the log, as a worker would."""
    clock = SteadyClock()
    replica = join_queue(store, queue.id, build_name(), clock)
    row, entries, total = store.begin(queue.id, replica.seq)
    replica.follow(entries)
    at = max(clock.read(), row.high_water)
    maker = GroupMaker(replica, row, total, at)
    changes = []
    if count != in_force:
        changes.append((CAPACITY, {replica.settings.unit: count}))
    if model != replica.model:
        changes.append((MODEL, {"model": model}))
    for kind, body in changes:
        maker.add_change(kind, body, COMMAND)
    store.commit(maker.group())


def warm_up(settings: QueueSettings, store: Store, model: int) -> None:
    """Load the compiled functions, so that no worker does that while it holds the lock."""
    calibration = calibration_of(store, model)
    controller = first_controller(settings, 2, calibration)
    scores, at = calibration[:2], time.time()
    efforts = [1.0, 1.0] if settings.of_work else None
    ids = ["a", "b"] if controller.has_probes else None
    controller.decide_many(scores, at=at, ids=ids, efforts=efforts)
    controller.observe(scores, at=at)
    controller.set_capacity(settings.capacity({settings.unit: 3}))
    controller.swap_model(calibration)
    DriftAlarm(calibration).update(scores)
