"""`CapacityAwareForestClassifier`: two kinds of trees with large leaves, weighed for a capacity."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from .._sklearn import out_of_bag_scores
from .._validation import check_number
from ..capacity import Capacity
from ._base import Floats, Mask, Places
from ._checks import check_count
from ._evidence import detected, preferred
from ._out_of_sample import OutOfSampleBase

__all__ = ["CapacityAwareForestClassifier"]

_PER_STEP = 50  # trees of each kind grown between two reports of progress
# In order of preference: what random and extremely randomised trees count.
_WEIGHTS = {
    "blend": np.array([0.5, 0.5]),
    "random": np.array([1.0, 0.0]),
    "extra": np.array([0.0, 1.0]),
}


class CapacityAwareForestClassifier(OutOfSampleBase):
    """A forest with large leaves, of two kinds of trees that are weighed for a capacity.

    A forest grown for classification has small leaves, and at the top of its ranking their shares
    of rare items are mostly noise. Here a leaf holds one item in a hundred, splits choose among
    most features, and random trees are blended with extremely randomised ones; what the
    capacity detects out of bag decides about the blend.

    Parameters
    ----------
    capacity : Capacity
        How much can be followed up; the kinds of trees are weighed for it.
    n_estimators : int, default=300
        Number of trees, half of each kind.
    min_samples_leaf : float or int, default=0.01
        Least number of items in a leaf; a float is a share of all items.
    max_features : float, default=0.6
        Share of the features that each split of a random tree chooses among. Extremely
        randomised trees choose among all, with one cut drawn for each.
    hold_out : float or None, default=None
        Share of the items kept for the threshold, which every guarantee needs. `None` keeps none:
        each item is scored by the trees that have not seen it, and the threshold is plug-in.
    rare_label, prevalence, guarantee, confidence, ties
        As in :class:`~shortlist.CapacityClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices, and the key of the hash.
    n_jobs : int, default=None
        Number of trees grown in parallel.

    Attributes
    ----------
    forests_ : list
        The fitted :class:`~sklearn.ensemble.RandomForestClassifier` and
        :class:`~sklearn.ensemble.ExtraTreesClassifier`.
    weights_ : ndarray of shape (2,)
        What each of them counts: one half, or everything and nothing where one alone clearly
        detects more out of bag.
    detection_ : dict
        Share of rare items found out of bag by the blend, and by each kind of trees alone.
    classes_, rare_label_, prevalence_, capacity_fraction_, threshold_, calibration_
        As in :class:`~shortlist.CapacityClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    shortlist.CapacityClassifier : Cuts a forest, or any score, at the capacity.
    CapacityAwareBoostingClassifier : Boosted trees.

    Notes
    -----
    All items are used twice: to grow trees, and, scored by the trees that have not seen them, for
    the weights and the threshold. Such a score comes from about a third of the trees, so that the
    threshold is approximate. For a guarantee use `hold_out`, or `recalibrate` on fresh items.

    Gaps (NaN) are taken as they are. `with_capacity` moves the threshold; the trees stay.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.aware import CapacityAwareForestClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> model = CapacityAwareForestClassifier(
    ...     Capacity.multiple(2), n_estimators=60, random_state=0
    ... ).fit(X, y)
    >>> bool(y[model.select(X)].mean() > 5 * y.mean())
    True
    """

    def __init__(
        self,
        capacity: Capacity,
        *,
        n_estimators: int = 300,
        min_samples_leaf: float = 0.01,
        max_features: float = 0.6,
        hold_out: float | None = None,
        rare_label: Any = None,
        prevalence: Any = None,
        guarantee: str = "plug-in",
        confidence: float = 0.95,
        ties: str = "exclude",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.capacity = capacity
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.hold_out = hold_out
        self.rare_label = rare_label
        self.prevalence = prevalence
        self.guarantee = guarantee
        self.confidence = confidence
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        check_count("n_estimators", self.n_estimators, at_least=2)
        if isinstance(self.min_samples_leaf, Integral):
            check_count("min_samples_leaf", self.min_samples_leaf)
        elif not 0 < float(check_number("min_samples_leaf", self.min_samples_leaf)) < 1:
            raise ValueError(
                f"min_samples_leaf={self.min_samples_leaf!r} as a float is a share of all items, "
                "and must lie strictly between 0 and 1. For a number of items, pass an int."
            )
        if not 0 < float(check_number("max_features", self.max_features)) <= 1:
            raise ValueError(
                f"max_features={self.max_features!r} is the share of the features to choose among, "
                "and must be greater than 0, and at most 1."
            )

    def _grow(self, X: Floats, is_rare: Mask, rng: np.random.Generator) -> tuple[Places, Floats]:
        self.forests_ = self._kinds(rng)
        for step in self._steps(self._n_steps()):
            for forest, n_trees in zip(self.forests_, self._n_trees(), strict=True):
                _grow_up_to(min((step + 1) * _PER_STEP, n_trees), forest, X, is_rare)
        scores = np.array([out_of_bag_scores(forest, rare_label=True) for forest in self.forests_])
        unseen = np.flatnonzero(~np.isnan(scores).any(axis=0))
        return unseen, self._weigh(scores[:, unseen], is_rare[unseen])

    def _n_trees(self) -> tuple[int, int]:
        """Return the number of random and of extremely randomised trees."""
        return self.n_estimators - self.n_estimators // 2, self.n_estimators // 2

    def _n_steps(self) -> int:
        return -(-self._n_trees()[0] // _PER_STEP)

    def _kinds(self, rng: np.random.Generator) -> list[Any]:
        """Return the two kinds of forests, not yet grown."""
        random, extra = (
            {
                "min_samples_leaf": self.min_samples_leaf,
                "bootstrap": True,
                "oob_score": True,
                "warm_start": True,
                "random_state": seed,
                "n_jobs": self.n_jobs,
            }
            for seed in rng.integers(2**31, size=2).tolist()
        )
        return [
            RandomForestClassifier(max_features=float(self.max_features), **random),
            ExtraTreesClassifier(max_features=None, **extra),
        ]

    def _weigh(self, scores: Floats, is_rare: Mask) -> Floats:
        """Set the weights by what out-of-bag scores detect, and return the weighted scores."""
        max_flags = self.capacity.max_flags(is_rare.size, self._reference_prevalence())
        found = [detected(weights @ scores, is_rare, max_flags) for weights in _WEIGHTS.values()]
        self.detection_ = {
            name: float(chances.mean()) for name, chances in zip(_WEIGHTS, found, strict=True)
        }
        self.weights_ = list(_WEIGHTS.values())[preferred(found)]
        return self.weights_ @ scores

    def _sum_up(self, X: Floats) -> Floats:
        return self.weights_ @ [forest.predict_proba(X)[:, 1] for forest in self.forests_]


def _grow_up_to(n_trees: int, forest: Any, X: Floats, is_rare: Mask) -> None:
    """Add trees to a forest, and score out of bag with all it has."""
    if n_trees > len(getattr(forest, "estimators_", [])):
        with warnings.catch_warnings():
            # Items that every tree has seen are left out of the threshold.
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            forest.set_params(n_estimators=n_trees).fit(X, is_rare)
