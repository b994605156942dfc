"""What waits for an answer, how it is scored, and the answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from ._models import ModelCache
from ._replica import drawn_of, reason_of
from .store import Entry, Group, PromiseError, StoreError

__all__ = [
    "Answer",
    "Change",
    "Failure",
    "Scorer",
    "Ticket",
    "Waiting",
    "answer_all",
    "answer_of",
    "sort_out",
]

_QUICK = 0.005  # seconds


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


class Scorer:
    """Scores the cases of one queue.

    Parameters
    ----------
    models : ModelCache
        The models.

    Attributes
    ----------
    is_quick : bool
        Whether the last batch was scored within a few milliseconds. Such models score when the lock
        has been taken, all cases at once; other cases would wait for slower ones.
    """

    def __init__(self, models: ModelCache) -> None:
        self._models = models
        self.is_quick = False

    def score(self, batch: list[Waiting], model: int, finished: list[Ticket]) -> list[Waiting]:
        """Return the cases that have a score of a model; others are told what is wrong."""
        stale = [case for case in batch if case.model != model]
        if not stale:
            return batch
        started = time.monotonic()
        failed = self._score_stale(stale, model, finished)
        self.is_quick = time.monotonic() - started < _QUICK
        return batch if not failed else [case for case in batch if case.model == model]

    def _score_stale(self, stale: list[Waiting], model: int, finished: list[Ticket]) -> bool:
        """Score cases; return whether one of them has no score."""
        try:
            loaded = self._models.get(model)
        except (ValueError, StoreError, PromiseError, ImportError) as error:
            for case in stale:
                case.answer(Failure(503, "no-model", str(error)), finished)
            return True
        valid = []
        for case in stale:
            item = loaded.read(case.fields)
            if item.error is None:
                case.effort = item.effort
                valid.append((case, item))
            else:
                case.answer(Failure(422, "invalid-case", item.error), finished)
        scored = _score_valid(loaded, valid, finished)
        return scored < len(stale)


def _score_valid(model: Any, valid: list[tuple[Waiting, Any]], finished: list[Ticket]) -> int:
    """Score valid cases; return how many have a score."""
    try:
        scores = model.score([item for _, item in valid]) if valid else []
    except Exception as error:
        if len(valid) == 1:
            detail = " ".join(str(error).split()) or type(error).__name__
            valid[0][0].answer(Failure(422, "invalid-case", detail), finished)
            return 0
        # One case may be at fault: find it.
        return sum(_score_valid(model, [each], finished) for each in valid)
    for (case, _), score in zip(valid, scores, strict=True):
        case.score, case.model = float(score), model.id
    return len(valid)


def answer_of(entry: Entry, *, repeated: bool) -> Answer:
    """Return the answer that an entry of the log records."""
    assert entry.score is not None
    assert entry.threshold is not None
    assert entry.code is not None
    finite = abs(entry.threshold) != float("inf")
    return Answer(
        str(entry.case_id), entry.slot is not None, entry.score,
        entry.threshold if finite else None, reason_of(entry.code), repeated, entry.at,
        entry.model or 0, entry.effort, *(() if entry.inclusion is None else drawn_of(entry)),
    )  # fmt: skip


def answer_all(
    group: Group,
    fresh: list[Waiting],
    repeats: list[Waiting],
    finished: list[Ticket],
) -> None:
    """Answer what a group has decided, after its commit."""
    decided = group.entries[len(group.entries) - len(fresh) :]  # changes come before cases
    for case, entry in zip(fresh, decided, strict=True):
        case.answer(answer_of(entry, repeated=False), finished)
    known = {entry.case_id: entry for entry in decided} if repeats else {}
    for case in repeats:
        _repeat(case, known[case.case_id], finished)


def sort_out(
    batch: list[Waiting], known: dict[str, Entry], finished: list[Ticket]
) -> tuple[list[Waiting], list[Waiting]]:
    """Answer known cases; return new ones, and repetitions of new ones."""
    fresh: dict[str, Waiting] = {}
    repeats = []
    for case in batch:
        entry = known.get(case.case_id)
        if entry is not None:
            _repeat(case, entry, finished)
        elif case.case_id in fresh:
            repeats.append(case)
        else:
            fresh[case.case_id] = case
    return list(fresh.values()), repeats


def _repeat(case: Waiting, entry: Entry, finished: list[Ticket]) -> None:
    if entry.digest == case.digest:
        case.answer(answer_of(entry, repeated=True), finished)
    else:
        detail = f"The case {case.case_id!r:.100} was decided with other columns."
        case.answer(Failure(422, "conflict", detail), finished)
