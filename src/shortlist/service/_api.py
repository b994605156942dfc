"""What the API takes and gives: its types, its operations, and their description in OpenAPI 3.1."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from .. import __version__
from ._requests import TITLES
from ._waiting import Answer

__all__ = [
    "OPERATIONS",
    "CapacityBody",
    "Claim",
    "ClaimBody",
    "InferBody",
    "Listed",
    "Listing",
    "Operation",
    "Outcome",
    "OutcomeBody",
    "Queue",
    "describe_api",
]

_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
_BASE = "/v1/queues/{queue}"
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
    "503": "No decision can be made now; try again after Retry-After seconds",
}

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=_PRINTABLE)]
CaseId = Annotated[str, Meta(min_length=1, max_length=200, pattern=_PRINTABLE)]
Note = Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")]
Seq = Annotated[int, Meta(ge=0, le=1 << 53)]
Period = Annotated[int, Meta(ge=-1, le=1 << 53)]


# --- what is sent --------------------------------------------------------------------------------


class Case(Struct):
    """The id of a case (in the model's own id column, or `id`) and its columns."""

    id: Annotated[str, Meta(min_length=1, max_length=200)] | int | UnsetType = UNSET


class CapacityBody(Struct, forbid_unknown_fields=True):
    """A capacity, from now or from a moment on (seconds since 1970, or a text in ISO 8601).

    It is a number of flags, or an amount of effort for a queue that counts work.
    """

    count: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    effort: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    begins: float | Annotated[str, Meta(max_length=40)] | None = msgspec.field(
        name="from", default=None
    )


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


class InferInput(Struct):
    """One column of cases to score."""

    name: str
    data: list[Any]
    shape: list[int] | None = None
    datatype: str | None = None


class InferBody(Struct):
    """Columns of cases to score, in the form of the Open Inference Protocol."""

    inputs: list[InferInput]


class ListQuery(Struct):
    """Which part of the list of a period; -1 is the present one."""

    period: Period = -1
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 200
    skip: Seq = 0


class StatusQuery(Struct):
    """Wait until the log has an entry after this one."""

    after: Period = -1


class LogQuery(Struct):
    """Which part of the log."""

    after: Seq = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


# --- what is answered ----------------------------------------------------------------------------


class Problem(Struct):
    """Why there is no answer."""

    type: Literal[tuple(f"urn:shortlist:problem:{kind}" for kind in TITLES)]  # type: ignore[valid-type]
    title: str
    status: int
    detail: str


class Failed(Struct):
    """A case of a list that has no answer."""

    error: Problem


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


class Place(Struct):
    """Where a change stands in the log, and its moment."""

    seq: int
    at: float


class Observed(Place):
    """How many cases were observed."""

    observed: int


class ModelChange(Place):
    """The model from this place on."""

    model: int


class CapacityChange(Place):
    """The capacity, and when it begins."""

    begins: float | None = msgspec.field(name="from")
    count: int | UnsetType = UNSET
    effort: float | UnsetType = UNSET


class Log(Struct):
    """Entries of the log."""

    queue: str
    entries: list[dict[str, Any]]


class Scores(Struct):
    """Scores, in the form of the Open Inference Protocol."""

    model_name: str
    outputs: list[dict[str, Any]]


# --- the operations ------------------------------------------------------------------------------


class Operation(NamedTuple):
    """An operation: its answer is a type, or a description in JSON Schema."""

    name: str
    method: str
    path: str
    summary: str
    answer: Any = dict[str, Any]
    body: Any = None
    query: Any = None
    status: tuple[str, ...] = ("200",)
    open_to_all: bool = False


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_ANSWERS = {
    "anyOf": [
        _ref("Answer"),
        {"type": "array", "items": {"anyOf": [_ref("Answer"), _ref("Failed")]}},
    ]
}
_FILE = {"application/octet-stream": {"schema": {"type": "string", "minLength": 1}}}
Cases = Annotated[list[Case], Meta(max_length=1_024)]
SomeCases = Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1_024)]

#: Every operation; `on_<name>` of the handlers answers it.
OPERATIONS = (
    Operation("queues", "GET", "/v1/queues", "All queues", Queues),
    Operation("decide", "POST", f"{_BASE}/decisions",
              "Decide about a case, or about a list of up to 1,024", _ANSWERS, Case | Cases),
    Operation("case", "GET", f"{_BASE}/decisions/{{case}}", "The decision about a case"),
    Operation("list", "GET", f"{_BASE}/list",
              "The flagged cases of a period, the highest score first", Listing, query=ListQuery),
    Operation("status", "GET", f"{_BASE}/status", "The numbers of a queue", Queue,
              query=StatusQuery),
    Operation("log", "GET", f"{_BASE}/log", "Entries of the log", Log, query=LogQuery),
    Operation("claim", "POST", f"{_BASE}/claims", "Claim a flagged case for some time", Claim,
              ClaimBody, status=("201",)),
    Operation("outcome", "POST", f"{_BASE}/outcomes", "Append what a reviewer found", Outcome,
              OutcomeBody, status=("200", "201")),
    Operation("capacity", "PUT", f"{_BASE}/capacity",
              "Change the capacity, now or from a moment on", CapacityChange, CapacityBody),
    Operation("observe", "POST", f"{_BASE}/observations",
              "Learn from cases that are decided elsewhere", Observed, SomeCases),
    Operation("model", "POST", f"{_BASE}/model", "Switch to another model", ModelChange, _FILE),
    Operation("infer", "POST", "/v2/models/{queue}/infer",
              "Score cases without deciding (Open Inference Protocol)", Scores, InferBody),
    Operation("live", "GET", "/v2/health/live", "Whether the process answers", open_to_all=True),
    Operation("ready", "GET", "/v2/health/ready", "Whether every queue can be decided",
              open_to_all=True),
    Operation("metrics", "GET", "/metrics", "Metrics for Prometheus", str),
)  # fmt: skip


# --- their description ---------------------------------------------------------------------------


@lru_cache(maxsize=1)
def describe_api() -> dict[str, Any]:
    """Return the description as a plain object."""
    given = [kind for each in OPERATIONS for kind in (each.answer, each.body)]
    kinds = [Answer, Failed, *(kind for kind in given if kind and not isinstance(kind, dict))]
    schemas, components = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(map(str, kinds), schemas, strict=True))
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "shortlist", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation, schema_of: dict[str, Any]) -> dict[str, Any]:
    path = [name for name in ("queue", "case") if f"{{{name}}}" in operation.path]
    one = {"type": "string", "minLength": 1, "maxLength": 200}
    media = "text/plain" if operation.answer is str else "application/json"
    answer = {media: {"schema": schema_of.get(str(operation.answer), operation.answer)}}
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    described = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": one} for name in path),
            *({"name": n, "in": "query", "schema": s} for n, s in _fields(operation.query)),
        ],
        "responses": {
            **{s: {"description": operation.summary, "content": answer} for s in operation.status},
            **{s: {"description": words, "content": problem} for s, words in _PROBLEMS.items()},
        },
        "security": [] if operation.open_to_all else [{}, {"key": []}],
    }
    if operation.body is not None:
        schema = schema_of.get(str(operation.body))
        content = operation.body if schema is None else {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _fields(query: Any) -> Any:
    """Return the parameters of a query, and their schemas."""
    if query is None:
        return ()
    [described], components = msgspec.json.schema_components([query], ref_template="{name}")
    return components[described["$ref"]]["properties"].items()
