"""What all routes of the API share: answers, problems, and the path and handler of each.

These types are described in `openapi.json`, which `tools/openapi.py` writes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Seq = Annotated[int, Meta(ge=0, le=1 << 53)]
_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=_PRINTABLE)]
CaseId = Annotated[str, Meta(min_length=1, max_length=200, pattern=_PRINTABLE)]
Moment = Annotated[float, Meta(ge=0, lt=1e11)] | Annotated[datetime, Meta(tz=True)]
REF = "#/components/schemas/{name}"


def _one_or_many(one: str, *many: str, **limits: int) -> Meta:
    """Describe an object or a list of objects, which are decoded and encoded as they are."""
    refs = [{"$ref": REF.format(name=name)} for name in (one, *many)]
    several = {"type": "array", "items": {"anyOf": refs}, **limits}
    return Meta(extra_json_schema={"anyOf": [refs[0], several]})


# --- what is sent --------------------------------------------------------------------------------


class Case(Struct):
    """The id of a case (in the id column of the queue's first model, or `id`) and its columns."""

    id: Annotated[str, Meta(min_length=1, max_length=200)] | int | UnsetType = UNSET


Cases = Annotated[Any, _one_or_many("Case", maxItems=1_024)]


# --- what is answered ----------------------------------------------------------------------------

#: Every kind of problem; its type is ``urn:shortlist:problem:<kind>``.
Kind = Literal[
    "invalid-json", "invalid-case", "invalid-value", "conflict", "idempotency-key", "no-key",
    "forbidden", "foreign-site", "not-found", "wrong-method", "not-flagged", "claimed",
    "not-held", "closed", "too-large", "wrong-type", "too-slow", "unavailable", "clock", "no-model",
    "error",
]  # fmt: skip
_HEADERS = {
    408: {"retry-after": "1", "connection": "close"},  # the rest may still come
    503: {"retry-after": "1"},
    401: {"www-authenticate": "Bearer"},
}


class Problem(Exception):
    """Why a request, or one of its cases, has no answer."""

    def __init__(
        self, status: int, kind: Kind, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = headers or _HEADERS.get(status, {})

    @property
    def details(self) -> ProblemDetails:
        """What is sent about the problem."""
        kind, title = f"urn:shortlist:problem:{self.kind}", HTTPStatus(self.status).phrase
        return ProblemDetails(kind, title, self.status, self.detail)


def check_name(name: str) -> str:
    """Return the name of a person, or raise a problem."""
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-value", f"Not a valid name, {name!r:.100}: {error}") from None


class ProblemDetails(Struct):
    """Why there is no answer."""

    type: Literal[tuple(f"urn:shortlist:problem:{kind}" for kind in get_args(Kind))]  # type: ignore[valid-type]
    title: str
    status: int
    detail: str


class Answer(Struct, omit_defaults=True):
    """The answer to one case; the last fields only where efforts or probes are in use."""

    id: str
    flag: bool
    score: float
    threshold: float | None
    reason: str
    repeated: bool
    at: float
    model: int
    effort: float | None = None
    selected_by: str | None = None
    inclusion: float | None = None


class Failed(Struct):
    """A case of a list that has no answer."""

    error: ProblemDetails


Answers = Annotated[Any, _one_or_many("Answer", "Failed")]


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
        places = path.replace("{queue}", "(?P<queue>[^/]+)")
        places = re.sub("{(case|name)}", "(?P<case>.+)", places)
        self.match = re.compile(places).fullmatch
