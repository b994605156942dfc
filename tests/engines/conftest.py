"""The engines under test, each with a way to make its tables and to read its answers."""

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

ENGINES = ["local", "dask", "spark"]


@dataclass
class UnderTest:
    """One engine: its functions, its tables from pandas in some number of parts, and back."""

    name: str
    functions: Any
    table: Any
    rows: Any


def pytest_collection_modifyitems(items):
    """Let one worker run all tests of Spark, so that its session starts once."""
    for item in items:
        given = getattr(item, "callspec", None)
        if "spark" in item.fixturenames or (given and given.params.get("engine") == "spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark():
    """Return one session with one thread for all tests, or skip them."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java: pip install 'shortlist[spark]'")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        # Tables are tiny: compiling their queries would take longer than running them.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def _local():
    import pyarrow as pa

    import shortlist.distributed

    def table(frame, n_parts):
        return pa.Table.from_pandas(frame, preserve_index=False)

    return UnderTest("local", shortlist.distributed, table, lambda answer: answer.to_pandas())


def _dask():
    dd = pytest.importorskip("dask.dataframe", reason="pip install 'shortlist[dask]'")
    import shortlist.dask

    def table(frame, n_parts):
        ends = np.linspace(0, len(frame), n_parts).astype(int)[1:-1]
        starts, stops = [0, 0, *ends], [0, *ends, len(frame)]  # the first part is empty
        parts = [frame.iloc[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])

    return UnderTest("dask", shortlist.dask, table, lambda answer: answer.compute())


def _spark(session):
    from pyspark.sql.functions import expr

    import shortlist.spark

    def table(frame, n_parts):
        # Most ids are equally long: one part has almost all rows, and others are empty.
        length = "length(cast(case as string)) % 2"
        return session.createDataFrame(frame).repartition(n_parts, expr(length)).cache()

    return UnderTest("spark", shortlist.spark, table, lambda answer: answer.toPandas())


@pytest.fixture(params=ENGINES)
def engine(request):
    """Return each engine that can be had here."""
    if request.param == "spark":
        return _spark(request.getfixturevalue("spark"))
    return {"local": _local, "dask": _dask}[request.param]()
