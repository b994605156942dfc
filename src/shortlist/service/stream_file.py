"""The state file of `stream`: decisions are on disk before they are returned.

They are kept in a database of the service's kind: a file with one queue, which one process uses at
a time. The latest saved state and the decisions after it give the controller back; they are made
again and compared when the file is opened. The database itself gives each flag of a period a slot
of its own, and refuses one beyond the capacity.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._core.files import check_writable, flattened, sync_folder
from ..capacity import Capacity, capacity_in_words
from ..exceptions import StateFileError
from ..online import BudgetController, Controller
from ..online.decisions import MOMENT_REFUSED
from ._group import find_known, join_queue, make_queue, writing
from ._models import Arrival
from ._replica import ReplayError, Replica
from ._sqlite import SQLiteStore
from .settings import QueueSettings, build_name
from .store import ALLOW, CAPACITY, COMMAND, Entry, PromiseError, StoreError

__all__ = ["DurableController", "open_stream"]

_NAME = "stream"
_BEGINNING = -6.2e10  # before any moment of a line
_LONGEST_DIFFERENCE = 200  # characters of an error message
_ADOPTED = ("model", "capacity", "scorer")  # what may differ when a stream goes on


@contextlib.contextmanager
def open_stream(
    path: Path,
    controller: Controller,
    *,
    identity: dict[str, Any],
    adopt: Any = None,
    worth: float | None = None,
    entity: dict[str, Any] | None = None,
    sync: bool = True,
) -> Iterator[DurableController]:
    """Open the state file of a stream, or make it; only one process can use it at a time.

    Parameters
    ----------
    path : Path
        The state file.
    controller : Controller
        Begins the stream if the file does not exist yet.
    identity : dict
        Describes the stream as plain JSON; it must be the same in every run.
    adopt : array-like, default=None
        The calibration scores of the model with which a stream of another model or capacity goes
        on. Without them, another identity raises an error.
    worth : float, default=None
        The least score for which a slot is used; the controller does not see lower ones. It is
        fixed when the file is made.
    entity : dict, default=None
        What makes events one case, as in :class:`~shortlist.service.settings.QueueSettings`.
    sync : bool, default=True
        Wait for the disk. Otherwise decisions survive a crash of the process, but perhaps not a
        power cut.

    Yields
    ------
    DurableController

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> budget = lambda: BudgetController(
    ...     Capacity.count(2, per=100), calibration_scores=np.arange(100)
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = Path(folder) / "state"
    ...     with open_stream(state, budget(), identity={"model": "a"}) as durable:
    ...         first = durable.decide([Arrival(500.0, "a", 0.0), Arrival(500.0, "b", 0.0)])
    ...     with open_stream(state, budget(), identity={"model": "a"}) as durable:
    ...         then = durable.decide([Arrival(500.0, "c", 0.0)])
    >>> [entry.slot is not None for entry, _ in first + then]
    [True, True, False]
    """
    path, identity = path.resolve(), json.loads(json.dumps(identity))
    store = SQLiteStore(path, alone=True, sync=sync)
    with _lock_beside(path), contextlib.closing(store):
        with _errors(path):
            new = None
            if not path.exists():
                new = _create(store, controller, _settings_of(controller, worth, entity), identity)
            _check_file(path)
            durable = DurableController(store, new)
            if durable.identity != identity:
                _check_difference(path, durable.identity, identity, adopt=adopt is not None)
                durable.go_on(controller.capacity, adopt, identity)
        yield durable
        # A normal end saves the complete state, which the next start then need not compute.
        if not durable.failed:
            with contextlib.suppress(StoreError, PromiseError):
                durable.save()


class DurableController:
    """A controller with a state file: whatever happens, it never returns more flags than allowed.

    Every decision is in the file before it is returned. After a crash the file is read again.
    Therefore every decision that may have been returned counts. A decision that was written but not
    returned uses its slot all the same; if its id arrives again, it is returned.

    Attributes
    ----------
    n_before : int
        How many items had been decided when the file was opened.
    failed : bool
        Whether a write has failed, after which nothing more is decided.
    """

    def __init__(self, store: SQLiteStore, new: Replica | None) -> None:
        store.connect()
        store.make_tables()
        rows = store.queues()
        if [row.name for row in rows] != [_NAME]:
            raise StateFileError(f"{store.path} is not a state file of shortlist stream.")
        self._store, self._replica = store, new or join_queue(store, rows[0].id, build_name())
        self._saved = self._replica.seq
        self._replica.follow(store.follow(rows[0].id, self._saved))
        self.n_before, self.failed = self.controller.n_items, False

    @property
    def controller(self) -> Controller:
        """The controller inside. Use it for reading only: its own decisions are not written."""
        return self._replica.controller

    @property
    def identity(self) -> dict[str, Any]:
        """What describes the stream."""
        return dict(self._replica.identity)

    def go_on(self, capacity: Capacity, calibration: Any, identity: dict[str, Any]) -> None:
        """Write another capacity, and the state from which this program goes on, into the log.

        What has been used up stays used up, and the threshold moves to the scores of the model.
        """
        replica = self._replica
        replica.controller.swap_model(calibration)
        if replica.controller.capacity != capacity:
            replica.controller.set_capacity(capacity)
        replica.identity = identity
        with writing(replica) as maker:
            amount = {replica.settings.unit: capacity.to_json()["value"]}
            body = json.dumps({**amount, "from": maker.row.high_water})
            maker.add_event(CAPACITY, body, COMMAND)
            maker.add_start()

    def decide(
        self, arrivals: list[Arrival], answered: dict[str, int] | None = None
    ) -> list[tuple[Entry, bool]]:
        """Decide about valid items in order, and return once the decisions are on disk.

        Returns entries of the log, and whether each item was known before. An item without an id is
        new; a known id gets its first answer. How far a source has been answered is written in the
        same transaction.
        """
        if self.failed:
            raise StateFileError(
                f"An earlier write to {self._store.path} failed. Open it again: every decision "
                "returned so far is in it."
            )
        if not arrivals and not answered:
            return []
        self.failed = True  # until everything is on disk
        with _errors(self._store.path):
            decided = self._decide(arrivals, answered or {})
        self.failed = False
        return decided

    def allow(self, allowed: dict[str, float]) -> None:
        """Put entities on the allow-list until a moment."""
        with writing(self._replica) as maker:
            for entity, until in allowed.items():
                maker.add_change(ALLOW, {"entity": entity, "until": until}, COMMAND)

    def save(self) -> None:
        """Save the complete state, unless that has been done."""
        if self._replica.seq > self._saved:
            with writing(self._replica) as maker:
                maker.saves = True
            self._saved = self._replica.seq

    @property
    def answered(self) -> dict[str, int]:
        """How far each source has been answered."""
        return dict(self._store.query("SELECT source, answered FROM source"))

    def _decide(
        self, arrivals: list[Arrival], answered: dict[str, int]
    ) -> list[tuple[Entry, bool]]:
        known, new = find_known(self._store, self._replica.queue, arrivals)
        if new or answered:
            with writing(self._replica) as maker:
                for source, place in answered.items():
                    self._store.put("source", {"source": source, "answered": place}, ("source",))
                maker.add_cases(new)
            for each, entry in zip(new, maker.entries, strict=True):
                each.answer = known[each.case_id] = entry
        answers = [(each.answer or known[each.case_id], each.answer is None) for each in arrivals]
        return [(entry, again and entry.code != MOMENT_REFUSED) for entry, again in answers]


# --- opening -----------------------------------------------------------------------------------


def _create(
    store: SQLiteStore, controller: Controller, settings: QueueSettings, identity: dict[str, Any]
) -> Replica | None:
    """Make the file under another name, because a crash must not leave half of it."""
    path = store.path
    store.path = unfinished = path.with_name(f".{path.name}.part")
    for each in (unfinished, Path(f"{unfinished}-wal"), Path(f"{path}-wal")):
        each.unlink(missing_ok=True)
    store.connect(create=True)
    store.make_tables()
    replica = make_queue(store, _NAME, settings, controller, at=_BEGINNING, identity=identity)
    store.close()
    unfinished.rename(path)
    sync_folder(path.parent)
    store.path = path
    return replica


def _check_file(path: Path) -> None:
    found = path.stat()
    if not found.st_size:
        raise StateFileError(
            f"{path} is empty. A stream never leaves an empty file: what was decided is lost. "
            "Nothing was decided. If no stream has used the file, delete it; otherwise start the "
            "next period with another --state file."
        )
    if found.st_nlink != 1:
        raise StateFileError(
            f"{path} has {found.st_nlink} names (hard links), and its latest decisions are in a "
            "file beside one of them. Nothing was decided. Remove the other names, or make them "
            "copies."
        )


def _check_difference(path: Path, old: Any, new: Any, *, adopt: bool) -> None:
    """Refuse another stream, unless it may go on with another model or capacity."""
    was, now = flattened(old), flattened(new)
    differing = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    if not adopt:
        names = dict.fromkeys(name.partition(".")[0] for name in differing)
        parts = [f"{name} was {_said(old, name)} and is {_said(new, name)}" for name in names]
        raise StateFileError(
            f"{path} belongs to another stream: {'; '.join(parts)[:_LONGEST_DIFFERENCE]}. "
            "Use the original options or another --state file, or continue with --adopt."
        )
    if fixed := [name for name in differing if name.partition(".")[0] not in _ADOPTED]:
        raise StateFileError(
            f"--adopt accepts another model or capacity, but not another {', '.join(fixed)}. "
            "Start the next period with another --state file."
        )


def _said(identity: dict[str, Any], name: str) -> str:
    value = identity.get(name)
    if name == "capacity" and isinstance(value, dict):
        return capacity_in_words(Capacity.from_json(value), cases="lines")
    return "not given" if value is None else f"{value!s:.60}"


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Say what an error of the database means for a stream."""
    try:
        yield
    except StateFileError:
        raise
    except ReplayError as error:
        raise StateFileError(
            f"{path} was written by a version of shortlist that decided differently. It cannot be "
            "resumed safely. Run that version once more, which saves a complete state when it "
            "ends, or start the next period with another --state file."
        ) from error
    except (StoreError, PromiseError, LookupError, TypeError, ValueError) as error:
        for words, number in {"full": errno.ENOSPC, "I/O": errno.EIO}.items():
            if isinstance(error, StoreError) and words in str(error):
                raise OSError(number, os.strerror(number), str(path)) from error
        raise StateFileError(
            f"{path} is damaged, or not a state file, or was replaced: "
            f"{' '.join(str(error).split())}. Nothing was decided. An older copy would give flags "
            "again that were given since. Start the next period with another --state file."
        ) from error


def _settings_of(
    controller: Controller, worth: float | None, entity: dict[str, Any] | None
) -> QueueSettings:
    """Return how the database counts what a controller decides."""
    options = controller.options
    return QueueSettings(
        options.get("period"),
        options.get("expected_arrivals") or 0,
        options.get("starts_at") or 0.0,
        worth=worth,
        usual_effort=0.0 if controller.counts_work else None,
        is_capped=isinstance(controller, BudgetController) and controller.is_timed,
        is_guarded=True,
        **(entity or {}),
    )


@contextlib.contextmanager
def _lock_beside(path: Path) -> Iterator[None]:
    """Hold a lock next to a file until the process ends, however that happens."""
    check_writable(path)
    with path.with_name(path.name + ".lock").open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateFileError(
                f"{path} is in use by another process. Stop it, or use another --state file."
            ) from None
        yield
