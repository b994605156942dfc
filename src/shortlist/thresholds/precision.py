r"""Lists with a promised precision in expectation: conformal selection.

A capacity alone makes a list of full length on a quiet day, too. Let :math:`c_1, \dots, c_m` be the
scores of calibration items that are known to be common, and that the model has not seen. For item i
of a batch of N,

.. math:: p_i = \frac{1 + \#\{j: c_j \ge s_i\}}{m + 1}

is at most t with probability at most t if the item is common. From the items that the capacity
allows, the most suspicious first, the list takes the first k, for the largest k with

.. math:: p_{(k)} \le (1 - \text{precision}) \, k / N.

Then the share of common items on the list, 0 if it is empty, is on average at most
1 - precision, for any model and any distribution of scores, if the new items that are common and
the calibration items that are can be exchanged, all together: new items that avoid each other are
not like this, even if each by itself is like a calibration item. Proof: the p-values of common
items depend on each other positively (Bates et al., Annals of Statistics 51, 2023). Each item of
the list has a p-value of at most (1 - precision) times the length of the list / N, and no p-value
that grows makes the list longer (Blanchard and Roquain, Electronic Journal of Statistics 2, 2008).
Jin and Candès, JMLR 24 (2023), have the rule without a capacity. A longer list that is cut to the
capacity afterwards would not do: its items had to pass a weaker test.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._core.arrays import Doubles, Floats, Rows
from .._core.ranking import as_calibrated, dense_places, lift
from ..capacity import exact


class CommonScores(NamedTuple):
    """Scores of calibration items that are known to be common, and their tie keys.

    A key of 0 counts a tied item before all others. With `lifted`, scores that agree in their first
    ten digits are tied.
    """

    scores: Floats
    keys: Doubles
    lifted: bool = True

    def n_before(self, scores: Floats, keys: Floats) -> Rows:
        """Return how many common items are at least as suspicious as each of some others."""
        scores, known = self._on_one_grid(scores)
        every = np.concatenate([scores, known]), np.concatenate([keys, self.keys])
        places, common = np.split(dense_places(*every), [scores.size])
        return np.searchsorted(np.sort(common), places, side="right")

    def _on_one_grid(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return some scores and the common ones so that those of equal items are equal."""
        if self.lifted:
            return lift(as_calibrated(scores, self.scores.dtype)), self.scores
        coarser = min(scores.dtype, self.scores.dtype, key=lambda each: each.itemsize)
        return as_calibrated(scores, coarser), as_calibrated(self.scores, coarser)

    def length(self, scores: Floats, keys: Floats, n_items: int, precision: float) -> int:
        """Return how many of the first of `n_items` ranked items may be listed.

        `scores` and `keys` are those of the items that the capacity allows, in order. Every listed
        item must pass, also where calibration ties items that the order does not.
        """
        share, n_common = 1 - exact(precision), self.scores.size
        # In whole numbers of any size: p <= share * k / N.
        n_before = np.maximum.accumulate(self.n_before(scores, keys)).astype(object)
        most = np.arange(1, scores.size + 1).astype(object) * share.numerator * (n_common + 1)
        passed = np.flatnonzero((1 + n_before) * share.denominator * n_items <= most)
        return int(passed[-1]) + 1 if passed.size else 0

    def fewest(self, n_places: int, n_items: int, precision: float) -> int:
        """Return how many common items the shortest test of a list of `n_places` needs."""
        share = (1 - exact(precision)) * n_places
        return math.ceil(n_items / share) - 1 if share else 0
