"""The one finder of ranks in tables that no one holds together, exactly and in bounded memory.

The engine's own top-k finds the score in a place, if it has one and the place is not too deep.
Otherwise scores are counted by their first 16 bits, whose order is that of the scores; one of these
bins holds the place, and the next pass counts its scores by their next 16 bits. A block that has
few scores in a bin sends them instead. Only if a block of tied scores is cut, the ids of these rows
are hashed, and the same search finds the key that divides them. Nothing is approximate, and nothing
depends on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask
from .._core.hashing import hash_ids
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cut, flag_above
from ..exceptions import TableError
from .engine import Columns, Engine, as_columns, on_arrays

__all__ = ["ALL", "Ranks", "RowsBefore"]

#: The name of the one segment if there are none.
ALL = None
#: A block sends at most so many numbers; as many tied rows are fetched; the deepest own top-k.
_FEW, _FEW_TIED, _MOST_HELD = 1 << 16, 1 << 17, 1 << 22
_BITS, _ROUNDS = 16, 4


class _Numbers(NamedTuple):
    """Different numbers of a block with their counts; or bins with counts, if there are many."""

    n: int
    n_nan: int
    values: NDArray[Any]
    counts: NDArray[np.int64]
    are_bins: bool = False


class _Located(NamedTuple):
    """The number in a place, and how many come before it."""

    value: float
    above: int


class _Bin(NamedTuple):
    """The first bits of the number that is looked for, and how many numbers come before them."""

    level: int = 0
    prefix: int = 0
    above: int = 0


def _codes(numbers: Doubles) -> NDArray[np.uint64]:
    """Return whole numbers that rise where numbers fall."""
    bits = (numbers + 0.0).view(np.int64)  # one zero
    return ~((bits ^ ((bits >> 63) & np.int64(2**63 - 1))) ^ np.int64(-(2**63))).view(np.uint64)


def _binned(numbers: Doubles, level: int) -> NDArray[np.intp]:
    shift = np.uint64(64 - _BITS * (level + 1))
    return ((_codes(numbers) >> shift) & np.uint64(2**_BITS - 1)).astype(np.intp)


def _within(numbers: Doubles, bin: _Bin) -> Doubles:
    if bin.level == 0:
        return numbers
    return numbers[_codes(numbers) >> np.uint64(64 - _BITS * bin.level) == np.uint64(bin.prefix)]


@dataclass(frozen=True)
class _Count:
    """Sends what a block has in the bins that are looked into, for each segment."""

    numbers: _Scores | _Keys
    bins: dict[Any, _Bin] | None = None

    def __call__(self, columns: Columns) -> dict[Any, _Numbers]:
        found = self.numbers(columns)
        if self.bins is None:
            return {name: self._count(own, _Bin()) for name, own in found.items()}
        return {
            name: self._count(own, self.bins[name])
            for name, own in found.items()
            if name in self.bins
        }

    @staticmethod
    def _count(numbers: Doubles, bin: _Bin) -> _Numbers:
        n_nan = int(np.count_nonzero(np.isnan(numbers)))
        own = _within(numbers, bin)
        if own.size > _FEW and bin.level < _ROUNDS - 1:
            counts = np.bincount(_binned(own, bin.level), minlength=2**_BITS)
            filled = np.flatnonzero(counts)
            return _Numbers(own.size, n_nan, filled, counts[filled], are_bins=True)
        return _Numbers(own.size, n_nan, *np.unique(own, return_counts=True))


def _look(parts: list[_Numbers], bin: _Bin, place: int) -> _Located | _Bin:
    """Find the number in a place, or the bin that holds it."""
    counts = np.concatenate([part.counts for part in parts])
    if not any(part.are_bins for part in parts):
        values = np.concatenate([part.values for part in parts])
        order = np.argsort(-values, kind="stable")
        at = int(np.searchsorted(bin.above + np.cumsum(counts[order]), place, side="right"))
        value = float(values[order[at]])
        return _Located(value, bin.above + int(counts[values > value].sum()))
    bins = [part.values if part.are_bins else _binned(part.values, bin.level) for part in parts]
    sums = np.zeros(2**_BITS, dtype=np.int64)
    np.add.at(sums, np.concatenate(bins), counts)
    down_to = bin.above + np.cumsum(sums)
    at = int(np.searchsorted(down_to, place, side="right"))
    return _Bin(bin.level + 1, (bin.prefix << _BITS) + at, int(down_to[at] - sums[at]))


def _gather(answers: Iterable[dict[Any, _Numbers]]) -> dict[Any, list[_Numbers]]:
    parts: dict[Any, list[_Numbers]] = {}
    for answer in answers:
        for name, numbers in answer.items():
            parts.setdefault(name, []).append(numbers)
    return parts


def _search(
    call: Callable[[Any], Iterable[Any]],
    numbers: Any,
    places: dict[Any, int],
    first: dict[Any, list[_Numbers]],
) -> dict[Any, _Located]:
    """Find the numbers in some places, from what the first pass counted."""
    found: dict[Any, Any] = {
        name: _look(first[name], _Bin(), place) for name, place in places.items()
    }
    while bins := {name: each for name, each in found.items() if isinstance(each, _Bin)}:
        parts = _gather(call(_Count(numbers, bins)))
        found |= {name: _look(parts[name], bin, places[name]) for name, bin in bins.items()}
    return found


# --- rows ---


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
class RowsBefore:
    """Tells which rows come before a cut, that of their own segment if there are segments."""

    score: str
    id: str
    cuts: dict[Any, Cut]
    seed: int = 0
    segment: str | None = None

    def __call__(self, columns: Columns) -> Mask:
        """Return a mask of the rows of the block."""
        scores = np.asarray(columns[self.score], dtype=np.float64)
        kept = np.zeros(scores.size, dtype=bool)
        for name, own in _by_segment(columns, self.segment).items():
            ids = columns[self.id][own]

            def keys(tied: Any, ids: Any = ids) -> Any:
                return hash_ids(ids[tied], seed=self.seed)

            if name in self.cuts:
                kept[own] = flag_above(scores[own], self.cuts[name], keys)
        return kept


@dataclass(frozen=True)
class _Scores:
    """The scores of a block, for each segment, of all rows or of those before other cuts."""

    score: str
    segment: str | None
    among: RowsBefore | None = None

    def __call__(self, columns: Columns) -> dict[Any, Doubles]:
        columns, scores = self.rows(columns)
        return {name: scores[own] for name, own in _by_segment(columns, self.segment).items()}

    def rows(self, columns: Columns) -> tuple[Columns, Doubles]:
        """Return the columns of the rows that count, and their scores."""
        if self.among is not None:
            kept = self.among(columns)
            columns = {name: column[kept] for name, column in columns.items()}
        return columns, np.asarray(columns[self.score], dtype=np.float64)


@dataclass(frozen=True)
class _Keys:
    """Minus the tie keys of the rows at a score, for each segment: the first key is the highest."""

    scores: _Scores
    id: str
    seed: int
    values: dict[Any, float]

    def __call__(self, columns: Columns) -> dict[Any, Doubles]:
        columns, scores = self.scores.rows(columns)
        return {
            name: -hash_ids(columns[self.id][own][scores[own] == self.values[name]], seed=self.seed)
            for name, own in _by_segment(columns, self.scores.segment).items()
            if name in self.values
        }


@dataclass(frozen=True)
class Ranks:
    """Finds cuts in a table of an engine: one for all rows, or one for each segment.

    `within` restricts the search to the rows before other cuts. Without ids, tied rows cannot be
    divided.
    """

    engine: Engine
    table: Any
    score: str
    id: str | None = None
    segment: str | None = None
    seed: int = 0
    within: RowsBefore | None = None

    @property
    def _columns(self) -> list[str]:
        own = None if self.within is None else self.within.segment
        ids = None if self.within is None else self.within.id
        names = (self.score, self.segment, own, ids)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def _numbers(self) -> _Scores:
        return _Scores(self.score, self.segment, self.within)

    @cached_property
    def _n_known(self) -> int | None:
        """The number of rows, if the engine knows it and may find the cut by itself."""
        if self.segment is not None or self.within is not None:
            return None
        return self.engine.n_rows(self.table)

    @cached_property
    def _counted(self) -> dict[Any, list[_Numbers]]:
        """What the first pass counts; scores that are not numbers are an error."""
        call = on_arrays(self.engine, self.table, self._columns)
        parts = _gather(call(_Count(self._numbers)))
        sums = [(own.n, own.n_nan) for each in parts.values() for own in each]
        n_rows, n_nan = np.sum(sums, axis=0).tolist() if sums else (0, 0)
        if n_nan:
            raise TableError(
                f"The column {self.score!r} must hold a number in every row; {n_nan:,} of "
                f"{n_rows:,} are NaN or empty. Give these rows a score, or leave them out."
            )
        return parts

    @cached_property
    def sizes(self) -> dict[Any, int]:
        """The number of rows of each segment; of none, there is one."""
        if self._n_known is not None:
            return {ALL: self._n_known}
        sizes = {name: sum(own.n for own in parts) for name, parts in self._counted.items()}
        return sizes if self.segment is not None else {ALL: 0, **sizes}

    def cuts(self, wanted: dict[Any, int]) -> dict[Any, Cut]:
        """Return for each segment the cut before which exactly that many rows lie."""
        places = {name: k for name, k in wanted.items() if 0 < k < self.sizes[name]}
        found = self._locate(places)
        cuts = {name: BEFORE_ALL if k <= 0 else AFTER_ALL for name, k in wanted.items()}
        cuts |= {name: Cut(each.value) for name, each in found.items()}
        divided = {name: each for name, each in found.items() if places[name] > each.above}
        for name, key in self._keys(divided, places).items():
            if divided[name].above + key.above < places[name]:
                raise TableError(
                    "Rows with the same score and the same id lie at the cut, and nothing puts "
                    "them in order. Give every row an id of its own, or remove repeated rows."
                )
            cuts[name] = Cut(divided[name].value, -key.value)
        return cuts

    def cut_at(self, place: int) -> tuple[Cut, int]:
        """Return the cut at the score in a place, as calibration does, and how many lie before it.

        Without ids, tied rows lie behind the cut as a block.
        """
        n = self.sizes[ALL]
        found = self._locate({ALL: place} if 0 <= place < n else {})
        if not found:
            return (BEFORE_ALL, 0) if place < 0 else (AFTER_ALL, n)
        value, above = found[ALL]
        if self.id is None:
            return Cut(value), above
        key = self._keys(found, {ALL: place})[ALL]
        return Cut(value, -key.value), above + key.above

    def _locate(self, places: dict[Any, int]) -> dict[Any, _Located]:
        """Find the scores in some places, and refuse scores that are not numbers anywhere."""
        top = self._top(places.get(ALL, 0))
        if top is not None and not np.isnan(top).any():
            value = float(top.min(initial=np.inf))
            located = _Located(value, int(np.count_nonzero(top > value)))
            return dict.fromkeys(places, located)
        call = on_arrays(self.engine, self.table, self._columns)
        return _search(call, self._numbers, places, self._counted)

    def _top(self, place: int) -> Doubles | None:
        if not self._n_known or place >= _MOST_HELD:
            return None
        return self.engine.highest(self.table, self.score, place + 1)

    def _keys(self, found: dict[Any, _Located], places: dict[Any, int]) -> dict[Any, _Located]:
        """Find the keys that divide the tied rows of each segment."""
        if not found:
            return {}
        assert self.id is not None
        values = {name: each.value for name, each in found.items()}
        table = self.engine.between(
            self.table, self.score, min(values.values()), max(values.values())
        )
        columns = list(dict.fromkeys([*self._columns, self.id]))
        rows = self.engine.fetch(table, columns, _FEW_TIED)
        call = on_arrays(self.engine, table, columns)
        if rows is not None:
            here = as_columns(rows, columns)
            call = lambda kernel: [kernel(here)]  # noqa: E731
        keys = _Keys(self._numbers, self.id, self.seed, values)
        left = {name: places[name] - each.above for name, each in found.items()}
        return _search(call, keys, left, _gather(call(_Count(keys))))

    def among(self, before: RowsBefore) -> Ranks:
        """Return the same search among the rows before other cuts, without segments."""
        return replace(self, segment=None, within=before)
