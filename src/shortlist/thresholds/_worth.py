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
from typing import NamedTuple

import numpy as np

from .._core.arrays import Floats, Ints, Mask, Rows
from .._core.intervals import clopper_pearson_lower
from .._core.ranking import AFTER_ALL, Cut, Cuts, TieKeys, cell_of, cut_after, rank, stricter
from .._core.validation import warn_user
from .._core.work import check_probabilities
from ..exceptions import InsufficientCalibrationWarning
from ..worth import Worth
from .guarantees import plug_in_k
from .promise import Promise
from .samples import CalibrationSample

__all__ = ["Limit", "precise_k", "worth_limit"]

_PER_DOUBLING = 2


class Limit(NamedTuple):
    """How far down a threshold may lie: by rank, by worth, and what a probability must reach."""

    k: int
    least_worth: Cut = AFTER_ALL
    least_probability: float = 0.0

    def applied(self, cuts: Cuts, k: int, sample: CalibrationSample) -> Cuts:
        """Return the cuts of the capacity, which leave k scores above them, or stricter ones."""
        at_most = self.least_worth
        if self.k < k:
            at_most = stricter(at_most, cut_after(sample.scores, self.k, sample.keys_of))
        return cuts._replace(
            upper=stricter(cuts.upper, at_most), lower=stricter(cuts.lower, at_most)
        )


def worth_limit(worth: Worth, k: int, sample: CalibrationSample, promise: Promise) -> Limit:
    """Return the limit that leaves capacity empty below a worth."""
    if worth.kind == "precision" and sample.is_rare is not None:
        return Limit(_precise(worth, k, sample, promise))
    if sample.probabilities is not None:
        check_probabilities(sample.probabilities)
    if worth.kind == "precision" and sample.probabilities is None:
        raise ValueError(
            f"{worth!r} needs labels: pass y, or use worth=..., a value per unit of effort."
        )
    if worth.kind == "precision":
        return Limit(k, least_probability=worth.least)
    return Limit(k, Cut(float(cell_of(worth.least, sample.scores.dtype)[0])))


def _precise(worth: Worth, k: int, sample: CalibrationSample, promise: Promise) -> int:
    """Return how many flags reach a precision; warn if none do."""
    scores, is_rare = sample.scores, sample.is_rare
    assert is_rare is not None
    promised = promise.guarantee not in ("plug-in", "expected")
    by_count = promise.capacity.kind in ("count", "fraction")
    fewer = precise_k(
        scores,
        is_rare,
        k,
        worth.least,
        sample.keys_of,
        error=promise.error if promised else None,
        largest=plug_in_k(scores.size, promise.ratio) + 1 if by_count else None,
    )
    if fewer < 0 <= k:
        surely = f" with confidence {1 - promise.error:g}" if promised else ""
        warn_user(
            f"No threshold within {promise.capacity!r} has a precision of at least "
            f"{worth.least:g}{surely} on these {scores.size} calibration items, of which "
            f"{np.count_nonzero(is_rare)} are rare. The threshold flags nothing.",
            InsufficientCalibrationWarning,
        )
    return fewer


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
