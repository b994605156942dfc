"""Exact lists and thresholds for Spark data frames: the same answers as on one machine."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._core.extras import load_extra
from .capacity import Capacity
from .distributed import (
    TIE_KEY,
    RowKernel,
    as_columns,
    blocks_of,
    find_list,
    find_threshold,
)
from .thresholds import CalibratedThreshold

__all__ = ["SparkEngine", "calibrate", "select"]

_ANSWER = "answer binary"


class SparkEngine:
    """Calls kernels on the executors, on Arrow batches of a data frame.

    A data frame is a plan, and every pass computes it anew. Write scores to a table first, or
    cache them: a plan that draws random numbers would give other rows in each pass.
    """

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        types = load_extra("pyspark.sql.pandas.types", needed_for="shortlist.spark")
        schema = types.to_arrow_schema(table.schema)
        return dict(zip(schema.names, schema.types, strict=True))

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every batch, and collect its answers."""
        answers = table.select(*columns).mapInArrow(_answering(kernel, columns), _ANSWER)
        for row in answers.collect():
            yield pickle.loads(row["answer"])  # made by our own kernel, on our own executors

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a data frame with the rows that a kernel returns."""
        source = table if kernel.columns is None else table.select(*kernel.columns)
        return source.mapInArrow(_mapping(kernel), schema)


def _answering(kernel: Any, columns: list[str]) -> Callable[[Any], Iterator[Any]]:
    def answer(batches: Any) -> Iterator[Any]:
        import pyarrow as pa

        for block in blocks_of(batches):
            answer = pickle.dumps(kernel(as_columns(block, columns)))
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    return answer


def _mapping(kernel: RowKernel) -> Callable[[Any], Iterator[Any]]:
    def mapped(batches: Any) -> Iterator[Any]:
        for block in blocks_of(batches):
            yield from kernel(block).to_batches()

    return mapped


def select(
    df: Any,
    capacity: Capacity | Mapping[Any, Capacity],
    *,
    score: str,
    id: str,
    segment: str | None = None,
    total: Capacity | None = None,
    random_state: Any = None,
) -> Any:
    """List the highest scores of a data frame, exactly: the list of :func:`shortlist.select`.

    Sorting and limiting a data frame is wrong where scores are tied, and approximate quantiles are
    wrong everywhere. Here the frame is read three times at most, small summaries travel to the
    driver, and the listed rows stay on the executors.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Scored rows; written or cached before.
    capacity, score, id, segment, total, random_state
        As for :func:`shortlist.distributed.select`.

    Returns
    -------
    pyspark.sql.DataFrame
        The listed rows with all their columns, and `rank` from 1 on.
    """
    functions = load_extra("pyspark.sql.functions", needed_for="shortlist.spark")
    types = load_extra("pyspark.sql.types", needed_for="shortlist.spark")
    window = load_extra("pyspark.sql.window", needed_for="shortlist.spark")
    engine = SparkEngine()
    kernel = find_list(
        engine,
        df,
        capacity,
        score=score,
        id=id,
        segment=segment,
        total=total,
        random_state=random_state,
    )
    schema = types.StructType([*df.schema.fields, types.StructField(TIE_KEY, types.DoubleType())])
    listed = engine.map_rows(df, kernel, schema)
    order = window.Window.orderBy(functions.desc(score), functions.asc(TIE_KEY))
    return listed.withColumn("rank", functions.row_number().over(order)).drop(TIE_KEY)


def calibrate(
    df: Any,
    capacity: Capacity,
    *,
    score: str,
    id: str | None = None,
    **options: Any,
) -> CalibratedThreshold:
    """Find the lowest threshold that keeps a capacity, from a column of a data frame.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Calibration scores.
    capacity, score, id
        As for :func:`shortlist.distributed.calibrate`.
    **options
        `prevalence`, `guarantee`, `confidence`, `n_batches` and `random_state`, as there.

    Returns
    -------
    CalibratedThreshold
    """
    return find_threshold(SparkEngine(), df, capacity, score=score, id=id, **options)
