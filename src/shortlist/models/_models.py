"""Fitted models as functions of prepared rows, with all their parts. To add one, see `_BY_TYPE`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy.special import expit

from .._core.arrays import Doubles
from ._bounds import UNIT
from ._learners import (
    aware_boosters,
    aware_linear,
    by_itself,
    forest,
    histogram_boosting,
    lightgbm,
    linear,
    network,
    tree,
)
from ._preparation import Called, Listed, Prepared, Unsupported, transformed
from ._scoring import Ask, Combined, Scored, Scoring, added, averaged

__all__ = ["scoring_of"]


def scoring_of(model: Any, prepared: Prepared, ask: Ask) -> Scoring:
    """Return how prepared rows are scored by a fitted classifier, pipeline or search."""
    if hasattr(model, "best_estimator_"):
        return scoring_of(model.best_estimator_, prepared, ask)
    name = type(model).__name__
    if name == "FrozenEstimator":
        return scoring_of(model.estimator, prepared, ask)
    if name == "Pipeline":
        for _, step in model.steps[:-1]:
            prepared = transformed(step, prepared)
        return scoring_of(model.steps[-1][1], prepared, ask)
    try:
        return _BY_TYPE.get(name, by_itself)(model, prepared, ask)
    except Unsupported:
        return by_itself(model, prepared, ask)


def _mean_of(parts: list[Scoring]) -> Scoring:
    return parts[0] if len(parts) == 1 else Combined(parts, averaged)


# --- bagging -------------------------------------------------------------------------------------


def _bagging(model: Any, prepared: Prepared, ask: Ask) -> Scoring:
    if ask.method != "predict_proba" or model.n_jobs not in (None, 1):
        raise Unsupported("bagging with n_jobs, or without probabilities")
    place, parts = ask.place(model), []
    for each, features in zip(model.estimators_, model.estimators_features_, strict=True):
        if len(each.classes_) != len(model.classes_):
            raise Unsupported("bagging with samples of one class")
        inner = Ask(ask.method, np.asarray(each.classes_).tolist()[place])
        parts.append(scoring_of(each, _chosen(prepared, features), inner))
    return _mean_of(parts)


def _chosen(prepared: Prepared, features: Any) -> Prepared:
    """Return some of the features of prepared rows."""
    places = np.asarray(features).tolist()
    if not isinstance(prepared, Listed):
        return Called(_Columns(places), prepared)
    if places == list(range(len(prepared.features))):
        return prepared
    return Listed([prepared.features[place] for place in places], prepared.is_sparse)


class _Columns:
    """A transformer that takes some of the columns of an array."""

    def __init__(self, places: list[int]) -> None:
        self._places = places

    def transform(self, X: Doubles) -> Doubles:
        return np.ascontiguousarray(X[:, self._places])


# --- models of this library ----------------------------------------------------------------------


def _check_rare(model: Any, ask: Ask) -> None:
    if ask.method != "decision_function" or model.rare_label_ != ask.label:
        raise Unsupported(f"{type(model).__name__} for another label than its rare one")


def _aware_forest(model: Any, prepared: Prepared, ask: Ask) -> Combined:
    _check_rare(model, ask)
    weights = np.asarray(model.weights_, dtype=np.float64)
    parts: list[Scoring] = [
        forest(each, prepared, Ask("predict_proba", True)) for each in model.forests_
    ]

    def combine(scores: list[Doubles]) -> Doubles:
        return _weighted_below(np.array(scores), weights)

    return Combined(parts, combine, is_exact=False)


def _aware_boosting(model: Any, prepared: Prepared, ask: Ask) -> Scoring:
    _check_rare(model, ask)
    parts = aware_boosters(model, prepared)
    return Combined(parts, added) if model.loss_ == "detection" else _mean_of(parts)


def _aware_linear(model: Any, prepared: Prepared, ask: Ask) -> Scored:
    _check_rare(model, ask)
    return aware_linear(model, prepared, ask)


def _ensemble(model: Any, prepared: Prepared, ask: Ask) -> Combined:
    """Return the mean log-odds of the members, or the probability made of it, from below."""
    if len(model.classes_) != 2 or any(min(of.values()) < 0 for of in model.weights_.values()):
        raise Unsupported("an ensemble with more than two classes, or with negative weights")
    views = {name: transformed(view, prepared) for name, view in model.columns_.items()}
    inner, weights = Ask("predict_proba", ask.place(model)), []
    parts: list[Scoring] = []
    for name, by_form in model.members_.items():
        view = views[model.views_[name]]
        for form, models in by_form.items():
            chances = _mean_of([scoring_of(each, view, inner) for each in models])
            parts.append(Combined([chances], _log_odds(models), is_exact=False))
            weights.append(model.weights_[name][form])

    shares = np.array(weights, dtype=np.float64)

    def combine(scores: list[Doubles]) -> Doubles:
        low = _weighted_below(np.array(scores), shares)
        return low if ask.method == "decision_function" else _probability(low)

    return Combined(parts, combine, is_exact=False)


def _log_odds(models: list[Any]) -> Callable[[list[Doubles]], Doubles]:
    """Return what the log-odds of a member are not below, from what its probability is not below.

    The probability of the other class is 1 less this one, but for rounding: that of a forest is
    added up on its own.
    """
    n_trees = sum(len(each.estimators_) for each in models if hasattr(each, "estimators_"))
    pull = float(n_trees or 10_000)
    slack = 2.02 * (n_trees + len(models) + 8) * UNIT
    return lambda scores: _log_odds_below(scores[0], pull, slack)


@njit(cache=True)
def _log_odds_below(chances, pull, slack):
    out = np.empty_like(chances)
    for i in range(chances.size):
        rare = math.log((chances[i] * pull + 0.5) / (pull + 1))
        other = math.log(((1 - chances[i] + slack) * pull + 0.5) / (pull + 1))
        out[i] = rare - other - 2.0**-50 * (abs(rare) + abs(other) + 1)
    return out


@njit(cache=True)
def _weighted_below(scores, weights):
    """Return what a weighted sum over the first axis is not below."""
    out = np.empty(scores.shape[1])
    for i in range(out.size):
        total, size = 0.0, 0.0
        for k in range(weights.size):
            total += weights[k] * scores[k, i]
            size += abs(weights[k] * scores[k, i])
        out[i] = total - 2.02 * (weights.size + 2) * 2.0**-53 * size
    return out


def _probability(log_odds: Doubles) -> Doubles:
    return expit(log_odds) * (1 - 16 * UNIT)


# By name: LightGBM is optional, and nothing else of scikit-learn need be imported.
_BY_TYPE: dict[str, Callable[[Any, Prepared, Ask], Scoring]] = {
    "BaggingClassifier": _bagging,
    "CapacityAwareBoostingClassifier": _aware_boosting,
    "CapacityAwareForestClassifier": _aware_forest,
    "CapacityAwareLinearClassifier": _aware_linear,
    "CapacityEnsembleClassifier": _ensemble,
    "DecisionTreeClassifier": tree,
    "ExtraTreeClassifier": tree,
    "ExtraTreesClassifier": forest,
    "HistGradientBoostingClassifier": histogram_boosting,
    "LGBMClassifier": lightgbm,
    "LinearDiscriminantAnalysis": linear,
    "LinearSVC": linear,
    "LogisticRegression": linear,
    "LogisticRegressionCV": linear,
    "MLPClassifier": network,
    "RandomForestClassifier": forest,
    "RidgeClassifier": linear,
}
