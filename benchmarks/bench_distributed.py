"""The exact cut of a table that is not in memory, beside what engines offer themselves.

    python benchmarks/bench_distributed.py                    # 10**6 and 10**7 rows
    python benchmarks/bench_distributed.py --rows 1000000 10000000 100000000

Scores lie in a Parquet file, continuous and tied (rounded to 1/500). Each way lists 100,000 rows.
"off" is the number of flags beyond or below 100,000, "others" the number of listed rows that the
exact list does not have: which rows a sort and a limit take from a tied block is chance. Every way
runs in a process of its own, first on a small table, then three times (Spark once); the shortest
counts. Times are of the work alone, memory is the peak of the process. "cpu" is processor time of
that process with its threads, which a busy machine disturbs less; Spark works in another process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

K = 100_000
_PART = 1_000_000
_TURNS = 3


def write_table(path: Path, n_rows: int) -> None:
    """Write ids, continuous scores and tied scores, in pieces."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n_rows, _PART):
        n = min(_PART, n_rows - start)
        scores = rng.random(n)
        columns = {
            "id": np.arange(start, start + n),
            "smooth": scores,
            "tied": np.round(scores * 500) / 500,
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


# --- ways to list K rows: each returns the ids ---


def numpy_after_reading(path: Path, score: str) -> tuple[Any, float, float]:
    """Return the exact list from arrays in memory; only the selection is timed."""
    from shortlist import Capacity, select

    table = pq.read_table(path, columns=["id", score])
    ids, scores = table["id"].to_numpy(), table[score].to_numpy()
    start, cpu = time.perf_counter(), time.process_time()
    listed = ids[select(scores, Capacity.count(K), ids=ids)]
    return listed, time.perf_counter() - start, time.process_time() - cpu


def argpartition_after_reading(path: Path, score: str) -> tuple[Any, float, float]:
    """Return the list that plain NumPy gives: K rows, any of the tied ones."""
    table = pq.read_table(path, columns=["id", score])
    ids, scores = table["id"].to_numpy(), table[score].to_numpy()
    start, cpu = time.perf_counter(), time.process_time()
    listed = ids[np.argpartition(scores, scores.size - K)[-K:]]
    return listed, time.perf_counter() - start, time.process_time() - cpu


def streamed(path: Path, score: str) -> Any:
    """Return the exact list, read block by block."""
    from shortlist import Capacity
    from shortlist.distributed import select

    return select(path, Capacity.count(K), score=score, id="id")["id"].to_numpy()


def streamed_cut(path: Path, score: str) -> Any:
    """Find the exact cut alone, value and tie key, and list nothing."""
    from shortlist import Capacity
    from shortlist.distributed import LocalEngine, find_list

    find_list(LocalEngine(), path, Capacity.count(K), score=score, id="id")
    return np.empty(0)


def scan(path: Path, score: str) -> Any:
    """Read one column, and list nothing."""
    for batch in pq.ParquetFile(path).iter_batches(columns=[score]):
        np.max(batch.column(0).to_numpy())
    return np.empty(0)


def duckdb_limit(path: Path, score: str) -> Any:
    """Sort and limit."""
    import duckdb

    query = f"select id from '{path}' order by {score} desc limit {K}"
    return duckdb.sql(query).fetchnumpy()["id"]


def duckdb_quantile(path: Path, score: str) -> Any:
    """Cut at an approximate quantile."""
    import duckdb

    n_rows = pq.ParquetFile(path).metadata.num_rows
    found = duckdb.sql(f"select approx_quantile({score}, {1 - K / n_rows}) from '{path}'")
    ((value,),) = found.fetchall()
    return duckdb.sql(f"select id from '{path}' where {score} > {value!r}").fetchnumpy()["id"]


def polars_top(path: Path, score: str) -> Any:
    """Take the top of a lazy frame."""
    import polars as pl

    return pl.scan_parquet(path).top_k(K, by=score).select("id").collect()["id"].to_numpy()


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the executors have the same packages
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def spark_ours(path: Path, score: str) -> tuple[Any, float]:
    """Return the exact list by mapInArrow."""
    import shortlist.spark
    from shortlist import Capacity

    df = _session().read.parquet(str(path))
    start = time.perf_counter()
    listed = shortlist.spark.select(df, Capacity.count(K), score=score, id="id")
    ids = listed.select("id").toPandas()["id"].to_numpy()
    return ids, time.perf_counter() - start


def spark_cut(path: Path, score: str) -> tuple[Any, float]:
    """Find the exact cut alone, value and tie key, and list nothing."""
    import shortlist.spark
    from shortlist import Capacity
    from shortlist.distributed import find_list

    df = _session().read.parquet(str(path))
    start = time.perf_counter()
    find_list(shortlist.spark.SparkEngine(), df, Capacity.count(K), score=score, id="id")
    return np.empty(0), time.perf_counter() - start


def spark_scan(path: Path, score: str) -> tuple[Any, float]:
    """Read one column, and list nothing."""
    df = _session().read.parquet(str(path))
    start = time.perf_counter()
    df.selectExpr(f"max({score})").first()
    return np.empty(0), time.perf_counter() - start


def spark_limit(path: Path, score: str) -> tuple[Any, float]:
    """Sort and limit."""
    df = _session().read.parquet(str(path))
    start = time.perf_counter()
    ids = df.orderBy(df[score].desc()).limit(K).select("id").toPandas()["id"].to_numpy()
    return ids, time.perf_counter() - start


def spark_quantile(path: Path, score: str) -> tuple[Any, float]:
    """Cut at an approximate quantile, with Spark's default accuracy."""
    session = _session()
    df, n_rows = session.read.parquet(str(path)), pq.ParquetFile(path).metadata.num_rows
    start = time.perf_counter()
    (value,) = df.selectExpr(f"percentile_approx({score}, {1 - K / n_rows})").first()
    ids = df.where(df[score] > value).select("id").toPandas()["id"].to_numpy()
    return ids, time.perf_counter() - start


def dask_ours(path: Path, score: str) -> Any:
    """Return the exact list on partitions of Dask."""
    import dask.dataframe as dd

    import shortlist.dask
    from shortlist import Capacity

    df = dd.read_parquet(path)
    listed = shortlist.dask.select(df, Capacity.count(K), score=score, id="id")
    return listed["id"].compute().to_numpy()


def dask_largest(path: Path, score: str) -> Any:
    """Take the largest of each partition, and of these."""
    import dask.dataframe as dd

    df = dd.read_parquet(path, columns=["id", score])
    return df.nlargest(K, columns=score).compute()["id"].to_numpy()


def dask_quantile(path: Path, score: str) -> Any:
    """Cut at an approximate quantile."""
    import dask.dataframe as dd

    df, n_rows = dd.read_parquet(path), pq.ParquetFile(path).metadata.num_rows
    value = df[score].quantile(1 - K / n_rows).compute()
    return df[df[score] > value]["id"].compute().to_numpy()


WAYS: dict[str, Callable[[Path, str], Any]] = {
    "numpy": numpy_after_reading,
    "numpy partition": argpartition_after_reading,
    "stream": streamed,
    "stream cut": streamed_cut,
    "scan": scan,
    "duckdb limit": duckdb_limit,
    "duckdb quantile": duckdb_quantile,
    "polars top_k": polars_top,
    "spark scan": spark_scan,
    "spark cut": spark_cut,
    "spark": spark_ours,
    "spark limit": spark_limit,
    "spark quantile": spark_quantile,
    "dask": dask_ours,
    "dask nlargest": dask_largest,
    "dask quantile": dask_quantile,
}


_IMPORTED = {
    "numpy": ("shortlist.thresholds",),
    "stream": ("shortlist.distributed", "pyarrow.dataset"),
    "duckdb": ("duckdb",),
    "polars": ("polars",),
    "spark": ("pyspark.sql", "shortlist.spark"),
    "dask": ("dask.dataframe", "shortlist.dask"),
}


def _measure(way: str, path: Path, score: str, out: Any) -> None:
    for module in _IMPORTED.get(way.split()[0], ()):
        importlib.import_module(module)
    WAYS[way](path.with_name("small.parquet"), score)  # imports, compilers and workers have started
    answers = [_timed(way, path, score) for _ in range(1 if "spark" in way else _TURNS)]
    seconds, cpu = np.min([times for _, *times in answers], axis=0).tolist()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    out.send((np.asarray(answers[0][0]), seconds, cpu, peak))


def _timed(way: str, path: Path, score: str) -> tuple[Any, float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    answer = WAYS[way](path, score)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    if not isinstance(answer, tuple):
        return answer, seconds, cpu
    answer, seconds, *own = answer
    return answer, seconds, own[0] if own else float("nan")


def measured(way: str, path: Path, score: str) -> tuple[Any, float, float, float]:
    """Run one way in a process of its own; return ids, seconds, processor time and megabytes."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(way, path, score, there))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:  # the process failed, and has said why
        return np.empty(0), float("nan"), float("nan"), float("nan")
    finally:
        process.join()


def compare(path: Path, n_rows: int, score: str, ways: list[str]) -> list[dict[str, Any]]:
    """Measure all ways on one column, and compare their lists with the exact one."""
    reference = measured("numpy", path, score)
    exact, rows = reference[0], []
    for way in ways:
        ids, seconds, cpu, peak = reference if way == "numpy" else measured(way, path, score)
        row = {"rows": n_rows, "scores": score, "way": way, "seconds": seconds, "cpu": cpu}
        row["MB"] = peak
        if ids.size:
            row |= {"off": ids.size - K, "others": int((~np.isin(ids, exact)).sum())}
        print(
            f"{n_rows:>11,} {score:>7} {way:>16} {seconds:8.2f} s {cpu:7.2f} s "
            f"{row['MB']:6,.0f} MB {row.get('off', ''):>8} {row.get('others', ''):>8}",
            flush=True,
        )
        rows.append(row)
    print_ratios({row["way"]: row for row in rows})
    return rows


RATIOS = [
    ("stream cut", "scan"),
    ("stream cut", "numpy"),
    ("stream cut", "numpy partition"),
    ("stream", "duckdb limit"),
    ("stream", "polars top_k"),
    ("spark cut", "spark scan"),
    ("spark cut", "spark limit"),
    ("spark", "spark limit"),
    ("dask", "dask nlargest"),
]


def print_ratios(rows: dict[str, dict[str, Any]]) -> None:
    """Print how much longer our ways take than others, on the wall and in processor time."""
    for ours, theirs in RATIOS:
        if ours in rows and theirs in rows:
            wall, cpu = (rows[ours][each] / rows[theirs][each] for each in ("seconds", "cpu"))
            print(f"{ours:>30} / {theirs:<16} {wall:6.2f} wall {cpu:6.2f} cpu", flush=True)


def main() -> None:
    """Measure every size, and save the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--skip", nargs="*", default=[], help="engines to leave out: spark, duckdb")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    ways = [way for way in WAYS if way.split()[0] not in given.skip]
    results = []
    print(
        f"{'rows':>11} {'scores':>7} {'way':>16} {'time':>10} {'cpu':>9} {'peak':>9}"
        f" {'off':>8} {'others':>8}"
    )
    for n_rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores.parquet"
            write_table(path, n_rows)
            write_table(path.with_name("small.parquet"), 2 * K)
            for score in ("smooth", "tied"):
                results += compare(path, n_rows, score, ways)
    if given.out is not None:
        given.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
