"""Single fitted classifiers as functions of prepared rows: trees, linear models and networks.

The score of each is never above that of the model: it has the same bits where the order of its sums
is known, and otherwise a bound of the rounding errors of both sums is subtracted. A classifier that
is not known here is asked itself, with the prepared rows as an array.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy.special import expit
from sklearn.utils import get_tags

from .._core.arrays import Doubles
from .._core.scoring import score_classes
from ._bounds import Form, linear_form, logistic_below, network_form, sum_error
from ._grown import histogram_trees, lightgbm_trees, sklearn_trees
from ._plan import Refused
from ._preparation import Listed, Prepared, Unsupported, transformed
from ._scoring import Ask, Scored, Scoring
from ._trees import LeafSum

__all__ = [
    "aware_boosters",
    "aware_linear",
    "by_itself",
    "forest",
    "histogram_boosting",
    "lightgbm",
    "linear",
    "network",
    "tree",
]

#: LightGBM takes what is not larger for 0.
_TINY = float(np.float32(1e-35))


def by_itself(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    """Let a classifier score prepared rows itself; arrays have no names of columns to compare."""
    without_names = copy.copy(learner)
    vars(without_names).pop("feature_names_in_", None)

    def score(X: Doubles) -> Doubles:
        asked = {"method": ask.method, "rare_label": ask.label, "classes": ask.classes}
        return np.asarray(score_classes(without_names, X, **asked).rare, dtype=np.float64)

    return Scored(prepared, score, is_exact=False, own=type(learner).__name__)


# --- trees ---------------------------------------------------------------------------------------


def forest(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    if ask.method != "predict_proba" or learner.n_outputs_ != 1:
        raise Unsupported(f"{type(learner).__name__} with several outputs")
    leaves = sklearn_trees(learner.estimators_, ask.place(learner))
    n_trees, in_order = len(learner.estimators_), learner.n_jobs in (None, 1)
    read = _single(_takes_gaps(learner, prepared))

    def score(X: Doubles) -> Doubles:
        sums = leaves(read(X))
        return (sums if in_order else sums - sum_error(n_trees, sums)) / n_trees

    return Scored(prepared, score, is_exact=in_order)


def tree(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    if ask.method != "predict_proba" or learner.n_outputs_ != 1:
        raise Unsupported(f"{type(learner).__name__} with several outputs")
    leaves = sklearn_trees([learner], ask.place(learner))
    read = _single(_takes_gaps(learner, prepared))
    return Scored(prepared, lambda X: leaves(read(X)))


def _takes_gaps(learner: Any, prepared: Prepared) -> bool:
    is_sparse = isinstance(prepared, Listed) and prepared.is_sparse
    takes = get_tags(learner).input_tags.allow_nan and learner.monotonic_cst is None
    return bool(takes and not is_sparse)


def _single(takes_gaps: bool) -> Callable[[Doubles], Doubles]:
    """Round to single precision, as scikit-learn's trees do, and refuse what they refuse."""

    def read(X: Doubles) -> Doubles:
        single = np.empty_like(X)
        if not _round_to_single(X, takes_gaps, single):
            raise Refused
        return single

    return read


@njit(cache=True)
def _round_to_single(X, takes_gaps, out):
    """Round numbers; return whether all are finite, or missing where that is allowed."""
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            number = np.float64(np.float32(X[i, k]))
            out[i, k] = number
            if number - number != 0 and not (takes_gaps and number != number):
                return False
    return True


def histogram_boosting(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    if len(learner.classes_) != 2:
        raise Unsupported("boosting with more than two classes")
    if learner._preprocessor is not None:
        prepared = transformed(learner._preprocessor, prepared)
    return Scored(prepared, _outcome(histogram_trees(learner), expit, ask.place(learner), ask))


def lightgbm(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    objective, *options = str(learner.booster_.dump_model(num_iteration=1)["objective"]).split()
    if objective != "binary" or len(learner.classes_) != 2:
        raise Unsupported(f"LightGBM with the objective {objective!r}")
    steepness = float(dict(option.split(":") for option in options)["sigmoid"])

    def probability(raw: Doubles) -> Doubles:
        return np.array([_logistic(steepness * number) for number in raw.tolist()])

    raw = _booster(learner.booster_)
    return Scored(prepared, _outcome(raw, probability, ask.place(learner), ask))


def _logistic(number: float) -> float:
    """Return what LightGBM computes, with the same exponential function."""
    try:
        return 1.0 / (1.0 + math.exp(-number))
    except OverflowError:
        return 0.0


def _booster(booster: Any) -> Callable[[Doubles], Doubles]:
    leaves = lightgbm_trees(booster)

    def raw(X: Doubles) -> Doubles:
        rounded = np.empty_like(X)
        _round_to_zero(X, _TINY, rounded)
        return leaves(rounded)

    return raw


@njit(cache=True)
def _round_to_zero(X, tiny, out):
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            out[i, k] = 0.0 if abs(X[i, k]) <= tiny else X[i, k]


def _outcome(
    raw: Callable[[Doubles], Doubles] | LeafSum,
    probability: Callable[[Doubles], Doubles],
    place: int,
    ask: Ask,
) -> Callable[[Doubles], Doubles]:
    """Turn a raw score of the second of two classes into what was asked for."""
    if ask.method == "decision_function":
        return raw if place == 1 else lambda X: -raw(X)
    if place == 1:
        return lambda X: probability(raw(X))
    return lambda X: 1 - probability(raw(X))


# --- sums of products ----------------------------------------------------------------------------


def linear(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    if len(learner.classes_) != 2:
        raise Unsupported(f"{type(learner).__name__} with more than two classes")
    (shift,) = np.broadcast_to(learner.intercept_, 1).tolist()
    form = linear_form(np.ravel(learner.coef_), shift)
    return _bounded(form, ask.place(learner) == 1, prepared, ask.method)


def network(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    if learner.out_activation_ != "logistic" or learner.n_outputs_ != 1:
        raise Unsupported("a network with more than two classes")
    form = network_form(learner.coefs_, learner.intercepts_, learner.activation)
    return _bounded(form, ask.place(learner) == 1, prepared, ask.method)


def _bounded(form: Form, second: bool, prepared: Prepared, method: str) -> Scored:
    """Return what the score of the second or first class, or its probability, is not below."""

    def low(X: Doubles) -> Doubles:
        values, errors = form(X)
        if not np.isfinite(errors).all():  # as they are for every number that is not finite
            raise Refused
        return (values if second else -values) - errors

    if method == "decision_function":
        return Scored(prepared, low, is_exact=False)
    return Scored(prepared, lambda X: logistic_below(low(X), second=second), is_exact=False)


# --- models that know the capacity ---------------------------------------------------------------


def aware_boosters(learner: Any, prepared: Prepared) -> list[Scoring]:
    """Return the boosters of aware boosting, which refuses infinite numbers."""
    return [Scored(prepared, _without_infinity(_booster(booster))) for booster in learner.boosters_]


def _without_infinity(raw: Callable[[Doubles], Doubles]) -> Callable[[Doubles], Doubles]:
    def score(X: Doubles) -> Doubles:
        if np.isinf(X).any():
            raise Refused
        return raw(X)

    return score


def aware_linear(learner: Any, prepared: Prepared, ask: Ask) -> Scored:
    """Return the linear form of the rare label."""
    return _bounded(linear_form(learner.coef_[0], 0.0), True, prepared, ask.method)
