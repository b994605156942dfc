"""Decisions that are on disk before they are returned, in a file that no crash makes unusable.

The file holds a state and what was decided after it; see `_state_file` for what a reader of it can
tell. Opening it repeats these decisions.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from .. import __version__
from .._core.arrays import Floats
from .._core.plain_json import flattened
from .._core.timestamps import check_moments
from .._core.validation import check_id
from .._core.work import check_efforts
from ..exceptions import StateFileError
from ..online import Controller
from ..online.decisions import DecisionBatch, joined
from ._state_file import StateFile, lock_beside, old_version_message

__all__ = ["DurableController"]

_FORMAT, _VERSION = "shortlist stream", 3
_COMPACT_AFTER = 4 << 20  # bytes appended
_LONGEST_DIFFERENCE = 200  # characters of an error message


class DurableController:
    """A controller with a state file: whatever happens, it never returns more flags than allowed.

    Every item is written to the file before its decision is returned. After a crash the file is
    replayed. Therefore every decision that may have been returned counts. A decision that was
    written but not returned uses its slot all the same; if its id arrives again, it is returned.

    Parameters
    ----------
    path : Path
        The state file. Only one process can use it at a time.
    make : callable
        Returns a new controller; called if the file does not exist yet.
    identity : dict
        Describes the stream as plain JSON; it must be the same in every run.
    adopt : callable, default=None
        Called with the controller and the old identity if the file has another identity; it must
        adapt the controller. Without it, another identity raises an error.
    sync : bool, default=True
        Wait for the disk. Otherwise decisions survive a crash of the process, but perhaps not a
        power cut.

    Attributes
    ----------
    n_before : int
        How many items had been decided when the file was opened.
    n_dropped_bytes : int
        The length of a record that a crash had cut off, and that was dropped when the file was
        opened. Its decisions were not returned, unless the file was written without `sync`.

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
            stack.enter_context(lock_beside(self._file.path))
            stack.callback(self._file.close)
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
            # A normal exit saves the complete state. After an error, the appended records count.
            if kind is None and self._file.n_appended and not self._failed:
                with contextlib.suppress(OSError):
                    self.save()

    @property
    def n_dropped_bytes(self) -> int:
        """Bytes of a record that a crash had cut off, dropped when the file was opened."""
        return self._file.n_dropped

    @property
    def controller(self) -> Controller:
        """The controller inside. Use it for reading only: its own decisions are not written."""
        return self._controller

    def decide(
        self,
        scores: Any,
        *,
        at: Floats | None = None,
        ids: list[str | None] | None = None,
        efforts: Any = None,
    ) -> DecisionBatch:
        """Decide about items in order, and return once the decisions are on disk.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores.
        at : array of shape (n_items,), default=None
            Moments, for a controller with a period.
        ids : list, default=None
            Their ids, with None for an item without an id.
        efforts : array-like of shape (n_items,), default=None
            How much work each item takes, if the capacity is a ``Capacity.effort(...)``.

        Returns
        -------
        DecisionBatch
        """
        items = _check_items(scores, at, ids, efforts)
        if items.at is None and self._controller.is_timed:
            raise ValueError("at is required: this controller keeps a number per period of time.")
        if (items.efforts is not None) != self._controller.counts_work:
            needed = "needs" if self._controller.counts_work else "has no use for"
            raise ValueError(f"{self._controller!r} {needed} efforts. Nothing was decided.")
        if self._failed:
            raise StateFileError(
                f"An earlier write to {self._file.path} failed. Open it again: every decision "
                "returned so far is in it."
            )
        self._failed = True  # until everything is on disk
        decided = _decide(self._controller, items)
        self._file.append(_record(items, decided))
        if self._file.n_appended > _COMPACT_AFTER:
            self.save()
        self._failed = False
        return decided

    def save(self) -> None:
        """Replace the file by one complete state."""
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
        records = self._file.read()
        if not records:
            self._controller = self._make()
            self.save()
            return
        identity = self._check_head(records[0])
        self._controller = Controller.from_state(records[0]["state"])
        self._replay(records[1:])
        self.n_before = self._controller.n_items
        if identity != self._identity:
            self._adopt_from(identity)

    def _check_head(self, head: Any) -> dict[str, Any]:
        """Return the identity in the first record of the file."""
        if not isinstance(head, dict) or head.get("format") != _FORMAT:
            raise StateFileError(f"{self._file.path} is not a state file of shortlist stream.")
        if head.get("version") != _VERSION:
            old = head.get("version"), head.get("shortlist")
            raise StateFileError(old_version_message(self._file.path, *old))
        return dict(head["identity"])

    def _replay(self, records: list[dict[str, Any]]) -> None:
        """Repeat the decisions made after the state was saved, all at once."""
        if not records:
            return
        again = _decide(self._controller, _items_of(records))
        if _flags(again) != "".join(record["flags"] for record in records):
            raise StateFileError(
                f"{self._file.path} was written by a version of shortlist that decided "
                "differently. It cannot be resumed safely. Run that version once more, which saves "
                "a complete state when it ends, or start the next period with another --state file."
            )

    def _adopt_from(self, old: dict[str, Any]) -> None:
        if self._adopt is None:
            raise StateFileError(
                f"{self._file.path} belongs to another stream: {_difference(old, self._identity)}. "
                "Use the original options or another --state file, or continue with --adopt."
            )
        self._adopt(self._controller, old)
        self.save()


class _Items(NamedTuple):
    """Checked items: scores, moments and efforts if they are needed, and an id or None for each."""

    scores: Floats
    at: Floats | None
    ids: list[Any]
    efforts: Floats | None = None


def _check_items(scores: Any, at: Any, ids: Any, efforts: Any) -> _Items:
    """Check everything before the first decision. An error therefore changes nothing."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            "scores must be a one-dimensional array of finite numbers. Nothing was decided."
        )
    names = [None] * values.size if ids is None else list(ids)
    if len(names) != values.size:
        raise ValueError(
            f"ids must hold one id for each of the {values.size} scores; got {len(names)}."
        )
    moments = None if at is None else check_moments(at, values.size)
    named = [None if id is None else check_id(id) for id in names]
    return _Items(values, moments, named, check_efforts(efforts, values.size))


def _record(items: _Items, decided: DecisionBatch) -> dict[str, Any]:
    return {
        "scores": items.scores.tolist(),
        "at": None if items.at is None else items.at.tolist(),
        "ids": None if all(id is None for id in items.ids) else items.ids,
        "flags": _flags(decided),
        **({} if items.efforts is None else {"efforts": items.efforts.tolist()}),
    }


def _items_of(records: list[dict[str, Any]]) -> _Items:
    scores = np.array([score for record in records for score in record["scores"]])
    timed = records[0]["at"] is not None
    at = np.array([moment for record in records for moment in record["at"]]) if timed else None
    ids = [id for r in records for id in (r["ids"] or [None] * len(r["scores"]))]
    of_work = "efforts" in records[0]
    efforts = np.array([e for r in records for e in r["efforts"]]) if of_work else None
    return _Items(scores, at, ids, efforts)


def _decide(controller: Controller, items: _Items) -> DecisionBatch:
    """Decide in order, in parts with and without ids: a controller needs ids for all or none."""
    if len(items.ids) == 1:
        return _decide_part(controller, items, 0, 1)
    named = np.array([id is not None for id in items.ids], dtype=bool)
    borders = [0, *(np.flatnonzero(np.diff(named)) + 1).tolist(), named.size]
    parts = [_decide_part(controller, items, *part) for part in pairwise(borders)]
    return joined(parts)


def _decide_part(controller: Controller, items: _Items, start: int, stop: int) -> DecisionBatch:
    part = slice(start, stop)
    at = None if items.at is None else items.at[part]
    efforts = None if items.efforts is None else items.efforts[part]
    if stop - start != 1:
        ids: Any = items.ids[part] if stop > start and items.ids[start] is not None else None
        return controller.decide_many(items.scores[part], at=at, ids=ids, efforts=efforts)
    # For a single item, `decide` is faster: a batch goes through all remembered ids.
    moment = None if at is None else float(at[0])
    one = controller.decide(
        float(items.scores[start]),
        at=moment,
        id=items.ids[start],
        effort=None if efforts is None else float(efforts[0]),
    )
    return one.as_batch()


def _flags(decided: DecisionBatch) -> str:
    return "".join("01"[flag] for flag in decided.flagged.tolist())


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    old, new = flattened(old), flattened(new)
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    parts = [f"{name} was {old.get(name)!r:.40} and is {new.get(name)!r:.40}" for name in differing]
    return "; ".join(parts)[:_LONGEST_DIFFERENCE]
