"""Streams on Spark: decisions row by row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier

pytestmark = pytest.mark.filterwarnings("ignore")


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
