"""Scores and flags by a model in an engine, beside bare `predict_proba` in the same engine.

    python benchmarks/bench_engine_scoring.py                       # a million rows, block by block
    python benchmarks/bench_engine_scoring.py --engine spark        # the same on Spark, local[2]

Payments lie in a Parquet file. Both ways read it, turn blocks of 65,536 rows into data frames and
write ids with scores; ours also decides about every row. The two take turns, and the ratio is the
median of those of the turns. Processor time without Spark, wall time with it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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

from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import FRAUD_FEATURES, make_fraud
from shortlist.distributed import flag

FEATURES = list(FRAUD_FEATURES)
LEARNERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
    "forest": lambda: RandomForestClassifier(20, max_depth=8, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}
_BLOCK = 1 << 16
_TURNS = 9


def bare(model: Any, path: Path) -> None:
    """Score block by block with the model inside, and write ids and scores."""
    inside = model.estimators_[0]
    schema = pa.schema([("case", pa.int64()), ("score", pa.float64())])
    with pq.ParquetWriter(path.parent / "bare.parquet", schema) as writer:
        for batch in ds.dataset(path).to_batches(batch_size=_BLOCK):
            X = batch.select(FEATURES).to_pandas()
            scores = inside.predict_proba(X)[:, 1]
            writer.write_table(pa.table({"case": batch["case"], "score": scores}))


def ours(model: Any, path: Path) -> None:
    """Score and decide, and write ids, scores and flags."""
    flag(model, path, id="case", out=path.parent / "ours.parquet")


def on_spark(path: Path) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return both ways on Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import shortlist.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", _BLOCK).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    df = session.read.parquet(str(path))

    def written(rows: Any) -> None:
        rows.write.format("noop").mode("overwrite").save()

    def bare_on_spark(model: Any, path: Path) -> None:
        inside = session.sparkContext.broadcast(model.estimators_[0])

        def scored(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                X = batch.select(FEATURES).to_pandas()
                scores = inside.value.predict_proba(X)[:, 1]
                yield pa.RecordBatch.from_arrays([batch["case"], scores], ["case", "score"])

        written(df.mapInArrow(scored, "case long, score double"))

    def ours_on_spark(model: Any, path: Path) -> None:
        written(shortlist.spark.flag(model, df, id="case"))

    return bare_on_spark, ours_on_spark


def main() -> None:
    """Print one line for each learner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS))
    given = parser.parse_args()
    clock = time.process_time if given.engine == "local" else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        X = pd.DataFrame(make_fraud(given.rows)[0], columns=FEATURES)
        X.assign(case=np.arange(given.rows)).to_parquet(path, index=False)
        ways = (bare, ours) if given.engine == "local" else on_spark(path)
        for name in given.learners:
            small, y = make_fraud(20_000, random_state=1)
            model = CapacityClassifier(LEARNERS[name](), capacity=Capacity.fraction(0.01), cv=0.5)
            model.fit(pd.DataFrame(small, columns=FEATURES), y, ids=np.arange(20_000))
            times = np.full((2, _TURNS), np.inf)
            for turn in range(_TURNS):
                for place, way in enumerate(ways):
                    start = clock()
                    way(model, path)
                    times[place, turn] = clock() - start
            alone, with_flags = times.min(axis=1)
            ratio = np.median(times[1] / times[0])
            print(
                f"{name:>9} {alone:7.2f} s bare {with_flags:7.2f} s ours {ratio:6.2f} "
                f"(of the shortest {with_flags / alone:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
