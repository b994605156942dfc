"""What waits for an answer, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["Answer", "Change", "Failure", "Ticket", "Waiting"]


class Answer(msgspec.Struct, omit_defaults=True):
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


class Failure(msgspec.Struct):
    """Why a case has no answer: the status and the name of the problem, and a sentence."""

    status: int
    kind: str
    detail: str


class Ticket:
    """A request: its answers, in order, and whom to tell when all are there."""

    __slots__ = ("answers", "done", "left")

    def __init__(self, size: int, done: Callable[[list[Any]], None]) -> None:
        self.answers: list[Any] = [None] * size
        self.left, self.done = size, done


class Waiting:
    """A case that waits for its answer."""

    __slots__ = (
        "case_id",
        "deadline",
        "digest",
        "effort",
        "fields",
        "key_id",
        "model",
        "place",
        "score",
        "ticket",
    )

    def __init__(
        self, case_id: str, digest: bytes, fields: dict[str, Any], key_id: str | None, ticket: Any,
        place: int, deadline: float,
    ) -> None:  # fmt: skip
        self.case_id, self.digest, self.fields, self.key_id = case_id, digest, fields, key_id
        self.ticket, self.place, self.deadline = ticket, place, deadline
        self.model, self.score = 0, 0.0
        self.effort: float | None = None

    def answer(self, answer: Any, finished: list[Ticket]) -> None:
        """Give the answer, once; the ticket is finished with its last one."""
        ticket = self.ticket
        if ticket.answers[self.place] is None:
            ticket.answers[self.place] = answer
            ticket.left -= 1
            if not ticket.left:
                finished.append(ticket)


class Change:
    """A change of the capacity or of the model that waits for its place in the log."""

    def __init__(
        self, kind: int, body: dict[str, Any], key_id: str | None, ticket: Ticket, deadline: float
    ) -> None:
        self.kind, self.body, self.key_id = kind, body, key_id
        self.ticket, self.deadline = ticket, deadline

    def answer(self, answer: Any, finished: list[Ticket]) -> None:
        """Give the answer."""
        if self.ticket.left:
            self.ticket.answers[0], self.ticket.left = answer, 0
            finished.append(self.ticket)
