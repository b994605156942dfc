"""Simulated streams of scored items: drift, jumps, bursts, seasons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._core.arrays import Floats
from shortlist._core.validation import check_option

#: Names of scenarios; :func:`simulate_stream` describes each.
SCENARIOS = (
    "stationary",
    "drift",
    "jump",
    "prevalence",
    "burst",
    "season",
    "capacity",
    "rising",
)

DAY = 86_400.0
_SEPARATION = 2.5  # distance between the mean scores of rare and common items
_BURST_ARRIVALS, _BURST_PREVALENCE, _BURST_LENGTH = 8.0, 6.0, 1 / 36
_GRID = 288  # five minutes: the resolution of a day's intensity


class Stream(NamedTuple):
    """Scored items in order of arrival, and the capacity of each day."""

    scores: Floats
    y: NDArray[np.int64]
    times: Floats
    capacities: NDArray[np.int64]
    calibration_scores: Floats
    period: float


def simulate_stream(
    scenario: str = "stationary",
    *,
    days: int = 40,
    arrivals: int = 5_000,
    max_flags: int = 50,
    prevalence: float = 0.005,
    n_calibration: int = 20_000,
    random_state: Any = 0,
) -> Stream:
    """Simulate scored items that arrive over some days, while conditions may change.

    Scores of common items are Normal(0, 1), those of rare items Normal(2.5, 1), before the scenario
    changes them.

    Parameters
    ----------
    scenario : str, default="stationary"
        One of:

        - ``"stationary"``: nothing changes.
        - ``"drift"``: all scores rise by 1.2 in equal steps.
        - ``"jump"``: all scores rise by 1 at half time.
        - ``"prevalence"``: rare items become three times as frequent at half time.
        - ``"burst"``: days differ in volume, and on each day there are two short episodes with
          eight times the arrivals and six times the prevalence.
        - ``"season"``: busy hours, quiet weekends, and days that differ in volume.
        - ``"capacity"``: the capacity of a day alternates between `max_flags` and two fifths of it.
        - ``"rising"``: the items of a day arrive in rising order of their scores.
    days : int, default=40
        Number of days.
    arrivals : int, default=5000
        Items on an ordinary day.
    max_flags : int, default=50
        Capacity of an ordinary day.
    prevalence : float, default=0.005
        Share of rare items.
    n_calibration : int, default=20000
        Number of earlier scores, from before any change.
    random_state : int or numpy Generator, default=0
        Seed.

    Returns
    -------
    Stream
        With `scores`, `y`, `times` in seconds, `capacities` by day, `calibration_scores` and
        `period`.

    Examples
    --------
    >>> stream = simulate_stream("capacity", days=2, arrivals=100, max_flags=10)
    >>> stream.scores.shape, stream.capacities.tolist()
    ((200,), [10, 4])
    """
    check_option("scenario", scenario, SCENARIOS)
    rng = np.random.default_rng(random_state)
    parts = [_day(scenario, day, days, arrivals, prevalence, rng) for day in range(days)]
    scores, y, times = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    quiet = np.arange(days) % 2 == 1 if scenario == "capacity" else np.zeros(days, dtype=bool)
    capacities = np.where(quiet, 2 * max_flags // 5, max_flags)
    calibration, _ = _items(n_calibration, np.full(n_calibration, prevalence), rng)
    return Stream(scores, y, times, capacities, calibration, DAY)


def _day(
    scenario: str, day: int, days: int, arrivals: int, prevalence: float, rng: np.random.Generator
) -> tuple[NDArray[Any], ...]:
    """Return scores, labels and times of one day."""
    late = day >= days // 2
    intensity, rare_factor = _pattern(scenario, day, rng)
    volume = arrivals * intensity.mean()
    n = rng.poisson(volume) if scenario in ("burst", "season") else arrivals
    slots = np.sort(rng.choice(_GRID, size=n, p=intensity / intensity.sum()))
    times = np.sort(slots + rng.random(n)) / _GRID * DAY + day * DAY
    if scenario == "prevalence" and late:
        rare_factor = rare_factor * 3
    scores, y = _items(n, prevalence * rare_factor[slots], rng)
    if scenario == "drift":
        scores += 1.2 * day / max(days - 1, 1)
    if scenario == "jump" and late:
        scores += 1.0
    if scenario == "rising":
        order = np.argsort(scores)
        scores, y = scores[order], y[order]
    return scores, y, times


def _pattern(scenario: str, day: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the intensity of arrivals and the factor of rare items over a day."""
    phase = (np.arange(_GRID) + 0.5) / _GRID
    intensity, rare_factor = np.ones(_GRID), np.ones(_GRID)
    if scenario == "burst":
        for start in rng.uniform(0, 1 - _BURST_LENGTH, size=2):
            inside = (phase >= start) & (phase < start + _BURST_LENGTH)
            intensity[inside], rare_factor[inside] = _BURST_ARRIVALS, _BURST_PREVALENCE
        intensity *= rng.lognormal(0, 0.4)
    elif scenario == "season":
        intensity *= 1 - 0.8 * np.cos(2 * np.pi * phase)
        intensity *= rng.lognormal(0, 0.25) * (0.5 if day % 7 >= 5 else 1)
    return intensity, rare_factor


def _items(n: int, share: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    y = (rng.random(n) < share).astype(np.int64)
    return rng.normal(size=n) + _SEPARATION * y, y
