"""`CapacityAwareSVC`: few support vectors, chosen one by one for detection within a capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils import gen_batches

from .._core.arrays import Doubles, Mask, Rows
from .._core.folds import stratified_folds
from .._core.validation import check_count, check_number, check_option
from ..capacity import Capacity
from ._base import WIDER, CapacityAwareBase, detected_within, wider_limits
from ._greedy import greedy_path

TIE_BREAKS = ("first", "wider")
SELECTIONS = ("paper", "cross-fit")

_FEWEST_FOLDS = 3  # of which a swap leaves one out
_ROWS_AT_A_TIME = 1 << 14


@dataclass(eq=False, repr=False)
class CapacityAwareSVC(CapacityAwareBase):
    r"""A support vector machine reduced to the support vectors that detect most at a capacity.

    A standard fit gives support vectors with coefficients. Starting from none, each step adds the
    support vector that, together with those before it, detects the most rare items within the
    capacity on data that the machine has not seen. The score is the sum over the chosen support
    vectors, without the intercept.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; the support vectors are chosen for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    C : float, default=1.0
        Penalty of the support vector machine.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the Gaussian kernel, as in :class:`~sklearn.svm.SVC`; features should be
        standardised.
    max_support : int, default=30
        Number of support vectors to choose.
    tie_break : {"wider", "first"}, default="wider"
        In most steps, several support vectors detect equally many. "wider" takes the one that
        detects the most within 2, 4 and 8 times the capacity, in this order. Remaining ties, and
        all ties with "first", go to the one that comes first in the data. The paper does not
        specify this.
    selection : {"cross-fit", "paper"}, default="cross-fit"
        Where the support vectors are chosen.

        - "paper": the machine is fitted on one half of the data, and support vectors are chosen on
          the other half.
        - "cross-fit": support vectors of each half are chosen on the other half. This is repeated
          `n_swaps` times, and the score is the mean of all sums.
    n_swaps : int, default=5
        How often "cross-fit" halves the data. Each time it fits two machines, or three with
        `fall_back`.
    fall_back : bool, default=True
        Whether "cross-fit" may use a whole machine, fitted on all items, instead of the few chosen
        support vectors. Each swap then leaves other items out and compares what the few and a
        machine fitted on the rest detect among them, on average over the capacities that
        `tie_break` uses. The few are used unless they detect less by more than one standard error.
    oob_score : bool, default=False
        With ``selection="paper"``: whether to keep `oob_scores_`, as ``CapacityClassifier(...,
        cv="oob")`` does.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Seed of the halves.

    Attributes
    ----------
    support_path_ : ndarray, or list of ndarrays with ``selection="cross-fit"``
        Rows of the data given to `fit`, in the order in which they were chosen.
    detection_path_ : ndarray, or list of ndarrays
        Share of rare items detected within the capacity after each step, measured on the items
        used for the choice. It is higher than on new items.
    support_vectors_ : ndarray of shape (n_support, n_features)
        The support vectors in use.
    dual_coef_ : ndarray of shape (n_support,)
        Their coefficients; positive ones raise the score.
    detection_ : dict
        What `fall_back` compared: the share of left-out rare items detected by the "few" and by
        "all" support vectors.
    falls_back_ : bool
        Whether a whole machine is in use.
    gamma_ : float
        Coefficient of the kernel.
    oob_scores_ : ndarray of shape (n_items,)
        With `oob_score`: the scores of the half that the machine was not fitted on, NaN for the
        other one.
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
    shortlist.CapacityClassifier : Cuts any score at the capacity, without learning for it.

    Notes
    -----
    Section 4.2 of the paper, :math:`s(x) = \sum_{i \in S} \alpha_i \tilde y_i K(x_i, x)`. The
    intercept does not change the ranking, and adding it can round different scores to the same
    number. It is therefore left out.

    The paper's rule g_b* chooses the support vectors and sets the threshold on the same half:
    ``CapacityClassifier(CapacityAwareSVC(selection="paper", tie_break="first"), capacity=...,
    cv="oob", guarantee="plug-in", ties="exclude")``. Its scores fit that half better than later
    items, and it flags more of these than the capacity. With any other `cv` the threshold comes
    from items that had no part in the choice, and every guarantee holds.

    Few support vectors help where classes overlap and a full machine ranks badly: on credit-default
    data they detected more than a full machine cut at the capacity. On the sets of KEEL, most of
    which are well separated, the ranking was as good or better; at the threshold, which comes from
    fewer items, both were equal on average. See `docs/appendix/aware-study.md`.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from shortlist import Capacity
    >>> from shortlist.aware import CapacityAwareSVC
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> X = StandardScaler().fit_transform(X)
    >>> machine = CapacityAwareSVC(Capacity.multiple(2), max_support=5, random_state=0).fit(X, y)
    >>> len(machine.support_path_), len(machine.support_vectors_)
    (10, 50)
    """

    capacity: Capacity | None = None
    _: KW_ONLY
    C: float = 1.0
    gamma: Any = "scale"
    max_support: int = 30
    tie_break: str = "wider"
    selection: str = "cross-fit"
    n_swaps: int = 5
    fall_back: bool = True
    oob_score: bool = False
    rare_label: Any = None
    random_state: Any = None

    def _check_params(self) -> None:
        check_option("tie_break", self.tie_break, TIE_BREAKS)
        check_option("selection", self.selection, SELECTIONS)
        if self.oob_score and self.selection != "paper":
            raise ValueError(
                f"cv='oob' and oob_score=True need selection='paper': with {self.selection!r}, "
                "every item is fitted to in one of the halves. Use cv=0.25 or cv=5."
            )
        for name in ("max_support", "n_swaps"):
            check_count(name, getattr(self, name))

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        swaps = self._swaps(is_rare, rng)
        fitted_on, chosen_on = swaps[0].pairs[0]
        self.gamma_ = find_gamma(self.gamma, X[fitted_on] if self.selection == "paper" else X)
        choices = [[self._choose(X, is_rare, *pair) for pair in swap.pairs] for swap in swaps]
        few = [choice for of_swap in choices for choice in of_swap]
        rows, detections = [each.rows for each in few], [each.detection for each in few]
        self.support_path_ = rows if len(few) > 1 else rows[0]
        self.detection_path_ = detections if len(few) > 1 else detections[0]
        self.falls_back_ = self._compare(X, is_rare, swaps, choices)
        everything = np.arange(len(X))
        kept = self._machine(X, is_rare, everything) if self.falls_back_ else mean_of(few)
        self.support_vectors_, self.dual_coef_ = X[kept.rows], kept.coefficients
        if self.oob_score:
            self.oob_scores_ = np.full(len(X), np.nan)
            self.oob_scores_[chosen_on] = self._sum_up(X[chosen_on])

    def _swaps(self, is_rare: Mask, rng: np.random.Generator) -> list[Swap]:
        """Return the halves to fit on and to choose on; they swap their roles for "cross-fit"."""
        n_rare = int(np.count_nonzero(is_rare))
        fewest = min(n_rare, is_rare.size - n_rare)
        if fewest < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two items of each class, to fit on and to "
                f"choose on; {n_rare} of {is_rare.size} items are {self.rare_label_!r}. Find more "
                "items."
            )
        if self.selection == "paper":
            return [Swap([_halves(is_rare, rng)], np.empty(0, dtype=np.intp))]
        # With two items of a class, none can be left out.
        leave_out = bool(self.fall_back) and fewest > 2
        return draw_swaps(is_rare, self.n_swaps, rng, leave_out=leave_out)

    def _compare(
        self, X: Doubles, is_rare: Mask, swaps: list[Swap], choices: list[list[Expansion]]
    ) -> bool:
        """Return whether whole machines detect clearly more among the left-out items."""
        found = []
        for swap, of_swap in zip(swaps, choices, strict=True):
            if swap.left_out.size:
                few = mean_of(of_swap)
                whole = self._machine(X, is_rare, np.concatenate(swap.pairs[0]))
                found.append([self._found(X, is_rare, s, swap.left_out) for s in (few, whole)])
        if not found:
            return False
        by_few, by_all = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return self._second_is_better(few=by_few, all=by_all)

    def _machine(self, X: Doubles, is_rare: Mask, rows: Rows) -> Expansion:
        """Fit a machine on some rows."""
        machine = SVC(C=self.C, gamma=self.gamma_).fit(X[rows], is_rare[rows])
        in_order = np.argsort(rows[machine.support_])  # of the data; the machine's is by class
        # The second class is the rare one: positive coefficients raise the suspicion.
        return Expansion(rows[machine.support_][in_order], machine.dual_coef_[0][in_order])

    def _choose(self, X: Doubles, is_rare: Mask, fit_on: Rows, choose_on: Rows) -> Expansion:
        """Fit a machine on some rows, and choose among its support vectors on others."""
        support, coefficients, _ = self._machine(X, is_rare, fit_on)
        rare, common = choose_on[is_rare[choose_on]], choose_on[~is_rare[choose_on]]
        of_rare, of_common = (
            kernel_terms(X[support], coefficients, X[items], self.gamma_)
            for items in (rare, common)
        )
        limits = self._limits(choose_on.size)
        path = greedy_path(of_rare, of_common, limits, n_steps=self.max_support)
        detection = path.detected / rare.size
        return Expansion(support[path.chosen], coefficients[path.chosen], detection)

    def _limits(self, n_items: int) -> list[int]:
        max_flags = self._learned_for.max_flags(n_items)
        factors = WIDER if self.tie_break == "wider" else (1,)
        return wider_limits(max_flags, n_items, factors)

    def _found(self, X: Doubles, is_rare: Mask, score: Expansion, items: Rows) -> Doubles:
        """Return each rare item's chance of being detected, on average over the capacities."""
        sums = kernel_sums(X[items], X[score.rows], score.coefficients, self.gamma_)
        return detected_within(sums, is_rare[items], self._limits(items.size))

    def _sum_up(self, X: Doubles) -> Doubles:
        return kernel_sums(X, self.support_vectors_, self.dual_coef_, self.gamma_)


# --- scores that are sums of kernels ------------------------------------------------------------


def kernel_terms(vectors: Doubles, coefficients: Doubles, X: Doubles, gamma: float) -> Doubles:
    """Return what each vector (rows) adds to the sum of each row of `X` (columns)."""
    terms = rbf_kernel(vectors, X, gamma)
    terms *= coefficients[:, np.newaxis]  # in place: the terms can take most of the memory
    return terms


def kernel_sums(X: Doubles, vectors: Doubles, coefficients: Doubles, gamma: float) -> Doubles:
    """Return the sum over the vectors for each row of `X`, in batches of rows."""
    batches = gen_batches(len(X), _ROWS_AT_A_TIME)
    return np.concatenate([rbf_kernel(X[rows], vectors, gamma) @ coefficients for rows in batches])


class Expansion(NamedTuple):
    """Rows of the data, and the coefficients of the kernels around them.

    If the rows were chosen one by one, what was detected after each.
    """

    rows: Rows
    coefficients: Doubles
    detection: Any = None


def mean_of(expansions: Sequence[Expansion]) -> Expansion:
    """Return the expansion whose sum is the mean of theirs."""
    rows = np.concatenate([part.rows for part in expansions])
    coefficients = np.concatenate([part.coefficients for part in expansions])
    return Expansion(rows, coefficients / len(expansions))


def find_gamma(gamma: Any, X: Doubles) -> float:
    """Return the coefficient of a kernel, with "scale" and "auto" as in scikit-learn's SVC."""
    if isinstance(gamma, str):
        check_option("gamma", gamma, ("scale", "auto"))
        variance = X.var() if gamma == "scale" else 1.0
        return 1 / (X.shape[1] * variance) if variance > 0 else 1.0
    value = float(check_number("gamma", gamma))
    if value < 0:
        raise ValueError(f"gamma must not be negative; got {gamma!r}.")
    return value


# --- what is chosen on which items --------------------------------------------------------------


class Swap(NamedTuple):
    """Pairs of rows, to fit on and to choose on, and rows in neither."""

    pairs: list[tuple[Rows, Rows]]
    left_out: Rows


def draw_swaps(
    is_rare: Mask, n_swaps: int, rng: np.random.Generator, *, leave_out: bool
) -> list[Swap]:
    """Halve the rows `n_swaps` times, and let the halves swap their roles.

    With `leave_out`, each swap leaves other rows out: one in `n_swaps`, and at most one in three.

    Examples
    --------
    >>> is_rare = np.arange(12) < 6
    >>> swaps = draw_swaps(is_rare, 3, np.random.default_rng(0), leave_out=True)
    >>> [[len(fit), len(choose)] for fit, choose in swaps[0].pairs], len(swaps[0].left_out)
    ([[4, 4], [4, 4]], 4)
    >>> sorted(np.concatenate([swap.left_out for swap in swaps])) == list(range(12))
    True
    """
    folds = np.full(is_rare.size, n_swaps)  # a fold that no swap leaves out
    if leave_out:
        folds = stratified_folds(is_rare, max(n_swaps, _FEWEST_FOLDS), rng)
    swaps = []
    for number in range(n_swaps):
        rest = np.flatnonzero(folds != number)
        first, second = (rest[half] for half in _halves(is_rare[rest], rng))
        swaps.append(Swap([(first, second), (second, first)], np.flatnonzero(folds == number)))
    return swaps


def _halves(is_rare: Mask, rng: np.random.Generator) -> tuple[Rows, Rows]:
    half = stratified_folds(is_rare, 2, rng)
    return np.flatnonzero(half == 0), np.flatnonzero(half == 1)
