"""The exact cut of a table that is not in memory, beside what engines offer themselves.

    python benchmarks/bench_distributed.py                    # 10**6 and 10**7 rows
    python benchmarks/bench_distributed.py --rows 1000000 10000000 100000000
    python benchmarks/bench_distributed.py --only numpy stream spark --limit 60

Scores lie in a Parquet file, continuous and tied (rounded to 1/500). Each way lists 100,000 rows.
"off" is the number of flags beyond or below 100,000, "others" the number of listed rows that the
exact list does not have: which rows a sort and a limit take from a tied block is chance. Every way
runs in a process of its own, except that those of Spark share a session. It runs on a small table
first, and then up to eight times within thirty seconds; the shortest counts. "cpu" is processor
time, which a busy machine disturbs less, "peak" is memory; both include other processes that a way
starts, such as Spark's. A way that takes too long or too much memory is ended, and says so.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _apart import Apart, Cost, Failed

K = 100_000
_PART = 1_000_000
_TURNS, _TURNING = 8, 30.0


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


def numpy_after_reading(path: Path, score: str) -> Any:
    """Return the exact list from arrays in memory."""
    from shortlist import Capacity, select

    ids, scores = _arrays(path, score)
    return ids[select(scores, Capacity.count(K), ids=ids)]


def argpartition_after_reading(path: Path, score: str) -> Any:
    """Return the list that plain NumPy gives: K rows, any of the tied ones."""
    ids, scores = _arrays(path, score)
    return ids[np.argpartition(scores, scores.size - K)[-K:]]


@functools.lru_cache(maxsize=1)
def _arrays(path: Path, score: str) -> tuple[Any, Any]:
    table = pq.read_table(path, columns=["id", score])
    return table["id"].to_numpy(), table[score].to_numpy()


def streamed(path: Path, score: str) -> Any:
    """Return the exact list, read block by block."""
    from shortlist import Capacity
    from shortlist.distributed import select

    return select(path, Capacity.count(K), score=score, id="id")["id"].to_numpy()


def streamed_cut(path: Path, score: str) -> Any:
    """Find the exact cut alone, value and tie key, and list nothing."""
    from shortlist.distributed._ranks import Order, Ranks
    from shortlist.distributed.engine import LocalEngine

    engine = LocalEngine()
    Ranks(engine, engine.opened(path), Order(score, "id")).cuts({None: K})
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


@functools.cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the executors have the same packages
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def spark_ours(path: Path, score: str) -> Any:
    """Return the exact list."""
    import shortlist.spark
    from shortlist import Capacity

    df = _session().read.parquet(str(path))
    listed = shortlist.spark.select(df, Capacity.count(K), score=score, id="id")
    return listed.select("id").toPandas()["id"].to_numpy()


def spark_cut(path: Path, score: str) -> Any:
    """Find the exact cut alone, value and tie key, and list nothing."""
    import shortlist.spark
    from shortlist.distributed._ranks import Order, Ranks

    df = _session().read.parquet(str(path))
    Ranks(shortlist.spark.SparkEngine(), df, Order(score, "id")).cuts({None: K})
    return np.empty(0)


def spark_scan(path: Path, score: str) -> Any:
    """Read one column, and list nothing."""
    _session().read.parquet(str(path)).selectExpr(f"max({score})").first()
    return np.empty(0)


def spark_limit(path: Path, score: str) -> Any:
    """Sort and limit."""
    df = _session().read.parquet(str(path))
    return df.orderBy(df[score].desc()).limit(K).select("id").toPandas()["id"].to_numpy()


def spark_quantile(path: Path, score: str) -> Any:
    """Cut at an approximate quantile, with Spark's default accuracy."""
    df, n_rows = _session().read.parquet(str(path)), pq.ParquetFile(path).metadata.num_rows
    (value,) = df.selectExpr(f"percentile_approx({score}, {1 - K / n_rows})").first()
    return df.where(df[score] > value).select("id").toPandas()["id"].to_numpy()


def dask_ours(path: Path, score: str) -> Any:
    """Return the exact list on partitions of Dask."""
    import dask.dataframe as dd

    import shortlist.dask
    from shortlist import Capacity

    df = dd.read_parquet(path)
    listed = shortlist.dask.select(df, Capacity.count(K), score=score, id="id")
    return listed["id"].compute().to_numpy()


def dask_cut(path: Path, score: str) -> Any:
    """Find the exact cut alone, value and tie key, and list nothing."""
    import dask.dataframe as dd

    import shortlist.dask
    from shortlist.distributed._ranks import Order, Ranks

    df = dd.read_parquet(path)
    Ranks(shortlist.dask.DaskEngine(), df, Order(score, "id")).cuts({None: K})
    return np.empty(0)


def dask_scan(path: Path, score: str) -> Any:
    """Read one column, and list nothing."""
    import dask.dataframe as dd

    dd.read_parquet(path, columns=[score])[score].max().compute()
    return np.empty(0)


def dask_largest(path: Path, score: str) -> Any:
    """Take the largest of each partition, and of these."""
    import dask.dataframe as dd

    df = dd.read_parquet(path, columns=["id", score])
    return df.nlargest(K, columns=score).compute()["id"].to_numpy()


def dask_quantile(path: Path, score: str) -> Any:
    """Cut at an approximate quantile."""
    import dask.dataframe as dd

    df = dd.read_parquet(path, columns=["id", score])
    value = df[score].quantile(1 - K / pq.ParquetFile(path).metadata.num_rows).compute()
    return df[df[score] > value]["id"].compute().to_numpy()


WAYS: dict[str, Callable[[Path, str], Any]] = {
    "numpy": numpy_after_reading,
    "numpy partition": argpartition_after_reading,
    "stream": streamed,
    "stream cut": streamed_cut,
    "stream scan": scan,
    "duckdb limit": duckdb_limit,
    "duckdb quantile": duckdb_quantile,
    "polars top_k": polars_top,
    "spark scan": spark_scan,
    "spark cut": spark_cut,
    "spark": spark_ours,
    "spark limit": spark_limit,
    "spark quantile": spark_quantile,
    "dask scan": dask_scan,
    "dask cut": dask_cut,
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


def _start(way: str, path: Path, score: str) -> None:
    """Import what a way needs, and run it on a small table: compilers and workers start here."""
    for module in _IMPORTED.get(way.split()[0], ()):
        importlib.import_module(module)
    WAYS[way](path.with_name("small.parquet"), score)
    if way.startswith("numpy"):
        _arrays(path, score)


def _run(way: str, path: Path, score: str) -> Any:
    return np.asarray(WAYS[way](path, score))


def measured(apart: Apart, way: str, path: Path, score: str) -> tuple[Any, Cost]:
    """Return the listed ids, and the least cost of some turns."""
    apart.call(_start, way, path, score)
    costs, end = [], time.perf_counter() + _TURNING
    while len(costs) < _TURNS and (not costs or time.perf_counter() < end):
        ids, cost = apart.call(_run, way, path, score)
        costs.append(cost)
    return ids, Cost(*map(min, zip(*costs, strict=True)))


def compare(
    path: Path, n_rows: int, score: str, ways: list[str], limits: dict[str, float]
) -> list[dict[str, Any]]:
    """Measure all ways on one column, and compare their lists with the exact one."""
    exact, rows, apart = None, {}, Apart(**limits)
    for way, following in zip(ways, [*ways[1:], ""], strict=True):
        row = {"rows": n_rows, "scores": score, "way": way}
        try:
            ids, cost = measured(apart, way, path, score)
        except Failed as failed:
            row["failed"] = str(failed)
            print(f"{n_rows:>11,} {score:>7} {way:>16} {failed}", flush=True)
        else:
            exact = ids if exact is None else exact
            row |= {"seconds": cost.seconds, "cpu": cost.cpu, "MB": cost.peak}
            if not way.endswith(("cut", "scan")):
                row |= {"off": ids.size - K, "others": int((~np.isin(ids, exact)).sum())}
            print(
                f"{n_rows:>11,} {score:>7} {way:>16} {cost.seconds:8.2f} s {cost.cpu:7.2f} s "
                f"{cost.peak:6,.0f} MB {row.get('off', ''):>8} {row.get('others', ''):>8}",
                flush=True,
            )
        if not (way.startswith("spark") and following.startswith("spark")):
            apart.stop()
        rows[way] = row
    print_ratios(rows)
    return list(rows.values())


RATIOS = [
    ("stream cut", "stream scan"),
    ("stream cut", "numpy"),
    ("stream cut", "numpy partition"),
    ("stream", "duckdb limit"),
    ("stream", "polars top_k"),
    ("spark cut", "spark scan"),
    ("spark cut", "spark limit"),
    ("spark", "spark limit"),
    ("dask cut", "dask scan"),
    ("dask cut", "dask nlargest"),
    ("dask", "dask nlargest"),
]


def print_ratios(rows: dict[str, dict[str, Any]]) -> None:
    """Print how much longer our ways take than others, on the wall and in processor time."""
    for ours, theirs in RATIOS:
        if all("cpu" in rows.get(way, {}) for way in (ours, theirs)):
            wall, cpu = (rows[ours][each] / rows[theirs][each] for each in ("seconds", "cpu"))
            print(f"{ours:>30} / {theirs:<16} {wall:6.2f} wall {cpu:6.2f} cpu", flush=True)


def chosen_ways(only: list[str], skip: list[str]) -> list[str]:
    """Return the ways of some engines; the exact list in memory comes first, to compare with."""
    engines = [way.split()[0] for way in WAYS]
    wanted = (set(only) if only else set(engines)) - set(skip) | {"numpy"}
    return [way for way, engine in zip(WAYS, engines, strict=True) if engine in wanted]


def main() -> None:
    """Measure every size, and save the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--only", nargs="*", default=[], help="engines: stream, spark, dask ...")
    parser.add_argument("--skip", nargs="*", default=[], help="engines to leave out")
    parser.add_argument("--limit", type=float, default=180, help="seconds for each turn of a way")
    parser.add_argument("--memory", type=float, default=12_000, help="megabytes for each way")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    ways = chosen_ways(given.only, given.skip)
    limits = {"seconds": given.limit, "megabytes": given.memory}
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
                results += compare(path, n_rows, score, ways, limits)
                if given.out is not None:
                    given.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
