"""One process that reads block by block: the engine for tables larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .._core.atomic import write_whole
from .._core.extras import load_extra
from ..capacity import Capacity
from ..exceptions import TableError
from ..tables import TableModel
from ..thresholds import CalibratedThreshold
from ._cut import CutSearch, SearchColumns
from ._engine import BLOCK, FEW, RowKernel, as_columns, blocks_of
from ._evaluate import LargeEvaluation, measure_model
from ._files import TextTable, format_of, open_table
from ._floor import MOST_HELD, FloorSearch
from ._frames import FrameFunctions
from ._models import ModelRows, plan_rows
from ._operations import TIE_KEY, ListedRows, find_threshold

__all__ = ["LocalEngine", "calibrate", "evaluate", "flag", "ranked", "sample", "score", "select"]

_READ_AHEAD = 4  # batches


class LocalEngine:
    """Reads Parquet, Feather and CSV files, and folders of them, in bounded memory.

    Parameters
    ----------
    on_progress : callable, default=None
        Called with the number of the pass and the number of rows read in it.
    texts : collection of str, default=()
        Columns of CSV files that are not numbers, whatever they look like: 007 is not 7.
    """

    def __init__(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        texts: Collection[str] = (),
    ) -> None:
        self._texts = texts
        self._on_progress = on_progress or (lambda number, rows: None)
        self._pass = 0

    def open(self, table: Any) -> Any:
        """Return an Arrow dataset: of a path, a folder, a list of paths or an Arrow table."""
        return open_table(table, self._texts)

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        schema = self.open(table).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def _blocks(self, table: Any, columns: list[str] | None, size: int) -> Iterator[Any]:
        self._pass, n_rows = self._pass + 1, 0
        batches = self.open(table).to_batches(
            columns=columns, batch_size=size, batch_readahead=_READ_AHEAD, fragment_readahead=1
        )
        for block in blocks_of(batches, size):
            n_rows += block.num_rows
            yield block
            self._on_progress(self._pass, n_rows)

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every block."""
        return (kernel(block) for block in self._blocks(table, columns, BLOCK))

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return the rows that a kernel returns as one Arrow table."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        parts = [kernel(block) for block in self._blocks(table, kernel.columns, FEW)]
        return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])

    def write_rows(self, table: Any, kernel: RowKernel, schema: Any, file: Any) -> None:
        """Write the rows that a kernel returns to an open Parquet file, in bounded memory."""
        parquet = load_extra("pyarrow.parquet", needed_for="Writing large tables")
        with parquet.ParquetWriter(file, schema) as writer:
            for block in self._blocks(table, kernel.columns, FEW):
                writer.write_table(kernel(block).cast(schema))

    @contextmanager
    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Iterator[Any]:
        """Write such rows to a temporary Parquet file, and return its path."""
        with TemporaryDirectory(prefix="shortlist-") as folder:
            path = Path(folder) / "rows.parquet"
            with path.open("wb") as file:
                self.write_rows(table, kernel, schema, file)
            yield path

    def search(self, table: Any, columns: SearchColumns) -> CutSearch:
        """Return what finds cuts in a table: in one pass, if its length and the place are known."""
        dataset = self.open(table)
        if columns.place is None or not _knows_length(dataset):
            return CutSearch.through(self, table, columns)
        place = columns.place(dataset.count_rows())
        if not 0 < place <= MOST_HELD:
            return CutSearch.through(self, table, columns)
        return FloorSearch.of(self, dataset, columns, place)

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another, both included."""
        dataset = self.open(table)
        if isinstance(dataset, TextTable):
            return dataset
        field = load_extra("pyarrow.dataset", needed_for="Reading large tables").field(score)
        return dataset.filter((field >= low) & (field <= high))

    def computed_once(self, table: Any) -> Any:
        """Return the table: files are not computed."""
        return table

    def listed_rows(self, table: Any, kernel: ListedRows, schema: Any, score: str) -> Any:
        """Return the rows of a list as one Arrow table, in order."""
        highest = self.between(table, score, kernel.least, np.inf)
        return ranked(self.map_rows(highest, kernel, schema), score)

    def check_versions(self, table: Any) -> None:
        """There is one process, and so nothing to check."""


def _knows_length(dataset: Any) -> bool:
    """Return whether the number of rows is known without reading them."""
    format = getattr(getattr(dataset, "format", None), "default_extname", None)
    return format in ("parquet", "feather", "ipc") or type(dataset).__name__ == "InMemoryDataset"


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
    (10, 102)
    """
    engine = LocalEngine(on_progress, [id])
    options: dict[str, Any] = {"target": target, "rare_label": rare_label, "id": id}
    return FrameFunctions(engine).sample(table, share, **options, random_state=random_state)


def ranked(rows: Any, score: str) -> Any:
    """Put listed rows in order, the most suspicious first, and number them."""
    columns = as_columns(rows, [score, TIE_KEY])
    scores = np.asarray(columns[score], dtype=np.float64)
    order = np.lexsort((columns[TIE_KEY], -scores))
    pa = load_extra("pyarrow", needed_for="Reading large tables")
    numbers = pa.array(np.arange(1, rows.num_rows + 1))
    return rows.take(pa.array(order)).drop_columns([TIE_KEY]).append_column("rank", numbers)
