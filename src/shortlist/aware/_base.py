"""What all capacity-aware classifiers share: labels, held-out items and the final rule."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from .._core.arrays import Doubles, Mask, Rows
from .._core.folds import (
    Unseen,
    check_cv_option,
    check_enough_rare,
    check_no_groups,
    forget,
    hold_out,
    holds_out,
)
from .._core.labels import find_rare
from .._core.scoring import Scores
from .._core.validation import check_seed
from ..capacity import Capacity
from ..classifier import CapacityDecisionMixin, calibrator_of, check_promise
from ..exceptions import CapacityError
from ._valued import ValueFound, compare_value, rare_weights

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where no callback can be registered."""

        def _init_callback_context(self, **options: Any) -> Any:
            return _NoListener()

    def with_callbacks(method: Any) -> Any:
        """Return a method as it is."""
        return method


__all__ = ["CapacityAwareBase"]

# Chosen on draws of the credit-default data that no study uses.
_ENOUGH_FLAGS, _MOST_WIDENING, _WIDEST = 150, 5, 0.05


class _NoListener:
    """The context of a task when there are no callbacks."""

    def subcontext(self, **options: Any) -> _NoListener:
        return self

    def call_on_fit_task_begin(self, **options: Any) -> _NoListener:
        return self

    def call_on_fit_task_end(self, **options: Any) -> bool:
        return False


class CapacityAwareBase(
    CallbackSupportMixin, CapacityDecisionMixin, ClassifierMixin, BaseEstimator
):
    """A binary classifier that learns its score for a capacity, and calibrates a rule on it.

    A subclass implements `_learn`, `_sum_up` and `_n_steps`, and may extend `_check_params`. Each
    step that it takes from `_steps` is reported to scikit-learn's callbacks.
    """

    #: Whether items may have gaps (NaN).
    _takes_gaps = False
    #: What `cv` may be besides a share: "oob", or "folds" for a number of folds.
    _out_of_sample: str | None = None
    #: Whether rare items can count by their values in training.
    _takes_values = False

    cv: Any
    rare_label: Any
    _learned_for: Capacity
    value_found_: ValueFound

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        values: ArrayLike | None = None,
    ) -> Self:
        """Learn the score, and calibrate its threshold.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items, as numbers.
        y : array-like of shape (n_items,)
            Labels, two different ones.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, if segments have capacities.
        groups : array-like of shape (n_items,), default=None
            The group of each item, if several belong together: whole groups are held out, and the
            promise is about an item of a new group. Not with ``cv="oob"``.
        values : array-like of shape (n_items,), default=None
            What each item is worth if it is rare, for the linear and the boosted score: rare items
            then count by their values in training, and the score ranks by the value to expect. It
            is for values that are known in training only. `value_found_` says whether it paid. If
            values are known when you decide, use :class:`~shortlist.CapacityClassifier`.

        Returns
        -------
        self
        """
        forget(self)
        try:
            self._fit(X, y, ids, segments, groups, values)
        except BaseException:  # an interrupted fit, too, leaves nothing half learned
            forget(self)  # and no more: what callbacks have to tear down stays until they have
            raise
        return self

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        ids: ArrayLike | None,
        segments: ArrayLike | None,
        groups: ArrayLike | None,
        values: ArrayLike | None,
    ) -> None:
        self._check_params()
        if values is not None and not self._takes_values:
            raise ValueError(
                f"{type(self).__name__} does not take values in training. "
                "CapacityAwareLinearClassifier and CapacityAwareBoostingClassifier do, and "
                "CapacityClassifier weighs values with any model."
            )
        items, labels = validate_data(self, X, y, ensure_min_samples=2, **self._checks())
        seed = check_seed(self.random_state)
        is_rare = self._learn_labels(labels)
        # Rows are hashed as they were given, here and in use.
        calibrator = calibrator_of(self, X, is_rare, ids, segments, seed=seed, groups=groups)
        self._learned_for = self._as_fraction(calibrator.terms.reference.value)
        rng = np.random.default_rng(None if self.random_state is None else seed)
        progress = self._begin(self._n_steps())
        is_out_of_bag = isinstance(self.cv, str) and self.cv == "oob"
        if is_out_of_bag:
            check_no_groups(calibrator.group_of, instead="cv=0.25")
        worth = None if values is None else rare_weights(values, is_rare)
        unseen = self._learn_and_compare(items, is_rare, rng, calibrator.group_of, worth)
        self.rule_ = calibrator.rule([unseen], out_of_bag=is_out_of_bag)
        progress.call_on_fit_task_end(estimator=self)

    def _as_fraction(self, prevalence: Any) -> Capacity:
        """Return the capacity to learn for, in a unit that needs no prevalence."""
        if self.capacity is None:
            raise CapacityError(
                f"{type(self).__name__} learns for a capacity for all items; segment_capacities "
                "alone are not enough. Pass capacity=Capacity.fraction(0.02), say."
            )
        return Capacity.fraction(self.capacity.as_ratio(prevalence))

    def _check_params(self) -> None:
        check_promise(self)
        self._check_cv()

    def _check_cv(self) -> None:
        """Check `cv`: a share of the items, or what the subclass has instead."""
        if isinstance(self.cv, str) and self.cv == self._out_of_sample == "oob":
            self._check_approximate("out-of-bag scores, which are those of some of the trees")
        elif isinstance(self.cv, Integral) and self._out_of_sample == "folds":
            self._check_approximate("scores of the models of its folds")
        elif not holds_out(self.cv):
            instead = {"oob": " or 'oob'", "folds": " or a number of folds", None: ""}
            raise ValueError(
                "cv must be a float, the share of the data held out for the threshold"
                f"{instead[self._out_of_sample]}; got {self.cv!r}."
            )
        else:
            check_cv_option(self.cv)

    def _check_approximate(self, scores: str) -> None:
        if self.guarantee not in ("plug-in", "expected"):
            raise ValueError(
                f"guarantee={self.guarantee!r} needs scores of the model in use, but "
                f"cv={self.cv!r} gives {scores}. Hold items out with cv=0.25, or use "
                "guarantee='expected', which is then approximate."
            )

    # --- learning --------------------------------------------------------------------------------

    def _learn_and_compare(
        self,
        X: Doubles,
        is_rare: Mask,
        rng: np.random.Generator,
        groups: Rows | None,
        worth: Doubles | None,
    ) -> Unseen:
        """Learn; with values, also without them on the same items, to tell whether it paid."""
        if worth is None:
            return self._learn_and_score(X, is_rare, rng, groups)
        twin, same = clone(self), copy.deepcopy(rng)
        twin._learned_for = self._learned_for
        unseen = self._learn_and_score(X, is_rare, rng, groups, worth)
        other = twin._learn_and_score(X, is_rare, same, groups)
        shared = np.isin(unseen.rows, other.rows) & np.isfinite(unseen.scores)
        rows, max_flags = unseen.rows[shared], self._learned_for.max_flags(int(shared.sum()))
        plain = other.scores[np.searchsorted(other.rows, rows, sorter=np.argsort(other.rows))]
        self.value_found_ = compare_value(
            unseen.scores[shared], plain, is_rare[rows], worth[rows], max_flags
        )
        return unseen

    def _learn_and_score(
        self,
        X: Doubles,
        is_rare: Mask,
        rng: np.random.Generator,
        groups: Rows | None,
        worth: Doubles | None = None,
    ) -> Unseen:
        """Learn, and return rows with scores that were not learned on them, for the threshold."""
        options = {} if worth is None else {"worth": worth}
        if not holds_out(self.cv):
            unseen = self._learn(X, is_rare, rng, groups, **options)
            assert unseen is not None  # a subclass with another cv scores its own items
            return unseen
        learned_on, rows = hold_out(is_rare.astype(np.intp), self.cv, rng, groups)
        own = None if groups is None else np.unique(groups[learned_on], return_inverse=True)[1]
        options = {name: given[learned_on] for name, given in options.items()}
        self._learn(X[learned_on], is_rare[learned_on], rng, own, **options)
        return Unseen(rows, self._sum_up(X[rows]))

    def _learn(self, *args: Any, **options: Any) -> Unseen | None:
        """Learn what `_sum_up` needs; return out-of-sample scores of these items, if there are.

        The arguments are items, labels, a random generator and groups; folds that such scores come
        from leave whole groups out. With `_takes_values`, `worth` says how much each item counts.
        """
        raise NotImplementedError

    def _sum_up(self, X: Doubles) -> Doubles:
        """Score items that have been checked."""
        raise NotImplementedError

    def _n_steps(self) -> int:
        """Return the largest number of steps that `_learn` takes from `_steps`."""
        raise NotImplementedError

    def _target_fraction(self, n_items: int) -> float:
        """Return the flagged share to learn for: the capacity, or more where items are few.

        Among few flagged items there are too few rare ones to learn from, and a score for a
        somewhat wider capacity does better at the narrow one. A score cannot be learned for no
        flags or for flags on everything.
        """
        fraction = self._learned_for.as_fraction()
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
        is_rare, self.rare_label_ = find_rare(y, self.rare_label, on_tie="warn")
        check_enough_rare(is_rare, self.rare_label_)
        return is_rare

    # --- scikit-learn ----------------------------------------------------------------------------

    def _score(self, X: Any, model: int | None = None) -> Scores:
        return Scores(self._sum_up(validate_data(self, X, reset=False, **self._checks())))

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

    def _begin(self, n_steps: int) -> Any:
        """Announce a fit of at most so many steps, and return its context."""
        context = self._init_callback_context(max_subtasks=n_steps)
        return context.call_on_fit_task_begin(estimator=self)

    def _steps(self, n_steps: int) -> Iterator[int]:
        """Yield numbers from 0, each a step; end before `n_steps` if a callback asks for it."""
        fit = getattr(self, "_callback_fit_ctx", _NoListener())
        for step in range(n_steps):
            context = fit.subcontext(task_name="step").call_on_fit_task_begin(estimator=self)
            yield step
            if context.call_on_fit_task_end(estimator=self):
                return
