"""The parent of the workers: it binds the port, forks them, refills them, and watches the lock.

Whatever a worker needs is loaded before the fork: the model and the compiled functions. A worker of
SQLite that stands still while it holds the lock would stop all others. The parent sees that in a
few bytes of shared memory, and kills it; the kernel then gives the lock back.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import mmap
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from typing import Any

import uvicorn

from ._models import ModelCache
from ._service import Metrics, Service
from .app import HttpProtocol, make_app
from .settings import ServiceConfig

_log = logging.getLogger("shortlist.service")
_LONGEST_HOLD = 2.0  # seconds
_DRAIN = 10
_STOPPING = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 2_048
_SWITCH = 0.0005  # seconds that one thread of a worker may keep the others waiting
_MOST_STARTS = 20  # of one worker in a minute; more means that it cannot start


def run_service(
    config: ServiceConfig,
    *,
    host: str,
    port: int,
    workers: int,
    models: ModelCache,
    on_ready: Callable[[str, int], None] | None = None,
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
    """
    listeners = _listen(host, port, workers)
    if on_ready is not None:
        on_ready(*listeners[0].getsockname()[:2])
    return _Workers(config, models, listeners).run()


def _listen(host: str, port: int, workers: int) -> list[socket.socket]:
    """Listen once for each worker, and let the kernel spread connections over them.

    One socket for all would give most connections to the worker that wakes up first. The parent
    keeps every socket open, so that connections outlive the worker that did not take them.
    """
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=kind) as alone:  # is the port free?
            port = alone.getsockname()[1]
        listeners = [
            socket.create_server((host, port), family=kind, backlog=_BACKLOG, reuse_port=True)
            for _ in range(workers)
        ]
    except OSError as error:
        raise ValueError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
    # Made from its number, a socket knows its protocol: asyncio then sends small answers at once.
    return [socket.socket(fileno=listener.detach()) for listener in listeners]


class _Workers:
    def __init__(
        self,
        config: ServiceConfig,
        models: ModelCache,
        listeners: list[socket.socket],
    ) -> None:
        self._config, self._models, self._listeners = config, models, listeners
        self._processes: list[ForkProcess | None] = [None] * len(listeners)
        self._starts: list[list[float]] = [[] for _ in listeners]
        #: Since when each worker has held the lock, in shared memory.
        self._held = memoryview(mmap.mmap(-1, 8 * len(listeners))).cast("d")
        self._metrics = Metrics(len(listeners))
        self._stopping, self._code = False, 0

    def run(self) -> int:
        """Keep all workers running until a signal comes."""
        for name in _STOPPING:
            signal.signal(name, self._stop)
        gc.collect()
        gc.freeze()  # workers need not look through what was loaded for them again and again
        while not self._stopping or any(self._processes):
            for place, process in enumerate(self._processes):
                if process is not None and process.exitcode is None:
                    self._watch(place, process)
                else:
                    self._refill(place, process)
            time.sleep(0.05)
        return self._code

    def _stop(self, number: int = 0, frame: Any = None) -> None:
        self._stopping = True
        for process in filter(None, self._processes):
            process.terminate()

    def _watch(self, place: int, process: ForkProcess) -> None:
        """End a worker that holds the lock and does not go on."""
        since = self._held[place]
        if since and time.monotonic() - since > _LONGEST_HOLD:
            _log.warning("Worker %d held the lock for too long and is ended.", process.pid)
            process.kill()

    def _refill(self, place: int, ended: ForkProcess | None) -> None:
        """Start a worker in a place that is empty."""
        self._processes[place] = None
        if self._stopping:
            return
        if ended is not None:
            status = ended.exitcode
            _log.warning("Worker %d ended (status %s); starting another.", ended.pid, status)
        now = time.monotonic()
        self._starts[place] = [each for each in self._starts[place] if now - each < 60] + [now]
        if len(self._starts[place]) > _MOST_STARTS:
            _log.error("Workers end as soon as they start. Giving up.")
            self._code = 1
            self._stop()
            return
        self._held[place] = 0.0
        process = multiprocessing.get_context("fork").Process(target=self._work, args=(place,))
        # A signal must neither miss a worker that is just starting, nor find it in the worker still
        # handled as by the parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        process.start()
        self._processes[place] = process
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)

    def _work(self, place: int) -> None:
        for name in _STOPPING:
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        with contextlib.suppress(OSError, AttributeError):  # end with the parent (Linux)
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
        sys.setswitchinterval(_SWITCH)
        self._metrics.place = place
        service = Service(
            self._config,
            on_lock=lambda held: self._mark(place, held),
            models=self._models,
            metrics=self._metrics,
        )
        settings = uvicorn.Config(
            make_app(service),
            http=HttpProtocol,
            log_config=None,  # its messages are logged like ours
            log_level="warning",
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=_DRAIN,
            ws="none",
            proxy_headers=False,
            timeout_keep_alive=30,
        )
        uvicorn.Server(settings).run(sockets=[self._listeners[place]])

    def _mark(self, place: int, held: bool) -> None:
        self._held[place] = time.monotonic() if held else 0.0
