"""Spark as an engine of `distributed`, which finds every cut; and decisions in streams of Spark."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._core.extras import load_extra
from .distributed.engine import FEW, TIE_KEY, Engine, Plan, blocks_of
from .distributed.functions import Functions
from .exceptions import TableError
from .online import Controller

__all__ = [
    "calibrate",
    "decide_stream",
    "evaluate",
    "flag",
    "score",
    "select",
]

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


# --- streams ---


def decide_stream(
    df: Any, controller: Controller, *, queue: str, score: str, id: str, at: str
) -> Any:
    """Decide about the rows of a stream with a controller for each queue: a hard limit per period.

    Spark keeps the state of the controllers and commits it with each micro-batch. Rows of a batch
    are decided in the order of their moments and ids, so a batch that is repeated after a fault
    gets the same decisions, and a restart from the checkpoint exceeds no capacity. Whatever reads
    the decisions must treat a repeated one as the same: write them to files, or by id.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A streaming frame of scored rows.
    controller : Controller
        Such as a :class:`~shortlist.online.BudgetController`. Each queue starts with a copy.
    queue, score, id : str
        Columns with the queues, the scores and the ids.
    at : str
        A column with the moments: timestamps, or seconds.

    Returns
    -------
    pyspark.sql.DataFrame
        Streaming: queue, id, score, the moment in seconds and `flagged`, to be written with the
        output mode "append". Spark needs its RocksDB state store and protobuf for it.
    """
    _check_frame(df)
    if not df.isStreaming:
        raise TableError("decide_stream takes a streaming frame. For a batch, use select or flag.")
    types = _functions_of("types")
    names = {"queue": queue, "id": id, "score": score, "at": at}
    numbers = [_number(name).alias(name) for name in (score, at)]
    rows = df.select(_quoted(queue), _quoted(id), *numbers)
    answer = types.StructField("flagged", types.BooleanType())
    return rows.groupBy(_quoted(queue)).transformWithStateInPandas(
        statefulProcessor=_stateful(json.dumps(controller.state()), names),
        outputStructType=types.StructType([*rows.schema.fields, answer]),
        outputMode="Append",
        timeMode="None",
    )


def _stateful(start: str, names: dict[str, str]) -> Any:
    """Return what Spark calls with the new rows of a queue, and the state that it keeps."""
    streaming = load_extra("pyspark.sql.streaming", needed_for="shortlist.spark")

    class Decider(streaming.StatefulProcessor):  # type: ignore[name-defined]
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("controller", "state string")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            saved = self._state.get()[0] if self._state.exists() else start
            decided, state = decide_rows(saved, rows, names)
            self._state.update((state,))
            yield decided

        def close(self) -> None:
            """Nothing is open."""

    return Decider()


def decide_rows(saved: str, parts: Any, names: dict[str, str]) -> tuple[Any, str]:
    """Decide about some rows of a queue, and return them with the state of the controller.

    Parameters
    ----------
    saved : str
        The state before.
    parts : iterable of pandas.DataFrame
        The rows.
    names : dict
        The columns that are queue, id, score and at.

    Returns
    -------
    tuple of pandas.DataFrame and str
    """
    pandas = load_extra("pandas", needed_for="shortlist.spark")
    rows = pandas.concat(list(parts)).sort_values([names["at"], names["id"]], kind="stable")
    controller = Controller.from_state(json.loads(saved))
    scores, moments = (rows[names[name]].to_numpy(dtype=np.float64) for name in ("score", "at"))
    batch = controller.decide_many(scores, at=moments, ids=rows[names["id"]].tolist())
    return rows.assign(flagged=batch.flagged), json.dumps(controller.state())


_functions = Functions(SparkEngine())
select, calibrate = _functions.select, _functions.calibrate
score, flag, evaluate = _functions.score, _functions.flag, _functions.evaluate
