"""Bodies of requests, and errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import Response

__all__ = ["TITLES", "Problem", "body_of", "check_json", "problem_response", "read_body"]

#: Every kind of problem, with its title; its type is ``urn:shortlist:problem:<kind>``.
TITLES = {
    "invalid-json": "The body is not JSON, or not of the right form",
    "invalid-case": "The case does not fit the model",
    "invalid-value": "A value is not allowed",
    "conflict": "The case was decided with other columns",
    "idempotency-key": "The Idempotency-Key does not fit the request",
    "no-key": "A key is needed",
    "forbidden": "This key may not do that",
    "foreign-site": "Requests from other sites are refused",
    "not-found": "There is nothing here",
    "wrong-method": "This cannot be done here",
    "not-flagged": "The case was not flagged",
    "claimed": "Somebody else has claimed the case",
    "too-large": "The body is too large",
    "wrong-type": "The body has the wrong type",
    "too-slow": "The body took too long to arrive",
    "too-many": "Too many requests",
    "unavailable": "No decision can be made now",
    "clock": "The clock is wrong",
    "no-model": "The model cannot be used",
    "error": "Something is wrong with the service",
}
_SLOWEST_BODY = 10.0  # seconds
_RETRY = {429: "1", 503: "1", 408: "1"}


class Problem(Exception):
    """An error that the client is told."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail

    @property
    def headers(self) -> dict[str, str]:
        """What the answer says besides its body."""
        after = {"retry-after": _RETRY[self.status]} if self.status in _RETRY else {}
        realm = {"www-authenticate": "Bearer"} if self.status == 401 else {}
        return {"content-type": "application/problem+json", "cache-control": "no-store"} | (
            after | realm
        )


def body_of(status: int, kind: str, detail: str) -> dict[str, Any]:
    """Return a problem as a plain object."""
    return {
        "type": f"urn:shortlist:problem:{kind}",
        "title": TITLES[kind],
        "status": status,
        "detail": detail,
    }


def problem_response(problem: Problem) -> Response:
    """Return the answer for a problem."""
    content = msgspec.json.encode(body_of(problem.status, problem.kind, problem.detail))
    return Response(content, status_code=problem.status, headers=problem.headers)


async def read_body(scope: Any, receive: Any, most: int) -> bytes:
    """Return the body of a request, unless it is too large or too slow."""
    message = await receive()
    if not message.get("more_body", False):  # nearly always it comes in one piece
        body: bytes = message.get("body", b"")
        if len(body) > most:
            raise Problem(413, "too-large", f"A body may have {most:,} bytes.")
        return body
    parts, size = [message.get("body", b"")], len(message.get("body", b""))
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            while message.get("more_body", False):
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Problem(408, "too-slow", "The connection was closed.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise Problem(413, "too-large", f"A body may have {most:,} bytes.")
    except TimeoutError:
        raise Problem(
            408, "too-slow", f"A body must arrive within {_SLOWEST_BODY:g} seconds."
        ) from None
    return b"".join(parts)


def check_json(kind: bytes) -> None:
    """Raise a problem unless a Content-Type is that of JSON."""
    if (
        kind != b"application/json"
        and kind.partition(b";")[0].strip().lower() != b"application/json"
    ):
        raise Problem(415, "wrong-type", "Send JSON, with Content-Type: application/json.")
