"""Small networks, trained side by side: first for the log loss, then for detection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .._core.arrays import Doubles, Mask
from ._top_losses import Lagrangian, detection_loss

Singles = NDArray[np.float32]  # twice as fast as double precision, and precise enough to train

_FLAT = 1e-4  # scores with a smaller deviation count as constant
_LOG_LOSS_RATE, _DETECTION_RATE = 1e-2, 5e-3


class Batches:
    """All items at each step, or a new stratified sample of at most `most` items."""

    def __init__(self, X: Doubles, is_rare: Mask, most: int, rng: np.random.Generator) -> None:
        self.X, self.is_rare = X.astype(np.float32), is_rare
        self._strata = [np.flatnonzero(is_rare), np.flatnonzero(~is_rare)]
        self._share, self._rng = most / len(X), rng

    def draw(self) -> tuple[Singles, Mask]:
        """Return items, and which of them are rare."""
        if self._share >= 1:
            return self.X, self.is_rare
        drawn = [
            self._rng.choice(rows, max(1, round(self._share * rows.size)), replace=False)
            for rows in self._strata
        ]
        rows = np.concatenate(drawn)
        return self.X[rows], self.is_rare[rows]


class Networks(NamedTuple):
    """Networks of one shape with the hyperbolic tangent, each layer an array over all of them."""

    weights: list[Any]
    intercepts: list[Any]

    @classmethod
    def at_random(cls, sizes: Sequence[int], n_members: int, rng: np.random.Generator) -> Networks:
        """Draw weights as in Glorot and Bengio (2010); intercepts start at 0."""
        weights, intercepts = [], []
        for n_in, n_out in pairwise(sizes):
            bound = np.sqrt(6 / (n_in + n_out))
            drawn = rng.uniform(-bound, bound, size=(n_members, n_in, n_out))
            weights.append(drawn.astype(np.float32))
            intercepts.append(np.zeros((n_members, 1, n_out), dtype=np.float32))
        return cls(weights, intercepts)

    def values(self, X: Singles) -> list[Singles]:
        """Return what goes into each layer, and what comes out of the last one."""
        values = [X]
        for layer, (weights, intercepts) in enumerate(zip(*self, strict=True)):
            if layer:
                values[-1] = np.tanh(values[-1])
            values.append(values[-1] @ weights + intercepts)
        return values

    def scores(self, X: Any) -> Doubles:
        """Return the score of each item (column) by each network (row)."""
        return self.values(np.asarray(X, dtype=np.float32))[-1][..., 0].astype(np.float64)

    def slopes(self, values: list[Singles], gradient: Doubles) -> list[Singles]:
        """Return the gradient in all weights, then in all intercepts, from that in the scores."""
        slope = gradient[..., np.newaxis].astype(np.float32)
        of_weights: list[Singles] = []
        of_intercepts: list[Singles] = []
        for layer in reversed(range(len(self.weights))):
            before = values[layer]
            of_weights.insert(0, np.swapaxes(before, -1, -2) @ slope)
            of_intercepts.insert(0, slope.sum(axis=1, keepdims=True))
            if layer:
                slope = slope @ np.swapaxes(self.weights[layer], 1, 2) * (1 - before**2)
        return [*of_weights, *of_intercepts]

    def standardise(self, X: Any) -> None:
        """Give the scores of each network mean 0 and deviation 1, without changing its ranking."""
        scores = self.scores(X)
        deviation = scores.std(axis=1)[:, np.newaxis, np.newaxis]
        deviation[deviation < _FLAT] = 1  # nothing was learned: do not amplify noise
        self.intercepts[-1][:] -= scores.mean(axis=1)[:, np.newaxis, np.newaxis]
        for last in (self.weights[-1], self.intercepts[-1]):
            last /= deviation


def train_log_loss(
    networks: Networks, batches: Batches, n_steps: int, *, alphas: Sequence[float]
) -> None:
    """Minimise the log loss per rare item, plus `alpha` / 2 times the squared weights.

    Each network has its own `alpha`.
    """
    share = float(np.mean(batches.is_rare))
    networks.intercepts[-1][:] = np.log(share / (1 - share))

    def gradient(scores: Doubles, is_rare: Mask) -> Doubles:
        return (expit(scores) - is_rare) / np.count_nonzero(is_rare)

    homes = [np.zeros_like(weights) for weights in networks.weights]
    pulls = np.array(alphas, dtype=np.float32)
    _train(networks, batches, n_steps, gradient, homes, pulls, _LOG_LOSS_RATE)


def train_for_detection(
    networks: Networks, batches: Batches, n_steps: int, *, fraction: float, pull: float
) -> Doubles:
    """Minimise the Lagrangian of each network, with a pull towards its present weights.

    Returns the last price of each.
    """
    X, is_rare = batches.draw()
    for member, scores in enumerate(networks.scores(X)):  # its threshold is 0
        networks.intercepts[-1][member] -= detection_loss(scores, is_rare, fraction).threshold
    losses = [Lagrangian() for _ in networks.weights[0]]

    def gradient(scores: Doubles, is_rare: Mask) -> Doubles:
        pairs = zip(losses, scores, strict=True)
        return np.stack([loss(row, is_rare, fraction).gradient for loss, row in pairs])

    homes = [weights.copy() for weights in networks.weights]
    pulls = np.full(len(losses), pull, dtype=np.float32)
    _train(networks, batches, n_steps, gradient, homes, pulls, _DETECTION_RATE)
    return np.array([loss.price for loss in losses])


def _train(
    networks: Networks,
    batches: Batches,
    n_steps: int,
    gradient: Callable[[Doubles, Mask], Doubles],
    homes: list[Singles],
    pulls: Singles,
    rate: float,
) -> None:
    """Descend by Adam (Kingma and Ba, 2015); weights are pulled towards their homes."""
    parameters = [*networks.weights, *networks.intercepts]
    means, squares = ([np.zeros_like(each) for each in parameters] for _ in range(2))
    for step in range(1, n_steps + 1):
        X, is_rare = batches.draw()
        values = networks.values(X)
        slopes = networks.slopes(values, gradient(values[-1][..., 0].astype(np.float64), is_rare))
        for slope, weights, home in zip(slopes, networks.weights, homes, strict=False):
            slope += pulls[:, np.newaxis, np.newaxis] * (weights - home)
        for each, slope, mean, square in zip(parameters, slopes, means, squares, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            size = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            each -= rate / (1 - 0.9**step) * mean / size
