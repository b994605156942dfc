"""The memory of the service over ten minutes under load, minute by minute.

Two workers on each store get lists of 64 new cases over 8 connections each, without a pause. A line
for each minute has the memory that the workers do not share with others (their private pages).

    python benchmarks/bench_memory.py [minutes] [--csv studies/service/memory.csv]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_load import load
from benchmarks.bench_service import _service, _serving

CONNECTIONS, SIZE = 8, 64


def _private(pid: int) -> list[float]:
    """Return the private memory of the workers of a service, in MB."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        lines = Path(f"/proc/{child}/smaps_rollup").read_text().splitlines()
        found.append(sum(int(each.split()[1]) for each in lines if each.startswith("Private")))
    return [round(each / 1_024, 1) for each in found]


async def _minute(ports: list[int], mark: str, seconds: float) -> list[int]:
    """Ask all services for a minute; return the cases that each decided."""
    loads = (load(port, mark, CONNECTIONS, SIZE, seconds) for port in ports)
    return [SIZE * each["n"] for each in await asyncio.gather(*loads)]


def main(minutes: int = 10, path: Path | None = None, seconds: float = 60.0) -> None:
    """Print a line for each store and minute."""
    from tests.service.helpers import PostgresServer, find_postgres, fit_small_model

    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        databases = {"SQLite": f"{name}/shortlist.db"}
        if find_postgres() is not None:
            server = PostgresServer(tempfile.mkdtemp(prefix="shortlist-bench-"))
            server.start()
            stack.callback(server.stop, "immediate")
            databases["PostgreSQL"] = server.new_database("shortlist")
        model = fit_small_model(Path(name))
        servers = {
            store: stack.enter_context(_serving(_service, database, model))
            for store, database in databases.items()
        }
        file = stack.enter_context(path.open("w", newline="")) if path else sys.stdout
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("store", "minute", "cases so far", "worker 1, MB", "worker 2, MB"))
        n_cases = dict.fromkeys(servers, 0)
        for minute in range(minutes + 1):
            for store, (_, pid) in servers.items():
                writer.writerow((store, minute, n_cases[store], *_private(pid)))
            file.flush()
            if minute < minutes:
                done = asyncio.run(
                    _minute([port for port, _ in servers.values()], f"{minute}", seconds)
                )
                for store, number in zip(servers, done, strict=True):
                    n_cases[store] += number


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=int, nargs="?", default=10)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    main(options.minutes, options.csv)
