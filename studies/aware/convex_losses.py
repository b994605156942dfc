"""Two convex losses of the literature, to compare the aware linear model with."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from shortlist._core.arrays import Doubles, Mask
from shortlist.aware import CapacityAwareLinearClassifier
from shortlist.aware._linear import TopLoss

_FAR = 40.0  # beyond this the logistic function is 0 or 1 in double precision


def pat_mat_loss(scores: Doubles, is_rare: Mask, fraction: float) -> TopLoss:
    r"""Pat&Mat: a convex loss of rare items below a convex upper bound of the quantile.

    The threshold is where the mean of :math:`\log(1 + e^{s - t})` over all items is `fraction`.

    References
    ----------
    Adam, Mácha, Šmídl, Pevný: General framework for binary classification on top samples.
    Optimization Methods and Software 37, 2022.
    """

    def excess(threshold: float) -> float:
        return float(np.mean(np.logaddexp(0, scores - threshold))) - fraction

    low, high = float(scores.min()) - _FAR, float(scores.max()) + _FAR
    threshold = float(brentq(excess, low, high, xtol=1e-9))
    weights = expit(scores - threshold)
    return _convex(scores, is_rare, threshold, weights / weights.sum())


def top_push_loss(scores: Doubles, is_rare: Mask, fraction: float) -> TopLoss:
    """TopPush: a convex loss of rare items below the highest common one, smoothed.

    The capacity has no effect: this loss wants rare items at the very top of the ranking.

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


def _convex(scores: Doubles, is_rare: Mask, threshold: float, weights: Doubles) -> TopLoss:
    below = threshold - scores[is_rare]
    value, pulls = float(np.logaddexp(0, below).mean()), expit(below) / below.size
    gradient = pulls.sum() * weights
    gradient[is_rare] -= pulls
    return TopLoss(value, gradient, threshold)


class PatMatClassifier(CapacityAwareLinearClassifier):
    """The aware linear model with the loss Pat&Mat."""

    _loss = staticmethod(pat_mat_loss)


class TopPushClassifier(CapacityAwareLinearClassifier):
    """The aware linear model with the loss TopPush."""

    _loss = staticmethod(top_push_loss)
