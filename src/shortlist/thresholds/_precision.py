r"""A least precision of the flags: as it was in calibration, or promised on unseen items.

Given the threshold at the (k + 1)-th largest score, the items above it are an independent sample of
all items above it. How many of them are rare is binomial with the threshold's precision, and the
bound of Clopper and Pearson holds for it. Precision need not rise with the threshold. Therefore
several numbers k are chosen beforehand, and share the error: with the promised probability all
bounds hold, and the largest k whose bound reaches the level can be taken.
"""

from __future__ import annotations

import math

import numpy as np

from .._core.arrays import Floats, Ints, Mask, Rows
from .._core.binomial import clopper_pearson_lower
from .._core.ranking import TieKeys, rank

__all__ = ["precise_k"]

_PER_DOUBLING = 2


def precise_k(
    scores: Floats,
    is_rare: Mask,
    most: int,
    level: float,
    tie_keys: TieKeys | None,
    *,
    error: float | None,
    largest: int | None = None,
) -> int:
    """Return the largest k, up to `most`, whose flags reach a precision; -1 if there is none.

    With `error`, the precision on unseen items is below the level with at most this probability.
    Without, the calibration items reach it themselves. `largest` is a bound of `most` that does not
    depend on the scores.
    """
    if level == 0:
        return most
    order, cuts = rank(scores, tie_keys)
    found = np.concatenate([[0], np.cumsum(is_rare[order])])
    places = (
        np.arange(1, scores.size + 1)
        if error is None
        else _places(min(scores.size, largest or scores.size), level, error)
    )
    above: Rows = cuts[np.searchsorted(cuts, places, side="right") - 1]
    if error is None:
        reached = found[above] >= level * above
    else:
        share = error / max(places.size, 1)
        reached = clopper_pearson_lower(found[above], above, error=share) >= level
    good = places[reached & (above > 0) & (places <= most)]
    return int(good[-1]) if good.size else -1


def _places(n: int, level: float, error: float) -> Ints:
    """Return numbers of flags to be tested, two per doubling, from what all-rare flags need."""
    n_doublings = math.log2(max(n, 2))
    least = math.log(error / (_PER_DOUBLING * n_doublings)) / math.log(level) if level < 1 else n
    steps = np.arange(int(_PER_DOUBLING * n_doublings) + 1)
    places = np.unique((n * 2.0 ** (-steps / _PER_DOUBLING)).astype(np.int64))
    return places[places >= max(min(least, n), 1)]
