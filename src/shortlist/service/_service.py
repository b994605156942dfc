"""What one worker process holds: its deciders, its connection and its keys."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from ._decider import Decider
from ._metrics import Metrics
from ._models import ModelCache
from ._requests import Problem
from ._roster import Roster
from ._waiting import Change, Ticket
from .databases import open_store
from .keys import ApiKey, KeyRing
from .settings import ServiceConfig
from .store import PromiseError, QueueRow, Store, StoreError

__all__ = ["Call", "Service"]

Result = TypeVar("Result")
_FRESH = 5.0  # seconds after which keys and queues are read again
_SOON, _LONGEST_LOAD = 0.2, 300.0  # seconds until a model is loaded that all workers shall load
_LOOPBACK = {"127.0.0.1", "localhost", "[::1]", "::1"}
# With one of these, a proxy has passed the request on: who asks may be anywhere.
_FORWARDED = {b"forwarded", b"via", b"x-real-ip", *(
    b"x-forwarded-" + name for name in (b"for", b"host", b"proto", b"port", b"server", b"by")
)}  # fmt: skip


class Service:
    """The parts of a worker.

    Parameters
    ----------
    config : ServiceConfig
        The settings.
    on_lock : callable, default=None
        As for :class:`SQLiteStore`.
    models : ModelCache, default=None
        Models that have been loaded before the worker was forked.
    metrics : Metrics, default=None
        Shared with other workers.
    """

    def __init__(
        self,
        config: ServiceConfig,
        *,
        on_lock: Callable[[bool], None] | None = None,
        models: ModelCache | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.config, self._on_lock = config, on_lock
        self.store: Store = open_store(config.database, on_lock=on_lock)
        self.models = models or ModelCache()
        self.roster = Roster(self.store, self.models)
        self.ring = KeyRing(self.store, required=config.keys_required)
        self.deciders: dict[str, Decider] = {}
        self.metrics = metrics or Metrics()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._unanswered: deque[Ticket] = deque()
        self._tasks: list[asyncio.Task[None]] = []

    # --- from start to end ---------------------------------------------------------------------

    async def start(self) -> None:
        """Start to decide; a database that is unreachable is tried again and again."""
        self.loop = asyncio.get_running_loop()
        kept = (self._keep_fresh, self._keep_time, self._keep_up)
        self._tasks = [asyncio.create_task(each()) for each in kept]
        with contextlib.suppress(Problem):
            await self.ask(self._open)

    async def stop(self) -> None:
        """Answer what waits, and stop."""
        for task in self._tasks:
            task.cancel()
        for decider in self.deciders.values():
            await self.loop.run_in_executor(None, decider.close)
        with contextlib.suppress(Problem):
            await self.ask(self.roster.leave)
        self._thread.shutdown()
        self.store.close()

    def _open(self) -> None:
        """Start a decider for each queue that has none yet; read the keys."""
        self.ring.refresh()
        self.roster.sign()
        for row in self.store.queues():
            if row.name not in self.deciders:
                store = open_store(self.config.database, on_lock=self._on_lock)
                decider = Decider(row.id, store, self.models, self.config, self._deliver)
                decider.start()
                self.deciders[row.name] = decider

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(_FRESH if self.deciders else 0.5)
            with contextlib.suppress(Problem):
                await self.ask(self._open)

    async def _keep_up(self) -> None:
        """Load models that are announced, while others decide."""
        while True:
            await asyncio.sleep(_SOON)
            with contextlib.suppress(StoreError, PromiseError):
                await self.loop.run_in_executor(None, self.roster.keep_up)

    async def load_everywhere(self, model: int) -> None:
        """Wait until every worker has loaded a model, or raise a problem."""
        number = await self.ask(self.roster.announce, model)
        deadline = time.monotonic() + _LONGEST_LOAD
        while late := await self.ask(self.roster.count_late, number):
            if time.monotonic() > deadline:
                detail = (
                    f"{late} workers have not loaded the model, so the queue keeps its own. See "
                    "their logs; then send the model again."
                )
                raise Problem(503, "unavailable", detail)
            await asyncio.sleep(_SOON)

    async def _keep_time(self) -> None:
        """Answer what has waited for too long; one timer for all is faster than one for each."""
        while True:
            await asyncio.sleep(0.2)
            now, waiting = time.monotonic(), self._unanswered
            while waiting and (waiting[0].deadline + 1 < now or waiting[0].future.done()):
                late = Problem(503, "unavailable", "The database has not answered in time.")
                _finish(waiting.popleft(), [late])

    @property
    def ready(self) -> bool:
        """Whether every queue can be decided now."""
        return bool(self.deciders) and all(
            decider.ready and decider.stopped is None for decider in self.deciders.values()
        )

    # --- deciding ------------------------------------------------------------------------------

    def new_ticket(self, size: int) -> Ticket:
        """Return what will hold the answers to a request, or a problem if that takes too long."""
        deadline = time.monotonic() + self.config.patience
        ticket = Ticket(size, deadline, self.loop.create_future())
        self._unanswered.append(ticket)
        return ticket

    def _deliver(self, tickets: list[Ticket]) -> None:
        self.loop.call_soon_threadsafe(_finish_all, tickets)

    def decider(self, queue: str) -> Decider:
        """Return the decider of a queue, or raise a problem."""
        decider = self.deciders.get(queue)
        if decider is None:
            if not self.deciders:
                raise Problem(503, "unavailable", "The service is not ready.")
            raise Problem(404, "not-found", f"There is no queue {queue!r:.80}.")
        return decider

    # --- reading and reviewing -----------------------------------------------------------------

    async def ask(self, work: Callable[..., Result], *args: Any, **more: Any) -> Result:
        """Run a function that asks the database in its own thread.

        It connects again if need be. What was found would survive a crash.
        """
        return await self.loop.run_in_executor(
            self._thread, self._ask, partial(work, *args, **more)
        )

    def _ask(self, work: Callable[[], Result]) -> Result:
        for _ in range(2):
            try:
                if self.store.link is None:
                    self.store.connect()
                self.store.query("SELECT 1")
                found = work()
                self.store.settle()
                return found
            except (StoreError, PromiseError):
                self.store.close()
            except ValueError as error:
                raise Problem(503, "unavailable", str(error)) from error
        raise Problem(503, "unavailable", "The database cannot be reached.")

    # --- who may -------------------------------------------------------------------------------

    def admit(self, headers: dict[bytes, bytes], action: str, queue: str | None) -> ApiKey | None:
        """Check the key and the origin of a request; None if it needs no key."""
        if not self.ring.required:
            local = _is_local(headers.get(b"host"), headers.get(b"sec-fetch-site"))
            if not local or not _FORWARDED.isdisjoint(headers):
                detail = (
                    "Without keys, only pages and programs of this machine may ask, and none "
                    "through a proxy. Make a key: shortlist serve keys --make decide"
                )
                raise Problem(403, "foreign-site", detail)
            return None
        given = headers.get(b"authorization") or headers.get(b"x-api-key") or b""
        return self.ring.check(given.decode("latin-1").removeprefix("Bearer "), action, queue)


class Call(NamedTuple):
    """A request that was admitted: to which queue and case, and by which key."""

    service: Service
    queue: str
    case: str
    key: ApiKey | None
    headers: dict[bytes, bytes]

    @property
    def store(self) -> Store:
        """The connection; within `ask` only."""
        return self.service.store

    @property
    def row(self) -> QueueRow:
        """The row of the queue; within `ask` only."""
        for row in self.store.queues():
            if row.name == self.queue:
                return row
        raise Problem(404, "not-found", f"There is no queue {self.queue!r:.80}.")

    @property
    def key_id(self) -> str | None:
        """The name of the key."""
        return None if self.key is None else self.key.id

    def note(self, action: str, detail: dict[str, Any]) -> None:
        """Record a change that is not in the log; within `ask` only."""
        self.store.note(time.time(), self.key_id or "", action, self.queue, detail)

    async def change(self, kind: int, body: dict[str, Any]) -> Any:
        """Make a change that all workers follow; return its place in the log."""
        decider, ticket = self.service.decider(self.queue), self.service.new_ticket(1)
        decider.change(Change(ticket, kind, body, self.key_id))
        [answer] = await ticket.future
        if isinstance(answer, Problem):
            raise answer
        return answer


@lru_cache(maxsize=256)
def _is_local(host: bytes | None, site: bytes | None) -> bool:
    """Whether no page of another site sent a request through somebody's browser."""
    name = (host or b"").decode("latin-1")
    name = name.rpartition(":")[0] if name.count(":") == 1 else name
    name = name.rpartition("]:")[0] + "]" if "]:" in name else name
    return site not in (b"cross-site", b"same-site") and name in _LOOPBACK


def _finish(ticket: Ticket, answers: list[Any]) -> None:
    """Answer a request, unless nobody waits for it any more."""
    if not ticket.future.done():
        ticket.future.set_result(answers)


def _finish_all(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        _finish(ticket, ticket.answers)
