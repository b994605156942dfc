"""The models of a classifier: one or one for each fold, and scores of rows they have not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from .._core.arrays import Floats, Mask, Rows
from .._core.folds import (
    Fitted,
    Groups,
    Unseen,
    check_cv_option,
    check_enough_rare,
    check_no_groups,
    fit_on_folds,
    fit_out_of_bag,
    hold_out,
    holds_out,
    is_prefit,
    random_folds,
    unseen_once,
)
from .._core.scoring import n_rows, score_classes
from .._core.validation import check_count
from ..thresholds import FOLD_GUARANTEES

__all__ = ["Schooling", "check_cv"]

_FOLDS, _HELD_OUT = 10, 0.5  # with cv="auto"
_CALIBRATION_FOLDS = 5


def check_cv(cv: Any) -> None:
    """Check the parameter `cv`."""
    check_cv_option(cv, words=("auto", "oob", "prefit"))
    if isinstance(cv, Integral):
        check_count("cv as a number of folds", cv, at_least=2)


@dataclass(frozen=True)
class Schooling:
    """Which rows a model learns from, and which rows it scores unseen; the parameters say it."""

    estimator: Any
    cv: Any
    ensemble: bool
    guarantee: str
    random_state: Any
    n_jobs: int | None

    @property
    def is_prefit(self) -> bool:
        """Whether the model comes trained."""
        return is_prefit(self.estimator, self.cv)

    @property
    def is_out_of_bag(self) -> bool:
        """Whether the trees of a forest score what was not in their bags."""
        return isinstance(self.cv, str) and self.cv == "oob"

    @property
    def refits(self) -> bool:
        """Whether one model of all rows decides, with scores by the models of the folds."""
        folds = not (holds_out(self._cv) or self.is_prefit or self.is_out_of_bag)
        return folds and not self.ensemble

    @property
    def _cv(self) -> Any:
        """What `cv` stands for."""
        if isinstance(self.cv, str) and self.cv == "auto":
            return _FOLDS if self.guarantee in ("expected", "plug-in") else _HELD_OUT
        return self.cv

    def with_probabilities(self, is_rare: Mask | None) -> Schooling:
        """Return the same with a model that gives probabilities, cross-fitted in each training."""
        if self.is_prefit or is_rare is None:
            raise ValueError(
                "values, efforts and worth are weighed with the probability that an item is rare, "
                f"and the trained {type(self.estimator).__name__} gives none. Wrap it in "
                "CalibratedClassifierCV(FrozenEstimator(model)) of scikit-learn, and fit that on "
                "other items than these."
            )
        folds = max(2, min(_CALIBRATION_FOLDS, int(is_rare.sum()) // 4))
        return replace(self, estimator=CalibratedClassifierCV(self.estimator, cv=folds))

    def calibrate_only(self, X: Any, params: dict[str, Any], **scoring: Any) -> Fitted:
        """Return the trained model as it is, with its scores of all rows."""
        if params:
            raise ValueError(
                f"A trained model is not fitted again, and {sorted(params)} would not be used."
            )
        scores = _rare_scores(self.estimator, X, **scoring)
        return Fitted([self.estimator], [Unseen(np.arange(n_rows(X)), scores)])

    def fit(
        self,
        X: Any,
        y: Any,
        is_rare: Mask,
        groups: Groups,
        *,
        fit_params: dict[str, Any],
        split_params: dict[str, Any],
        seed: int,
        method: str,
        rare_label: Any,
    ) -> Fitted:
        """Fit the models that are to decide, and score items that they have not seen."""
        if self.is_out_of_bag:
            check_no_groups(groups.numbers)
            if method != "predict_proba" and hasattr(self.estimator, "predict_proba"):
                raise ValueError("Out-of-bag scores are probabilities: use response_method='auto'.")
            return fit_out_of_bag(
                self.estimator, X, y, fit_params=fit_params, rare_label=rare_label
            )
        folds = self._folds(X, y, is_rare, rare_label, split_params, seed, groups.numbers)
        return fit_on_folds(
            self.estimator,
            X,
            y,
            self._checked(folds),
            fit_params=fit_params,
            score=partial(_rare_scores, method=method, rare_label=rare_label),
            refit=self.refits,
            n_jobs=self.n_jobs,
        )

    def _folds(
        self,
        X: Any,
        y: Any,
        is_rare: Mask,
        rare_label: Any,
        split_params: dict[str, Any],
        seed: int,
        groups: Rows | None,
    ) -> list[tuple[Any, Any]]:
        rng = np.random.default_rng(None if self.random_state is None else seed)
        if holds_out(self._cv):
            check_enough_rare(is_rare, rare_label, remedy="Use cv='prefit'. ")
            return [hold_out(is_rare, self._cv, rng, groups)]
        if self.ensemble and isinstance(self._cv, Integral):
            check_enough_rare(is_rare, rare_label, remedy="Use cv='prefit'. ")
            return random_folds(y, is_rare, int(self._cv), rng, groups)
        once, remedy = not self.ensemble, "ensemble=True, or "
        return unseen_once(self._cv, X, y, split_params, once=once, remedy=remedy, groups=groups)

    def _checked(self, folds: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Refuse a guarantee that thresholds of several folds cannot keep, before any fit."""
        if len(folds) > 1 and self.ensemble and self.guarantee not in FOLD_GUARANTEES:
            raise ValueError(
                f"guarantee={self.guarantee!r} needs one model with one threshold, and cv="
                f"{self.cv!r} makes one for each fold. Hold items out with cv=0.5, which "
                "cv='auto' does, or use another guarantee."
            )
        return folds


def _rare_scores(model: Any, X: Any, *, method: str, rare_label: Any) -> Floats:
    return score_classes(model, X, method=method, rare_label=rare_label).rare
