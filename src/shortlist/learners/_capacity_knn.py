"""`CapacityKNeighborsClassifier`: how many neighbours, and how many votes, for a capacity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Mask, Rows
from .._core.folds import (
    Unseen,
    check_cv_option,
    check_enough_rare,
    forget,
    hold_out,
    holds_out,
)
from .._core.labels import find_rare
from .._core.scoring import Scores
from .._core.validation import check_option, check_seed
from ..capacity import Capacity, check_capacity
from ..classifier import CapacityDecisionMixin, calibrator_of, check_promise
from ..thresholds import Decisions
from ._choice import TIE_BREAKS, best_column, candidate_numbers, detections, vote_surface
from ._kernel_knn import NeighborVotesMixin, rare_shares
from ._neighbors import check_enough_rows

__all__ = ["CapacityKNeighborsClassifier"]

SELECTIONS = ("auto", "calibration", "training")


class CapacityKNeighborsClassifier(
    CapacityDecisionMixin, NeighborVotesMixin, ClassifierMixin, BaseEstimator
):
    r"""Weighted nearest neighbours whose number is chosen for detection under a capacity.

    An item is flagged when the weighted share of rare neighbours exceeds :math:`1 - a_0`. The
    number of neighbours k and the vote weight :math:`a_0` are chosen together, as those that find
    the most rare items within the capacity (section 4.1 of the paper). All k come from one search
    of neighbours.

    Parameters
    ----------
    capacity : Capacity
        How much can be followed up.
    n_neighbors : int or sequence of int, default=50
        The numbers of neighbours to choose from: 1 to the given number, or those listed.
    kernel : str, default="gaussian"
        As for :class:`KernelKNeighborsClassifier`.
    scale : bool, default=True
        Divide each feature by its standard deviation.
    algorithm : {"auto", "brute", "tree", "approximate"}, default="auto"
        As for :class:`KernelKNeighborsClassifier`.
    tie_break : {"smallest", "largest"}, default="largest"
        Which k to take when several find equally many rare items. The largest gives the smoothest
        scores, and the fewest ties at the threshold.
    selection : {"auto", "calibration", "training"}, default="auto"
        Where k is chosen: on the calibration items, together with :math:`a_0`, as in the paper; or
        on the training items, each scored by the others, which leaves the calibration items
        untouched, so that every guarantee holds. "auto" takes the first for the guarantee
        "plug-in", and the second for the others.
    rare_label : label, default=None
        The label that is looked for; `None` takes the rarest in `y`.
    cv : float, default=0.5
        Share of the data held out for calibration.
    prevalence, segment_capacities, default_segment_capacity, guarantee, confidence, n_batches, ties
        As for :class:`~shortlist.CapacityClassifier`.
    random_state : int, RandomState instance or None, default=None
        Controls the split, and is the key of the hash.

    Attributes
    ----------
    n_neighbors_ : int
        The chosen number of neighbours.
    a0_ : float
        Weight of a rare vote against :math:`a_1 = 1 - a_0` of a common one.
    candidates_ : ndarray
        The numbers of neighbours that were compared.
    detections_ : ndarray
        For each of them, the share of rare items found within the capacity where k was chosen.
    surface_ : VoteSurface
        For each of them and every :math:`a_0`, the shares of all items and of rare items that are
        flagged where k was chosen.
    classes_, rare_label_, prevalence_, rule_, threshold_, calibration_, capacity_fraction_
        As for :class:`~shortlist.CapacityClassifier`.

    See Also
    --------
    KernelKNeighborsClassifier : The same votes for a given number of neighbours.

    Notes
    -----
    Since :math:`a_0 < 1`, an item without any rare neighbour is never flagged, also where the
    capacity would allow it; `select` fills the capacity with such items if need be.
    `with_capacity` and `recalibrate` change :math:`a_0` and keep k.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.datasets import make_fraud
    >>> from shortlist.learners import CapacityKNeighborsClassifier
    >>> X, y = make_fraud(4_000, prevalence=0.02)
    >>> model = CapacityKNeighborsClassifier(Capacity.multiple(2), random_state=0).fit(X, y)
    >>> bool(1 <= model.n_neighbors_ <= 50 and 0 < model.a0_ < 1)
    True
    """

    def __init__(
        self,
        capacity: Capacity,
        *,
        n_neighbors: Any = 50,
        kernel: str = "gaussian",
        scale: bool = True,
        algorithm: str = "auto",
        tie_break: str = "largest",
        selection: str = "auto",
        rare_label: Any = None,
        cv: float = 0.5,
        prevalence: Any = None,
        segment_capacities: dict[Any, Capacity | None] | None = None,
        default_segment_capacity: Capacity | None = None,
        guarantee: str = "expected",
        confidence: float = 0.95,
        n_batches: int = 1,
        ties: str = "hash",
        random_state: Any = None,
    ) -> None:
        self.capacity = capacity
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.scale = scale
        self.algorithm = algorithm
        self.tie_break = tie_break
        self.selection = selection
        self.rare_label = rare_label
        self.cv = cv
        self.prevalence = prevalence
        self.segment_capacities = segment_capacities
        self.default_segment_capacity = default_segment_capacity
        self.guarantee = guarantee
        self.confidence = confidence
        self.n_batches = n_batches
        self.ties = ties
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose k and the threshold together.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,)
            Labels.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, if segments have capacities.
        groups : array-like of shape (n_items,), default=None
            The group of each item, if several belong together: whole groups are held out, and the
            promise is about an item of a new group.

        Returns
        -------
        self
        """
        # Should this fit fail, an earlier threshold must not meet new neighbours.
        forget(self)
        candidates = self._check_params()
        seed = check_seed(self.random_state)
        # Hashed ties are keyed by the rows as they were given, as they will be in predict.
        given = X
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        is_rare = self._learn_labels(y)
        calibrator = calibrator_of(self, given, is_rare, ids, segments, seed=seed, groups=groups)
        self._learned_for = self.capacity.as_ratio(calibrator.terms.reference.value)
        rng = np.random.default_rng(None if self.random_state is None else seed)
        train, held_out = hold_out(is_rare.astype(np.intp), self.cv, rng, calibrator.group_of)
        check_enough_rows(int(candidates[-1]), train.size)
        self._remember(X[train], y[train])
        scores = self._choose(X[held_out], is_rare, train, held_out, candidates)
        self.rule_ = calibrator.rule([Unseen(held_out, scores)])
        return self

    @property
    def a0_(self) -> float:
        """The weight of a rare vote; 0 where nothing can be flagged."""
        check_is_fitted(self)
        return float(1 - np.clip(self.threshold_, 0.0, 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Under a capacity, accuracy is not what is asked for.
        tags.classifier_tags.poor_score = True
        return tags

    @property
    def _n_voters(self) -> int:
        return self.n_neighbors_

    # --- fitting --------------------------------------------------------------------------------

    def _check_params(self) -> Rows:
        """Check all parameters, and return the numbers of neighbours to choose from."""
        check_capacity(self.capacity)
        check_promise(self)
        self._check_votes()
        check_option("tie_break", self.tie_break, TIE_BREAKS)
        check_option("selection", self.selection, SELECTIONS)
        if not holds_out(self.cv):
            raise ValueError(
                f"cv must be a float, the share of the data held out; got {self.cv!r}."
            )
        check_cv_option(self.cv)
        candidates = candidate_numbers(self.n_neighbors)
        chosen_on_calibration = self.selection == "calibration" and candidates.size > 1
        if chosen_on_calibration and self.guarantee != "plug-in":
            raise ValueError(
                f"guarantee={self.guarantee!r} needs calibration items that had no part in the "
                "choice of k. Use selection='training', or guarantee='plug-in'."
            )
        return candidates

    def _learn_labels(self, y: Any) -> Mask:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs items of two classes or more; got only one class, "
                f"{self.classes_.tolist()}. In cross-validation, use stratified folds."
            )
        is_rare, self.rare_label_ = find_rare(y, self.rare_label, on_tie="warn")
        check_enough_rare(is_rare, self.rare_label_)
        return is_rare

    def _choose(
        self, X: Any, is_rare: Mask, train: Rows, held_out: Rows, candidates: Rows
    ) -> NDArray[np.float64]:
        """Set the number of neighbours, and return the scores of the calibration items for it."""
        largest = int(candidates[-1])
        unseen = self._neighbors.query(X, largest + 1)
        on_calibration = self.selection == "calibration" or (
            self.selection == "auto" and self.guarantee == "plug-in"
        )
        self.candidates_ = candidates
        if on_calibration or candidates.size == 1:
            shares = self._shares(unseen, is_rare[train], candidates)
            column = self._best(shares, is_rare[held_out])
            return shares[:, column]
        # A training row has one neighbour less, and must leave one to scale by.
        check_enough_rows(largest + 1, train.size)
        others = self._neighbors.query_training(largest + 1)
        column = self._best(self._shares(others, is_rare[train], candidates), is_rare[train])
        return self._shares(unseen, is_rare[train], candidates[[column]])[:, 0]

    def _shares(self, found: tuple[Any, Rows], is_rare: Mask, candidates: Rows) -> Any:
        return rare_shares(
            found[0],
            is_rare[found[1][:, : candidates[-1]]],
            n_neighbors=candidates,
            kernel=self.kernel,
            n_features=self.n_features_in_,
        )

    def _best(self, shares: Any, is_rare: Mask) -> int:
        """Set what the best number of neighbours finds, and return its column."""
        capacity = Capacity.fraction(self._learned_for)
        self.surface_ = vote_surface(shares, is_rare, self.candidates_)
        self.detections_ = detections(shares, is_rare, capacity, ties=self.ties)
        column = best_column(self.detections_, tie_break=self.tie_break)
        self.n_neighbors_ = int(self.candidates_[column])
        return column

    # --- deciding -------------------------------------------------------------------------------

    def decide(self, X: Any, **known: Any) -> Decisions:
        """Decide as the rule does, but never flag an item without a rare neighbour: no a0 does."""
        decisions = super().decide(X, **known)
        return replace(decisions, flagged=decisions.flagged & (decisions.scores > 0))

    def _score(self, X: Any, model: int | None = None) -> Scores:
        shares = self.predict_proba(X)
        return Scores(shares[:, self._rare_index], shares if self.classes_.size > 2 else None)
