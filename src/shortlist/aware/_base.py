"""What all capacity-aware classifiers share: labels, the capacity to learn for, and predictions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Doubles, Mask
from .._core.folds import forget
from .._core.labels import find_rare, rare_share
from .._core.ranking import nth_largest
from .._core.validation import check_seed
from .._core.work import check_values
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError

__all__ = ["CapacityAwareBase", "rare_weights"]

# Chosen on draws of the credit-default data that no study uses.
_ENOUGH_FLAGS, _MOST_WIDENING, _WIDEST = 150, 5, 0.05


class CapacityAwareBase(ClassifierMixin, BaseEstimator):
    """A binary classifier that learns its score for a capacity.

    A subclass implements `_check_params`, `_learn` and `_sum_up`.
    """

    #: Whether items may have gaps (NaN).
    _takes_gaps = False
    #: Whether rare items can count by their values in training.
    _takes_values = False

    capacity: Capacity | None
    rare_label: Any
    random_state: Any
    _learned_for: Capacity

    def fit(self, X: Any, y: ArrayLike, *, values: ArrayLike | None = None) -> Self:
        """Learn the score.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items, as numbers.
        y : array-like of shape (n_items,)
            Labels, two different ones.
        values : array-like of shape (n_items,), default=None
            What each item is worth if it is rare, for the linear and the boosted score: rare items
            then count by their values in training, and the score ranks by the value to expect. It
            is for values that are known in training only. If they are known when you decide, pass
            them to :class:`~shortlist.CapacityClassifier`.

        Returns
        -------
        self
        """
        forget(self)
        try:
            self._fit(X, y, values)
        except BaseException:  # an interrupted fit, too, leaves nothing half learned
            forget(self)
            raise
        return self

    def _fit(self, X: Any, y: ArrayLike, values: ArrayLike | None) -> None:
        self._check_params()
        if values is not None and not self._takes_values:
            raise ValueError(
                f"{type(self).__name__} does not take values in training. "
                "CapacityAwareLinearClassifier and CapacityAwareBoostingClassifier do, and "
                "CapacityClassifier weighs values with any model."
            )
        items, labels = validate_data(self, X, y, ensure_min_samples=2, **self._checks())
        is_rare = self._learn_labels(labels)
        self._learned_for = self._as_fraction(is_rare)
        seed = None if self.random_state is None else check_seed(self.random_state)
        worth = {} if values is None else {"worth": rare_weights(values, is_rare)}
        self._learn(items, is_rare, np.random.default_rng(seed), **worth)
        self.offset_ = self._cut(self._sum_up(items))

    def _learn_labels(self, y: NDArray[Any]) -> Mask:
        check_classification_targets(y)
        if type_of_target(y) == "multiclass":
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                "Pass y == rare_label to tell one class from all others."
            )
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise ValueError(
                f"y holds the label {self.classes_[0]!r} only; learning takes two classes."
            )
        is_rare, self.rare_label_ = find_rare(y, self.rare_label, on_tie="warn")
        return is_rare

    def _as_fraction(self, is_rare: Mask) -> Capacity:
        """Return the capacity to learn for, in a unit that needs no prevalence."""
        if self.capacity is None:
            raise CapacityError(
                f"{type(self).__name__} learns for a capacity for all items, and has none. Pass "
                "capacity=Capacity.fraction(0.02), say, or fit it inside CapacityClassifier(..., "
                "capacity=...), which hands its own capacity on."
            )
        return Capacity.fraction(check_capacity(self.capacity).as_ratio(rare_share(is_rare)))

    def _cut(self, scores: Doubles) -> float:
        """Return the middle between the last score within the capacity and the next one."""
        first_left_out = min(self._learned_for.max_flags(scores.size), scores.size - 1)
        last_within = max(first_left_out - 1, 0)
        return float(nth_largest(scores, last_within) + nth_largest(scores, first_left_out)) / 2

    def _target_fraction(self, n_items: int) -> float:
        """Return the flagged share to learn for: the capacity, or more where items are few.

        Among few flagged items there are too few rare ones to learn from, and a score for a
        somewhat wider capacity does better at the narrow one. A score cannot be learned for no
        flags or for flags on everything.
        """
        fraction = self._learned_for.as_fraction()
        wider = min(_ENOUGH_FLAGS / n_items, _MOST_WIDENING * fraction, _WIDEST)
        return float(np.clip(max(fraction, wider), 0.5 / n_items, 1 - 0.5 / n_items))

    # --- for subclasses --------------------------------------------------------------------------

    def _check_params(self) -> None:
        """Check all parameters but `capacity`, `rare_label` and `random_state`."""
        raise NotImplementedError

    def _learn(self, *args: Any, **options: Any) -> None:
        """Learn what `_sum_up` needs, and keep `oob_scores_` if there is a true `oob_score`.

        The arguments are items, which of them are rare, and a random generator. With
        `_takes_values`, `worth` says how much each item counts.
        """
        raise NotImplementedError

    def _sum_up(self, X: Doubles) -> Doubles:
        """Score items that have been checked."""
        raise NotImplementedError

    # --- scores ----------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Doubles:
        """Score items: the higher, the more suspicious, whichever label is the rare one.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
        """
        check_is_fitted(self)
        return self._sum_up(validate_data(self, X, reset=False, **self._checks()))

    def decision_function(self, X: Any) -> Doubles:
        """Return the distance of each score from `offset_`, positive for ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
        """
        margins = self.score_samples(X) - self.offset_
        return margins if self.rare_label_ == self.classes_[1] else -margins

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels: the rare one for scores above those left out in training.

        Nothing is promised about how many these are; :class:`~shortlist.CapacityClassifier` does.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
        """
        is_second = self.decision_function(X) > 0
        return self.classes_[is_second.astype(np.intp)]

    def _checks(self) -> dict[str, Any]:
        return {
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if self._takes_gaps else True,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Under a capacity, high accuracy is not the aim.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = self._takes_gaps
        return tags


def rare_weights(values: ArrayLike, is_rare: Mask) -> Doubles:
    """Return weights in proportion to values, 1 on average over rare items, and 1 for all others.

    Examples
    --------
    >>> rare_weights([10, 30, 7], np.array([True, True, False]))
    array([0.5, 1.5, 1. ])
    """
    checked = check_values(values, is_rare.size)
    assert checked is not None
    mean = checked[is_rare].mean()
    if mean == 0:
        raise ValueError("values must be greater than 0 for some of the rare items; got 0 for all.")
    return np.where(is_rare, checked / mean, 1.0)
