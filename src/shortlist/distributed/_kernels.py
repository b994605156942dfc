"""What is computed where the rows are: small answers about blocks of scores, and rows kept.

A kernel is called with the columns of a block as NumPy arrays, and returns something small that can
be pickled. Engines call kernels wherever the blocks lie, in any order, and perhaps twice after a
fault; answers therefore depend on the block alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask
from .._core.hashing import hash_ids
from .._core.ranking import Cut, flag_above

__all__ = [
    "ALL",
    "Columns",
    "CountInside",
    "Inside",
    "KeysOfTied",
    "RowsBefore",
    "Summarise",
    "Summary",
]

#: The columns of a block.
Columns = dict[str, NDArray[Any]]
#: The name of the one segment if there are none.
ALL = None
#: One of so many scores of a block goes into its summary.
EVERY = 1_000


class Summary(NamedTuple):
    """How many scores a block has, how many of them are not numbers, and a sample of the order.

    `marks` has every thousandth score, counted from the largest: the last of each full thousand.
    """

    n: int
    n_nan: int
    marks: Floats


class Inside(NamedTuple):
    """What a block has above a bracket and in it: a count, and different values with counts."""

    above: int
    values: Doubles
    counts: NDArray[np.int64]


def _by_segment(columns: Columns, segment: str | None) -> dict[Any, Any]:
    if segment is None:
        return {ALL: slice(None)}
    names, codes = np.unique(columns[segment], return_inverse=True)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    return {
        name: order[start:end]
        for name, start, end in zip(names.tolist(), [0, *ends[:-1]], ends, strict=True)
    }


@dataclass(frozen=True)
class Summarise:
    """Send the number of scores and every thousandth one, for each segment."""

    score: str
    segment: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [name for name in (self.score, self.segment) if name is not None]

    def __call__(self, columns: Columns) -> dict[Any, Summary]:
        """Return the summary of each segment in the block."""
        return {
            name: _summary(_scores(columns[self.score])[own])
            for name, own in _by_segment(columns, self.segment).items()
        }


def _scores(column: NDArray[Any]) -> Doubles:
    return np.asarray(column, dtype=np.float64)


def _summary(scores: Doubles) -> Summary:
    ranked = np.sort(scores)
    n_nan = int(np.count_nonzero(np.isnan(scores)))  # at the end of the sorted scores
    falling = ranked[: ranked.size - n_nan][::-1]
    return Summary(scores.size, n_nan, falling[EVERY - 1 :: EVERY].copy())


@dataclass(frozen=True)
class CountInside:
    """Count above a bracket of scores, and gather what lies in it, for each segment."""

    score: str
    brackets: dict[Any, tuple[float, float | None]]  # without an upper end, nothing lies above
    segment: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [name for name in (self.score, self.segment) if name is not None]

    def __call__(self, columns: Columns) -> dict[Any, Inside]:
        """Return what each segment of the block has above its bracket and in it."""
        found = {}
        for name, own in _by_segment(columns, self.segment).items():
            if name in self.brackets:
                low, high = self.brackets[name]
                scores = _scores(columns[self.score])[own]
                is_above = np.zeros(scores.size, bool) if high is None else scores >= high
                inside = scores[(scores >= low) & ~is_above]
                values, counts = np.unique(inside, return_counts=True)
                above = int(np.count_nonzero(is_above))
                found[name] = Inside(above, values, counts.astype(np.int64))
        return found


@dataclass(frozen=True)
class KeysOfTied:
    """Send the tie keys of the rows at a score, as far as they lie below a limit."""

    score: str
    id: str
    values: dict[Any, float]
    limits: dict[Any, float]
    seed: int = 0
    segment: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [name for name in (self.score, self.id, self.segment) if name is not None]

    def __call__(self, columns: Columns) -> dict[Any, Doubles]:
        """Return the keys below the limit of each segment in the block."""
        found = {}
        for name, own in _by_segment(columns, self.segment).items():
            if name in self.values:
                tied = _scores(columns[self.score])[own] == self.values[name]
                keys = hash_ids(columns[self.id][own][tied], seed=self.seed)
                found[name] = keys[keys < self.limits[name]]
        return found


@dataclass(frozen=True)
class RowsBefore:
    """Tell which rows come before a cut, that of their own segment if there are segments."""

    score: str
    id: str
    cuts: dict[Any, Cut]
    seed: int = 0
    segment: str | None = None

    def __call__(self, columns: Columns) -> Mask:
        """Return a mask of the rows of the block."""
        scores = _scores(columns[self.score])
        kept = np.zeros(scores.size, dtype=bool)
        for name, own in _by_segment(columns, self.segment).items():
            ids = columns[self.id][own]

            def keys(tied: Any, ids: Any = ids) -> Any:
                return hash_ids(ids[tied], seed=self.seed)

            if name in self.cuts:
                kept[own] = flag_above(scores[own], self.cuts[name], keys)
        return kept
