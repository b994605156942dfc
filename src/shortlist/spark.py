"""Exact lists, thresholds and evaluations for Spark data frames: the answers of one machine."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ._core.extras import load_extra
from .capacity import Capacity
from .distributed import (
    FEW,
    TIE_KEY,
    LargeEvaluation,
    ModelRows,
    RowKernel,
    blocks_of,
    check_same,
    find_list,
    find_threshold,
    measure_model,
    plan_rows,
    table_schema,
    versions_here,
)
from .exceptions import TableError
from .thresholds import CalibratedThreshold

__all__ = ["SparkEngine", "calibrate", "evaluate", "flag", "score", "select"]

_ANSWER = "answer binary"
# Plans of these nodes only read files, or rows that are kept: they may be computed again.
_CHEAP = {"LogicalRelation", "LocalRelation", "LogicalRDD", "InMemoryRelation", "Range", "Union"}
_CHEAP |= {"Project", "Filter", "SubqueryAlias", "DataSourceV2ScanRelation", "ResolvedHint"}
_OURS = re.compile(r"shortlist\.exceptions\.\w+: (.*)")


class SparkEngine:
    """Calls kernels on the executors, on Arrow batches of a data frame.

    A data frame is a plan, and every pass computes it anew. A plan that only reads files or cached
    rows may be computed again. A plan that does more is cached before the first pass. A plan that
    draws random numbers is refused: write it to a table first.
    """

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        _check_frame(table)
        types = load_extra("pyspark.sql.pandas.types", needed_for="shortlist.spark")
        schema = types.to_arrow_schema(table.schema)
        return dict(zip(schema.names, schema.types, strict=True))

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every batch, and collect its answers."""
        shipped = table.sparkSession.sparkContext.broadcast(kernel)
        answers = table.select(*map(_quoted, columns)).mapInArrow(_answering(shipped), _ANSWER)
        with _own_errors():
            rows = answers.collect()
        shipped.unpersist()
        for row in rows:
            yield pickle.loads(row["answer"])  # made by our own kernel, on our own executors

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a data frame with the rows that a kernel returns."""
        source = table
        if kernel.columns is not None:
            source = table.select(*map(_quoted, kernel.columns))
        shipped = table.sparkSession.sparkContext.broadcast(kernel)
        return source.mapInArrow(_mapping(shipped), _spark_schema(table, schema))

    @contextmanager
    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Iterator[Any]:
        """Cache such rows, in memory or on the disks of the executors, while they are needed."""
        rows = self.map_rows(table, kernel, schema).persist()
        try:
            yield rows
        finally:
            rows.unpersist()

    def check_versions(self, table: Any) -> None:
        """Raise an error if an executor has other versions of the packages that models need."""
        spark = table.sparkSession
        n_tasks = 2 * spark.sparkContext.defaultParallelism
        found = spark.range(0, n_tasks, 1, n_tasks).mapInArrow(_finding(versions_here()), _ANSWER)
        check_same(pickle.loads(row["answer"]) for row in found.distinct().collect())


def _check_frame(table: Any) -> None:
    if not type(table).__module__.startswith("pyspark.sql"):
        raise TableError(
            f"shortlist.spark takes a data frame of Spark; got {type(table).__name__}."
        )
    if "connect" in type(table).__module__:
        raise TableError(
            "Data frames of Spark Connect are not supported: a model is sent to the executors by "
            "the Spark context, which Connect does not have. Use a classic session: "
            "SparkSession.builder.master(...)."
        )


def computed_once(table: Any) -> Any:
    """Return a data frame that several passes see alike: itself, or cached.

    Parameters
    ----------
    table : pyspark.sql.DataFrame
        A plan that draws random numbers raises an error.

    Returns
    -------
    pyspark.sql.DataFrame
    """
    _check_frame(table)
    if table.is_cached:
        return table
    plans = table._jdf.queryExecution()
    if not plans.analyzed().deterministic():
        raise TableError(
            "The data frame draws random numbers, so each pass over it would see other rows. Write "
            "it to a table and read that, or cache it."
        )
    nodes = set(re.findall(r"(?m)^[\s:+|-]*'?([A-Za-z0-9]+)", plans.optimizedPlan().treeString()))
    return table if nodes <= _CHEAP | {"Relation"} else table.persist()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark_schema(table: Any, schema: Any) -> Any:
    """Return a schema of Spark: the table's own fields, and others by their Arrow types."""
    types = load_extra("pyspark.sql.types", needed_for="shortlist.spark")
    convert = load_extra("pyspark.sql.pandas.types", needed_for="shortlist.spark").from_arrow_type
    own = {field.name: field for field in table.schema.fields}
    return types.StructType(
        [
            own[field.name]
            if field.name in own
            else types.StructField(field.name, convert(field.type))
            for field in schema
        ]
    )


@contextmanager
def _own_errors() -> Iterator[None]:
    """Turn an error of our own kernel on an executor into the same error here."""
    try:
        yield
    except Exception as error:
        said = _OURS.search(str(error))
        if said is None:
            raise
        raise TableError(said[1]) from error


def _answering(shipped: Any) -> Callable[[Any], Iterator[Any]]:
    def answer(batches: Any) -> Iterator[Any]:
        import pyarrow as pa

        for block in blocks_of(batches):
            answer = pickle.dumps(shipped.value(block))
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    return answer


def _finding(find: Callable[[], Any]) -> Callable[[Any], Iterator[Any]]:
    # Nothing of this package may be needed to load this function.
    def answer(batches: Any) -> Iterator[Any]:
        import pickle as pickles

        import pyarrow as pa

        for _ in batches:
            found = pickles.dumps(find())
            yield pa.RecordBatch.from_arrays([pa.array([found], pa.binary())], ["answer"])

    return answer


def _mapping(shipped: Any) -> Callable[[Any], Iterator[Any]]:
    def mapped(batches: Any) -> Iterator[Any]:
        for block in blocks_of(batches, FEW):
            yield from shipped.value(block).to_batches()

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
        Scored rows. If the frame does more than read files or cached rows, it is cached; one that
        draws random numbers is refused.
    capacity, score, id, segment, total, random_state
        As for :func:`shortlist.distributed.select`.

    Returns
    -------
    pyspark.sql.DataFrame
        The listed rows with all their columns, and `rank` from 1 on.
    """
    functions = load_extra("pyspark.sql.functions", needed_for="shortlist.spark")
    window = load_extra("pyspark.sql.window", needed_for="shortlist.spark")
    engine, df = SparkEngine(), computed_once(df)
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
    schema = table_schema(engine, df, added={TIE_KEY: "double"})
    listed = engine.map_rows(df, kernel, schema)
    order = window.Window.orderBy(functions.desc(_quoted(score)), functions.asc(TIE_KEY))
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
    df = computed_once(df)
    return find_threshold(SparkEngine(), df, capacity, score=score, id=id, **options)


def score(model: Any, df: Any, *, id: str, keep: Collection[str] = ()) -> Any:
    """Score a data frame on the executors.

    The model is sent to each executor once. Versions of the packages are compared first.

    Parameters
    ----------
    model, id, keep
        As for :func:`shortlist.distributed.score`.
    df : pyspark.sql.DataFrame
        With the columns of the model.

    Returns
    -------
    pyspark.sql.DataFrame
        Ids, kept columns and `score`. Write it before you select from it.
    """
    return _decided(ModelRows(model, id), df, ("score",), [id, *keep])


def flag(
    model: Any, df: Any, *, id: str, segment: str | None = None, keep: Collection[str] = ()
) -> Any:
    """Decide about every row of a data frame with the calibrated rule of a model.

    Parameters
    ----------
    model, id, segment, keep
        As for :func:`shortlist.distributed.flag`.
    df : pyspark.sql.DataFrame
        With the columns of the model.

    Returns
    -------
    pyspark.sql.DataFrame
        Ids, kept columns, `score` and `flagged`.
    """
    return _decided(ModelRows(model, id, segment), df, ("score", "flagged"), [id, *keep])


def _decided(rows: ModelRows, df: Any, said: tuple[str, ...], kept: list[str]) -> Any:
    engine = SparkEngine()
    kernel, schema = plan_rows(engine, df, rows, said=said, kept=kept)
    return engine.map_rows(df, kernel, schema)


def evaluate(
    model: Any, df: Any, *, id: str | None, target: str | None = None, segment: str | None = None
) -> LargeEvaluation:
    """Measure a model on a labelled data frame.

    Rows are scored once, and their scores are cached while they are counted.

    Parameters
    ----------
    model, id, target, segment
        As for :func:`shortlist.distributed.evaluate`.
    df : pyspark.sql.DataFrame
        With the columns of the model, and the labels.

    Returns
    -------
    LargeEvaluation
    """
    df = computed_once(df)
    return measure_model(SparkEngine(), model, df, id=id, target=target, segment=segment)
