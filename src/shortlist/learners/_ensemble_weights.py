"""What unseen rows say about the members of an ensemble: their form, their scale, their weight.

A line through the log-odds of unseen rows (Platt, 1999) says how far a member can be trusted: an
overconfident one has a slope far below 1. Its log-loss compares two forms of a member; it hears
every row, and so it tells them apart where few rare rows decide a detection. Where it hardly does,
both forms take part.

Weights: greedy selection with replacement, after Caruana, Niculescu-Mizil, Crew and Ksikes (2004),
from a start that has every member several times: few rare rows hardly move them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from .._core.arrays import Doubles, Mask, Rows
from .._core.scoring import take_rows
from ..capacity import Capacity
from ..metrics import detection_at_capacity

__all__ = [
    "FEWEST_JUDGED",
    "FEWEST_RARE",
    "LONG",
    "Line",
    "fit_line",
    "form_shares",
    "greedy_weights",
    "held_out_rows",
    "out_of_sample",
]

#: With fewer rows of a class, nothing is judged.
FEWEST_JUDGED = 10

#: With fewer rare rows, all weights are equal.
FEWEST_RARE = 30
#: Longer tables hold rows out for the weights; shorter ones score each row out of sample.
LONG = 50_000
_HELD_OUT = 20_000
_INNER_FOLDS = 3
_DOUBT = 0.5  # a second form must be better by so many standard errors to take an equal part
_LEAST_SHARE = 0.1  # a form with less is left out
_PULL = 1.0  # of a slope towards 1: as much as a row or two
_STEPS = 10
#: How often each member is there at the start: so many times, and more where rare rows are few.
_START, _START_OF_FEW = 3.0, 100.0
#: Narrower and wider capacities count, too: at one alone, few rows would decide.
_AROUND = (0.5, 1.0, 2.0)


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
    e with each standard error by which that one is better.

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
    return {form: round(share / sum(kept.values()), 2) for form, share in kept.items()}


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
    limits = _limits(max_flags, is_rare.size)
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


def _limits(max_flags: int, n_items: int) -> list[Capacity]:
    counts = {min(max(1, round(factor * max_flags)), n_items) for factor in _AROUND}
    return [Capacity.count(count) for count in sorted(counts)]


def held_out_rows(codes: Rows, rng: np.random.Generator) -> tuple[Rows | None, Rows | None]:
    """Return rows to learn from and rows to choose weights by; None twice for short tables."""
    if codes.size <= LONG:
        return None, None
    held_out = np.zeros(codes.size, dtype=bool)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        held_out[rng.permutation(rows)[: round(_HELD_OUT * rows.size / codes.size)]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def out_of_sample(
    model: Any, X: Any, codes: Rows, fit: Callable[[Any, Rows], Any], seed: int
) -> Doubles:
    """Return probabilities of training rows by models that have not seen them.

    Parameters
    ----------
    model : classifier
        Fitted. A forest has scored its rows out of bag.
    X, codes : items and the positions of their labels
        What it was fitted to.
    fit : callable
        Fits a model to some of the rows: ``fit(model, rows)``.
    seed : int
        Of the folds.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    if hasattr(model, "oob_decision_function_"):
        shares = np.array(model.oob_decision_function_, dtype=np.float64)
        unknown = ~(np.nan_to_num(shares).sum(axis=1) > 0)  # in the bag of every tree
        shares[unknown] = np.bincount(codes) / codes.size
        return shares
    shares = np.zeros((codes.size, int(codes.max()) + 1))
    folds = StratifiedKFold(_INNER_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        pairs = list(folds.split(codes, codes))
    for learn, unseen in pairs:
        fitted = fit(clone(model), learn)
        shares[unseen[:, np.newaxis], fitted.classes_] = fitted.predict_proba(take_rows(X, unseen))
    return shares
