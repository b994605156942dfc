"""The choice of k: what each number of neighbours detects at each weight of a rare vote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from .._core.ranking import cut_after, flag_above
from .._core.validation import check_count, check_option
from ..capacity import Capacity, check_capacity
from ..metrics import detection_at_capacity

__all__ = [
    "TIE_BREAKS",
    "SurfaceChoice",
    "VoteSurface",
    "best_column",
    "candidate_numbers",
    "detections",
    "vote_surface",
]

TIE_BREAKS = ("smallest", "largest")

_STEPS = 1_000  # of a0 from 0 to 1: a surface takes 16 kB for each k, however many items there are


def candidate_numbers(n_neighbors: Any) -> Rows:
    """Return the numbers of neighbours to choose from, in rising order."""
    if isinstance(n_neighbors, Iterable) and not isinstance(n_neighbors, str):
        listed = [check_count("Each of n_neighbors", k) for k in n_neighbors]
        if not listed:
            raise ValueError("n_neighbors must list at least one number of neighbours; got none.")
        return np.unique(np.array(listed, dtype=np.intp))
    return np.arange(1, check_count("n_neighbors", n_neighbors) + 1, dtype=np.intp)


def detections(shares: Doubles, is_rare: Mask, capacity: Capacity, *, ties: str) -> Doubles:
    """Return the share of rare items that each column of scores detects within the capacity."""
    detect = _detection_strict if ties == "exclude" else detection_at_capacity
    return np.array([detect(is_rare, column, capacity) for column in shares.T])


def best_column(criterion: NDArray[Any], *, tie_break: str) -> int:
    """Return the place of the largest value, the first or the last of several."""
    best = np.flatnonzero(criterion == criterion.max())
    return int(best[0] if tie_break == "smallest" else best[-1])


def _detection_strict(is_rare: Mask, scores: Doubles, capacity: Capacity) -> float:
    """Return what is detected without items that tie at the cut or have no rare neighbour."""
    flagged = flag_above(scores, cut_after(scores, capacity.max_flags(scores.size)))
    return np.count_nonzero(flagged & is_rare & (scores > 0)) / np.count_nonzero(is_rare)


class SurfaceChoice(NamedTuple):
    """A point of the surface: neighbours, weight of a rare vote, shares flagged and detected."""

    n_neighbors: int
    a0: float
    flagged: float
    detection: float


@dataclass(frozen=True)
class VoteSurface:
    r"""Flagged and detected shares for every number of neighbours k and weight :math:`a_0`.

    An item is flagged when the weighted share of its rare neighbours exceeds :math:`1 - a_0`.

    Attributes
    ----------
    n_neighbors : ndarray of shape (n_candidates,)
        The numbers of neighbours k.
    a0 : ndarray of shape (1001,)
        Weights of a rare vote, from 0 to 1 in steps of 0.001.
    flagged : ndarray of shape (n_candidates, 1001)
        Flagged share of all items.
    detection : ndarray of shape (n_candidates, 1001)
        Flagged share of the rare items.

    Examples
    --------
    What half and twice the capacity would detect, without another fit:

    >>> from shortlist import Capacity
    >>> from shortlist.datasets import make_fraud
    >>> from shortlist.learners import CapacityKNeighborsClassifier
    >>> X, y = make_fraud(4_000, prevalence=0.02)
    >>> model = CapacityKNeighborsClassifier(Capacity.fraction(0.04), random_state=0).fit(X, y)
    >>> less, more = (model.surface_.best(Capacity.fraction(c)) for c in (0.02, 0.08))
    >>> bool(less.flagged <= 0.02 < more.flagged <= 0.08 and less.detection < more.detection)
    True
    """

    n_neighbors: Rows
    a0: Doubles
    flagged: Doubles
    detection: Doubles

    def best(self, capacity: Capacity, *, tie_break: str = "largest") -> SurfaceChoice:
        """Return the point within a capacity that detects the most.

        Parameters
        ----------
        capacity : Capacity
            A fraction of the items, or a count per number of items.
        tie_break : {"smallest", "largest"}, default="largest"
            Which k to take when several detect the same share.

        Returns
        -------
        SurfaceChoice
            With `n_neighbors`, the largest `a0` within the capacity, `flagged` and `detection`.
        """
        check_option("tie_break", tie_break, TIE_BREAKS)
        rows = np.arange(self.n_neighbors.size)
        # Nothing is flagged at a0 = 0, and flags rise with a0: the last column that fits is best.
        columns = (self.flagged <= check_capacity(capacity).as_fraction()).sum(axis=1) - 1
        found = self.detection[rows, columns]
        best = best_column(found, tie_break=tie_break)
        return SurfaceChoice(
            int(self.n_neighbors[best]),
            float(self.a0[columns[best]]),
            float(self.flagged[best, columns[best]]),
            float(found[best]),
        )


def vote_surface(shares: Doubles, is_rare: Mask, n_neighbors: Rows) -> VoteSurface:
    """Count items above every level of the shares of rare votes, one column for each k."""
    a0 = np.linspace(0.0, 1.0, _STEPS + 1)
    levels = 1 - a0[::-1]
    flagged = np.empty((n_neighbors.size, a0.size))
    detection = np.empty_like(flagged)
    for row, column in enumerate(shares.T):
        # An item is flagged at all levels below its share.
        n_levels = np.searchsorted(levels, column, side="left")
        flagged[row] = _share_above(n_levels, a0.size)
        detection[row] = _share_above(n_levels[is_rare], a0.size)
    return VoteSurface(n_neighbors, a0, flagged[:, ::-1], detection[:, ::-1])


def _share_above(n_levels: Rows, size: int) -> Doubles:
    """Return the share of items flagged at each level, the lowest first."""
    counts = np.bincount(n_levels, minlength=size + 1)
    return counts[::-1].cumsum()[::-1][1:] / n_levels.size
