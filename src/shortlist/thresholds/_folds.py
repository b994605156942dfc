r"""Thresholds of several models, one of which is picked by a hash for each item.

The rows are divided into F folds. Model j learns from all rows but those of fold j, and the
:math:`n_j` rows of fold j, which it has not seen, give its threshold. A hash of a new item, which
has nothing to do with its score, picks the model that decides. The rate of the rule is therefore
the mean :math:`\bar R = \frac{1}{F} \sum_j R_j` of the rates of the F thresholds. These depend on
each other in unknown ways: every model has seen the rows that calibrate the others. Both promises
here hold however they depend.

*Expected.* Let :math:`u_j` be the place of the threshold of model j among its scores, from the top;
0 flags nothing. Then :math:`E[R_j] \le u_j / (n_j + 1)`, and by linearity

.. math:: E[\bar R] \le \frac{1}{F} \sum_j \frac{u_j}{n_j + 1}.

Only the sum has to be at most c. Each fold gets the whole places that fit into c by itself; what
is left over in all folds together buys one place more for some of them, those with the largest
remainders first. Ten folds of 100 scores at c = 0.005 have half a place each, and together five.

*Confident.* Let :math:`T_j` be the mean of :math:`R_j` over the worst share `error` of all
calibrations (its expected shortfall), at most that of :math:`\mathrm{Beta}(u_j, n_j + 1 - u_j)`. If
the mean of :math:`T_j` is at most c, then :math:`P(\bar R > c) \le error`. Proof: for an event A of
probability `error`, :math:`E[R_j \mid A] \le T_j`, so :math:`E[\bar R \mid A] \le c`. If
:math:`\bar R > c` had a probability above `error`, an A inside of that event would contradict this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._core.binomial import Interval, clopper_pearson_lower
from .._core.ranking import Cut, cut_after, flag_above, keys_within, rank
from ._groups import draw_one_of_each, group_costs, stricter
from .guarantees import plug_in_k, tail_mean
from .promise import FOLD_GUARANTEES, Promise, threshold_at, warn_too_few
from .threshold import CalibratedThreshold

__all__ = ["Ladder", "fold_thresholds", "mixed_interval", "spend"]

_ROUNDING = 1e-9


class Ladder(NamedTuple):
    """The places at which a threshold can be put: rung 0 flags nothing, each further one more.

    `cost` is what a rung takes from the capacity; it never falls.
    """

    n_rungs: int
    cost: Callable[[int], Any]
    cut: Callable[[int], Cut]


def fold_thresholds(
    samples: Sequence[Any], promise: Promise, *, confidence: float, seed: int
) -> list[CalibratedThreshold]:
    """Calibrate the thresholds of all folds together; `samples` are :class:`CalibrationSample`."""
    if promise.guarantee not in FOLD_GUARANTEES:
        raise ValueError(
            f"guarantee={promise.guarantee!r} needs one model with one threshold, but each fold "
            "has its own. Hold items out with cv=0.5, or recalibrate."
        )
    ladders = [_ladder(sample, promise, seed) for sample in samples]
    rungs = spend(ladders, promise.ratio)
    if not any(rungs) and promise.ratio > 0:
        warn_too_few(promise, _shortage(samples, promise))
    return [
        _threshold(sample, ladder.cut(rung), rung, promise, confidence, seed)
        for sample, ladder, rung in zip(samples, ladders, rungs, strict=True)
    ]


def _shortage(samples: Sequence[Any], promise: Promise) -> str:
    """Say what it takes until one fold can flag its highest score, with the room of all folds."""
    total, n_folds = sum(sample.scores.size for sample in samples), len(samples)
    if any(sample.groups is not None for sample in samples):
        return f"needs more groups of calibration scores than those of {total} in {n_folds} folds"
    needed = _fewest_scores(promise, n_folds)
    return (
        f"needs at least {needed} calibration scores in a fold, or about {n_folds * needed} in "
        f"all; got {total} in {n_folds} folds"
    )


def _fewest_scores(promise: Promise, n_folds: int) -> int:
    def is_enough(n: int) -> bool:
        return _at_most(_cost(n, promise)(1), promise.ratio * n_folds)

    low, high = 0, 1  # `low` is not enough
    while not is_enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def spend(ladders: Sequence[Ladder], c: Fraction) -> list[int]:
    """Return a rung for each ladder, as high as a mean cost of `c` allows."""
    rungs = [_highest(ladder, c) for ladder in ladders]
    costs = [ladder.cost(rung) for ladder, rung in zip(ladders, rungs, strict=True)]
    left = c * len(ladders) - sum(costs)
    steps = {
        j: ladder.cost(rungs[j] + 1) - costs[j]
        for j, ladder in enumerate(ladders)
        if rungs[j] < ladder.n_rungs
    }
    for j in sorted(steps, key=lambda j: (-(c - costs[j]) / steps[j], j)):
        if _at_most(steps[j], left):
            rungs[j] += 1
            left -= steps[j]
    return rungs


def _at_most(cost: Any, limit: Any) -> bool:
    """Compare exactly, or with a margin for rounding."""
    if isinstance(cost, Fraction) and isinstance(limit, Fraction):
        return cost <= limit
    return bool(cost <= float(limit) - _ROUNDING)


def _highest(ladder: Ladder, c: Fraction) -> int:
    low, high = 0, ladder.n_rungs
    while low < high:
        middle = (low + high + 1) // 2
        if ladder.cost(middle) <= c:
            low = middle
        else:
            high = middle - 1
    return low


def _ladder(sample: Any, promise: Promise, seed: int) -> Ladder:
    keys = None if sample.tie_keys is None else sample.tie_keys.__getitem__
    scores, groups, c = sample.scores, sample.groups, promise.ratio
    if groups is None or not scores.size:
        return Ladder(
            scores.size + 1,
            _cost(scores.size, promise),
            lambda rung: cut_after(scores, rung - 1, keys),
        )
    at_most = cut_after(scores, plug_in_k(scores.size, c), keys)
    if promise.guarantee == "confident":
        drawn = draw_one_of_each(scores, groups, keys, seed=seed)
        own, own_keys = scores[drawn], None if keys is None else keys_within(keys, drawn)
        return Ladder(
            drawn.size + 1,
            _cost(drawn.size, promise),
            lambda rung: stricter(cut_after(own, rung - 1, own_keys), at_most),
        )
    order, steps = rank(scores, keys)
    cost = group_costs(groups[order], steps)
    return Ladder(
        steps.size,
        lambda rung: cost(rung - 1) if rung else Fraction(0),
        lambda rung: cut_after(scores, int(steps[rung - 1]) if rung else -1, keys),
    )


def _cost(n: int, promise: Promise) -> Callable[[int], Any]:
    """Return the expected rate of each place among n scores, or its mean in the worst cases."""
    if promise.guarantee != "confident":
        return lambda rung: Fraction(rung, n + 1)
    return lambda rung: tail_mean(rung - 1, n, error=promise.error)


def _threshold(
    sample: Any, cut: Cut, rung: int, promise: Promise, confidence: float, seed: int
) -> CalibratedThreshold:
    keys = None if sample.tie_keys is None else sample.tie_keys.__getitem__
    k = rung - 1
    if sample.groups is not None and rung:
        k = int(np.count_nonzero(flag_above(sample.scores, cut, keys)))
    return threshold_at(
        cut,
        k,
        sample.scores,
        promise,
        keys,
        confidence=confidence,
        seed=seed,
        knows_rate=sample.groups is None,
    )


def mixed_interval(calibrations: Sequence[CalibratedThreshold], *, error: float) -> Interval:
    """Bound the mean rate of several thresholds that may depend on each other."""
    if any(np.isnan(each.interval.low) for each in calibrations):
        return Interval(np.nan, np.nan)
    tail, n_folds = error / 2, len(calibrations)
    lows = [
        clopper_pearson_lower(
            round(each.flagged_fraction * each.n_calibration),
            each.n_calibration,
            error=tail / n_folds,
        )
        if each.n_calibration
        else 0.0
        for each in calibrations
    ]
    highs = [tail_mean(each.k, each.n_calibration, error=tail) for each in calibrations]
    return Interval(float(np.mean(lows)), float(np.mean(highs)))
