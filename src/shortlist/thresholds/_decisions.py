"""Items that are decided about, one threshold that judges them, and the decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable

from .._core.arrays import Floats, Mask, Rows
from .._core.hashing import tie_keys_of
from .._core.ranking import TieKeys
from .._core.scoring import Scores, n_rows, take_rows
from .._core.steady import as_calibrated, lift
from .._core.validation import check_scores
from ._calibrated import CalibratedThreshold
from ._sample import CalibrationSample

__all__ = ["Decisions", "Items", "judge"]


class Items:
    """Items to decide about: rules ask them for scores, tie keys and segments.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix
        The items, in any form the model takes.
    score : function of (X, model)
        Scores items by the model of that number.
    ids : array-like of shape (n_items,), default=None
        Identifiers for tie keys; the row's own values are hashed when absent.
    segments : ndarray of int, default=None
        Numbers of the items' segments.
    """

    def __init__(
        self,
        X: Any,
        score: Callable[[Any, int], Scores],
        *,
        ids: ArrayLike | None = None,
        segments: Rows | None = None,
    ) -> None:
        self.X, self.ids, self.segments = X, ids, segments
        self._score = score

    def __len__(self) -> int:
        return n_rows(self.X)

    def scores(self, model: int = 0, rows: Rows | None = None) -> Scores:
        """Return the scores of some rows, or of all, by the model of that number."""
        X = self.X if rows is None else take_rows(indexable(self.X)[0], rows)
        return self._score(X, model)

    def keys(self, seed: int) -> TieKeys:
        """Return tie keys made with that seed."""
        return tie_keys_of(self.X, self.ids, seed=seed)


@dataclass(frozen=True)
class Decisions:
    """Decisions about items, with everything they were made from.

    Attributes
    ----------
    flagged : ndarray of bool, shape (n_items,)
        True where the item is to be followed up.
    scores : ndarray of shape (n_items,)
        Higher is more suspicious.
    thresholds : ndarray of shape (n_items,)
        What each score had to exceed.
    by_class : ndarray of shape (n_items, n_classes) or None
        Scores of every class, when there are more than two.
    tie_keys : ndarray of shape (n_items,) or None
        With hashed ties, the key that decides about an item on its threshold: the lower, the
        sooner it is flagged.
    """

    flagged: Mask
    scores: Floats
    thresholds: Floats
    by_class: Floats | None = None
    keys_of: TieKeys | None = field(default=None, repr=False)

    @cached_property
    def tie_keys(self) -> NDArray[np.float64] | None:
        """The tie key of each item, hashed when it is asked for; None if ties are left out."""
        return None if self.keys_of is None else self.keys_of(np.arange(self.flagged.size))


def judge(
    calibration: CalibratedThreshold,
    sample: CalibrationSample,
    scores: Scores,
    tie_keys: TieKeys | None,
    rows: Rows | None = None,
) -> Decisions:
    """Compare scores with one threshold; `rows` are the user's numbers of the items."""
    rare = as_calibrated(check_scores(scores.rare, rows=rows), sample.scores.dtype)
    # A strict threshold is a point of the grid, and comparing with it needs no lifting.
    compared = rare if tie_keys is None else lift(rare)
    flagged = calibration.flag_with_keys(compared, tie_keys)
    thresholds = np.broadcast_to(np.float64(calibration.value), rare.shape)
    return Decisions(flagged, rare, thresholds, scores.by_class, tie_keys)
