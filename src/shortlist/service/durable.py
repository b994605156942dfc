"""A controller whose decisions are on disk before they are returned.

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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from .._core.arrays import Floats
from .._core.atomic import check_writable, sync_folder
from .._core.plain_json import flattened
from .._core.timestamps import check_moments
from .._core.validation import check_id
from .._core.work import check_efforts
from ..exceptions import StateFileError
from ..online import BudgetController, Controller
from ..online.decisions import MOMENT_REFUSED
from ._group import GroupMaker
from ._replica import Items, ReplayError, Replica, make_queue
from ._sqlite import SQLiteStore
from .settings import QueueSettings, build_name
from .store import BUILD, CAPACITY, COMMAND, Entry, Group, PromiseError, QueueRow, StoreError

__all__ = ["Decided", "DurableController"]

_NAME = "stream"
_HEADER = b"SQLite format 3\0"
_PAGE = 10_000
_BEGINNING = -6.2e10  # before any moment of a line
_LONGEST_DIFFERENCE = 200  # characters of an error message


class Decided(NamedTuple):
    """A decision as the log has it, and whether the case was known before."""

    entry: Entry
    repeated: bool

    @property
    def flag(self) -> bool:
        """Whether the case is to be followed up."""
        return self.entry.slot is not None


class _Line(NamedTuple):
    """What the log keeps of a line besides its score."""

    case_id: str | None
    effort: float | None
    digest: None = None
    key_id: None = None
    fields: None = None


class DurableController:
    """A controller with a state file: whatever happens, it never returns more flags than allowed.

    Every decision is in the file before it is returned. After a crash the file is read again.
    Therefore every decision that may have been returned counts. A decision that was written but not
    returned uses its slot all the same; if its id arrives again, it is returned.

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

    Examples
    --------
    >>> import tempfile
    >>> from shortlist import Capacity
    >>> budget = lambda: BudgetController(
    ...     Capacity.count(2, per=100), calibration_scores=np.arange(100)
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = Path(folder) / "state"
    ...     with DurableController(state, budget, identity={"model": "a"}) as durable:
    ...         first = [each.flag for each in durable.decide([500.0, 500.0])]
    ...     with DurableController(state, budget, identity={"model": "a"}) as durable:
    ...         then = [each.flag for each in durable.decide([500.0, 500.0])]
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
        self.path, self._make, self._adopt, self._sync = path.resolve(), make, adopt, sync
        self._store = SQLiteStore(self.path, alone=True, sync=sync)
        self._identity = json.loads(json.dumps(identity))
        self._stack = contextlib.ExitStack()
        self._failed = False
        self._replica: Replica
        self._row: QueueRow
        self.n_before = self._saved = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_lock_beside(self.path))
            stack.callback(self._store.close)
            with self._errors():
                if not self.path.exists():
                    self._create()
                self._check_file()
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
            # A normal exit saves the complete state, which the next start then need not compute.
            if kind is None and not self._failed:
                with contextlib.suppress(StoreError, PromiseError):
                    self.save()

    @property
    def controller(self) -> Controller:
        """The controller inside. Use it for reading only: its own decisions are not written."""
        return self._replica.controller

    def decide(
        self,
        scores: Any,
        *,
        at: Floats | None = None,
        ids: list[str | None] | None = None,
        efforts: Any = None,
    ) -> list[Decided]:
        """Decide about items in order, and return once the decisions are on disk.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores.
        at : array of shape (n_items,), default=None
            Moments, for a controller with a period.
        ids : list, default=None
            Their ids, with None for an item without an id. A known id gets its first answer.
        efforts : array-like of shape (n_items,), default=None
            How much work each item takes, if the capacity is a ``Capacity.effort(...)``.

        Returns
        -------
        list of Decided
        """
        items = _check_items(self.controller, scores, at, ids, efforts)
        if self._failed:
            raise StateFileError(
                f"An earlier write to {self.path} failed. Open it again: every decision returned "
                "so far is in it."
            )
        if not items.ids:
            return []
        self._failed = True  # until everything is on disk
        with self._errors():
            decided = self._decide(items)
        self._failed = False
        return decided

    def save(self) -> None:
        """Save the complete state, unless that has been done."""
        if self._row.last_seq > self._saved:
            self._store.lock()
            state = self._replica.build, self._replica.state()
            self._commit(Group(self._row, [], snapshot=state))

    def _decide(self, items: Items) -> list[Decided]:
        self._store.lock()
        asked = [id for id in items.ids if id is not None]
        found = self._store.find_cases(self._row.id, asked) if asked else []
        known = {entry.case_id: entry for entry in found}
        is_new = _first_of(items.ids, known)
        new = items if is_new.all() else items.where(is_new)
        maker = GroupMaker(self._replica, self._row, None, self._row.high_water)
        if new.ids:
            efforts = [None] * len(new.ids) if new.efforts is None else new.efforts.tolist()
            maker.add_cases(list(map(_Line, new.ids, efforts)), new)
            self._commit(maker.group())
        else:
            self._store.rollback()
        made = iter(maker.entries)
        answers = []
        for id, first in zip(items.ids, is_new.tolist(), strict=True):
            entry = next(made) if first else known[id]
            known.setdefault(id, entry)
            answers.append(Decided(entry, not first and entry.code != MOMENT_REFUSED))
        return answers

    def _commit(self, group: Group) -> None:
        self._store.commit(group)
        self._row = group.row
        if group.snapshot is not None:
            self._saved = group.row.last_seq

    # --- opening -------------------------------------------------------------------------------

    def _create(self) -> None:
        """Make the file under another name, because a crash must not leave half of it."""
        unfinished = self.path.with_name(f".{self.path.name}.part")
        for path in (unfinished, Path(f"{unfinished}-wal"), Path(f"{self.path}-wal")):
            path.unlink(missing_ok=True)
        controller = self._make()
        store = SQLiteStore(unfinished, alone=True, sync=self._sync)
        store.connect(create=True)
        store.make_tables()
        make_queue(
            store, _NAME, _settings_of(controller), controller, at=_BEGINNING,
            identity=self._identity,
        )  # fmt: skip
        store.close()
        unfinished.rename(self.path)
        sync_folder(self.path.parent)

    def _check_file(self) -> None:
        found = self.path.stat()
        if not found.st_size:
            raise StateFileError(
                f"{self.path} is empty. A stream never leaves an empty file: what was decided is "
                "lost. Nothing was decided. If no stream has used the file, delete it; otherwise "
                "start the next period with another --state file."
            )
        if found.st_nlink != 1:
            raise StateFileError(
                f"{self.path} has {found.st_nlink} names (hard links), and its latest decisions "
                "are in a file beside one of them. Nothing was decided. Remove the other names, or "
                "make them copies."
            )
        with self.path.open("rb") as file:
            if file.read(len(_HEADER)) != _HEADER:
                self._refuse("its first bytes are others")

    def _open(self) -> None:
        self._store.connect()
        self._store.make_tables()
        rows = self._store.queues()
        if [row.name for row in rows] != [_NAME]:
            raise StateFileError(f"{self.path} is not a state file of shortlist stream.")
        [row] = rows
        self._row = row
        [(seq, state)] = self._store.query(
            "SELECT seq, state FROM snapshot WHERE queue = ? ORDER BY seq DESC LIMIT 1", row.id
        )
        build = self._store.find_build(build_name())
        settings = QueueSettings.from_json(row.settings)
        self._replica = Replica.from_state(build, seq, state, _no_calibration, settings)
        self._saved = seq
        while page := self._store.entries(row.id, self._replica.seq, most=_PAGE):
            self._replica.follow(page)
        self.n_before = self.controller.n_items
        [(last, body)] = self._store.query(
            "SELECT build, body FROM log WHERE queue = ? AND kind = ? ORDER BY seq DESC LIMIT 1",
            row.id,
            BUILD,
        )
        old = json.loads(body)["identity"]
        if old != self._identity:
            self._adopt_from(old)
        elif last != build:
            self._begin(self._replica)

    def _adopt_from(self, old: dict[str, Any]) -> None:
        if self._adopt is None:
            raise StateFileError(
                f"{self.path} belongs to another stream: {_difference(old, self._identity)}. "
                "Use the original options or another --state file, or continue with --adopt."
            )
        replica = self._replica.fork()
        self._adopt(replica.controller, old)
        self._begin(replica)

    def _begin(self, replica: Replica) -> None:
        """Write the capacity and the state from which this program goes on into the log."""
        self._store.lock()
        row = self._row
        capacity = {replica.settings.unit: replica.controller.capacity.to_json()["value"]}
        events = [
            (CAPACITY, {**capacity, "from": row.high_water}),
            (BUILD, {**json.loads(replica.state()), "identity": self._identity}),
        ]
        period = replica.settings.periods.number(row.high_water)
        entries = [
            Entry(
                row.id, row.last_seq + place, kind, replica.build, row.high_water, period,
                key_id=COMMAND, body=json.dumps(body),
            )
            for place, (kind, body) in enumerate(events, 1)
        ]  # fmt: skip
        allowed = replica.settings.allowed_by(replica.controller.capacity)
        after = row._replace(last_seq=entries[-1].seq, capacity=allowed)
        self._commit(Group(after, entries, snapshot=(replica.build, replica.state())))
        self._replica = replica

    # --- what goes wrong -----------------------------------------------------------------------

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Say what an error of the database means for a stream."""
        try:
            yield
        except StoreError as error:
            if "full" in str(error) or "I/O" in str(error):
                number = errno.ENOSPC if "full" in str(error) else errno.EIO
                raise OSError(number, os.strerror(number), str(self.path)) from error
            self._refuse(str(error))
        except PromiseError as error:
            self._refuse(str(error))
        except StateFileError:
            raise
        except (LookupError, TypeError, ValueError) as error:
            self._refuse(" ".join(str(error).split()))
        except ReplayError as error:
            raise StateFileError(
                f"{self.path} was written by a version of shortlist that decided differently. It "
                "cannot be resumed safely. Run that version once more, which saves a complete "
                "state when it ends, or start the next period with another --state file."
            ) from error

    def _refuse(self, why: str) -> NoReturn:
        raise StateFileError(
            f"{self.path} is damaged, or not a state file, or was replaced: {why}. Nothing was "
            "decided. An older copy would give flags again that were given since. Start the next "
            "period with another --state file."
        )


def _no_calibration(model: int) -> NoReturn:
    raise StateFileError("A stream has no models in its file.")


def _settings_of(controller: Controller) -> QueueSettings:
    """Return how the database counts what a controller decides."""
    period = controller.options.get("period")
    is_budget = isinstance(controller, BudgetController) and controller.is_timed
    return QueueSettings(
        period,
        controller.options.get("expected_arrivals") or 0,
        controller.options.get("starts_at") or 0.0,
        usual_effort=0.0 if controller.counts_work else None,
        is_capped=is_budget,
        is_guarded=True,
    )


def _check_items(controller: Controller, scores: Any, at: Any, ids: Any, efforts: Any) -> Items:
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
    if at is None and controller.is_timed:
        raise ValueError("at is required: this controller keeps a number per period of time.")
    if (efforts is not None) != controller.counts_work:
        needed = "needs" if controller.counts_work else "has no use for"
        raise ValueError(f"{controller!r} {needed} efforts. Nothing was decided.")
    moments = np.zeros(values.size) if at is None else check_moments(at, values.size)
    named = [None if id is None else str(check_id(id)) for id in names]
    return Items(values, named, moments, check_efforts(efforts, values.size))


def _first_of(ids: list[Any], known: Any) -> Any:
    """Return which items are decided now: all but known ids, and each id once."""
    seen, first = set(known), []
    for id in ids:
        first.append(id is None or id not in seen)
        if id is not None:
            seen.add(id)
    return np.array(first, dtype=bool)


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    old, new = flattened(old), flattened(new)
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    parts = [f"{name} was {old.get(name)!r:.40} and is {new.get(name)!r:.40}" for name in differing]
    return "; ".join(parts)[:_LONGEST_DIFFERENCE]


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
