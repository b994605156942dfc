"""Decisions from PostgreSQL to PostgreSQL beside Parquet to Parquet: time and peak memory.

    python benchmarks/bench_databases.py                     # 10**6 rows, a server of its own
    python benchmarks/bench_databases.py --rows 100000 --address postgresql://ann@db.example/office

`shortlist flag` runs in a process of its own for each way, in turns, and both ways must decide
alike. Costs are the medians of the rounds; ratios are those of the database to the file. Without an
address, a server is started in a temporary folder, if PostgreSQL is installed; its own time and
memory are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow.parquet as pq

from bench_long_tables import make_rows, write_rows
from shortlist import Capacity
from shortlist.tables import fit_table, save_model


class Cost(NamedTuple):
    """What a process has taken."""

    seconds: float
    processor: float
    megabytes: float


# Read by the child from the kernel (Linux); ru_maxrss would remember the parent it was forked from.
_RUN = """
import re, resource, sys
from pathlib import Path
from shortlist.cli._app import app
try:
    app(sys.argv[1:])
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, int(peak) / 1024, file=sys.stderr)
"""


def flag(model: Path, source: str, out: str) -> Cost:
    """Run the command, and return what it took."""
    start = time.perf_counter()
    words = [sys.executable, "-c", _RUN, "--quiet", "flag", str(model), source, "-o", out]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"flag ended with {done.returncode}: {done.stderr}")
    seconds = time.perf_counter() - start
    return Cost(seconds, *map(float, done.stderr.splitlines()[-1].split()))


@contextlib.contextmanager
def database(address: str | None) -> Iterator[str]:
    """Yield the address of a database: the given one, or of a server of our own."""
    if address is not None:
        yield address
        return
    from tests.service.helpers import PostgresServer

    with tempfile.TemporaryDirectory() as folder:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server.new_database("bench")
        finally:
            server.stop()


def load(address: str, table: str, path: Path) -> None:
    """Copy a Parquet file into a new table."""
    import psycopg

    file = pq.ParquetFile(path)
    kinds = {"double": "DOUBLE PRECISION", "int64": "BIGINT"}
    typed = ", ".join(f'"{f.name}" {kinds[str(f.type)]}' for f in file.schema_arrow)
    with psycopg.connect(address) as link, link.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {table}, {table}_flags")
        cursor.execute(f"CREATE TABLE {table} ({typed})")
        with cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for batch in file.iter_batches(1 << 16):
                for row in zip(*batch.to_pydict().values(), strict=True):
                    copy.write_row(row)


def check(address: str, table: str, flags: Path) -> None:
    """Raise an error unless both ways have decided alike, and drop the table of answers."""
    import psycopg

    decided = pq.read_table(flags).to_pydict()
    want = dict(zip(decided["case"], decided["flagged"], strict=True))
    with psycopg.connect(address) as link:
        found = dict(link.execute(f'SELECT "case", flagged FROM {table}').fetchall())
        link.execute(f"DROP TABLE {table}")
    if found != want:
        raise SystemExit("the two ways decide differently")


def main() -> None:
    """Print what both ways took, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--address")
    given = parser.parse_args()
    costs: dict[str, list[Cost]] = {"Parquet": [], "PostgreSQL": []}
    with tempfile.TemporaryDirectory() as name, database(given.address) as address:
        folder = Path(name)
        make_rows(20_000, 0).to_csv(folder / "fit.csv", index=False)
        capacity = Capacity.fraction(0.01)
        known = {"target": "fraud", "id": "case", "capacity": capacity, "learner": "logistic"}
        save_model(fit_table(folder / "fit.csv", **known).model, folder / "m.model")
        rows, flags, table = folder / "rows.parquet", folder / "flags.parquet", "shortlist_bench"
        write_rows(rows, given.rows)
        load(address, table, rows)
        for _ in range(given.rounds):
            costs["Parquet"].append(flag(folder / "m.model", str(rows), str(flags)))
            answers = f"{address}#{table}_flags"
            costs["PostgreSQL"].append(flag(folder / "m.model", f"{address}#{table}", answers))
            check(address, f"{table}_flags", flags)
    print("| rows | from and to | seconds | processor, s | peak memory, MB |")
    print("| --- | --- | --- | --- | --- |")
    medians = {
        way: [statistics.median(each) for each in zip(*costs[way], strict=True)] for way in costs
    }
    for way, (seconds, processor, megabytes) in medians.items():
        print(f"| {given.rows:,} | {way} | {seconds:.1f} | {processor:.1f} | {megabytes:,.0f} |")
    ratios = [base / file for file, base in zip(*medians.values(), strict=True)]
    print(f"| {given.rows:,} | ratio | {' | '.join(f'{each:.2f}' for each in ratios)} |")


if __name__ == "__main__":
    main()
