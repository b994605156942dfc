"""The service under 1, 8, 64 and 256 connections, beside a bare echo in the same run.

Connections send single cases, or lists of 1,024, one after the other; a refused list (503) is sent
again after its Retry-After. Short windows of all servers and loads alternate, so that whatever else
the machine does meets all of them; each number is the median of its windows.

    python benchmarks/bench_load.py [seconds] [--rounds 5] [--before ../tree] [--csv load.csv]

`seconds` is the time of a window, and each round has one of them for every server and load; 256
connections with lists take some seconds more until all are answered. With `--before`, the service
of another tree is measured in the same windows. PostgreSQL is measured where it is installed,
beside bare inserts over 32 connections.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_service import (
    _Connection,
    _echo,
    _postgres_inserts,
    _processor_time,
    _service,
    _serving,
    _wait_until_ready,
)

CONNECTIONS, SIZES = (1, 8, 64, 256), (1, 1_024)
_ALONE = """
import os, sys
from pathlib import Path
from benchmarks.bench_service import _service
from tests.service.helpers import fit_small_model

folder = Path(sys.argv[3])
folder.mkdir()
_service(int(sys.argv[1]), sys.argv[2], fit_small_model(folder))
"""

Row = dict[str, Any]


async def load(port: int, name: str, connections: int, size: int, seconds: float) -> Row:
    """Return what was completed and refused under one load."""
    loop, times, made, waiting = asyncio.get_running_loop(), [], [], []
    started = time.perf_counter()
    for number in range(connections):
        waiting.append(loop.create_future())
        args = f"{name}-{number}", size, started + seconds, times, waiting[-1]
        _, each = await loop.create_connection(
            lambda args=args: _Connection(*args), "127.0.0.1", port
        )
        made.append(each)
    await asyncio.gather(*waiting)
    took = time.perf_counter() - started
    milliseconds = sorted(1e3 * each for each in times) or [math.nan]  # if all were refused
    return {
        "cases a second": round(size * len(times) / took),
        "p50, ms": round(milliseconds[len(milliseconds) // 2], 2),
        "p99, ms": round(milliseconds[int(0.99 * len(milliseconds))], 2),
        "refused a second": round(sum(each.n_refused for each in made) / took, 1),
        "n": max(len(times), 1),
    }


@contextlib.contextmanager
def _of_tree(tree: Path, database: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Run the service of another tree, and give its port and its process."""
    from tests.service.helpers import free_port

    port, env = free_port(), {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}
    command = [sys.executable, "-c", _ALONE, str(port), database, str(folder)]
    server = subprocess.Popen(command, cwd=tree, env=env, start_new_session=True)
    try:
        asyncio.run(_wait_until_ready(port))
        yield port, server.pid
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def main(seconds: float = 2.0, before: Path | None = None, rounds: int = 5) -> list[Row]:
    """Return a row for each server and load."""
    from tests.service.helpers import PostgresServer, find_postgres, fit_small_model

    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, servers = Path(name), {}
        databases = {"SQLite": str(folder / "shortlist.db")}
        old = {"SQLite": str(folder / "before.db")}
        floor = None
        if find_postgres() is not None:
            server = PostgresServer(tempfile.mkdtemp(prefix="shortlist-bench-"))
            server.start()
            stack.callback(server.stop, "immediate")
            databases["PostgreSQL"] = server.new_database("now")
            old["PostgreSQL"], floor = server.new_database("before"), server.new_database("floor")
        model = fit_small_model(folder)
        servers["echo"] = stack.enter_context(_serving(_echo))
        for store, database in databases.items():
            servers[store] = stack.enter_context(_serving(_service, database, model))
            if before is not None:
                made = _of_tree(before.resolve(), old[store], folder / f"before-{store}")
                servers[f"{store}, before"] = stack.enter_context(made)
        return _measure(servers, floor, seconds, rounds)


def _measure(
    servers: dict[str, tuple[int, int]], floor: str | None, seconds: float, rounds: int
) -> list[Row]:
    windows: dict[tuple[str, int, int], list[Row]] = {}
    for turn in range(rounds):
        if floor is not None:
            rate = round(_postgres_inserts(floor, seconds))
            windows.setdefault(("PostgreSQL, bare inserts", 32, 1), []).append(
                {"cases a second": rate}
            )
        for size in SIZES:
            for connections in CONNECTIONS:
                for server, (port, pid) in servers.items():
                    spent, mark = _processor_time(pid), f"{turn}-{connections}-{size}"
                    row = asyncio.run(load(port, mark, connections, size, seconds))
                    spent = _processor_time(pid) - spent
                    row["processor µs a case"] = round(1e6 * spent / (size * row.pop("n")), 1)
                    windows.setdefault((server, connections, size), []).append(row)
    return [_row(*key, found, windows) for key, found in windows.items()]


def _row(server: str, connections: int, size: int, found: list[Row], windows: Any) -> Row:
    """Return the medians of the windows of a load, and of their ratios to those of the echo."""
    row: Row = {"server": server, "connections": connections, "cases in a list": size}
    row |= {name: statistics.median(each[name] for each in found) for name in found[0]}
    rates = [each["cases a second"] for each in found]
    for name, other in (
        ("of the echo", ("echo", connections, size)),
        ("of bare inserts", ("PostgreSQL, bare inserts", 32, 1)),
    ):
        if other in windows and (other[0] == "echo" or server.startswith("PostgreSQL")):
            ratios = [
                rate / each["cases a second"]
                for rate, each in zip(rates, windows[other], strict=True)
            ]
            row[name] = round(statistics.median(ratios), 2)
    return row


def write(rows: list[Row], file: Any) -> None:
    """Write the rows as CSV."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    rows = main(options.seconds, options.before, options.rounds)
    write(rows, sys.stdout)
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            write(rows, file)
