r"""Losses that look at the top of a ranking, with their gradients in the scores.

Each compares the rare items with a threshold :math:`t(s)` that the scores themselves set, so that
moving a score moves the threshold. With :math:`\ell` falling in the margin, the loss is the mean of
:math:`\ell(s_i - t(s))` over rare items, and its gradient has a part for the items that set t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, softmax

__all__ = ["TOP_LOSSES", "TopLoss", "detection_loss", "pat_mat_loss", "top_push_loss"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Beyond this the logistic function is 0 or 1 in double precision.
_FAR = 40.0
# How sharply an item counts as flagged, on the scale of the log odds that scores start from.
_SHARPNESS = 4.0


class TopLoss(NamedTuple):
    """A loss, its gradient in the scores, and the threshold."""

    value: float
    gradient: Floats
    threshold: float


def detection_loss(scores: Floats, is_rare: Mask, fraction: float) -> TopLoss:
    r"""Share of rare items missed when a smooth threshold flags the `fraction` of all items.

    Both the detection and the flagged rate count an item by :math:`\sigma(4 (s - t))`, and t is
    where the rate equals `fraction`. So the gradient is the one of the Lagrangian *detection minus
    price times rate*, with the price, the dual variable, solved for exactly instead of updated.

    Examples
    --------
    >>> scores, is_rare = np.array([1.0, -1.0, -1.0, -1.0]), np.array([True, False, False, False])
    >>> round(detection_loss(scores, is_rare, 0.25).value, 3)
    0.031
    """

    def smooth_flags(threshold: float) -> Floats:
        return expit(_SHARPNESS * (scores - threshold))

    threshold = _solve(lambda t: float(smooth_flags(t).mean()) - fraction, scores)
    flagged = smooth_flags(threshold)
    slopes = _SHARPNESS * flagged * (1 - flagged)
    missed = 1 - flagged[is_rare]
    return _through_threshold(
        float(missed.mean()), slopes[is_rare], slopes / slopes.sum(), is_rare, threshold
    )


def pat_mat_loss(scores: Floats, is_rare: Mask, fraction: float) -> TopLoss:
    r"""Pat&Mat: a convex loss of rare items below a convex upper bound of the quantile.

    The threshold is where the mean of :math:`\log(1 + e^{s - t})` over all items is `fraction`.

    References
    ----------
    Adam, Mácha, Šmídl, Pevný: General framework for binary classification on top samples.
    Optimization Methods and Software 37, 2022.
    """
    threshold = _solve(lambda t: float(np.mean(np.logaddexp(0, scores - t))) - fraction, scores)
    weights = expit(scores - threshold)
    return _convex(scores, is_rare, threshold, weights / weights.sum())


def top_push_loss(scores: Floats, is_rare: Mask, fraction: float) -> TopLoss:
    """TopPush: a convex loss of rare items below the highest common one, smoothed.

    The capacity plays no part: this asks for rare items at the very top of the ranking.

    References
    ----------
    Li, Jin, Zhou: Top rank optimization in linear time. NIPS 2014.
    """
    common = scores[~is_rare]
    highest = common.max()
    threshold = float(highest + np.log(np.sum(np.exp(common - highest))))
    weights = np.zeros(scores.size)
    weights[~is_rare] = softmax(common)
    return _convex(scores, is_rare, threshold, weights)


TOP_LOSSES: dict[str, Callable[[Floats, Mask, float], TopLoss]] = {
    "detection": detection_loss,
    "pat-mat": pat_mat_loss,
    "top-push": top_push_loss,
}


def _convex(scores: Floats, is_rare: Mask, threshold: float, weights: Floats) -> TopLoss:
    below = threshold - scores[is_rare]
    value = float(np.mean(np.logaddexp(0, below)))
    return _through_threshold(value, expit(below), weights, is_rare, threshold)


def _through_threshold(
    value: float, slopes: Floats, weights: Floats, is_rare: Mask, threshold: float
) -> TopLoss:
    """Put together the pull of each rare item, and that of the items that set the threshold."""
    pulls = slopes / slopes.size
    gradient = pulls.sum() * weights
    gradient[is_rare] -= pulls
    return TopLoss(value, gradient, threshold)


def _solve(excess: Callable[[float], float], scores: Floats) -> float:
    low, high = float(scores.min()) - _FAR, float(scores.max()) + _FAR
    return float(brentq(excess, low, high, xtol=1e-9))
