"""Every route of the API and who answers it; numbers of queues are in `_status`."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from . import _reviews, _shadow, _staff, _status, webhook
from ._api import Moment, Problem, Route, Seq
from ._decider import Request
from ._models import Arrival, LoadedModel, models_of
from ._service import Call, decide
from .settings import LONGEST_ID, QueueSettings
from .setup import TAKEN_OVER, add_queue, set_total, settings_for
from .store import ALLOW, CAPACITY, CLOCK, MODEL, OBSERVATION, SHADOW, QueueRow

_LOGGED = (
    *("seq", "kind", "at", "period", "case_id", "score", "threshold", "code", "slot", "entity"),
    *("joined", "model"),
)


# --- changes that all workers follow --------------------------------------------------------------

SomeCases = Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1_024)]


Count = Annotated[int, Meta(ge=0, le=1 << 40)]
Effort = Annotated[float, Meta(ge=0, le=1e9)]
Minutes = Annotated[float, Meta(ge=0.001, le=1e6)]  # so that no capacity is beyond counting


class Amount(Struct, forbid_unknown_fields=True, kw_only=True):
    """One of these: a number of flags, an amount of effort, or minutes of who is there."""

    count: Count | None = None
    effort: Effort | None = None
    staff: Minutes | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that were given."""
        names = ("count", "effort", "staff")
        return {each: getattr(self, each) for each in names if getattr(self, each) is not None}


class CapacityBody(Amount):
    """A capacity, from now or from a moment on: a number of flags, or an amount of effort.

    Or what the reviewers who are there can do, if each flag, or unit of effort, takes `staff`
    minutes. A moment is given in seconds since 1970, or in ISO 8601 with a time zone.
    """

    begins: Moment | None = msgspec.field(name="from", default=None)


class ModelQuery(Struct):
    """Whether a model is only compared with the queue."""

    dry_run: bool = False


class Changed(Struct):
    """A change that all workers follow: its place in the log, its moment, and what it was.

    Of a dry run, the place is that of the latest entry.
    """

    seq: int
    at: float
    count: int | UnsetType = UNSET
    effort: float | UnsetType = UNSET
    staff: float | UnsetType = UNSET
    begins: float | UnsetType = msgspec.field(name="from", default=UNSET)
    model: int | UnsetType = UNSET
    shadow: int | UnsetType = UNSET
    observed: int | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET


async def change_capacity(call: Call, body: CapacityBody) -> Changed:
    """Change the capacity, now or from a moment on."""
    row = await call.service.ask(lambda: call.row)
    unit = QueueSettings.from_json(row.settings).unit
    change = body.given
    if list(change) not in ([unit], ["staff"]) or (body.staff and body.begins):
        needed = f"{unit!r} alone, or 'staff' from now on"
        raise Problem(422, "invalid-value", f"The capacity of this queue needs {needed}.")
    if body.staff is not None:
        at = max(time.time(), row.high_water)
        change[unit] = await call.service.ask(_staff.staff_amount, call.store, row, body.staff, at)
    begins = body.begins.timestamp() if isinstance(body.begins, datetime) else body.begins
    place = await call.change(Request(kind=CAPACITY, change={**change, "from": begins}))
    # It never begins in the past.
    return Changed(**place, **change, begins=max(place["at"], begins or 0.0))


class QueueBody(Amount, kw_only=True):
    """A new queue: its name, its capacity, and whose model, total and settings it takes over.

    A period is given in seconds, or as in 'day Europe/Berlin'. The segment is the column that says
    who is able to review a case.
    """

    name: Annotated[str, Meta(max_length=100, pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
    like: str = "default"
    period: Annotated[float, Meta(ge=1, le=1e9)] | str | None = None
    segment: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


async def make_queue(call: Call, body: QueueBody) -> _status.Queue:
    """Make a queue while the service runs; it decides at once."""
    service, made = call.service, call._replace(queue=body.name)
    await service.ask(_make_queue, made, body)
    await service.ask(service.open_queues)
    if body.staff is not None:  # until then the capacity is none
        await change_capacity(made, CapacityBody(staff=body.staff))
    return await service.ask(lambda: _status.QueueView(made, made.row).queue())


def _make_queue(call: Call, body: QueueBody) -> None:
    like = call._replace(queue=body.like).row
    kept = QueueSettings.from_json(like.settings)
    if len(body.given) != 1:
        raise Problem(422, "invalid-value", "A queue needs one of 'count', 'effort' and 'staff'.")
    amount: float = body.effort or body.count or 0
    model = models_of(call.store, like.id)[0]
    try:
        settings = settings_for(
            call.service.models.get(model, call.store),
            max(1, amount),
            of_work=kept.of_work if body.staff is not None else body.effort is not None,
            **{name: getattr(kept, name) for name in TAKEN_OVER},
            period=kept.period if body.period is None else body.period,
            segment=body.segment or kept.segment,
        )
        of_total = like.total is not None
        is_new = add_queue(call.store, body.name, settings, amount, model, of_total=of_total)
    except ValueError as error:
        raise Problem(422, "invalid-value", str(error)) from None
    if not is_new:
        raise Problem(409, "conflict", f"There is a queue {body.name!r}.")
    call.note("queue", {"like": body.like}, vouch=[])


class Total(Struct, forbid_unknown_fields=True):
    """The most flags of all queues that share it."""

    count: Count


def change_total(call: Call, body: Total) -> Total:
    """Change the most flags of all queues together, if the service was started with --total."""
    if not any(row.total for row in call.store.queues()):
        raise Problem(409, "invalid-value", "No queue has a share in a total.")
    set_total(call.store, body.count, call.key.id)
    return body


async def change_model(call: Call, body: bytes, query: ModelQuery) -> Changed:
    """Switch to another model that fits the queue, once every worker has loaded it."""
    model, row = await _read_fitting(call, body)
    if query.dry_run:
        return Changed(row.last_seq, row.high_water, dry_run=True)
    added = await call.service.ask(call.service.models.add, body, call.store, model)
    return await _switch(call, MODEL, {"model": added.id})


async def set_shadow(call: Call, body: bytes) -> Changed:
    """Let another model score the same cases as well; it decides nothing."""
    model, _ = await _read_fitting(call, body)
    added = await call.service.ask(call.service.models.add, body, call.store, model)
    return await _switch(call, SHADOW, {"shadow": added.id})


async def end_shadow(call: Call) -> Changed:
    """Let the model in force score alone again."""
    return await _switch(call, SHADOW, {"shadow": 0})


async def promote(call: Call) -> Changed:
    """Let the shadow model decide; the model that has decided so far becomes the shadow."""
    model, shadow, _ = await call.service.ask(lambda: models_of(call.store, call.row.id))
    return await _switch(call, MODEL, {"model": shadow, "shadow": model})


async def go_back(call: Call) -> Changed:
    """Let the model before decide again; the present one becomes the shadow."""
    model, _, before = await call.service.ask(lambda: models_of(call.store, call.row.id))
    return await _switch(call, MODEL, {"model": before, "shadow": model})


async def _read_fitting(call: Call, body: bytes) -> tuple[LoadedModel, QueueRow]:
    """Return a model that fits the queue, or raise a problem."""
    service = call.service
    service.decider(call.queue)
    try:
        model = await service.loop.run_in_executor(None, service.models.receive, body)
    except (ValueError, ImportError, OSError) as error:
        raise Problem(422, "invalid-value", f"The model cannot be read: {error}") from None
    row = await service.ask(lambda: call.row)
    await service.ask(service.models.check_fit, model, row, call.store)
    return model, row


async def _switch(call: Call, kind: int, change: dict[str, int]) -> Changed:
    """Make a change of models, once every worker has loaded the new one."""
    first = next(iter(change.values()))
    if first:
        await call.service.load_everywhere(first)
    elif kind == MODEL:
        raise Problem(409, "no-model", "The queue has no such model to switch to.")
    place = await call.change(Request(kind=kind, change=dict(change)))
    return msgspec.convert({**place, **change}, Changed)


class Allowance(Struct, forbid_unknown_fields=True):
    """An entity whose events are not decided until a moment."""

    entity: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    until: Moment


async def allow(call: Call, body: Allowance) -> Changed:
    """Put an entity on the allow-list until a moment, or end that by a moment in the past."""
    settings = QueueSettings.from_json((await call.service.ask(lambda: call.row)).settings)
    if settings.entity is None:
        detail = "The queue was made without an entity, such as --entity customer."
        raise Problem(409, "invalid-value", detail)
    until = body.until.timestamp() if isinstance(body.until, datetime) else body.until
    change = {"entity": body.entity, "until": until}
    return Changed(**await call.change(Request(kind=ALLOW, change=change)))


async def observe(call: Call, body: SomeCases) -> Changed:
    """Learn from cases that are decided elsewhere."""
    cases = [Arrival(fields=fields) for fields in body]
    place = await call.change(Request(cases, OBSERVATION))
    return Changed(**place, observed=len(cases))


# --- the log, and health --------------------------------------------------------------------------


class LogQuery(Struct):
    """Which part of the log."""

    after: Seq = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


class Log(Struct):
    """Entries of the log."""

    queue: str
    entries: list[dict[str, Any]]


def read_log(call: Call, query: LogQuery) -> Log:
    """Entries of the log."""
    row = call.row
    entries = call.store.entries(row.id, query.after, most=query.limit)
    return Log(row.name, [_plain(entry) for entry in entries])


def _plain(entry: Any) -> dict[str, Any]:
    """Return an entry of the log without the columns of the case and without states."""
    plain = {name: getattr(entry, name) for name in _LOGGED}  # infinity is null in JSON
    has_event = entry.kind in (CAPACITY, MODEL, OBSERVATION, CLOCK, SHADOW, ALLOW) and entry.body
    event = json.loads(entry.body) if has_event else None
    return {**plain, "key": entry.key_id, "event": event}


class Me(Struct):
    """Who asks: the person of a key or of a proxy, the role, and the queues."""

    name: str | None
    role: str
    queues: list[str]


def read_me(call: Call) -> Me:
    """Who asks, and what they may do; without keys, everybody may do everything."""
    queues = [view.row.name for view in _status.visible_queues(call)]
    return Me(call.key.person, call.key.role or "all", queues)


async def live(call: Call) -> dict[str, bool]:
    """Whether the process answers."""
    return {"live": True}


async def ready(call: Call) -> dict[str, bool]:
    """Whether every queue can be decided."""
    if not call.service.ready:
        raise Problem(503, "unavailable", "Not every queue can be decided now.")
    return {"ready": True}


_QUEUE = "/v1/queues/{queue}"

#: Every route of the API. Which roles may use it is in `keys.ROLES`, by its name.
ROUTES = (
    Route("decide", "POST", f"{_QUEUE}/decisions", decide),
    Route("queues", "GET", "/v1/queues", _status.list_queues),
    Route("status", "GET", f"{_QUEUE}/status", _status.read_status),
    Route("metrics", "GET", "/metrics", _status.read_metrics),
    Route("make_queue", "POST", "/v1/queues", make_queue),
    Route("me", "GET", "/v1/me", read_me),
    Route("reviewers", "GET", "/v1/reviewers", _staff.list_reviewers),
    Route("set_reviewer", "PUT", "/v1/reviewers/{name}", _staff.set_reviewer),
    Route("drop_reviewer", "DELETE", "/v1/reviewers/{name}", _staff.drop_reviewer),
    Route("cases", "GET", f"{_QUEUE}/cases", _reviews.review_cases),
    Route("backlog", "GET", f"{_QUEUE}/backlog", _reviews.count_open),
    Route("next", "POST", f"{_QUEUE}/next", _staff.next_case),
    Route("assign", "POST", f"{_QUEUE}/assignments", _staff.assign_now),
    Route("release", "POST", f"{_QUEUE}/releases", _staff.release_case),
    Route("case", "GET", f"{_QUEUE}/decisions/{{case}}", _reviews.find_case),
    Route("claim", "POST", f"{_QUEUE}/claims", _reviews.claim_case),
    Route("outcome", "POST", f"{_QUEUE}/outcomes", _reviews.add_outcome),
    Route("capacity", "PUT", f"{_QUEUE}/capacity", change_capacity),
    Route("allow", "POST", f"{_QUEUE}/allowed", allow),
    Route("total", "PUT", "/v1/total", change_total),
    Route("model", "POST", f"{_QUEUE}/model", change_model),
    Route("shadow", "GET", f"{_QUEUE}/shadow", _shadow.compare),
    Route("set_shadow", "PUT", f"{_QUEUE}/shadow", set_shadow),
    Route("end_shadow", "DELETE", f"{_QUEUE}/shadow", end_shadow),
    Route("promote", "POST", f"{_QUEUE}/promote", promote),
    Route("back", "POST", f"{_QUEUE}/back", go_back),
    Route("observe", "POST", f"{_QUEUE}/observations", observe),
    Route("log", "GET", f"{_QUEUE}/log", read_log),
    Route("undelivered", "GET", "/v1/webhook", webhook.list_undelivered),
    Route("send_again", "POST", "/v1/webhook", webhook.send_again),
    Route("live", "GET", "/v2/health/live", live, is_open=True),
    Route("ready", "GET", "/v2/health/ready", ready, is_open=True),
)
