"""The choice among numbers of neighbours: what each of them finds, and which one is taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.ranking import cut_after, flag_above
from ..capacity import Capacity
from ..metrics import detection_at_capacity
from ._neighbors import check_n_neighbors

__all__ = ["TIE_BREAKS", "best_column", "candidate_numbers", "detections"]

TIE_BREAKS = ("smallest", "largest")

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def candidate_numbers(n_neighbors: Any) -> NDArray[np.intp]:
    """Return the numbers of neighbours to choose from, in rising order."""
    if isinstance(n_neighbors, Iterable) and not isinstance(n_neighbors, str):
        listed = [check_n_neighbors("Each of n_neighbors", k) for k in n_neighbors]
        if not listed:
            raise ValueError("n_neighbors must list at least one number of neighbours; got none.")
        return np.unique(np.array(listed, dtype=np.intp))
    return np.arange(1, check_n_neighbors("n_neighbors", n_neighbors) + 1, dtype=np.intp)


def detections(shares: Floats, is_rare: Mask, capacity: Capacity, *, ties: str) -> Floats:
    """Return what each column of scores finds within the capacity, as a share of the rare items."""
    detect = _detection_strict if ties == "exclude" else detection_at_capacity
    return np.array([detect(is_rare, column, capacity) for column in shares.T])


def best_column(criterion: NDArray[Any], *, tie_break: str) -> int:
    """Return the place of the largest value; of several, the first or the last."""
    best = np.flatnonzero(criterion == criterion.max())
    return int(best[0] if tie_break == "smallest" else best[-1])


def _detection_strict(is_rare: Mask, scores: Floats, capacity: Capacity) -> float:
    """Leave out the whole of a tied block across the cut, and items without a rare neighbour."""
    flagged = flag_above(scores, cut_after(scores, capacity.max_flags(scores.size)))
    return np.count_nonzero(flagged & is_rare & (scores > 0)) / np.count_nonzero(is_rare)
