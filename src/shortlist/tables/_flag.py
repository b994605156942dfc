"""Flagging row by row with the calibrated rule, in constant memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._formats import open_writer
from ._model import TableModel
from ._reading import Reading
from ._schema import TableRows

__all__ = ["FlagSummary", "flag_rows"]


@dataclass(frozen=True)
class FlagSummary:
    """How many rows were read and flagged, and what share of rows the capacity allows."""

    n_items: int
    n_flagged: int
    capacity_fraction: float
    guarantee: str

    @property
    def flagged_fraction(self) -> float | None:
        """The share of flagged rows; None if there were no rows."""
        return self.n_flagged / self.n_items if self.n_items else None


def flag_rows(
    model: TableModel,
    path: Path,
    file: BinaryIO,
    *,
    format: str = "csv",
    reading: Reading | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> FlagSummary:
    """Decide for every row of a table whether to follow it up, and write the decisions.

    Each row is decided on its own, so the result does not depend on where chunks begin. A decision
    consists of the id of the row (or its number below the heading, counted from 1), its score, and
    1 if it is flagged or 0 if it is not.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs, of any length.
    file : binary file
        Where to write the decisions.
    format : {"csv", "parquet", "feather", "jsonl"}, default="csv"
        The format of the decisions.
    reading : Reading, default=None
        What to know about this file; `None` reads it as the table of the fit.
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
    with model.schema.open(path, reading=reading) as source:
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


def _decide(model: TableModel, rows: TableRows, n_before: int) -> dict[str, Any]:
    decided = model.classifier.decide(rows.X, ids=rows.ids)
    numbers = np.arange(n_before + 1, n_before + len(rows.X) + 1)
    first = {"row": numbers} if model.schema.id is None else {model.schema.id: rows.ids}
    return {
        **first,
        "score": np.asarray(decided.scores, dtype=np.float64),
        "flagged": decided.flagged.astype(np.int8),
    }
