"""Capacity curves of rows that are never held together, from two passes over them.

Rows are ranked as lists rank them: by score, then by tie key. The first pass gathers the places of
the rare rows, the second counts the rows between them. Of rows between two rare ones, only their
number matters, so the curve is that of all rows. Of more than 32,768 rare rows, the places of the
first 32,768 are kept, and of as many that are drawn by digits of their keys. Rows between two kept
places count as tied if a rare row is among them: intervals are a little wider, and the marginal is
coarser. Nothing depends on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Ints, Rows
from .._core.labels import EstimatedShare
from ..capacity import Capacity
from ._curve import CapacityCurve, curve_of_counts
from ._detection_region import counts_with_bounds

#: The columns of a block: `lifted` scores, tie `key`, `is_rare`, and the flags of rules.
Columns = Mapping[str, NDArray[Any]]
_MOST = 1 << 15  # places of rare rows from the top, and as many drawn ones


@dataclass(frozen=True)
class CountedRows:
    """Numbers of rows by cells of the ranking, by whether they are rare, and by flags of rules."""

    counts: Ints
    rules: tuple[str, ...]

    @property
    def n_items(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def n_rare(self) -> int:
        """The number of rare rows."""
        return int(self.counts[:, 1].sum())

    @property
    def share(self) -> EstimatedShare:
        """The share of the rare rows."""
        return EstimatedShare(self.n_rare, self.n_items)

    def flags(self, rule: str) -> tuple[int, int]:
        """Return how many rows a rule flags, and how many of these are rare."""
        flagged = self._by_flag(rule)[0]
        return int(flagged.sum()), int(flagged[:, 1].sum())

    def curve(
        self, capacities: Iterable[Capacity] = (), *, first: str | None = None
    ) -> CapacityCurve:
        """Return a curve that can be read at some capacities, and gives intervals at any.

        With `first`, the rows that this rule flags come before all others.
        """
        cells = np.concatenate(self._by_flag(first)) if first else self._summed(self.counts, 2)
        wanted = [capacity.max_flags(self.n_items, self.share) for capacity in capacities]
        return _curve(cells[cells.any(axis=1)], np.array(wanted, dtype=np.int64))

    def _by_flag(self, rule: str) -> Ints:
        """Return the cells of the flagged rows, and those of the others."""
        axis = 2 + self.rules.index(rule)
        return self._summed(np.moveaxis(self.counts, axis, 0)[::-1], 3)

    @staticmethod
    def _summed(counts: Ints, n_axes: int) -> Ints:
        return counts.sum(axis=tuple(range(n_axes, counts.ndim)))


def count_rows(summaries: Callable[[Any], Iterable[Any]], rules: Iterable[str] = ()) -> CountedRows:
    """Count rows in two passes; `summaries` calls a kernel on every block, in any order."""
    rules = tuple(rules)
    edges = reduce(_joined, summaries(_rare_places), np.empty(0, dtype=np.complex128))
    shape = (2 * edges.size + 1, 2, *(2 for _ in rules))
    counts = np.zeros(np.prod(shape), dtype=np.int64)
    for filled, numbers in summaries(_Count(edges, rules)):
        counts[filled] += numbers
    return CountedRows(counts.reshape(shape), rules)


def _places(columns: Columns, rows: Any = slice(None)) -> NDArray[np.complex128]:
    """Return the places of rows as complex numbers, which have the order of score and key."""
    places = np.empty(columns["key"][rows].size, dtype=np.complex128)
    places.real = 0.0 - columns["lifted"][rows]  # one zero
    places.imag = columns["key"][rows]
    return places


def _rare_places(columns: Columns) -> NDArray[np.complex128]:
    return _thinned(_places(columns, np.asarray(columns["is_rare"], dtype=bool)))


def _joined(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    return _thinned(np.concatenate([one, other]))


def _thinned(places: NDArray[Any]) -> NDArray[Any]:
    places = np.unique(places)
    draws = places.imag * 2**20 % 1  # later digits of the keys: no part of their order
    drawn = np.argsort(draws, kind="stable")[:_MOST]
    return np.union1d(places[:_MOST], places[drawn])


@dataclass(frozen=True)
class _Count:
    """Counts the rows of a block at the edges and between them, and sends what is not zero."""

    edges: NDArray[np.complex128]
    rules: tuple[str, ...]

    def __call__(self, columns: Columns) -> tuple[Rows, Ints]:
        places = _places(columns)
        codes = np.searchsorted(self.edges, places)
        codes += np.searchsorted(self.edges, places, side="right")
        for name in ("is_rare", *self.rules):
            codes *= 2
            codes += np.asarray(columns[name], dtype=bool)
        counts = np.bincount(codes)
        filled = np.flatnonzero(counts)
        return filled, counts[filled]


def _curve(cells: Ints, wanted: Ints) -> CapacityCurve:
    """Make a curve of the cuts that matter: those around rare rows and some others.

    Any place in a cell without rare rows is a cut. Those at which a bound of the false alarms
    changes give all intervals.
    """
    alarms, found = np.concatenate([[[0, 0]], np.cumsum(cells, axis=0)]).T
    flagged = alarms + found
    changes = counts_with_bounds(int(alarms[-1]))
    changes = changes + found[np.searchsorted(alarms, changes, side="right") - 1]
    others = np.concatenate([changes, wanted[(wanted >= 0) & (wanted < flagged[-1])]])
    others = others[others < flagged[-1]]
    is_free = cells[np.searchsorted(flagged, others, side="right") - 1, 1] == 0
    cuts = np.union1d(flagged, others[is_free])
    n_found = found[np.searchsorted(flagged, cuts, side="right") - 1]
    return curve_of_counts(np.full(cuts.size, np.nan), cuts, n_found)
