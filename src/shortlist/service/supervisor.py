"""The parent of the workers: it binds the port, forks them, refills them, and watches the lock.

Whatever a worker needs is loaded before the fork: the model and the compiled functions. A worker of
SQLite that stands still while it holds the lock would stop all others. The parent sees that in a
few bytes of shared memory, and kills it; the kernel then gives the lock back.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import mmap
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from ._metrics import Metrics
from ._models import ModelCache
from ._service import Service
from .app import make_app
from .config import ServiceConfig

__all__ = ["run_service"]

_log = logging.getLogger("shortlist.service")
_LONGEST_HOLD = 2.0  # seconds
_DRAIN = 10.0
_SWITCH = 0.0005  # seconds that one thread of a worker may keep the others waiting
_MOST_RESTARTS = 20  # in a minute; more means that no worker can start


def run_service(
    config: ServiceConfig,
    *,
    host: str,
    port: int,
    workers: int,
    models: ModelCache,
    on_ready: Callable[[str, int], None] | None = None,
    make: Callable[[Service], Any] = make_app,
) -> int:
    """Serve until a signal comes; return the exit code.

    Parameters
    ----------
    config : ServiceConfig
        The settings.
    host, port : str, int
        Where to listen; port 0 takes a free one.
    workers : int
        How many processes answer.
    models : ModelCache
        With the models of all queues, loaded.
    on_ready : callable, default=None
        Called with the host and the port before the first worker starts.
    make : callable, default=make_app
        Makes the application of a worker.
    """
    with _listening(host, port, workers) as listeners:
        if on_ready is not None:
            on_ready(*listeners[0].getsockname()[:2])
        return _Family(config, models, listeners, make).run()


@contextlib.contextmanager
def _listening(host: str, port: int, workers: int) -> Iterator[list[socket.socket]]:
    """Listen once for each worker, and let the kernel spread connections over them.

    One socket for all would give most connections to the worker that wakes up first. The parent
    keeps every socket open, so that connections outlive the worker that did not take them.
    """
    with _bound(host, port) as alone:  # fails if another program listens here
        port = alone.getsockname()[1]
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(_bound(host, port, shared=True)) for _ in range(workers)]
        for listener in listeners:
            listener.listen(2_048)
        yield listeners


def _bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends small answers at once (TCP_NODELAY).
    bound = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ValueError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
    return bound


class _Family:
    def __init__(
        self,
        config: ServiceConfig,
        models: ModelCache,
        listeners: list[socket.socket],
        make: Callable[[Service], Any],
    ) -> None:
        self._config, self._models, self._listeners, self._make = config, models, listeners, make
        workers = len(listeners)
        self._places: dict[int, int] = {}  # process id to place
        self._free = list(range(workers))
        self._held = mmap.mmap(-1, 8 * workers)
        self._metrics = Metrics(workers)
        self._stopping = False
        self._starts: list[float] = []

    def run(self) -> int:
        """Keep all workers running until a signal comes."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._stop)
        gc.collect()
        gc.freeze()  # workers need not look through what was loaded for them again and again
        while self._places or not self._stopping:
            while self._free and not self._stopping:
                if self._is_hopeless():
                    _log.error("Workers end as soon as they start. Giving up.")
                    self._stopping = True
                    break
                self._fork(self._free.pop())
            self._reap()
            self._watch()
            time.sleep(0.05)
        return 0 if len(self._starts) <= _MOST_RESTARTS else 1

    def _stop(self, number: int, frame: Any) -> None:
        self._stopping = True
        for pid in self._places:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _is_hopeless(self) -> bool:
        now = time.monotonic()
        self._starts = [each for each in self._starts if now - each < 60] + [now]
        return len(self._starts) > _MOST_RESTARTS + 2 * len(self._held)

    def _fork(self, place: int) -> None:
        self._mark(place, False)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self._work(place)
                code = 0
            finally:
                os._exit(code)
        self._places[pid] = place

    def _work(self, place: int) -> None:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        _end_with_parent()
        sys.setswitchinterval(_SWITCH)
        self._metrics.place = place
        service = Service(
            self._config,
            on_lock=lambda held: self._mark(place, held),
            models=self._models,
            metrics=self._metrics,
        )
        settings = uvicorn.Config(
            self._make(service),
            log_level="warning",
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=int(_DRAIN),
            ws="none",
            proxy_headers=False,
            timeout_keep_alive=30,
            backlog=2_048,
        )
        with asyncio.Runner(loop_factory=settings.get_loop_factory()) as runner:
            runner.run(_Server(settings, service).serve(sockets=[self._listeners[place]]))

    def _mark(self, place: int, held: bool) -> None:
        """Note since when a worker has held the lock, or that it does not."""
        struct.pack_into("d", self._held, 8 * place, time.monotonic() if held else 0.0)

    def _watch(self) -> None:
        """End a worker that holds the lock and does not go on."""
        now = time.monotonic()
        for pid, place in self._places.items():
            [since] = struct.unpack_from("d", self._held, 8 * place)
            if since and now - since > _LONGEST_HOLD:
                _log.warning("Worker %d held the lock for too long and is ended.", pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        for pid in list(self._places):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._free.append(self._places.pop(pid))
                if not self._stopping:
                    _log.warning("Worker %d ended (status %d); starting another.", pid, status)


class _Server(uvicorn.Server):
    """Tells the service when it is to end, before it waits for the last answers."""

    def __init__(self, settings: uvicorn.Config, service: Service) -> None:
        super().__init__(settings)
        self._service = service

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to end."""
        self._service.leaving = True
        super().handle_exit(sig, frame)


def _end_with_parent() -> None:
    """Ask the kernel to end this process when its parent is gone (Linux)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
