"""Quantile tracking: a threshold that follows the flag rate, with a guarantee for any stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ..capacity import Capacity
from .controller import Controller
from .decisions import (
    ABOVE_THRESHOLD,
    BELOW_THRESHOLD,
    CAPACITY_USED_UP,
    TailScale,
    check_shared,
    score_at,
)

#: The first floats: the offset on the tail scale, the rate, its logarithm, and the step.
OFFSET, RATE, LOG_RATE, STEP = range(4)
# The next ones: the lowest and the highest level of all scales so far, and the smallest and the
# largest rate above zero so far; zero before the first. The knots of the scale are the last.
LOWEST, HIGHEST, SMALLEST, LARGEST = range(4, 8)
_KNOTS = 8
# The ints: tokens, the most there can be (0 without a limit on bursts), and how many each item
# adds.
TOKENS, MOST_TOKENS, REFILL = range(3)
# Tokens are counted in whole parts and rounded down: rounding errors never add up to a flag.
_PARTS = 1 << 40


@njit(cache=True)
def _track(score: float, deciding: bool, floats: Any, ints: Any, knots: Any) -> tuple[int, float]:
    """Decide about one item, and move the offset against the error."""
    rate = floats[RATE]
    if rate <= 0.0:
        return BELOW_THRESHOLD, np.inf
    ints[TOKENS] = min(ints[TOKENS] + ints[REFILL], ints[MOST_TOKENS])
    threshold = score_at(floats[OFFSET] - floats[LOG_RATE], knots)
    flag = score > threshold
    # A flag counts even if there is no token for it: a lack of tokens must not lower the threshold.
    floats[OFFSET] += floats[STEP] * (flag - rate)
    if not flag:
        return BELOW_THRESHOLD, threshold
    if deciding and ints[MOST_TOKENS] > 0:
        if ints[TOKENS] < _PARTS:
            return CAPACITY_USED_UP, threshold
        ints[TOKENS] -= _PARTS
    return ABOVE_THRESHOLD, threshold


@njit(cache=True)
def _tracker_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    knots = floats[_KNOTS:].reshape(2, -1)
    code, threshold = _track(score, deciding, floats, ints, knots)
    return code, threshold, 1.0 if code == ABOVE_THRESHOLD else 0.0


@njit(cache=True)
def _tracker_loop(items: Any, deciding: bool, answers: Any, floats: Any, ints: Any) -> None:
    scores = items[0]
    codes, thresholds, probabilities = answers
    knots = floats[_KNOTS:].reshape(2, -1)
    for i in range(scores.size):
        codes[i], thresholds[i] = _track(scores[i], deciding, floats, ints, knots)
        probabilities[i] = codes[i] == ABOVE_THRESHOLD


class QuantileTracker(Controller):
    r"""Keep a flag rate on any stream: the default for rates.

    After each item the threshold moves: up a little if the item was flagged, down very slightly if
    it was not. The steps are taken on a scale that is the same for all models. A change of capacity
    moves the threshold at once. On *every* stretch of the stream, whatever the scores do, the
    number of flags differs from what the rate allows by at most :meth:`interval_bound`, a constant.
    Pauses at a capacity of zero, swaps of the model and restarts do not change that. With `burst`,
    a bucket of tokens also limits short stretches.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`. Work per so many
        items is kept by :class:`BudgetController`.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model, for the first threshold and for the scale. No labels are needed.
    step : float, default=0.03
        How fast the threshold follows. A larger step reacts faster after a change and keeps closer
        to the rate over short stretches. A smaller step is steadier and finds more where rare items
        come in waves.
    burst : int, default=None
        On every stretch, at most so many flags more than the capacity of that stretch, whatever the
        scores do. A bucket holds at most `burst` tokens; each item refills it by the rate, and
        each flag takes a token. It starts full, and an empty one does not affect the threshold.
        `None` sets no such limit.
    **shared
        `prevalence`, the share of rare items, for a multiple; and `remember` as for
        :class:`Controller`.

    Notes
    -----
    Let w be the level of a score: minus the logarithm of the share of calibration scores that reach
    it. The rule is :math:`w_t > o_t - \log c_t` and
    :math:`o_{t+1} = o_t + \eta (\text{flag}_t - c_t)`. Because w is bounded, so is o. The sum of
    the errors over a stretch is the difference of two values of o, divided by the step. Therefore
    nothing else may move o: neither a pause nor a swap of the model forgives a surplus. Cf.
    Angelopoulos, Candès and Tibshirani, arXiv 2307.16895.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import QuantileTracker
    >>> rng = np.random.default_rng(0)
    >>> tracker = QuantileTracker(
    ...     Capacity.fraction(0.01), calibration_scores=rng.normal(size=5_000)
    ... )
    >>> tracker.decide(4.2).flag
    True
    >>> moved = rng.normal(loc=1, size=50_000)  # a fixed threshold would flag ten per cent
    >>> int(tracker.decide_many(moved).flagged.sum())  # 500 are allowed in the long run
    628
    """

    compiled_step = staticmethod(_tracker_step)
    compiled_loop = staticmethod(_tracker_loop)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        step: float = 0.03,
        burst: int | None = None,
        **shared: Any,
    ) -> None:
        options = {"step": step, "burst": burst, **check_shared(shared)}
        super().__init__(capacity, calibration_scores=calibration_scores, **options)
        head = [0.0, 0.0, 0.0, self.options["step"], *self.scale.range, 0.0, 0.0]
        self.state_floats = np.concatenate([head, self.scale.knots.ravel()])
        tokens = self._most_tokens()
        self.state_ints = np.array([tokens, tokens, 0], dtype=np.int64)
        self.apply_capacity(capacity)

    def interval_bound(self) -> float:
        """Return by how much flags and allowed flags can differ, on any stretch of any stream.

        Every capacity so far, and every one that is announced, is included. At a capacity of zero
        nothing is flagged and nothing is lost. Items that are only observed count as if they had
        been decided.

        Returns
        -------
        float
            The bound: for every stretch, \\|flags - sum of rates\\| is at most this. It covers the
            scales of all models so far; a model with more calibration scores can widen it. With
            `burst`, flags can lie further below.

        Examples
        --------
        >>> import numpy as np
        >>> from shortlist import Capacity
        >>> tracker = QuantileTracker(
        ...     Capacity.fraction(0.01), calibration_scores=np.arange(999), step=0.1
        ... )
        >>> round(tracker.interval_bound(), 1)
        90.1
        """
        floats, step = self.state_floats, self.options["step"]
        announced = [float(self.ratio(capacity)) for _, capacity in self._time.changes]
        rates = [rate for rate in (*announced, floats[SMALLEST], floats[LARGEST]) if rate > 0]
        if not rates:
            return 0.0
        low, high = min(rates), max(rates)
        levels = float(floats[HIGHEST] - floats[LOWEST])
        return float((levels + math.log(high / low) + step * (1 - low + high)) / step)

    def _most_tokens(self) -> int:
        return (self.options["burst"] or 0) * _PARTS

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set the rate."""
        floats, ratio = self.state_floats, self.ratio(capacity)
        rate = floats[RATE] = float(ratio)
        self.state_ints[REFILL] = int(ratio * _PARTS)
        if rate > 0:
            floats[LOG_RATE] = math.log(rate)
            if floats[LARGEST] == 0:
                # The first rate: if it is too small for the scale, start at the end of the scale.
                bottom, top = self.scale.range + floats[LOG_RATE]
                floats[OFFSET] = min(max(floats[OFFSET], bottom), top)
                floats[SMALLEST] = rate
            floats[SMALLEST] = min(floats[SMALLEST], rate)
            floats[LARGEST] = max(floats[LARGEST], rate)

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Keep the offset, and exchange the scale."""
        self.state_floats = floats = np.concatenate([self.state_floats[:_KNOTS], new.knots.ravel()])
        lowest, highest = new.range
        floats[LOWEST], floats[HIGHEST] = min(floats[LOWEST], lowest), max(floats[HIGHEST], highest)

    def is_sound(self, n_floats: int, n_ints: int) -> bool:
        """Whether the floats end with the knots of the scale, and the limit is the one promised."""
        are_knots = np.array_equal(self.state_floats[_KNOTS:], self.scale.knots.ravel())
        ints = self.state_ints
        return are_knots and ints.size == n_ints and ints[MOST_TOKENS] == self._most_tokens()
