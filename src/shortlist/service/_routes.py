"""Every path but that of decisions: what is asked of the database or a decider, and the answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ._api import OPERATIONS, Claim, Listing, Operation, Outcome, Queue
from ._models import add_model
from ._requests import Problem, check_json, decoded, read_body
from ._reviews import add_outcome, claim_case, count_flagged, find_case, list_cases
from ._service import Service
from ._status import describe_queue, status_of
from .settings import QueueSettings
from .store import CAPACITY, MODEL, OBSERVATION, QueueRow, Store

__all__ = ["make_routes"]

_LONGEST_WAIT = 25.0
_MOST_SWAPS = 3


@dataclass
class Call:
    """A request that was admitted and read."""

    service: Service
    request: Request
    queue: str
    key: Any
    query: Any = None
    body: Any = None

    @property
    def store(self) -> Store:
        """The connection; within `ask` only."""
        return self.service.store

    @property
    def row(self) -> QueueRow:
        """The row of the queue; within `ask` only."""
        return self.service.row(self.queue)

    @property
    def key_id(self) -> str | None:
        """Who asks."""
        return None if self.key is None else str(self.key.id)

    def note(self, action: str, detail: dict[str, Any]) -> None:
        """Record a change that is not in the log; within `ask` only."""
        self.store.note(time.time(), self.key_id or "", action, self.queue, detail)

    async def change(self, kind: int, body: dict[str, Any]) -> Any:
        """Make a change that all workers follow; return its place in the log."""
        return await self.service.change(self.queue, kind, body, self.key_id)


def make_routes(service: Service) -> list[Route]:
    """Return the routes of a service, except for the fast path of decisions."""
    return [
        Route(
            each.path.replace("{case}", "{case:path}"),
            _endpoint(service, each, globals()[f"on_{each.name}"]),
            methods=[each.method],
        )
        for each in OPERATIONS
    ]


def _endpoint(service: Service, operation: Operation, handler: Callable[[Call], Any]) -> Any:
    """Return what admits a request, reads it, and answers it by a handler."""
    is_json = operation.body is not None and not isinstance(operation.body, dict)
    decoder = msgspec.json.Decoder(operation.body) if is_json else None
    most = service.config.most_bytes if is_json else service.config.most_model_bytes

    async def endpoint(request: Request) -> Response:
        queue = request.path_params.get("queue", "")
        key = None
        if not operation.open_to_all:
            key = service.admit(request.scope, operation.name, queue or None)
        call = Call(service, request, queue, key)
        if operation.query is not None:
            call.query = _query(request, operation.query)
        if decoder is not None:
            check_json(request.headers.get("content-type", "").encode())
            call.body = decoded(await read_body(request.receive, most), decoder)
        if inspect.iscoroutinefunction(handler):
            return _answer(await handler(call))
        return _answer(await service.ask(_settled, call, handler))

    return endpoint


def _settled(call: Call, handler: Callable[[Call], Any]) -> Any:
    """Return what a handler finds in the database, when that would survive a crash."""
    found = handler(call)
    call.store.settle()
    return found


def _query(request: Request, kind: Any) -> Any:
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-value", f"A parameter is not allowed: {error}") from None


def _answer(content: Any) -> Response:
    if isinstance(content, Response):
        return content
    is_new = isinstance(content, Claim) or (isinstance(content, Outcome) and not content.repeated)
    return Response(
        msgspec.json.encode(content),
        status_code=201 if is_new else 200,
        headers={"content-type": "application/json", "cache-control": "no-store"},
    )


# --- reading the database -------------------------------------------------------------------------


def on_queues(call: Call) -> Any:
    """Return all queues that the key may see."""
    return {"queues": _described(call)}


def _described(call: Call) -> list[Queue]:
    allowed = None if call.key is None else call.key.queues
    rows = [row for row in call.store.queues() if allowed is None or row.name in allowed]
    return [describe_queue(call.store, row, time.time()) for row in rows]


def on_case(call: Call) -> Any:
    """Return the decision about a case."""
    return find_case(call.store, call.row, call.request.path_params["case"])


def on_list(call: Call) -> Any:
    """Return the flagged cases of a period, and how many there are."""
    row, now, query = call.row, time.time(), call.query
    period = query.period
    if period < 0:
        period = describe_queue(call.store, row, now).number
    flagged = count_flagged(call.store, row, period)
    cases = list_cases(
        call.store, call.service.models, row, period=period, now=now, most=query.limit,
        skip=query.skip,
    )  # fmt: skip
    return Listing(row.name, period, flagged, cases)


def on_log(call: Call) -> Any:
    """Return entries of the log after one of them."""
    row = call.row
    entries = call.store.entries(row.id, call.query.after, most=call.query.limit)
    return {"queue": row.name, "entries": [_plain(entry) for entry in entries]}


def _plain(entry: Any) -> dict[str, Any]:
    """Return an entry of the log without the columns of the case and without states."""
    names = ("seq", "kind", "at", "period", "case_id", "score", "threshold", "code", "slot")
    plain = {name: getattr(entry, name) for name in names}  # infinity is null in JSON
    event = json.loads(entry.body) if entry.kind in (CAPACITY, MODEL, OBSERVATION) else None
    return {**plain, "model": entry.model, "key": entry.key_id, "event": event}


def on_claim(call: Call) -> Any:
    """Claim a case."""
    with call.store.write():
        found = claim_case(call.store, call.row, call.body, now=time.time())
        call.note("claim", {"id": found.id, "expires": found.expires})
    return found


def on_outcome(call: Call) -> Any:
    """Append an outcome."""
    given = call.request.headers.get("idempotency-key")
    with call.store.write():
        found = add_outcome(call.store, call.row, call.body, now=time.time(), key=given)
        if not found.repeated:
            call.note("outcome", {"number": found.number})
    return found


def on_metrics(call: Call) -> Any:
    """Return the metrics as text."""
    counted = call.store.query("SELECT queue, count(*) FROM alarm GROUP BY queue")
    alarms, rows = dict(counted), {row.name: row for row in call.store.queues()}
    queues = [
        {
            **msgspec.to_builtins(each),
            "seq": rows[each.name].last_seq,
            "alarms": alarms.get(str(rows[each.name].id), 0),
        }
        for each in _described(call)
    ]
    text = call.service.metrics.render(queues)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


# --- asking deciders ------------------------------------------------------------------------------


async def on_live(call: Call) -> Any:
    """Tell that the process answers."""
    return {"live": True}


async def on_ready(call: Call) -> Any:
    """Tell whether every queue can be decided."""
    if not call.service.ready:
        raise Problem(503, "unavailable", "Not every queue can be decided now.")
    return {"ready": True}


async def on_decide(call: Call) -> Any:
    """Refuse what the fast path has not taken."""
    raise Problem(404, "not-found", "There is no such queue.")


async def on_status(call: Call) -> Any:
    """Return the numbers of a queue; `after` waits until there is something new."""
    until = time.monotonic() + _LONGEST_WAIT
    while True:
        found = await call.service.ask(_status, call)
        is_late = time.monotonic() > until or call.service.is_leaving()
        if found["seq"] > call.query.after or is_late:
            return found
        await asyncio.sleep(0.5)


def _status(call: Call) -> dict[str, Any]:
    found = status_of(call.store, call.row, time.time())
    decider = call.service.deciders.get(call.queue)
    replica = None if decider is None else decider.replica
    if replica is not None and replica.drift is not None and replica.drift.raised:
        message = "Scores are no longer like the calibration scores of the model."
        found["alarms"].append({"kind": "drift", "message": message, "at": found["now"]})
    found["model"] = None if replica is None else replica.model
    found["ready"] = call.service.ready
    found["waiting"] = 0 if decider is None else decider.n_waiting
    return found


async def on_capacity(call: Call) -> Any:
    """Change the capacity for all workers at the same item."""
    row = await call.service.ask(call.service.row, call.queue)
    unit = QueueSettings.from_json(row.settings).unit
    given = {"count": call.body.count, "effort": call.body.effort}
    if [name for name, amount in given.items() if amount is not None] != [unit]:
        raise Problem(422, "invalid-value", f"The capacity of this queue needs {unit!r} alone.")
    change = {unit: given[unit], "from": _moment(call.body.begins)}
    found = await call.change(CAPACITY, change)
    change["from"] = max(found["at"], change["from"] or 0.0)  # never in the past
    return {**change, **found}


def _moment(value: float | str | None) -> float | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = float(value) if moment is None else moment.timestamp()
    except (ValueError, OverflowError):
        seconds = -1.0
    if not 0 <= seconds < 1e11:
        detail = "from must be seconds since 1970, or such as 2026-05-31T10:00:00Z."
        raise Problem(422, "invalid-value", detail)
    return seconds


async def on_model(call: Call) -> Any:
    """Add a model file, and switch to it for all workers at the same item."""
    if call.request.headers.get("content-type") != "application/octet-stream":
        raise Problem(
            415, "wrong-type", "Send a model file, with Content-Type: application/octet-stream."
        )
    call.service.decider(call.queue)
    content = await read_body(call.request.receive, call.service.config.most_model_bytes)
    id = await call.service.ask(_add_model, call.store, content)
    return {"model": id, **await call.change(MODEL, {"model": id})}


def _add_model(store: Store, content: bytes) -> int:
    try:
        return add_model(store, content)
    except (ValueError, ImportError, OSError) as error:
        raise Problem(422, "invalid-value", f"The model cannot be read: {error}") from None


async def on_observe(call: Call) -> Any:
    """Let all workers learn from cases that are decided elsewhere; no flag is used."""
    for _ in range(_MOST_SWAPS):
        model, scores = await _scores(call, call.body)
        found = await call.change(OBSERVATION, {"model": model, "scores": scores})
        if not found.get("stale"):
            return {"observed": len(scores), **found}
    raise Problem(503, "unavailable", "The model changes too often.")


async def on_infer(call: Call) -> Any:
    """Score cases without deciding about them (Open Inference Protocol)."""
    inputs, most = call.body.inputs, call.service.config.most_cases
    sizes = {len(each.data) for each in inputs}
    if len(sizes) != 1 or not 0 < max(sizes) <= most:
        raise Problem(
            422, "invalid-value", f"Every input needs the same number of values, from 1 to {most}."
        )
    names = [each.name for each in inputs]
    columns = zip(*(each.data for each in inputs), strict=True)
    rows = [dict(zip(names, values, strict=True)) for values in columns]
    model, scores = await _scores(call, rows)
    output = {"name": "score", "datatype": "FP64", "shape": [len(scores)], "data": scores}
    return {"model_name": call.queue, "model_version": str(model), "outputs": [output]}


async def _scores(call: Call, rows: list[dict[str, Any]]) -> tuple[int, list[float]]:
    """Score cases by the model in force, without deciding about them."""
    replica = call.service.decider(call.queue).replica
    if replica is None:
        raise Problem(503, "unavailable", "The service is not ready.")

    def score() -> list[float]:
        model = call.service.models.get(replica.model)
        read = [model.read(row) for row in rows]
        for each in read:
            if each.error is not None:
                raise Problem(422, "invalid-case", each.error)
        scores: list[float] = model.score(read).tolist()
        return scores

    return replica.model, await call.service.loop.run_in_executor(None, score)
