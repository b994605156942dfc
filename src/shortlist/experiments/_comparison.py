"""Paired comparisons: an ordering that is claimed for many settings, and errors of ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ._table import Table

__all__ = ["Ordering", "difference", "jackknife", "ordering", "select_rows"]

_LEVEL = 0.975


@dataclass(frozen=True)
class Ordering:
    """In how many settings one thing is clearly above another, open, or clearly below it.

    Clearly: zero lies outside of the 95 % interval of Student's t for the mean paired difference.
    """

    clear: int
    open: int
    against: int

    def __str__(self) -> str:
        total = self.clear + self.open + self.against
        return f"clear in {self.clear} of {total}, open in {self.open}, against in {self.against}"

    @property
    def holds(self) -> str:
        """Say yes, partly or no; open where no setting decides."""
        if self.clear == self.against == 0:
            return "open"
        if self.against == 0:
            return "yes"
        return "partly" if self.clear > self.against else "no"


def ordering(
    table: Table,
    low: dict[str, Any],
    high: dict[str, Any],
    *,
    by: Iterable[str],
    value: str = "adjusted_detection",
) -> Ordering:
    """Compare the rows that agree with `low` and with `high`, setting by setting.

    A setting is a combination of the columns `by`; repetitions are paired.
    """
    names = list(by)
    settings = list(dict.fromkeys(tuple(row[name] for name in names) for row in table))
    counts = {"clear": 0, "open": 0, "against": 0}
    for setting in settings:
        where = dict(zip(names, setting, strict=True))
        rows = select_rows(table, **where)
        counts[_direction(difference(rows, low, high, value=value))] += 1
    return Ordering(**counts)


def difference(
    table: Table, low: dict[str, Any], high: dict[str, Any], *, value: str = "adjusted_detection"
) -> NDArray[np.float64]:
    """Return the differences of two selections, repetition by repetition."""
    lower, higher = (
        {row["repetition"]: row[value] for row in select_rows(table, **wanted)}
        for wanted in (low, high)
    )
    return np.array([higher[key] - lower[key] for key in lower if key in higher])


def select_rows(table: Table, **wanted: Any) -> Table:
    """Return the rows with these values."""
    return [row for row in table if all(row[name] == value for name, value in wanted.items())]


def jackknife(
    statistic: Callable[..., float], *samples: NDArray[np.float64]
) -> tuple[float, float]:
    """Return a statistic of paired samples, and its standard error by leaving one pair out.

    The error is not a number where a statistic is not finite, as a ratio to a mean of zero.
    """
    n = len(samples[0])
    if n < 2:
        return float(statistic(*samples)), np.nan
    left_out = np.array([statistic(*(np.delete(s, i) for s in samples)) for i in range(n)])
    if not np.isfinite(left_out).all():
        return float(statistic(*samples)), np.nan
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return float(statistic(*samples)), float(error)


def _direction(differences: NDArray[np.float64]) -> str:
    n = differences.size
    if n < 2:
        return "open"
    mean, error = differences.mean(), differences.std(ddof=1) / np.sqrt(n)
    if abs(mean) <= stats.t.ppf(_LEVEL, n - 1) * error:
        return "open"
    return "clear" if mean > 0 else "against"
