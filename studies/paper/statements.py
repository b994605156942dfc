"""Statements of the paper with our results beside them, and the paired comparisons behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from shortlist._core.arrays import Floats

from ..tables import Table, mean_and_error, select_rows

__all__ = [
    "NOT_THERE",
    "Ordering",
    "Statement",
    "about",
    "along",
    "claim",
    "combined",
    "jackknife",
    "ordering",
    "truth",
    "within",
]

#: For comparisons that the paper does not make.
NOT_THERE = "not there"
#: Repetitions behind a number of the paper.
_PAPER_REPETITIONS = 100
_LEVEL = 0.975


@dataclass(frozen=True)
class Ordering:
    """In how many settings one result is clearly above another, undecided, or clearly below it.

    Clearly: zero lies outside the 95 % interval of Student's t for the mean paired difference.
    `differences` has a row for each setting, with `mean`, `error` and `count` of the paired
    differences.
    """

    clear: int
    open: int
    against: int
    differences: Table = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, differences: Table) -> Ordering:
        """Count the settings by the direction of their mean difference."""
        counts = Counter(_direction(**_parts(row)) for row in differences)
        return cls(counts["clear"], counts["open"], counts["against"], differences)

    def __str__(self) -> str:
        total = self.clear + self.open + self.against
        return f"clear in {self.clear} of {total}, open in {self.open}, against in {self.against}"

    @property
    def is_measured(self) -> bool:
        """Whether every setting has repetitions."""
        return all(row["count"] for row in self.differences)

    @property
    def holds(self) -> str:
        """Return "yes", "partly" or "no", or "open" if no setting decides."""
        if self.clear == self.against == 0:
            return "open"
        if self.against == 0:
            return "yes"
        return "partly" if self.clear > self.against else "no"


@dataclass(frozen=True)
class Statement:
    """A statement of the paper, our result, whether the two agree, and the reason if they do not.

    `found` is the comparison behind the result, if there is one.
    """

    section: str
    statement: str
    paper: str
    ours: str
    agrees: str
    reason: str = ""
    found: Ordering | None = field(default=None, compare=False, repr=False)

    def row(self) -> dict[str, str]:
        """Return the statement as a row of a table."""
        names = ("section", "statement", "paper", "ours", "agrees", "reason")
        return {name: getattr(self, name) for name in names}


def truth(
    section: str,
    statement: str,
    paper: str,
    ours: str,
    holds: bool | np.bool,
    reason: str = "",
    *,
    found: Ordering | None = None,
) -> Statement:
    """Return a statement that either holds or does not."""
    return Statement(section, statement, paper, ours, "yes" if holds else "no", reason, found)


def claim(
    section: str, statement: str, found: Ordering, reason: str = "", *, paper: str = "holds"
) -> Statement:
    """Return a statement about an ordering in many settings."""
    return Statement(section, statement, paper, str(found), found.holds, reason, found)


def about(
    section: str,
    statement: str,
    paper: float,
    ours: float,
    error: float,
    reason: str = "",
    *,
    repetitions: int,
) -> Statement:
    """Return a mean of the paper beside our mean and its standard error.

    They agree within three standard errors of their difference. The standard error of the paper's
    mean is taken as ours over a hundred repetitions.
    """
    shown = f"{ours:.3g} ± {error:.2g}"
    agrees = within(abs(ours - paper), 3 * combined(error, repetitions))
    return Statement(section, statement, f"{paper:g}", shown, agrees, reason)


def combined(error: float, repetitions: int) -> float:
    """Return the standard error of a difference from the paper, over a hundred repetitions."""
    return float(error * np.sqrt(1 + repetitions / _PAPER_REPETITIONS))


def within(distance: float, limit: float) -> str:
    """Return "yes" if a distance is within its limit, else "no"; "open" for an unknown limit."""
    if np.isnan(limit):
        return "open"
    return "yes" if distance <= limit else "no"


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
    return Ordering.of(_differences(table, low, high, list(by), value))


def along(
    table: Table, name: str, *, by: Iterable[str], value: str = "adjusted_detection"
) -> Ordering:
    """Compare each value of the column `name` with the next larger one, setting by setting."""
    names = list(by)
    differences = [
        {name: f"{low} to {high}", **row}
        for low, high in pairwise(sorted({row[name] for row in table}))
        for row in _differences(
            [row for row in table if row[name] in (low, high)],
            {name: low},
            {name: high},
            names,
            value,
        )
    ]
    return Ordering.of(differences)


def jackknife(statistic: Callable[..., float], *samples: Floats) -> tuple[float, float]:
    """Return a statistic of paired samples, and its standard error by leaving one pair out.

    The error is NaN if leaving out a pair makes the statistic infinite, as a ratio to a mean of 0.
    """
    n = len(samples[0])
    if n < 2:
        return float(statistic(*samples)), np.nan
    left_out = np.array([statistic(*(np.delete(s, i) for s in samples)) for i in range(n)])
    if not np.isfinite(left_out).all():
        return float(statistic(*samples)), np.nan
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return float(statistic(*samples)), float(error)


def _differences(
    table: Table, low: dict[str, Any], high: dict[str, Any], by: list[str], value: str
) -> Table:
    """Return mean, error and count of the paired differences in each setting."""
    settings = dict.fromkeys(tuple(row[name] for name in by) for row in table)
    rows = []
    for setting in settings:
        where = dict(zip(by, setting, strict=True))
        here = select_rows(table, **where)
        lower, higher = (
            {row["repetition"]: row[value] for row in select_rows(here, **wanted)}
            for wanted in (low, high)
        )
        paired = [higher[key] - lower[key] for key in lower if key in higher]
        empty = {"mean": np.nan, "error": np.nan, "count": 0}
        rows.append({**where, **(mean_and_error(paired) if paired else empty)})
    return rows


def _parts(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("mean", "error", "count")}


def _direction(*, mean: float, error: float, count: int) -> str:
    if count < 2 or abs(mean) <= stats.t.ppf(_LEVEL, count - 1) * error:
        return "open"
    return "clear" if mean > 0 else "against"
