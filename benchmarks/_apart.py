"""Functions that run in another process, with limits of time and memory, and what they cost."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Cost(NamedTuple):
    """Seconds on the wall, of processor time, and the peak of memory in megabytes."""

    seconds: float
    cpu: float
    peak: float


class Failed(Exception):
    """What the other process could not do, in words."""


class Apart:
    """A process in a session of its own, whose children are counted and ended with it.

    Parameters
    ----------
    seconds, megabytes : float
        A call that takes more is ended, and the next one starts another process.
    """

    def __init__(self, *, seconds: float, megabytes: float) -> None:
        self._seconds, self._megabytes = seconds, megabytes
        self._process: Any = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Cost]:
        """Return what a function returns there, and its cost; Failed says why it did not."""
        if self._process is None:
            self._start()
        cpu, start, peak = self._cpu(), time.perf_counter(), 0.0
        self._pipe.send((function, arguments))
        while not self._pipe.poll(0.2):
            peak = max(peak, self._memory())
            if time.perf_counter() - start > self._seconds:
                raise self._ended(f"out of time after {self._seconds:.0f} s")
            if peak > self._megabytes:
                raise self._ended(f"out of memory at {self._megabytes:,.0f} MB")
        try:
            answer, error, seconds, own, highest = self._pipe.recv()
        except EOFError:
            raise self._ended("its process was killed, perhaps for its memory") from None
        if error is not None:
            raise self._ended(error)
        return answer, Cost(seconds, own + self._cpu() - cpu, max(peak, highest))

    def stop(self) -> None:
        """End the process and its children."""
        if self._process is not None:
            for pid, *_ in self._family():
                os.kill(pid, signal.SIGKILL)
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,))
        self._process.start()
        there.close()
        self._pipe.recv()  # it has its session

    def _ended(self, words: str) -> Failed:
        self.stop()
        return Failed(words)

    def _cpu(self) -> float:
        """Return the time of all other processes of the session; its own it measures better."""
        return sum(cpu for pid, cpu, _ in self._family() if pid != self._process.pid)

    def _memory(self) -> float:
        return sum(memory for *_, memory in self._family())

    def _family(self) -> Iterator[tuple[int, float, float]]:
        """Return process number, seconds and megabytes of all processes of the session."""
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                try:
                    said = (path / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has ended
                    continue
                if int(said[3]) == self._process.pid:
                    cpu = sum(map(int, said[11:15])) / _TICKS  # with children that have ended
                    yield int(path.name), cpu, int(said[21]) * _PAGE / 2**20


def _serve(pipe: Any) -> None:
    os.setsid()
    pipe.send("ready")
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        start, cpu = time.perf_counter(), time.process_time()
        try:
            answer, error = function(*arguments), None
        except Exception as raised:
            answer, error = None, _words(raised)
        costs = (time.perf_counter() - start, time.process_time() - cpu)
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pipe.send((answer, error, *costs, highest))


def _words(error: Exception) -> str:
    if isinstance(error, MemoryError) or "OutOfMemory" in str(error):
        return "out of memory"
    return f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
