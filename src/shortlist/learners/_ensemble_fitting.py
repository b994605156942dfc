"""Fitting one member of an ensemble, in the forms that unseen rows prefer, and its scores."""

from __future__ import annotations

import functools
import warnings
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from .._core.arrays import Doubles, Mask, Rows
from .._core.scoring import take_rows
from ._ensemble_weights import fit_line, form_shares, out_of_sample
from .members import FORMS, MEMBERS, SIZES, rows_for, weights_for

__all__ = [
    "Fitted",
    "combined_scores",
    "fit_member",
    "one_thread_for_products",
    "preferred_form",
    "some_rows",
    "weighted_sum",
]

# Stands for the number of trees of a model whose probabilities have no steps.
_SMOOTH = 10_000
# The share of the trees of a forest that have not seen a row.
_OUT_OF_BAG = 0.37


class Fitted(NamedTuple):
    """The fitted models of a member by their form, and what unseen rows say about the forms.

    `shares` are the parts that the forms take, and `unseen` log-odds of the rows by models that
    have not seen them; both are empty if a form was given.
    """

    models: dict[str, Any]
    shares: dict[str, float]
    unseen: dict[str, Doubles]


@functools.cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes longer than a small model


def one_thread_for_products() -> AbstractContextManager[Any]:
    """Return a context without threads for products of matrices.

    Small ones gain nothing from threads, which keep spinning while the next model is fitted.
    """
    return _thread_pools().limit(limits=1, user_api="blas")


def fit_member(
    name: str,
    seed: int,
    forms: tuple[str, ...],
    size: str,
    X: Any,
    codes: Rows,
    weights: Doubles | None,
    rare: int,
    judges: bool = False,
    n_jobs: int | None = None,
) -> Fitted:
    """Fit a member in some forms; if it `judges`, in those that take part.

    The classes of the models are the positions of the labels.
    """
    learner = _Learner(name, seed, size, X, codes, weights, n_jobs)
    if not judges:
        return Fitted({form: learner.fit(form) for form in forms}, {}, {})
    tried = {form: learner.unseen(form, rare) for form in forms}
    shares = _shares({form: scores for form, (_, scores) in tried.items()}, codes == rare)
    kept = {form: tried[form] for form in shares}
    models = {
        form: learner.fit(form) if model is None else model for form, (model, _) in kept.items()
    }
    return Fitted(models, shares, {form: scores for form, (_, scores) in kept.items()})


def preferred_form(name: str, seed: int, size: str, X: Any, codes: Rows, rare: int) -> str:
    """Return the form of a member that explains unseen rows better."""
    learner = _Learner(name, seed, size, X, codes, None, None)
    unseen = {form: learner.unseen(form, rare)[1] for form in FORMS}
    shares = _shares(unseen, codes == rare)
    return max(shares, key=shares.__getitem__)


def _shares(unseen: dict[str, Doubles], is_rare: Mask) -> dict[str, float]:
    return form_shares({form: fit_line(scores, is_rare) for form, scores in unseen.items()})


class _Learner(NamedTuple):
    """A kind of member, and the rows that it is fitted to."""

    name: str
    seed: int
    size: str
    X: Any
    codes: Rows
    weights: Doubles | None
    n_jobs: int | None

    def made(self, form: str) -> Any:
        """Return the unfitted model of a form."""
        member, smooth = MEMBERS[self.name], form == "smooth"
        return member.make(SIZES[self.size], self.codes.size, self.seed, self.n_jobs, smooth)

    def fit(self, form: str) -> Any:
        """Fit a form to all rows, or to a sample of many."""
        return self._fit(self.made(form), None)

    def unseen(self, form: str, rare: int) -> tuple[Any, Doubles]:
        """Return log-odds of the rows, unseen, and the model if that took a fit to all rows."""
        model, n_trees = self.made(form), float(_SMOOTH)
        if hasattr(model, "oob_score"):
            model = self._fit(model.set_params(oob_score=True), None)
            n_trees = _OUT_OF_BAG * n_trees_of([model])
        shares = out_of_sample(model, self.X, self.codes, self._fit, self.seed)
        vars(model).pop("oob_decision_function_", None)  # as long as the table, and not needed now
        fitted = model if hasattr(model, "classes_") else None
        return fitted, log_odds(shares, n_trees)[:, rare]

    def _fit(self, model: Any, rows: Rows | None) -> Any:
        some, own, own_weights = some_rows(rows, self.X, self.codes, self.weights)
        rng = np.random.default_rng(self.seed)
        sampled = rows_for(MEMBERS[self.name], SIZES[self.size], own, rng)
        if sampled is not None:
            own_weights = weights_for(sampled, own, own_weights)
            some, own = take_rows(some, sampled), own[sampled]
        with warnings.catch_warnings():
            # The network is stopped early on purpose, and few trees leave some rows in every bag.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            extra = {} if own_weights is None else {"sample_weight": own_weights}
            return model.fit(some, own, **extra)


def some_rows(
    rows: Rows | None, X: Any, codes: Rows, weights: Doubles | None
) -> tuple[Any, Rows, Doubles | None]:
    """Return items, labels and weights of some rows; None stands for all of them."""
    if rows is None:
        return X, codes, weights
    return take_rows(X, rows), codes[rows], None if weights is None else weights[rows]


def combined_scores(models: list[Any], X: Any, code: int | None) -> Doubles:
    """Return the log-odds of one class by several models, or log-probabilities of all classes."""
    shares = np.mean([model.predict_proba(X) for model in models], axis=0)
    n_trees = n_trees_of(models)
    if code is None:
        return log_probabilities(shares, n_trees)
    return log_odds(shares, n_trees)[:, code]


def weighted_sum(scores: dict[str, Doubles], weights: dict[str, float]) -> Doubles:
    """Return the sum of the scores of all forms, each with its weight."""
    return np.sum([weights[form] * scores[form] for form in scores], axis=0)


def n_trees_of(models: list[Any]) -> int:
    """Return the number of trees of forests; other models have smooth probabilities."""
    return sum(len(m.estimators_) for m in models if hasattr(m, "estimators_")) or _SMOOTH


def log_probabilities(shares: Doubles, n_trees: float) -> Doubles:
    """Return logarithms of probabilities, kept away from 0 by half a tree."""
    return np.log((shares * n_trees + 0.5) / (n_trees + 0.5 * shares.shape[1]))


def log_odds(shares: Doubles, n_trees: float) -> Doubles:
    """Return the log-odds of each class against all others."""
    logs = log_probabilities(shares, n_trees)
    if shares.shape[1] == 2:
        return logs - logs[:, ::-1]
    return logs - log_probabilities(1 - shares, n_trees)
