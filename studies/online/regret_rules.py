"""Rules that spend K flags on T identically distributed items, for the study of regret."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numba import njit
from scipy.stats import norm

PREVALENCE, SEPARATION, SHARE = 0.005, 2.5, 0.02
_LOWEST, _HIGHEST, _STEPS = -8.0, 12.0, 40_000
_LOG_ODDS = math.log(PREVALENCE / (1 - PREVALENCE)) - SEPARATION**2 / 2


def draw(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return scores: a mixture of two normal distributions."""
    return rng.normal(size=n) + SEPARATION * (rng.random(n) < PREVALENCE)


def worth(scores: np.ndarray) -> np.ndarray:
    """Return the probability that an item with this score is rare."""
    return 1 / (1 + np.exp(-(SEPARATION * scores + _LOG_ODDS)))


@cache
def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, the share of items above each, and E(worth - worth at the score)+."""
    scores = np.linspace(_LOWEST, _HIGHEST, _STEPS)
    above = (1 - PREVALENCE) * norm.sf(scores) + PREVALENCE * norm.sf(scores - SEPARATION)
    values = worth(scores)
    # E(v - d)+ is the integral of P(v > u) from d upwards.
    slices = 0.5 * (above[1:] + above[:-1]) * np.diff(values)
    gain = np.append(np.cumsum(slices[::-1])[::-1], 0.0)
    return scores, above, gain


def known_quantile(share: np.ndarray) -> np.ndarray:
    """Return the score that this share of all items exceeds."""
    scores, above, _ = grid()
    return np.interp(-share, -above, scores)


# --- rules that know the distribution ----------------------------------------------------------


def static(scores: np.ndarray, k: int) -> np.ndarray:
    """Keep the threshold of the whole; stop when the flags are used up."""
    flags = scores > known_quantile(np.array([k / scores.size]))[0]
    flags[np.flatnonzero(flags)[k:]] = False
    return flags


@njit(cache=True)
def _spend(scores, k, shares, cuts):
    flags, left = np.zeros(scores.size, np.bool_), k
    for i in range(scores.size):
        share = left / (scores.size - i)
        cut = np.interp(share, shares, cuts) if share < 1 else -np.inf
        if left > 0 and scores[i] > cut:
            flags[i] = True
            left -= 1
    return flags


@cache
def _cuts() -> tuple[np.ndarray, np.ndarray]:
    """Return shares, dense where they are small, and the scores that they exceed."""
    shares = np.concatenate([[0.0], np.geomspace(1e-7, 1, 20_000)])
    return shares, known_quantile(shares)


def resolve(scores: np.ndarray, k: int) -> np.ndarray:
    """Reset the threshold for every item: flags left, over items to come."""
    return _spend(scores, k, *_cuts())


@njit(cache=True)
def _optimal_table(horizon, k, gain, low, step, log_odds, separation):
    """Return the optimal threshold with t items to come (this one included) and j flags left."""
    cuts = np.full((horizon + 1, k + 1), np.inf, np.float32)
    value, last = np.zeros(k + 1), gain.size - 1
    for t in range(1, horizon + 1):
        # From the back: value[j - 1] is still that of t - 1 items.
        for j in range(min(k, t), 0, -1):
            lost = value[j] - value[j - 1] if j < t else 0.0  # a flag that would be left over
            if lost <= 0.0:
                score, place = -np.inf, 0.0
            else:
                score = (np.log(lost / (1 - lost)) - log_odds) / separation
                place = min(max((score - low) / step, 0.0), last - 1.0)
            i = int(place)
            gained = gain[i] + (place - i) * (gain[i + 1] - gain[i])
            cuts[t, j] = score
            value[j] = (value[j] if j < t else value[j - 1]) + gained
    return cuts, value


@cache
def optimal_table(horizon: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return thresholds and values of the best rule there is, by dynamic programming."""
    scores, _, gain = grid()
    step = scores[1] - scores[0]
    return _optimal_table(horizon, k, gain, scores[0], step, _LOG_ODDS, SEPARATION)


@njit(cache=True)
def _follow(scores, k, cuts):
    flags, left = np.zeros(scores.size, np.bool_), k
    for i in range(scores.size):
        if left > 0 and scores[i] > cuts[scores.size - i, left]:
            flags[i] = True
            left -= 1
    return flags


def optimal(scores: np.ndarray, k: int) -> np.ndarray:
    """Apply the best rule that knows the distribution but not the future."""
    return _follow(scores, k, optimal_table(scores.size, k)[0])


# --- a rule that knows nothing -----------------------------------------------------------------


@njit(cache=True)
def _learn(scores, k):
    n = scores.size
    places = np.empty(n, np.int64)  # in falling order of all scores
    places[np.argsort(-scores)] = np.arange(n)
    tree = np.zeros(n + 1, np.int64)  # counts of what has come, by place
    flags, left = np.zeros(n, np.bool_), k
    for i in range(n):
        # How many of these i + 1 items may be flagged; this one if it is among the highest.
        rank = int((i + 1) * left / (n - i))
        higher, j = 0, places[i]
        while j > 0:
            higher += tree[j]
            j -= j & -j
        if left > 0 and (rank > i or higher < rank):
            flags[i] = True
            left -= 1
        j = places[i] + 1
        while j <= n:
            tree[j] += 1
            j += j & -j
    return flags


def learn_from_zero(scores: np.ndarray, k: int) -> np.ndarray:
    """Reset the threshold for every item, by the items seen so far."""
    return _learn(scores, k)
