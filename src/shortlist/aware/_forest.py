"""`CapacityAwareForestClassifier`: two kinds of trees with large leaves, weighed for a capacity."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from .._sklearn import out_of_bag_scores
from .._validation import check_number, check_whole
from ..capacity import Capacity
from ._base import Floats, Mask, Places
from ._docs import shares_docs
from ._evidence import detected, preferred
from ._out_of_sample import OutOfSampleBase

__all__ = ["CapacityAwareForestClassifier"]

_PER_TASK = 25  # trees grown between two reports of progress
# In order of preference: what random and extremely randomised trees count.
_WEIGHTS = {
    "blend": np.array([0.5, 0.5]),
    "random": np.array([1.0, 0.0]),
    "extra": np.array([0.0, 1.0]),
}


@shares_docs
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
    {threshold_parameters}
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
    {threshold_attributes}

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
        check_whole("n_estimators", self.n_estimators, at_least=2)
        if isinstance(self.min_samples_leaf, Integral):
            check_whole("min_samples_leaf", self.min_samples_leaf, at_least=1)
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
        for add_trees in self._told(
            [task for forest in self.forests_ for task in _tasks(forest)], "trees"
        ):
            add_trees(X, is_rare)
        scores = np.array([out_of_bag_scores(forest, rare_label=True) for forest in self.forests_])
        unseen = np.flatnonzero(~np.isnan(scores).any(axis=0))
        return unseen, self._weigh(scores[:, unseen], is_rare[unseen])

    def _kinds(self, rng: np.random.Generator) -> list[Any]:
        """Return the two kinds of forests, not yet grown."""
        shared = {
            "min_samples_leaf": self.min_samples_leaf,
            "bootstrap": True,
            "warm_start": True,
            "n_jobs": self.n_jobs,
        }
        n_extra, seeds = self.n_estimators // 2, rng.integers(2**31, size=2).tolist()
        return [
            RandomForestClassifier(
                self.n_estimators - n_extra,
                max_features=float(self.max_features),
                random_state=seeds[0],
                **shared,
            ),
            ExtraTreesClassifier(n_extra, max_features=None, random_state=seeds[1], **shared),
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


def _tasks(forest: Any) -> list[partial[None]]:
    """Cut the growing of a forest into tasks of some trees each; the last scores out of bag."""
    n_trees = forest.n_estimators
    numbers = [*range(_PER_TASK, n_trees, _PER_TASK), n_trees]
    return [partial(_add_trees, forest, number, number == n_trees) for number in numbers]


def _add_trees(forest: Any, n_trees: int, is_last: bool, X: Floats, is_rare: Mask) -> None:
    forest.set_params(n_estimators=n_trees, oob_score=is_last).fit(X, is_rare)
