"""Exact cuts in two passes over scores that no one holds together; a third where a tie is cut.

Each block sends its count and every thousandth score. Merged, these bracket any rank with
certainty: if j of the marks of a block are at least x, then so are at least 1,000 j of its scores,
and fewer than 1,000 (j + 1). The second pass counts above the bracket and gathers inside. Only if a
block of tied scores is cut, a third pass hashes the ids of that block. Nothing is approximate, and
nothing depends on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cut
from ..exceptions import TableError
from ._engine import Engine, OnArrays
from ._kernels import (
    ALL,
    EVERY,
    CountInside,
    Inside,
    KeysOfTied,
    Summarise,
    Summary,
)

__all__ = [
    "CutSearch",
    "Located",
    "SearchColumns",
    "Summaries",
    "Totals",
    "locate",
    "merge_summaries",
    "refuse_nan",
]

#: Calls a kernel on every block, and returns the answers in any order.
Summaries = Callable[[Any], Iterable[Any]]
_MOST_KEYS = 1 << 20
_SPARE = 10.0  # standard deviations of room above the expected number of keys below a limit


class Located(NamedTuple):
    """The score in a place, how many lie above it, how many are tied, and how many of these fit.

    `rows` has the places of the tied rows in the table, if they are known.
    """

    value: float
    above: int
    tied: int
    left: int
    rows: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Totals:
    """What the first pass says about one segment: its size, and what brackets its ranks."""

    n: int
    marks: Doubles  # of all blocks, falling
    sizes: Any  # of the blocks
    blocks: list[Any]  # the marks of each block, falling
    found: Located | None = None  # the score in the place that was asked for

    @classmethod
    def empty(cls) -> Totals:
        """Return what is known of a table without rows."""
        return cls(0, np.empty(0), [], [])

    def at_least(self, value: float) -> tuple[int, int]:
        """Return bounds for the number of scores that are at least `value`."""
        counts = [np.searchsorted(-marks, -value, side="right") for marks in self.blocks]
        low = EVERY * sum(int(count) for count in counts)
        high = sum(
            min(int(size), EVERY * (int(count) + 1) - 1)
            for count, size in zip(counts, self.sizes, strict=True)
        )
        return low, high

    def bracket(self, place: int) -> tuple[float, float | None]:
        """Return two numbers between which the score in a place lies: from the first, below the
        second, if there is a second. Places count from 0 at the largest.
        """
        marks = np.unique(self.marks)[::-1]  # falling
        low = _first_index(marks, lambda value: self.at_least(value)[0] > place)
        high = _first_index(marks, lambda value: self.at_least(value)[1] > place)
        return (
            float(marks[low]) if low < marks.size else -np.inf,
            float(marks[high - 1]) if high > 0 else None,
        )


def _first_index(falling: Doubles, holds: Callable[[float], bool]) -> int:
    """Return the first place at which a monotone statement holds, or the length."""
    low, high = 0, falling.size
    while low < high:
        middle = (low + high) // 2
        if holds(float(falling[middle])):
            high = middle
        else:
            low = middle + 1
    return low


def merge_summaries(answers: Iterable[dict[Any, Summary]], *, score: str) -> dict[Any, Totals]:
    """Merge the answers of the first pass; scores that are not numbers are an error."""
    by_segment: dict[Any, list[Summary]] = {}
    n_nan = n_rows = 0
    for answer in answers:
        for name, summary in answer.items():
            by_segment.setdefault(name, []).append(summary)
            n_nan, n_rows = n_nan + summary.n_nan, n_rows + summary.n
    refuse_nan(n_nan, n_rows, score=score)
    return {
        name: Totals(
            sum(summary.n for summary in parts),
            np.concatenate([summary.marks for summary in parts]),
            [summary.n for summary in parts],
            [summary.marks for summary in parts],
        )
        for name, parts in by_segment.items()
    }


def refuse_nan(n_nan: int, n_rows: int, *, score: str) -> None:
    """Raise an error if scores are not numbers.

    Parameters
    ----------
    n_nan, n_rows : int
        How many of how many.
    score : str
        The column.
    """
    if n_nan:
        raise TableError(
            f"The column {score!r} must hold a number in every row; {n_nan:,} of {n_rows:,} are "
            "NaN or empty. Give these rows a score, or leave them out."
        )


class SearchColumns(NamedTuple):
    """The columns that a search needs, and the key of the hash that orders tied rows.

    `place` says how many of n rows will come before the cut, if there is only one.
    """

    score: str
    id: str | None = None
    segment: str | None = None
    seed: int = 0
    place: Callable[[int], int] | None = None

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [name for name in self[:3] if name is not None]


@dataclass(frozen=True)
class CutSearch:
    """Finds cuts in a table through an engine that calls kernels on its blocks.

    Parameters
    ----------
    summaries : callable
        Calls a kernel on every block, and returns the answers.
    score, id : str
        Columns with the scores and the ids.
    segment : str, default=None
        A column with segments, each of which has a cut of its own.
    seed : int, default=0
        Key of the hash that orders tied rows.
    """

    summaries: Summaries
    score: str
    id: str
    segment: str | None = None
    seed: int = 0

    @classmethod
    def through(cls, engine: Engine, table: Any, columns: SearchColumns) -> CutSearch:
        """Search in a table of an engine."""

        def summaries(kernel: Any) -> Iterable[Any]:
            return engine.summaries(table, kernel.columns, OnArrays(kernel, kernel.columns))

        score, id, segment, seed, _ = columns
        return cls(summaries, score, id or score, segment, seed)

    def totals(self) -> dict[Any, Totals]:
        """Make the first pass."""
        return merge_summaries(
            self.summaries(Summarise(self.score, self.segment)), score=self.score
        )

    def cuts(self, totals: dict[Any, Totals], wanted: dict[Any, int]) -> dict[Any, Cut]:
        """Return for each segment the cut before which exactly that many rows lie."""
        trivial = {name: _trivial(totals[name].n, k) for name, k in wanted.items()}
        places = {name: wanted[name] for name, cut in trivial.items() if cut is None}
        located = self.locate(totals, places)
        divided = {name: each for name, each in located.items() if each.left > 0}
        cuts = {name: Cut(each.value) for name, each in located.items()}
        cuts.update(self._divide(divided))
        return {name: cut or cuts[name] for name, cut in trivial.items()}

    def cut_at(self, totals: Totals, place: int, *, hashed: bool) -> tuple[Cut, int]:
        """Return the cut at the score in a place, as calibration does, and how many lie before it.

        If tied rows are not hashed, they lie behind the cut as a block.
        """
        if place < 0:
            return BEFORE_ALL, 0
        if place >= totals.n:
            return AFTER_ALL, totals.n
        located = self.locate({ALL: totals}, {ALL: place})
        if not hashed:
            return Cut(located[ALL].value), located[ALL].above
        cut = self._divide(located, strict=False)[ALL]
        keys = self.keys(located, {ALL: cut.key})[ALL]
        return cut, located[ALL].above + keys.size

    def locate(self, totals: dict[Any, Totals], places: dict[Any, int]) -> dict[Any, Located]:
        """Find the score in a place of each segment, counted from 0 at the largest."""
        found = self._inside({name: totals[name].bracket(place) for name, place in places.items()})
        return {name: locate(found[name], place) for name, place in places.items()}

    def _inside(self, brackets: dict[Any, tuple[float, float | None]]) -> dict[Any, Inside]:
        parts: dict[Any, list[Inside]] = {name: [] for name in brackets}
        if brackets:
            for answer in self.summaries(CountInside(self.score, brackets, self.segment)):
                for name, inside in answer.items():
                    parts[name].append(inside)
        return {name: _merge_inside(each) for name, each in parts.items()}

    def _divide(self, divided: dict[Any, Located], *, strict: bool = True) -> dict[Any, Cut]:
        """Find the key that divides a tied block: the first `left` keys come before the cut.

        Keys are uniform. A limit somewhat above the expected one leaves few of them; if there are
        too few after all, everything is gathered.
        """
        if not divided:
            return {}
        limits = {name: _key_limit(each.left, each.tied) for name, each in divided.items()}
        keys = self.keys(divided, limits)
        short = [name for name, each in divided.items() if keys[name].size <= each.left]
        again = {name: divided[name] for name in short if limits[name] < 1}
        if again:
            keys.update(self.keys(again, dict.fromkeys(again, 1.0)))
        return {
            name: Cut(each.value, _dividing_key(keys[name], each.left, strict=strict))
            for name, each in divided.items()
        }

    def keys(self, located: dict[Any, Located], limits: dict[Any, float]) -> dict[Any, Doubles]:
        """Return the tie keys of the tied rows of each segment, as far as below a limit."""
        values = {name: each.value for name, each in located.items()}
        kernel = KeysOfTied(self.score, self.id, values, limits, self.seed, self.segment)
        parts: dict[Any, list[Doubles]] = {name: [np.empty(0)] for name in values}
        for answer in self.summaries(kernel):
            for name, keys in answer.items():
                parts[name].append(keys)
        return {name: np.concatenate(each) for name, each in parts.items()}


def _trivial(n: int, k: int) -> Cut | None:
    if k <= 0:
        return BEFORE_ALL
    return AFTER_ALL if k >= n else None


def _merge_inside(parts: list[Inside]) -> Inside:
    values, codes = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.bincount(
        codes, weights=np.concatenate([part.counts for part in parts]), minlength=values.size
    )
    return Inside(sum(part.above for part in parts), values, np.rint(counts).astype(np.int64))


def locate(inside: Inside, place: int) -> Located:
    """Find the score in a place, counted from 0 at the largest, which must lie in the bracket.

    Parameters
    ----------
    inside : Inside
        How many scores lie above a bracket, and what lies in it.
    place : int
        The place.

    Returns
    -------
    Located
    """
    falling, counts = inside.values[::-1], inside.counts[::-1]
    down_to = inside.above + np.cumsum(counts)
    at = int(np.searchsorted(down_to, place, side="right"))
    above = int(down_to[at] - counts[at])
    return Located(float(falling[at]), above, int(counts[at]), place - above)


def _key_limit(left: int, tied: int) -> float:
    """Return a limit below which at least `left` + 1 of `tied` uniform keys lie, almost surely."""
    if tied <= _MOST_KEYS:
        return 1.0
    share = left / tied
    spread = np.sqrt(share * (1 - share) / tied)
    return float(min(1.0, share + _SPARE * spread + _SPARE / tied))


def _dividing_key(keys: Doubles, left: int, *, strict: bool) -> float:
    """Return the key in place `left`: as many come strictly before it."""
    if left == 0:
        return float(keys.min())
    if keys.size == left:  # everything that is tied comes before
        return 1.0
    ranked = np.partition(keys, [left - 1, left])
    if strict and ranked[left - 1] == ranked[left]:
        raise TableError(
            "Rows with the same score and the same id lie at the cut, and nothing puts them in "
            "order. Give every row an id of its own, or remove repeated rows."
        )
    return float(ranked[left])
