"""What one worker process holds: its deciders, its connection and its keys."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import numpy as np

from ._api import Answers, Cases, Problem
from ._decider import AWAY, Decider, Request
from ._models import Arrival, ModelCache, Roster
from .databases import open_store
from .keys import NO_KEY, ApiKey, KeyRing, vouched_person
from .settings import QueueSettings, ServiceConfig, digest_of, id_of
from .store import PromiseError, QueueRow, Store, StoreError

Result = TypeVar("Result")
_MOST_CASES = 1_024  # in a request
_FRESH = 5.0  # seconds after which keys and queues are read again
_SOON, _LONGEST_LOAD = 0.2, 300.0  # seconds until a model is loaded that all workers shall load
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
# With such a header, a proxy has passed the request on: who asks may be anywhere.
_FORWARDED = (b"x-forwarded", b"forwarded", b"via", b"x-real-ip")

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_STATUSES = (200, 400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
# The columns of a row: how often each status was sent, how many answers took so long, and the sum.
_TIMES = len(_STATUSES)
_SUM = _TIMES + len(_SECONDS) + 1
_WIDTH = _SUM + 1


class Metrics:
    """The metrics of all workers; made before they are forked.

    Parameters
    ----------
    workers : int, default=1
        How many processes count.
    """

    def __init__(self, workers: int = 1) -> None:
        self._rows = np.frombuffer(mmap.mmap(-1, 8 * _WIDTH * workers)).reshape(workers, _WIDTH)
        self.place = 0

    def decided(self, status: int, seconds: float) -> None:
        """Count a request for decisions; the time only if it was answered."""
        row = self._rows[self.place]
        row[_STATUSES.index(status if status in _STATUSES else 500)] += 1
        if status == 200:
            row[_TIMES + bisect_left(_SECONDS, seconds)] += 1
            row[_SUM] += seconds

    def lines(self) -> Iterator[str]:
        """Yield the counts of all workers as text."""
        sums = self._rows.sum(axis=0).tolist()
        yield from metric_head("requests_total", "counter", "Requests")
        for status, count in zip(_STATUSES, sums, strict=False):
            if count:
                yield f'shortlist_requests_total{{action="decide",status="{status}"}} {count}'
        yield from metric_head("decision_seconds", "histogram", "Time from a case to its answer")
        counts = list(accumulate(sums[_TIMES:_SUM]))
        for bound, count in zip([*map(float, _SECONDS), "+Inf"], counts, strict=True):
            yield f'shortlist_decision_seconds_bucket{{le="{bound}"}} {count}'
        yield f"shortlist_decision_seconds_count {counts[-1]}"
        yield f"shortlist_decision_seconds_sum {sums[_SUM]}"


def metric_head(name: str, kind: str, words: str) -> Iterator[str]:
    """Yield what a metric is."""
    yield f"# HELP shortlist_{name} {words}"
    yield f"# TYPE shortlist_{name} {kind}"


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
        needs_key = config.keys_required or config.proxy_secret is not None
        self.ring = KeyRing(self.store, required=needs_key)
        #: What is done again and again beside deciding, such as following who is there.
        self.chores: list[Callable[[], Awaitable[None]]] = []
        self.deciders: dict[str, Decider] = {}
        self.metrics = metrics or Metrics()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._unanswered: deque[Request] = deque()
        self._tasks: list[asyncio.Task[None]] = []

    # --- from start to end ---------------------------------------------------------------------

    async def start(self) -> None:
        """Start to decide; a database that is unreachable is tried again and again."""
        self.loop = asyncio.get_running_loop()
        open_all = partial(self.ask, self.open_queues)
        keep_up = partial(self.loop.run_in_executor, None, self.roster.keep_up)
        with contextlib.suppress(Problem):
            await open_all()
        kept: Any = {open_all: _FRESH, keep_up: _SOON, self._answer_late: _SOON}
        kept |= dict.fromkeys(self.chores, _FRESH)
        self._tasks = [asyncio.create_task(self._repeat(*each)) for each in kept.items()]

    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds if self.deciders else _SOON)
            with contextlib.suppress(Problem, StoreError, PromiseError):
                await work()

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

    def open_queues(self) -> None:
        """Start a decider for each queue that has none yet; read the keys."""
        self.ring.refresh()
        self.roster.sign()
        for row in self.store.queues():
            if row.name not in self.deciders:
                store = open_store(self.config.database, on_lock=self._on_lock)
                decider = Decider(row.id, store, self.models, self.config, self._deliver)
                # Cases may come before the decider has read its queue.
                decider.id_fields = QueueSettings.from_json(row.settings).id_fields
                decider.start()
                self.deciders[row.name] = decider

    async def load_everywhere(self, model: int) -> None:
        """Wait until every worker has loaded a model, or raise a problem."""
        deadline = time.monotonic() + _LONGEST_LOAD
        while late := await self.ask(self.roster.count_late, model):
            if time.monotonic() > deadline:
                detail = (
                    f"{late} workers have not loaded the model, so the queue keeps its own. See "
                    "their logs; then send the model again."
                )
                raise Problem(503, "unavailable", detail)
            await asyncio.sleep(_SOON)

    async def _answer_late(self) -> None:
        """Answer what has waited for too long; one timer for all is faster than one for each."""
        now, waiting = time.monotonic(), self._unanswered
        late = Problem(503, "unavailable", "The database has not answered in time.")
        while waiting and (waiting[0].deadline + 1 < now or waiting[0].future.done()):
            _finish(waiting.popleft(), [late])

    @property
    def ready(self) -> bool:
        """Whether every queue can be decided now."""
        return bool(self.deciders) and all(each.ready for each in self.deciders.values())

    # --- deciding ------------------------------------------------------------------------------

    async def decide(self, queue: str, request: Request) -> list[Any]:
        """Return the answers to a request; a problem if that takes too long."""
        request.deadline = time.monotonic() + self.config.patience
        request.future = self.loop.create_future()
        self.decider(queue).submit(request)
        self._unanswered.append(request)
        answers: list[Any] = await request.future
        return answers

    def _deliver(self, requests: list[Request]) -> None:
        self.loop.call_soon_threadsafe(_finish_all, requests)

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
        raise Problem(503, "unavailable", AWAY)

    # --- who may -------------------------------------------------------------------------------

    def admit(self, headers: dict[bytes, bytes], action: str, queue: str | None) -> ApiKey:
        """Check the key and the origin of a request."""
        if not self.ring.required:
            local = _is_local(headers.get(b"host"), headers.get(b"sec-fetch-site"))
            if not local or any(name.startswith(_FORWARDED) for name in headers):
                detail = (
                    "Without keys, only pages and programs of this machine may ask, and none "
                    "through a proxy. Make a key: shortlist serve keys decide"
                )
                raise Problem(403, "foreign-site", detail)
            return NO_KEY
        key, secret = None, self.config.proxy_secret
        if secret is not None and b"x-proxy-secret" in headers:
            key = vouched_person(headers, secret)
        elif given := headers.get(b"authorization") or headers.get(b"x-api-key"):
            key = self.ring.find(given.decode("latin-1").removeprefix("Bearer "))
        if key is None:
            raise Problem(401, "no-key", "Send a valid key: Authorization: Bearer sl_...")
        if not key.may(action, queue):
            where = "" if queue is None else f" on the queue {queue!r}"
            raise Problem(403, "forbidden", f"The role {key.role} may not do this{where}.")
        return key


class Call(NamedTuple):
    """A request that was admitted: to which queue and case, and by which key."""

    service: Service
    queue: str
    case: str
    key: ApiKey
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

    def check_room(self, action: str) -> None:
        """Raise a problem if too many cases wait for another one to be decided."""
        if action == "decide":
            self.service.decider(self.queue).check_room()

    def reviewer(self, given: str | None) -> str:
        """Return who reviews: the person of the key; where there are no keys, who is named."""
        person = given if self.key is NO_KEY else self.key.person
        if person is None or given not in (None, person):
            needed = "a reviewer" if self.key is NO_KEY else "a key of this person (keys --person)"
            raise Problem(422, "invalid-value", f"Reviewing takes {needed}; got {given!r:.100}.")
        return person

    def note(
        self, action: str, detail: dict[str, Any] | None = None, *, vouch: Sequence[Any]
    ) -> None:
        """Record a change that is not in the log; within `ask` only."""
        now, queue = time.time(), self.queue or None
        self.store.note(now, self.key.id, action, queue, detail or {}, vouch=vouch)

    async def change(self, request: Request) -> Any:
        """Make a change that all workers follow; return its place in the log."""
        request.key_id = self.key.id or None
        answers = await self.service.decide(self.queue, request)
        for answer in answers:
            if isinstance(answer, Problem):
                raise answer
        return answers[0]


async def decide(call: Call, body: Cases) -> Answers:
    """Decide about a case, or about a list of up to 1,024."""
    cases = body if isinstance(body, list) else [body]
    names, key = call.service.decider(call.queue).id_fields, call.key.id or None
    if len(cases) > _MOST_CASES:
        raise Problem(413, "too-large", f"A request may have {_MOST_CASES:,} cases.")
    waiting = [
        Arrival(case_id=id_of(each, names), digest=digest_of(each), key_id=key, fields=each)
        for each in cases
    ]
    if not waiting:
        return []
    answers = await call.service.decide(call.queue, Request(waiting))
    for answer in answers:
        if type(answer) is Problem and (body is not cases or answer.status == 503):
            raise answer
    return answers if body is cases else answers[0]


@lru_cache(maxsize=256)
def _is_local(host: bytes | None, site: bytes | None) -> bool:
    """Whether no page of another site sent a request through somebody's browser."""
    try:
        name = urlsplit("//" + (host or b"").decode("latin-1")).hostname
    except ValueError:  # such as a bracket without its other half
        return False
    return site not in (b"cross-site", b"same-site") and name in _LOOPBACK


def _finish(request: Request, answers: list[Any]) -> None:
    """Answer a request, unless nobody waits for it any more."""
    if not request.future.done():
        request.future.set_result(answers)


def _finish_all(requests: list[Request]) -> None:
    for request in requests:
        _finish(request, request.answers)
