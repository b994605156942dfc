"""`CapacityAwareNetworkClassifier`: small networks trained for detection within a capacity."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from .._core.arrays import Doubles, Mask
from .._core.validation import check_count, check_number, check_option, check_positive
from ..capacity import Capacity
from ._base import CapacityAwareBase
from ._top_losses import TOP_LOSSES, Lagrangian, detection_loss

__all__ = ["CapacityAwareNetworkClassifier"]

NETWORK_LOSSES = ("lagrangian", *TOP_LOSSES)

_ROWS_AT_A_TIME = 1 << 14
_WARM_UP_STEPS, _WARM_UP_RATE, _RATE = 200, 1e-2, 5e-3
_ALPHAS, _N_FOLDS = (0.03, 0.3), 3


class CapacityAwareNetworkClassifier(CapacityAwareBase):
    r"""Small neural networks trained for detection within a capacity: a Lagrangian relaxation.

    Several networks are first trained for the log loss, as usual. Each then continues by maximising
    a smooth detection rate, subject to a smooth flagged rate of at most the capacity. The dual
    variable, the price of a flag, is updated at each step. The score is the mean of the networks.

    Training needs the extra ``network``; a trained model needs NumPy only.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; the networks are trained for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    hidden_layer_sizes : sequence of int, default=(16,)
        Units of the hidden layers, with the hyperbolic tangent. ``()`` gives a linear score.
    loss : {"lagrangian", "detection", "pat-mat", "top-push"}, default="lagrangian"
        What is minimised after the log loss:

        - "lagrangian": the share of rare items missed, with a price on flags beyond the capacity.
          The price rises while there are too many flags, and falls while there are too few.
        - "detection", "pat-mat", "top-push": as in :class:`CapacityAwareLinearClassifier`.
          "detection" has the same solutions as "lagrangian", with the price solved for at each
          step.
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
        With ``loss="lagrangian"``, the last value of each dual variable: the detection that the
        last percent of the capacity adds, in percent. NaN otherwise.
    coef_ : ndarray of shape (1, n_features)
        Without hidden layers, the weights of the score.
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
    CapacityAwareLinearClassifier : The same for linear scores, without torch.
    shortlist.CapacityClassifier : Cuts any network, or any other score, at the capacity.

    Notes
    -----
    On credit-default data it detected clearly more than scikit-learn's network of the same size,
    cut at the same capacity, in ten of twelve settings, and on 19 imbalanced sets of KEEL it won
    on nine and lost on none. Most of that is due to the weight decay: against the same network with
    ``max_iter=0``, which ignores the capacity, it clearly won in two settings and on one set, and
    lost on one set. See `docs/appendix/aware-study.md`.

    On one machine, the same seed gives the same weights. The random generators and thread settings
    of torch are not changed.

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
        loss: str = "lagrangian",
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
        self.loss = loss
        self.alpha = alpha
        self.C = C
        self.n_members = n_members
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.rare_label = rare_label
        self.random_state = random_state

    @property
    def coef_(self) -> Doubles:
        """Weights of the score if it is linear."""
        if len(self.coefs_) > 1:
            raise AttributeError("A network with hidden layers has no coef_: see coefs_.")
        return self.coefs_[0].mean(axis=0).T

    def _check_params(self) -> None:
        check_option("loss", self.loss, NETWORK_LOSSES)
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

    def _n_steps(self) -> int:
        n_folds = _N_FOLDS if self.alpha == "auto" else 0
        return (n_folds + 1) * _WARM_UP_STEPS + self.max_iter

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        from ._training import Batches  # needs torch, which prediction does not

        scaler = StandardScaler().fit(X)
        scaled, steps = scaler.transform(X), self._steps(self._n_steps())
        self.alpha_ = self._choose_alpha(scaled, is_rare, steps, rng)
        networks = self._networks(X.shape[1], self.n_members, rng)
        self._train(networks, Batches(scaled, is_rare, self.batch_size, rng), steps)
        self._keep(networks, scaler)

    def _networks(self, n_features: int, n_members: int, rng: np.random.Generator) -> Any:
        from ._training import Networks

        return Networks.at_random([n_features, *self._hidden(), 1], n_members, rng)

    def _choose_alpha(
        self, X: Doubles, is_rare: Mask, steps: Iterator[int], rng: np.random.Generator
    ) -> float:
        """Compare weight decays on folds of the training data, all decays trained side by side."""
        from ._training import Batch, Batches, loss_by_alpha

        if self.alpha != "auto":
            return float(self.alpha)
        missed = np.zeros(len(_ALPHAS))
        for left_out in _folds(is_rare, rng):
            held_out = Batch.of(X[left_out], is_rare[left_out])
            missed += loss_by_alpha(
                self._networks(X.shape[1], len(_ALPHAS), rng),
                Batches(X[~left_out], is_rare[~left_out], self.batch_size, rng),
                held_out,
                islice(steps, _WARM_UP_STEPS),
                detection_loss,
                alphas=_ALPHAS,
                fraction=self._target_fraction(int(np.count_nonzero(left_out))),
                rate=_WARM_UP_RATE,
            )
        return _ALPHAS[int(np.argmin(missed))]

    def _train(self, networks: Any, batches: Any, steps: Iterator[int]) -> None:
        """Minimise the log loss, then the loss at the top."""
        from ._training import train_at_the_top, train_log_loss

        networks.start_at(batches.n_rare / batches.n_items)
        train_log_loss(
            networks,
            batches,
            islice(steps, _WARM_UP_STEPS),
            alphas=[self.alpha_] * self.n_members,
            rate=_WARM_UP_RATE,
        )
        networks.standardise(next(batches).X)
        fraction = self._target_fraction(min(batches.n_items, self.batch_size))
        losses = self._losses(networks, next(batches), fraction)
        self.n_iter_ = train_at_the_top(
            networks,
            batches,
            steps,
            losses,
            fraction=fraction,
            pull=1 / (self.C * batches.n_rare),
            rate=_RATE,
        )
        self.prices_ = np.array([getattr(loss, "price", np.nan) for loss in losses])

    def _losses(self, networks: Any, batch: Any, fraction: float) -> list[Any]:
        """Return the loss of each network; the Lagrangian starts with the threshold at 0."""
        if self.loss != "lagrangian":
            return [TOP_LOSSES[self.loss]] * self.n_members
        for member, scores in enumerate(networks.scores_of(batch.X)):
            networks.shift(member, -detection_loss(scores, batch.is_rare, fraction).threshold)
        return [Lagrangian() for _ in range(self.n_members)]

    def _keep(self, networks: Any, scaler: StandardScaler) -> None:
        """Store the weights as arrays, those of the first layer for the original features."""
        self.coefs_, self.intercepts_ = networks.arrays()
        self.coefs_[0] = self.coefs_[0] / scaler.scale_[:, np.newaxis]
        self.intercepts_[0] = self.intercepts_[0] - scaler.mean_ @ self.coefs_[0]

    def _sum_up(self, X: Doubles) -> Doubles:
        parts = [self._mean_score(X[rows]) for rows in gen_batches(len(X), _ROWS_AT_A_TIME)]
        return np.concatenate(parts)

    def _mean_score(self, X: Doubles) -> Doubles:
        values = X
        for layer, (weights, intercepts) in enumerate(
            zip(self.coefs_, self.intercepts_, strict=True)
        ):
            values = np.tanh(values) if layer else values
            values = values @ weights + intercepts[:, np.newaxis]
        return values[..., 0].mean(axis=0)


def _folds(is_rare: Mask, rng: np.random.Generator) -> list[Mask]:
    """Leave each item out once, in stratified folds; return no folds if a class is too small."""
    folds = np.empty(is_rare.size, dtype=np.intp)
    for stratum in (np.flatnonzero(is_rare), np.flatnonzero(~is_rare)):
        if stratum.size < _N_FOLDS:
            return []
        folds[rng.permutation(stratum)] = np.arange(stratum.size) % _N_FOLDS
    return [folds == fold for fold in range(_N_FOLDS)]
