"""What the API takes and gives: its types, its routes, and their description in OpenAPI 3.1."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from .. import __version__
from ._requests import Kind
from ._waiting import Answer

__all__ = [
    "Answers",
    "CapacityBody",
    "Cases",
    "Changed",
    "Claim",
    "ClaimBody",
    "ListQuery",
    "Listed",
    "Listing",
    "Log",
    "LogQuery",
    "ModelQuery",
    "Outcome",
    "OutcomeBody",
    "Queue",
    "Queues",
    "Route",
    "SomeCases",
    "describe_api",
]

_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
_REF = "#/components/schemas/{name}"

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=_PRINTABLE)]
CaseId = Annotated[str, Meta(min_length=1, max_length=200, pattern=_PRINTABLE)]
Note = Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")]
Seq = Annotated[int, Meta(ge=0, le=1 << 53)]
Moment = Annotated[float, Meta(ge=0, lt=1e11)] | Annotated[datetime, Meta(tz=True)]


def _one_or_many(one: str, *many: str, **limits: int) -> Meta:
    """Describe an object or a list of objects, which are decoded and encoded as they are."""
    refs = [{"$ref": _REF.format(name=name)} for name in (one, *many)]
    several = {"type": "array", "items": {"anyOf": refs}, **limits}
    return Meta(extra_json_schema={"anyOf": [refs[0], several]})


# --- what is sent --------------------------------------------------------------------------------


class Case(Struct):
    """The id of a case (in the id column of the queue's first model, or `id`) and its columns."""

    id: Annotated[str, Meta(min_length=1, max_length=200)] | int | UnsetType = UNSET


Cases = Annotated[Any, _one_or_many("Case", maxItems=1_024)]
SomeCases = Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1_024)]


class CapacityBody(Struct, forbid_unknown_fields=True):
    """A capacity, from now or from a moment on: a number of flags, or an amount of effort.

    A moment is given in seconds since 1970, or in ISO 8601 with a time zone.
    """

    count: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    effort: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    begins: Moment | None = msgspec.field(name="from", default=None)


class ClaimBody(Struct, forbid_unknown_fields=True):
    """A claim of a case, for some time."""

    id: CaseId
    reviewer: Name
    seconds: Annotated[float, Meta(ge=1, le=86_400)] = 1_800


class OutcomeBody(Struct, forbid_unknown_fields=True):
    """What a reviewer found: whether the case was one of the rare ones."""

    id: CaseId
    rare: bool
    reviewer: Name
    note: Note | None = None


class ListQuery(Struct):
    """Which part of the list of a period; -1 is the present one."""

    period: Annotated[int, Meta(ge=-1, le=1 << 53)] = -1
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 200
    skip: Seq = 0


class ModelQuery(Struct):
    """Whether a model is only compared with the queue."""

    dry_run: bool = False


class LogQuery(Struct):
    """Which part of the log."""

    after: Seq = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


# --- what is answered ----------------------------------------------------------------------------


class ProblemDetails(Struct):
    """Why there is no answer."""

    type: Literal[tuple(f"urn:shortlist:problem:{kind}" for kind in get_args(Kind))]  # type: ignore[valid-type]
    title: str
    status: int
    detail: str


class Failed(Struct):
    """A case of a list that has no answer."""

    error: ProblemDetails


Answers = Annotated[Any, _one_or_many("Answer", "Failed")]


class Queue(Struct):
    """A queue and its numbers in the present period."""

    name: str
    capacity: float
    unit: str
    period: float | str | None
    number: int
    starts: float
    ends: float
    used: float
    flags: int
    remaining: float
    seen: int
    total: str | None
    seq: int


class Queues(Struct):
    """All queues."""

    queues: list[Queue]


class Listed(Struct):
    """A flagged case."""

    id: str
    score: float
    at: float
    slot: int
    probe: bool
    reasons: list[dict[str, Any]]
    claimed_by: str | None
    claim_expires: float | None
    outcome: bool | None


class Listing(Struct):
    """Flagged cases of a period, and how many there are."""

    queue: str
    period: int
    flagged: int
    cases: list[Listed]


class Claim(Struct):
    """A case, whose it is, and until when."""

    id: str
    reviewer: str
    expires: float


class Outcome(Struct):
    """Where an outcome stands among all of its queue."""

    id: str
    number: int
    repeated: bool


class Changed(Struct):
    """A change that all workers follow: its place in the log, its moment, and what it was.

    Of a dry run, the place is that of the latest entry.
    """

    seq: int
    at: float
    count: int | UnsetType = UNSET
    effort: float | UnsetType = UNSET
    begins: float | UnsetType = msgspec.field(name="from", default=UNSET)
    model: int | UnsetType = UNSET
    observed: int | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET


class Log(Struct):
    """Entries of the log."""

    queue: str
    entries: list[dict[str, Any]]


# --- routes --------------------------------------------------------------------------------------


class Route:
    """A path and who answers it: `handler(call, body, query)`, with those that it takes.

    Its annotations say what is read and what is answered, and its docstring what it does. A
    coroutine asks deciders; a function asks the database, in its thread.
    """

    def __init__(
        self, name: str, method: str, path: str, handler: Callable[..., Any], is_open: bool = False
    ) -> None:
        self.name, self.method, self.path, self.handler = name, method, path, handler
        self.is_open, self.is_async = is_open, inspect.iscoroutinefunction(handler)
        hints = get_type_hints(handler, include_extras=True)
        self.body, self.query, self.answer = map(hints.get, ("body", "query", "return"))
        self.content_type = f"application/{'octet-stream' if self.body is bytes else 'json'}"
        self.decoder = msgspec.json.Decoder(self.body or Any)
        places = path.replace("{queue}", "(?P<queue>[^/]+)").replace("{case}", "(?P<case>.+)")
        self.match = re.compile(places).fullmatch


# --- their description ---------------------------------------------------------------------------


def describe_api(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Return the description of routes as a plain object."""
    used = [kind for route in routes for kind in (route.body, route.query, route.answer)]
    kinds = [Answer, Case, Failed, *filter(None, used)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schema_of = dict(zip(map(str, kinds), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        fields = components[route.query.__name__]["properties"] if route.query else {}
        described = _described(route, fields, schema_of)
        paths.setdefault(route.path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "shortlist", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(route: Route, fields: dict[str, Any], schema_of: dict[str, Any]) -> dict[str, Any]:
    one = {"type": "string", "minLength": 1, "maxLength": 200}
    problem = {"$ref": _REF.format(name="ProblemDetails")}
    answer = "text/plain" if route.answer is str else "application/json"
    described = {
        "operationId": route.name,
        "summary": str(route.handler.__doc__).splitlines()[0],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": one}
            for name in re.findall(r"{(\w+)}", route.path)
        ]
        + [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()],
        "responses": {
            "200": {
                "description": "The answer",
                "content": {answer: {"schema": schema_of[str(route.answer)]}},
            },
            "default": {
                "description": "A problem: why there is no answer",
                "content": {"application/problem+json": {"schema": problem}},
            },
        },
        "security": [] if route.is_open else [{}, {"key": []}],
    }
    if route.body is not None:
        file = {"type": "string", "minLength": 1}
        schema = file if route.body is bytes else schema_of[str(route.body)]
        content = {route.content_type: {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described
