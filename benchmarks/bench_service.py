"""The decision service beside its floors: a bare echo, and bare inserts, in one run.

Two workers, 64 connections, everything on the loopback address. All servers stay up, and short
windows of load alternate between them and the floors, so that whatever else the machine does meets
all of them. Each ratio is the median of the ratios of neighbouring windows.

    python benchmarks/bench_service.py [seconds] [--sync-ms 2]

`seconds` is the time of each server. PostgreSQL is started in a folder of its own, where it is
installed. Some disks say at once that they have written everything; with `--sync-ms`, every sync
takes so many milliseconds longer, for the floors and for the service alike.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

CONNECTIONS, WORKERS, IN_A_LIST = 64, 2, 64
_REQUEST = (
    b"POST /v1/queues/default/decisions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
)
_CASE = b'{"id":"%s","amount":%d,"country":"DE"}'

Window = dict[str, float]
#: What is measured, of the windows of one round, and what is wanted.
_CHECKS: dict[str, tuple[Callable[[dict[str, Window]], float], str]] = {
    "SQLite decisions / echo": (lambda r: r["sqlite"]["rate"] / r["echo"]["rate"], ">= 0.3"),
    "SQLite decisions / single inserts": (
        lambda r: r["sqlite"]["rate"] / r["sqlite inserts"]["rate"],
        ">= 8",
    ),
    "SQLite decisions in lists / single inserts": (
        lambda r: r["sqlite lists"]["rate"] / r["sqlite inserts"]["rate"],
        ">= 8",
    ),
    "SQLite decisions in lists / echo": (
        lambda r: r["sqlite lists"]["rate"] / r["echo"]["rate"],
        "",
    ),
    "SQLite decisions / single inserts of a service": (
        lambda r: r["sqlite"]["rate"] / r["sqlite service inserts"]["rate"],
        "",
    ),
    "echo / single inserts": (lambda r: r["echo"]["rate"] / r["sqlite inserts"]["rate"], ""),
    "SQLite processor time / echo": (lambda r: r["sqlite"]["cpu"] / r["echo"]["cpu"], "<= 3"),
    "SQLite p99 / p50": (lambda r: r["sqlite"]["p99"] / r["sqlite"]["p50"], "<= 6"),
    "PostgreSQL decisions / inserts": (
        lambda r: r["postgres"]["rate"] / r["postgres inserts"]["rate"],
        ">= 0.6",
    ),
    "PostgreSQL decisions in lists / inserts": (
        lambda r: r["postgres lists"]["rate"] / r["postgres inserts"]["rate"],
        "",
    ),
    "PostgreSQL processor time / echo": (lambda r: r["postgres"]["cpu"] / r["echo"]["cpu"], "<= 3"),
    "PostgreSQL p99 / p50": (lambda r: r["postgres"]["p99"] / r["postgres"]["p50"], "<= 6"),
}
_NAMES = {
    "echo": "Starlette echo",
    "sqlite inserts": "single inserts into SQLite, each with its sync",
    "sqlite service inserts": (
        "single inserts into SQLite by 2 processes with 4 connections each, in its default journal "
        "mode, each with its own commit"
    ),
    "sqlite": "decisions on SQLite",
    "sqlite lists": f"decisions on SQLite, in lists of {IN_A_LIST}",
    "postgres inserts": "single inserts into PostgreSQL over 32 connections",
    "postgres": "decisions on PostgreSQL",
    "postgres lists": f"decisions on PostgreSQL, in lists of {IN_A_LIST}",
}


def main(seconds: float = 8.0) -> str:
    """Return a table of decisions per second, latencies and processor time."""
    from tests.service.helpers import fit_small_model

    n_rounds = max(3, round(seconds))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        model = fit_small_model(folder)
        windows = _windows(folder, model, seconds / n_rounds, stack)
        rounds = [
            {name: measure(f"{number}") for name, measure in windows.items()}
            for number in range(n_rounds)
        ]
        forest, sync = _forest(folder), _sync_time(folder)
    return _table(rounds, forest, sync)


def _windows(
    folder: Path, model: Path, seconds: float, stack: contextlib.ExitStack
) -> dict[str, Callable[[str], Window]]:
    """Start all servers, and return what measures each of them, and each floor, for a while."""
    from tests.service.helpers import PostgresServer, find_postgres

    def started(serve: Any, *args: Any) -> tuple[int, int]:
        return stack.enter_context(_serving(serve, *args))

    def loaded(server: tuple[int, int], size: int = 1) -> Callable[[str], Window]:
        return lambda name: _loaded(*server, seconds, f"{name}-{size}", size)

    def floor(rate: Callable[[float], float]) -> Callable[[str], Window]:
        return lambda name: {"rate": rate(seconds / 2)}

    embedded = started(_service, str(folder / "shortlist.db"), model)
    found: dict[str, Callable[[str], Window]] = {
        "echo": loaded(started(_echo)),
        "sqlite inserts": floor(lambda time: _sqlite_inserts(folder / "floor.db", time)),
        "sqlite service inserts": floor(lambda time: _service_inserts(folder / "by-hand.db", time)),
        "sqlite": loaded(embedded),
        "sqlite lists": loaded(embedded, IN_A_LIST),
    }
    if find_postgres() is None:
        return found
    server = PostgresServer(tempfile.mkdtemp(prefix="shortlist-bench-"))
    server.start()
    stack.callback(server.stop, "immediate")
    address = server.new_database("floor")
    found["postgres inserts"] = floor(lambda time: _postgres_inserts(address, time))
    remote = started(_service, server.new_database("shortlist"), model)
    found["postgres"], found["postgres lists"] = loaded(remote), loaded(remote, IN_A_LIST)
    return found


def _table(rounds: list[dict[str, Window]], forest: float, sync: float) -> str:
    lines = [
        "| | per second | p50, ms | p99, ms | processor µs per request |",
        "|---|---|---|---|---|",
    ]
    for name in rounds[0]:
        columns = {
            key: statistics.median(each[name][key] for each in rounds) for key in rounds[0][name]
        }
        rest = [f"{columns[key]:.0f}" if key in columns else "" for key in ("p50", "p99", "cpu")]
        lines.append(f"| {_NAMES[name]} | {columns['rate']:,.0f} | {' | '.join(rest)} |")
    lines += ["", "| | measured | from | to | wanted |", "|---|---|---|---|---|"]
    for name, (ratio, wanted) in _CHECKS.items():
        with contextlib.suppress(KeyError):  # PostgreSQL may not be there
            ratios = [ratio(each) for each in rounds]
            middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
            lines.append(f"| {name} | {middle:.2f} | {low:.2f} | {high:.2f} | {wanted} |")
    lines.append(f"| a forest's score of one line of JSON, ms | {forest:.2f} | | | <= 1 |")
    lines.append(f"| one sync of the disk, ms | {sync:.2f} | | | |")
    return "\n".join(lines)


# --- servers --------------------------------------------------------------------------------------


def _echo(port: int) -> None:
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def echo(request: Any) -> Response:
        content = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(content), media_type="application/json")

    app = Starlette(routes=[Route("/v1/queues/default/decisions", echo, methods=["POST"])])
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(2_048)
    for _ in range(WORKERS):
        if os.fork() == 0:
            config = uvicorn.Config(app, log_level="error", access_log=False)
            asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
            os._exit(0)
    signal.pause()


def _service(port: int, database: str, model: Path) -> None:
    from shortlist.service.settings import ServiceConfig
    from shortlist.service.setup import prepare
    from shortlist.service.supervisor import run_service

    models = prepare(database, model, {"default": 50}, period=86_400.0)
    config = ServiceConfig(database)
    run_service(config, host="127.0.0.1", port=port, workers=WORKERS, models=models)


@contextlib.contextmanager
def _serving(serve: Any, *args: Any) -> Iterator[tuple[int, int]]:
    """Run a server, and give its port and its process."""
    from tests.service.helpers import free_port

    port, context = free_port(), multiprocessing.get_context("spawn")
    server = context.Process(target=_in_group, args=(serve, port, *args))
    server.start()
    assert server.pid is not None
    try:
        asyncio.run(_wait_until_ready(port))
        asyncio.run(_load(port, 1.0, "warm"))
        yield port, server.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.join()


def _loaded(port: int, pid: int, seconds: float, name: str, size: int) -> Window:
    """Return the rate of a server under load, its latencies and its processor time."""
    before = _processor_time(pid)
    times = sorted(asyncio.run(_load(port, seconds, name, size=size)))
    return {
        "rate": size * len(times) / seconds,
        "p50": 1e3 * times[len(times) // 2],
        "p99": 1e3 * times[int(0.99 * len(times))],
        "cpu": 1e6 * (_processor_time(pid) - before) / len(times),
    }


def _in_group(serve: Any, port: int, *args: Any) -> None:
    os.setsid()
    serve(port, *args)


def _processor_time(pid: int) -> float:
    """Return the processor time of a process and its children, in seconds."""
    total, left = 0.0, [pid]
    while left:
        each = left.pop()
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            children = Path(f"/proc/{each}/task/{each}/children").read_text()
            left += [int(child) for child in children.split()]
    return total


# --- load -----------------------------------------------------------------------------------------


async def _wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            if await _load(port, 0.0, "first", connections=1):
                return
        await asyncio.sleep(0.1)
    raise TimeoutError("the server does not start")


class _Connection(asyncio.Protocol):
    """Sends one request after the other; a protocol costs much less than streams."""

    def __init__(self, prefix: str, size: int, end: float, times: list[float], done: Any) -> None:
        self._prefix, self._size, self._end = prefix, size, end
        self._times, self._done, self._count, self._buffer = times, done, 0, b""
        self.n_refused = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._count += 1
        cases = [
            _CASE % (f"{self._prefix}-{self._count}-{place}".encode(), (self._count + place) % 97)
            for place in range(self._size)
        ]
        body = cases[0] if self._size == 1 else b"[%s]" % b",".join(cases)
        self._start = time.perf_counter()
        self._transport.write(_REQUEST % (len(body), body))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self._buffer = b""
        now = time.perf_counter()
        if head.startswith(b"HTTP/1.1 503") and now < self._end:
            self.n_refused += 1
            asyncio.get_running_loop().call_later(1.0, self._send)  # as its Retry-After says
            return
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503")):
            self._done.set_exception(ValueError(f"refused: {body[:200]!r}"))
            return
        if head.startswith(b"HTTP/1.1 200"):
            self._times.append(now - self._start)
        if now < self._end:
            self._send()
        else:
            self._done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError("the server closed the connection"))


async def _load(
    port: int, seconds: float, name: str, *, connections: int = CONNECTIONS, size: int = 1
) -> list[float]:
    """Send cases, or lists of them, over many connections, one after the other on each."""
    loop, times = asyncio.get_running_loop(), []
    end, waiting = time.perf_counter() + seconds, []
    for number in range(connections):
        done = loop.create_future()
        made = _Connection(f"{name}-{number}", size, end, times, done)
        await loop.create_connection(lambda made=made: made, "127.0.0.1", port)
        waiting.append(done)
    await asyncio.gather(*waiting)
    return times


# --- floors ---------------------------------------------------------------------------------------

_ROW = (1, 0, 1, 1.0, 1, "x" * 16, 0.5, 0.9, 0)


def _sqlite_inserts(path: Path, seconds: float) -> float:
    """Return single-row inserts per second, each with its own commit that waits for the disk."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("PRAGMA journal_mode = WAL")
        link.execute("PRAGMA synchronous = FULL")
        link.execute(
            "CREATE TABLE IF NOT EXISTS log (a, seq INTEGER PRIMARY KEY, c, d, e, f, g, h, i)"
        )
        count, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            count += 1
            link.execute("INSERT INTO log VALUES (?,?,?,?,?,?,?,?,?)", (1, None, *_ROW[2:]))
        return count / seconds


def _service_inserts(path: Path, seconds: float) -> float:
    """Return the inserts per second of a service by hand: processes, threads, no journal mode."""
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.execute("CREATE TABLE IF NOT EXISTS log (a, b, c, d, e, f, g, h, i)")
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        counts = pool.starmap(_insert_like_a_service, [(path, seconds)] * 2)
    return sum(counts) / seconds


def _insert_like_a_service(path: Path, seconds: float, connections: int = 4) -> int:
    counts, end = [0] * connections, time.perf_counter() + seconds

    def insert(place: int) -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
            while time.perf_counter() < end:
                with contextlib.suppress(sqlite3.OperationalError):  # locked for too long
                    link.execute("INSERT INTO log VALUES (?,?,?,?,?,?,?,?,?)", _ROW)
                    counts[place] += 1

    _in_threads(insert, connections)
    return sum(counts)


def _in_threads(work: Callable[[int], None], n: int) -> None:
    threads = [threading.Thread(target=work, args=(place,)) for place in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _sync_time(folder: Path, n: int = 50) -> float:
    """Return the milliseconds until the disk has a page, the median of a few."""
    times = []
    with (folder / "page").open("wb", buffering=0) as file:
        for _ in range(n):
            file.seek(0)
            file.write(b"x" * 4_096)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def _postgres_inserts(address: str, seconds: float) -> float:
    """Return single-row inserts per second over 32 connections of two processes."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as link:
        link.execute(
            "CREATE TABLE IF NOT EXISTS log (id BIGSERIAL PRIMARY KEY, a INT, b INT, c INT, "
            "d FLOAT8, e INT, f TEXT, g FLOAT8, h FLOAT8, i INT)"
        )
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        counts = pool.starmap(_insert_in_threads, [(address, seconds)] * 2)
    return sum(counts) / seconds


def _insert_in_threads(address: str, seconds: float) -> int:
    import psycopg

    counts = [0] * (CONNECTIONS // 4)
    links = [psycopg.connect(address, autocommit=True) for _ in counts]
    end = time.perf_counter() + seconds
    statement = f"INSERT INTO log (a,b,c,d,e,f,g,h,i) VALUES ({', '.join(['%s'] * 9)})"

    def insert(place: int) -> None:
        while time.perf_counter() < end:
            links[place].execute(statement, _ROW)
            counts[place] += 1

    _in_threads(insert, len(counts))
    return sum(counts)


def _forest(folder: Path) -> float:
    """Return the milliseconds of processor time from a line of JSON to a forest's score."""
    from shortlist import Capacity
    from shortlist.service._models import LoadedModel
    from shortlist.tables import fit_table

    capacity = Capacity.fraction(0.1)
    fitted = fit_table(folder / "cases.csv", target="fraud", capacity=capacity, learner="forest")
    model = LoadedModel(1, fitted.model)
    lines = [_CASE % (b"a", amount) for amount in range(200)]
    for line in lines[:5]:
        model.score([model.read(json.loads(line))])
    start = time.process_time()
    for line in lines:
        model.score([model.read(json.loads(line))])
    return 1e3 * (time.process_time() - start) / len(lines)


# --- a disk that takes its time -------------------------------------------------------------------

_SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static int slowly(const char *name, int fd) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    usleep(atoi(getenv("SYNC_US")));
    return sync(fd);
}
int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
"""


def _run_with_slow_sync(seconds: float, milliseconds: float) -> None:
    """Run all of this again, with a library that lets every sync wait."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # PostgreSQL runs as another user
        source, library = Path(name, "slow.c"), Path(name, "slow.so")
        source.write_text(_SLOW_SYNC)
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", source, "-o", library, "-ldl"], check=True)
        slow = {"LD_PRELOAD": str(library), "SYNC_US": str(round(1e3 * milliseconds))}
        command = [sys.executable, __file__, str(seconds)]
        subprocess.run(command, check=True, env={**os.environ, **slow})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=8.0)
    parser.add_argument("--sync-ms", type=float, default=0.0)
    options = parser.parse_args()
    if options.sync_ms:
        _run_with_slow_sync(options.seconds, options.sync_ms)
    else:
        print(main(options.seconds))
