"""Scores and flags by a model in an engine, beside bare `predict_proba` in the same engine.

    python benchmarks/bench_engine_scoring.py                       # a million rows, block by block
    python benchmarks/bench_engine_scoring.py --engines local dask spark --rows 1000000 10000000

Payments lie in a Parquet file of a million rows; more rows are links to it in a folder. Both ways
read them, turn blocks of 65,536 rows into data frames and write ids with scores (Spark to nowhere);
ours also decides about every row. The two take turns: up to nine within a minute, at least one. The
ratio is the median of those of the turns, in processor time and on the wall. Each engine runs in a
process of its own. A way that takes too long or too much memory is ended, and says so.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _apart import Apart, Failed
from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import FRAUD_FEATURES, make_fraud
from shortlist.distributed import flag

FEATURES = list(FRAUD_FEATURES)
LEARNERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
    "forest": lambda: RandomForestClassifier(20, max_depth=8, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}
_BLOCK, _FILE = 1 << 16, 10**6
_TURNS, _TURNING = 9, 60.0


def write_rows(folder: Path, n_rows: int) -> None:
    """Write one file, and link to it until there are so many rows."""
    n_own = min(n_rows, _FILE)
    X = pd.DataFrame(make_fraud(n_own)[0], columns=FEATURES)
    X.assign(case=np.arange(n_own)).to_parquet(folder / "0.parquet", index=False)
    for number in range(1, n_rows // n_own):
        (folder / f"{number}.parquet").hardlink_to(folder / "0.parquet")


def fitted(learner: str) -> Any:
    """Return a classifier that knows its columns."""
    X, y = make_fraud(20_000, random_state=1)
    model = CapacityClassifier(LEARNERS[learner](), capacity=Capacity.fraction(0.01), cv=0.5)
    return model.fit(pd.DataFrame(X, columns=FEATURES), y, ids=np.arange(20_000))


# --- one way for each engine, and the bare model in it ---


def _scored(inside: Any, frame: Any) -> Any:
    return pd.DataFrame(
        {"case": frame["case"], "score": inside.predict_proba(frame[FEATURES])[:, 1]}
    )


def local_bare(model: Any, folder: Path, out: Path) -> None:
    """Score block by block with the model inside, and write ids and scores."""
    inside = model.estimators_[0]
    schema = pa.schema([("case", pa.int64()), ("score", pa.float64())])
    with pq.ParquetWriter(out / "bare.parquet", schema) as writer:
        for batch in ds.dataset(folder).to_batches(batch_size=_BLOCK):
            X = batch.select(FEATURES).to_pandas()
            scores = inside.predict_proba(X)[:, 1]
            writer.write_table(pa.table({"case": batch["case"], "score": scores}))


def local_ours(model: Any, folder: Path, out: Path) -> None:
    """Score and decide, and write ids, scores and flags."""
    flag(model, folder, id="case", out=out / "ours.parquet")


def dask_bare(model: Any, folder: Path, out: Path) -> None:
    """Score the partitions of Dask, in blocks."""
    import dask
    import dask.dataframe as dd

    def scored(frame: Any, inside: Any) -> Any:
        starts = range(0, max(len(frame), 1), _BLOCK)
        return pd.concat([_scored(inside, frame.iloc[at : at + _BLOCK]) for at in starts])

    df, meta = dd.read_parquet(folder), {"case": "int64", "score": "float64"}
    inside = dask.delayed(model.estimators_[0])
    df.map_partitions(scored, inside, meta=meta).to_parquet(out / "bare")


def dask_ours(model: Any, folder: Path, out: Path) -> None:
    """Score and decide on the partitions of Dask."""
    import dask.dataframe as dd

    import shortlist.dask

    shortlist.dask.flag(model, dd.read_parquet(folder), id="case").to_parquet(out / "ours")


@functools.cache
def _session() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", _BLOCK).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _computed(rows: Any) -> None:
    rows.write.format("noop").mode("overwrite").save()


def spark_bare(model: Any, folder: Path, out: Path) -> None:
    """Score the batches of Spark."""
    session = _session()
    inside = session.sparkContext.broadcast(model.estimators_[0])
    features = FEATURES  # not a name of this file, which executors do not have

    def scored(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            X = batch.select(features).to_pandas()
            scores = inside.value.predict_proba(X)[:, 1]
            yield pyarrow.RecordBatch.from_arrays([batch["case"], scores], ["case", "score"])

    df = session.read.parquet(str(folder))
    _computed(df.mapInArrow(scored, "case long, score double"))


def spark_ours(model: Any, folder: Path, out: Path) -> None:
    """Score and decide on the executors."""
    import shortlist.spark

    _computed(shortlist.spark.flag(model, _session().read.parquet(str(folder)), id="case"))


ENGINES = {
    "local": (local_bare, local_ours),
    "dask": (dask_bare, dask_ours),
    "spark": (spark_bare, spark_ours),
}


def compare(engine: str, learner: str, folder: Path, n_rows: int, apart: Apart) -> None:
    """Print one line: what both ways took, and the median of the ratios."""
    model, costs, end = fitted(learner), [], None
    with tempfile.TemporaryDirectory() as out:
        try:
            for way in ENGINES[engine]:  # compilers and workers start here
                apart.call(way, model, folder.with_name("small"), Path(out))
            end = time.perf_counter() + _TURNING
            while len(costs) < _TURNS and (not costs or time.perf_counter() < end):
                costs.append(
                    [apart.call(way, model, folder, Path(out))[1] for way in ENGINES[engine]]
                )
        except Failed as failed:
            print(f"{engine:>6} {n_rows:>11,} {learner:>9} {failed}", flush=True)
            return
    times = np.array([[cost[:2] for cost in turn] for turn in costs])  # turn, way, wall and cpu
    wall, cpu = np.median(times[:, 1] / times[:, 0], axis=0)
    (bare, _), (ours, _) = times.min(axis=0)
    print(
        f"{engine:>6} {n_rows:>11,} {learner:>9} {bare:7.2f} s bare {ours:7.2f} s ours "
        f"{cpu:6.2f} cpu {wall:6.2f} wall ({len(costs)} turns)",
        flush=True,
    )


def main() -> None:
    """Print one line for each engine, size and learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["local"])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--limit", type=float, default=600, help="seconds for each turn of a way")
    parser.add_argument("--memory", type=float, default=12_000, help="megabytes for each engine")
    given = parser.parse_args()
    for n_rows in given.rows:
        with tempfile.TemporaryDirectory() as parent:
            for name, size in (("rows", n_rows), ("small", 10_000)):
                (Path(parent) / name).mkdir()
                write_rows(Path(parent) / name, size)
            for engine in given.engines:
                apart = Apart(seconds=given.limit, megabytes=given.memory)
                for learner in given.learners:
                    compare(engine, learner, Path(parent) / "rows", n_rows, apart)
                apart.stop()


if __name__ == "__main__":
    main()
