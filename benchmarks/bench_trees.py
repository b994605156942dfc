"""Two trees beside each other: what did a change of the house cost, or gain?

    python benchmarks/bench_trees.py ../before/src src            # everything at 10^6 rows
    python benchmarks/bench_trees.py ../before/src src --rows 10000000 --only files dask spark

Each workload runs in a process of its own with one of the trees on its path, the trees in turns.
Times are processor times, the smallest of several turns; those of engines include their workers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def fastest(call: Callable[[], object], *, times: int = 5) -> float:
    """Return the smallest processor time of a call, which is made once before."""
    call()
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def once(call: Callable[[], object]) -> float:
    """Return the processor time of one call, that of processes it starts included."""

    def spent() -> float:
        own, others = (
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime

    start = spent()
    call()
    return spent() - start


# --- workloads -----------------------------------------------------------------------------------


def bench_import(table: Path) -> float:
    """Import the package."""
    start = time.process_time()
    import shortlist  # noqa: F401

    return time.process_time() - start


def _budget():
    from shortlist import Capacity
    from shortlist.online import BudgetController

    rng = np.random.default_rng(0)
    return BudgetController(
        Capacity.count(50), period=86_400, expected_arrivals=5_000,
        calibration_scores=rng.normal(size=5_000),
    )  # fmt: skip


def _tracker():
    from shortlist import Capacity
    from shortlist.online import QuantileTracker

    rng = np.random.default_rng(0)
    return QuantileTracker(Capacity.fraction(0.01), calibration_scores=rng.normal(size=5_000))


def _one_by_one(make: Callable, *, with_ids: bool) -> float:
    scores = np.random.default_rng(1).normal(size=20_000).tolist()

    def run() -> None:
        controller = make()
        for i, score in enumerate(scores):
            controller.decide(score, at=i * 17.0, id=i if with_ids else None)

    return fastest(run)


def _together(make: Callable, *, with_ids: bool) -> float:
    scores, times = np.random.default_rng(1).normal(size=200_000), np.arange(200_000) * 17.0
    ids = np.arange(200_000) if with_ids else None
    return fastest(lambda: make().decide_many(scores, at=times, ids=ids))


def bench_single_rows(table: Path) -> float:
    """Score single rows of a forest."""
    from sklearn.ensemble import RandomForestClassifier

    from shortlist import Capacity, CapacityClassifier
    from shortlist.datasets import make_fraud

    try:
        from shortlist.models import compile_scorer
    except ImportError:
        from shortlist.compiled import compile_scorer
    X, y = make_fraud(n_samples=4_000, random_state=0)
    learner = RandomForestClassifier(100, random_state=0)
    model = CapacityClassifier(learner, capacity=Capacity.multiple(2), random_state=0).fit(X, y)
    scorer, rows = compile_scorer(model, X[:200]), X[:2_000].tolist()
    return fastest(lambda: [scorer.score_row(row) for row in rows])


def _select(n: int, *, efforts: bool = False, ids: bool = False) -> float:
    from shortlist import Capacity, select

    rng = np.random.default_rng(0)
    scores, minutes = rng.random(n), rng.integers(5, 61, size=n)
    if efforts:
        capacity = Capacity.effort(float(minutes.sum() // 20))
        return fastest(lambda: select(scores, capacity, efforts=minutes), times=20)
    names = np.arange(n) if ids else None
    return fastest(lambda: select(scores.round(3), Capacity.count(n // 100), ids=names), times=9)


def bench_files(table: Path) -> float:
    """List 100,000 rows of a Parquet file."""
    from shortlist import Capacity
    from shortlist.distributed import select

    return once(lambda: select(table, Capacity.count(100_000), score="tied", id="case"))


def bench_dask(table: Path) -> float:
    """The same with Dask."""
    import dask.dataframe as dd

    from shortlist import Capacity
    from shortlist.dask import select

    df = dd.read_parquet(table)
    return once(lambda: select(df, Capacity.count(100_000), score="tied", id="case").compute())


def bench_spark(table: Path) -> float:
    """The same with Spark, after a first list that starts its workers."""
    from pyspark.sql import SparkSession

    from shortlist import Capacity
    from shortlist.spark import select

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.driver.memory", "3g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    df = spark.read.parquet(str(table))

    def listed() -> None:
        select(df, Capacity.count(100_000), score="tied", id="case").count()

    listed()
    start = time.perf_counter()
    listed()
    return time.perf_counter() - start  # the processor time of Java is not that of a child


WORKLOADS: dict[str, Callable[[Path], float]] = {
    "import": bench_import,
    "budget, one by one": lambda table: _one_by_one(_budget, with_ids=False),
    "budget, one by one, ids": lambda table: _one_by_one(_budget, with_ids=True),
    "budget, decide_many": lambda table: _together(_budget, with_ids=False),
    "budget, decide_many, ids": lambda table: _together(_budget, with_ids=True),
    "tracker, one by one": lambda table: _one_by_one(_tracker, with_ids=False),
    "tracker, decide_many": lambda table: _together(_tracker, with_ids=False),
    "tracker, decide_many, ids": lambda table: _together(_tracker, with_ids=True),
    "single rows": bench_single_rows,
    "select, 10^6": lambda table: _select(1_000_000),
    "select, 10^6, ids": lambda table: _select(1_000_000, ids=True),
    "select, efforts, 3,000": lambda table: _select(3_000, efforts=True),
    "select, efforts, 30,000": lambda table: _select(30_000, efforts=True),
    "files": bench_files,
    "dask": bench_dask,
    "spark (wall)": bench_spark,
}


# --- trees in turns ------------------------------------------------------------------------------


def write_table(path: Path, n_rows: int) -> None:
    """Write scores with many ties, ids and a column to carry along."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng, part = np.random.default_rng(0), 1_000_000
    writer = None
    for start in range(0, n_rows, part):
        n = min(part, n_rows - start)
        rows = pa.table(
            {
                "case": np.arange(start, start + n),
                "tied": np.round(rng.random(n) * 500) / 500,
                "amount": rng.exponential(size=n),
            }
        )
        writer = writer or parquet.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    writer.close()


def run_in(tree: Path, name: str, table: Path) -> float:
    """Run a workload in a process with a tree on its path."""
    environment = os.environ | {"PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    answer = subprocess.run(
        [sys.executable, __file__, "--child", name, "--table", str(table)],
        env=environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return float(json.loads(answer.stdout.splitlines()[-1]))


def main() -> None:
    """Run all workloads with both trees in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", type=Path, nargs="*", help="folders with the package: two")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names of workloads")
    parser.add_argument("--child")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(WORKLOADS[options.child](options.table)))
        return
    before, after = options.trees
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.parquet"
        write_table(table, options.rows)
        print("| workload | before, s | after, s | ratio |\n|---|---|---|---|")
        for name in WORKLOADS:
            if not any(part in name for part in options.only):
                continue
            seconds: dict[Path, list[float]] = {before: [], after: []}
            for _ in range(options.turns):
                for tree, found in seconds.items():
                    found.append(run_in(tree, name, table))
            old, new = (min(seconds[tree]) for tree in (before, after))
            print(f"| {name} | {old:.4g} | {new:.4g} | {new / old:.2f} |", flush=True)


if __name__ == "__main__":
    main()
