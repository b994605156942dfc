"""The paper's protocol on the credit data: draw samples, judge rules, average over repetitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from shortlist._core.arrays import Floats, Mask, Rows
from shortlist._core.scoring import rare_scores
from shortlist.capacity import Capacity, exact
from shortlist.thresholds import calibrate_threshold

from ..credit_data import clients
from ..tables import Table, mean_and_error

__all__ = [
    "CreditConfig",
    "CreditSplit",
    "Outcome",
    "capacity_of",
    "cells_of",
    "draw_sample",
    "draw_split",
    "fit_scores",
    "judge",
    "judge_threshold",
]

_N_TRAIN, _N_TEST = 8_000, 10_000


@dataclass(frozen=True)
class CreditConfig:
    """Settings that the figures of the credit data share, with the repetitions of the paper.

    Support vector machines are repeated `svm_repetitions` times at most.
    """

    prevalences: tuple[float, ...] = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05)
    multiples: tuple[float, ...] = (1, 2, 3)
    repetitions: int = 100
    svm_repetitions: int = 30
    rows: int = 25_000
    seed: int = 0


@dataclass(frozen=True)
class CreditSplit:
    """A training sample in random halves, a disjoint test sample, and all other clients."""

    X_train: Floats
    y_train: NDArray[np.int64]
    fit_half: Rows
    calibration_half: Rows
    X_test: Floats
    y_test: NDArray[np.int64]
    X_others: Floats
    y_others: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """The result of a rule on the test sample."""

    adjusted_detection: float
    flagged: int
    found: int


def draw_split(
    X: Floats,
    y: NDArray[np.int64],
    *,
    prevalence: float,
    rng: np.random.Generator,
    n_train: int = _N_TRAIN,
    n_test: int = _N_TEST,
) -> CreditSplit:
    """Draw samples with the nominal share of rare cases, all without replacement.

    `X_others` are all clients outside the test sample, including the training sample: the data of a
    bank with forty times as many rare cases.
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


def judge(flagged: Mask, y: NDArray[np.int64], capacity: Capacity) -> Outcome:
    """Return M and the counts behind it, with the capacity as a fraction of the test sample."""
    n_flagged, n_found = int(flagged.sum()), int((flagged & (y == 1)).sum())
    room = capacity.as_ratio() * y.size
    paid = min(Fraction(1), room / n_flagged) if n_flagged else Fraction(1)
    return Outcome(float(Fraction(n_found, int((y == 1).sum())) * paid), n_flagged, n_found)


def judge_threshold(
    calibration_scores: Floats, test_scores: Floats, y: NDArray[np.int64], capacity: Capacity
) -> Outcome:
    """Flag scores strictly above the paper's plug-in threshold, and judge the flags."""
    threshold = calibrate_threshold(calibration_scores, capacity, guarantee="plug-in")
    return judge(threshold.flag(test_scores), y, capacity)


def fit_scores(model: Any, X: Floats, y: NDArray[np.int64]) -> Callable[[Floats], Floats]:
    """Fit a copy of the model and return a function that scores new items."""
    fitted = clone(model).fit(X, y)
    return lambda items: rare_scores(fitted, items, rare_label=1)


def draw_sample(
    rows: int, prevalence: float, repetition: int, seed: int
) -> tuple[CreditSplit, int]:
    """Draw the split of a repetition, the same for all methods, and a seed for the models."""
    X, y = clients(rows)
    rng = np.random.default_rng([seed, repetition])
    return draw_split(X, y, prevalence=prevalence, rng=rng), int(rng.integers(2**31))


def cells_of(table: Table) -> Table:
    """Average over repetitions: one row for each learner, method, prevalence and capacity.

    `mean`, `error` and `count` describe M. `flagged` and `found` are mean numbers of test cases,
    `over` is the share of repetitions that flagged more cases than the capacity allows.
    """
    groups: dict[tuple[Any, ...], Table] = {}
    names = ("learner", "method", "prevalence", "multiple")
    for row in table:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return [
        {
            **dict(zip(names, key, strict=True)),
            **mean_and_error(row["adjusted_detection"] for row in rows),
            "flagged": float(np.mean([row["flagged"] for row in rows])),
            "found": float(np.mean([row["found"] for row in rows])),
            "over": float(np.mean([row["flagged"] > _room(row) for row in rows])),
        }
        for key, rows in groups.items()
    ]


def _room(row: dict[str, Any]) -> float:
    return row["multiple"] * row["prevalence"] * _N_TEST + 1e-9
