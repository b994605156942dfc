"""Small boosters of LightGBM, trained by weighted log loss or for detection, that fade out.

How many rounds are best is uncertain when few items are rare. Instead of betting on one number,
scores are averaged over numbers of rounds that double; so later trees count less and less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learners._lightgbm import load_lightgbm
from ._top_losses import detection_loss

__all__ = ["Trainer", "faded", "fading_scores", "round_numbers"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FEWEST_ROUNDS = 25
_PER_DOUBLING = 2
# Of the loss for detection, which is flat far from the threshold: in units of one rare item.
_LEAST_CURVATURE, _PENALTY = 1e-3, 10.0


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

    def train(self, X: Floats, is_rare: Mask, n_rounds: int, *, rare_weight: float = 1.0) -> Any:
        """Train by log loss, in which a rare item weighs `rare_weight` common ones."""
        data = _lightgbm().Dataset(X, is_rare, weight=np.where(is_rare, rare_weight, 1.0))
        return self._run(data, n_rounds, objective="binary")

    def train_for_detection(
        self, X: Floats, is_rare: Mask, n_rounds: int, *, start: Floats, fraction: float
    ) -> Any:
        """Go on from given scores to detect more within a fraction, whose cut moves along.

        Without a feature to split on, there is nothing to train, and None is returned.
        """
        n_rare = np.count_nonzero(is_rare)
        size = start.std() or 1.0  # the loss is made for scores that start with a deviation of 1

        def slopes(scores: Floats, _: Any) -> tuple[Floats, Floats]:
            pulls = n_rare * detection_loss(scores / size, is_rare, fraction).gradient
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


def fading_scores(booster: Any, X: Floats, rounds: list[int]) -> Floats:
    """Return a row for each number of rounds: the mean score over all numbers up to it."""
    if booster is None:
        return np.zeros((len(rounds), len(X)))
    scores = [booster.predict(X, raw_score=True, num_iteration=n, num_threads=1) for n in rounds]
    return np.cumsum(scores, axis=0) / np.arange(1, len(rounds) + 1)[:, np.newaxis]


def faded(booster: Any, rounds: list[int]) -> Any:
    """Return a booster whose plain score is the last row of `fading_scores`.

    It is read from text, holds no data and no functions, and can be stored anywhere.
    """
    copy = _lightgbm().Booster(model_str=booster.model_to_string())
    for tree, described in enumerate(copy.dump_model()["tree_info"]):
        share = np.mean(np.array(rounds) > tree)
        for leaf in range(described["num_leaves"]):
            copy.set_leaf_output(tree, leaf, share * copy.get_leaf_output(tree, leaf))
    return _lightgbm().Booster(model_str=copy.model_to_string())


def _lightgbm() -> Any:
    return load_lightgbm("CapacityAwareBoostingClassifier", instead="CapacityAwareForestClassifier")
