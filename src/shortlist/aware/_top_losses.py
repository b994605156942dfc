r"""Losses that look at the top of a ranking, with their gradients in the scores.

Each compares the rare items with a threshold :math:`t(s)` that the scores themselves set: moving a
score moves the threshold. With :math:`\ell` decreasing in the margin, the loss is the mean of
:math:`\ell(s_i - t(s))` over rare items, and its gradient has a part for the items that set t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from .._core.arrays import Doubles, Mask

# Beyond this the logistic function is 0 or 1 in double precision.
_FAR = 40.0
# How sharply an item counts as flagged, for scores that start with a standard deviation of 1. A
# larger value would let the few items at the threshold decide.
_SHARPNESS = 1.5


class TopLoss(NamedTuple):
    """A loss, its gradient in the scores, and the threshold."""

    value: float
    gradient: Doubles
    threshold: float


def detection_loss(scores: Doubles, is_rare: Mask, fraction: float) -> TopLoss:
    r"""Share of rare items missed when a smooth threshold flags the `fraction` of all items.

    Both the detection and the flagged rate count an item by :math:`\sigma(1.5 (s - t))`, and t is
    where the rate equals `fraction`. The gradient is therefore that of the Lagrangian *detection
    minus price times rate*, with the price, the dual variable, solved for exactly instead of
    updated.

    Examples
    --------
    >>> scores, is_rare = np.array([1.0, -1.0, -1.0, -1.0]), np.array([True, False, False, False])
    >>> round(detection_loss(scores, is_rare, 0.25).value, 3)
    0.305
    """

    def smooth_flags(threshold: float) -> Doubles:
        return expit(_SHARPNESS * (scores - threshold))

    low, high = float(scores.min()) - _FAR, float(scores.max()) + _FAR
    threshold = float(brentq(lambda t: smooth_flags(t).mean() - fraction, low, high, xtol=1e-9))
    flagged = smooth_flags(threshold)
    slopes = _SHARPNESS * flagged * (1 - flagged)
    missed = 1 - float(flagged[is_rare].mean())
    pulls = slopes[is_rare] / np.count_nonzero(is_rare)
    # Moving an item moves the threshold, and with it all rare items.
    gradient = pulls.sum() * (slopes / slopes.sum())
    gradient[is_rare] -= pulls
    return TopLoss(missed, gradient, threshold)


class Lagrangian:
    r"""Share of rare items missed at threshold 0, plus a price for flagging more than the capacity.

    With the smooth detection D, the smooth flagged rate R and the capacity c, it is the augmented
    Lagrangian :math:`1 - D + \lambda e + \lambda_0 e^2 / 2` of the excess :math:`e = R / c - 1`.
    There may be several scores, one in each row. A call of `gradient` then raises the dual variable
    :math:`\lambda`, the price, by `step` times :math:`\lambda_0 e`, never below 0. Gradient descent
    on the parameters of a score, including its intercept, then solves the constrained problem by
    dual ascent. At the first price, :math:`\lambda_0`, the gradient of the intercept is 0.

    Examples
    --------
    Two of four items lie above 0 where one is allowed, and the price of flags rises.

    >>> loss, is_rare = Lagrangian(step=0.1), np.array([True, False, False, False])
    >>> for _ in range(2):
    ...     gradient = loss.gradient(np.array([[2.0, 2.0, -2.0, -2.0]]), is_rare, 0.25)
    ...     print(loss.prices.round(3))
    [0.275]
    [0.3]
    """

    def __init__(self, *, step: float = 0.02) -> None:
        self.step = step
        self.prices, self._units = np.empty(0), np.empty(0)

    def gradient(self, scores: Doubles, is_rare: Mask, fraction: float) -> Doubles:
        """Return the gradient in the scores at the present prices, then update these."""
        flagged = expit(_SHARPNESS * scores)
        slopes = _SHARPNESS * flagged * (1 - flagged)
        excess = flagged.mean(axis=1) / fraction - 1
        if not self.prices.size:
            self._units = slopes[:, is_rare].mean(axis=1) / slopes.mean(axis=1) * fraction
            self.prices = self._units
        pressure = np.maximum(0.0, self.prices + self._units * excess)
        gradient = pressure[:, np.newaxis] * slopes / (is_rare.size * fraction)
        gradient[:, is_rare] -= slopes[:, is_rare] / np.count_nonzero(is_rare)
        self.prices = np.maximum(0.0, self.prices + self.step * self._units * excess)
        return gradient
