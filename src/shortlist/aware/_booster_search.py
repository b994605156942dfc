"""The search of `CapacityAwareBoostingClassifier`: out-of-fold scores, and what they lead to."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._core.ranking import nth_largest
from ._boosters import Floats, Mask, Trainer, faded, fading_scores, round_numbers
from ._evidence import Places, detected, preferred

__all__ = ["LOSSES", "BoosterSearch", "Choice", "trained_for"]

LOSSES = ("auto", "log-loss", "weighted", "blend", "detection")
# Beyond these, one class weighs nothing.
_LIGHTEST, _HEAVIEST = 0.01, 1000.0


def trained_for(loss: str) -> list[str]:
    """Return the losses that are trained when one is asked for.

    Weights, and the start of "detection", come from plain log loss.
    """
    return ["log-loss", *{"log-loss": [], "detection": ["detection"]}.get(loss, ["weighted"])]


class Choice(NamedTuple):
    """A number of rounds, its out-of-fold scores, and the chance of each rare item with them."""

    n_rounds: int
    scores: Floats
    found: Floats


class BoosterSearch:
    """Cross-fits boosters by each loss that is needed, and trains the preferred ones on everything.

    Parameters
    ----------
    X, is_rare
        All items.
    folds : ndarray of shape (n_items,)
        The fold of each item.
    trainer : Trainer
        Settings of the boosters.
    loss : str
        One of `LOSSES`.
    max_rounds, max_flags : int
        Largest number of rounds; how many of all items may be flagged.
    """

    def __init__(
        self,
        X: Floats,
        is_rare: Mask,
        *,
        folds: Places,
        trainer: Trainer,
        loss: str,
        max_rounds: int,
        max_flags: int,
    ) -> None:
        self.X, self.is_rare, self.folds = X, is_rare, folds
        self.trainer, self.asked, self.max_flags = trainer, loss, max_flags
        self.rounds = round_numbers(max_rounds)
        shape = (len(self.rounds), is_rare.size)
        self.staged = {name: np.full(shape, np.nan) for name in trained_for(loss)}
        self.boosters: list[Any] = []
        self._starts: list[Any] = []  # boosters by plain log loss, one for each fold

    def tasks(self) -> list[tuple[str, int]]:
        """Return the losses and folds to be cross-fitted, in this order."""
        return [(name, fold) for name in self.staged for fold in range(int(self.folds.max()) + 1)]

    @property
    def rows(self) -> Places:
        """The items that have out-of-fold scores: all, if nobody has stopped the search."""
        return np.flatnonzero(~np.isnan(self.staged["log-loss"][0]))

    @property
    def trained(self) -> list[str]:
        """The losses to choose from: plain log loss, and what came to its end."""
        others = [name for name in self.staged if name != "log-loss"]
        complete = [name for name in others if not np.isnan(self.staged[name]).any()]
        return ["log-loss", *complete]

    @property
    def tried(self) -> list[str]:
        """What was trained, after the mean of it if that was asked for."""
        can_blend = "weighted" in self.trained and self.asked in ("auto", "blend")
        return (["blend"] if can_blend else []) + self.trained

    @cached_property
    def loss(self) -> str:
        """The loss in use: the one asked for, or the first that no other clearly beats."""
        if self.asked != "auto":
            return self.asked if self.asked in self.tried else "log-loss"
        return self.tried[preferred([self.choice_of(name).found for name in self.tried])]

    @cached_property
    def rare_weight(self) -> float:
        """The weight under which plain log loss flags by the rule of Bayes what it may flag."""
        scores = self.choice_of("log-loss").scores
        log_odds = nth_largest(scores, min(self.max_flags, scores.size - 1))
        return float(np.clip(np.exp(-log_odds), _LIGHTEST, _HEAVIEST))

    def choice_of(self, loss: str) -> Choice:
        """Choose the length of a loss: the longest, if no shorter one clearly detects more."""
        if loss == "blend":
            scores = (self.choice_of("log-loss").scores + self.choice_of("weighted").scores) / 2
            return Choice(0, scores, self._found(scores))
        rounds, staged = self.rounds[::-1], self.staged[loss][::-1, self.rows]
        if loss == "detection":  # the shortest, which is none, if no longer one does
            plain = self.choice_of("log-loss").scores
            rounds, staged = [0, *self.rounds], np.vstack([plain, plain + self.staged[loss]])
        found = [self._found(scores) for scores in staged]
        place = preferred(found)
        return Choice(rounds[place], staged[place], found[place])

    def _found(self, scores: Floats) -> Floats:
        max_flags = self.max_flags * self.rows.size // self.is_rare.size
        return detected(scores, self.is_rare[self.rows], max_flags)

    def cross_fit(self, loss: str, fold: int) -> None:
        """Train without one fold, and score it."""
        unseen = self.folds == fold
        start = self._starts[fold] if loss == "detection" else None
        booster = self._train(loss, ~unseen, self.rounds[-1], start)
        self.staged[loss][:, unseen] = fading_scores(booster, self.X[unseen], self.rounds)
        if loss == "log-loss":
            self._starts.append(booster)

    def _train(self, loss: str, rows: Mask, n_rounds: int, start: Any) -> Any:
        X, is_rare = self.X[rows], self.is_rare[rows]
        if loss == "detection":
            rounds = round_numbers(self.choice_of("log-loss").n_rounds)
            return self.trainer.train_for_detection(
                X,
                is_rare,
                n_rounds,
                start=fading_scores(start, X, rounds)[-1],
                fraction=self.max_flags / self.is_rare.size,
            )
        weight = self.rare_weight if loss == "weighted" else 1.0
        return self.trainer.train(X, is_rare, n_rounds, rare_weight=weight)

    def train_on_all(self) -> None:
        """Train what is in use on all items."""
        everything = np.ones(self.is_rare.size, dtype=bool)
        needed = {"blend": ["log-loss", "weighted"], "detection": ["log-loss", "detection"]}
        start = None
        for loss in needed.get(self.loss, [self.loss]):
            n_rounds = self.choice_of(loss).n_rounds
            if n_rounds:
                start = self._train(loss, everything, n_rounds, start)
                self.boosters.append(faded(start, round_numbers(n_rounds)))
