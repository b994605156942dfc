"""`CapacityAwareNetworkClassifier`: small networks trained for detection within a capacity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from .._core.arrays import Doubles, Mask
from .._core.folds import stratified_folds
from .._core.validation import check_count, check_number, check_positive
from ..capacity import Capacity
from ._base import CapacityAwareBase
from ._linear import Lagrangian, detection_loss

Singles = NDArray[np.float32]  # twice as fast as double precision, and precise enough to train

_ROWS_AT_A_TIME = 1 << 14
_MOST_ITEMS = 50_000
_WARM_UP_STEPS = 200
_LOG_LOSS_RATE, _DETECTION_RATE = 1e-2, 5e-3
_FLAT = 1e-4  # scores with a smaller deviation count as constant
_ALPHAS, _N_FOLDS = (0.03, 0.3), 3


@dataclass(eq=False, repr=False)
class CapacityAwareNetworkClassifier(CapacityAwareBase):
    r"""Small neural networks trained for detection within a capacity: a Lagrangian relaxation.

    Several networks are first trained for the log loss, as usual. Each then continues by maximising
    a smooth detection rate, subject to a smooth flagged rate of at most the capacity. The dual
    variable, the price of a flag, is updated at each step. The score is the mean of the networks.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; the networks are trained for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    hidden_layer_sizes : sequence of int, default=(16,)
        Units of the hidden layers, with the hyperbolic tangent. ``()`` gives a linear score.
    alpha : float or "auto", default="auto"
        Weight decay per rare item while the log loss is minimised. "auto" takes 0.03 or 0.3,
        whichever detects more within the capacity in three folds of the training data.
    C : float, default=0.3
        Inverse strength of the penalty :math:`\|w - w_0\|^2 / (2 C n_{\text{rare}})` afterwards,
        where :math:`w_0` are the weights found for the log loss.
    n_members : int, default=3
        Number of networks; they differ in their initial weights.
    max_iter : int, default=150
        Steps after the log loss. With 0, the networks do not learn for the capacity.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights and of a sample.

    Attributes
    ----------
    coefs_ : list of ndarrays of shape (n_members, n_in, n_out)
        Weights of each layer; those of the first apply to the original features.
    intercepts_ : list of ndarrays of shape (n_members, n_out)
        Intercepts of each layer.
    alpha_ : float
        The weight decay in use.
    n_iter_ : int
        Steps taken after the log loss.
    prices_ : ndarray of shape (n_members,)
        The last value of each dual variable: the detection that the last percent of the capacity
        adds, in percent.
    offset_ : float
        The score at which the training items reach the capacity; `predict` compares with it.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_label_ : label
        The label to find.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    CapacityAwareLinearClassifier : The same for linear scores.
    shortlist.CapacityClassifier : Cuts any network, or any other score, at the capacity.

    Notes
    -----
    On credit-default data it detected more than scikit-learn's network of the same size, cut at the
    same capacity, and on the sets of KEEL as much or more. Most of that is due to the weight decay:
    the same network with ``max_iter=0``, which ignores the capacity, is hardly worse. See
    `docs/appendix/aware-study.md`.

    On one machine, the same seed gives the same weights. Of more than 50,000 items, a stratified
    sample trains the networks.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.aware import CapacityAwareNetworkClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> model = CapacityAwareNetworkClassifier(Capacity.multiple(2), random_state=0).fit(X, y)
    >>> [weights.shape for weights in model.coefs_]
    [(3, 8, 16), (3, 16, 1)]
    """

    capacity: Capacity | None = None
    _: KW_ONLY
    hidden_layer_sizes: Any = (16,)
    alpha: Any = "auto"
    C: float = 0.3
    n_members: int = 3
    max_iter: int = 150
    rare_label: Any = None
    random_state: Any = None

    def _check_params(self) -> None:
        check_positive("C", self.C)
        if self.alpha != "auto" and float(check_number("alpha", self.alpha)) < 0:
            raise ValueError(f"alpha must be 'auto', or not negative; got {self.alpha!r}.")
        check_count("n_members", self.n_members)
        check_count("max_iter", self.max_iter, at_least=0)
        for n_units in self._hidden():
            check_count("each of hidden_layer_sizes", n_units)

    def _hidden(self) -> tuple[Any, ...]:
        sizes = self.hidden_layer_sizes
        return tuple(sizes) if np.iterable(sizes) else (sizes,)

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        scaler = StandardScaler().fit(X)
        if len(X) > _MOST_ITEMS:
            some = stratified_folds(is_rare, ceil(len(X) / _MOST_ITEMS), rng) == 0
            X, is_rare = X[some], is_rare[some]
        scaled = scaler.transform(X).astype(np.float32)
        self.alpha_ = self._choose_alpha(scaled, is_rare, rng)
        layers = self._trained(scaled, is_rare, [self.alpha_] * self.n_members, rng)
        standardise(layers, scaled)
        fraction = self._target_fraction(len(scaled))
        for member, scores in enumerate(scores_of(layers, scaled)):  # its threshold is 0
            layers[-1][member, -1] -= detection_loss(scores, is_rare, fraction).threshold
        loss = Lagrangian()
        train(
            layers,
            scaled,
            lambda scores: loss.gradient(scores, is_rare, fraction),
            n_steps=self.max_iter,
            homes=[layer.copy() for layer in layers],
            pulls=[1 / (self.C * np.count_nonzero(is_rare))] * self.n_members,
            rate=_DETECTION_RATE,
        )
        self.prices_ = loss.prices
        self.n_iter_ = self.max_iter
        self._keep(layers, scaler)

    def _trained(
        self, X: Singles, is_rare: Mask, alphas: Sequence[float], rng: np.random.Generator
    ) -> list[Singles]:
        """Return a network for each weight decay, trained for the log loss per rare item."""
        layers = draw_layers([X.shape[1], *self._hidden(), 1], len(alphas), rng)
        n_rare = np.count_nonzero(is_rare)
        layers[-1][:, -1] = np.log(n_rare / (is_rare.size - n_rare))
        train(
            layers,
            X,
            lambda scores: (expit(scores) - is_rare) / n_rare,
            n_steps=_WARM_UP_STEPS,
            homes=[np.zeros_like(layer) for layer in layers],
            pulls=alphas,
            rate=_LOG_LOSS_RATE,
        )
        return layers

    def _choose_alpha(self, X: Singles, is_rare: Mask, rng: np.random.Generator) -> float:
        """Compare weight decays on folds of the training data, all decays trained side by side."""
        if self.alpha != "auto":
            return float(self.alpha)
        n_rare = np.count_nonzero(is_rare)
        if min(n_rare, is_rare.size - n_rare) < _N_FOLDS:
            return _ALPHAS[0]
        missed = np.zeros(len(_ALPHAS))
        folds = stratified_folds(is_rare, _N_FOLDS, rng)
        for left_out in (folds == fold for fold in range(_N_FOLDS)):
            layers = self._trained(X[~left_out], is_rare[~left_out], _ALPHAS, rng)
            standardise(layers, X[left_out])
            fraction = self._target_fraction(int(np.count_nonzero(left_out)))
            scores = scores_of(layers, X[left_out])
            missed += [detection_loss(row, is_rare[left_out], fraction).value for row in scores]
        return _ALPHAS[int(np.argmin(missed))]

    def _keep(self, layers: list[Singles], scaler: StandardScaler) -> None:
        """Store the weights, those of the first layer for the original features."""
        self.coefs_ = [layer[:, :-1].astype(np.float64) for layer in layers]
        self.intercepts_ = [layer[:, -1].astype(np.float64) for layer in layers]
        self.coefs_[0] = self.coefs_[0] / scaler.scale_[:, np.newaxis]
        self.intercepts_[0] = self.intercepts_[0] - scaler.mean_ @ self.coefs_[0]

    def _sum_up(self, X: Doubles) -> Doubles:
        layers = [
            np.concatenate([weights, intercepts[:, np.newaxis]], axis=1)
            for weights, intercepts in zip(self.coefs_, self.intercepts_, strict=True)
        ]
        batches = gen_batches(len(X), _ROWS_AT_A_TIME)
        return np.concatenate([scores_of(layers, X[rows]).mean(axis=0) for rows in batches])


# --- networks of one shape, trained side by side: a layer is an array over all of them ------------


def draw_layers(sizes: Sequence[int], n_members: int, rng: np.random.Generator) -> list[Singles]:
    """Draw weights as in Glorot and Bengio (2010); the last row, the intercepts, starts at 0."""
    layers = []
    for n_in, n_out in pairwise(sizes):
        bound = np.sqrt(6 / (n_in + n_out))
        layers.append(np.zeros((n_members, n_in + 1, n_out), dtype=np.float32))
        layers[-1][:, :-1] = rng.uniform(-bound, bound, size=(n_members, n_in, n_out))
    return layers


def values_of(layers: list[Any], X: Any) -> list[Any]:
    """Return what goes into each layer, and what comes out of the last one."""
    values = [X]
    for number, layer in enumerate(layers):
        if number:
            values[-1] = np.tanh(values[-1])
        values.append(values[-1] @ layer[:, :-1] + layer[:, -1:])
    return values


def scores_of(layers: list[Any], X: Any) -> Doubles:
    """Return the score of each item (column) by each network (row)."""
    return values_of(layers, X)[-1][..., 0].astype(np.float64)


def slopes_of(layers: list[Any], values: list[Any], gradient: Doubles) -> list[Any]:
    """Return the gradient in all layers, from that in the scores."""
    slope = gradient[..., np.newaxis].astype(layers[0].dtype)
    slopes: list[Any] = []
    for number in reversed(range(len(layers))):
        before = values[number]
        parts = [np.swapaxes(before, -1, -2) @ slope, slope.sum(axis=1, keepdims=True)]
        slopes.insert(0, np.concatenate(parts, axis=1))
        if number:
            slope = slope @ np.swapaxes(layers[number][:, :-1], 1, 2) * (1 - before**2)
    return slopes


def standardise(layers: list[Singles], X: Singles) -> None:
    """Give the scores of each network mean 0 and deviation 1, without changing its ranking."""
    scores = scores_of(layers, X)
    deviation = scores.std(axis=1)[:, np.newaxis, np.newaxis]
    deviation[deviation < _FLAT] = 1  # nothing was learned: do not amplify noise
    layers[-1][:, -1] -= scores.mean(axis=1)[:, np.newaxis]
    layers[-1] /= deviation


def train(
    layers: list[Singles],
    X: Singles,
    gradient: Callable[[Doubles], Doubles],
    *,
    n_steps: int,
    homes: list[Singles],
    pulls: Sequence[float],
    rate: float,
) -> None:
    """Descend by Adam (Kingma and Ba, 2015); each network pulls its weights towards their homes."""
    pull = np.array(pulls, dtype=np.float32)[:, np.newaxis, np.newaxis]
    means, squares = ([np.zeros_like(layer) for layer in layers] for _ in range(2))
    for step in range(1, n_steps + 1):
        values = values_of(layers, X)
        slopes = slopes_of(layers, values, gradient(values[-1][..., 0].astype(np.float64)))
        for layer, home, slope, mean, square in zip(
            layers, homes, slopes, means, squares, strict=True
        ):
            slope[:, :-1] += pull * (layer - home)[:, :-1]  # intercepts are free
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            size = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            layer -= rate / (1 - 0.9**step) * mean / size
