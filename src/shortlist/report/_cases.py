"""Labelled cases, the most suspicious first: what all parts of a report look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import TableModel, open_source
from ..tables._evaluate import check_labels
from ..tables._schema import all_rows
from ..tables._select import rank_rows

__all__ = ["Cases", "read_cases"]


@dataclass(frozen=True)
class Cases:
    """Rows of a table as a model sees them.

    Attributes
    ----------
    X : data frame
        Features, in the order of the file, like all arrays here.
    ids : ndarray or None
        Names of the cases.
    is_rare, scores, flagged : ndarray
        Labels, scores, and what the calibrated rule decided.
    order : ndarray of int
        Positions, the most suspicious first; the rule flags a beginning of it.
    """

    X: Any
    ids: NDArray[Any] | None
    is_rare: NDArray[np.bool_]
    scores: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    order: NDArray[np.intp]

    @property
    def n_flagged(self) -> int:
        """How many the rule flagged."""
        return int(self.flagged.sum())

    def first(self, count: int) -> NDArray[np.bool_]:
        """Return a mask of the `count` most suspicious cases."""
        mask = np.zeros(self.is_rare.size, dtype=bool)
        mask[self.order[:count]] = True
        return mask


def read_cases(model: TableModel, path: Path, target: str) -> Cases:
    """Read, score, decide and rank all rows of a labelled table."""
    with open_source(path) as source:
        rows = all_rows(model.schema, source, target=target)
    is_rare = check_labels(rows.is_rare, model, target)
    decided = model.classifier.decide(rows.X, ids=rows.ids)
    scores = np.asarray(decided.scores, dtype=np.float64)
    order = rank_rows(model, rows.X, rows.ids, scores)
    return Cases(rows.X, rows.ids, is_rare, scores, decided.flagged, order)
