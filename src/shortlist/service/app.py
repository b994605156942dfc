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

from ._api import describe_api
from ._requests import Problem, check_json, decoded, read_body
from ._routes import make_routes
from ._service import Service
from ._waiting import Case, Ticket

__all__ = ["make_app"]

_log = logging.getLogger("shortlist.service")
_ENCODER = msgspec.json.Encoder(enc_hook=lambda problem: {"error": problem.to_json()})
_SORTED = msgspec.json.Encoder(order="deterministic")
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_LONGEST_ID = 200
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
_KINDS = {404: "not-found", 405: "wrong-method", 400: "invalid-json"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGES = {
    "/": ("index.html", "text/html"),
    "/dashboard.css": ("dashboard.css", "text/css"),
    "/dashboard.js": ("dashboard.js", "text/javascript"),
}


def make_app(service: Service) -> Any:
    """Return the ASGI application of a service."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    pages = [Route(path, _page(*file), methods=["GET"]) for path, file in _PAGES.items()]
    starlette = Starlette(
        routes=[*make_routes(service), Route("/openapi.json", _openapi, methods=["GET"]), *pages],
        lifespan=lifespan,
        exception_handlers={Problem: _answered, HTTPException: _refused, Exception: _failed},
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        queue = None
        if scope["type"] == "http" and scope["method"] == "POST":
            queue = _queue_in(scope["path"])
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
            await problem.response()(scope, receive, send)
        except Exception as error:
            await (await _failed(Request(scope), error))(scope, receive, send)
        finally:
            service.metrics.decided(status, time.monotonic() - started)

    return app


# --- decisions ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _queue_in(path: str) -> str | None:
    """Return the queue of `/v1/queues/{queue}/decisions`, or None for another path."""
    if not (path.startswith("/v1/queues/") and path.endswith("/decisions")):
        return None
    name = path[len("/v1/queues/") : -len("/decisions")]
    return unquote(name) if "/" not in name and name else None


async def _decide(service: Service, queue: str, scope: Any, receive: Any, send: Any) -> int:
    """Answer one case, or a list of cases; return the status."""
    key = service.admit(scope, "decide", queue)
    decider = service.decider(queue)
    idempotency = _check_headers(scope)
    content = decoded(await read_body(receive, service.config.most_bytes), _DECODER)
    alone = not isinstance(content, list)
    bodies = [content] if alone else content
    _check(bodies, service.config.most_cases, alone=alone)
    ticket = service.new_ticket(len(bodies))
    key_id = None if key is None else key.id
    cases = [
        _case(ticket, place, fields, decider.id_fields, key_id)
        for place, fields in enumerate(bodies)
    ]
    if idempotency is not None:
        _check_idempotency(idempotency, cases[0].case_id if alone else None)
    if not cases:
        return await _send(send, [])
    if not decider.submit(cases):
        raise Problem(503, "unavailable", "Too many cases are waiting.")
    answers = await ticket.future
    for answer in answers:
        if type(answer) is Problem and (alone or answer.status == 503):
            raise answer
    return await _send(send, answers[0] if alone else answers)


def _check_headers(scope: Any) -> bytes | None:
    """Check that JSON is sent; return the Idempotency-Key, if there is one."""
    key = None
    for name, value in scope["headers"]:
        if name == b"content-type":
            check_json(value)
        elif name == b"idempotency-key":
            key = value
    return key


def _check(bodies: list[Any], most: int, *, alone: bool) -> None:
    if len(bodies) > most:
        raise Problem(413, "too-large", f"A request may have {most:,} cases; got {len(bodies):,}.")
    for place, fields in enumerate(bodies):
        if not isinstance(fields, dict):
            where = "The body" if alone else f"Entry {place} of the list"
            raise Problem(
                400, "invalid-json", f"{where} must be an object with the columns of a case."
            )


def _case(
    ticket: Ticket, place: int, fields: dict[str, Any], names: tuple[str, ...], key: str | None
) -> Case:
    given = next((fields[name] for name in names if name in fields), None)
    case = str(given) if type(given) is int else given
    if not isinstance(case, str) or not 0 < len(case) <= _LONGEST_ID or not case.isprintable():
        raise Problem(
            422,
            "invalid-case",
            f"A case needs an id in the field {names[0] if names else 'id'!r}: a text of up to "
            f"{_LONGEST_ID} printable characters, or a whole number; got {given!r:.80}.",
        )
    digest = blake2b(_SORTED.encode(fields), digest_size=16).digest()
    return Case(ticket, place, case, digest, fields, key)


def _check_idempotency(key: bytes, id: str | None) -> None:
    """Compare with the id of the case, in either of the encodings that programs use."""
    given = key.strip().strip(b'"')
    if id is None or (given.decode("latin-1") != id and given != id.encode()):
        raise Problem(
            422,
            "idempotency-key",
            "The id of a case is its key. Leave the Idempotency-Key out, or send the id.",
        )


async def _send(send: Any, content: Any) -> int:
    encoded = _ENCODER.encode(content)
    length = (b"content-length", str(len(encoded)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*_JSON, length]})
    await send({"type": "http.response.body", "body": encoded})
    return 200


# --- errors and pages -----------------------------------------------------------------------------


async def _answered(request: Request, problem: Any) -> Response:
    response: Response = problem.response()
    return response


async def _refused(request: Request, error: Any) -> Response:
    kind = _KINDS.get(error.status_code, "error")
    response = Problem(error.status_code, kind, str(error.detail)).response()
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> Response:
    """Answer a bug of ours; what arrived is not logged, because it may be personal."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    where = ", ".join(f"{place.filename}:{place.lineno}" for place in places)
    _log.error("A request failed: %s at %s", type(error).__name__, where)
    return Problem(500, "error", "The service has failed. Its log says why.").response()


async def _openapi(request: Request) -> Response:
    return Response(msgspec.json.encode(describe_api()), media_type="application/json")


def _page(name: str, kind: str) -> Any:
    """Return what answers with a file of the dashboard; its data come from the API."""
    folder = resources.files("shortlist.service").joinpath("dashboard")
    content = folder.joinpath(name).read_text()
    headers = {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }

    async def page(request: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return page
