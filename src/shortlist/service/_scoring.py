"""Scoring what waits, in batches; a case that cannot be scored is told why."""

from __future__ import annotations

import time
from typing import Any

from ._models import ModelShelf
from ._store import PromiseError, StoreError
from ._waiting import Failure, Ticket, Waiting

__all__ = ["Scorer"]

_QUICK = 0.005  # seconds


class Scorer:
    """Scores the cases of one queue.

    Parameters
    ----------
    shelf : ModelShelf
        The models.

    Attributes
    ----------
    is_quick : bool
        Whether the last batch was scored within a few milliseconds. Such models score when the lock
        has been taken, all cases at once; other cases would wait for slower ones.
    """

    def __init__(self, shelf: ModelShelf) -> None:
        self._shelf = shelf
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
            loaded = self._shelf.get(model)
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
