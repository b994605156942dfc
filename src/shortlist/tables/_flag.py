"""The calibrated rule, row by row: any number of rows in constant memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._model import TableModel
from ._read import open_source
from ._schema import Rows
from ._write import open_writer

__all__ = ["FlagSummary", "flag_rows"]


@dataclass(frozen=True)
class FlagSummary:
    """How many rows were read, how many were flagged, and what share the capacity allows."""

    n_items: int
    n_flagged: int
    capacity_fraction: float
    guarantee: str

    @property
    def flagged_fraction(self) -> float | None:
        """The share of rows that was flagged; None when there were none."""
        return self.n_flagged / self.n_items if self.n_items else None


def flag_rows(
    model: TableModel,
    path: Path,
    file: BinaryIO,
    *,
    format: str = "csv",
    on_progress: Callable[[int], None] | None = None,
) -> FlagSummary:
    """Decide for every row of a table whether to follow it up, and write the decisions.

    Each row is decided on its own, so that the answers do not depend on where chunks begin. The
    decisions have the id of the row (its number below the heading without one), the score, and 1
    or 0 for flagged or not.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs, of any length.
    file : binary file
        Where the decisions are written.
    format : {"csv", "parquet", "feather", "jsonl"}, default="csv"
        How they are written.
    on_progress : callable, default=None
        Called with the number of rows decided so far.

    Returns
    -------
    FlagSummary
        How many rows were read and flagged.
    """
    n_items = n_flagged = 0
    first = {"row": "int64"} if model.schema.id is None else {model.schema.id: "string"}
    columns = {**first, "score": "double", "flagged": "int8"}
    with open_source(path) as source:
        chunks = model.schema.rows(source)
        with open_writer(file, format, columns) as write:
            for rows in chunks:
                if len(rows.X) == 0:
                    continue
                decided = _decide(model, rows, n_items)
                write(decided)
                n_items += len(rows.X)
                n_flagged += int(decided["flagged"].sum())
                if on_progress is not None:
                    on_progress(n_items)
    classifier = model.classifier
    return FlagSummary(n_items, n_flagged, classifier.capacity_fraction_, classifier.guarantee)


def _decide(model: TableModel, rows: Rows, n_before: int) -> dict[str, Any]:
    # Flags and scores from one pass over the model; flag() and score_samples() would take two.
    decided = model.classifier.decide(rows.X, ids=rows.ids)
    numbers = np.arange(n_before + 1, n_before + len(rows.X) + 1)
    first = {"row": numbers} if model.schema.id is None else {model.schema.id: rows.ids}
    return {
        **first,
        "score": np.asarray(decided.scores, dtype=np.float64),
        "flagged": decided.flagged.astype(np.int8),
    }
