"""Exact lists and thresholds for Dask data frames: the same answers as on one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    ranked,
)
from .thresholds import CalibratedThreshold

__all__ = ["DaskEngine", "calibrate", "select"]


class DaskEngine:
    """Calls kernels on the partitions of a data frame, wherever Dask has them.

    A data frame is a plan, and every pass computes it anew: persist scores, or write them first.
    """

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        schema = _arrow(table._meta_nonempty).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every partition, and collect its answers."""
        dask = load_extra("dask", needed_for="shortlist.dask")
        tasks = [dask.delayed(_answers)(part, kernel) for part in table[columns].to_delayed()]
        for answers in dask.compute(*tasks):
            yield from answers

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a data frame with the rows that a kernel returns."""
        source = table if kernel.columns is None else table[kernel.columns]
        return source.map_partitions(_mapped, kernel, meta=schema)


def _arrow(frame: Any) -> Any:
    pa = load_extra("pyarrow", needed_for="shortlist.dask")
    return pa.Table.from_pandas(frame, preserve_index=False)


def _answers(frame: Any, kernel: Any) -> list[Any]:
    columns = list(frame.columns)
    return [kernel(as_columns(block, columns)) for block in blocks_of([_arrow(frame)])]


def _mapped(frame: Any, kernel: RowKernel) -> Any:
    return kernel(_arrow(frame)).to_pandas()


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
        Scored rows; persisted or read from files.
    capacity, score, id, segment, total, random_state
        As for :func:`shortlist.distributed.select`.

    Returns
    -------
    dask.dataframe.DataFrame
        The listed rows with all their columns, and `rank` from 1 on, in one partition.
    """
    dd = load_extra("dask.dataframe", needed_for="shortlist.dask")
    engine = DaskEngine()
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
    listed = engine.map_rows(df, kernel, df._meta.assign(**{TIE_KEY: 0.0}))
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
    return find_threshold(DaskEngine(), df, capacity, score=score, id=id, **options)
