"""The one finder of ranks in tables that no one holds together, exactly and in bounded memory.

Two passes find the score in a place: in the first, each block sends every so many-th of its sorted
scores, which brackets any place with certainty; in the second, blocks count what lies above the
bracket and send what lies inside. Only if a block of tied scores is cut, the ids of these rows are
hashed, and the same two passes find the key that divides them. Nothing is approximate, and nothing
depends on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles
from .._core.ids import hash_ids
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cut
from ..exceptions import TableError
from .engine import Columns, Engine, on_arrays

#: The name of the one segment if there are none.
ALL = None
#: A block sends about so many numbers of a segment.
_FEW = 1 << 14
#: A function of a block that returns numbers for each segment.
Numbers = Callable[[Columns], dict[Any, Doubles]]


class _Summary(NamedTuple):
    """Numbers of a block, the highest first, each with those it stands for: itself, and the
    following ones up to the next. How many more numbers lie above them, and how many are NaN.
    """

    values: Doubles
    counts: NDArray[np.int64]
    above: int = 0
    n_nan: int = 0


class _Located(NamedTuple):
    """The number in a place, and how many come before it."""

    value: float
    above: int


def _summarise(
    columns: Columns, *, numbers: Numbers, brackets: dict[Any, tuple[float, float]] | None, few: int
) -> dict[Any, _Summary]:
    """Draw about so many numbers of each segment; or send all that lie inside its bracket."""
    found = numbers(columns)
    if brackets is None:
        return {name: _drawn(own, few) for name, own in found.items()}
    return {name: _inside(found[name], *ends) for name, ends in brackets.items() if name in found}


def _drawn(numbers: Doubles, few: int) -> _Summary:
    ordered = np.sort(numbers)  # NaN comes last
    n_nan = numbers.size - int(np.searchsorted(ordered, np.nan))
    places = np.arange(0, numbers.size, max(1, -(-numbers.size // few)))
    counts = np.diff(np.append(places, numbers.size))
    return _Summary(ordered[::-1][places], counts, n_nan=n_nan)


def _inside(numbers: Doubles, low: float, high: float) -> _Summary:
    rest = numbers[numbers >= low]
    inside = rest[rest <= high]
    values, counts = np.unique(inside, return_counts=True)
    return _Summary(values, counts, above=rest.size - inside.size)


def _joined(parts: list[_Summary]) -> tuple[Doubles, NDArray[np.int64]]:
    """Return the numbers of all parts from the highest on, and how many each stands for."""
    values = np.concatenate([part.values for part in parts])
    order = np.argsort(-values, kind="stable")
    return values[order], np.concatenate([part.counts for part in parts])[order]


def _bracket(parts: list[_Summary], place: int) -> tuple[float, float]:
    """Return two numbers between which that in a place lies for certain.

    At most the numbers that a drawn one and all before it stand for are above the next one. At
    least those up to a drawn one are not below it, but for those behind the last one of each part.
    """
    values, counts = _joined(parts)
    down_to = np.cumsum(counts)
    behind = sum(int(part.counts.max()) - 1 for part in parts if part.counts.size)
    high = values[np.searchsorted(down_to - counts, place, side="right") - 1]
    last = int(np.searchsorted(down_to, place + 1 + behind))
    return float(values[last]) if last < values.size else -np.inf, float(high)


def _pick(parts: list[_Summary], place: int) -> _Located:
    """Return the number in a place, which is among those sent."""
    above = sum(part.above for part in parts)
    values, counts = _joined(parts)
    at = int(np.searchsorted(above + np.cumsum(counts), place, side="right"))
    return _Located(float(values[at]), above + int(counts[values > values[at]].sum()))


def _gather(answers: Iterable[dict[Any, Any]]) -> dict[Any, list[Any]]:
    parts: dict[Any, list[Any]] = {}
    for answer in answers:
        for name, part in answer.items():
            parts.setdefault(name, []).append(part)
    return parts


def _search(
    call: Callable[[Any], Iterable[Any]],
    numbers: Numbers,
    places: dict[Any, int],
    drawn: dict[Any, list[_Summary]],
) -> dict[Any, _Located]:
    """Find the numbers in some places; another pass is made if not all numbers were drawn."""
    brackets = {
        name: _bracket(drawn[name], place)
        for name, place in places.items()
        if any((part.counts > 1).any() for part in drawn[name])
    }
    parts = dict(drawn)
    if brackets:
        parts |= _gather(call(partial(_summarise, numbers=numbers, brackets=brackets, few=_FEW)))
    return {name: _pick(parts[name], place) for name, place in places.items()}


# --- rows ---


def by_segment(columns: Columns, segment: str | None) -> dict[Any, Any]:
    """Return the places of the rows of each segment; without segments, of all rows."""
    if segment is None:
        return {ALL: slice(None)}
    names, codes = np.unique(columns[segment], return_inverse=True)
    ends = np.cumsum(np.bincount(codes))
    rows = np.split(np.argsort(codes, kind="stable"), ends[:-1])
    return dict(zip(names.tolist(), rows, strict=False))


def _scores(columns: Columns, *, score: str, segment: str | None) -> dict[Any, Doubles]:
    """Return the scores of a block, for each segment."""
    scores = np.asarray(columns[score], dtype=np.float64)
    return {name: scores[own] for name, own in by_segment(columns, segment).items()}


def _keys(
    columns: Columns, *, at: dict[Any, float], score: str, segment: str | None, id: str, seed: int
) -> dict[Any, Doubles]:
    """Return minus the tie keys of the rows at a score, so that the first key is the highest."""
    scores = np.asarray(columns[score], dtype=np.float64)
    rows = by_segment(columns, segment)
    return {
        name: -hash_ids(columns[id][rows[name]][scores[rows[name]] == value], seed=seed)
        for name, value in at.items()
        if name in rows
    }


@dataclass(frozen=True)
class Ranks:
    """Finds cuts in a table of an engine: one for all rows, or one for each segment.

    Without ids, tied rows cannot be divided.
    """

    engine: Engine
    table: Any
    score: str
    id: str | None = None
    segment: str | None = None
    seed: int = 0

    @property
    def _scores(self) -> Numbers:
        return partial(_scores, score=self.score, segment=self.segment)

    def _call(self, table: Any, *others: str | None) -> Callable[[Any], Iterable[Any]]:
        """Return a function that calls a kernel with the scores, segments and other columns."""
        names = [name for name in (self.score, self.segment, *others) if name is not None]
        return on_arrays(self.engine, table, list(dict.fromkeys(names)))

    def _draw(self, table: Any, numbers: Numbers, *others: str | None) -> dict[Any, list[_Summary]]:
        call = self._call(table, *others)
        return _gather(call(partial(_summarise, numbers=numbers, brackets=None, few=_FEW)))

    @cached_property
    def _drawn(self) -> dict[Any, list[_Summary]]:
        """What the first pass draws; scores that are not numbers are an error."""
        drawn = self._draw(self.table, self._scores)
        sums = [(own.counts.sum(), own.n_nan) for each in drawn.values() for own in each]
        n_rows, n_nan = np.sum(sums, axis=0).tolist() if sums else (0, 0)
        if n_nan:
            raise TableError(
                f"The column {self.score!r} must hold a number in every row; {n_nan:,} of "
                f"{n_rows:,} are NaN or empty. Give these rows a score, or leave them out."
            )
        return drawn

    @cached_property
    def sizes(self) -> dict[Any, int]:
        """The number of rows of each segment; of none, there is one."""
        sizes = {
            name: sum(int(own.counts.sum()) for own in parts) for name, parts in self._drawn.items()
        }
        return sizes if self.segment is not None else {ALL: 0, **sizes}

    def cuts(self, wanted: dict[Any, int]) -> dict[Any, Cut]:
        """Return for each segment the cut before which exactly that many rows lie."""
        places = {name: k for name, k in wanted.items() if 0 < k < self.sizes[name]}
        found = self._locate(places)
        cuts = {name: BEFORE_ALL if k <= 0 else AFTER_ALL for name, k in wanted.items()}
        cuts |= {name: Cut(each.value) for name, each in found.items()}
        divided = {name: each for name, each in found.items() if places[name] > each.above}
        for name, key in self._key_of(divided, places).items():
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
        key = self._key_of(found, {ALL: place})[ALL]
        return Cut(value, -key.value), above + key.above

    def _locate(self, places: dict[Any, int]) -> dict[Any, _Located]:
        return _search(self._call(self.table), self._scores, places, self._drawn)

    def _key_of(self, found: dict[Any, _Located], places: dict[Any, int]) -> dict[Any, _Located]:
        """Find the keys that divide the tied rows of each segment."""
        if not found:
            return {}
        at = {name: each.value for name, each in found.items()}
        table = self.engine.between(self.table, self.score, min(at.values()), max(at.values()))
        call = self._call(table, self.id)
        keys = partial(
            _keys, at=at, score=self.score, segment=self.segment, id=str(self.id), seed=self.seed
        )
        left = {name: places[name] - each.above for name, each in found.items()}
        return _search(call, keys, left, self._draw(table, keys, self.id))
