"""`CapacityAwareNetworkClassifier`: small networks trained for detection within a capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from .._core.arrays import Doubles, Mask
from .._core.folds import stratified_folds
from .._core.validation import check_count, check_number, check_positive
from ..capacity import Capacity
from ._base import CapacityAwareBase
from ._top_losses import detection_loss
from ._training import Batches, Networks, train_for_detection, train_log_loss

__all__ = ["CapacityAwareNetworkClassifier"]

_ROWS_AT_A_TIME = 1 << 14
_WARM_UP_STEPS = 200
_ALPHAS, _N_FOLDS = (0.03, 0.3), 3


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
    batch_size : int, default=20_000
        Largest number of items in one step. If there are more, each step draws a stratified sample.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights and the batches.

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
    On credit-default data it detected clearly more than scikit-learn's network of the same size,
    cut at the same capacity, in ten of twelve settings, and on 19 imbalanced sets of KEEL it won
    on nine and lost on none. Most of that is due to the weight decay: against the same network with
    ``max_iter=0``, which ignores the capacity, it clearly won in two settings and on one set, and
    lost on one set. See `docs/appendix/aware-study.md`.

    On one machine, the same seed gives the same weights.

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

    def __init__(
        self,
        capacity: Capacity | None = None,
        *,
        hidden_layer_sizes: Any = (16,),
        alpha: Any = "auto",
        C: float = 0.3,
        n_members: int = 3,
        max_iter: int = 150,
        batch_size: int = 20_000,
        rare_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.capacity = capacity
        self.hidden_layer_sizes = hidden_layer_sizes
        self.alpha = alpha
        self.C = C
        self.n_members = n_members
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.rare_label = rare_label
        self.random_state = random_state

    def _check_params(self) -> None:
        check_positive("C", self.C)
        if self.alpha != "auto" and float(check_number("alpha", self.alpha)) < 0:
            raise ValueError(f"alpha must be 'auto', or not negative; got {self.alpha!r}.")
        check_count("n_members", self.n_members)
        check_count("max_iter", self.max_iter, at_least=0)
        check_count("batch_size", self.batch_size, at_least=2)
        for n_units in self._hidden():
            check_count("each of hidden_layer_sizes", n_units)

    def _hidden(self) -> tuple[Any, ...]:
        sizes = self.hidden_layer_sizes
        return tuple(sizes) if np.iterable(sizes) else (sizes,)

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        scaler = StandardScaler().fit(X)
        scaled = scaler.transform(X)
        self.alpha_ = self._choose_alpha(scaled, is_rare, rng)
        batches = Batches(scaled, is_rare, self.batch_size, rng)
        networks = self._trained(batches, [self.alpha_] * self.n_members, rng)
        networks.standardise(batches.draw()[0])
        self.prices_ = train_for_detection(
            networks,
            batches,
            self.max_iter,
            fraction=self._target_fraction(min(len(X), self.batch_size)),
            pull=1 / (self.C * np.count_nonzero(is_rare)),
        )
        self.n_iter_ = self.max_iter
        self._keep(networks, scaler)

    def _trained(
        self, batches: Batches, alphas: Sequence[float], rng: np.random.Generator
    ) -> Networks:
        """Return a network for each weight decay, trained for the log loss."""
        sizes = [batches.X.shape[1], *self._hidden(), 1]
        networks = Networks.at_random(sizes, len(alphas), rng)
        train_log_loss(networks, batches, _WARM_UP_STEPS, alphas=alphas)
        return networks

    def _choose_alpha(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> float:
        """Compare weight decays on folds of the training data, all decays trained side by side."""
        if self.alpha != "auto":
            return float(self.alpha)
        n_rare = np.count_nonzero(is_rare)
        if min(n_rare, is_rare.size - n_rare) < _N_FOLDS:
            return _ALPHAS[0]
        missed = np.zeros(len(_ALPHAS))
        folds = stratified_folds(is_rare, _N_FOLDS, rng)
        for left_out in (folds == fold for fold in range(_N_FOLDS)):
            batches = Batches(X[~left_out], is_rare[~left_out], self.batch_size, rng)
            networks = self._trained(batches, _ALPHAS, rng)
            networks.standardise(X[left_out])
            fraction = self._target_fraction(int(np.count_nonzero(left_out)))
            scores = networks.scores(X[left_out])
            missed += [detection_loss(row, is_rare[left_out], fraction).value for row in scores]
        return _ALPHAS[int(np.argmin(missed))]

    def _keep(self, networks: Networks, scaler: StandardScaler) -> None:
        """Store the weights, those of the first layer for the original features."""
        self.coefs_ = [weights.astype(np.float64) for weights in networks.weights]
        self.intercepts_ = [each[:, 0].astype(np.float64) for each in networks.intercepts]
        self.coefs_[0] = self.coefs_[0] / scaler.scale_[:, np.newaxis]
        self.intercepts_[0] = self.intercepts_[0] - scaler.mean_ @ self.coefs_[0]

    def _sum_up(self, X: Doubles) -> Doubles:
        networks = Networks(self.coefs_, [each[:, np.newaxis] for each in self.intercepts_])
        batches = gen_batches(len(X), _ROWS_AT_A_TIME)
        return np.concatenate(
            [networks.values(X[rows])[-1][..., 0].mean(axis=0) for rows in batches]
        )
