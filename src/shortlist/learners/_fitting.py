"""Members of an ensemble: fitted in the forms that unseen rows prefer, scored and weighed.

A line through the log-odds of unseen rows (Platt, 1999) says how far a member can be trusted: an
overconfident one has a slope far below 1. Its log-loss compares two forms of a member. It uses
every row, and can therefore separate forms where few rare rows decide a detection. Where it cannot,
both forms take part.

Weights: greedy selection with replacement, after Caruana, Niculescu-Mizil, Crew and Ksikes (2004),
from a start that has every member several times: few rare rows hardly move them.
"""

from __future__ import annotations

import functools
import warnings
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import ThreadpoolController

from .._core.arrays import Doubles, Mask, Rows
from .._core.scoring import take_rows
from ..capacity import Capacity
from ..metrics import detection_at_capacity
from .members import MEMBERS, SIZES, rows_for, weights_for
from .packed_forest import n_averaged, packed_if_forest

# Stands for the number of trees of a model whose probabilities have no steps.
_SMOOTH = 10_000
# The share of the trees of a forest that have not seen a row.
_OUT_OF_BAG = 0.37
#: With fewer rows of a class, nothing is judged.
FEWEST_JUDGED = 10

#: With fewer rare rows, all weights are equal.
FEWEST_RARE = 30
_HELD_OUT = 20_000
_INNER_FOLDS = 3
_DOUBT = 0.5  # a second form must be better by so many standard errors to take an equal part
_LEAST_SHARE = 0.1  # a form with less is left out
_LEAST_SLOPE = 1e-3
_PULL = 1.0  # of a slope towards 1: as much as a row or two
_STEPS = 10
#: How many times the selection starts with each member: more often where rare rows are few.
_START, _START_OF_FEW = 3.0, 100.0
#: Narrower and wider capacities count, too: at one alone, few rows would decide.
_AROUND = (0.5, 1.0, 2.0)


# --- fitting ------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """The fitted models of a member by their form; the form that unseen rows prefer comes first.

    `trust` says how far each form may move a ranking, and `unseen` are log-odds of rows by models
    that have not seen them; empty if nothing was judged.
    """

    models: dict[str, Any]
    trust: dict[str, float]
    unseen: dict[str, Doubles]


@functools.cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes longer than a small model


def one_thread_for_products() -> AbstractContextManager[Any]:
    """Return a context without threads for products of matrices.

    Small ones gain nothing from threads, which keep spinning while the next model is fitted.
    """
    return _thread_pools().limit(limits=1, user_api="blas")


class Training(NamedTuple):
    """A kind of member, and the rows that it is fitted to, in which code 1 is the rare label.

    Rows that are held out judge a model of the others. Without any, each row is scored out of
    sample, and the models are fitted to all rows.
    """

    name: str
    seed: int
    size: str
    X: Any
    codes: Rows
    weights: Doubles | None = None
    held_out: Rows | None = None
    n_jobs: int | None = None

    def made(self, form: str) -> Any:
        """Return the unfitted model of a form."""
        member, smooth = MEMBERS[self.name], form == "smooth"
        return member.make(SIZES[self.size], self.codes.size, self.seed, self.n_jobs, smooth)

    def fit(self, form: str) -> Any:
        """Fit a form to all rows that are not held out, or to a sample of many."""
        others = None
        if self.held_out is not None:
            others = np.setdiff1d(np.arange(self.codes.size), self.held_out)
        return packed_if_forest(self._fit(self.made(form), others))

    def unseen(self, form: str) -> tuple[Any, Doubles]:
        """Return log-odds of rows, unseen, and the model if that took a fit to all others."""
        if self.held_out is not None:
            fitted = self.fit(form)
            return fitted, combined_scores([fitted], take_rows(self.X, self.held_out))
        model = self.made(form)
        if not hasattr(model, "oob_score"):
            return None, log_odds(self._out_of_fold(model), _SMOOTH)
        model = self._fit(model.set_params(oob_score=True), None)
        shares = np.array(model.oob_decision_function_, dtype=np.float64)
        in_every_bag = ~(np.nan_to_num(shares).sum(axis=1) > 0)
        chances = np.where(in_every_bag, self.codes.mean(), shares[:, 1])
        return packed_if_forest(model), log_odds(chances, _OUT_OF_BAG * model.n_estimators)

    def _out_of_fold(self, model: Any) -> Doubles:
        """Return probabilities of the rows by models of folds that leave them out."""
        chances = np.zeros(self.codes.size)
        folds = StratifiedKFold(_INNER_FOLDS, shuffle=True, random_state=self.seed)
        for learn, unseen in folds.split(self.codes, self.codes):
            fitted = self._fit(clone(model), learn)
            chances[unseen] = fitted.predict_proba(take_rows(self.X, unseen))[:, 1]
        return chances

    def _fit(self, model: Any, rows: Rows | None) -> Any:
        some, own, own_weights = self.X, self.codes, self.weights
        if rows is not None:
            some, own = take_rows(some, rows), own[rows]
            own_weights = None if own_weights is None else own_weights[rows]
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


def fit_member(training: Training, forms: tuple[str, ...], judges: bool) -> Fitted:
    """Fit a member in some forms; if it `judges`, in those that take part."""
    if not judges:
        models = {form: training.fit(form) for form in forms}
        return Fitted(models, dict.fromkeys(forms, 1.0), {})
    tried = {form: training.unseen(form) for form in forms}
    rows = slice(None) if training.held_out is None else training.held_out
    lines = {
        form: fit_line(scores, training.codes[rows] == 1) for form, (_, scores) in tried.items()
    }
    shares = form_shares(lines)
    models = {form: tried[form][0] or training.fit(form) for form in shares}
    # A slope of 0 would leave nothing; a member that says nothing keeps a trace.
    trust = {form: share * max(lines[form].slope, _LEAST_SLOPE) for form, share in shares.items()}
    return Fitted(models, trust, {form: tried[form][1] for form in shares})


def combined_scores(models: list[Any], X: Any) -> Doubles:
    """Return the log-odds of the rare label by several models together."""
    chances = np.mean([model.predict_proba(X)[:, 1] for model in models], axis=0)
    return log_odds(chances, sum(map(n_averaged, models)) or _SMOOTH)


def log_odds(chances: Doubles, n_trees: float) -> Doubles:
    """Return log-odds of probabilities, kept away from 0 and 1 by half a tree."""
    rare, common = (
        np.log((share * n_trees + 0.5) / (n_trees + 1)) for share in (chances, 1 - chances)
    )
    return rare - common


def weighted_sum(scores: dict[str, Doubles], weights: dict[str, float]) -> Doubles:
    """Return the sum of the scores of all forms, each with its weight."""
    return np.sum([weights[form] * scores[form] for form in scores], axis=0)


# --- what unseen rows say -----------------------------------------------------------------------


class Line(NamedTuple):
    """The slope of a line from scores to log-odds, and the log-loss of these for each item."""

    slope: float
    losses: Doubles

    def gain_over(self, other: Line) -> float:
        """Return by how many standard errors of the difference the log-loss is lower."""
        gains = other.losses - self.losses
        error = gains.std() * np.sqrt(gains.size)
        return float(gains.sum() / error) if error > 0 else 0.0


def fit_line(scores: Doubles, is_rare: Mask) -> Line:
    """Fit log-odds as a line of scores, its slope pulled towards 1 and never negative.

    Examples
    --------
    Scores that say everything ten times as loudly as they should:

    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=10_000)
    >>> is_rare = rng.random(10_000) < 1 / (1 + np.exp(-log_odds))
    >>> round(fit_line(10 * log_odds, is_rare).slope, 2)
    0.1
    """
    labels = is_rare.astype(np.float64)

    def penalised(line: Doubles) -> tuple[float, Doubles]:
        fitted = line[0] + line[1] * scores
        wrong = expit(fitted) - labels
        loss = np.logaddexp(0, fitted).sum() - fitted @ labels + _PULL / 2 * (line[1] - 1) ** 2
        return float(loss), np.array([wrong.sum(), wrong @ scores + _PULL * (line[1] - 1)])

    bounds = [(None, None), (0.0, None)]
    found = minimize(penalised, [0.0, 1.0], jac=True, method="L-BFGS-B", bounds=bounds)
    fitted = found.x[0] + found.x[1] * scores
    return Line(float(found.x[1]), np.logaddexp(0, fitted) - fitted * labels)


def form_shares(lines: dict[str, Line]) -> dict[str, float]:
    """Return the parts that forms take in a member, by their log-loss on unseen rows.

    The first form is the one to prefer in doubt. Its odds against another one fall by a factor of
    e with each standard error by which that one is better. The largest part comes first.

    Examples
    --------
    >>> blurred, sharp = Line(1.0, np.array([0.7, 0.6, 0.8])), Line(1.0, np.array([0.3, 0.1, 0.2]))
    >>> form_shares({"flexible": blurred, "smooth": sharp})
    {'smooth': 1.0}
    >>> form_shares({"flexible": sharp, "smooth": sharp})
    {'flexible': 0.62, 'smooth': 0.38}
    """
    first, *others = lines
    gains = [0.0, *(lines[form].gain_over(lines[first]) - _DOUBT for form in others)]
    shares = dict(zip(lines, softmax(gains).tolist(), strict=True))
    kept = {form: share for form, share in shares.items() if share >= _LEAST_SHARE}
    in_order = sorted(kept, key=lambda form: -kept[form])
    return {form: round(kept[form] / sum(kept.values()), 2) for form in in_order}


def greedy_weights(scores: dict[str, Doubles], is_rare: Mask, max_flags: int) -> dict[str, float]:
    """Choose members one after the other, each time the one that raises the detection most.

    Parameters
    ----------
    scores : dict from str to ndarray of shape (n_items,)
        Scores of items that the members have not seen.
    is_rare : ndarray of bool, shape (n_items,)
        Which of the items are rare.
    max_flags : int
        How many of them can be followed up.

    Returns
    -------
    dict from str to float
        Weights that add up to 1.

    Examples
    --------
    >>> is_rare = np.arange(1_000) < 100
    >>> rng = np.random.default_rng(0)
    >>> good, bad = is_rare + rng.normal(size=1_000), rng.normal(size=1_000)
    >>> greedy_weights({"good": good, "bad": bad}, is_rare, 100)["good"] > 0.7
    True
    """
    start = _START + _START_OF_FEW / max(int(is_rare.sum()), 1)
    counts = dict.fromkeys(scores, start)
    mixture = start * np.sum(list(scores.values()), axis=0)
    around = {min(max(1, round(factor * max_flags)), is_rare.size) for factor in _AROUND}
    limits = [Capacity.count(count) for count in sorted(around)]
    for _ in range(_STEPS):
        found = {
            name: np.mean([detection_at_capacity(is_rare, mixture + own, k) for k in limits])
            for name, own in scores.items()
        }
        # A tie goes to the member that has been chosen least: towards equal weights.
        best = max(scores, key=lambda name: (found[name], -counts[name]))
        counts[best] += 1
        mixture = mixture + scores[best]
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def held_out_rows(codes: Rows, rng: np.random.Generator) -> Rows:
    """Return rows of a long table to choose weights by, of each class in its share."""
    parts = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        parts.append(rng.permutation(rows)[: round(_HELD_OUT * rows.size / codes.size)])
    return np.sort(np.concatenate(parts))
