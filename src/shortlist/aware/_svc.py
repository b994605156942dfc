"""`CapacityAwareSVC`: few support vectors, chosen one by one for detection within a capacity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import SVC

from .._core.arrays import Doubles, Mask, Rows
from .._core.validation import check_count, check_option
from .._wrapping.fitting import Unseen, hold_out
from ..capacity import Capacity
from ._base import CapacityAwareBase
from ._evidence import WIDER, detected_within, preferred, wider_limits
from ._expansion import Expansion, Kernel, find_gamma, mean_of
from ._greedy import GreedyPath, greedy_path
from ._swaps import Swap, draw_swaps

__all__ = ["CapacityAwareSVC"]

KERNELS = ("rbf", "linear", "poly", "sigmoid")
VARIANTS = ("all", "best-prefix", "stop")
TIE_BREAKS = ("first", "wider")
SELECTIONS = ("paper", "cross-fit")

# What cv="auto" holds out.
_HELD_OUT = {"paper": 0.5, "cross-fit": 0.25}


class _Choice(NamedTuple):
    """The few support vectors in use, the path they come from, and what it detected."""

    few: Expansion
    path: Rows
    detection: Doubles


class _Outcome(NamedTuple):
    """The choices of a swap, and who of the rare items left out was found: by few, by all."""

    choices: list[_Choice]
    by_few: Doubles
    by_all: Doubles


class CapacityAwareSVC(CapacityAwareBase):
    r"""A support vector machine reduced to the support vectors that detect most at a capacity.

    A standard fit gives support vectors with coefficients. Starting from none, each step adds the
    one that, together with those before it, finds most rare items within the capacity on data
    that the machine has not seen. The score is the sum over the chosen ones, without intercept.

    Parameters
    ----------
    capacity : Capacity
        How much can be followed up; the support vectors are chosen for it.
    C : float, default=1.0
        Penalty of the support vector machine.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        Kernel; features should be standardised.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernel, as in :class:`~sklearn.svm.SVC`.
    max_support : int, default=30
        How many support vectors to choose.
    variant : {"all", "best-prefix", "stop"}, default="all"
        How much of the path is used: all of it; up to its highest detection; or up to the first
        step that detects no more than the one before.
    tie_break : {"wider", "first"}, default="wider"
        Most steps tie. "wider" takes the support vector that detects most within 2, 4 and 8 times
        the capacity, in this order; what ties still, and everything with "first", goes
        to the one that comes first in the data. The paper does not say.
    selection : {"cross-fit", "paper"}, default="cross-fit"
        Where the support vectors are chosen.

        - "paper": the machine is fitted on one part of the data; support vectors are chosen, and
          the threshold is set, on the part held out. The scores then fit the calibration items
          better than any later ones, and only ``guarantee="plug-in"`` is available.
        - "cross-fit": the part held out serves for the threshold only, and every guarantee holds.
          The rest is halved, each half chooses among the support vectors of the other, and this
          is repeated `n_swaps` times; the score is the mean of all sums.
    cv : float or "auto", default="auto"
        Share of the data held out; "auto" is a quarter, and a half with ``selection="paper"``.
    n_swaps : int, default=5
        How often "cross-fit" halves the data, fitting two machines, or three with `fall_back`.
    fall_back : bool, default=True
        Whether "cross-fit" may use a whole machine, fitted on all but the items for the threshold,
        instead of the chosen few. Each swap then leaves some items out, in turn, and compares what
        the few and a machine fitted on the rest detect among them, on average within the capacities
        that `tie_break` looks at. The few are used unless they are behind by more than one
        standard error.
    rare_label, prevalence, segment_capacities, default_segment_capacity,
    guarantee, confidence, ties
        As in :class:`~shortlist.CapacityClassifier`.
    random_state : int, RandomState instance or None, default=None
        Controls the split, and is the key of the hash.

    Attributes
    ----------
    support_path_ : ndarray, or list of ndarrays with ``selection="cross-fit"``
        Rows of the data given to `fit`, in the order in which they were chosen.
    detection_path_ : ndarray, or list of ndarrays
        Share of rare items found within the capacity after each step, on the items that the choice
        was made on: larger than what new items will show.
    support_vectors_ : ndarray of shape (n_support, n_features)
        The support vectors in use.
    dual_coef_ : ndarray of shape (n_support,)
        Their coefficients, positive where they speak for the rare label.
    detection_ : dict
        What `fall_back` compared: the share of rare items left out that were found by the "few",
        and by "all" support vectors.
    falls_back_ : bool
        Whether a whole machine is in use.
    gamma_ : float
        Coefficient of the kernel.
    classes_, rare_label_, prevalence_, capacity_fraction_, rule_, threshold_, calibration_
        As in :class:`~shortlist.CapacityClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    shortlist.CapacityClassifier : Cuts any score at the capacity, without learning for it.

    Notes
    -----
    Section 4.2 of the paper, :math:`s(x) = \sum_{i \in S} \alpha_i \tilde y_i K(x_i, x)`. The
    intercept changes no ranking, and rounding it in makes ties, so it is left out.
    `with_capacity` moves the threshold; the support vectors stay those of the first capacity.

    Few support vectors pay where classes overlap and a full machine ranks badly: on credit-default
    data more was detected than by one cut at the capacity in all of twelve settings. On 19 sets of
    KEEL, most of them well separated, the ranking was better on six and worse on none, and even by
    the threshold, which comes from fewer items. See `docs/aware.md`.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from shortlist import Capacity
    >>> from shortlist.aware import CapacityAwareSVC
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = CapacityAwareSVC(Capacity.multiple(2), max_support=5, random_state=0).fit(X, y)
    >>> len(model.support_path_), len(model.support_vectors_)
    (10, 50)
    """

    def __init__(
        self,
        capacity: Capacity,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: Any = "scale",
        max_support: int = 30,
        variant: str = "all",
        tie_break: str = "wider",
        selection: str = "cross-fit",
        cv: float | str = "auto",
        n_swaps: int = 5,
        fall_back: bool = True,
        rare_label: Any = None,
        prevalence: Any = None,
        segment_capacities: dict[Any, Capacity | None] | None = None,
        default_segment_capacity: Capacity | None = None,
        guarantee: str = "plug-in",
        confidence: float = 0.95,
        ties: str = "exclude",
        random_state: Any = None,
    ) -> None:
        self.capacity = capacity
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.max_support = max_support
        self.variant = variant
        self.tie_break = tie_break
        self.selection = selection
        self.cv = cv
        self.n_swaps = n_swaps
        self.fall_back = fall_back
        self.rare_label = rare_label
        self.prevalence = prevalence
        self.segment_capacities = segment_capacities
        self.default_segment_capacity = default_segment_capacity
        self.guarantee = guarantee
        self.confidence = confidence
        self.ties = ties
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_option("kernel", self.kernel, KERNELS)
        check_option("variant", self.variant, VARIANTS)
        check_option("tie_break", self.tie_break, TIE_BREAKS)
        check_option("selection", self.selection, SELECTIONS)
        if self.selection == "paper" and self.guarantee != "plug-in":
            raise ValueError(
                f"guarantee={self.guarantee!r} needs a threshold from items that the score was "
                "not chosen on, and selection='paper' uses the same ones. Use "
                "selection='cross-fit', or guarantee='plug-in'."
            )
        for name in ("max_support", "n_swaps"):
            check_count(name, getattr(self, name))

    def _check_cv(self) -> None:
        if self.cv != "auto":
            super()._check_cv()

    def _n_steps(self) -> int:
        return 1 if self.selection == "paper" else self.n_swaps

    def _learn_and_score(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> Unseen:
        share = _HELD_OUT[self.selection] if self.cv == "auto" else float(self.cv)
        learned_on, unseen = hold_out(is_rare.astype(np.intp), share, rng)
        self.gamma_ = find_gamma(self.gamma, X[learned_on])
        if self.selection == "paper":
            swaps = [Swap([(learned_on, unseen)], np.empty(0, dtype=np.intp))]
        else:
            swaps = self._swaps(is_rare, learned_on, rng)
        outcomes = [self._try(X, is_rare, swaps[step]) for step in self._steps(len(swaps))]
        choices = [choice for outcome in outcomes for choice in outcome.choices]
        self._tell(choices)
        self.falls_back_ = self._compare(outcomes)
        if self.falls_back_:
            kept = self._machine(X, is_rare, learned_on)
        else:
            kept = mean_of([choice.few for choice in choices])
        self.support_vectors_, self.dual_coef_ = X[kept.rows], kept.coefficients
        return Unseen(unseen, self._sum_up(X[unseen]))

    def _swaps(self, is_rare: Mask, rows: Rows, rng: np.random.Generator) -> list[Swap]:
        """Return halves that change places, if there are enough items for that."""
        n_rare = int(np.count_nonzero(is_rare[rows]))
        fewest = min(n_rare, rows.size - n_rare)
        if fewest < 2:
            raise ValueError(
                "selection='cross-fit' takes at least three items of each class: to fit, to choose "
                f"and to calibrate; {np.count_nonzero(is_rare)} of {is_rare.size} items are "
                f"{self.rare_label_!r}. Use selection='paper', or find more items."
            )
        # Of two to learn from none can be left out.
        leave_out = bool(self.fall_back) and fewest > 2
        return draw_swaps(is_rare, rows, self.n_swaps, rng, leave_out=leave_out)

    def _try(self, X: Doubles, is_rare: Mask, swap: Swap) -> _Outcome:
        """Choose on each half of a swap, and see what is found among the items left out."""
        choices = [self._choose(X, is_rare, *pair) for pair in swap.pairs]
        if not swap.left_out.size:
            return _Outcome(choices, np.empty(0), np.empty(0))
        few = mean_of([choice.few for choice in choices])
        whole = self._machine(X, is_rare, np.concatenate(swap.pairs[0]))
        found = [self._found(X, is_rare, some, swap.left_out) for some in (few, whole)]
        return _Outcome(choices, *found)

    def _compare(self, outcomes: list[_Outcome]) -> bool:
        """Tell whether whole machines found clearly more than a few of their support vectors."""
        by_few = np.concatenate([outcome.by_few for outcome in outcomes])
        by_all = np.concatenate([outcome.by_all for outcome in outcomes])
        if not by_few.size:
            return False
        self.detection_ = {"few": float(by_few.mean()), "all": float(by_all.mean())}
        return preferred([by_few, by_all], n_errors=1) == 1

    def _machine(self, X: Doubles, is_rare: Mask, rows: Rows) -> Expansion:
        """Fit a machine on some rows."""
        machine = SVC(C=self.C, kernel=self.kernel, gamma=self.gamma_).fit(X[rows], is_rare[rows])
        # The second class is the rare one, so that the coefficients rise with suspicion.
        return Expansion(rows[machine.support_], machine.dual_coef_[0])

    def _choose(self, X: Doubles, is_rare: Mask, fit_on: Rows, choose_on: Rows) -> _Choice:
        """Fit a machine on some rows, and choose among its support vectors on others."""
        support, coefficients = self._machine(X, is_rare, fit_on)
        rare, common = choose_on[is_rare[choose_on]], choose_on[~is_rare[choose_on]]
        path = greedy_path(
            self._kernel().terms(X[support], coefficients, X[rare]),
            self._kernel().terms(X[support], coefficients, X[common]),
            self._limits(choose_on.size),
            n_steps=self.max_support,
        )
        used = path.chosen[: self._n_used(path)]
        few = Expansion(support[used], coefficients[used])
        return _Choice(few, support[path.chosen], path.detected / rare.size)

    def _limits(self, n_items: int) -> list[int]:
        max_flags = self._learned_for.max_flags(n_items)
        factors = WIDER if self.tie_break == "wider" else (1,)
        return wider_limits(max_flags, n_items, factors)

    def _n_used(self, path: GreedyPath) -> int:
        if self.variant == "best-prefix":
            return int(np.argmax(path.detected)) + 1
        if self.variant == "stop":
            stalls = np.flatnonzero(np.diff(path.detected) <= 0)
            return int(stalls[0]) + 1 if stalls.size else path.detected.size
        return path.detected.size

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_)

    def _tell(self, choices: list[_Choice]) -> None:
        paths = [choice.path for choice in choices]
        detections = [choice.detection for choice in choices]
        self.support_path_ = paths if len(paths) > 1 else paths[0]
        self.detection_path_ = detections if len(paths) > 1 else detections[0]

    def _found(self, X: Doubles, is_rare: Mask, score: Expansion, items: Rows) -> Doubles:
        """Return the chance of each rare item to be found, on average over the capacities."""
        sums = self._kernel().sums(X[items], X[score.rows], score.coefficients)
        return detected_within(sums, is_rare[items], self._limits(items.size))

    def _sum_up(self, X: Doubles) -> Doubles:
        return self._kernel().sums(X, self.support_vectors_, self.dual_coef_)
