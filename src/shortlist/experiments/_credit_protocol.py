"""The paper's protocol on the credit data: how samples are drawn, and how a rule is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from .._core.scoring import rare_scores
from ..capacity import Capacity, exact
from ..thresholds import calibrate_threshold, select

__all__ = [
    "CreditSplit",
    "Outcome",
    "capacity_of",
    "cross_fitted_scores",
    "draw_split",
    "fit_scores",
    "judge",
    "judge_threshold",
    "judge_top",
]

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class CreditSplit:
    """A training sample in random halves, a disjoint test sample, and all other clients."""

    X_train: Floats
    y_train: NDArray[np.int64]
    fit_half: NDArray[np.intp]
    calibration_half: NDArray[np.intp]
    X_test: Floats
    y_test: NDArray[np.int64]
    X_others: Floats
    y_others: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """What a rule did on the test sample."""

    adjusted_detection: float
    flagged: int
    found: int


def draw_split(
    X: Floats,
    y: NDArray[np.int64],
    *,
    prevalence: float,
    rng: np.random.Generator,
    n_train: int = 8_000,
    n_test: int = 10_000,
) -> CreditSplit:
    """Draw samples with the nominal share of rare cases, all without replacement.

    `X_others` are all clients outside of the test sample, those of the training sample included:
    what a bank with forty times the rare cases would train on.
    """
    rare, common = rng.permutation(np.flatnonzero(y == 1)), rng.permutation(np.flatnonzero(y == 0))
    drawn_train, drawn_test = [], []
    for kind, share in ((rare, exact(prevalence)), (common, 1 - exact(prevalence))):
        k_train, k_test = round(share * n_train), round(share * n_test)
        if k_train + k_test > kind.size:
            raise ValueError(
                f"prevalence={prevalence} needs {k_train + k_test} clients of one class for "
                f"training and test; there are {kind.size}."
            )
        drawn_train.append(kind[:k_train])
        drawn_test.append(kind[k_train : k_train + k_test])
    train = rng.permutation(np.concatenate(drawn_train))
    test = rng.permutation(np.concatenate(drawn_test))
    order = rng.permutation(n_train)
    others = np.setdiff1d(np.arange(y.size), test)
    return CreditSplit(
        X_train=X[train],
        y_train=y[train],
        fit_half=order[: n_train // 2],
        calibration_half=order[n_train // 2 :],
        X_test=X[test],
        y_test=y[test],
        X_others=X[others],
        y_others=y[others],
    )


def capacity_of(multiple: float, prevalence: float) -> Capacity:
    """Return the capacity b times the *nominal* prevalence, as a fraction of all items."""
    return Capacity.fraction(Capacity.multiple(multiple).as_ratio(prevalence))


def judge(flagged: NDArray[np.bool_], y: NDArray[np.int64], capacity: Capacity) -> Outcome:
    """Return M and the counts behind it, with the capacity as a fraction of the test sample."""
    n_flagged, n_found = int(flagged.sum()), int((flagged & (y == 1)).sum())
    room = capacity.as_ratio() * y.size
    paid = min(Fraction(1), room / n_flagged) if n_flagged else Fraction(1)
    return Outcome(float(Fraction(n_found, int((y == 1).sum())) * paid), n_flagged, n_found)


def judge_threshold(
    calibration_scores: Floats, test_scores: Floats, y: NDArray[np.int64], capacity: Capacity
) -> Outcome:
    """Cut at the paper's plug-in threshold, strictly above, and judge."""
    threshold = calibrate_threshold(calibration_scores, capacity)
    return judge(threshold.flag(test_scores), y, capacity)


def judge_top(test_scores: Floats, y: NDArray[np.int64], capacity: Capacity) -> Outcome:
    """Take the top of the test sample itself, exactly as many as allowed, and judge."""
    return judge(select(test_scores, capacity), y, capacity)


def fit_scores(model: Any, X: Floats, y: NDArray[np.int64]) -> Callable[[Floats], Floats]:
    """Fit a copy of the model, and return its scores as a function of new items."""
    fitted = clone(model).fit(X, y)
    return lambda items: rare_scores(fitted, items, rare_label=1)


def cross_fitted_scores(model: Any, X: Floats, y: NDArray[np.int64], *, seed: int) -> Floats:
    """Return the score of each item by a model that was fitted on four fifths without it."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    output = cross_val_predict(model, X, y, cv=folds, method=method)
    return output[:, 1] if output.ndim == 2 else output
