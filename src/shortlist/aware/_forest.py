"""`CapacityAwareForestClassifier`: trees with large leaves, or small ones if these detect more."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from .._core.arrays import Doubles, Mask
from .._core.scoring import out_of_bag_scores
from .._core.validation import check_count, check_number
from ..capacity import Capacity
from ._base import CapacityAwareBase, detected_within, wider_limits

# In every second tree with large leaves: with few items, 1 % of them is not a large leaf.
_FEWEST_IN_LEAF = 20
# Share of the features that each split of a random tree with large leaves chooses among.
_MAX_FEATURES = 0.6
# Weight of small leaves where they are used. They leave most items tied at 0, more of them out of
# bag than in use, and a threshold there would flag too many. Large leaves rank these items.
_SHARE_OF_SMALL = 0.8


@dataclass(eq=False, repr=False)
class CapacityAwareForestClassifier(CapacityAwareBase):
    """A forest with large leaves, or with small ones where they detect more at a capacity.

    A forest grown for classification has small leaves. Where classes overlap, their shares of rare
    items are mostly noise at the top of the ranking; where classes are well separated, large leaves
    blur the border. Here trees of both kinds are grown, and the kind that detects more out of bag
    is used. Both kinds blend random trees with extremely randomised ones.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; the size of the leaves is chosen for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    n_estimators : int, default=300
        Number of trees with large leaves, half random and half extremely randomised. With
        `fall_back`, as many are grown with small leaves, and dropped if they are not used.
    min_samples_leaf : float or int, default=0.01
        Smallest number of items in a large leaf; a float is a share of all items. In half of the
        trees it is at least 20.
    fall_back : bool, default=True
        Whether trees with leaves of any size, as in an ordinary forest, may make up four fifths of
        the score. They do if the score then detects more out of bag by more than one standard
        error, on average within 1, 2, 4 and 8 times the capacity.
    oob_score : bool, default=False
        Whether to keep `oob_scores_`, as ``CapacityClassifier(..., cv="oob")`` does.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    n_jobs : int, default=None
        Number of trees grown in parallel.

    Attributes
    ----------
    forests_ : list
        The fitted forests in use, alternating between
        :class:`~sklearn.ensemble.RandomForestClassifier` and
        :class:`~sklearn.ensemble.ExtraTreesClassifier`: four with large leaves, and two with small
        leaves if these are used.
    weights_ : ndarray of shape (n_forests,)
        Weight of each forest; they add up to 1.
    detection_ : dict
        What `fall_back` compared: the share of rare items detected out of bag with "large" leaves
        alone, and with mostly "small" ones.
    falls_back_ : bool
        Whether small leaves are in use.
    oob_scores_ : ndarray of shape (n_items,)
        With `oob_score`: the score of each training item by the trees that have not seen it; NaN
        where there are none.
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
    shortlist.CapacityClassifier : Cuts a forest, or any score, at the capacity.
    CapacityAwareBoostingClassifier : Boosted trees.

    Notes
    -----
    All items are used twice: to grow trees, and, scored by the trees that have not seen them, for
    the choice. ``CapacityClassifier(CapacityAwareForestClassifier(), capacity=..., cv="oob")`` uses
    these scores for the threshold, too, which takes one fit. Such a score comes from about a third
    of the trees, and guarantees are then approximate.

    On credit-default data, and on most sets of KEEL, it detected more than the former recommended
    forest of :func:`~shortlist.learners.make_learner`; `docs/appendix/aware-study.md` says how
    often. With 40 rare items to learn from, small leaves sometimes win by chance; if the noise is
    known to be large, use ``fall_back=False``.

    Each split of a random tree chooses among six of ten features with large leaves, and with small
    ones among the square root of their number. Extremely randomised trees choose among all
    features, with one random cut for each. Missing values (NaN) are allowed.

    Examples
    --------
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.aware import CapacityAwareForestClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> forest = CapacityAwareForestClassifier(n_estimators=60, random_state=0)
    >>> model = CapacityClassifier(forest, capacity=Capacity.multiple(2), cv="oob").fit(X, y)
    >>> bool(y[model.select(X)].mean() > 5 * y.mean())
    True
    """

    _takes_gaps = True

    capacity: Capacity | None = None
    _: KW_ONLY
    n_estimators: int = 300
    min_samples_leaf: float = 0.01
    fall_back: bool = True
    oob_score: bool = False
    rare_label: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _check_params(self) -> None:
        check_count("n_estimators", self.n_estimators, at_least=4)
        if isinstance(self.min_samples_leaf, Integral):
            check_count("min_samples_leaf", self.min_samples_leaf)
        elif not 0 < float(check_number("min_samples_leaf", self.min_samples_leaf)) < 1:
            raise ValueError(
                f"min_samples_leaf={self.min_samples_leaf!r} as a float is a share of all items, "
                "and must lie strictly between 0 and 1. For a number of items, pass an int."
            )

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        large = self._large(len(X), rng)
        small = self._pair(1, "sqrt", rng) if self.fall_back else []
        for forests in (large, small):
            self._grow(forests, X, is_rare)
        self._weigh(large, small, is_rare)

    def _weigh(self, large: list[Any], small: list[Any], is_rare: Mask) -> None:
        """Keep the forests to use, with their weights."""
        self.falls_back_, self.forests_ = False, large
        self.weights_ = np.full(len(large), 1 / len(large))
        scores = _mean_out_of_bag(large)
        if small:
            mixed = (1 - _SHARE_OF_SMALL) * scores + _SHARE_OF_SMALL * _mean_out_of_bag(small)
            known = ~np.isnan(mixed)
            if self._compare(scores[known], mixed[known], is_rare[known]):
                self.falls_back_, self.forests_, scores = True, large + small, mixed
                shares = [(1 - _SHARE_OF_SMALL) / len(large), _SHARE_OF_SMALL / len(small)]
                self.weights_ = np.repeat(shares, [len(large), len(small)])
        if self.oob_score:
            self.oob_scores_ = scores

    def _grow(self, forests: list[Any], X: Doubles, is_rare: Mask) -> None:
        """Divide the trees among forests, and grow them."""
        with warnings.catch_warnings():
            # The threshold ignores items that every tree has seen.
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            for place, forest in enumerate(forests):
                n_trees = len(range(place, self.n_estimators, len(forests)))
                forest.set_params(n_estimators=n_trees, n_jobs=self.n_jobs).fit(X, is_rare)

    def _large(self, n_items: int, rng: np.random.Generator) -> list[Any]:
        """Return four unfitted forests with large leaves."""
        leaf = self.min_samples_leaf
        size = leaf if isinstance(leaf, Integral) else ceil(leaf * n_items)
        return [
            forest
            for least in (size, max(size, _FEWEST_IN_LEAF))
            for forest in self._pair(least, _MAX_FEATURES, rng)
        ]

    def _pair(self, leaf: int, max_features: Any, rng: np.random.Generator) -> list[Any]:
        own = {"min_samples_leaf": leaf, "bootstrap": True, "oob_score": True}
        first, second = rng.integers(2**31, size=2).tolist()
        return [
            RandomForestClassifier(max_features=max_features, random_state=first, **own),
            ExtraTreesClassifier(max_features=None, random_state=second, **own),
        ]

    def _compare(self, large: Doubles, small: Doubles, is_rare: Mask) -> bool:
        """Return whether scores from mostly small leaves detect clearly more."""
        max_flags = self._learned_for.max_flags(is_rare.size)
        limits = wider_limits(max_flags, is_rare.size)
        found = [detected_within(scores, is_rare, limits) for scores in (large, small)]
        return self._second_is_better(large=found[0], small=found[1])

    def _sum_up(self, X: Doubles) -> Doubles:
        return self.weights_ @ [forest.predict_proba(X)[:, 1] for forest in self.forests_]


def _mean_out_of_bag(forests: list[Any]) -> Doubles:
    """Average the forests with trees that have not seen an item; NaN if there is none."""
    scores = np.array([out_of_bag_scores(forest, rare_label=True) for forest in forests])
    known = ~np.isnan(scores)
    with np.errstate(invalid="ignore"):
        return np.where(known, scores, 0).sum(axis=0) / known.sum(axis=0)
