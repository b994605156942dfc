"""Streams on Spark: decisions row by row, and a hard limit that survives a restart."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist.online import BudgetController

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = {"queue": "team", "id": "case", "score": "risk", "at": "at"}


def make_rows(n, seed):
    """Make scored rows of two teams within two days."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "team": rng.choice(["north", "south"], n),
            "case": [f"{seed}-{i}" for i in range(n)],
            "risk": rng.normal(size=n),
            "at": np.sort(rng.uniform(0, 2 * 86_400, n)),
        }
    )


def make_controller():
    """Make a controller for five flags a day."""
    return BudgetController(
        Capacity.count(5),
        period=86_400,
        expected_arrivals=100,
        calibration_scores=np.random.default_rng(0).normal(size=500),
    )


def run(frame, folder, checkpoint, mode="append"):
    """Run a query on all files that are there, and return what was written."""
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(folder))
        .option("checkpointLocation", str(checkpoint))
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return pd.read_parquet(folder)


def test_a_stream_is_flagged_row_by_row(spark, tmp_path):
    """Every row of a stream gets the decision that it gets in a batch."""
    import shortlist.spark as functions

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    y = rng.random(600) < 0.05 + 0.2 * (X["a"] > 1)
    model = CapacityClassifier(
        LogisticRegression(), capacity=Capacity.fraction(0.1), rare_label=True
    )
    model.fit(X, y, ids=np.arange(600))
    source = tmp_path / "in"
    source.mkdir()
    for part in range(3):
        X[part * 200 : part * 200 + 200].assign(
            case=np.arange(part * 200, part * 200 + 200)
        ).to_parquet(source / f"{part}.parquet", index=False)
    df = spark.readStream.schema("a double, b double, case long").parquet(str(source))
    flagged = functions.flag(model, df, id="case")
    got = run(flagged, tmp_path / "out", tmp_path / "checkpoint").set_index("case").sort_index()
    np.testing.assert_array_equal(got["flagged"], model.flag(X, ids=np.arange(600)))


def test_a_repeated_batch_gets_the_same_decisions():
    """Decisions depend on the rows and the state, not on the order in which rows arrive."""
    from shortlist.spark import decide_rows

    rows, start = make_rows(200, 1), json.dumps(make_controller().state())
    first, state = decide_rows(start, [rows[:50], rows[50:]], NAMES)
    again, same = decide_rows(start, [rows.sample(frac=1, random_state=0)], NAMES)
    assert first["case"].tolist() == again["case"].tolist()
    assert first["flagged"].tolist() == again["flagged"].tolist()
    assert state == same
    assert 0 < first["flagged"].sum() <= 10


def test_a_hard_limit_survives_a_restart(spark, tmp_path):
    """Two runs from one checkpoint flag no more than the limit in any day, in each queue."""
    pytest.importorskip("google.protobuf")
    import shortlist.spark as functions

    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    source, out, checkpoint = (tmp_path / name for name in ("in", "out", "checkpoint"))
    source.mkdir()
    schema = "team string, case string, risk double, at double"
    options = {"queue": "team", "score": "risk", "id": "case", "at": "at"}
    rows = make_rows(300, 2)
    for number, part in enumerate([rows[:120], rows[120:]]):
        part.to_parquet(source / f"{number}.parquet", index=False)
        df = spark.readStream.schema(schema).parquet(str(source))
        got = run(functions.decide_stream(df, make_controller(), **options), out, checkpoint)
    assert sorted(got["case"]) == sorted(rows["case"])
    flags = got[got["flagged"]]
    counts = flags.groupby(["team", flags["at"] // 86_400]).size()
    assert counts.max() <= 5
    assert counts.sum() >= 15
