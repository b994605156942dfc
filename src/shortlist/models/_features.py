"""What a learner gets from a row, number by number: how the columns were prepared, as a list.

A prepared row is a list of *features*. Each comes from one column: a scaled number, a mark of a
missing value, or what an encoder gives for a text. Imputing and scaling change these features one
by one, with the same operations in double precision as scikit-learn's, and so give the same bits.
What is done to a text or to a mark is known beforehand: only numbers are computed when a row
arrives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["NAN", "Category", "Feature", "Lookup", "Mark", "Number", "filled", "marked", "scaled"]

#: Stands for NaN, which is not equal to itself, among the values of a column.
NAN = "\0NaN"


@dataclass(frozen=True)
class Number:
    """A column of numbers: less a mean and divided by a scale, perhaps several times.

    Before an encoder it is a column of any values, and `missing` perhaps a text.
    """

    column: int
    missing: Any = math.nan  # what a missing value has become
    stages: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Mark:
    """One number if the value of a column is missing, and another one if it is there."""

    column: int
    missing: float = 1.0
    present: float = 0.0


@dataclass(frozen=True, eq=False)
class Lookup:
    """The numbers that an encoder gives for each value of a column; None where it raises an error.

    `rows` has the values that the encoder knows, None and NaN; `unknown` is for all others.
    """

    column: int
    rows: dict[Any, tuple[float, ...] | None]
    unknown: tuple[float, ...] | None

    def row(self, value: Any) -> tuple[float, ...] | None:
        """Return the numbers for a value."""
        return self.rows.get(value, self.unknown)


@dataclass(frozen=True)
class Category:
    """One of the numbers that an encoder gives for a value, and what is done to it afterwards."""

    lookup: Lookup
    place: int
    changes: tuple[Callable[[float], float], ...] = ()

    def number(self, value: Any) -> float:
        """Return the feature for a value; NaN for one that the encoder refuses."""
        row = self.lookup.row(value)
        number = math.nan if row is None else row[self.place]
        for change in self.changes:
            number = change(number)
        return number


Feature = Number | Mark | Category


def filled(feature: Feature, fill: float) -> Feature:
    """Put a number in the place of missing ones."""

    def fill_gap(number: float) -> float:
        return fill if number != number else number

    if isinstance(feature, Number):
        return replace(feature, missing=fill_gap(feature.missing))
    return _changed(feature, fill_gap)


def scaled(feature: Feature, mean: float, scale: float) -> Feature:
    """Subtract a mean and divide by a scale."""

    def change(number: float) -> float:
        return (number - mean) / scale

    if isinstance(feature, Number):
        stages = (*feature.stages, (mean, scale))
        return replace(feature, missing=change(feature.missing), stages=stages)
    return _changed(feature, change)


def marked(feature: Feature) -> Feature:
    """Mark where a feature is missing."""

    def mark(number: float) -> float:
        return float(number != number)

    if isinstance(feature, Number):
        return Mark(feature.column, missing=mark(feature.missing))
    return _changed(feature, mark)


def _changed(feature: Mark | Category, change: Callable[[float], float]) -> Feature:
    if isinstance(feature, Mark):
        return Mark(feature.column, change(feature.missing), change(feature.present))
    return replace(feature, changes=(*feature.changes, change))
