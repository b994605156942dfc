"""The application: decisions on a fast path, everything else through Starlette."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from collections.abc import AsyncIterator
from functools import lru_cache
from hashlib import blake2b
from importlib import resources
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ._api import openapi_route
from ._requests import Problem, body_of, check_json, problem_response, read_body
from ._routes import make_routes
from ._service import Service, setter
from ._waiting import Failure, Ticket, Waiting

__all__ = ["make_app"]

_ENCODER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder()
_LONGEST_ID = 200
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


async def _decide(service: Service, queue: str, scope: Any, receive: Any, send: Any) -> int:
    """Answer one case, or a list of cases; return the status."""
    key = service.admit(scope, "decide", queue)
    decider = service.decider(queue)
    idempotency = _check_headers(scope)
    body = await read_body(scope, receive, service.config.most_bytes)
    content = _decoded(body)
    alone = not isinstance(content, list)
    cases = [content] if alone else content
    _check(cases, service.config.most_cases, alone=alone)
    future = service.new_future()
    ticket = Ticket(len(cases), setter(future))
    key_id = None if key is None else key.id
    deadline = time.monotonic() + service.config.patience
    waiting = [
        _waiting(fields, decider.id_fields, key_id, ticket, place, deadline)
        for place, fields in enumerate(cases)
    ]
    if idempotency is not None:
        _check_idempotency(idempotency, waiting, alone=alone)
    if waiting:
        if not decider.submit(waiting):
            raise Problem(503, "unavailable", "Too many cases are waiting.")
        answers = await future
    else:
        answers = []
    return await _send(send, answers, alone=alone)


def _decoded(body: bytes) -> Any:
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "invalid-json", f"The body is not JSON: {error}") from None


def _check_headers(scope: Any) -> bytes | None:
    """Check that JSON is sent; return the Idempotency-Key, if there is one."""
    key = None
    for name, value in scope["headers"]:
        if name == b"content-type":
            check_json(value)
        elif name == b"idempotency-key":
            key = value
    return key


def _check(cases: list[Any], most: int, *, alone: bool) -> None:
    if len(cases) > most:
        raise Problem(413, "too-large", f"A request may have {most:,} cases; got {len(cases):,}.")
    for place, fields in enumerate(cases):
        if not isinstance(fields, dict):
            where = "The body" if alone else f"Entry {place} of the list"
            raise Problem(
                400, "invalid-json", f"{where} must be an object with the columns of a case."
            )


def _waiting(
    fields: dict[str, Any],
    names: tuple[str, ...],
    key: str | None,
    ticket: Ticket,
    place: int,
    deadline: float,
) -> Waiting:
    id = None
    for name in names:
        if name in fields:
            id = fields[name]
            break
    case = str(id) if type(id) is int else id
    if not isinstance(case, str) or not 0 < len(case) <= _LONGEST_ID or not case.isprintable():
        raise Problem(
            422,
            "invalid-case",
            f"A case needs an id in the field {names[0] if names else 'id'!r}: a text of up to "
            f"{_LONGEST_ID} printable characters, or a whole number; got {id!r:.80}.",
        )
    digest = blake2b(_SORTED.encode(fields), digest_size=16).digest()
    return Waiting(case, digest, fields, key, ticket, place, deadline)


def _check_idempotency(key: bytes, waiting: list[Waiting], *, alone: bool) -> None:
    """Compare with the id of the case, in either of the encodings that programs use."""
    given = key.strip().strip(b'"')
    id = waiting[0].case_id if alone else None
    if id is None or (given.decode("latin-1") != id and given != id.encode()):
        raise Problem(
            422,
            "idempotency-key",
            "The id of a case is its key. Leave the Idempotency-Key out, or send the id.",
        )


async def _send(send: Any, answers: list[Any], *, alone: bool) -> int:
    for answer in answers:
        if type(answer) is Failure and (alone or answer.status == 503):
            raise Problem(answer.status, answer.kind, answer.detail)
    if alone:
        content = _ENCODER.encode(answers[0])
    else:
        content = _ENCODER.encode([_one(answer) for answer in answers])
    length = (b"content-length", str(len(content)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*_JSON, length]})
    await send({"type": "http.response.body", "body": content})
    return 200


def _one(answer: Any) -> Any:
    if type(answer) is Failure:
        return {"error": body_of(answer.status, answer.kind, answer.detail)}
    return answer


_log = logging.getLogger("shortlist.service")
_KINDS = {404: "not-found", 405: "wrong-method", 400: "invalid-json"}


def make_app(service: Service) -> Any:
    """Return the ASGI application of a service."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    routes = [*make_routes(service), openapi_route(), *_page_routes()]
    starlette = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={Problem: _told, HTTPException: _refused, Exception: _failed},
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        queue = _queue_of_decisions(scope)
        if queue is None:
            # Starlette raises an error again after it was answered and noted.
            with contextlib.suppress(Exception):
                await starlette(scope, receive, send)
            return
        started, status = time.monotonic(), 500
        try:
            status = await _decide(service, queue, scope, receive, send)
        except Problem as problem:
            status = problem.status
            await problem_response(problem)(scope, receive, send)
        except Exception as error:
            await (await _failed(Request(scope), error))(scope, receive, send)
        finally:
            service.metrics.decided(status, time.monotonic() - started)

    return app


def _queue_of_decisions(scope: Any) -> str | None:
    """Return the queue of `POST /v1/queues/{queue}/decisions`, or None for anything else."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    return _queue_in(scope["path"])


@lru_cache(maxsize=256)
def _queue_in(path: str) -> str | None:
    if not (path.startswith("/v1/queues/") and path.endswith("/decisions")):
        return None
    name = path[len("/v1/queues/") : -len("/decisions")]
    return unquote(name) if "/" not in name and name else None


async def _told(request: Request, problem: Any) -> Response:
    return problem_response(problem)


async def _refused(request: Request, error: Any) -> Response:
    kind = _KINDS.get(error.status_code, "error")
    response = problem_response(Problem(error.status_code, kind, str(error.detail)))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


async def _failed(request: Request, error: Exception) -> Response:
    """Answer a bug of ours; what arrived is not logged, because it may be personal."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    where = ", ".join(f"{place.filename}:{place.lineno}" for place in places)
    _log.error("A request failed: %s at %s", type(error).__name__, where)
    return problem_response(Problem(500, "error", "The service has failed. Its log says why."))


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def _page_routes() -> list[Route]:
    """Return the routes of the dashboard; its data come from the API."""
    files = {"/": "index.html", "/dashboard.css": "dashboard.css", "/dashboard.js": "dashboard.js"}
    return [Route(path, _page(name), methods=["GET"]) for path, name in files.items()]


def _page(name: str) -> Any:
    folder = resources.files("shortlist.service").joinpath("dashboard")
    content = folder.joinpath(name).read_text()

    async def page(request: Request) -> Response:
        return Response(
            content,
            media_type=_TYPES[name.rpartition(".")[2]],
            headers={
                "content-security-policy": _POLICY,
                "x-content-type-options": "nosniff",
                "referrer-policy": "no-referrer",
                "cache-control": "no-cache",
            },
        )

    return page
