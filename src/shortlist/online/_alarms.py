"""An alarm without labels: scores have drifted from the calibration scores."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from .._core.arrays import Floats
from .._core.ids import hash_ids
from .._core.validation import check_count, check_number
from .decisions import FARTHEST_SCORE, check_calibration_scores, check_score_array

LOG_EVIDENCE, LARGEST = range(2)
# The floats: the logarithm of the evidence and of the largest so far. Then, for each bin, its
# weight before the first score; the scores seen in it; the scores seen lately, once for each of two
# memories. Then the share of the wealth that each bettor manages.
_HEAD = 2
_ROWS = 4
# Shares of the calibration scores above each cut. Bins are finer where the flags are.
_CUTS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97)
_MEMORIES = np.array([300.0, 3_000.0])  # scores
_PRIOR_SCORES = 30.0  # a bettor with a memory starts as if so many scores had come as expected
_SHIFTS = (-1.0, -0.4, -0.15, 0.15, 0.4, 1.0)
_SPREADS = (-0.2, 0.2)
_TAILS = ((0.05, 1.6), (0.01, 2.0), (0.01, 4.0))
_N_FIXED = 1 + len(_SHIFTS) + len(_SPREADS) + len(_TAILS)
_N_BETTORS = _N_FIXED + _MEMORIES.size
# Shares of the wealth at first, and of what is shared out again: half of it is not bet.
_FIRST_SHARES = np.append(0.5, np.full(_N_BETTORS - 1, 0.5 / (_N_BETTORS - 1)))
_LARGEST_SEED = (1 << 31) - 1
_SHARED_OVER = 500.0  # scores: the later, the less is shared out again


@njit(cache=True)
def _bin_of(score: float, key: float, cuts: Any) -> int:
    """Return the bin of a score; the cuts fall, and ties are in the order of their keys."""
    low, high = 0, cuts.shape[1]
    while low < high:
        middle = (low + high) // 2
        cut = cuts[0, middle]
        if score > cut or (score == cut and key > cuts[1, middle]):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def _bet_on_bin(
    place: int, n_seen: int, table: Any, shares: Any, factors: Any, floats: Any
) -> None:
    """Bet on the bin of the next score at the odds of exchangeability, and collect."""
    odds = table[0] + table[1]
    total = odds.sum()
    chance = odds[place] / total
    shares[:_N_FIXED] *= factors[:, place] * total / np.dot(factors, odds)
    for memory in range(_MEMORIES.size):
        lately = table[2 + memory]
        forecast = (_PRIOR_SCORES * chance + lately[place]) / (_PRIOR_SCORES + lately.sum())
        shares[_N_FIXED + memory] *= forecast / chance
        lately *= 1.0 - 1.0 / _MEMORIES[memory]
        lately[place] += 1.0
    gain = shares.sum()
    shared = 1.0 / (n_seen + _SHARED_OVER)
    shares[:] = (1.0 - shared) * shares / gain + shared * _FIRST_SHARES
    table[1, place] += 1.0
    floats[LOG_EVIDENCE] += np.log(gain)
    floats[LARGEST] = max(floats[LARGEST], floats[LOG_EVIDENCE])


@njit(cache=True)
def _bet_on_scores(
    scores: Any, keys: Any, first: int, cuts: Any, factors: Any, floats: Any, evidence: Any
) -> None:
    n_bins = cuts.shape[1] + 1
    table = floats[_HEAD : _HEAD + _ROWS * n_bins].reshape(_ROWS, n_bins)
    shares = floats[_HEAD + _ROWS * n_bins :]
    for i in range(scores.size):
        place = _bin_of(scores[i], keys[i], cuts)
        _bet_on_bin(place, first + i, table, shares, factors, floats)
        evidence[i] = floats[LARGEST]


class DriftAlarm:
    r"""Raise an alarm when scores are no longer like the calibration scores.

    You may check it after every item, for as long as you like. While new scores and calibration
    scores are exchangeable, the probability of *ever* raising a false alarm is at most `error`, for
    any number of calibration scores and with any ties. No labels are needed, and the capacity plays
    no part. An alarm can be pickled, and goes on from there.

    Parameters
    ----------
    calibration_scores : array-like of shape (n_items,)
        The scores that the threshold was calibrated with. The more there are, the smaller the
        drift that can be noticed.
    error : float, default=0.01
        Probability of ever raising a false alarm.
    random_state : int, default=0
        Seed of the keys that order tied scores.

    Notes
    -----
    A conformal test martingale (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random
    World*, chapter 8). Order statistics of the n calibration scores cut the scores into bins; ties
    are ordered at random. If all scores are exchangeable, the next one falls into each of the
    n + t + 1 gaps between those before it with the same probability. The bin b, with :math:`g_b`
    gaps between calibration scores and :math:`s_b` of the t scores so far, therefore comes next
    with probability :math:`(g_b + s_b) / (n + 1 + t)`, exactly. The evidence is the wealth of
    gamblers who bet on bins at these odds: on shifts, on more or less spread, on a heavier tail,
    and on what came lately. They cannot expect to win. By Ville's inequality, the wealth ever
    reaches 1 / error with probability at most `error`.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist.online import DriftAlarm
    >>> rng = np.random.default_rng(0)
    >>> alarm = DriftAlarm(rng.normal(size=2_000))
    >>> alarm.update(rng.normal(size=10_000)).raised
    False
    >>> alarm.update(rng.normal(loc=0.3, size=2_000)).raised
    True
    """

    def __init__(
        self, calibration_scores: ArrayLike, *, error: float = 0.01, random_state: int = 0
    ) -> None:
        scores = check_calibration_scores(calibration_scores)
        if not 0 < float(check_number("error", error)) < 1:
            raise ValueError(f"error must lie strictly between 0 and 1; got {error!r}.")
        self._error = float(error)
        self._seed = check_count("random_state", random_state, at_least=0, at_most=_LARGEST_SEED)
        keys = hash_ids(np.arange(scores.size), seed=self._seed)
        falling, ranks = np.lexsort((keys, scores))[::-1], _ranks(scores.size)
        chosen = falling[ranks - 1]
        self._cuts = np.vstack([scores[chosen], keys[chosen]])
        self._n_calibration, self.n_seen = scores.size, 0
        gaps = np.diff(np.concatenate([[0], ranks, [scores.size + 1]])).astype(np.float64)
        self._factors = _bets_on_bins(gaps)
        others = np.zeros((_ROWS - 1) * gaps.size)
        self._floats = np.concatenate([np.zeros(_HEAD), gaps, others, _FIRST_SHARES])

    @property
    def raised(self) -> bool:
        """Whether the evidence has ever reached 1 / error."""
        return bool(self._floats[LARGEST] >= -math.log(self._error))

    @property
    def evidence(self) -> float:
        """The wealth of the gamblers: 1 means no evidence, and 1 / error raises the alarm."""
        return math.exp(min(float(self._floats[LOG_EVIDENCE]), 700.0))

    def update(self, scores: ArrayLike, /) -> Self:
        """Add one score or many, as :meth:`track` does."""
        self.track(scores)
        return self

    def track(self, scores: ArrayLike, /) -> Floats:
        """Add scores, and return the logarithm of the largest evidence so far after each.

        Parameters
        ----------
        scores : float or array-like of shape (n_items,)
            Scores of new items, in order, from the model of the calibration scores. Leave out none
            because of its score, and add none twice.

        Returns
        -------
        ndarray of float, shape (n_items,)
            At least ``-log(error)`` from the alarm on.
        """
        values = check_score_array(np.atleast_1d(np.asarray(scores)))
        values = np.clip(values, -FARTHEST_SCORE, FARTHEST_SCORE)  # as for calibration scores
        evidence, number = np.empty(values.size), self._n_calibration + self.n_seen
        keys = np.zeros(values.size)
        if (values[:, np.newaxis] == self._cuts[0]).any():  # keys matter for ties alone
            keys = hash_ids(np.arange(number, number + values.size), seed=self._seed)
        _bet_on_scores(values, keys, self.n_seen, self._cuts, self._factors, self._floats, evidence)
        self.n_seen += values.size
        return evidence


def _ranks(n: int) -> NDArray[np.int64]:
    """Return which of n scores in falling order are cuts: at least one, none twice."""
    ranks = np.unique(np.round(np.array(_CUTS) * (n + 1)).astype(np.int64))
    inside = ranks[(ranks >= 1) & (ranks <= n)]
    return inside if inside.size else np.array([1], dtype=np.int64)


def _bets_on_bins(gaps: Floats) -> Floats:
    """Return by which factor each bettor with a fixed opinion expects more scores in each bin."""
    above = np.concatenate([[0.0], np.cumsum(gaps)]) / gaps.sum()
    # The normal score of the middle of a bin, and the share of the scores that lie above it.
    level = -ndtri((above[1:] + above[:-1]) / 2)
    factors = [np.ones(gaps.size)]
    factors += [np.exp(shift * level) for shift in _SHIFTS]
    factors += [np.exp(spread * np.minimum(level**2, 9.0)) for spread in _SPREADS]
    factors += [np.where(above[1:] <= share + 1e-3, more, 1.0) for share, more in _TAILS]
    return np.vstack(factors)
