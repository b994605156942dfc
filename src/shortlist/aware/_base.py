"""What all capacity-aware classifiers share: labels, the capacity to learn for, and predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Doubles, Mask
from .._core.documented import DocumentedMixin
from .._core.folds import forget, restored_on_error, two_classes
from .._core.labels import find_rare, rare_share
from .._core.ranking import cut_after, nth_largest
from .._core.validation import check_seed
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError

#: Multiples of the capacity at which scores are compared: at one alone, few items would decide.
WIDER = (1, 2, 4, 8)

_CLEAR = 2.0  # standard errors
# Chosen on draws of the credit-default data that no study uses.
_ENOUGH_FLAGS, _MOST_WIDENING, _WIDEST = 150, 5, 0.05


class CapacityAwareBase(DocumentedMixin, ClassifierMixin, BaseEstimator):
    """A binary classifier that learns its score for a capacity.

    A subclass has three methods. `_check_params` checks all parameters but `capacity`, `rare_label`
    and `random_state`. `_learn` takes items, which of them are rare, and a random generator. It
    keeps `oob_scores_` if there is a true `oob_score`. `_sum_up` scores items that have been
    checked.
    """

    #: Whether items may have gaps (NaN).
    _takes_gaps = False

    capacity: Capacity | None
    rare_label: Any
    random_state: Any
    _learned_for: Capacity
    _check_params: Callable[[], None]
    _learn: Callable[..., None]
    _sum_up: Callable[[Doubles], Doubles]

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the score.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items, as numbers.
        y : array-like of shape (n_items,)
            Labels, two different ones.

        Returns
        -------
        self
        """
        forget(self)
        with restored_on_error(self):
            self._fit(X, y)
        return self

    def _fit(self, X: Any, y: ArrayLike) -> None:
        self._check_params()
        items, labels = validate_data(self, X, y, ensure_min_samples=2, **self._checks())
        is_rare = self._learn_labels(labels)
        self._learned_for = self._as_fraction(is_rare)
        seed = None if self.random_state is None else check_seed(self.random_state)
        self._learn(items, is_rare, np.random.default_rng(seed))
        self.offset_ = self._cut(self._sum_up(items))

    def _learn_labels(self, y: NDArray[Any]) -> Mask:
        check_classification_targets(y)
        self.classes_, _ = two_classes(self, y)
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

    def _second_is_better(self, **found: Doubles) -> bool:
        """Keep what two scores detect; return whether the second one clearly detects more.

        One standard error is enough to compare two.
        """
        self.detection_ = {name: float(chances.mean()) for name, chances in found.items()}
        return preferred(list(found.values()), n_errors=1) == 1

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
        finite = "allow-nan" if self._takes_gaps else True
        return {"dtype": np.float64, "ensure_all_finite": finite}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Under a capacity, high accuracy is not the aim.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = self._takes_gaps
        return tags


# --- what out-of-sample scores detect ------------------------------------------------------------


def detected(scores: Doubles, is_rare: Mask, max_flags: int) -> Doubles:
    """Return each rare item's chance of being among the `max_flags` highest scores.

    Items that tie for the last places share them.

    Examples
    --------
    >>> detected(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, True]), 2)
    array([1. , 0.5, 0. ])
    """
    cut = cut_after(scores, max_flags).value
    n_above, n_tied = np.count_nonzero(scores > cut), np.count_nonzero(scores == cut)
    share = (max_flags - n_above) / n_tied if n_tied else 0.0
    rare = scores[is_rare]
    return (rare > cut) + share * (rare == cut)


def wider_limits(max_flags: int, n_items: int, factors: Sequence[int] = WIDER) -> list[int]:
    """Return the capacity and wider ones, at most the number of items."""
    return [min(factor * max_flags, n_items) for factor in factors]


def detected_within(scores: Doubles, is_rare: Mask, limits: Sequence[int]) -> Doubles:
    """Return each rare item's chance of being detected, on average over several capacities.

    Examples
    --------
    >>> scores, is_rare = np.array([0.9, 0.5, 0.4, 0.1]), np.array([True, False, True, False])
    >>> detected_within(scores, is_rare, wider_limits(1, n_items=4))
    array([1. , 0.5])
    """
    return np.mean([detected(scores, is_rare, limit) for limit in limits], axis=0)


def preferred(found: Sequence[Doubles], *, n_errors: float = _CLEAR) -> int:
    """Return the first place, in order of preference, that the best one does not clearly beat.

    The best one clearly beats another if it detects more, item by item, by over `n_errors` standard
    errors of the difference. Among several equal ones, the luckiest would exceed one too often.

    Examples
    --------
    >>> rare, chance = np.arange(100), np.random.default_rng(0).random(100)
    >>> preferred([1.0 * (chance < 0.30), 1.0 * (chance < 0.31), 1.0 * (rare % 2)])
    2
    """
    best = max(found, key=np.mean)
    return next(
        place for place, these in enumerate(found) if not _clearly_more(best, these, n_errors)
    )


def _clearly_more(these: Doubles, those: Doubles, n_errors: float) -> bool:
    gains = these - those
    if gains.size < 2:
        return False
    return bool(gains.mean() > n_errors * gains.std(ddof=1) / np.sqrt(gains.size))
