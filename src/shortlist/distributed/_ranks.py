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

from .._core.arrays import Doubles, Mask
from .._core.ids import hash_ids
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cut, flag_above
from ..exceptions import TableError
from .engine import Columns, Engine, on_arrays

#: The name of the one segment if there are none.
ALL = None
#: A block sends about so many numbers of a segment.
_FEW = 1 << 14
#: A function of a block that returns numbers for each segment.
Numbers = Callable[[Columns], dict[Any, Doubles]]
#: A function that calls a kernel on the numbers of all blocks, and gathers the answers by segment.
Passes = Callable[..., dict[Any, list["_Summary"]]]


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


def _drawn(columns: Columns, *, numbers: Numbers, few: int) -> dict[Any, _Summary]:
    """Draw about so many numbers of each segment."""
    parts = {}
    for name, own in numbers(columns).items():
        ordered = np.sort(own)  # NaN comes last
        n_nan = own.size - int(np.searchsorted(ordered, np.nan))
        places = np.arange(0, own.size, max(1, -(-own.size // few)))
        counts = np.diff(np.append(places, own.size))
        parts[name] = _Summary(ordered[::-1][places], counts, n_nan=n_nan)
    return parts


def _inside(
    columns: Columns, *, numbers: Numbers, brackets: dict[Any, tuple[float, float]]
) -> dict[Any, _Summary]:
    """Send all numbers that lie inside the bracket of their segment."""
    found, parts = numbers(columns), {}
    for name in brackets.keys() & found.keys():
        low, high = brackets[name]
        rest = found[name][found[name] >= low]
        inside = rest[rest <= high]
        values, counts = np.unique(inside, return_counts=True)
        parts[name] = _Summary(values, counts, above=rest.size - inside.size)
    return parts


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


def _gather(answers: Iterable[dict[Any, _Summary]]) -> dict[Any, list[_Summary]]:
    parts: dict[Any, list[_Summary]] = {}
    for answer in answers:
        for name, part in answer.items():
            parts.setdefault(name, []).append(part)
    return parts


def _search(
    passes: Passes, places: dict[Any, int], drawn: dict[Any, list[_Summary]]
) -> dict[Any, _Located]:
    """Find the numbers in some places; another pass is made if not all numbers were drawn."""
    brackets = {
        name: _bracket(drawn[name], place)
        for name, place in places.items()
        if any((part.counts > 1).any() for part in drawn[name])
    }
    parts = drawn | (passes(_inside, brackets=brackets) if brackets else {})
    return {name: _pick(parts[name], place) for name, place in places.items()}


# --- rows ---


class Order(NamedTuple):
    """The columns that put rows in order: scores, and ids, whose hash divides tied rows.

    Each segment has an order of its own. Without ids, tied rows cannot be divided.
    """

    score: str
    id: str | None = None
    segment: str | None = None
    seed: int = 0

    @property
    def columns(self) -> list[str]:
        """The columns without repeats."""
        return list(dict.fromkeys(name for name in self[:3] if name is not None))

    def places(self, columns: Columns) -> dict[Any, Any]:
        """Return the places of the rows of each segment; without segments, of all rows."""
        if self.segment is None:
            return {ALL: slice(None)}
        names, codes = np.unique(columns[self.segment], return_inverse=True)
        ends = np.cumsum(np.bincount(codes))
        rows = np.split(np.argsort(codes, kind="stable"), ends[:-1])
        return dict(zip(names.tolist(), rows, strict=False))

    def scores(self, columns: Columns) -> dict[Any, Doubles]:
        """Return the scores of a block, for each segment."""
        scores = self._all_scores(columns)
        return {name: scores[own] for name, own in self.places(columns).items()}

    def keys(self, columns: Columns, *, at: dict[Any, float]) -> dict[Any, Doubles]:
        """Return minus the keys of the rows at a score, so that the first key is the highest."""
        scores = self._all_scores(columns)
        return {
            name: -self._hashes(columns, own, scores[own] == at[name])
            for name, own in self.places(columns).items()
            if name in at
        }

    def before(self, columns: Columns, cuts: dict[Any, Cut]) -> Mask:
        """Return which rows lie before the cut of their segment; where there is none, no row."""
        scores = self._all_scores(columns)
        before = np.zeros(scores.size, dtype=bool)
        for name, own in self.places(columns).items():
            if name in cuts:
                keys = partial(self._hashes, columns, own)
                before[own] = flag_above(scores[own], cuts[name], keys)
        return before

    def _all_scores(self, columns: Columns) -> Doubles:
        return np.asarray(columns[self.score], dtype=np.float64)

    def _hashes(self, columns: Columns, places: Any, tied: Any) -> Doubles:
        return hash_ids(columns[str(self.id)][places][tied], seed=self.seed)


@dataclass(frozen=True)
class Ranks:
    """Finds cuts in a table of an engine: one for all rows, or one for each segment."""

    engine: Engine
    table: Any
    order: Order

    @cached_property
    def _drawn(self) -> dict[Any, list[_Summary]]:
        """What the first pass draws; scores that are not numbers are an error."""
        drawn = self._over_scores(_drawn, few=_FEW)
        sums = [(own.counts.sum(), own.n_nan) for each in drawn.values() for own in each]
        n_rows, n_nan = np.sum(sums, axis=0).tolist() if sums else (0, 0)
        if n_nan:
            raise TableError(
                f"The column {self.order.score!r} must hold a number in every row; {n_nan:,} of "
                f"{n_rows:,} are NaN or empty. Give these rows a score, or leave them out."
            )
        return drawn

    @cached_property
    def sizes(self) -> dict[Any, int]:
        """The number of rows of each segment; of none, there is one."""
        sizes = {
            name: sum(int(own.counts.sum()) for own in parts) for name, parts in self._drawn.items()
        }
        return sizes if self.order.segment is not None else {ALL: 0, **sizes}

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
        if self.order.id is None:
            return Cut(value), above
        key = self._key_of(found, {ALL: place})[ALL]
        return Cut(value, -key.value), above + key.above

    def _passes(self, table: Any, order: Order, numbers: Numbers) -> Passes:
        """Return a function that calls a kernel on the numbers of every block."""
        call = on_arrays(self.engine, table, order.columns)
        return lambda kernel, **options: _gather(call(partial(kernel, numbers=numbers, **options)))

    @cached_property
    def _over_scores(self) -> Passes:
        return self._passes(self.table, self.order._replace(id=None), self.order.scores)

    def _locate(self, places: dict[Any, int]) -> dict[Any, _Located]:
        return _search(self._over_scores, places, self._drawn)

    def _key_of(self, found: dict[Any, _Located], places: dict[Any, int]) -> dict[Any, _Located]:
        """Find the keys that divide the tied rows of each segment."""
        if not found:
            return {}
        at = {name: each.value for name, each in found.items()}
        least, most = min(at.values()), max(at.values())
        table = self.engine.between(self.table, self.order.score, least, most)
        over_keys = self._passes(table, self.order, partial(self.order.keys, at=at))
        left = {name: places[name] - each.above for name, each in found.items()}
        return _search(over_keys, left, over_keys(_drawn, few=_FEW))
