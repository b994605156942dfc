r"""Where a threshold ends because more is not worth it: a least value, or a least precision.

A precision is reached in calibration, or promised on unseen items.

Given the threshold at the (k + 1)-th largest score, the items above it are an independent sample of
all items above it. How many of them are rare is binomial with the threshold's precision, and the
bound of Clopper and Pearson holds for it. Precision need not rise with the threshold. Therefore
several numbers k are chosen beforehand, and share the error: with the promised probability all
bounds hold, and the largest k whose bound reaches the level can be taken.
"""

from __future__ import annotations

import math

import numpy as np

from .._core.arrays import Ints, Rows
from .._core.intervals import clopper_pearson_lower
from .._core.ranking import AFTER_ALL, Cut, cell_of, cut_after, rank
from .._core.validation import warn_user
from ..exceptions import InsufficientCalibrationWarning
from ..worth import Worth
from .guarantees import plug_in_k
from .promise import Promise
from .samples import CalibrationSample

_PER_DOUBLING = 2


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
