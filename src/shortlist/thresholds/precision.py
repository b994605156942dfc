r"""Where a threshold or a list ends because more is not worth it.

*Thresholds.* A least precision is reached in calibration, or promised on unseen items. Given the
threshold at the (k + 1)-th largest score, the items above it are an independent sample of all items
above it. How many of them are rare is binomial with the threshold's precision, and the bound of
Clopper and Pearson holds for it. Precision need not rise with the threshold. Therefore several
numbers k are chosen beforehand, and share the error: with the promised probability all bounds hold,
and the largest k whose bound reaches the level can be taken.

*Lists* with a promised precision in expectation: conformal selection. A capacity alone makes a list
of full length on a quiet day, too. Let :math:`c_1, \dots, c_m` be the
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

from .._core.arrays import Doubles, Floats, Ints, Rows
from .._core.intervals import clopper_pearson_lower
from .._core.ranking import (
    AFTER_ALL,
    Cut,
    as_calibrated,
    cell_of,
    cut_after,
    dense_places,
    lift,
    rank,
)
from .._core.validation import warn_user
from ..capacity import exact
from ..exceptions import InsufficientCalibrationWarning
from ..worth import Worth
from .guarantees import plug_in_k
from .promise import Promise
from .samples import CalibrationSample

_PER_DOUBLING = 2


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


def worth_limit(worth: Worth, k: int, sample: CalibrationSample, promise: Promise) -> Cut:
    """Return a cut below which capacity stays empty."""
    if worth.kind == "value":
        return Cut(float(cell_of(worth.least, sample.scores.dtype)[0]))
    if sample.is_rare is None:
        raise ValueError(
            f"{worth!r} needs labels here: pass y, or use worth=..., a value per unit of effort."
        )
    fewer = _precise(worth, k, sample, promise)
    return cut_after(sample.scores, fewer, sample.keys_of) if fewer < k else AFTER_ALL


def _precise(worth: Worth, most: int, sample: CalibrationSample, promise: Promise) -> int:
    """Return the largest k, up to `most`, whose flags reach a precision; warn if there is none.

    With a confidence, the precision on unseen items is below the level with at most the promised
    probability. Otherwise the calibration items reach it themselves.
    """
    if worth.least == 0:
        return most
    assert sample.is_rare is not None
    n, promised = sample.scores.size, promise.guarantee.surely
    order, cuts = rank(sample.scores, sample.keys_of)
    found = np.concatenate([[0], np.cumsum(sample.is_rare[order])])
    places = _places(n, worth.least, promise) if promised else np.arange(1, n + 1)
    above: Rows = cuts[np.searchsorted(cuts, places, side="right") - 1]
    if promised:
        share = promise.error / max(places.size, 1)
        reached = clopper_pearson_lower(found[above], above, error=share) >= worth.least
    else:
        reached = found[above] >= worth.least * above
    good = places[reached & (above > 0) & (places <= most)]
    if good.size == 0 and most >= 0:
        surely = f" with confidence {1 - promise.error:g}" if promised else ""
        within = f" within {promise.capacity!r}" if promise.ratio < 1 else ""
        warn_user(
            f"No threshold{within} has a precision of at least {worth.least:g}{surely} on "
            f"these {n} calibration items, of which {found[-1]} are rare. The threshold flags "
            "nothing.",
            InsufficientCalibrationWarning,
        )
    return int(good[-1]) if good.size else -1


def _places(n: int, level: float, promise: Promise) -> Ints:
    """Return numbers of flags to be tested, two per doubling, from what all-rare flags need.

    The largest does not depend on the scores.
    """
    if promise.capacity.kind in ("count", "fraction"):
        n = min(n, plug_in_k(n, promise.ratio) + 1)
    error, n_doublings = promise.error, math.log2(max(n, 2))
    least = math.log(error / (_PER_DOUBLING * n_doublings)) / math.log(level) if level < 1 else n
    steps = np.arange(int(_PER_DOUBLING * n_doublings) + 1)
    places = np.unique((n * 2.0 ** (-steps / _PER_DOUBLING)).astype(np.int64))
    return places[places >= max(min(least, n), 1)]
