"""What is sent back: a reply, or a problem as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

import msgspec

__all__ = ["Kind", "Problem", "Reply"]

#: Every kind of problem; its type is ``urn:shortlist:problem:<kind>``.
Kind = Literal[
    "invalid-json", "invalid-case", "invalid-value", "conflict", "idempotency-key", "no-key",
    "forbidden", "foreign-site", "not-found", "wrong-method", "not-flagged", "claimed", "too-large",
    "wrong-type", "too-slow", "unavailable", "clock", "no-model", "error",
]  # fmt: skip
_HEADERS = {
    408: {"retry-after": "1", "connection": "close"},  # the rest may still come
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
