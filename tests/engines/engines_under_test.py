"""The engines under test, each with a way to make its tables and to read its answers."""

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any

import pytest

ENGINES = ["local", "dask", "spark"]


@dataclass
class UnderTest:
    """One engine: its functions, its tables from pandas in some number of parts, and back."""

    name: str
    functions: Any
    table: Any
    rows: Any


@pytest.fixture(scope="session")
def spark():
    """Return one session with two threads for all tests, or skip them."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java: pip install 'shortlist[spark]'")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
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
        return dd.from_pandas(frame, npartitions=n_parts, sort=False)

    return UnderTest("dask", shortlist.dask, table, lambda answer: answer.compute())


def _spark(session):
    import shortlist.spark

    def table(frame, n_parts):
        # Written with gaps, so that some partitions are empty.
        return session.createDataFrame(frame).repartition(n_parts).cache()

    return UnderTest("spark", shortlist.spark, table, lambda answer: answer.toPandas())


@pytest.fixture(params=ENGINES)
def engine(request):
    """Return each engine that can be had here."""
    if request.param == "spark":
        return _spark(request.getfixturevalue("spark"))
    return {"local": _local, "dask": _dask}[request.param]()
