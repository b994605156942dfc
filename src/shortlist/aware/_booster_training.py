"""Boosters of LightGBM for a capacity, and the search for their loss and their number of rounds.

How many rounds are best is uncertain when few items are rare. Instead of relying on one number,
scores are averaged over numbers of rounds that double; later trees therefore count less and less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Doubles, Mask, Rows
from .._core.extras import load_extra
from .._core.ranking import nth_largest
from ._evidence import detected, preferred
from ._top_losses import detection_loss

__all__ = [
    "BOOSTING_LOSSES",
    "BoosterSearch",
    "RoundChoice",
    "Trainer",
    "faded",
    "fading_scores",
    "round_numbers",
    "trained_for",
]

BOOSTING_LOSSES = ("auto", "log-loss", "weighted", "blend", "detection")

_FEWEST_ROUNDS = 25
_PER_DOUBLING = 2
# Of the loss for detection, which is flat far from the threshold: in units of one rare item.
_LEAST_CURVATURE, _PENALTY = 1e-3, 10.0
# Weights of a rare item beyond which one class counts for nothing.
_LIGHTEST, _HEAVIEST = 0.01, 1000.0


class BoosterSearch:
    """Cross-fits boosters with each loss needed, and trains the preferred ones on all items.

    Parameters
    ----------
    X, is_rare
        All items.
    folds : ndarray of shape (n_items,)
        The fold of each item.
    trainer : Trainer
        Settings of the boosters.
    loss : str
        One of `BOOSTING_LOSSES`.
    max_rounds, max_flags : int
        Largest number of rounds; how many of all items may be flagged.
    worth : ndarray of shape (n_items,), default=None
        How much each item counts; 1 on average over rare items.
    """

    def __init__(
        self,
        X: Doubles,
        is_rare: Mask,
        *,
        folds: Rows,
        trainer: Trainer,
        loss: str,
        max_rounds: int,
        max_flags: int,
        worth: Doubles | None = None,
    ) -> None:
        self.X, self.is_rare, self.folds, self.worth = X, is_rare, folds, worth
        self.trainer, self.requested, self.max_flags = trainer, loss, max_flags
        self.rounds = round_numbers(max_rounds)
        shape = (len(self.rounds), is_rare.size)
        self.staged = {name: np.full(shape, np.nan) for name in trained_for(loss)}
        self.boosters: list[Any] = []
        self._starts: list[Any] = []  # boosters by plain log loss, one for each fold

    def tasks(self) -> list[tuple[str, int]]:
        """Return the losses and folds to be cross-fitted, in this order."""
        return [(name, fold) for name in self.staged for fold in range(int(self.folds.max()) + 1)]

    @property
    def rows(self) -> Rows:
        """The items with out-of-fold scores: all, unless a callback stopped the search."""
        return np.flatnonzero(~np.isnan(self.staged["log-loss"][0]))

    @property
    def trained(self) -> list[str]:
        """The losses to choose from: plain log loss, and those cross-fitted on all folds."""
        others = [name for name in self.staged if name != "log-loss"]
        complete = [name for name in others if not np.isnan(self.staged[name]).any()]
        return ["log-loss", *complete]

    @property
    def tried(self) -> list[str]:
        """What was trained, preceded by "blend" if that was requested."""
        can_blend = "weighted" in self.trained and self.requested in ("auto", "blend")
        return (["blend"] if can_blend else []) + self.trained

    @cached_property
    def loss(self) -> str:
        """The loss in use: the one requested, or the first that no other clearly beats."""
        if self.requested != "auto":
            return self.requested if self.requested in self.tried else "log-loss"
        return self.tried[preferred([self.choice_of(name).found for name in self.tried])]

    @cached_property
    def rare_weight(self) -> float:
        """The weight under which the Bayes rule for plain log loss flags exactly the capacity."""
        scores = self.choice_of("log-loss").scores
        log_odds = nth_largest(scores, min(self.max_flags, scores.size - 1))
        return float(np.clip(np.exp(-log_odds), _LIGHTEST, _HEAVIEST))

    def choice_of(self, loss: str) -> RoundChoice:
        """Choose the number of rounds: the largest, if no smaller one clearly detects more."""
        if loss == "blend":
            scores = (self.choice_of("log-loss").scores + self.choice_of("weighted").scores) / 2
            return RoundChoice(0, scores, self._found(scores))
        rounds, staged = self.rounds[::-1], self.staged[loss][::-1, self.rows]
        if loss == "detection":  # the smallest, which is 0, if no larger one does
            plain = self.choice_of("log-loss").scores
            rounds, staged = [0, *self.rounds], np.vstack([plain, plain + self.staged[loss]])
        found = [self._found(scores) for scores in staged]
        place = preferred(found)
        return RoundChoice(rounds[place], staged[place], found[place])

    def _found(self, scores: Doubles) -> Doubles:
        max_flags = self.max_flags * self.rows.size // self.is_rare.size
        is_rare = self.is_rare[self.rows]
        found = detected(scores, is_rare, max_flags)
        return found if self.worth is None else found * self.worth[self.rows][is_rare]

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
        worth = None if self.worth is None else self.worth[rows]
        if loss == "detection":
            rounds = round_numbers(self.choice_of("log-loss").n_rounds)
            return self.trainer.train_for_detection(
                X,
                is_rare,
                n_rounds,
                start=fading_scores(start, X, rounds)[-1],
                fraction=self.max_flags / self.is_rare.size,
                worth=worth,
            )
        weights = np.where(is_rare, self.rare_weight if loss == "weighted" else 1.0, 1.0)
        weights = weights if worth is None else weights * worth
        return self.trainer.train(X, is_rare, n_rounds, weights)

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


class RoundChoice(NamedTuple):
    """A number of rounds, its out-of-fold scores, and each rare item's chance of detection."""

    n_rounds: int
    scores: Doubles
    found: Doubles


def trained_for(loss: str) -> list[str]:
    """Return the losses to train for a requested one.

    Weights, and the start of "detection", come from plain log loss.
    """
    return ["log-loss", *{"log-loss": [], "detection": ["detection"]}.get(loss, ["weighted"])]


def round_numbers(max_rounds: int) -> list[int]:
    """Return the numbers of rounds that scores are averaged over, two in each doubling.

    Examples
    --------
    >>> round_numbers(100)
    [25, 35, 50, 71, 100]
    >>> round_numbers(10)
    [10]
    """
    n_doublings = np.log2(max(max_rounds / _FEWEST_ROUNDS, 1))
    steps = np.arange(int(n_doublings * _PER_DOUBLING + 1e-9) + 1)
    numbers = {round(_FEWEST_ROUNDS * 2 ** (step / _PER_DOUBLING)) for step in steps}
    return [*sorted(number for number in numbers if number < max_rounds), max_rounds]


@dataclass(frozen=True)
class Trainer:
    """Trains boosters with given settings of LightGBM."""

    learning_rate: float
    num_leaves: int
    min_samples_leaf: int
    max_bin: int
    seed: int

    def train(
        self, X: Doubles, is_rare: Mask, n_rounds: int, weights: Doubles | None = None
    ) -> Any:
        """Train with log loss, in which items count by their weights."""
        data = _lightgbm().Dataset(X, is_rare, weight=weights)
        return self._run(data, n_rounds, objective="binary")

    def train_for_detection(
        self,
        X: Doubles,
        is_rare: Mask,
        n_rounds: int,
        *,
        start: Doubles,
        fraction: float,
        worth: Doubles | None = None,
    ) -> Any:
        """Continue from given scores to detect more within a fraction; the threshold moves along.

        Returns None if no feature can be split.
        """
        n_rare = np.count_nonzero(is_rare)
        size = start.std() or 1.0  # the loss expects scores that start with a deviation of 1

        def slopes(scores: Doubles, _: Any) -> tuple[Doubles, Doubles]:
            pulls = n_rare * detection_loss(scores / size, is_rare, fraction, worth).gradient
            return pulls, np.abs(pulls) + _LEAST_CURVATURE

        data = _lightgbm().Dataset(X, is_rare, init_score=start, params=self._settings())
        data.construct()
        if all(data.feature_num_bin(feature) < 2 for feature in range(X.shape[1])):
            return None  # LightGBM would fail
        return self._run(data, n_rounds, objective=slopes, lambda_l2=_PENALTY)

    def _run(self, data: Any, n_rounds: int, **options: Any) -> Any:
        return _lightgbm().train({**self._settings(), **options}, data, n_rounds)

    def _settings(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_samples_leaf,
            "max_bin": self.max_bin,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }


def fading_scores(booster: Any, X: Doubles, rounds: list[int]) -> Doubles:
    """Return a row for each number of rounds: the mean score over all numbers up to it."""
    if booster is None:
        return np.zeros((len(rounds), len(X)))
    scores = [booster.predict(X, raw_score=True, num_iteration=n, num_threads=1) for n in rounds]
    return np.cumsum(scores, axis=0) / np.arange(1, len(rounds) + 1)[:, np.newaxis]


def faded(booster: Any, rounds: list[int]) -> Any:
    """Return a booster whose plain score is the last row of `fading_scores`.

    It is read from text, contains no data and no functions, and can be stored anywhere.
    """
    copy = _lightgbm().Booster(model_str=booster.model_to_string())
    for tree, described in enumerate(copy.dump_model()["tree_info"]):
        share = np.mean(np.array(rounds) > tree)
        for leaf in range(described["num_leaves"]):
            copy.set_leaf_output(tree, leaf, share * copy.get_leaf_output(tree, leaf))
    return _lightgbm().Booster(model_str=copy.model_to_string())


def _lightgbm() -> Any:
    return load_extra(
        "lightgbm",
        needed_for="CapacityAwareBoostingClassifier",
        otherwise="CapacityAwareForestClassifier needs no extra package.",
    )
