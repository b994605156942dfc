"""What waits for an answer, how it is scored, and the answers."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from ._models import LoadedModel, ModelCache
from ._replica import Arrival, drawn_of, reason_of
from ._requests import Problem
from .store import Entry, PromiseError, Store, StoreError

__all__ = ["Answer", "Case", "Change", "Scorer", "Ticket", "Waiting", "answer_of"]

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


class Ticket:
    """A request: its answers, in order, until when they can wait, and the future for them."""

    __slots__ = ("answers", "deadline", "future", "left")

    def __init__(self, size: int, deadline: float, future: Any = None) -> None:
        self.answers: list[Any] = [None] * size
        self.left, self.deadline, self.future = size, deadline, future


class Waiting:
    """What waits for the answer in a place of a ticket."""

    __slots__ = ("place", "ticket")

    def __init__(self, ticket: Ticket, place: int = 0) -> None:
        self.ticket, self.place = ticket, place


class Change(Waiting):
    """A change of the capacity or of the model that waits for its place in the log."""

    __slots__ = ("body", "key_id", "kind")

    def __init__(self, ticket: Ticket, kind: int, body: dict[str, Any], key_id: str | None) -> None:
        super().__init__(ticket)
        self.kind, self.body, self.key_id = kind, body, key_id


class Case(Waiting):
    """A case that waits for its decision."""

    __slots__ = ("case_id", "digest", "effort", "fields", "key_id", "model", "score")

    def __init__(
        self,
        ticket: Ticket,
        place: int,
        case_id: str,
        digest: bytes,
        fields: dict[str, Any],
        key_id: str | None,
    ) -> None:
        super().__init__(ticket, place)
        self.case_id, self.digest, self.fields, self.key_id = case_id, digest, fields, key_id
        self.model, self.score = 0, 0.0
        self.effort: float | None = None

    def arrival(self, at: float) -> Arrival:
        """Return what is decided about the case, and kept of it."""
        return Arrival(
            self.score, self.case_id, at, self.effort, self.digest, self.key_id, self.fields
        )


class Scorer:
    """Scores the cases of one queue."""

    def __init__(self, models: ModelCache, store: Store) -> None:
        self._models, self._store = models, store
        self._was_quick = False

    def is_quick(self, model: int) -> bool:
        """Whether a model is loaded, and has scored the last batch within a few milliseconds.

        Such models score when the lock has been taken, all cases at once; other cases would wait
        for slower ones.
        """
        return self._was_quick and model in self._models

    def score(self, batch: list[Case], model: int) -> list[tuple[Case, Problem]]:
        """Give cases the scores of a model; return those that have none, and why."""
        stale = [case for case in batch if case.model != model]
        if not stale:
            return []
        started = time.monotonic()
        try:
            failed = _score(self._models.get(model, self._store), stale)
        except (ValueError, StoreError, PromiseError, ImportError) as error:
            failed = [(case, Problem(503, "no-model", str(error))) for case in stale]
        self._was_quick = time.monotonic() - started < _QUICK
        return failed


def _score(model: LoadedModel, cases: list[Case]) -> list[tuple[Case, Problem]]:
    failed = []
    items = model.scored([model.read(case.fields) for case in cases])
    for case, item in zip(cases, items, strict=True):
        if item.error is None:
            case.score, case.model, case.effort = item.score, model.id, item.effort
        else:
            failed.append((case, Problem(422, "invalid-case", item.error)))
    return failed


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
