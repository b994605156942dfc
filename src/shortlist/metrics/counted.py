"""Exact capacity curves of rows that no one holds together, from a few passes over them.

A pass counts the rows between some places of a ranking. Answers about a capacity rest on a few of
these cells. The next pass divides these further, at places of a sample that was drawn before, until
they are small enough to be looked at row by row. The other cells are never looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Ints, Mask, Rows
from ..capacity import Capacity
from ._curve import CapacityCurve, curve_of_counts

__all__ = ["CountedCurves", "Ranking"]

#: The columns of a block of rows, and what calls a kernel on every block.
Columns = Mapping[str, NDArray[Any]]
Summaries = Callable[[Any], Iterable[Any]]
#: Cells with fewer rows together are looked at row by row; others are divided into about so many.
_FEW_ROWS, _MOST_EDGES = 1 << 17, 1 << 14
_FEWEST_PIECES, _MOST_PIECES, _FEW_IN_CELL = 8, 1 << 10, 1 << 10
_ONE_OF = 256  # rows are drawn


@dataclass(frozen=True)
class Ranking:
    """How rows are ranked: by a column of scores, the highest first.

    With a column of keys, these order tied rows, every row is a cut, and rows with equal keys go in
    their own order; without it, a cut cannot fall into a tied block. Rows that are flagged in the
    column `first` come before all others.
    """

    score: str
    key: str | None = None
    first: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that it needs."""
        return [name for name in (self.score, self.key, self.first) if name is not None]

    def parts(self, columns: Columns) -> list[tuple[NDArray[Any], Mask]]:
        """Return the places of the flagged rows and of the others, and which of them are rare."""
        places = -np.asarray(columns[self.score], dtype=np.float64) + 0.0  # one zero
        if self.key is not None:  # complex numbers have the order of score and key
            scores, places = places, np.empty(places.size, dtype=np.complex128)
            places.real, places.imag = scores, columns[self.key]
        is_rare = np.asarray(columns["is_rare"], dtype=bool)
        if self.first is None:
            return [(places, is_rare)]
        flagged = np.asarray(columns[self.first], dtype=bool)
        return [(places[own], is_rare[own]) for own in (flagged, ~flagged)]

    @property
    def last(self) -> NDArray[Any]:
        """A place that no row lies behind."""
        return np.array([np.inf if self.key is None else complex(np.inf, np.inf)])


class _Rows(NamedTuple):
    """Places of a block, rising, with the number of rows and of rare ones, or the labels."""

    places: NDArray[Any]
    counts: Ints
    rare: NDArray[Any]


@dataclass(frozen=True)
class _Draw:
    """Counts the rows and the rare rows of each part, and draws some places."""

    rankings: dict[str, Ranking]

    def __call__(self, columns: Columns) -> dict[str, list[tuple[int, int, NDArray[Any]]]]:
        return {
            name: [
                (places.size, int(is_rare.sum()), _drawn(places))
                for places, is_rare in ranking.parts(columns)
            ]
            for name, ranking in self.rankings.items()
        }


def _drawn(places: NDArray[Any]) -> NDArray[Any]:
    n_drawn = -(-places.size // _ONE_OF)
    return places[np.random.default_rng(0).integers(max(places.size, 1), size=n_drawn)]


class _Question(NamedTuple):
    """Edges of cells, rising, and the cells between them whose rows are wanted."""

    edges: NDArray[Any]
    wanted: Mask


@dataclass(frozen=True)
class _Look:
    """Counts the rows and the rare rows between edges, and gathers those of some cells."""

    rankings: dict[str, Ranking]
    questions: dict[str, list[_Question]]

    def __call__(self, columns: Columns) -> dict[str, list[tuple[Ints, Ints, _Rows]]]:
        return {
            name: [
                self._look(part, question, tied=self.rankings[name].key is None)
                for part, question in zip(
                    self.rankings[name].parts(columns), questions, strict=True
                )
            ]
            for name, questions in self.questions.items()
        }

    @staticmethod
    def _look(part: Any, question: _Question, *, tied: bool) -> tuple[Ints, Ints, _Rows]:
        places, is_rare = part
        if not question.edges.size:
            none = np.zeros(1, np.int64)
            return none, none, _gathered(places, is_rare, slice(0), tied)
        cells = np.searchsorted(question.edges, places)
        size = question.edges.size + 1
        counts = np.bincount(cells, minlength=size)
        rare = np.bincount(cells[is_rare], minlength=size)
        return counts, rare, _gathered(places, is_rare, question.wanted[cells], tied)


def _gathered(places: NDArray[Any], is_rare: Mask, own: Any, tied: bool) -> _Rows:
    places, is_rare = places[own], is_rare[own]
    if not tied:
        order = np.argsort(places, kind="stable")
        return _Rows(places[order], np.ones(order.size, np.int64), is_rare[order])
    different, codes = np.unique(places, return_inverse=True)
    counts = np.bincount(codes, minlength=different.size)
    return _Rows(different, counts, np.bincount(codes[is_rare], minlength=different.size))


def _joined(parts: list[_Rows], *, tied: bool) -> _Rows:
    places, counts, rare = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if not tied:
        order = np.argsort(places, kind="stable")
        return _Rows(places[order], counts[order], rare[order].astype(np.int64))
    different, codes = np.unique(places, return_inverse=True)
    sums = np.zeros((2, different.size), dtype=np.int64)
    np.add.at(sums[0], codes, counts)
    np.add.at(sums[1], codes, rare)
    return _Rows(different, *sums)


@dataclass
class _Part:
    """The cells of a part of the ranking. Each ends with its place in `ends`."""

    sample: NDArray[Any]
    ends: NDArray[Any]
    counts: Ints
    rare: Ints
    is_open: Mask
    _asked: dict[int, NDArray[Any]] = field(default_factory=dict)  # where cells are divided

    def ask(self, cells: Rows, *, pieces: int | None) -> _Question:
        """Ask about some cells: for their rows, or for as many pieces if that is possible."""
        self._asked = {int(cell): self._inside(int(cell), pieces) for cell in cells}
        if not self._asked:
            return _Question(self.ends[:0], np.zeros(1, dtype=bool))
        starts = [self.ends[cell - 1 : cell] for cell in self._asked if cell > 0]
        ends = [self.ends[cell : cell + 1] for cell in self._asked]
        edges = np.unique(np.concatenate([*starts, *ends, *self._asked.values()]))
        wanted = np.zeros(edges.size + 1, dtype=bool)
        whole = [self.ends[cell] for cell, inside in self._asked.items() if not inside.size]
        wanted[np.searchsorted(edges, np.array(whole, dtype=edges.dtype))] = True
        return _Question(edges, wanted)

    def _inside(self, cell: int, pieces: int | None) -> NDArray[Any]:
        """Return sampled places inside a cell, at which to divide it; none if it is small."""
        low = self._begin(self.sample, cell)
        high = int(np.searchsorted(self.sample, self.ends[cell], side="left"))
        if pieces is None or self.counts[cell] <= _FEW_IN_CELL or low >= high:
            return self.sample[:0]
        return self.sample[np.unique(np.linspace(low, high, pieces + 1)[1:-1].astype(np.intp))]

    def _begin(self, places: NDArray[Any], cell: int) -> int:
        """Return the first of some rising places that lies in a cell or behind it."""
        return int(np.searchsorted(places, self.ends[cell - 1], side="right")) if cell else 0

    def learn(self, question: _Question, counts: Ints, rare: Ints, rows: _Rows) -> None:
        """Replace the cells that were asked about."""
        new: list[Any] = []
        done = 0
        for cell, inside in sorted(self._asked.items()):
            new.append([column[done:cell] for column in self._columns])
            new.append(self._replaced(cell, inside, question.edges, (counts, rare), rows))
            done = cell + 1
        new.append([column[done:] for column in self._columns])
        columns = [np.concatenate(each) for each in zip(*new, strict=True)]
        filled = columns[1] > 0
        self.ends, self.counts, self.rare, self.is_open = (column[filled] for column in columns)

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.ends, self.counts, self.rare, self.is_open

    def _replaced(
        self, cell: int, inside: NDArray[Any], edges: NDArray[Any], counted: Any, rows: _Rows
    ) -> list[NDArray[Any]]:
        if inside.size:
            ends = np.append(inside, self.ends[cell])
            counts, rare = (each[np.searchsorted(edges, ends)] for each in counted)
            return [ends, counts, rare, counts > 1]
        end = int(np.searchsorted(rows.places, self.ends[cell], side="right"))
        own = slice(self._begin(rows.places, cell), end)
        return [*(each[own] for each in rows), np.zeros(end - own.start, dtype=bool)]


class CountedCurves:
    """Capacity curves of several rankings of the same rows, which are counted in passes.

    `summaries` calls a kernel on the columns of every block of rows, and returns the answers, in
    the order of the blocks if they have one. Besides the columns of the rankings there is
    `is_rare`. `n_items` and `n_rare` are counted in the first pass.
    """

    def __init__(self, summaries: Summaries, rankings: dict[str, Ranking]) -> None:
        self._summaries, self._rankings = summaries, rankings
        answers = list(summaries(_Draw(rankings)))
        self._parts = {
            name: [_drawn_part(ranking, parts) for parts in zip(*drawn, strict=True)]
            for name, ranking in rankings.items()
            for drawn in [[answer[name] for answer in answers]]
        }
        first = next(iter(self._parts.values()))
        self.n_items = sum(int(part.counts.sum()) for part in first)
        self.n_rare = sum(int(part.rare.sum()) for part in first)

    def first(self, name: str) -> tuple[int, int]:
        """Return how many rows come first in a ranking, and how many of these are rare."""
        part = self._parts[name][0] if self._parts[name] else None
        return (0, 0) if part is None else (int(part.counts.sum()), int(part.rare.sum()))

    def settle(
        self, asked: dict[str, list[Capacity]], *, rows: Iterable[str] | None = None
    ) -> dict[str, CapacityCurve]:
        """Return curves that are exact at some capacities; elsewhere cuts may be missing.

        Of rankings that are not among `rows`, only :meth:`CapacityCurve.interval_at` is exact.
        """
        with_rows = set(asked if rows is None else rows)
        while True:
            curves = {name: self._curve(name) for name in asked}
            needed = {
                name: self._needed(name, curves[name], asked[name], row=name in with_rows)
                for name in asked
            }
            if not any(cells.size for cells in needed.values()):
                return curves
            self._look_into({name: cells for name, cells in needed.items() if cells.size})

    def _curve(self, name: str) -> CapacityCurve:
        flagged, found = (
            np.cumsum(np.concatenate([[0], *(getattr(part, each) for part in self._parts[name])]))
            for each in ("counts", "rare")
        )
        return curve_of_counts(np.full(flagged.size, np.nan), flagged, found)

    def _needed(
        self, name: str, curve: CapacityCurve, capacities: list[Capacity], *, row: bool
    ) -> Rows:
        is_open = np.concatenate([part.is_open for part in self._parts[name]])
        if not is_open.any():
            return np.empty(0, dtype=np.intp)
        cells = [curve.cells_behind(each, is_open, row=row) for each in capacities]
        return np.unique(np.concatenate(cells))

    def _look_into(self, needed: dict[str, Rows]) -> None:
        asked = {name: self._ask(name, cells) for name, cells in needed.items()}
        totals: dict[str, list[Any]] = {name: [] for name in asked}
        for answer in self._summaries(_Look(self._rankings, asked)):
            for name, parts in answer.items():
                totals[name].append(parts)
        for name, questions in asked.items():
            tied = self._rankings[name].key is None
            for part, question, answers in zip(
                self._parts[name], questions, zip(*totals[name], strict=True), strict=True
            ):
                counts, rare, rows = zip(*answers, strict=True)
                joined = _joined(list(rows), tied=tied)
                part.learn(question, np.sum(counts, axis=0), np.sum(rare, axis=0), joined)

    def _ask(self, name: str, cells: Rows) -> list[_Question]:
        parts = self._parts[name]
        n_rows = np.concatenate([part.counts for part in parts])[cells].sum()
        pieces = None
        if n_rows > _FEW_ROWS:
            pieces = int(np.clip(_MOST_EDGES // cells.size, _FEWEST_PIECES, _MOST_PIECES))
        starts = np.cumsum([0, *(part.counts.size for part in parts)])
        return [
            part.ask(cells[(cells >= start) & (cells < end)] - start, pieces=pieces)
            for part, start, end in zip(parts, starts[:-1], starts[1:], strict=True)
        ]


def _drawn_part(ranking: Ranking, drawn: Any) -> _Part:
    counts, rare, samples = zip(*drawn, strict=True)
    n, sample = np.array([sum(counts)]), np.unique(np.concatenate(samples))
    some = n > 0
    return _Part(sample, ranking.last[some], n[some], np.array([sum(rare)])[some], (n > 1)[some])
