"""What one worker process holds: its deciders, its connection, its keys and its limits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from ._decider import Decider
from ._metrics import Metrics
from ._models import ModelCache
from ._requests import Problem
from ._waiting import Change, Failure, Ticket
from .config import ServiceConfig
from .databases import open_store
from .keys import ApiKey, KeyRing
from .store import PromiseError, QueueRow, Store, StoreError

__all__ = ["Service", "setter"]

Result = TypeVar("Result")
_LATE = Failure(503, "unavailable", "The database has not answered in time.")
_FOREIGN = "Without keys, only pages and programs of this machine may ask."
_LOOPBACK = {"127.0.0.1", "localhost", "[::1]", "::1"}


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
        self.models = models or ModelCache(self.store)
        self.models.use(open_store(config.database))
        self.ring = KeyRing(self.store, required=config.keys_required)
        self.deciders: dict[str, Decider] = {}
        self.leaving = False  # requests that wait for news are answered, and the worker ends
        self.metrics = metrics or Metrics()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._buckets: dict[str, tuple[float, float]] = {}
        self._unanswered: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = threading.Lock()

    # --- from start to end ---------------------------------------------------------------------

    async def start(self) -> None:
        """Start to decide; a database that is away is tried again and again."""
        self.loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(each()) for each in (self._keep_fresh, self._keep_time)]
        with contextlib.suppress(Problem):
            await self.ask(self._open)

    async def stop(self) -> None:
        """Answer what waits, and stop."""
        for task in self._tasks:
            task.cancel()
        for decider in self.deciders.values():
            await self.loop.run_in_executor(None, decider.close)
        self._thread.shutdown()
        self.store.close()
        self.models.close()

    def _open(self) -> None:
        """Start a decider for each queue that has none yet; read the keys."""
        self.ring.refresh()
        for row in self.store.queues():
            if row.name not in self.deciders:
                decider = Decider(
                    row.id,
                    open_store(self.config.database, on_lock=self._on_lock),
                    self.models,
                    build=self.config.build,
                    deliver=self._deliver,
                    clock=self.config.clock,
                    accept_clock=self.config.accept_clock,
                    patience=self.config.patience,
                )
                decider.start()
                self.deciders[row.name] = decider

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            with contextlib.suppress(Problem):
                if not self.deciders or self.ring.is_stale():
                    await self.ask(self._open)

    async def _keep_time(self) -> None:
        """Answer what has waited for too long; one timer for all is faster than one for each."""
        while True:
            await asyncio.sleep(0.2)
            late, waiting = time.monotonic() - self.config.patience - 1, self._unanswered
            while waiting and (waiting[0][0] < late or waiting[0][1].done()):
                _, future = waiting.popleft()
                if not future.done():
                    future.set_result([_LATE])

    @property
    def ready(self) -> bool:
        """Whether every queue can be decided now."""
        return bool(self.deciders) and all(
            decider.ready and decider.stopped is None for decider in self.deciders.values()
        )

    # --- deciding ------------------------------------------------------------------------------

    def new_future(self) -> asyncio.Future[Any]:
        """Return what will hold the answers to a request, or a failure if that takes too long."""
        future = self.loop.create_future()
        self._unanswered.append((time.monotonic(), future))
        return future

    def _deliver(self, tickets: list[Ticket]) -> None:
        self.loop.call_soon_threadsafe(_finish, tickets)

    def decider(self, queue: str) -> Decider:
        """Return the decider of a queue, or raise a problem."""
        decider = self.deciders.get(queue)
        if decider is None:
            if not self.deciders:
                raise Problem(503, "unavailable", "The service is not ready.")
            raise Problem(404, "not-found", f"There is no queue {queue!r:.80}.")
        return decider

    async def change(self, queue: str, kind: int, body: dict[str, Any], key: str | None) -> Any:
        """Make a change that all workers follow; return its place in the log."""
        decider = self.decider(queue)
        future = self.new_future()
        deadline = time.monotonic() + self.config.patience
        decider.change(Change(kind, body, key, Ticket(1, setter(future)), deadline))
        [answer] = await future
        if not isinstance(answer, dict):
            raise Problem(answer.status, answer.kind, answer.detail)
        return answer

    # --- reading and reviewing -----------------------------------------------------------------

    async def ask(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run a function that asks the database in its own thread; connect again if need be."""
        return await self.loop.run_in_executor(self._thread, self._ask, work, args)

    def _ask(self, work: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        for attempt in range(2):
            try:
                if attempt or not self._connected():
                    self.store.connect()
                return work(*args)
            except (StoreError, PromiseError):
                self.store.close()
            except ValueError as error:
                raise Problem(503, "unavailable", str(error)) from error
        raise Problem(503, "unavailable", "The database cannot be reached.")

    def _connected(self) -> bool:
        try:
            self.store.query("SELECT 1")
        except StoreError:
            return False
        return True

    def row(self, queue: str) -> QueueRow:
        """Return the row of a queue; within `ask` only."""
        for row in self.store.queues():
            if row.name == queue:
                return row
        raise Problem(404, "not-found", f"There is no queue {queue!r:.80}.")

    # --- who may -------------------------------------------------------------------------------

    def admit(self, scope: Any, action: str | None, queue: str | None = None) -> ApiKey | None:
        """Check the key, the rate and the origin of a request; None if it needs no key."""
        headers = dict(scope["headers"])
        origin = headers.get(b"host"), headers.get(b"sec-fetch-site")
        if not self.ring.required and not _is_local(*origin):
            raise Problem(403, "foreign-site", _FOREIGN)
        given = headers.get(b"authorization") or headers.get(b"x-api-key") or b""
        key = None
        if action is not None:
            key = self.ring.check(given.decode("latin-1").removeprefix("Bearer "), action, queue)
        self._limit(key.id if key is not None else (scope.get("client") or ("",))[0])
        return key

    def _limit(self, who: str) -> None:
        """Take one of the tokens of a sender, of which `rate` come back per second."""
        rate, now = self.config.rate, time.monotonic()
        tokens, last = self._buckets.get(who, (rate, now))
        tokens = min(rate, tokens + (now - last) * rate)
        if tokens < 1:
            raise Problem(429, "too-many", f"At most {rate:g} requests per second are answered.")
        if len(self._buckets) > 10_000:
            self._buckets.clear()
        self._buckets[who] = tokens - 1, now


@lru_cache(maxsize=256)
def _is_local(host: bytes | None, site: bytes | None) -> bool:
    """Whether no page of another site sent a request through somebody's browser."""
    name = (host or b"").decode("latin-1")
    name = name.rpartition(":")[0] if name.count(":") == 1 else name
    name = name.rpartition("]:")[0] + "]" if "]:" in name else name
    return site not in (b"cross-site", b"same-site") and name in _LOOPBACK


def setter(future: asyncio.Future[Any]) -> Callable[[list[Any]], None]:
    """Return what answers a future, unless nobody waits for it any more."""

    def done(answers: list[Any]) -> None:
        if not future.done():
            future.set_result(answers)

    return done


def _finish(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        ticket.done(ticket.answers)
