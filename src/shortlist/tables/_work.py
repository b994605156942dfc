"""Columns with the value and the effort of each case, and a budget to spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask
from .._core.validation import name_rows
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import capacity_curve
from ..thresholds import Selection as ChosenList
from ..thresholds import select
from ._columns import as_values

__all__ = ["MoneyPlan", "MoneyPoint", "WorkColumns", "plan_money"]

_FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)


@dataclass(frozen=True)
class WorkColumns:
    """Which columns hold values and efforts, what may be spent, and what a slot must be worth.

    Attributes
    ----------
    value, effort : str or None
        Columns of the table: what a case is worth if it is rare, and how much work it takes.
    budget : float or None
        How much work may be spent on the list, in the unit of `effort`.
    worth : float or None
        The least expected value per unit of effort for which a slot is used.
    unit : str
        What efforts are counted in, for messages.
    """

    value: str | None = None
    effort: str | None = None
    budget: float | None = None
    worth: float | None = None
    unit: str = "units"

    def __post_init__(self) -> None:
        if (self.effort is None) != (self.budget is None):
            raise TableError(
                "--effort and --budget belong together, as in: --effort minutes_needed "
                "--budget 480 --unit minutes"
            )
        if self.budget is not None and not 0 <= self.budget < float("inf"):
            raise TableError(f"--budget must be a number of at least 0; got {self.budget}.")
        if self.worth is not None and not 0 <= self.worth < float("inf"):
            raise TableError(f"--worth must be a number of at least 0; got {self.worth}.")

    @property
    def is_given(self) -> bool:
        """Whether there is anything to weigh."""
        return (self.value, self.effort, self.worth) != (None, None, None)

    @property
    def columns(self) -> dict[str, str]:
        """The columns to read, by their options."""
        named = {"--value": self.value, "--effort": self.effort}
        return {option: name for option, name in named.items() if name is not None}

    def numbers(self, option: str, parts: Sequence[Any]) -> Doubles | None:
        """Return the column of an option as numbers; what is no valid one names its row."""
        name = self.columns.get(option)
        if name is None:
            return None
        numbers = np.concatenate([as_values(part, "numeric", name) for part in parts])
        above = numbers > 0 if option == "--effort" else numbers >= 0
        bad = np.flatnonzero(~(above & np.isfinite(numbers)))
        if bad.size:
            least = "greater than 0" if option == "--effort" else "at least 0"
            shown = "a gap" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
            raise TableError(
                f"The column {name!r}, which {option} names, must hold numbers {least}; got "
                f"{shown} in {name_rows(bad + 1)}. Fill it, or leave these cases out."
            )
        return numbers

    def choose(
        self, p: Doubles, values: Doubles | None, efforts: Doubles | None, count: int | None
    ) -> ChosenList:
        """Choose among cases in a fixed order, which decides between equal ones."""
        limit = Capacity.count(p.size if count is None else count)
        if self.budget is not None:
            limit = Capacity.effort(self.budget)
        return select(
            p, limit, values=values, efforts=efforts, worth=self.worth, return_details=True
        )

    def in_words(self, found: ChosenList) -> str:
        """Say what a list uses and brings, and why it ends."""
        unit = "cases" if self.budget is None else self.unit
        text = (
            f"The list uses {found.used:,.6g} of {found.allowed:,.6g} {unit}; its expected value "
            f"is {found.gain:,.6g}"
        )
        text += "" if found.gap == 0 else f" (the best list has at most {found.gap:,.3g} more)"
        if found.reason == "not worth more":
            return f"{text}. The rest stays empty: no other case reaches --worth {self.worth:g}."
        one = "case" if self.budget is None else self.unit.removesuffix("s")
        more = f" One more {one} would bring {found.price:,.4g}." if found.price else ""
        return f"{text}.{more}"


@dataclass(frozen=True)
class MoneyPoint:
    """What a budget finds: flags, value, its share of all value, and the price of one more unit.

    `factor` is the budget as a multiple of the one that was asked for.
    """

    factor: float
    budget: float
    n_flagged: int
    effort: float
    value: float
    value_share: float
    price: float


@dataclass(frozen=True)
class MoneyPlan:
    """Value found for budgets around one, in a table with labels."""

    unit: str
    points: list[MoneyPoint]


def plan_money(
    is_rare: Mask, p: Doubles, values: Doubles | None, efforts: Doubles, work: WorkColumns
) -> MoneyPlan:
    """Return what budgets from a quarter to four times the given one find."""
    curve = capacity_curve(is_rare, p, rare_label=True, values=values, efforts=efforts)
    points = []
    for factor in _FACTORS:
        budget = factor * float(work.budget or 0)
        row = curve.at(Capacity.effort(budget))
        points.append(
            MoneyPoint(
                factor,
                budget,
                int(row["n_flagged"]),
                row["effort"],
                row["value"],
                row["value_share"],
                row["price"],
            )
        )
    return MoneyPlan(work.unit, points)
