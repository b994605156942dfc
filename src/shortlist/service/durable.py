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
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

from .._core.files import check_writable, flattened, sync_folder
from .._core.ids import check_id
from ..exceptions import StateFileError
from ..online import BudgetController, Controller
from ..online.decisions import MOMENT_REFUSED
from ._group import GroupMaker, join_queue, make_queue
from ._replica import Arrival, ReplayError, Replica
from ._sqlite import SQLiteStore
from .settings import QueueSettings, build_name
from .store import CAPACITY, COMMAND, Entry, Group, PromiseError, QueueRow, StoreError

__all__ = ["Decided", "DurableController"]

_NAME = "stream"
_HEADER = b"SQLite format 3\0"
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
    worth : float, default=None
        The least score for which a slot is used; the controller does not see lower ones. It is
        fixed when the file is made.
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
    >>> import numpy as np
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
        worth: float | None = None,
        sync: bool = True,
    ) -> None:
        self.path, self._make, self._adopt = path.resolve(), make, adopt
        self._sync, self._worth = sync, worth
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
        at: Any = None,
        ids: list[str | None] | None = None,
        efforts: Any = None,
    ) -> list[Decided]:
        """Decide about items in order, and return once the decisions are on disk.

        An item without an id has None; a known id gets its first answer.
        """
        arrivals = _arrivals(self.controller, scores, at, ids, efforts)
        if self._failed:
            raise StateFileError(
                f"An earlier write to {self.path} failed. Open it again: every decision returned "
                "so far is in it."
            )
        if not arrivals:
            return []
        self._failed = True  # until everything is on disk
        with self._errors():
            decided = self._decide(arrivals)
        self._failed = False
        return decided

    def save(self) -> None:
        """Save the complete state, unless that has been done."""
        if self._row.last_seq > self._saved:
            self._store.lock()
            self._commit(
                Group(self._row, [], snapshot=(self._replica.build, self._replica.state()))
            )

    def _decide(self, arrivals: list[Arrival]) -> list[Decided]:
        self._store.lock()
        asked = [each.case_id for each in arrivals if each.case_id is not None]
        found = self._store.find_cases(self._row.id, asked) if asked else []
        known = {entry.case_id: entry for entry in found}
        is_new = _first_of(arrivals, set(known))
        maker = GroupMaker(self._replica, self._row, None, self._row.high_water)
        if any(is_new):
            maker.add_cases([each for each, new in zip(arrivals, is_new, strict=True) if new])
            self._commit(maker.group())
        else:
            self._store.rollback()
        made, answers = iter(maker.entries), []
        for each, new in zip(arrivals, is_new, strict=True):
            entry = next(made) if new else known[each.case_id]
            known.setdefault(each.case_id, entry)
            answers.append(Decided(entry, not new and entry.code != MOMENT_REFUSED))
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
        settings = _settings_of(controller, self._worth)
        make_queue(store, _NAME, settings, controller, at=_BEGINNING, identity=self._identity)
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
        self._replica = join_queue(self._store, rows[0].id, build_name())
        self._saved = self._replica.seq
        self._row, entries, _ = self._store.begin(rows[0].id, self._replica.seq)
        self._replica.follow(entries)
        self.n_before = self.controller.n_items
        if self._replica.identity == self._identity:
            self._store.rollback()
        else:
            self._adopt_from(self._replica.identity)

    def _adopt_from(self, old: dict[str, Any]) -> None:
        """Write the new capacity and the state from which this program goes on into the log."""
        if self._adopt is None:
            raise StateFileError(
                f"{self.path} belongs to another stream: {_difference(old, self._identity)}. "
                "Use the original options or another --state file, or continue with --adopt."
            )
        replica = self._replica
        self._adopt(replica.controller, old)
        replica.identity = self._identity
        maker = GroupMaker(replica, self._row, None, self._row.high_water)
        amount = {replica.settings.unit: replica.controller.capacity.to_json()["value"]}
        maker.add_event(CAPACITY, json.dumps({**amount, "from": self._row.high_water}), COMMAND)
        maker.add_start()
        self._commit(maker.group())

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


def _settings_of(controller: Controller, worth: float | None) -> QueueSettings:
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
    )


def _arrivals(controller: Controller, scores: Any, at: Any, ids: Any, efforts: Any) -> Any:
    """Check everything before the first decision, so that an error changes nothing."""
    n = len(scores)
    names, moments, works = ([None] * n if each is None else each for each in (ids, at, efforts))
    arrivals = [
        Arrival(float(score), None if name is None else str(check_id(name)), at or 0.0, effort)
        for score, name, at, effort in zip(scores, names, moments, works, strict=True)
    ]
    if not all(math.isfinite(each.score) and math.isfinite(each.at) for each in arrivals):
        raise ValueError("scores and moments must be finite numbers. Nothing was decided.")
    if (at is None and controller.is_timed) or (efforts is None) == controller.counts_work:
        raise ValueError(f"{controller!r} needs at with a period, and efforts for work only.")
    return arrivals


def _first_of(arrivals: list[Arrival], known: set[Any]) -> list[bool]:
    """Return which items are decided now: all but known ids, and each id once."""
    first = []
    for each in arrivals:
        first.append(each.case_id is None or each.case_id not in known)
        known.add(each.case_id)
    return first


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
