"""`POST /v1/queues/{queue}/decisions`: the one path that must be fast.

It speaks to the server directly (ASGI), without objects for requests and responses.
"""

from __future__ import annotations

import asyncio
import time
from hashlib import blake2b
from typing import Any

import msgspec

from ._problems import Problem, body_of
from ._service import Service, setter
from ._waiting import Failure, Ticket, Waiting

__all__ = ["check_json", "decide", "read_body"]

_ENCODER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder()
_LONGEST_ID = 200
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
_SLOWEST_BODY = 10.0  # seconds


async def decide(service: Service, queue: str, scope: Any, receive: Any, send: Any) -> int:
    """Answer one case, or a list of cases; return the status."""
    key = service.admit(scope, "decide", queue)
    decider = service.decider(queue)
    idempotency = _check_headers(scope)
    body = await read_body(scope, receive, service.config.most_bytes)
    content = _decoded(body)
    alone = not isinstance(content, list)
    cases = [content] if alone else content
    _check(cases, service.config.most_cases, alone=alone)
    future = service.new_future()
    ticket = Ticket(len(cases), setter(future))
    key_id = None if key is None else key.id
    deadline = time.monotonic() + service.config.patience
    waiting = [
        _waiting(fields, decider.id_fields, key_id, ticket, place, deadline)
        for place, fields in enumerate(cases)
    ]
    if idempotency is not None:
        _check_idempotency(idempotency, waiting, alone=alone)
    if waiting:
        if not decider.submit(waiting):
            raise Problem(503, "unavailable", "Too many cases are waiting.")
        answers = await future
    else:
        answers = []
    return await _send(send, answers, alone=alone)


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


def _decoded(body: bytes) -> Any:
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "invalid-json", f"The body is not JSON: {error}") from None


def _check_headers(scope: Any) -> bytes | None:
    """Check that JSON is sent; return the Idempotency-Key, if there is one."""
    key = None
    for name, value in scope["headers"]:
        if name == b"content-type":
            check_json(value)
        elif name == b"idempotency-key":
            key = value
    return key


def check_json(kind: bytes) -> None:
    """Raise a problem unless a Content-Type is that of JSON."""
    if (
        kind != b"application/json"
        and kind.partition(b";")[0].strip().lower() != b"application/json"
    ):
        raise Problem(415, "wrong-type", "Send JSON, with Content-Type: application/json.")


def _check(cases: list[Any], most: int, *, alone: bool) -> None:
    if len(cases) > most:
        raise Problem(413, "too-large", f"A request may have {most:,} cases; got {len(cases):,}.")
    for place, fields in enumerate(cases):
        if not isinstance(fields, dict):
            where = "The body" if alone else f"Entry {place} of the list"
            raise Problem(
                400, "invalid-json", f"{where} must be an object with the columns of a case."
            )


def _waiting(
    fields: dict[str, Any],
    names: tuple[str, ...],
    key: str | None,
    ticket: Ticket,
    place: int,
    deadline: float,
) -> Waiting:
    id = None
    for name in names:
        if name in fields:
            id = fields[name]
            break
    case = str(id) if type(id) is int else id
    if not isinstance(case, str) or not 0 < len(case) <= _LONGEST_ID or not case.isprintable():
        raise Problem(
            422,
            "invalid-case",
            f"A case needs an id in the field {names[0] if names else 'id'!r}: a text of up to "
            f"{_LONGEST_ID} printable characters, or a whole number; got {id!r:.80}.",
        )
    digest = blake2b(_SORTED.encode(fields), digest_size=16).digest()
    return Waiting(case, digest, fields, key, ticket, place, deadline)


def _check_idempotency(key: bytes, waiting: list[Waiting], *, alone: bool) -> None:
    """Compare with the id of the case, in either of the encodings that programs use."""
    given = key.strip().strip(b'"')
    id = waiting[0].case_id if alone else None
    if id is None or (given.decode("latin-1") != id and given != id.encode()):
        raise Problem(
            422,
            "idempotency-key",
            "The id of a case is its key. Leave the Idempotency-Key out, or send the id.",
        )


async def _send(send: Any, answers: list[Any], *, alone: bool) -> int:
    for answer in answers:
        if type(answer) is Failure and (alone or answer.status == 503):
            raise Problem(answer.status, answer.kind, answer.detail)
    if alone:
        content = _ENCODER.encode(answers[0])
    else:
        content = _ENCODER.encode([_one(answer) for answer in answers])
    length = (b"content-length", str(len(content)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*_JSON, length]})
    await send({"type": "http.response.body", "body": content})
    return 200


def _one(answer: Any) -> Any:
    if type(answer) is Failure:
        return {"error": body_of(answer.status, answer.kind, answer.detail)}
    return answer
