"""What a controller answers, for one item and for many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ABOVE", "BELOW", "DUPLICATE", "FULL", "REASONS", "Decision", "DecisionBatch"]

#: Why an item was flagged or not, in the order of their codes.
REASONS = ("below threshold", "above threshold", "capacity used up", "seen before")
BELOW, ABOVE, FULL, DUPLICATE = range(4)


class Decision(NamedTuple):
    """The answer to one item.

    Attributes
    ----------
    flag : bool
        Whether to follow the item up.
    threshold : float
        The score it had to exceed.
    reason : str
        One of ``"above threshold"``, ``"below threshold"``, ``"capacity used up"``, and
        ``"seen before"`` for an id that has its answer already.
    """

    flag: bool
    threshold: float
    reason: str


class DecisionBatch(NamedTuple):
    """The answers to many items, in their order.

    Attributes
    ----------
    flagged : ndarray of bool
        Whether to follow each item up.
    thresholds : ndarray of float
        The score that each item had to exceed.
    codes : ndarray of int8
        The reasons, as positions in :data:`~shortlist.online.REASONS`.
    """

    flagged: NDArray[np.bool_]
    thresholds: NDArray[np.float64]
    codes: NDArray[np.int8]

    @property
    def reasons(self) -> NDArray[np.str_]:
        """The reasons in words."""
        return np.array(REASONS)[self.codes]

    def decision(self, i: int) -> Decision:
        """Return the answer to item `i` as :meth:`~Controller.decide` would give it."""
        return Decision(
            bool(self.flagged[i]), float(self.thresholds[i]), REASONS[int(self.codes[i])]
        )
