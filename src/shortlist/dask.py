"""Exact lists, thresholds and evaluations for Dask data frames: the answers of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._core.arrow import pa
from ._core.extras import load_extra
from .distributed.engine import BLOCK, FEW, Engine, Plan, blocks_of, ranked
from .distributed.functions import Functions
from .exceptions import TableError

__all__ = ["calibrate", "evaluate", "flag", "score", "select"]

# Expressions that only read files, or rows that are kept: they may be computed again.
_CHEAP = (
    *("Read", "PyarrowReadParquet", "FromPandas", "FromArray", "FromGraph", "FromMap"),
    *("Projection", "Filter", "Fused", "ArrowStringConversion"),
)


class DaskEngine(Engine):
    """Calls kernels on the partitions of a data frame, wherever Dask has them.

    A data frame is a plan, and every pass computes it anew. A plan that only reads files or
    persisted rows may be computed again; any other is persisted before the first pass.
    """

    def opened(self, table: Any, *, passes: int) -> Any:
        """Check that this is a data frame of Dask that several passes see alike, or persist it."""
        if not type(table).__module__.startswith("dask.dataframe"):
            raise TableError(
                f"shortlist.dask takes a data frame of Dask; got {type(table).__name__}."
            )
        _check_types(table.dtypes)
        kinds = {type(each).__name__ for each in table.expr.walk()}
        is_cheap = all(kind.startswith(_CHEAP) for kind in kinds)
        return table if passes == 1 or is_cheap else table.persist()

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        schema = _arrow(table._meta_nonempty).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every partition, and collect its answers."""
        dask = load_extra("dask", needed_for="shortlist.dask")
        shipped = dask.delayed(kernel)
        tasks = [dask.delayed(_answers)(part, shipped) for part in table[columns].to_delayed()]
        for answers in dask.compute(*tasks):
            yield from answers

    def map_rows(self, plan: Plan) -> Any:
        """Return a data frame with the rows of a plan."""
        dask = load_extra("dask", needed_for="shortlist.dask")
        source = plan.table if plan.columns is None else plan.table[plan.columns]
        meta = _like(plan.schema.empty_table().to_pandas(), plan.table._meta)
        # One object that Dask need not look into, to name the plan by what is in it.
        shipped = dask.delayed((plan.kernel, meta), traverse=False)
        return source.map_partitions(_mapped, shipped, meta=meta)

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another, both included."""
        return table[table[score].astype("float64").between(low, high)]

    def in_order(self, rows: Any, score: str) -> Any:
        """Return the rows of a list in one partition, in order."""
        dd = load_extra("dask.dataframe", needed_for="shortlist.dask")
        return dd.from_pandas(ranked(_arrow(rows.compute()), score).to_pandas(), npartitions=1)

    def write_rows(self, plan: Plan, out: Path) -> None:
        """Let the workers write such rows."""
        self.map_rows(plan).to_parquet(str(out))

    @contextmanager
    def kept_rows(self, plan: Plan) -> Iterator[Any]:
        """Keep such rows in the memory of the workers."""
        yield self.map_rows(plan).persist()


def _check_types(types: Any) -> None:
    """Raise an error if a column may hold anything: ids of different types are different ids."""
    vague = [name for name, kind in types.items() if str(kind) == "object"]
    if vague:
        raise TableError(
            f"The column {vague[0]!r} has the type object, which leaves the type of its values "
            f"open. Convert it: df.astype({{{vague[0]!r}: 'string'}}), or leave it out."
        )


def _arrow(frame: Any) -> Any:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _like(frame: Any, original: Any) -> Any:
    """Give columns of a frame the types that they have in another one."""
    own = {name: original[name].dtype for name in frame.columns if name in original.columns}
    return frame.astype(own)


def _answers(frame: Any, kernel: Any) -> list[Any]:
    return [kernel(block) for block in blocks_of(_arrow(frame).to_batches(BLOCK))]


def _mapped(frame: Any, shipped: tuple[Any, Any]) -> Any:
    kernel, meta = shipped
    blocks = list(blocks_of(_arrow(frame).to_batches(FEW), FEW))
    if not blocks:
        return meta
    return pa.concat_tables([kernel(block) for block in blocks]).to_pandas().astype(meta.dtypes)


_functions = Functions(DaskEngine())
select, calibrate = _functions.select, _functions.calibrate
score, flag, evaluate = _functions.score, _functions.flag, _functions.evaluate
