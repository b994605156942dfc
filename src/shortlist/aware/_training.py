"""Small networks, trained side by side: first for the log loss, then for a loss at the top.

Importing this file imports torch, which prediction does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Doubles, Mask
from .._core.extras import load_extra
from ._top_losses import TopLoss

__all__ = ["Batch", "Batches", "Networks", "loss_by_alpha", "train_at_the_top", "train_log_loss"]

torch = load_extra("torch", needed_for="Training a network")

Loss = Callable[[Doubles, Mask, float], TopLoss]

_FLOAT = torch.float32  # several times faster than double precision, and precise enough to train
_FLAT = 1e-4  # scores with a smaller deviation count as constant


class Batch(NamedTuple):
    """Items as a tensor, and which of them are rare."""

    X: Any
    is_rare: Mask

    @classmethod
    def of(cls, X: Doubles, is_rare: Mask) -> Batch:
        """Copy the items to a tensor."""
        return cls(torch.tensor(X, dtype=_FLOAT), is_rare)


class Batches:
    """All items at each step, or a new stratified sample of at most `most` items."""

    def __init__(self, X: Doubles, is_rare: Mask, most: int, rng: np.random.Generator) -> None:
        self._all = Batch.of(X, is_rare)
        self._strata = [np.flatnonzero(is_rare), np.flatnonzero(~is_rare)]
        self._share, self._rng = most / len(X), rng
        self.n_items, self.n_rare = len(X), len(self._strata[0])

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._share >= 1:
            return self._all
        drawn = [
            self._rng.choice(rows, max(1, round(self._share * rows.size)), replace=False)
            for rows in self._strata
        ]
        rows = np.concatenate(drawn)
        return Batch(self._all.X[torch.from_numpy(rows)], self._all.is_rare[rows])


class Networks(NamedTuple):
    """Networks of one shape, each layer a tensor over all of them: weights and intercepts."""

    weights: list[Any]
    intercepts: list[Any]

    @classmethod
    def at_random(cls, sizes: Sequence[int], n_members: int, rng: np.random.Generator) -> Networks:
        """Draw weights as in Glorot and Bengio (2010); intercepts start at 0."""
        weights, intercepts = [], []
        for n_in, n_out in pairwise(sizes):
            bound = np.sqrt(6 / (n_in + n_out))
            drawn = rng.uniform(-bound, bound, size=(n_members, n_in, n_out))
            weights.append(torch.tensor(drawn, dtype=_FLOAT).requires_grad_())
            zeros = torch.zeros(n_members, 1, n_out, dtype=_FLOAT)
            intercepts.append(zeros.requires_grad_())
        return cls(weights, intercepts)

    def scores(self, X: Any) -> Any:
        """Return the score of each item (column) by each network (row)."""
        first, *others = zip(self.weights, self.intercepts, strict=True)
        values = torch.baddbmm(first[1], X.expand(len(first[0]), *X.shape), first[0])
        for weights, intercepts in others:
            values = torch.baddbmm(intercepts, torch.tanh(values), weights)
        return values[..., 0]

    def standardise(self, X: Any) -> None:
        """Give the scores of each network mean 0 and deviation 1, without changing its ranking."""
        with torch.no_grad():
            scores = self.scores(X)
            deviation = scores.std(dim=1, correction=0)[:, None, None]
            deviation[deviation < _FLAT] = 1  # nothing was learned: do not amplify noise
            self.intercepts[-1] -= scores.mean(dim=1)[:, None, None]
            for last in (self.weights[-1], self.intercepts[-1]):
                last /= deviation

    def optimiser(self, rate: float) -> Any:
        """Return Adam for all weights and intercepts; fused, because the tensors are small."""
        return torch.optim.Adam([*self.weights, *self.intercepts], lr=rate, fused=True)

    def start_at(self, share: float) -> None:
        """Make the scores of all networks start around the log odds of a share."""
        with torch.no_grad():
            self.intercepts[-1].fill_(float(np.log(share / (1 - share))))

    def shift(self, member: int, by: float) -> None:
        """Add a number to the scores of one network."""
        with torch.no_grad():
            self.intercepts[-1][member] += by

    def scores_of(self, X: Any) -> Doubles:
        """Return the scores as a NumPy array."""
        return self.scores(X).detach().double().numpy()

    def arrays(self) -> tuple[list[Doubles], list[Doubles]]:
        """Return copies of weights and intercepts as NumPy arrays."""
        weights = [tensor.detach().double().numpy() for tensor in self.weights]
        intercepts = [tensor.detach().double().numpy()[:, 0] for tensor in self.intercepts]
        return weights, intercepts


def train_log_loss(
    networks: Networks,
    batches: Iterator[Batch],
    steps: Iterator[int],
    *,
    alphas: Sequence[float],
    rate: float,
) -> None:
    """Minimise the log loss per rare item, plus `alpha` / 2 times the squared weights.

    Each network has its own `alpha`.
    """
    optimiser = networks.optimiser(rate)
    decays = torch.tensor(alphas, dtype=_FLOAT) / 2
    for _ in steps:
        X, is_rare = next(batches)
        optimiser.zero_grad()
        scores = networks.scores(X)
        labels = torch.tensor(is_rare, dtype=_FLOAT).expand_as(scores)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, labels, reduction="sum"
        ) / np.count_nonzero(is_rare)
        squares = sum((weights**2).sum(dim=(1, 2)) for weights in networks.weights)
        (loss + decays @ squares).backward()
        optimiser.step()


def loss_by_alpha(
    networks: Networks,
    batches: Batches,
    held_out: Batch,
    steps: Iterator[int],
    loss: Loss,
    *,
    alphas: Sequence[float],
    fraction: float,
    rate: float,
) -> Doubles:
    """Return the loss at the top of networks with different weight decay on held-out items."""
    networks.start_at(batches.n_rare / batches.n_items)
    train_log_loss(networks, batches, steps, alphas=alphas, rate=rate)
    networks.standardise(held_out.X)
    scores = networks.scores_of(held_out.X)
    return np.array([loss(row, held_out.is_rare, fraction).value for row in scores])


def train_at_the_top(
    networks: Networks,
    batches: Iterator[Batch],
    steps: Iterator[int],
    losses: Sequence[Loss],
    *,
    fraction: float,
    pull: float,
    rate: float,
) -> int:
    """Minimise the loss of each network, with a pull towards its present weights.

    Returns the number of steps.
    """
    start = [weights.detach().clone() for weights in networks.weights]
    optimiser = networks.optimiser(rate)
    n_steps = 0
    for n_steps, _ in enumerate(steps, start=1):  # noqa: B007 - counts
        X, is_rare = next(batches)
        optimiser.zero_grad()
        scores = networks.scores(X)
        gradients = [
            loss(row, is_rare, fraction).gradient
            for loss, row in zip(losses, scores.detach().double().numpy(), strict=True)
        ]
        scores.backward(torch.tensor(np.stack(gradients), dtype=_FLOAT))
        with torch.no_grad():
            for weights, home in zip(networks.weights, start, strict=True):
                weights.grad += pull * (weights - home)
        optimiser.step()
    return n_steps
