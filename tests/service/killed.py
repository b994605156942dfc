"""A service in a process of its own, with a clock that a test sets, which SIGKILL ends."""

import multiprocessing
import os
import signal
import time

import httpx

from shortlist.service import _service
from shortlist.service._postgres import PostgresStore
from shortlist.service.settings import SteadyClock
from shortlist.service.store import Store
from tests.service.helpers import serving

# Its server has loaded everything: a new process begins at once. It has no threads.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.service.warm"])
_NEVER, _SOON = 1 << 30, 180.0


class KilledService:
    """A service that ends by SIGKILL at a commit, before it or just after; and starts again."""

    def __init__(self, address, wall):
        self.address = address
        self._wall = _PROCESSES.RawValue("d", wall)
        self._commits = _PROCESSES.RawArray("q", [_NEVER, 0])
        self.process = self.client = None

    def start(self):
        """Start the process; it finds everything as it was."""
        self._commits[0] = _NEVER
        here, there = _PROCESSES.Pipe(duplex=False)
        arguments = (self.address, self._wall, self._commits, there)
        self.process = _PROCESSES.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        assert here.poll(_SOON), "The service does not start."
        self.client = httpx.Client(base_url=here.recv(), timeout=_SOON)

    def start_again(self):
        """Start another process after the first one was killed."""
        self.process.join(_SOON)
        assert self.process.exitcode == -signal.SIGKILL
        self.stop()
        self.start()

    def stop(self):
        """End the process."""
        self.client.close()
        self.process.kill()
        self.process.join()

    def set_clock(self, wall):
        """Set the clock of the service."""
        self._wall.value = wall

    def kill_soon(self, commits, *, is_late):
        """Kill the process at a later commit, before it or just after."""
        self._commits[1] = is_late
        self._commits[0] = commits


def _serve(address, wall, commits, told):
    time.time = lambda: wall.value
    _service._FRESH = 1e9  # nothing happens but what is asked
    _end_at(Store, "finish", commits)
    _end_at(PostgresStore, "commit", commits)
    clock = SteadyClock(1e9, wall=lambda: wall.value, steady=lambda: wall.value)
    with serving(address, None, clock=clock, accept_clock=True) as client:
        told.send(str(client.base_url))
        signal.pause()


def _end_at(store, name, commits):
    """Let the process end when a store has committed so often, by all its ways to do so."""
    commit = getattr(store, name)

    def end(self, *args):
        commits[0] -= 1
        if commits[0] == 0 and not commits[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        found = commit(self, *args)
        if commits[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(store, name, end)
