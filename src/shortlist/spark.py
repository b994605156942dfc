"""Exact lists, thresholds and evaluations for Spark data frames: the answers of one machine."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._core.extras import load_extra
from .distributed.engine import FEW, TIE_KEY, Engine, Plan, blocks_of
from .distributed.functions import Functions
from .exceptions import TableError

__all__ = ["calibrate", "evaluate", "flag", "score", "select"]

_ANSWER = "answer binary"
# Plans of these nodes only read files, or rows that are kept: they may be computed again.
_CHEAP = {"LogicalRelation", "LocalRelation", "LogicalRDD", "InMemoryRelation", "Range", "Union"}
_CHEAP |= {"Project", "Filter", "SubqueryAlias", "DataSourceV2ScanRelation", "ResolvedHint"}
_OURS = re.compile(r"shortlist\.exceptions\.\w+: (.*)")


class SparkEngine(Engine):
    """Calls kernels on the executors, on Arrow batches of a data frame.

    A data frame is a plan, and every pass computes it anew. A plan that only reads files or cached
    rows may be computed again. A plan that does more is cached before the first pass. A plan that
    draws random numbers is refused: write it to a table first.
    """

    def opened(self, table: Any, *, passes: int) -> Any:
        """Check that this is a data frame of Spark that several passes see alike, or cache it."""
        _check_frame(table)
        if passes == 1 or table.is_cached:
            return table
        plans = table._jdf.queryExecution()
        if not plans.analyzed().deterministic():
            raise TableError(
                "The data frame draws random numbers, so each pass over it would see other rows. "
                "Write it to a table and read that, or cache it."
            )
        tree = plans.optimizedPlan().treeString()
        nodes = set(re.findall(r"(?m)^[\s:+|-]*'?([A-Za-z0-9]+)", tree))
        return table if nodes <= _CHEAP | {"Relation"} else table.persist()

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        types = load_extra("pyspark.sql.pandas.types", needed_for="shortlist.spark")
        schema = types.to_arrow_schema(table.schema)
        return dict(zip(schema.names, schema.types, strict=True))

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every batch, and collect its answers."""
        shipped = table.sparkSession.sparkContext.broadcast(kernel)
        answers = _numbered(table, columns).mapInArrow(_answering(shipped, columns), _ANSWER)
        with _own_errors():
            rows = answers.collect()
        shipped.unpersist()
        for row in rows:
            yield pickle.loads(row["answer"])  # made by our own kernel, on our own executors

    def map_rows(self, plan: Plan) -> Any:
        """Return a data frame with the rows of a plan."""
        table = plan.table
        columns = table.columns if plan.columns is None else plan.columns
        shipped = table.sparkSession.sparkContext.broadcast(plan.kernel)
        mapped = _mapping(shipped, columns)
        return _numbered(table, columns).mapInArrow(mapped, _spark_schema(table, plan.schema))

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another, both included."""
        return table.where(_number(score).between(low, high))

    def in_order(self, rows: Any, score: str) -> Any:
        """Number the rows of a list, in order."""
        functions, window = _functions_of("functions"), _functions_of("window")
        order = window.Window.orderBy(_number(score).desc(), functions.asc(TIE_KEY))
        return rows.withColumn("rank", functions.row_number().over(order)).drop(TIE_KEY)

    def write_rows(self, plan: Plan, out: Path) -> None:
        """Let the executors write such rows."""
        self.map_rows(plan).write.parquet(str(out))

    @contextmanager
    def kept_rows(self, plan: Plan) -> Iterator[Any]:
        """Cache such rows, in memory or on the disks of the executors, while they are needed."""
        rows = self.map_rows(plan).persist()
        try:
            yield rows
        finally:
            rows.unpersist()


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


def _functions_of(module: str) -> Any:
    return load_extra(f"pyspark.sql.{module}", needed_for="shortlist.spark")


def _number(name: str) -> Any:
    return _functions_of("functions").col(_quoted(name)).cast("double")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _numbered(table: Any, columns: list[str]) -> Any:
    """Return columns under other names: mapInArrow fails with names that have a dot."""
    column = _functions_of("functions").col
    return table.select(*(column(_quoted(name)).alias(f"c{i}") for i, name in enumerate(columns)))


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


def _answering(shipped: Any, columns: list[str]) -> Callable[[Any], Iterator[Any]]:
    def answer(batches: Any) -> Iterator[Any]:
        import pyarrow as pa

        for block in blocks_of(batches):
            answer = pickle.dumps(shipped.value(block.rename_columns(columns)))
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    return answer


def _mapping(shipped: Any, columns: list[str]) -> Callable[[Any], Iterator[Any]]:
    def mapped(batches: Any) -> Iterator[Any]:
        for block in blocks_of(batches, FEW):
            yield from shipped.value(block.rename_columns(columns)).to_batches()

    return mapped


_functions = Functions(SparkEngine())
select, calibrate = _functions.select, _functions.calibrate
score, flag, evaluate = _functions.score, _functions.flag, _functions.evaluate
