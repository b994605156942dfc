"""`CapacityAwareBoostingClassifier`: boosted trees, weighted and stopped for a capacity.

How many rounds are best is uncertain when few items are rare. Instead of relying on one number,
scores are averaged over numbers of rounds that double; later trees therefore count less and less.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Doubles, Mask, Rows
from .._core.extras import load_extra
from .._core.folds import stratified_folds
from .._core.ranking import nth_largest
from .._core.validation import check_count, check_number
from ..capacity import Capacity
from ._base import CapacityAwareBase, detected, preferred

_FEWEST_ROUNDS = 25
_PER_DOUBLING = 2
# Weights of a rare item beyond which one class counts for nothing.
_LIGHTEST, _HEAVIEST = 0.01, 1000.0


@dataclass(eq=False, repr=False)
class CapacityAwareBoostingClassifier(CapacityAwareBase):
    r"""Boosted trees, weighted and stopped for detection at a capacity.

    Boosting for log loss keeps improving the probabilities of items that will never be flagged, and
    with few rare items it soon fits noise at the top. Here the trees learn with weights under which
    the Bayes rule flags exactly the capacity, later trees count less and less, and cross-validated
    detection within the capacity decides when to stop.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; weights and rounds are chosen for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    max_rounds : int, default=400
        Largest number of rounds. Fewer are used if that detects more out of fold, by more than two
        standard errors of the difference.
    learning_rate : float, default=0.03
        Learning rate of each round.
    num_leaves : int, default=3
        Number of leaves of each tree.
    cv : int, default=5
        Number of folds on which weights and rounds are chosen.
    oob_score : bool, default=False
        Whether to keep `oob_scores_`, as ``CapacityClassifier(..., cv="oob")`` does.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.

    Attributes
    ----------
    boosters_ : list of lightgbm.Booster
        The score is the mean of their raw scores.
    loss_ : str
        Which trees are in use: "log-loss", with equal weights; "weighted"; or "blend", the mean of
        both, unless one of them detects more out of fold by more than two standard errors.
    n_rounds_ : dict
        Number of rounds of "log-loss" and "weighted".
    rare_weight_ : float
        Weight of a rare item in "weighted"; a common item has weight 1.
    detection_ : dict
        Share of rare items detected out of fold by each of the three.
    oob_scores_ : ndarray of shape (n_items,)
        With `oob_score`: the score of each training item by the boosters of the other folds.
    offset_ : float
        The score at which the training items reach the capacity; `predict` compares with it.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_label_ : label
        The label to find.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    shortlist.CapacityClassifier : Cuts boosting, or any score, at the capacity.
    CapacityAwareForestClassifier : Needs no extra package.

    Notes
    -----
    Needs LightGBM, the extra `boosting`. Missing values (NaN) are allowed.

    The weights are those of the paper's modified prior; a first pass with equal weights finds them.

    Scores are averaged over the numbers of rounds 25, 35, 50, and so on, two in each doubling: the
    best number is uncertain, and the mean did better than any choice.

    ``CapacityClassifier(CapacityAwareBoostingClassifier(), capacity=..., cv="oob")`` takes one fit:
    its threshold comes from the scores by the boosters of the folds, and guarantees are then
    approximate. With few rounds there are few different scores, and the threshold is coarse.

    Examples
    --------
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.aware import CapacityAwareBoostingClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> boosting = CapacityAwareBoostingClassifier(max_rounds=100, random_state=0)
    >>> model = CapacityClassifier(boosting, capacity=Capacity.multiple(2), cv=0.5).fit(X, y)
    >>> bool(y[model.select(X)].mean() > 5 * y.mean())
    True
    """

    _takes_gaps = True

    capacity: Capacity | None = None
    _: KW_ONLY
    max_rounds: int = 400
    learning_rate: float = 0.03
    num_leaves: int = 3
    cv: int = 5
    oob_score: bool = False
    rare_label: Any = None
    random_state: Any = None

    def _check_params(self) -> None:
        if not 0 < float(check_number("learning_rate", self.learning_rate)) <= 1:
            raise ValueError(
                f"learning_rate must be greater than 0, and at most 1; got {self.learning_rate!r}."
            )
        check_count("max_rounds", self.max_rounds)
        check_count("num_leaves", self.num_leaves, at_least=2)
        check_count("cv as a number of folds", self.cv, at_least=2)

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        folds = stratified_folds(is_rare, self.cv, rng)
        trainer = Trainer(X, is_rare, self._settings(int(rng.integers(2**31))))
        max_flags = self._learned_for.max_flags(is_rare.size)
        plain = trainer.cross_fit(folds, 1.0, self.max_rounds, max_flags)
        # Under this weight, the Bayes rule flags exactly the capacity.
        log_odds = nth_largest(plain.scores, min(max_flags, is_rare.size - 1))
        self.rare_weight_ = float(np.clip(np.exp(-log_odds), _LIGHTEST, _HEAVIEST))
        weighted = trainer.cross_fit(folds, self.rare_weight_, self.max_rounds, max_flags)
        mean = (plain.scores + weighted.scores) / 2
        blend = Choice(0, mean, detected(mean, is_rare, max_flags))
        tried = {"blend": blend, "log-loss": plain, "weighted": weighted}
        self.loss_ = list(tried)[preferred([choice.found for choice in tried.values()])]
        self._keep(trainer, tried)

    def _settings(self, seed: int) -> dict[str, Any]:
        return {
            "objective": "binary",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": 20,
            "max_bin": 31,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }

    def _keep(self, trainer: Trainer, tried: dict[str, Choice]) -> None:
        """Train what is in use on all items."""
        weights = {"log-loss": 1.0, "weighted": self.rare_weight_}
        self.n_rounds_ = {name: tried[name].n_rounds for name in weights}
        self.detection_ = {name: float(choice.found.mean()) for name, choice in tried.items()}
        everything = np.ones(trainer.is_rare.size, dtype=bool)
        self.boosters_ = [
            faded(trainer.train(everything, n_rounds, weights[name]), round_numbers(n_rounds))
            for name, n_rounds in self.n_rounds_.items()
            if self.loss_ in ("blend", name)
        ]
        if self.oob_score:
            self.oob_scores_ = tried[self.loss_].scores

    def _sum_up(self, X: Doubles) -> Doubles:
        scores = [booster.predict(X, raw_score=True, num_threads=1) for booster in self.boosters_]
        return np.mean(scores, axis=0)


class Choice(NamedTuple):
    """A number of rounds, its out-of-fold scores, and each rare item's chance of detection."""

    n_rounds: int
    scores: Doubles
    found: Doubles


class Trainer(NamedTuple):
    """Trains boosters of LightGBM with given settings."""

    X: Doubles
    is_rare: Mask
    settings: dict[str, Any]

    def train(self, rows: Mask, n_rounds: int, rare_weight: float) -> Any:
        """Train with log loss, in which rare items have a weight."""
        is_rare = self.is_rare[rows]
        weights = np.where(is_rare, rare_weight, 1.0)
        data = _lightgbm().Dataset(self.X[rows], is_rare, weight=weights)
        return _lightgbm().train(self.settings, data, n_rounds)

    def cross_fit(self, folds: Rows, rare_weight: float, max_rounds: int, max_flags: int) -> Choice:
        """Choose the number of rounds: the largest, if no smaller one clearly detects more."""
        rounds = round_numbers(max_rounds)
        staged = np.empty((len(rounds), folds.size))
        for fold in range(int(folds.max()) + 1):
            unseen = folds == fold
            booster = self.train(~unseen, max_rounds, rare_weight)
            staged[:, unseen] = fading_scores(booster, self.X[unseen], rounds)
        found = [detected(scores, self.is_rare, max_flags) for scores in staged[::-1]]
        place = len(rounds) - 1 - preferred(found)
        return Choice(rounds[place], staged[place], found[len(rounds) - 1 - place])


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


def fading_scores(booster: Any, X: Doubles, rounds: list[int]) -> Doubles:
    """Return a row for each number of rounds: the mean score over all numbers up to it."""
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
