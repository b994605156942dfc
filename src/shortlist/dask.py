"""Exact lists, thresholds and evaluations for Dask data frames: the answers of one machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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
    ranked,
    table_schema,
    versions_here,
)
from .exceptions import TableError
from .thresholds import CalibratedThreshold

__all__ = ["DaskEngine", "calibrate", "evaluate", "flag", "score", "select"]

# Expressions that only read files, or rows that are kept: they may be computed again.
_CHEAP = (
    *("Read", "PyarrowReadParquet", "FromPandas", "FromArray", "FromGraph", "FromMap"),
    *("Projection", "Filter", "Fused", "ArrowStringConversion"),
)


class DaskEngine:
    """Calls kernels on the partitions of a data frame, wherever Dask has them.

    A data frame is a plan, and every pass computes it anew. A plan that only reads files or
    persisted rows may be computed again; any other is persisted before the first pass.
    """

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        if not type(table).__module__.startswith("dask.dataframe"):
            raise TableError(
                f"shortlist.dask takes a data frame of Dask; got {type(table).__name__}."
            )
        schema = _arrow(table._meta_nonempty).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every partition, and collect its answers."""
        dask = load_extra("dask", needed_for="shortlist.dask")
        shipped = dask.delayed(kernel)
        tasks = [dask.delayed(_answers)(part, shipped) for part in table[columns].to_delayed()]
        for answers in dask.compute(*tasks):
            yield from answers

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a data frame with the rows that a kernel returns."""
        dask = load_extra("dask", needed_for="shortlist.dask")
        source = table if kernel.columns is None else table[kernel.columns]
        meta = _like(schema.empty_table().to_pandas(), table._meta)
        return source.map_partitions(_mapped, dask.delayed(kernel), meta, meta=meta)

    @contextmanager
    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Iterator[Any]:
        """Keep such rows in the memory of the workers."""
        yield self.map_rows(table, kernel, schema).persist()

    def check_versions(self, table: Any) -> None:
        """Raise an error if a worker has other versions; without a cluster there are none."""
        try:
            client = load_extra("distributed", needed_for="A cluster").get_client()
        except (ImportError, ValueError):
            return
        check_same(client.run(versions_here()).values())


def computed_once(table: Any) -> Any:
    """Return a data frame that several passes see alike: itself, or persisted.

    Parameters
    ----------
    table : dask.dataframe.DataFrame
        Any frame.

    Returns
    -------
    dask.dataframe.DataFrame
    """
    if not hasattr(table, "expr"):  # not a frame of Dask; the first pass says so
        return table
    kinds = {type(each).__name__ for each in table.expr.walk()}
    return table if all(kind.startswith(_CHEAP) for kind in kinds) else table.persist()


def _arrow(frame: Any) -> Any:
    pa = load_extra("pyarrow", needed_for="shortlist.dask")
    return pa.Table.from_pandas(frame, preserve_index=False)


def _like(frame: Any, original: Any) -> Any:
    """Give columns of a frame the types that they have in another one."""
    own = {name: original[name].dtype for name in frame.columns if name in original.columns}
    return frame.astype(own)


def _answers(frame: Any, kernel: Any) -> list[Any]:
    return [kernel(block) for block in blocks_of([_arrow(frame)])]


def _mapped(frame: Any, kernel: RowKernel, meta: Any) -> Any:
    pa = load_extra("pyarrow", needed_for="shortlist.dask")
    blocks = list(blocks_of([_arrow(frame)], FEW))
    if not blocks:
        return meta
    return pa.concat_tables([kernel(block) for block in blocks]).to_pandas().astype(meta.dtypes)


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

    Parameters
    ----------
    df : dask.dataframe.DataFrame
        Scored rows. If the frame does more than read files or persisted rows, it is persisted.
    capacity, score, id, segment, total, random_state
        As for :func:`shortlist.distributed.select`.

    Returns
    -------
    dask.dataframe.DataFrame
        The listed rows with all their columns, and `rank` from 1 on, in one partition.
    """
    dd = load_extra("dask.dataframe", needed_for="shortlist.dask")
    engine, df = DaskEngine(), computed_once(df)
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
    rows = ranked(_arrow(listed.compute()), score).to_pandas()
    return dd.from_pandas(rows, npartitions=1)


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
    df : dask.dataframe.DataFrame
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
    return find_threshold(DaskEngine(), df, capacity, score=score, id=id, **options)


def score(model: Any, df: Any, *, id: str, keep: Collection[str] = ()) -> Any:
    """Score a data frame on the workers.

    Parameters
    ----------
    model, id, keep
        As for :func:`shortlist.distributed.score`.
    df : dask.dataframe.DataFrame
        With the columns of the model.

    Returns
    -------
    dask.dataframe.DataFrame
        Ids, kept columns and `score`. Write or persist it before you select from it.
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
    df : dask.dataframe.DataFrame
        With the columns of the model.

    Returns
    -------
    dask.dataframe.DataFrame
        Ids, kept columns, `score` and `flagged`.
    """
    return _decided(ModelRows(model, id, segment), df, ("score", "flagged"), [id, *keep])


def _decided(rows: ModelRows, df: Any, said: tuple[str, ...], kept: list[str]) -> Any:
    engine = DaskEngine()
    kernel, schema = plan_rows(engine, df, rows, said=said, kept=kept)
    return engine.map_rows(df, kernel, schema)


def evaluate(
    model: Any, df: Any, *, id: str | None, target: str | None = None, segment: str | None = None
) -> LargeEvaluation:
    """Measure a model on a labelled data frame.

    Parameters
    ----------
    model, id, target, segment
        As for :func:`shortlist.distributed.evaluate`.
    df : dask.dataframe.DataFrame
        With the columns of the model, and the labels.

    Returns
    -------
    LargeEvaluation
    """
    df = computed_once(df)
    return measure_model(DaskEngine(), model, df, id=id, target=target, segment=segment)
