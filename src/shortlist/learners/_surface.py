"""`VoteSurface`: what every number of neighbours finds with every weight of a rare vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.validation import check_option
from ..capacity import Capacity, check_capacity
from ._choice import TIE_BREAKS, best_column

__all__ = ["SurfaceChoice", "VoteSurface", "vote_surface"]

Floats = NDArray[np.float64]

_STEPS = 1_000  # of a0 from 0 to 1: a surface takes 16 kB for each k, however many items there are


class SurfaceChoice(NamedTuple):
    """A point of the surface: neighbours, weight of a rare vote, and what they flag and find."""

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
        Share of the items that is flagged.
    detection : ndarray of shape (n_candidates, 1001)
        Share of the rare items that is flagged.

    Examples
    --------
    What half and what twice the capacity would buy, without another fit:

    >>> from shortlist import Capacity
    >>> from shortlist.datasets import make_fraud
    >>> from shortlist.learners import CapacityKNeighborsClassifier
    >>> X, y = make_fraud(4_000, prevalence=0.02)
    >>> model = CapacityKNeighborsClassifier(Capacity.fraction(0.04), random_state=0).fit(X, y)
    >>> less, more = (model.surface_.best(Capacity.fraction(c)) for c in (0.02, 0.08))
    >>> bool(less.flagged <= 0.02 < more.flagged <= 0.08 and less.detection < more.detection)
    True
    """

    n_neighbors: NDArray[np.intp]
    a0: Floats
    flagged: Floats
    detection: Floats

    def best(self, capacity: Capacity, *, tie_break: str = "largest") -> SurfaceChoice:
        """Return the point that detects most among those within a capacity.

        Parameters
        ----------
        capacity : Capacity
            A fraction, or a count per number of items.
        tie_break : {"smallest", "largest"}, default="largest"
            Which k to take when several detect equally much.

        Returns
        -------
        SurfaceChoice
            With `n_neighbors`, the largest `a0` that is within the capacity, `flagged` and
            `detection`.
        """
        check_option("tie_break", tie_break, TIE_BREAKS)
        rows = np.arange(self.n_neighbors.size)
        # Nothing is flagged at a0 = 0, and flags rise with a0: the last column within is the best.
        columns = (self.flagged <= check_capacity(capacity).as_fraction()).sum(axis=1) - 1
        found = self.detection[rows, columns]
        best = best_column(found, tie_break=tie_break)
        return SurfaceChoice(
            int(self.n_neighbors[best]),
            float(self.a0[columns[best]]),
            float(self.flagged[best, columns[best]]),
            float(found[best]),
        )


def vote_surface(
    shares: Floats, is_rare: NDArray[np.bool_], n_neighbors: NDArray[np.intp]
) -> VoteSurface:
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


def _share_above(n_levels: NDArray[np.intp], size: int) -> Floats:
    """Return the share of items that are flagged at each level, the lowest first."""
    counts = np.bincount(n_levels, minlength=size + 1)
    return counts[::-1].cumsum()[::-1][1:] / n_levels.size
