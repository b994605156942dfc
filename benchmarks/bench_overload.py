"""A service that is asked for more than it can do: completed cases must not become fewer.

Connections send lists of cases one after the other, and a refused list (503) is sent again after
its Retry-After. Windows of all loads alternate, so that whatever else the machine does meets all.

    python benchmarks/bench_overload.py [seconds]

Beside it, single cases over one connection, and a bare echo of those.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_service import _CASE, _REQUEST, _echo, _service, _serving

LOADS = ((1, 1), (1, 1_024), (8, 1_024), (64, 1_024), (256, 1_024))  # connections, cases in a list
_LONGEST_PAUSE = 1.0


class Asker:
    """Sends lists over one connection until a moment, and counts those that are answered."""

    def __init__(self, port: int, name: str, size: int, end: float) -> None:
        self._port, self._name, self._size, self._end = port, name, size, end
        self.n_done = self.n_refused = 0
        self.seconds: list[float] = []

    async def run(self) -> None:
        """Ask one list after the other."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        with contextlib.closing(writer):
            number = 0
            while time.perf_counter() < self._end:
                started = time.perf_counter()
                status, pause = await self._ask(reader, writer, number)
                if status == 200:
                    self.seconds.append(time.perf_counter() - started)
                    self.n_done, number = self.n_done + 1, number + 1
                else:
                    self.n_refused += 1
                    await asyncio.sleep(min(pause, _LONGEST_PAUSE))

    async def _ask(self, reader: Any, writer: Any, number: int) -> tuple[int, float]:
        ids = (f"{self._name}-{number}-{place}".encode() for place in range(self._size))
        cases = [_CASE % (id, place % 97) for place, id in enumerate(ids)]
        body = cases[0] if self._size == 1 else b"[%s]" % b",".join(cases)
        writer.write(_REQUEST % (len(body), body))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(_header(head, b"content-length"))
        return int(head.split(b" ", 2)[1]), float(_header(head, b"retry-after"))


def _header(head: bytes, name: bytes) -> int:
    return int(head.partition(name + b":")[2].split(b"\r\n", 1)[0] or 0)


async def load(port: int, name: str, connections: int, size: int, seconds: float) -> dict[str, Any]:
    """Return what was completed and refused under one load."""
    end = time.perf_counter() + seconds
    askers = [Asker(port, f"{name}-{each}", size, end) for each in range(connections)]
    started = time.perf_counter()
    await asyncio.gather(*(asker.run() for asker in askers))
    took, done = time.perf_counter() - started, sum(asker.n_done for asker in askers)
    times = sorted(each for asker in askers for each in asker.seconds)
    return {
        "rate": size * done / took,
        "refused": sum(asker.n_refused for asker in askers) / took,
        "p50": 1e3 * times[len(times) // 2] if times else float("nan"),
    }


def main(seconds: float = 6.0) -> str:
    """Return a table of completed cases a second for each load."""
    from tests.service.helpers import fit_small_model

    rounds = 3
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        model = fit_small_model(Path(name))
        port, _ = stack.enter_context(_serving(_service, f"{name}/shortlist.db", model))
        echo, _ = stack.enter_context(_serving(_echo))
        found: dict[str, list[dict[str, Any]]] = {}
        for turn in range(rounds):
            for connections, size in LOADS:
                made = load(port, f"{turn}-{connections}-{size}", connections, size, seconds)
                found.setdefault(f"{connections} x {size:,}", []).append(asyncio.run(made))
            made = load(echo, f"{turn}", 1, 1, seconds)
            found.setdefault("echo, 1 x 1", []).append(asyncio.run(made))
    lines = ["| load | cases a second | refused lists a second | p50, ms |", "|---|---|---|---|"]
    for load_name, windows in found.items():
        middle = {key: statistics.median(each[key] for each in windows) for key in windows[0]}
        lines.append(
            f"| {load_name} | {middle['rate']:,.0f} | {middle['refused']:,.0f} | "
            f"{middle['p50']:,.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(float, sys.argv[1:])))
