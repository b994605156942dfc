"""The application: finds the route of a request, reads it, lets it answer, and sends that."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ._api import Problem, Route
from ._routes import ROUTES
from ._service import Call, Service
from ._staff import follow_staff
from .keys import NO_KEY
from .logs import place_of, telling
from .webhook import Webhook

_log = logging.getLogger("shortlist.service")
_ENCODER = msgspec.json.Encoder(enc_hook=lambda problem: {"error": problem.details})
_MOST_BYTES = {"application/json": 4 << 20, "application/octet-stream": 256 << 20}
_SLOWEST_BODY = 10.0  # seconds
_SLOWEST_HEADERS, _MOST_HEADERS = 10.0, 64 << 10  # seconds, and bytes
_SCRIPT = "text/javascript; charset=utf-8"
_PAGES = {
    "/": ("dashboard/index.html", "text/html; charset=utf-8"),
    "/dashboard.css": ("dashboard/dashboard.css", "text/css; charset=utf-8"),
    **{
        f"/{name}.js": (f"dashboard/{name}.js", _SCRIPT) for name in ("dashboard", "review", "team")
    },
    "/openapi.json": ("openapi.json", "application/json"),
}
_SAFETY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


class Reply(NamedTuple):
    """What is sent back: its content, the type of that, the status and more headers."""

    content: bytes
    type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = {}


def make_app(service: Service) -> Any:
    """Return the ASGI application of a service."""
    files = _files()
    service.chores.append(partial(follow_staff, service, as_leader=True))
    if service.config.webhook is not None:
        service.chores.append(Webhook(service, *service.config.webhook).run)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _live(service, receive, send)
            return
        started, path, headers = time.monotonic(), scope["path"], dict(scope["headers"])
        with telling(headers) as about:
            try:
                if path in files and scope["method"] in ("GET", "HEAD"):
                    about["route"], reply = f"GET {path}", files[path]
                else:
                    reply = await _answer(service, scope, headers, receive, about)
            except Exception as error:
                problem = error if isinstance(error, Problem) else _failed(error, about)
                about["problem"], reply = problem.kind, _refused(problem)
            about["status"] = reply.status
        if path.endswith("/decisions") and scope["method"] == "POST":
            service.metrics.decided(reply.status, time.monotonic() - started)
        await _send(send, reply, about["request"])

    return app


async def _live(service: Service, receive: Any, send: Any) -> None:
    """Start with the server, and stop with it."""
    for step, event in ((service.start, "startup"), (service.stop, "shutdown")):
        await receive()
        await step()
        await send({"type": f"lifespan.{event}.complete"})


async def _answer(
    service: Service, scope: Any, headers: dict[bytes, bytes], receive: Any, about: dict[str, Any]
) -> Reply:
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    route, queue, case = _find(method, scope["path"])
    about["route"] = f"{route.method} {route.path}"
    key = NO_KEY if route.is_open else service.admit(headers, route.name, queue or None)
    about["key"] = key.id.partition(" ")[0]  # without the name of whom a proxy vouches for
    call = Call(service, queue, case, key, headers)
    if queue and queue not in service.deciders:  # another worker may have made it
        with contextlib.suppress(Problem):
            await service.ask(service.open_queues)
    about |= {"queue": queue} if queue in service.deciders else {}
    read = await _read(route, call, scope, receive)
    if route.is_async:
        found = await route.handler(call, **read)
    else:
        found = await service.ask(route.handler, call, **read)
    if isinstance(found, str):
        return Reply(found.encode(), "text/plain; version=0.0.4; charset=utf-8")
    return Reply(_ENCODER.encode(found))


@lru_cache(maxsize=1_024)
def _find(method: str, path: str) -> tuple[Route, str, str]:
    """Return the route of a path, its queue and its case."""
    found = [(route, match) for route in ROUTES if (match := route.match(path))]
    for route, match in found:
        if route.method == method:
            names = match.groupdict()
            return route, names.get("queue", ""), names.get("case", "")
    if not found:
        raise Problem(404, "not-found", "There is nothing at this path.")
    allowed = ", ".join(route.method for route, _ in found)
    raise Problem(405, "wrong-method", f"Use {allowed}.", {"allow": allowed})


# --- reading --------------------------------------------------------------------------------------


async def _read(route: Route, call: Call, scope: Any, receive: Any) -> dict[str, Any]:
    """Return the body and the query of a request, if its handler takes them."""
    read: dict[str, Any] = {}
    try:
        if route.query is not None:
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            read["query"] = msgspec.convert(query, route.query, strict=False)
        if route.body is not None:
            _check_type(call.headers, route.content_type)
            call.check_room(route.name)
            body = await _read_body(receive, _MOST_BYTES[route.content_type])
            call.check_room(route.name)  # others have come meanwhile; to decode would cost most
            read["body"] = body if route.body is bytes else route.decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-value", str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "invalid-json", f"The body is not JSON: {error}") from None
    return read


def _check_type(headers: dict[bytes, bytes], needed: str) -> None:
    given = headers.get(b"content-type", b"").decode("latin-1")
    if given != needed and given.partition(";")[0].strip().lower() != needed:
        raise Problem(415, "wrong-type", f"Send Content-Type: {needed}; got {given!r:.80}.")


async def _read_body(receive: Any, most: int) -> bytes:
    """Return the body of a request, unless it is too large or too slow."""
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            while more and size <= most:  # nearly always it is in one piece
                message = await receive()
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
    except TimeoutError:
        detail = f"A body must arrive within {_SLOWEST_BODY:g} seconds."
        raise Problem(408, "too-slow", detail) from None
    if size > most:
        raise Problem(413, "too-large", f"A body may have {most:,} bytes.")
    return b"".join(parts)


# --- headers --------------------------------------------------------------------------------------


class HttpProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP whose headers must come soon and be short; a body has limits of its own."""

    def connection_made(self, transport: Any) -> None:
        """Wait for the first headers."""
        super().connection_made(transport)
        self._n_bytes, self._in_headers = 0, False
        self._timer: Any = self.loop.call_later(_SLOWEST_HEADERS, transport.close)

    def on_message_begin(self) -> None:
        """Count the headers of each request anew; h11, if it reads them, has its own limit."""
        super().on_message_begin()
        self._n_bytes, self._in_headers = 0, True

    def on_headers_complete(self) -> None:
        """Count no body."""
        self._in_headers = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Read, and see whether headers have begun or come to their end."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif before is None or before.response_complete:
            if self._timer is None:
                self._timer = self.loop.call_later(_SLOWEST_HEADERS, self.transport.close)
            self._n_bytes += len(data) if self._in_headers else 0
            if self._n_bytes > _MOST_HEADERS and not self.transport.is_closing():
                self.send_400_response("The headers are too long.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# --- sending --------------------------------------------------------------------------------------


async def _send(send: Any, reply: Reply, request: str) -> None:
    headers = {
        "content-type": reply.type,
        "content-length": str(len(reply.content)),
        "cache-control": "no-store",
        "x-request-id": request,
        **reply.headers,
    }
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    await send({"type": "http.response.body", "body": reply.content})


def _refused(problem: Problem) -> Reply:
    content = msgspec.json.encode(problem.details)
    return Reply(content, "application/problem+json", problem.status, problem.headers)


def _failed(error: Exception, about: dict[str, Any]) -> Problem:
    """Return what is said about a bug of ours; what arrived may be personal and is not logged."""
    _log.error("A request failed: %s", place_of(error), extra={"about": about})
    return Problem(500, "error", "The service has failed. Its log says why.")


def _files() -> dict[str, Reply]:
    """Return the files of the dashboard, and the description of the API."""
    folder = resources.files("shortlist.service")
    return {
        path: Reply(folder.joinpath(name).read_bytes(), kind, 200, _SAFETY)
        for path, (name, kind) in _PAGES.items()
    }
