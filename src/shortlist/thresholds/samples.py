"""What is known about rows, capacities of their segments, and what a threshold is calibrated on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows, TieKeys
from .._core.ids import MOST_ITEMS, Columns, is_drawn, is_missing, keys_by_id, lots_of
from .._core.ranking import check_scores, keys_within, lift, tied_positions, weigh
from .._core.validation import name_rows
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError

_MISSING, _UNKNOWN = -1, -2  # in place of the number of a segment


@dataclass(frozen=True)
class RowFacts:
    """The rows themselves, and what else is known about each; None where it was not given.

    Ids, values and efforts are checked, and segments and groups are numbered. `columns` are those
    that the rows of the fit had.
    """

    X: Any
    ids: NDArray[Any] | None = None
    segments: Rows | None = None
    groups: Rows | None = None
    values: Doubles | None = None
    efforts: Doubles | None = None
    columns: Columns = None


@dataclass(frozen=True)
class SegmentCapacities:
    """Capacities of the named segments, and of all others together; as a value, None is no limit.

    Segments are numbered in this order, and those that are not named come last.
    """

    named: dict[Any, Capacity | None]
    others: Capacity | None

    @property
    def limits(self) -> list[Capacity | None]:
        """The capacity of each number."""
        return [limit for _, limit in self.items]

    @property
    def limited(self) -> list[tuple[int, Any, Capacity]]:
        """The number and the name of each segment that has a capacity, with this capacity."""
        named = enumerate(self.items)
        return [(code, name, limit) for code, (name, limit) in named if limit is not None]

    @property
    def items(self) -> list[tuple[Any, Capacity | None]]:
        """The segment of each number with its capacity; None stands for the other segments."""
        return [*self.named.items(), *([] if self.others is None else [(None, self.others)])]


def check_segment_capacities(named: Any, others: Any) -> SegmentCapacities | None:
    """Check the parameters `segment_capacities` and `default_segment_capacity`."""
    if named is None:
        if others is not None:
            raise CapacityError(
                "default_segment_capacity was given without segment_capacities. Pass "
                "segment_capacities={} to put every segment under the default."
            )
        return None
    if not isinstance(named, Mapping):
        raise CapacityTypeError(
            "segment_capacities must be a dict from segments to capacities, such as "
            f"{{'north': Capacity.fraction(0.02)}}; got {named!r}."
        )
    if not named and others is None:
        raise CapacityError(
            "segment_capacities={} names no segment. Name some, or pass default_segment_capacity."
        )
    for capacity in (*named.values(), others):
        if capacity is not None:
            check_capacity(capacity)
    return SegmentCapacities(dict(named), others)


def segment_codes(
    segments: ArrayLike | None, capacities: SegmentCapacities | None, n_items: int
) -> Rows:
    """Number the segments of the items in the order of their capacities, if there are any.

    `capacities` has those `named`, and one for all `others`, or None.
    """
    if capacities is None:
        if segments is not None:
            raise ValueError(
                "segments were given without segment_capacities, and would not be used. "
                "Pass segment_capacities to the classifier, or leave the segments out."
            )
        return np.zeros(n_items, dtype=np.intp)
    if segments is None:
        raise ValueError(
            "segments are missing: the classifier has segment_capacities, and needs to know the "
            "segment of each item. Pass segments=... to fit, predict, select and recalibrate."
        )
    values = segments.tolist() if hasattr(segments, "tolist") else list(segments)  # type: ignore[arg-type]
    if len(values) != n_items:
        raise ValueError(
            f"segments must name one segment for each of the {n_items} items; got {len(values)}."
        )
    named = {segment: code for code, segment in enumerate(capacities.named)}
    other = len(named) if capacities.others is not None else _UNKNOWN
    codes = np.fromiter((_code(value, named, other) for value in values), np.intp, n_items)
    missing, unknown = (np.flatnonzero(codes == each) for each in (_MISSING, _UNKNOWN))
    if missing.size:
        raise ValueError(
            f"segments must not be missing; found None or NaN at {name_rows(missing)}."
        )
    if unknown.size:
        shown = ", ".join(repr(value) for value in dict.fromkeys(values[i] for i in unknown[:5]))
        raise CapacityError(
            f"segments holds {shown} at {name_rows(unknown)}, for which there is no capacity. "
            "Name these segments in segment_capacities, or pass default_segment_capacity=..."
        )
    return codes


def _code(value: Any, named: dict[Any, int], other: int) -> int:
    try:
        return _MISSING if is_missing(value) else named.get(value, other)
    except TypeError:  # a list, say, or a tuple with one inside
        raise ValueError(
            f"segments must hold one name for each item, such as a text or a number; got {value!r}."
        ) from None


@dataclass(frozen=True)
class CalibrationSample:
    """Scores of items that the model has not seen, kept for later changes of the capacity.

    Attributes
    ----------
    scores : ndarray of shape (n_items,)
        Lifted to the grid that makes them independent of noise in the last digits. If items have
        values or efforts, what they are worth per unit of effort.
    tie_keys : ndarray of shape (n_items,), TieKeys or None
        Keys that put tied items in order; None when ties are left out, and 0 where none were made.
    keyed_by_ids : bool
        Whether each item has a key of its own, from its id. Keys that come from the rows are shared
        by rows that are alike, and so is their lot. Keys in use must come from the same source.
    is_rare : ndarray of shape (n_items,) or None
        Labels, if they are known.
    segments, groups : ndarray of shape (n_items,) or None
        Numbers of the items' segments, and of their groups if some belong together.
    out_of_bag : bool
        Whether each item was scored by only some of the trees.
    efforts : ndarray of shape (n_items,) or None
        How much work the items take.
    has_values : bool
        Whether scores were multiplied by values.
    """

    scores: Floats
    tie_keys: Any = None
    keyed_by_ids: bool = True
    is_rare: Mask | None = None
    segments: Rows | None = None
    out_of_bag: bool = False
    groups: Rows | None = None
    efforts: Doubles | None = None
    has_values: bool = False

    @classmethod
    def of(
        cls,
        scores: Floats,
        rows: Rows,
        facts: RowFacts,
        *,
        tie_keys: TieKeys | None,
        is_rare: Mask | None = None,
        out_of_bag: bool = False,
    ) -> CalibrationSample:
        """Keep the scores of some `rows` with what later capacities need of these rows.

        `facts`, `tie_keys` and `is_rare` belong to all rows. Of more than 1,048,576 rows without
        segments and groups, some are drawn.
        """
        scores, has_ids = check_scores(scores, rows=rows), facts.ids is not None
        if facts.segments is None and facts.groups is None and scores.size > MOST_ITEMS:
            drawn = is_drawn(np.arange(scores.size), scores.size)
            scores, rows = scores[drawn], rows[drawn]
        if not scores.size:
            raise ValueError("Calibration needs at least one item; got none.")
        own = {name: getattr(facts, name) for name in ("segments", "groups", "values", "efforts")}
        own = {name: _of(column, rows) for name, column in (own | {"is_rare": is_rare}).items()}
        values = own.pop("values")
        scores, keys = lift(weigh(scores, values, own["efforts"])), None
        if tie_keys is not None:
            # A new item may tie with any of these; where none of them tie, it hardly ever does.
            by_lot = has_ids and not (own["groups"] is None and own["efforts"] is None)
            are_hashed = by_lot or tied_positions(scores).size
            keys = tie_keys(rows) if are_hashed else np.zeros(scores.size)
        return cls(
            scores, keys, has_ids, out_of_bag=out_of_bag, has_values=values is not None, **own
        )

    @property
    def keys_of(self) -> TieKeys | None:
        """The tie keys of items at given positions; None when ties are left out."""
        keys = self.tie_keys
        return keys if keys is None or callable(keys) else keys.__getitem__

    @property
    def sorting_keys(self) -> Doubles:
        """The tie keys of all items; 0 for all of them when ties are left out."""
        every = np.arange(self.scores.size)
        return np.zeros(every.size) if self.keys_of is None else np.asarray(self.keys_of(every))

    def lots(self, seed: int) -> Doubles:
        """Return the lot of each item, by its id; where it has none of its own, by its position.

        A hash of the row would not do: rows of a small world come back, each with the same lot in
        every calibration.
        """
        every = np.arange(self.scores.size)
        by_position = keys_by_id(None, seed=seed)(every)
        if self.keys_of is None or not self.keyed_by_ids:
            return lots_of(by_position)
        keys = np.array(self.keys_of(every))
        shared = tied_positions(keys)  # those that were not made, too
        keys[shared] = by_position[shared]
        return lots_of(keys)

    def take(self, rows: Rows) -> CalibrationSample:
        """Return some of the items, without their segments."""
        keys, lazy = self.tie_keys, callable(self.tie_keys)
        keys = keys_within(keys, rows) if lazy else _of(keys, rows)
        names = ("scores", "is_rare", "groups", "efforts")
        taken: dict[str, Any] = {name: _of(getattr(self, name), rows) for name in names}
        return replace(self, tie_keys=keys, segments=None, **taken)

    def within(self, segment: int) -> CalibrationSample:
        """Return the items of one segment, without labels: a multiple refers to all items."""
        return replace(self.take(np.flatnonzero(self.segments == segment)), is_rare=None)

    def only(self, kept: Mask) -> CalibrationSample:
        """Put the other items below all that are kept."""
        lowest = self.scores.dtype.type(-np.inf)
        return replace(self, scores=np.where(kept, self.scores, lowest))

    def thinned(self, max_effort: Any, seed: int) -> CalibrationSample:
        """Keep each item by lot, the sooner the more work it takes."""
        assert self.efforts is not None
        return self.only(self.lots(seed) < self.efforts / max_effort)

    def one_of_each_group(self, seed: int) -> CalibrationSample:
        """Return one item of each group, drawn by lot: these are independent of each other."""
        assert self.groups is not None
        order = np.lexsort((self.lots(seed), self.groups))
        first = order[np.flatnonzero(np.diff(self.groups[order], prepend=-1))]
        return replace(self.take(first), groups=None)


def _of(column: Any, rows: Rows) -> Any:
    return None if column is None else column[rows]
