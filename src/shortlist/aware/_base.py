"""What all capacity-aware classifiers share: labels, held-out items, and the threshold at last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from .._core.labels import find_rare
from .._core.scoring import Scores, n_rows
from .._core.validation import check_confidence, check_ids, check_option, check_seed
from .._decisions import CapacityDecisionMixin
from .._wrapping.fitting import forget
from ..thresholds import TIES
from ..thresholds._calibrate import check_guarantee
from ._progress import ProgressMixin, with_callbacks

__all__ = ["CapacityAwareBase"]

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

# Chosen on draws of the credit-default data that no study uses.
_ENOUGH_FLAGS, _MOST_WIDENING, _WIDEST = 150, 5, 0.05


class CapacityAwareBase(ProgressMixin, CapacityDecisionMixin, ClassifierMixin, BaseEstimator):
    """A binary classifier that learns its score for a capacity, and calibrates a threshold on it.

    A subclass implements `_learn`, or `_learn_and_score`, and `_sum_up`, says by `_n_steps` how
    many steps it takes, and may extend `_check_params`.
    """

    #: Whether items may have gaps (NaN).
    _takes_gaps = False

    rare_label: Any
    random_state: Any

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, *, ids: ArrayLike | None = None) -> Self:
        """Learn the score, and calibrate its threshold.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items, as numbers.
        y : array-like of shape (n_items,)
            Labels, two different ones.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        self
        """
        forget(self)
        try:
            self._fit(X, y, ids)
        except BaseException:  # an interrupted fit, too, leaves nothing half learned
            forget(self)  # and no more: what callbacks have to tear down stays until they have
            raise
        return self

    def _fit(self, X: Any, y: ArrayLike, ids: ArrayLike | None) -> None:
        self._check_params()
        items, labels = validate_data(self, X, y, ensure_min_samples=2, **self._checks())
        ids = check_ids(ids, n_rows(X))
        self._seed = check_seed(self.random_state)
        is_rare = self._learn_labels(labels)
        # An impossible capacity fails before anything is learned.
        self.capacity.as_ratio(self._reference_prevalence())
        seed = None if self.random_state is None else self._seed
        progress = self._begin(self._n_steps())
        unseen, scores = self._learn_and_score(items, is_rare, np.random.default_rng(seed))
        # Rows are hashed as they came, here and in use.
        keys = self._keys(X, ids)
        sample = self._sample(
            scores, lambda tied: keys(unseen[tied]), ids is not None, is_rare[unseen], unseen
        )
        self._calibrate_on([replace(sample, out_of_bag=self._is_out_of_bag)])
        progress.call_on_fit_task_end(estimator=self)

    @property
    def _is_out_of_bag(self) -> bool:
        """Whether the scores for the threshold come from the trees that have not seen an item."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Under a capacity, accuracy is not what is asked for.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    def _n_steps(self) -> int:
        """Return the most steps that `_learn` takes from `_steps`."""
        raise NotImplementedError

    def _learn_and_score(
        self, X: Doubles, is_rare: Mask, rng: np.random.Generator
    ) -> tuple[Places, Doubles]:
        """Learn, and return rows with scores that were not learned on them, for the threshold."""
        unseen = self._learn(X, is_rare, rng)
        return unseen, self._sum_up(X[unseen])

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> Places:
        """Learn what `_sum_up` needs, and return the rows that the threshold is to come from."""
        raise NotImplementedError

    def _sum_up(self, X: Doubles) -> Doubles:
        """Score items that have been checked."""
        raise NotImplementedError

    def _score(self, X: Any) -> Scores:
        return Scores(self._sum_up(validate_data(self, X, reset=False, **self._checks())))

    def _checks(self) -> dict[str, Any]:
        return {
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if self._takes_gaps else True,
        }

    def _check_params(self) -> None:
        check_guarantee(self.guarantee, self.capacity)
        check_option("ties", self.ties, TIES)
        check_confidence(self.confidence)

    def _target_fraction(self, n_items: int) -> float:
        """Return the flagged share to learn for: the capacity, or more where items are few.

        Among few flagged items there are too few rare ones to learn from, and a score that serves
        a somewhat wider capacity serves the narrow one better. Nothing and everything can be
        flagged, but not learned for.
        """
        fraction = self.capacity.as_fraction(self._reference_prevalence())
        wider = min(_ENOUGH_FLAGS / n_items, _MOST_WIDENING * fraction, _WIDEST)
        return float(np.clip(max(fraction, wider), 0.5 / n_items, 1 - 0.5 / n_items))

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
        is_rare, self.rare_label_ = find_rare(y, self.rare_label)
        self._n_rare, self._n_labelled = int(np.count_nonzero(is_rare)), is_rare.size
        if min(self._n_rare, self._n_labelled - self._n_rare) < 2:
            raise ValueError(
                f"The class {self.rare_label_!r} has {self._n_rare} of {is_rare.size} items; "
                "learning from one part of the data and calibrating on the other takes two of this "
                "class and two others."
            )
        return is_rare
