"""The description of the API in OpenAPI 3.1."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .. import __version__
from ._problems import TITLES
from ._routes import CapacityBody, ClaimBody, InferBody, OutcomeBody
from ._waiting import Answer

__all__ = ["describe_api", "openapi_route"]

_TEXT, _NUMBER, _WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_MAYBE_NUMBER = {"type": ["number", "null"]}
_SEQ = {"type": "integer", "minimum": 0, "maximum": 1 << 53}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
    }


def _list(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


_CASE_ID = {"type": "string", "minLength": 1, "maxLength": 200}
_CASE = {
    "type": "object",
    "description": "The id of a case (in the model's own id column, or `id`) and its columns.",
    "properties": {"id": {"anyOf": [_CASE_ID, {"type": "integer"}]}},
    "additionalProperties": True,
}
_QUEUE = _object(
    {
        "name": _TEXT,
        "capacity": _NUMBER,
        "unit": {"enum": ["count", "effort"]},
        "period": {"type": ["number", "string"]},
        "number": _WHOLE,
        "starts": _NUMBER,
        "ends": _NUMBER,
        "used": _NUMBER,
        "flags": _WHOLE,
        "remaining": _NUMBER,
        "seen": _WHOLE,
        "total": {"type": ["string", "null"]},
    }
)
_LISTED = _object(
    {
        "id": _TEXT,
        "score": _NUMBER,
        "at": _NUMBER,
        "slot": _WHOLE,
        "probe": {"type": "boolean"},
        "reasons": _list({"type": "object"}),
        "claimed_by": {"type": ["string", "null"]},
        "claim_expires": _MAYBE_NUMBER,
        "outcome": {"type": ["boolean", "null"]},
    }
)
_PROBLEM = _object(
    {
        "type": {"enum": [f"urn:shortlist:problem:{kind}" for kind in TITLES]},
        "title": _TEXT,
        "status": _WHOLE,
        "detail": _TEXT,
    }
)
_PLACE = {"seq": _WHOLE, "at": _NUMBER}
_PROBLEMS = {
    "400": "The body is not JSON",
    "401": "A key is needed",
    "403": "The key may not do that",
    "404": "There is no such queue or case",
    "408": "The body took too long",
    "409": "The case is not flagged, or somebody else has claimed it",
    "413": "The body is too large",
    "415": "The body has the wrong type",
    "422": "A value is not allowed, or a known case came with other columns",
    "429": "Too many requests",
    "503": "No decision can be made now; try again after Retry-After seconds",
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _operation(
    name: str,
    summary: str,
    answer: Any,
    *,
    body: Any = None,
    query: dict[str, Any] | None = None,
    path: tuple[str, ...] = ("queue",),
    status: tuple[str, ...] = ("200",),
    open_to_all: bool = False,
) -> dict[str, Any]:
    given = [
        {"name": each, "in": "path", "required": True, "schema": _CASE_ID} for each in path
    ] + [{"name": each, "in": "query", "schema": schema} for each, schema in (query or {}).items()]
    answers = {each: {"description": summary, "content": answer} for each in status}
    problems = {
        code: {
            "description": words,
            "content": {"application/problem+json": {"schema": _ref("Problem")}},
        }
        for code, words in _PROBLEMS.items()
    }
    described = {
        "operationId": name,
        "summary": summary,
        "parameters": given,
        "responses": {**answers, **problems},
        "security": [] if open_to_all else [{}, {"key": []}],
    }
    if body is not None:
        described["requestBody"] = {"required": True, "content": body}
    return described


def _schemas() -> dict[str, Any]:
    bodies = (Answer, CapacityBody, ClaimBody, InferBody, OutcomeBody)
    _, components = msgspec.json.schema_components(
        bodies, ref_template="#/components/schemas/{name}"
    )
    return {**components, "Problem": _PROBLEM, "Case": _CASE, "Queue": _QUEUE, "Listed": _LISTED}


_BASE = "/v1/queues/{queue}"
_PERIOD = {"type": "integer", "minimum": -1, "maximum": 1 << 53}


def _limit(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _deciding_paths() -> dict[str, Any]:
    failed = _object({"error": _ref("Problem")})
    cases = {**_list(_ref("Case")), "maxItems": 1_024}
    answers = {"anyOf": [_ref("Answer"), _list({"anyOf": [_ref("Answer"), failed]})]}
    decide = _operation(
        "decide", "Decide about a case, or about a list of up to 1,024", _json(answers),
        body=_json({"anyOf": [_ref("Case"), cases]}),
    )  # fmt: skip
    case = _operation(
        "case", "The decision about a case", _json({"type": "object"}), path=("queue", "case")
    )
    observe = _operation(
        "observe", "Learn from cases that are decided elsewhere",
        _json(_object({"observed": _WHOLE, **_PLACE})), body=_json({**cases, "minItems": 1}),
    )  # fmt: skip
    infer = _operation(
        "infer", "Score cases without deciding (Open Inference Protocol)",
        _json(_object({"model_name": _TEXT, "outputs": _list({"type": "object"})})),
        body=_json(_ref("InferBody")),
    )  # fmt: skip
    return {
        f"{_BASE}/decisions": {"post": decide},
        f"{_BASE}/decisions/{{case}}": {"get": case},
        f"{_BASE}/observations": {"post": observe},
        "/v2/models/{queue}/infer": {"post": infer},
    }


def _reviewing_paths() -> dict[str, Any]:
    listed = _object(
        {"queue": _TEXT, "period": _WHOLE, "flagged": _WHOLE, "cases": _list(_ref("Listed"))}
    )
    listing = _operation(
        "list", "The flagged cases of a period, the highest score first", _json(listed),
        query={"period": _PERIOD, "limit": _limit(1_000), "skip": _SEQ},
    )  # fmt: skip
    claim = _operation(
        "claim", "Claim a flagged case for some time",
        _json(_object({"id": _TEXT, "reviewer": _TEXT, "expires": _NUMBER})),
        body=_json(_ref("ClaimBody")), status=("201",),
    )  # fmt: skip
    outcome = _operation(
        "outcome", "Append what a reviewer found",
        _json(_object({"id": _TEXT, "number": _WHOLE, "repeated": {"type": "boolean"}})),
        body=_json(_ref("OutcomeBody")), status=("200", "201"),
    )  # fmt: skip
    return {
        f"{_BASE}/list": {"get": listing},
        f"{_BASE}/claims": {"post": claim},
        f"{_BASE}/outcomes": {"post": outcome},
    }


def _managing_paths() -> dict[str, Any]:
    capacity = _operation(
        "capacity", "Change the capacity, now or from a moment on",
        _json(_object({"from": _MAYBE_NUMBER, **_PLACE}, count=_WHOLE, effort=_NUMBER)),
        body=_json(_ref("CapacityBody")),
    )  # fmt: skip
    model = _operation(
        "model", "Switch to another model", _json(_object({"model": _WHOLE, **_PLACE})),
        body={"application/octet-stream": {"schema": {"type": "string", "minLength": 1}}},
    )  # fmt: skip
    status = _operation(
        "status", "The numbers of a queue", _json(_ref("Queue")), query={"after": _PERIOD}
    )
    log = _operation(
        "log", "Entries of the log",
        _json(_object({"queue": _TEXT, "entries": _list({"type": "object"})})),
        query={"after": _SEQ, "limit": _limit(10_000)},
    )  # fmt: skip
    return {
        f"{_BASE}/capacity": {"put": capacity},
        f"{_BASE}/model": {"post": model},
        f"{_BASE}/status": {"get": status},
        f"{_BASE}/log": {"get": log},
    }


def _shared_paths() -> dict[str, Any]:
    queues = _operation(
        "queues", "All queues", _json(_object({"queues": _list(_ref("Queue"))})), path=()
    )
    health = {
        name: _operation(name, words, _json({"type": "object"}), path=(), open_to_all=True)
        for name, words in (
            ("live", "Whether the process answers"),
            ("ready", "Whether every queue can be decided"),
        )
    }
    metrics = _operation(
        "metrics", "Metrics for Prometheus", {"text/plain": {"schema": _TEXT}}, path=()
    )
    return {
        "/v1/queues": {"get": queues},
        **{f"/v2/health/{name}": {"get": described} for name, described in health.items()},
        "/metrics": {"get": metrics},
    }


@lru_cache(maxsize=1)
def describe_api() -> dict[str, Any]:
    """Return the description as a plain object."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "shortlist", "version": __version__},
        "paths": {
            **_shared_paths(), **_deciding_paths(), **_reviewing_paths(), **_managing_paths()
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


def openapi_route() -> Route:
    """Return the route of the description."""

    async def openapi(request: Request) -> Response:
        return Response(json.dumps(describe_api()), media_type="application/json")

    return Route("/openapi.json", openapi, methods=["GET"])
