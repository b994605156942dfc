"""What thresholds are calibrated on: scores of items that the model has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask, Rows
from .._core.ranking import TieKeys, tied_positions
from .._core.steady import lift
from .._core.validation import check_scores

__all__ = ["CalibrationSample"]


@dataclass(frozen=True)
class CalibrationSample:
    """Scores of items that the model has not seen, kept for later changes of the capacity.

    Attributes
    ----------
    scores : ndarray of shape (n_items,)
        Lifted to the grid that makes them independent of noise in the last digits.
    tie_keys : ndarray of shape (n_items,) or None
        Keys that put tied items in order; None when ties are left out.
    keyed_by_ids : bool
        Whether the keys come from ids rather than from the rows. Keys in use must come from the
        same source.
    is_rare : ndarray of shape (n_items,) or None
        Labels, if they are known.
    segments : ndarray of shape (n_items,) or None
        Numbers of the items' segments.
    out_of_bag : bool
        Whether each item was scored by only some of the trees.
    """

    scores: Floats
    tie_keys: NDArray[np.float64] | None = None
    keyed_by_ids: bool = False
    is_rare: Mask | None = None
    segments: Rows | None = None
    out_of_bag: bool = False

    @classmethod
    def of(
        cls,
        scores: Floats,
        *,
        rows: Rows,
        tie_keys: TieKeys | None,
        keyed_by_ids: bool,
        is_rare: Mask | None = None,
        segments: Rows | None = None,
        out_of_bag: bool = False,
    ) -> CalibrationSample:
        """Keep the scores of some `rows` with what later capacities need of these rows.

        `tie_keys`, `is_rare` and `segments` belong to all items. Only tied items are hashed.
        """
        scores = lift(check_scores(scores, rows=rows))
        if not scores.size:
            raise ValueError("Calibration needs at least one item; got none.")
        keys = None
        if tie_keys is not None:
            # An item that ties with no other is alone in its block and needs no key.
            keys, tied = np.zeros(scores.size), tied_positions(scores)
            if tied.size:
                keys[tied] = tie_keys(rows[tied])
        return cls(
            scores,
            keys,
            keyed_by_ids,
            None if is_rare is None else is_rare[rows],
            None if segments is None else segments[rows],
            out_of_bag,
        )

    def keys_of(self, rows: Rows) -> NDArray[np.float64]:
        """Return the tie keys of some items."""
        assert self.tie_keys is not None  # asked for only when ties are hashed
        return self.tie_keys[rows]

    def within(self, segment: int) -> CalibrationSample:
        """Return the items of one segment, without labels: a multiple refers to all items."""
        own = np.flatnonzero(self.segments == segment)
        keys = None if self.tie_keys is None else self.tie_keys[own]
        return replace(self, scores=self.scores[own], tie_keys=keys, is_rare=None, segments=None)
