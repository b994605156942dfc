"""What is known about rows, what a threshold is calibrated on, and the reference prevalence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows, TieKeys
from .._core.ids import MOST_ITEMS, Columns, is_drawn, keys_by_id, lots_of
from .._core.intervals import clopper_pearson_lower
from .._core.labels import EstimatedShare
from .._core.ranking import keys_within, lift, tied_positions
from .._core.validation import check_scores
from .._core.work import weigh


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
class CalibrationSample:
    """Scores of items that the model has not seen, kept for later changes of the capacity.

    Attributes
    ----------
    scores : ndarray of shape (n_items,)
        Lifted to the grid that makes them independent of noise in the last digits. If items have
        values or efforts, what they are worth per unit of effort.
    tie_keys : ndarray of shape (n_items,), TieKeys or None
        Keys that put tied items in order; None when ties are left out.
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
        if values is not None or own["efforts"] is not None:
            scores = weigh(scores, values, own["efforts"])
        scores, keys = lift(scores), None
        if tie_keys is not None:
            # Lots of groups and of work need the keys of all ids; the order only those of ties.
            by_lot = has_ids and not (own["groups"] is None and own["efforts"] is None)
            hashed = np.arange(scores.size) if by_lot else tied_positions(scores)
            keys = np.zeros(scores.size)
            if hashed.size:
                keys[hashed] = tie_keys(rows[hashed])
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
        shared = tied_positions(keys)  # those that were not hashed, too
        keys[shared] = by_position[shared]
        return lots_of(np.where(keys == 0, by_position, keys))

    def take(self, rows: Rows) -> CalibrationSample:
        """Return some of the items, without their segments."""
        keys = self.tie_keys
        if callable(keys):
            keys = keys_within(keys, rows)
        elif keys is not None:
            keys = keys[rows]
        names = ("scores", "is_rare", "groups", "efforts")
        taken: dict[str, Any] = {name: _of(getattr(self, name), rows) for name in names}
        return replace(self, tie_keys=keys, segments=None, **taken)

    def within(self, segment: int) -> CalibrationSample:
        """Return the items of one segment, without labels: a multiple refers to all items."""
        return replace(self.take(np.flatnonzero(self.segments == segment)), is_rare=None)

    def thinned(self, max_effort: Any, seed: int) -> CalibrationSample:
        """Put each item below all others by lot, the sooner the less work it takes."""
        assert self.efforts is not None
        kept = self.lots(seed) < self.efforts / max_effort
        lowest = self.scores.dtype.type(-np.inf)
        return replace(self, scores=np.where(kept, self.scores, lowest))

    def one_of_each_group(self, seed: int) -> CalibrationSample:
        """Return one item of each group, drawn by lot: these are independent of each other."""
        assert self.groups is not None
        order = np.lexsort((self.lots(seed), self.groups))
        first = order[np.flatnonzero(np.diff(self.groups[order], prepend=-1))]
        return replace(self.take(first), groups=None)


def _of(column: Any, rows: Rows) -> Any:
    return None if column is None else column[rows]


class ReferencePrevalence(NamedTuple):
    """The prevalence that a multiple refers to: as stated, or else the share in labelled items.

    `counts` are rare and all labelled items; `independent` those of one item of each group, which
    a lower bound rests on.
    """

    stated: Any = None
    counts: tuple[int, int] | None = None
    independent: tuple[int, int] = (0, 1)

    @classmethod
    def of_labels(
        cls, is_rare: Mask | None, groups: Rows | None = None, *, seed: int = 0
    ) -> ReferencePrevalence:
        """Count the rare items, and those of one item of each group, drawn by lot."""
        if is_rare is None:
            return cls()
        drawn = is_rare
        if groups is not None:
            shuffled = np.random.default_rng(seed % 2**64).permutation(groups.size)
            drawn = is_rare[shuffled[np.unique(groups[shuffled], return_index=True)[1]]]
        of_all, of_drawn = ((int(np.count_nonzero(each)), each.size) for each in (is_rare, drawn))
        return cls(None, of_all, of_drawn)

    @property
    def share(self) -> EstimatedShare | None:
        """The share of rare items among the labelled ones, exactly; None without labels."""
        return None if self.counts is None else EstimatedShare(*self.counts)

    @property
    def value(self) -> Any:
        """The prevalence, or None where it is not known."""
        return self.share if self.stated is None else self.stated

    @property
    def is_estimated(self) -> bool:
        """Whether the prevalence was counted in labels, and not stated."""
        return self.stated is None and self.counts is not None

    def lower_bound(self, *, error: float) -> EstimatedShare:
        """Return what the share in the population exceeds, except with probability `error`."""
        return EstimatedShare(float(clopper_pearson_lower(*self.independent, error=error)))
