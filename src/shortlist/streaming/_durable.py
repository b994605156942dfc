"""Decisions that are on disk before anybody hears of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..exceptions import StateFileError
from ..online import REASONS, Controller, DecisionBatch
from ..online._answers import check_id
from ..online._time import check_times
from ._state_file import StateFile, locked

__all__ = ["DurableController"]

_FORMAT, _VERSION = "shortlist stream", 1
_COMPACT_AFTER = 4 << 20
_MOST_SHOWN = 200


class DurableController:
    """A controller with a state file: at most the capacity is ever told, whatever happens.

    What goes into the controller is written to the file before the answers are returned. After a
    crash the file is replayed, so that every answer that may have been told is counted; one that
    was written and not told is lost with its slot, or told when its id comes again.

    Parameters
    ----------
    path : Path
        The state file. Another process cannot use it at the same time.
    make : callable
        Returns a new controller, if there is no state yet.
    identity : dict
        What the stream is: plain JSON that must be the same in every run.
    adopt : callable, default=None
        Takes a controller whose identity is another one over to this one; called with the
        controller and the old identity. None makes another identity an error.
    sync : bool, default=True
        Wait for the disk. Without, decisions survive the end of the process, but not of the power.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import BudgetController
    >>> budget = lambda: BudgetController(
    ...     Capacity.count(2, per=100), calibration_scores=np.arange(100)
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = Path(folder) / "state"
    ...     with DurableController(state, budget, identity={"model": "a"}) as durable:
    ...         first = durable.decide([500.0, 500.0]).flagged.tolist()
    ...     with DurableController(state, budget, identity={"model": "a"}) as durable:
    ...         then = durable.decide([500.0, 500.0]).flagged.tolist()
    >>> first, then
    ([True, True], [False, False])
    """

    def __init__(
        self,
        path: Path,
        make: Callable[[], Controller],
        *,
        identity: dict[str, Any],
        adopt: Callable[[Controller, dict[str, Any]], None] | None = None,
        sync: bool = True,
    ) -> None:
        self._file = StateFile(path, sync=sync)
        self._make, self._adopt = make, adopt
        self._identity = json.loads(json.dumps(identity))
        self._stack = contextlib.ExitStack()
        self._failed = False
        self.n_before = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(locked(self._file.path))
            self._open()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            # A tidy end leaves a whole state; after an error, what was appended counts.
            if kind is None and self._file.n_appended and not self._failed:
                with contextlib.suppress(OSError):
                    self.save()
            self._file.close()

    @property
    def controller(self) -> Controller:
        """The controller inside. Only ask it: what it decides here is not written down."""
        return self._controller

    def decide(
        self,
        scores: Any,
        *,
        at: NDArray[np.float64] | None = None,
        ids: list[str | None] | None = None,
    ) -> DecisionBatch:
        """Decide about items in order, and return when the decisions are safe.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores.
        at : array of shape (n_items,), default=None
            Moments, for a controller with a period.
        ids : list, default=None
            Their ids; None for an item without one.

        Returns
        -------
        DecisionBatch
        """
        items = _checked_items(scores, at, ids)
        if items.at is None and self._controller._timed:
            raise ValueError("at is needed: this controller keeps a number per period of time.")
        if self._failed:
            raise StateFileError(
                f"{self._file.path} could not be written to before. Open it again: what was told "
                "until then is kept."
            )
        self._failed = True  # until all of it is on the disk
        decided = _decide(self._controller, items)
        self._file.append(_record(items, decided))
        if self._file.n_appended > _COMPACT_AFTER:
            self.save()
        self._failed = False
        return decided

    def save(self) -> None:
        """Put a whole state in place of all that was appended."""
        self._file.replace(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "shortlist": __version__,
                "identity": self._identity,
                "state": self._controller.state(),
            }
        )

    def _open(self) -> None:
        said = self._file.read()
        if not said:
            self._controller = self._make()
            self.save()
            return
        old = self._checked(said[0])
        self._controller = Controller.from_state(said[0]["state"])
        self._replay(said[1:])
        self.n_before = self._controller._n_items
        if old != self._identity:
            self._take_over(old)

    def _checked(self, head: Any) -> dict[str, Any]:
        if not isinstance(head, dict) or head.get("format") != _FORMAT:
            raise StateFileError(f"{self._file.path} is not a state file of shortlist stream.")
        if head.get("version") != _VERSION:
            raise StateFileError(
                f"{self._file.path} has version {head.get('version')}, written by shortlist "
                f"{head.get('shortlist')}; this is shortlist {__version__}, which reads version "
                f"{_VERSION}. Use that version, or another --state file from the next period on."
            )
        return dict(head["identity"])

    def _replay(self, records: list[dict[str, Any]]) -> None:
        """Decide again, and all at once, what was decided after the state was saved."""
        if not records:
            return
        again = _decide(self._controller, _items_of(records))
        if _flags(again) != "".join(record["flags"] for record in records):
            raise StateFileError(
                f"{self._file.path} was left by a version of shortlist that decided otherwise, so "
                "that it cannot be gone on from safely. Use that version once, which leaves a "
                "whole state at its end, or another --state file from the next period on."
            )

    def _take_over(self, old: dict[str, Any]) -> None:
        if self._adopt is None:
            raise StateFileError(
                f"{self._file.path} belongs to another stream: {_difference(old, self._identity)}. "
                "Use the options it was started with or another --state file, or go over with "
                "--adopt."
            )
        self._adopt(self._controller, old)
        self.save()


class _Items(NamedTuple):
    """Checked items: scores, moments if they matter, and an id or None for each."""

    scores: NDArray[np.float64]
    at: NDArray[np.float64] | None
    ids: list[Any]


def _checked_items(scores: Any, at: Any, ids: Any) -> _Items:
    """Check everything before anything is decided, so that an error changes nothing."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("scores must be finite numbers in one dimension. Nothing was decided.")
    names = [None] * values.size if ids is None else list(ids)
    if len(names) != values.size:
        raise ValueError(f"ids must be as many as scores, {values.size}; got {len(names)}.")
    moments = None if at is None else check_times(at, values.size)
    return _Items(values, moments, [None if id is None else check_id(id) for id in names])


def _record(items: _Items, decided: DecisionBatch) -> dict[str, Any]:
    return {
        "scores": items.scores.tolist(),
        "at": None if items.at is None else items.at.tolist(),
        "ids": None if all(id is None for id in items.ids) else items.ids,
        "flags": _flags(decided),
    }


def _items_of(records: list[dict[str, Any]]) -> _Items:
    scores = np.array([score for record in records for score in record["scores"]])
    timed = records[0]["at"] is not None
    at = np.array([moment for record in records for moment in record["at"]]) if timed else None
    ids = [id for r in records for id in (r["ids"] or [None] * len(r["scores"]))]
    return _Items(scores, at, ids)


def _decide(controller: Controller, items: _Items) -> DecisionBatch:
    """Decide in order, items with and without ids in turn: a controller takes all or none."""
    named = np.array([id is not None for id in items.ids], dtype=bool)
    borders = [0, *(np.flatnonzero(np.diff(named)) + 1).tolist(), named.size]
    parts = [_decide_part(controller, items, *part) for part in pairwise(borders)]
    return DecisionBatch(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _decide_part(controller: Controller, items: _Items, start: int, stop: int) -> DecisionBatch:
    part = slice(start, stop)
    at = None if items.at is None else items.at[part]
    if stop - start != 1:
        ids: Any = items.ids[part] if stop > start and items.ids[start] is not None else None
        return controller.decide_many(items.scores[part], at=at, ids=ids)
    # One item by itself is quicker alone: a bundle looks at all ids that are remembered.
    moment = None if at is None else float(at[0])
    one = controller.decide(float(items.scores[start]), at=moment, id=items.ids[start])
    code = REASONS.index(one.reason)
    return DecisionBatch(
        np.array([one.flag]), np.array([one.threshold]), np.array([code], dtype=np.int8)
    )


def _flags(decided: DecisionBatch) -> str:
    return "".join("01"[flag] for flag in decided.flagged.tolist())


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = [f"{name} was {old.get(name)!r:.40} and is {new.get(name)!r:.40}" for name in differing]
    return "; ".join(told)[:_MOST_SHOWN]
