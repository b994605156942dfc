"""Bodies of requests, and errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import Response

__all__ = ["TITLES", "Problem", "check_json", "decoded", "read_body"]

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
    "unavailable": "No decision can be made now",
    "clock": "The clock is wrong",
    "no-model": "The model cannot be used",
    "error": "Something is wrong with the service",
}
_SLOWEST_BODY = 10.0  # seconds
_MORE = {
    408: {"retry-after": "1"},
    503: {"retry-after": "1"},
    401: {"www-authenticate": "Bearer"},
}


class Problem(Exception):
    """Why a request, or one of its cases, has no answer."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail

    def to_json(self) -> dict[str, Any]:
        """Return the problem as a plain object."""
        return {
            "type": f"urn:shortlist:problem:{self.kind}",
            "title": TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
        }

    def response(self) -> Response:
        """Return the answer to a request with this problem."""
        headers = {"content-type": "application/problem+json", "cache-control": "no-store"}
        return Response(
            msgspec.json.encode(self.to_json()),
            status_code=self.status,
            headers=headers | _MORE.get(self.status, {}),
        )


async def read_body(receive: Any, most: int) -> bytes:
    """Return the body of a request, unless it is too large or too slow."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):  # nearly always it comes in one piece
        body = await _read_on(receive, bytearray(body), most)
    if len(body) > most:
        raise Problem(413, "too-large", f"A body may have {most:,} bytes.")
    return body


async def _read_on(receive: Any, body: bytearray, most: int) -> bytes:
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            while len(body) <= most:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Problem(408, "too-slow", "The connection was closed.")
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        detail = f"A body must arrive within {_SLOWEST_BODY:g} seconds."
        raise Problem(408, "too-slow", detail) from None
    return bytes(body)


def check_json(kind: bytes) -> None:
    """Raise a problem unless a Content-Type is that of JSON."""
    json = b"application/json"
    if kind != json and kind.partition(b";")[0].strip().lower() != json:
        raise Problem(415, "wrong-type", "Send JSON, with Content-Type: application/json.")


def decoded(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return what a body holds, or raise a problem."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-value", str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "invalid-json", f"The body is not JSON: {error}") from None
