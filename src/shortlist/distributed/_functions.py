"""The functions for files and folders that are read block by block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from .._core.atomic import write_whole
from ..capacity import Capacity
from ..exceptions import TableError
from ..tables import TableModel
from ..thresholds import CalibratedThreshold
from ._evaluate import LargeEvaluation, measure_model
from ._files import TextTable, format_of
from ._frames import FrameFunctions
from ._joint import LargeAssignment, find_assignment
from ._local import LocalEngine
from ._models import ModelRows, plan_rows
from ._operations import find_threshold

__all__ = ["assign", "calibrate", "evaluate", "flag", "sample", "score", "select"]


def select(
    table: Any,
    capacity: Capacity | Mapping[Any, Capacity],
    *,
    score: str,
    id: str,
    segment: str | None = None,
    total: Capacity | None = None,
    random_state: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Any:
    """List the highest scores of a table that need not fit into memory, exactly.

    The list is that of :func:`shortlist.select` on the whole column, row for row, tied scores
    included. The table is read three times at most before the listed rows are read; the scores of
    a Parquet or Feather file once, and again if a tie is cut.

    Parameters
    ----------
    table : path, Arrow dataset or Arrow table
        A Parquet, Feather or CSV file, or a folder of them.
    capacity : Capacity or dict from segments to Capacity
        How many rows may be listed: of all rows, or of each segment.
    score, id : str
        Columns with the scores and with the ids, by which tied rows are put in order.
    segment : str, default=None
        A column with segments. One capacity then holds in each of them.
    total : Capacity, default=None
        With segments: how many rows may be listed in total.
    random_state : int, RandomState instance or None, default=None
        Key of the hash that orders tied rows.
    on_progress : callable, default=None
        Called with the number of the pass and the number of rows read in it.

    Returns
    -------
    pyarrow.Table
        The listed rows with all their columns, and `rank` from 1 on.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shortlist import Capacity
    >>> from shortlist.distributed import select
    >>> table = pa.table({"case": ["a", "b", "c", "d"], "risk": [0.2, 0.9, 0.4, 0.7]})
    >>> select(table, Capacity.count(2), score="risk", id="case").to_pylist()
    [{'case': 'b', 'risk': 0.9, 'rank': 1}, {'case': 'd', 'risk': 0.7, 'rank': 2}]
    """
    engine = LocalEngine(on_progress, [id, *([segment] if segment else [])])
    options: dict[str, Any] = {"score": score, "id": id, "segment": segment, "total": total}
    return FrameFunctions(engine).select(table, capacity, **options, random_state=random_state)


def calibrate(
    table: Any,
    capacity: Capacity,
    *,
    score: str,
    id: str | None = None,
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    n_batches: int = 1,
    random_state: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> CalibratedThreshold:
    """Find the lowest threshold that keeps a capacity, from a column of any length.

    The answer is that of :func:`shortlist.calibrate_threshold` on the whole column.

    Parameters
    ----------
    table, on_progress
        As for :func:`select`.
    capacity, prevalence, guarantee, confidence, n_batches, random_state
        As for :func:`shortlist.calibrate_threshold`.
    score : str
        The column with the calibration scores.
    id : str, default=None
        The column with the ids, which divide tied scores. Without it, they are left out as a block.

    Returns
    -------
    CalibratedThreshold

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shortlist import Capacity
    >>> from shortlist.distributed import calibrate
    >>> calibrate(pa.table({"risk": range(100)}), Capacity.fraction(0.1), score="risk").value
    90.0
    """
    return find_threshold(
        LocalEngine(on_progress, [id] if id else []),
        table,
        capacity,
        score=score,
        id=id,
        prevalence=prevalence,
        guarantee=guarantee,
        confidence=confidence,
        n_batches=n_batches,
        random_state=random_state,
    )


def score(
    model: Any,
    table: Any,
    *,
    id: str,
    keep: Collection[str] = (),
    out: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Score a table that need not fit into memory.

    Parameters
    ----------
    model : TableModel or CapacityClassifier
        From a model file, or fitted on a data frame.
    table : path, Arrow dataset or Arrow table
        A Parquet or Feather file, or a folder of them, with the columns of the model.
    id : str
        The column with the ids.
    keep : collection of str, default=()
        Other columns to carry along.
    out : Path, default=None
        A Parquet file to write the scores to, in bounded memory; `None` returns them.
    on_progress : callable, default=None
        Called with the number of the pass and the number of rows read in it.

    Returns
    -------
    pyarrow.Table or None
        Ids, kept columns and `score`.

    Examples
    --------
    >>> import pandas as pd
    >>> import pyarrow as pa
    >>> from sklearn.linear_model import LogisticRegression
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.datasets import FRAUD_FEATURES, make_fraud
    >>> from shortlist.distributed import score
    >>> X, y = make_fraud(n_samples=2000)
    >>> X = pd.DataFrame(X, columns=list(FRAUD_FEATURES))
    >>> learner = LogisticRegression(max_iter=10_000)
    >>> model = CapacityClassifier(learner, capacity=Capacity.fraction(0.05))
    >>> table = pa.Table.from_pandas(X.assign(case=range(2000)))
    >>> score(model.fit(X, y), table, id="case").column_names
    ['case', 'score']
    """
    rows = ModelRows(model, id)
    return _decided(rows, table, ("score",), kept=[id, *keep], out=out, on_progress=on_progress)


def flag(
    model: Any,
    table: Any,
    *,
    id: str,
    segment: str | None = None,
    keep: Collection[str] = (),
    out: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Decide about every row of a table with the calibrated rule of a model.

    Each row is decided on its own, so the answer does not depend on how rows are divided.

    Parameters
    ----------
    model, table, id, keep, out, on_progress
        As for :func:`score`.
    segment : str, default=None
        The column with the segments, if the model has capacities for them.

    Returns
    -------
    pyarrow.Table or None
        Ids, kept columns, `score` and `flagged`. If several models decide, each row has the score
        of the model that decides about it; rank by :func:`score`.
    """
    rows = ModelRows(model, id, segment)
    return _decided(
        rows, table, ("score", "flagged"), kept=[id, *keep], out=out, on_progress=on_progress
    )


def _readable(model: Any, table: Any) -> Any:
    """Return text files as the model reads them, and anything else as it is."""
    if not isinstance(table, (str, Path)) or format_of(Path(table)) in ("parquet", "feather"):
        return table
    if isinstance(model, TableModel):
        return TextTable(model, Path(table))
    raise TableError(
        f"{table} is a text file, and a classifier does not know how its values are written. "
        "Convert the file to Parquet, or make a model file with: shortlist fit."
    )


def _decided(
    rows: ModelRows,
    table: Any,
    said: tuple[str, ...],
    *,
    kept: list[str],
    out: Path | None,
    on_progress: Callable[[int, int], None] | None,
) -> Any:
    engine = LocalEngine(on_progress)
    table = _readable(rows.model, table)
    kernel, schema = plan_rows(engine, table, rows, said=said, kept=kept)
    if out is None:
        return engine.map_rows(table, kernel, schema)
    with write_whole(out) as file:
        engine.write_rows(table, kernel, schema, file)
    return None


def evaluate(
    model: Any,
    table: Any,
    *,
    id: str | None,
    target: str | None = None,
    segment: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LargeEvaluation:
    """Measure a model on a labelled table that need not fit into memory.

    Rows are scored once. The scores are kept in a temporary file while they are counted.

    Parameters
    ----------
    model, table, id, on_progress
        As for :func:`score`.
    target : str, default=None
        The column with the labels; `None` takes the target of a table model.
    segment : str, default=None
        The column with the segments, if the model has capacities for them.

    Returns
    -------
    LargeEvaluation
        M and its interval, flag rate, precision, the capacity curve, and drift.
    """
    engine = LocalEngine(on_progress)
    table = _readable(model, table)
    return measure_model(engine, model, table, id=id, target=target, segment=segment)


def sample(
    table: Any,
    share: float,
    *,
    target: str,
    rare_label: Any,
    id: str,
    random_state: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Keep all rare rows and a share of the others, with weights, to train in memory.

    A hash of the ids draws the sample, so the same rows are drawn however they are divided.

    Parameters
    ----------
    table, on_progress
        As for :func:`select`.
    share : float
        Share of the other rows to keep, above 0 and at most 1.
    target, rare_label : str, label
        The column with the labels, and the label of which all rows are kept.
    id : str
        The column with the ids.
    random_state : int, RandomState instance or None, default=None
        Key of the hash.

    Returns
    -------
    pyarrow.Table
        The kept rows with all their columns, and `weight`: 1 for rare rows, 1 / share for others.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shortlist.distributed import sample
    >>> table = pa.table({"case": range(1000), "fraud": [i % 100 == 0 for i in range(1000)]})
    >>> drawn = sample(table, 0.1, target="fraud", rare_label=True, id="case")
    >>> sum(drawn["fraud"].to_pylist()), drawn.num_rows
    (10, 109)
    """
    engine = LocalEngine(on_progress, [id])
    options: dict[str, Any] = {"target": target, "rare_label": rare_label, "id": id}
    return FrameFunctions(engine).sample(table, share, **options, random_state=random_state)


def assign(
    table: Any,
    capacities: Mapping[str, int | None],
    *,
    id: str,
    total: int | None = None,
    segment: str | None = None,
    segment_capacities: Mapping[Any, int] | None = None,
    random_state: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LargeAssignment:
    """Choose a column for each row within joint limits, exactly: :func:`shortlist.assign`.

    The highest rows of each column are candidates, which one machine solves for. One more pass
    compares the prices with every row, which proves that nothing better exists.

    Parameters
    ----------
    table, on_progress
        As for :func:`select`.
    capacities : dict from columns to int or None
        How many rows may get each column; `None` means no limit. The columns hold what a row is
        worth there, compared with leaving it; rows that are worth nothing are left.
    id : str
        The column with the ids, each of which occurs once.
    total : int, default=None
        How many rows may get any column.
    segment : str, default=None
        A column with the segment of each row.
    segment_capacities : dict from segments to int, default=None
        How many rows of each segment may get any column; rows of others are left.
    random_state : int, RandomState instance or None, default=None
        Key of the hash that orders rows of equal worth.

    Returns
    -------
    LargeAssignment

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shortlist.distributed import assign
    >>> table = pa.table({"case": ["a", "b", "c"], "call": [5, 6, 3], "visit": [1, 4, 0]})
    >>> found = assign(table, {"call": 1, "visit": 1}, id="case")
    >>> found.rows.to_pylist()
    [{'case': 'a', 'column': 'call'}, {'case': 'b', 'column': 'visit'}]
    >>> found.value, found.bound
    (9.0, 9.0)
    """
    return find_assignment(
        LocalEngine(on_progress, [id, *([segment] if segment else [])]),
        table,
        capacities,
        id=id,
        total=total,
        segment=segment,
        segment_capacities=segment_capacities,
        random_state=random_state,
    )
