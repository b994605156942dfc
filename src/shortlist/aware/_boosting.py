"""`CapacityAwareBoostingClassifier`: boosted trees, weighted and stopped for a capacity."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask
from .._core.folds import stratified_folds
from .._core.validation import check_count, check_number, check_option
from ..capacity import Capacity
from ._base import CapacityAwareBase
from ._booster_training import BOOSTING_LOSSES, BoosterSearch, Trainer, trained_for

__all__ = ["CapacityAwareBoostingClassifier"]

_LEAST_COUNTS = {"max_rounds": 1, "min_samples_leaf": 1, "num_leaves": 2, "max_bin": 2}


class CapacityAwareBoostingClassifier(CapacityAwareBase):
    r"""Boosted trees, weighted and stopped for detection at a capacity.

    Boosting for log loss keeps improving the probabilities of items that will never be flagged, and
    with few rare items it soon fits noise at the top. Here the trees learn with weights under which
    the Bayes rule flags exactly the capacity, later trees count less and less, and cross-validated
    detection within the capacity decides when to stop.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; weights, loss and rounds are chosen for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    loss : {"auto", "log-loss", "weighted", "blend", "detection"}, default="auto"
        What the trees are grown for:

        - "log-loss": all items count the same. Only the number of rounds is chosen for the
          capacity.
        - "weighted": log loss with the weights under which the Bayes rule flags exactly the
          capacity. They come from the modified prior of the paper, by a first pass of "log-loss".
        - "blend": the mean of both scores.
        - "detection": starting from "log-loss", the share of rare items missed at a smooth
          threshold that flags exactly the capacity. The threshold is solved for in each round.
        - "auto": "blend", unless "log-loss" or "weighted" alone detects more out of fold by more
          than two standard errors of the difference.
    max_rounds : int, default=400
        Largest number of rounds. Fewer are used if that detects more, by the same rule.
    learning_rate : float, default=0.03
        Learning rate of each round.
    num_leaves : int, default=3
        Number of leaves of each tree.
    min_samples_leaf : int, default=20
        Smallest number of items in a leaf.
    max_bin : int, default=31
        Largest number of bins of a feature.
    cv : int, default=5
        Number of folds on which loss and rounds are chosen.
    oob_score : bool, default=False
        Whether to keep `oob_scores_`, as ``CapacityClassifier(..., cv="oob")`` does.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.

    Attributes
    ----------
    boosters_ : list of lightgbm.Booster
        The score is the mean of their raw scores, or the sum with "detection".
    loss_ : str
        The loss in use.
    n_rounds_ : dict
        Number of rounds of each loss that was trained.
    rare_weight_ : float
        Weight of a rare item in "weighted"; a common item has weight 1.
    detection_ : dict
        Share of rare items detected out of fold, for each loss that was tried; with values, the
        share of their value.
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
    _takes_values = True

    def __init__(
        self,
        capacity: Capacity | None = None,
        *,
        loss: str = "auto",
        max_rounds: int = 400,
        learning_rate: float = 0.03,
        num_leaves: int = 3,
        min_samples_leaf: int = 20,
        max_bin: int = 31,
        cv: int = 5,
        oob_score: bool = False,
        rare_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.capacity = capacity
        self.loss = loss
        self.max_rounds = max_rounds
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_samples_leaf = min_samples_leaf
        self.max_bin = max_bin
        self.cv = cv
        self.oob_score = oob_score
        self.rare_label = rare_label
        self.random_state = random_state

    def _check_params(self) -> None:
        check_option("loss", self.loss, BOOSTING_LOSSES)
        if not 0 < float(check_number("learning_rate", self.learning_rate)) <= 1:
            raise ValueError(
                f"learning_rate must be greater than 0, and at most 1; got {self.learning_rate!r}."
            )
        for name, at_least in _LEAST_COUNTS.items():
            check_count(name, getattr(self, name), at_least=at_least)
        check_count("cv as a number of folds", self.cv, at_least=2)

    def _n_steps(self) -> int:
        return self.cv * len(trained_for(self.loss))

    def _learn(
        self,
        X: Doubles,
        is_rare: Mask,
        rng: np.random.Generator,
        worth: Doubles | None = None,
    ) -> None:
        search = BoosterSearch(
            X,
            is_rare,
            folds=stratified_folds(is_rare, self.cv, rng),
            trainer=Trainer(
                learning_rate=self.learning_rate,
                num_leaves=self.num_leaves,
                min_samples_leaf=self.min_samples_leaf,
                max_bin=self.max_bin,
                seed=int(rng.integers(2**31)),
            ),
            loss=self.loss,
            max_rounds=self.max_rounds,
            max_flags=self._learned_for.max_flags(is_rare.size),
            worth=worth,
        )
        tasks = search.tasks()
        for step in self._steps(len(tasks)):
            search.cross_fit(*tasks[step])
        search.train_on_all()
        self._keep(search)

    def _keep(self, search: BoosterSearch) -> None:
        self.boosters_, self.loss_ = search.boosters, search.loss
        self.rare_weight_ = search.rare_weight
        choices = {name: search.choice_of(name) for name in search.tried}
        self.n_rounds_ = {name: choices[name].n_rounds for name in search.trained}
        self.detection_ = {name: float(choice.found.mean()) for name, choice in choices.items()}
        if self.oob_score:
            self.oob_scores_ = np.full(search.is_rare.size, np.nan)
            self.oob_scores_[search.rows] = search.choice_of(self.loss_).scores

    def _sum_up(self, X: Doubles) -> Doubles:
        scores = [booster.predict(X, raw_score=True, num_threads=1) for booster in self.boosters_]
        return np.sum(scores, axis=0) if self.loss_ == "detection" else np.mean(scores, axis=0)
