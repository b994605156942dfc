"""Exact lists, thresholds and evaluations for Spark data frames: the answers of one machine."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core.extras import load_extra
from .distributed import (
    FEW,
    TIE_KEY,
    CutSearch,
    FrameFunctions,
    Inside,
    ListedRows,
    LocalEngine,
    Located,
    RowKernel,
    SearchColumns,
    Totals,
    blocks_of,
    check_same,
    locate,
    refuse_nan,
    versions_here,
)
from .exceptions import TableError
from .online import Controller

__all__ = [
    "SparkEngine",
    "assign",
    "calibrate",
    "decide_rows",
    "decide_stream",
    "evaluate",
    "flag",
    "sample",
    "score",
    "select",
]

_ANSWER = "answer binary"
# Plans of these nodes only read files, or rows that are kept: they may be computed again.
_CHEAP = {"LogicalRelation", "LocalRelation", "LogicalRDD", "InMemoryRelation", "Range", "Union"}
_CHEAP |= {"Project", "Filter", "SubqueryAlias", "DataSourceV2ScanRelation", "ResolvedHint"}
# The sample that guesses a bracket: about so many rows, at least this share, and how wide it is.
_SAMPLED, _LEAST_SHARE, _BYTES_PER_ROW = 50_000, 1e-3, 16
_STANDARD_ERRORS, _SAMPLE_SEED = 6, 1
_FEW_TIED = 1 << 17  # rows whose ids are fetched rather than hashed by the executors
_OURS = re.compile(r"shortlist\.exceptions\.\w+: (.*)")


class SparkEngine:
    """Calls kernels on the executors, on Arrow batches of a data frame.

    A data frame is a plan, and every pass computes it anew. A plan that only reads files or cached
    rows may be computed again. A plan that does more is cached before the first pass. A plan that
    draws random numbers is refused: write it to a table first.
    """

    def __init__(self) -> None:
        self._checked: set[str] = set()  # applications whose executors have our versions

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        _check_frame(table)
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

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a data frame with the rows that a kernel returns."""
        columns = table.columns if kernel.columns is None else kernel.columns
        shipped = table.sparkSession.sparkContext.broadcast(kernel)
        mapped = _mapping(shipped, columns)
        return _numbered(table, columns).mapInArrow(mapped, _spark_schema(table, schema))

    def computed_once(self, table: Any) -> Any:
        """Return a data frame that several passes see alike: itself, or cached."""
        _check_frame(table)
        if table.is_cached:
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

    def search(self, table: Any, columns: SearchColumns) -> CutSearch:
        """Return what finds cuts in a data frame: with segments in Python, without them in SQL."""
        search = CutSearch.through(self, table, columns)
        if columns.segment is not None:
            return search
        return _SqlSearch(**vars(search), engine=self, table=table)

    def listed_rows(self, table: Any, kernel: ListedRows, schema: Any, score: str) -> Any:
        """Return the rows of a list, in order; Python sees no rows below the cut."""
        functions, window = _functions_of("functions"), _functions_of("window")
        highest = table.where(_number(score) >= functions.lit(kernel.least))
        listed = self.map_rows(highest, kernel, schema)
        order = window.Window.orderBy(_number(score).desc(), functions.asc(TIE_KEY))
        return listed.withColumn("rank", functions.row_number().over(order)).drop(TIE_KEY)

    @contextmanager
    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Iterator[Any]:
        """Cache such rows, in memory or on the disks of the executors, while they are needed."""
        rows = self.map_rows(table, kernel, schema).persist()
        try:
            yield rows
        finally:
            rows.unpersist()

    def check_versions(self, table: Any) -> None:
        """Raise an error if an executor has other versions of the packages that models need.

        An application is asked once.
        """
        spark = table.sparkSession
        if spark.sparkContext.applicationId in self._checked:
            return
        n_tasks = 2 * spark.sparkContext.defaultParallelism
        found = spark.range(0, n_tasks, 1, n_tasks).mapInArrow(_finding(versions_here()), _ANSWER)
        check_same(pickle.loads(row["answer"]) for row in found.collect())
        self._checked.add(spark.sparkContext.applicationId)


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


@dataclass(frozen=True)
class _SqlSearch(CutSearch):
    """Finds the cut of a data frame in SQL: rows do not leave the executors' own memory.

    A sample guesses a bracket. The second pass counts what lies above it and in it, which proves
    the guess; if it was wrong, the search through kernels follows, which guesses nothing. Only ids
    of tied rows are hashed, in Python: many by the executors, a few here, which is sooner done.
    """

    engine: Any = None
    table: Any = None

    def totals(self) -> dict[Any, Totals]:
        """Count the scores, refuse those that are not numbers, and draw a sample."""
        f, score = _functions_of("functions"), _number(self.score)
        drawn = self.table.select(score.alias("score"), f.rand(_SAMPLE_SEED).alias("draw"))
        bad, is_drawn = f.isnull("score") | f.isnan("score"), f.col("draw") < self._share()
        found = drawn.agg(
            f.count(f.lit(1)).alias("n"),
            f.count(f.when(bad, 1)).alias("n_bad"),
            f.collect_list(f.when(is_drawn & ~bad, f.col("score"))).alias("sample"),
        ).toArrow()
        n, n_bad = found["n"][0].as_py(), found["n_bad"][0].as_py()
        refuse_nan(n_bad, n, score=self.score)
        sample = np.sort(found["sample"][0].values.to_numpy())[::-1]
        return {None: Totals(n, sample, [n], [sample])} if n else {}

    def _share(self) -> float:
        plan = self.table.select(_quoted(self.score))._jdf.queryExecution().optimizedPlan()
        n_rows = int(str(plan.stats().sizeInBytes())) / _BYTES_PER_ROW
        return float(np.clip(_SAMPLED / max(n_rows, 1), _LEAST_SHARE, 1))

    def locate(self, totals: dict[Any, Totals], places: dict[Any, int]) -> dict[Any, Located]:
        """Find the score in a place; a wrong guess starts the search that guesses nothing."""
        found = {}
        for name, place in places.items():
            inside = self._counted(*_guess(totals[name], place))
            if not inside.above <= place < inside.above + inside.counts.sum():
                certain = self._in_kernels(self.table)
                return certain.locate(certain.totals(), places)
            found[name] = locate(inside, place)
        return found

    def _counted(self, low: float, high: float) -> Inside:
        f, score = _functions_of("functions"), _number(self.score)
        value = f.when(score <= f.lit(high), score).alias("value")  # null above
        rows = self.table.where(score >= f.lit(low)).groupBy(value).count().toArrow()
        values, counts = rows["value"].to_numpy(), rows["count"].to_numpy()
        is_above = np.isnan(values)
        order = np.argsort(values[~is_above])
        above = int(counts[is_above].sum())
        return Inside(above, values[~is_above][order], counts[~is_above][order])

    def keys(self, located: dict[Any, Located], limits: dict[Any, float]) -> dict[Any, Any]:
        """Hash the ids of the tied rows, as far as they lie below a limit; of a few rows, here."""
        (found,) = located.values()
        tied = self.table.where(_number(self.score) == _functions_of("functions").lit(found.value))
        if found.tied > _FEW_TIED:
            return self._in_kernels(tied).keys(located, limits)
        rows = tied.select(*map(_quoted, dict.fromkeys((self.score, self.id)))).toArrow()
        return CutSearch.through(LocalEngine(), rows, self._columns).keys(located, limits)

    def _in_kernels(self, table: Any) -> CutSearch:
        return CutSearch.through(self.engine, table, self._columns)

    @property
    def _columns(self) -> SearchColumns:
        return SearchColumns(self.score, self.id, None, self.seed)


def _guess(totals: Totals, place: int) -> tuple[float, float]:
    """Return two sampled scores between which the score in a place lies, almost surely."""
    size, share = totals.marks.size, place / totals.n
    room = _STANDARD_ERRORS * np.sqrt(size * share * (1 - share) + 1) + 1
    low, high = int(np.ceil(size * share + room)), int(np.floor(size * share - room))
    return (
        float(totals.marks[low]) if low < size else -np.inf,
        float(totals.marks[high]) if high >= 0 else np.inf,
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


def _finding(find: Callable[[], Any]) -> Callable[[Any], Iterator[Any]]:
    # Nothing of this package may be needed to load this function.
    def answer(batches: Any) -> Iterator[Any]:
        import pickle as pickles

        import pyarrow as pa

        for _ in batches:
            found = pickles.dumps(find())
            yield pa.RecordBatch.from_arrays([pa.array([found], pa.binary())], ["answer"])

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
    types, f = _functions_of("types"), _functions_of("functions")
    names = dict(zip(("queue", "id", "score", "at"), (queue, id, score, at), strict=True))
    number = types.DoubleType()
    fields = [df.schema[queue], df.schema[id], types.StructField(score, number)]
    fields += [types.StructField(at, number), types.StructField("flagged", types.BooleanType())]
    rows = df.select(
        _quoted(queue),
        _quoted(id),
        _number(score).alias(score),
        f.col(_quoted(at)).cast("double").alias(at),
    )
    start = json.dumps(controller.state())
    return rows.groupBy(_quoted(queue)).transformWithStateInPandas(
        statefulProcessor=_stateful(start, names),
        outputStructType=types.StructType(fields),
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


_functions = FrameFunctions(SparkEngine())
select, calibrate, sample = _functions.select, _functions.calibrate, _functions.sample
score, flag, evaluate = _functions.score, _functions.flag, _functions.evaluate
assign = _functions.assign
