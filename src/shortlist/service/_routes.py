"""Every other path: parse, call one function, answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..online import DriftAlarm
from ._api import (
    MOST_LISTED,
    OPERATIONS,
    CapacityBody,
    ClaimBody,
    InferBody,
    InferInput,
    OutcomeBody,
)
from ._models import add_model
from ._requests import Problem, check_json, read_body
from ._reviews import add_outcome, claim_case, count_flagged, find_case, list_cases
from ._service import Service
from ._status import describe_queue, status_of
from .settings import QueueSettings
from .store import CAPACITY, MODEL, OBSERVATION, QueueRow

__all__ = ["make_routes"]

_SMALL = 64 << 10
_LONGEST_WAIT = 25.0
_MOST_SWAPS = 3


def _rows(inputs: list[InferInput], most: int) -> list[dict[str, Any]]:
    sizes = {len(each.data) for each in inputs}
    if len(sizes) != 1 or not 0 < max(sizes) <= most:
        raise Problem(
            422, "invalid-value", f"Every input needs the same number of values, from 1 to {most}."
        )
    names = [each.name for each in inputs]
    columns = zip(*(each.data for each in inputs), strict=True)
    return [dict(zip(names, values, strict=True)) for values in columns]


async def _parsed(request: Request, kind: Any, *, most: int = _SMALL) -> Any:
    check_json(request.headers.get("content-type", "").encode())
    body = await read_body(request.scope, request.receive, most)
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        is_form = isinstance(error, msgspec.ValidationError)
        status, name = (422, "invalid-value") if is_form else (400, "invalid-json")
        raise Problem(status, name, str(error)) from None


def _answer(content: Any, status: int = 200) -> Response:
    return Response(
        msgspec.json.encode(content),
        status_code=status,
        headers={"content-type": "application/json", "cache-control": "no-store"},
    )


def _number(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most or not text.isascii():
        raise Problem(
            422, "invalid-value", f"{name} must be a whole number from {least} to {most}."
        )
    return value


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
        raise Problem(
            422,
            "invalid-value",
            "from must be seconds since 1970, or such as 2026-05-31T10:00:00Z.",
        )
    return seconds


class _Handlers:
    """The handlers of a service."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def on_queues(self, request: Request) -> Response:
        """Return all queues that the key may see."""
        key = self.service.admit(request.scope, "queues")

        def read() -> list[dict[str, Any]]:
            rows = self.service.store.queues()
            return [describe_queue(self.service.store, row, time.time()) for row in rows]

        found = await self.service.ask(read)
        allowed = None if key is None else key.queues
        return _answer({"queues": [q for q in found if allowed is None or q["name"] in allowed]})

    async def on_decide(self, request: Request) -> Response:
        """Refuse what the fast path has not taken."""
        raise Problem(404, "not-found", "There is no such queue.")

    async def on_case(self, request: Request) -> Response:
        """Return the decision about a case."""
        return await self._read(
            request, "case", lambda row: find_case(self._store, row, request.path_params["case"])
        )

    async def on_list(self, request: Request) -> Response:
        """Return the flagged cases of a period, and how many there are."""
        most = _number(request, "limit", 200, least=1, most=MOST_LISTED)
        skip = _number(request, "skip", 0, least=0, most=1 << 53)
        period = _number(request, "period", -1, least=-1, most=1 << 53)

        def read(row: QueueRow) -> dict[str, Any]:
            now = time.time()
            described = describe_queue(self._store, row, now)
            number = described["number"] if period < 0 else period
            flagged, models = count_flagged(self._store, row, number), self.service.models
            cases = list_cases(
                self._store, models, row, period=number, now=now, most=most, skip=skip
            )
            return {"queue": row.name, "period": number, "flagged": flagged, "cases": cases}

        return await self._read(request, "list", read)

    async def on_status(self, request: Request) -> Response:
        """Return the numbers of a queue; `after` waits until there is something new."""
        after = _number(request, "after", -1, least=-1, most=1 << 53)
        queue = request.path_params["queue"]
        self.service.admit(request.scope, "status", queue)
        until = time.monotonic() + _LONGEST_WAIT
        while True:
            found = await self.service.ask(self._status, queue)
            if found["seq"] > after or time.monotonic() > until or self.service.leaving:
                return _answer(found)
            await asyncio.sleep(0.5)

    def _status(self, queue: str) -> dict[str, Any]:
        found = status_of(self._store, self.service.row(queue), time.time())
        decider = self.service.deciders.get(queue)
        replica = None if decider is None else decider.replica
        drift: DriftAlarm | None = None if replica is None else replica.drift
        if drift is not None and drift.raised:
            message = "Scores are no longer like the calibration scores of the model."
            found["alarms"].append({"kind": "drift", "message": message, "at": found["now"]})
        found["model"] = None if replica is None else replica.model
        found["ready"] = self.service.ready
        found["waiting"] = 0 if decider is None else decider.n_waiting
        return found

    async def on_log(self, request: Request) -> Response:
        """Return entries of the log after one of them."""
        after = _number(request, "after", 0, least=0, most=1 << 53)
        most = _number(request, "limit", 1_000, least=1, most=10_000)

        def read(row: QueueRow) -> dict[str, Any]:
            entries = self._store.entries(row.id, after, most=most)
            return {"queue": row.name, "entries": [_plain(entry) for entry in entries]}

        return await self._read(request, "log", read)

    async def on_claim(self, request: Request) -> Response:
        """Claim a case."""
        key, body, row = await self._told(request, "claim", ClaimBody)

        def claim() -> dict[str, Any]:
            with self._store.write():
                found = claim_case(
                    self._store,
                    row,
                    body.id,
                    reviewer=body.reviewer,
                    seconds=body.seconds,
                    now=time.time(),
                )
                detail = {"id": body.id, "expires": found["expires"]}
                self._note(key, "claim", row.name, detail)
            return found

        return _answer(await self.service.ask(claim), 201)

    async def on_outcome(self, request: Request) -> Response:
        """Append an outcome."""
        key, body, row = await self._told(request, "outcome", OutcomeBody)
        given = request.headers.get("idempotency-key")

        def append() -> dict[str, Any]:
            with self._store.write():
                found = add_outcome(
                    self._store,
                    row,
                    body.id,
                    rare=body.rare,
                    reviewer=body.reviewer,
                    note=body.note,
                    now=time.time(),
                    key=given,
                )
                if not found["repeated"]:
                    self._note(key, "outcome", row.name, {"number": found["number"]})
            return found

        found = await self.service.ask(append)
        return _answer(found, 200 if found["repeated"] else 201)

    async def on_capacity(self, request: Request) -> Response:
        """Change the capacity for all workers at the same item."""
        key, body, row = await self._told(request, "capacity", CapacityBody)
        unit = QueueSettings.from_json(row.settings).unit
        given = {"count": body.count, "effort": body.effort}
        if [name for name, amount in given.items() if amount is not None] != [unit]:
            raise Problem(422, "invalid-value", f"The capacity of this queue needs {unit!r} alone.")
        change = {unit: given[unit], "from": _moment(body.begins)}
        found = await self.service.change(row.name, CAPACITY, change, key)
        change["from"] = max(found["at"], change["from"] or 0.0)  # never in the past
        return _answer({**change, **found})

    async def on_observe(self, request: Request) -> Response:
        """Let all workers learn from cases that are decided elsewhere; no flag is used."""
        queue = request.path_params["queue"]
        allowed = self.service.admit(request.scope, "observe", queue)
        config = self.service.config
        rows = await _parsed(request, list[dict[str, Any]], most=config.most_bytes)
        if not 0 < len(rows) <= config.most_cases:
            raise Problem(422, "invalid-value", f"Send from 1 to {config.most_cases:,} cases.")
        key = None if allowed is None else allowed.id
        for _ in range(_MOST_SWAPS):
            model, scores = await self._scores(queue, rows)
            body = {"model": model, "scores": scores}
            found = await self.service.change(queue, OBSERVATION, body, key)
            if not found.get("stale"):
                return _answer({"observed": len(rows), **found})
        raise Problem(503, "unavailable", "The model changes too often.")

    async def _scores(self, queue: str, rows: list[dict[str, Any]]) -> tuple[int, list[float]]:
        """Score cases by the model in force, without deciding about them."""
        replica = self.service.decider(queue).replica
        if replica is None:
            raise Problem(503, "unavailable", "The service is not ready.")

        def score() -> list[float]:
            model = self.service.models.get(replica.model)
            read = [model.read(row) for row in rows]
            for each in read:
                if each.error is not None:
                    raise Problem(422, "invalid-case", each.error)
            scores: list[float] = model.score(read).tolist()
            return scores

        return replica.model, await self.service.loop.run_in_executor(None, score)

    async def on_model(self, request: Request) -> Response:
        """Add a model file, and switch to it for all workers at the same item."""
        queue = request.path_params["queue"]
        allowed = self.service.admit(request.scope, "model", queue)
        key = None if allowed is None else allowed.id
        if request.headers.get("content-type") != "application/octet-stream":
            raise Problem(
                415, "wrong-type", "Send a model file, with Content-Type: application/octet-stream."
            )
        self.service.decider(queue)
        content = await read_body(
            request.scope, request.receive, self.service.config.most_model_bytes
        )
        id = await self.service.ask(self._add_model, content)
        found = await self.service.change(queue, MODEL, {"model": id}, key)
        return _answer({"model": id, **found})

    def _add_model(self, content: bytes) -> int:
        try:
            return add_model(self._store, content)
        except (ValueError, ImportError, OSError) as error:
            raise Problem(422, "invalid-value", f"The model cannot be read: {error}") from None

    async def on_infer(self, request: Request) -> Response:
        """Score cases without deciding about them (Open Inference Protocol)."""
        queue = request.path_params["queue"]
        self.service.admit(request.scope, "infer", queue)
        body = await _parsed(request, InferBody, most=self.service.config.most_bytes)
        rows = _rows(body.inputs, self.service.config.most_cases)
        model, scores = await self._scores(queue, rows)
        output = {"name": "score", "datatype": "FP64", "shape": [len(scores)], "data": scores}
        return _answer({"model_name": queue, "model_version": str(model), "outputs": [output]})

    async def on_live(self, request: Request) -> Response:
        """Tell that the process answers."""
        return _answer({"live": True})

    async def on_ready(self, request: Request) -> Response:
        """Tell whether every queue can be decided."""
        if not self.service.ready:
            raise Problem(503, "unavailable", "Not every queue can be decided now.")
        return _answer({"ready": True})

    async def on_metrics(self, request: Request) -> Response:
        """Return the metrics as text."""
        self.service.admit(request.scope, "metrics")

        def read() -> list[dict[str, Any]]:
            found = []
            for row in self._store.queues():
                [(alarms,)] = self._store.query(
                    "SELECT count(*) FROM alarm WHERE queue = ?", str(row.id)
                )
                described = describe_queue(self._store, row, time.time())
                found.append({**described, "seq": row.last_seq, "alarms": alarms})
            return found

        text = self.service.metrics.render(await self.service.ask(read))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    # --- shared --------------------------------------------------------------------------------

    @property
    def _store(self) -> Any:
        return self.service.store

    async def _read(
        self, request: Request, action: str, read: Callable[[QueueRow], dict[str, Any]]
    ) -> Response:
        queue = request.path_params["queue"]
        self.service.admit(request.scope, action, queue)

        def settled() -> dict[str, Any]:
            found = read(self.service.row(queue))
            self._store.settle()
            return found

        return _answer(await self.service.ask(settled))

    async def _told(self, request: Request, action: str, kind: Any) -> tuple[Any, Any, QueueRow]:
        """Return the id of the key, the body, and the queue of a request."""
        queue = request.path_params["queue"]
        key = self.service.admit(request.scope, action, queue)
        row = await self.service.ask(self.service.row, queue)
        body = await _parsed(request, kind)
        return None if key is None else key.id, body, row

    def _note(self, key: str | None, action: str, queue: str, detail: Any) -> None:
        """Record a change that is not in the log; within `ask` only."""
        self._store.note(time.time(), key or "", action, queue, detail)


def _plain(entry: Any) -> dict[str, Any]:
    """Return an entry of the log without the columns of the case and without states."""
    names = ("seq", "kind", "at", "period", "case_id", "score", "threshold", "code", "slot")
    plain = {name: getattr(entry, name) for name in names}
    threshold = plain["threshold"]
    if threshold is not None and abs(threshold) == float("inf"):
        plain["threshold"] = None
    event = json.loads(entry.body) if entry.kind in (CAPACITY, MODEL, OBSERVATION) else None
    return {**plain, "model": entry.model, "key": entry.key_id, "event": event}


def make_routes(service: Service) -> list[Route]:
    """Return the routes of a service, except for the fast path of decisions."""
    handlers = _Handlers(service)
    return [
        Route(
            each.path.replace("{case}", "{case:path}"),
            getattr(handlers, f"on_{each.name}"),
            methods=[each.method],
        )
        for each in OPERATIONS
    ]
