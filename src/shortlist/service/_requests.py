"""Bodies of requests, what is sent back, and errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

import msgspec

__all__ = ["Kind", "Problem", "Reply", "check_type", "decoded", "read_body"]

#: Every kind of problem; its type is ``urn:shortlist:problem:<kind>``.
Kind = Literal[
    "invalid-json", "invalid-case", "invalid-value", "conflict", "idempotency-key", "no-key",
    "forbidden", "foreign-site", "not-found", "wrong-method", "not-flagged", "claimed", "too-large",
    "wrong-type", "too-slow", "unavailable", "clock", "no-model", "error",
]  # fmt: skip
_SLOWEST_BODY = 10.0  # seconds
_HEADERS = {
    408: {"retry-after": "1"},
    503: {"retry-after": "1"},
    401: {"www-authenticate": "Bearer"},
}


class Reply(NamedTuple):
    """What is sent back: its content, the type of that, the status and more headers."""

    content: bytes
    type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = {}


class Problem(Exception):
    """Why a request, or one of its cases, has no answer."""

    def __init__(
        self, status: int, kind: Kind, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = headers or _HEADERS.get(status, {})

    def to_json(self) -> dict[str, Any]:
        """Return the problem as a plain object."""
        return {
            "type": f"urn:shortlist:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }

    def reply(self) -> Reply:
        """Return the answer to a request with this problem."""
        content = msgspec.json.encode(self.to_json())
        return Reply(content, "application/problem+json", self.status, self.headers)


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


def check_type(headers: dict[bytes, bytes], needed: str) -> None:
    """Raise a problem unless the Content-Type is the one that is needed."""
    given = headers.get(b"content-type", b"").decode("latin-1")
    if given != needed and given.partition(";")[0].strip().lower() != needed:
        raise Problem(415, "wrong-type", f"Send Content-Type: {needed}; got {given!r:.80}.")


def decoded(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return what a body holds, or raise a problem."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-value", str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "invalid-json", f"The body is not JSON: {error}") from None
