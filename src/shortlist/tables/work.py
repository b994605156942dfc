"""Columns with the value and the effort of each case, and a budget to spend."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from .._core.formatting import number
from .._core.validation import name_rows
from ..capacity import Capacity
from ..exceptions import TableError
from ..thresholds import Selection as ChosenList
from ..thresholds import select
from .column_format import ColumnFormat
from .columns import Feature, Place


@dataclass(frozen=True)
class WorkColumns:
    """Which columns hold values and efforts, what may be spent, and what a slot must be worth.

    A model that was fitted with such columns keeps them, without a budget: that is its capacity.

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
    max_effort : float or None
        For a fit: the most work that a case can take. `None` takes the most in the table; later
        cases that take more are never flagged.
    """

    value: str | None = None
    effort: str | None = None
    budget: float | None = None
    worth: float | None = None
    unit: str = "units"
    max_effort: float | None = None

    def __post_init__(self) -> None:
        for option in ("budget", "worth", "max_effort"):
            number = getattr(self, option)
            if number is not None and not 0 <= number < float("inf"):
                raise TableError(f"{option} must be a number of at least 0; got {number}.")

    @property
    def is_given(self) -> bool:
        """Whether there is anything to weigh."""
        return (self.value, self.effort, self.worth) != (None, None, None)

    def after(self, kept: WorkColumns | None) -> WorkColumns:
        """Return this with everything that is not said here taken from a model."""
        every = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        said: dict[str, Any] = {n: given for n, (given, usual) in every.items() if given != usual}
        return replace(kept or self, **said)

    def for_list(self, kept: WorkColumns | None) -> WorkColumns:
        """Return this for a list: with a model's columns, and its efforts if there is a budget."""
        merged = self.after(kept)
        if self.effort is None and self.budget is None:
            merged = replace(merged, effort=None)
        if (merged.effort is None) != (merged.budget is None):
            raise TableError(
                "effort=... and budget=... belong together, as in: effort='minutes_needed', "
                "budget=480"
            )
        return merged

    @property
    def columns(self) -> dict[str, str]:
        """The columns to read, by what they hold."""
        named = {"value": self.value, "effort": self.effort}
        return {option: name for option, name in named.items() if name is not None}

    def numbers(self, option: str, column: Any, format: ColumnFormat, place: Place) -> Doubles:
        """Return the column of an option as numbers; an error names the row of an invalid one."""
        name = self.columns[option]
        numbers: Doubles = Feature(name, "numeric", format).values(column, place=place)
        above = numbers > 0 if option == "effort" else numbers >= 0
        bad = np.flatnonzero(~(above & np.isfinite(numbers)))
        if bad.size:
            least = "greater than 0" if option == "effort" else "at least 0"
            shown = "a missing value" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
            raise TableError(
                f"The column {name!r}, which {option}=... names, must hold numbers {least}; got "
                f"{shown} in {name_rows(place.n_before + bad + 1)}. Fill it, or leave these cases "
                "out."
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
            f"The list uses {number(found.used)} of {number(found.allowed, 12)} {unit}; its "
            f"expected value is {number(found.gain)}"
        )
        text += "" if found.gap == 0 else f" (the best list has at most {number(found.gap)} more)"
        if found.reason == "not worth more":
            return f"{text}. The rest stays empty: no other case reaches worth={self.worth:g}."
        one = "case" if self.budget is None else self.unit.removesuffix("s")
        more = f" One more {one} would bring {number(found.price)}." if found.price else ""
        return f"{text}.{more}"
