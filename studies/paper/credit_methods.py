"""The methods on the credit data: each fits a model and returns a rule for any capacity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist._core.arrays import Floats
from shortlist._core.scoring import out_of_bag_scores, rare_scores, with_out_of_bag
from shortlist.aware import CapacityAwareSVC
from shortlist.capacity import Capacity
from shortlist.classifier import CapacityClassifier
from shortlist.learners import make_learner

from .credit_protocol import CreditSplit, Outcome, fit_scores, judge, judge_threshold
from .quick_forest import quick
from .smote_scheme import PAPER_FACTOR, appendix_factor, oversample

__all__ = ["METHODS"]

Data = tuple[Floats, NDArray[np.int64]]
Rule = Callable[[Capacity], Outcome]
#: Takes the name of a learner, a split, a seed and the prevalence.
Method = Callable[[str, CreditSplit, int, float], Rule]


def _classical(learner: str, split: CreditSplit, seed: int, prevalence: float) -> Rule:
    """Fit on the whole training sample and keep the default threshold: the paper's g."""
    return _by_default(learner, split, seed, (split.X_train, split.y_train))


def _smote(
    factor_at: Callable[[float], float],
    learner: str,
    split: CreditSplit,
    seed: int,
    prevalence: float,
) -> Rule:
    """As the classical rule, on a sample with synthetic rare cases."""
    factor = factor_at(prevalence)
    sample = oversample(split.X_train, split.y_train, factor=factor, seed=seed)
    return _by_default(learner, split, seed, sample)


def _capacity(learner: str, split: CreditSplit, seed: int, prevalence: float) -> Rule:
    """Fit on one half, set the threshold for the capacity on the other: the paper's g_b."""
    return _by_threshold(learner, split, seed, _fit_half(split))


def _smote_calibrated(learner: str, split: CreditSplit, seed: int, prevalence: float) -> Rule:
    """As g_b, with synthetic rare cases in the half that the model is fitted on."""
    sample = oversample(*_fit_half(split), factor=PAPER_FACTOR, seed=seed)
    return _by_threshold(learner, split, seed, sample)


def _recommended(learner: str, split: CreditSplit, seed: int, prevalence: float) -> Rule:
    """Fit the recommended forest on all cases; its threshold comes from out-of-bag scores."""
    forest = quick(with_out_of_bag(make_learner(learner, "recommended", random_state=seed)))
    forest.fit(split.X_train, split.y_train)
    unseen = out_of_bag_scores(forest, rare_label=1)
    test = rare_scores(forest, split.X_test, rare_label=1)
    return lambda capacity: judge_threshold(unseen, test, split.y_test, capacity)


def _aware(
    options: dict[str, Any],
    learner: str,
    split: CreditSplit,
    seed: int,
    prevalence: float,
    *,
    best_prefix: bool = False,
) -> Rule:
    """Choose support vectors for each capacity: g_b* and its relatives."""

    def fitted(capacity: Capacity, **more: Any) -> CapacityClassifier:
        machine = CapacityAwareSVC(C=1, gamma=0.1, random_state=seed, **options, **more)
        return CapacityClassifier(
            make_pipeline(StandardScaler(), machine),
            capacity=capacity,
            rare_label=1,
            cv="oob" if machine.selection == "paper" else 0.25,
            guarantee="plug-in",
            ties="exclude",
            random_state=seed,
        ).fit(split.X_train, split.y_train)

    def rule(capacity: Capacity) -> Outcome:
        model = fitted(capacity)
        if best_prefix:  # fewer steps choose the same support vectors
            path = model.estimator_[-1].detection_path_
            model = fitted(capacity, max_support=int(np.argmax(path)) + 1)
        return judge(model.flag(split.X_test), split.y_test, capacity)

    return rule


def _by_default(learner: str, split: CreditSplit, seed: int, sample: Data) -> Rule:
    model = quick(make_learner(learner, "paper", random_state=seed)).fit(*sample)
    flagged = model.predict(split.X_test) == 1
    return lambda capacity: judge(flagged, split.y_test, capacity)


def _by_threshold(learner: str, split: CreditSplit, seed: int, sample: Data) -> Rule:
    score = fit_scores(quick(make_learner(learner, "paper", random_state=seed)), *sample)
    unseen, test = score(split.X_train[split.calibration_half]), score(split.X_test)
    return lambda capacity: judge_threshold(unseen, test, split.y_test, capacity)


def _fit_half(split: CreditSplit) -> Data:
    return split.X_train[split.fit_half], split.y_train[split.fit_half]


def _paper_factor(prevalence: float) -> float:
    return PAPER_FACTOR


_GREEDY = {"selection": "paper", "tie_break": "first"}

METHODS: dict[str, Method] = {
    "classical": _classical,
    "smote": partial(_smote, _paper_factor),
    "smote20": partial(_smote, appendix_factor),
    "capacity": _capacity,
    "smote-calibrated": _smote_calibrated,
    "recommended": _recommended,
    "aware": partial(_aware, _GREEDY),
    "aware-best-prefix": partial(_aware, _GREEDY, best_prefix=True),
    "aware-cross-fit": partial(_aware, {}),
}
