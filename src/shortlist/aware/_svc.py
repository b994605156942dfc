"""`CapacityAwareSVC`: few support vectors, chosen one by one for detection within a capacity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from .._fitting import hold_out
from .._validation import check_number, check_option
from ..capacity import Capacity
from ._base import CapacityAwareBase, Floats, Mask, Places
from ._checks import check_count
from ._greedy import GreedyPath, greedy_path

__all__ = ["CapacityAwareSVC"]

KERNELS = ("rbf", "linear", "poly", "sigmoid")
VARIANTS = ("all", "best-prefix", "stop")
TIE_BREAKS = ("first", "wider")
SELECTIONS = ("paper", "cross-fit")

_HELD_OUT = {"paper": 0.5, "cross-fit": 0.25}
_CHUNK = 1 << 14


class _Expansion(NamedTuple):
    """A score as a sum over some rows, and how it was found."""

    rows: Places
    coefficients: Floats
    path: Places
    detection: Floats


class CapacityAwareSVC(CapacityAwareBase):
    r"""A support vector machine reduced to the support vectors that detect most at a capacity.

    A standard fit gives support vectors with coefficients. Starting from none, each step adds the
    one that, together with those before it, finds most rare items within the capacity on data
    that the machine has not seen. The score is the sum over the chosen ones, without intercept.

    Parameters
    ----------
    capacity : Capacity
        How much can be followed up; the support vectors are chosen for it.
    C : float, default=1.0
        Penalty of the support vector machine.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        Kernel; features should be standardised.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernel, as in :class:`~sklearn.svm.SVC`.
    max_support : int, default=30
        How many support vectors to choose.
    variant : {"all", "best-prefix", "stop"}, default="all"
        How much of the path is used: all of it; up to its highest detection; or up to the first
        step that detects no more than the one before.
    tie_break : {"wider", "first"}, default="wider"
        Most steps tie. "wider" takes the support vector that detects most within 2, 4 and 8 times
        the capacity, in this order; what ties still, and everything with "first", goes
        to the one that comes first in the data. The paper does not say.
    selection : {"cross-fit", "paper"}, default="cross-fit"
        Where the support vectors are chosen.

        - "paper": the machine is fitted on one half of the data; support vectors are chosen, and
          the threshold is set, on the other. The scores then fit the calibration items better
          than any later ones, so that only ``guarantee="plug-in"`` is on offer.
        - "cross-fit": a quarter of the data is kept for the threshold, and every guarantee holds.
          The rest is halved, each half chooses among the support vectors of the other, and this
          is repeated `n_swaps` times; the score is the mean of all sums.
    n_swaps : int, default=5
        How often "cross-fit" halves the data, at the cost of two machines each.
    rare_label, prevalence, guarantee, confidence, ties
        As in :class:`~shortlist.CapacityClassifier`.
    random_state : int, RandomState instance or None, default=None
        Controls the split, and is the key of the hash.

    Attributes
    ----------
    support_path_ : ndarray, or list of ndarrays with ``selection="cross-fit"``
        Rows of the data given to `fit`, in the order in which they were chosen.
    detection_path_ : ndarray, or list of ndarrays
        Share of rare items found within the capacity after each step, on the items that the choice
        was made on: larger than what new items will show.
    support_vectors_ : ndarray of shape (n_support, n_features)
        The support vectors in use.
    dual_coef_ : ndarray of shape (n_support,)
        Their coefficients, positive where they speak for the rare label.
    gamma_ : float
        Coefficient of the kernel.
    classes_, rare_label_, prevalence_, capacity_fraction_, threshold_, calibration_
        As in :class:`~shortlist.CapacityClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    shortlist.CapacityClassifier : Cuts any score at the capacity, without learning for it.

    Notes
    -----
    Section 4.2 of the paper, :math:`s(x) = \sum_{i \in S} \alpha_i \tilde y_i K(x_i, x)`. The
    intercept changes no ranking, and rounding it in makes ties, so it is left out.

    `with_capacity` moves the threshold; the support vectors stay those of the first capacity.

    It pays where a full machine ranks badly: where the classes overlap, and the machine spends its
    support vectors on them. On credit-default data it detected more than a machine that is cut at
    the capacity in all of twelve settings. On 19 imbalanced sets of KEEL, most of which a full
    machine separates well, a few support vectors lost more often (5) than they won (1). Compare it
    with ``CapacityClassifier(SVC())``; the figures stand in `docs/aware.md`.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from shortlist import Capacity
    >>> from shortlist.aware import CapacityAwareSVC
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = CapacityAwareSVC(Capacity.multiple(2), max_support=5, random_state=0).fit(X, y)
    >>> len(model.support_path_), len(model.support_vectors_)
    (10, 50)
    """

    def __init__(
        self,
        capacity: Capacity,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: Any = "scale",
        max_support: int = 30,
        variant: str = "all",
        tie_break: str = "wider",
        selection: str = "cross-fit",
        n_swaps: int = 5,
        rare_label: Any = None,
        prevalence: Any = None,
        guarantee: str = "plug-in",
        confidence: float = 0.95,
        ties: str = "exclude",
        random_state: Any = None,
    ) -> None:
        self.capacity = capacity
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.max_support = max_support
        self.variant = variant
        self.tie_break = tie_break
        self.selection = selection
        self.n_swaps = n_swaps
        self.rare_label = rare_label
        self.prevalence = prevalence
        self.guarantee = guarantee
        self.confidence = confidence
        self.ties = ties
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_option("kernel", self.kernel, KERNELS)
        check_option("variant", self.variant, VARIANTS)
        check_option("tie_break", self.tie_break, TIE_BREAKS)
        check_option("selection", self.selection, SELECTIONS)
        if self.selection == "paper" and self.guarantee != "plug-in":
            raise ValueError(
                f"guarantee={self.guarantee!r} needs a threshold from items that the score was "
                "not chosen on, and selection='paper' uses the same ones. Use "
                "selection='cross-fit', or guarantee='plug-in'."
            )
        for name in ("max_support", "n_swaps"):
            check_count(name, getattr(self, name))

    def _n_steps(self) -> int:
        return 1 if self.selection == "paper" else 2 * self.n_swaps

    def _learn(self, X: Floats, is_rare: Mask, rng: np.random.Generator) -> Places:
        self.gamma_ = self._find_gamma(X)
        learned_on, unseen = hold_out(is_rare.astype(np.intp), _HELD_OUT[self.selection], rng)
        if self.selection == "paper":
            pairs = [(learned_on, unseen)]
        else:
            pairs = self._swaps(is_rare, learned_on, rng)
        steps = self._steps(self._n_steps())
        self._keep(X, [self._choose(X, is_rare, *pairs[step]) for step in steps])
        return unseen

    def _swaps(
        self, is_rare: Mask, rows: Places, rng: np.random.Generator
    ) -> list[tuple[Places, Places]]:
        """Halve the rows some times, and let the halves change places."""
        n_rare = int(np.count_nonzero(is_rare[rows]))
        if min(n_rare, rows.size - n_rare) < 2:
            raise ValueError(
                "selection='cross-fit' takes at least three items of each class: to fit, to choose "
                f"and to calibrate; {self.rare_label_!r} has {self._n_rare} of {is_rare.size}. Use "
                "selection='paper', or find more items."
            )
        pairs = []
        for _ in range(self.n_swaps):
            first, second = (
                rows[half] for half in hold_out(is_rare[rows].astype(np.intp), 0.5, rng)
            )
            pairs += [(first, second), (second, first)]
        return pairs

    def _find_gamma(self, X: Floats) -> float:
        if isinstance(self.gamma, str):
            check_option("gamma", self.gamma, ("scale", "auto"))
            variance = X.var() if self.gamma == "scale" else 1.0
            return 1 / (X.shape[1] * variance) if variance > 0 else 1.0
        gamma = float(check_number("gamma", self.gamma))
        if gamma < 0:
            raise ValueError(f"gamma must not be negative; got {self.gamma!r}.")
        return gamma

    def _choose(self, X: Floats, is_rare: Mask, fit_on: Places, choose_on: Places) -> _Expansion:
        """Fit a machine on some rows, and choose among its support vectors on others."""
        machine = SVC(C=self.C, kernel=self.kernel, gamma=self.gamma_)
        machine.fit(X[fit_on], is_rare[fit_on])
        # The second class is the rare one, so that the coefficients rise with suspicion.
        coefficients, support = machine.dual_coef_[0], fit_on[machine.support_]
        rare, common = choose_on[is_rare[choose_on]], choose_on[~is_rare[choose_on]]
        path = greedy_path(
            self._terms(X[support], coefficients, X[rare]),
            self._terms(X[support], coefficients, X[common]),
            self._limits(choose_on.size),
            n_steps=self.max_support,
        )
        used = path.chosen[: self._n_used(path)]
        return _Expansion(
            support[used], coefficients[used], support[path.chosen], path.detected / rare.size
        )

    def _limits(self, n_items: int) -> list[int]:
        max_flags = self.capacity.max_flags(n_items, self._reference_prevalence())
        factors = (1, 2, 4, 8) if self.tie_break == "wider" else (1,)
        return [min(factor * max_flags, n_items) for factor in factors]

    def _n_used(self, path: GreedyPath) -> int:
        if self.variant == "best-prefix":
            return int(np.argmax(path.detected)) + 1
        if self.variant == "stop":
            stalls = np.flatnonzero(np.diff(path.detected) <= 0)
            return int(stalls[0]) + 1 if stalls.size else path.detected.size
        return path.detected.size

    def _terms(self, vectors: Floats, coefficients: Floats, X: Floats) -> Floats:
        """Return what each support vector adds to the score of each item."""
        terms = self._kernel(vectors, X)
        terms *= coefficients[:, np.newaxis]
        return terms

    def _kernel(self, X: Floats, Y: Floats) -> Floats:
        # The parameters of scikit-learn's SVC, which differ from those of its kernel functions.
        params = {"gamma": self.gamma_, "degree": 3, "coef0": 0.0}
        return pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **params)

    def _keep(self, X: Floats, expansions: list[_Expansion]) -> None:
        self.support_vectors_ = X[np.concatenate([part.rows for part in expansions])]
        coefficients = np.concatenate([part.coefficients for part in expansions])
        self.dual_coef_ = coefficients / len(expansions)
        paths = [part.path for part in expansions]
        detections = [part.detection for part in expansions]
        self.support_path_ = paths if len(paths) > 1 else paths[0]
        self.detection_path_ = detections if len(paths) > 1 else detections[0]

    def _sum_up(self, X: Floats) -> Floats:
        chunks = [
            self._kernel(X[start : start + _CHUNK], self.support_vectors_) @ self.dual_coef_
            for start in range(0, len(X), _CHUNK)
        ]
        return np.concatenate(chunks)
