"""Errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

__all__ = ["TITLES", "Problem", "body_of", "problem_response"]

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
