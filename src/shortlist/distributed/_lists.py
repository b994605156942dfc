"""Kernels that keep rows of a table: those of a list, and those of a sample to train on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.ids import hash_ids
from .._core.ranking import Cut, flag_above
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, TableError
from ._ranks import ALL, Ranks, by_segment
from .engine import TIE_KEY, Columns, Plan, as_columns, check_columns, table_schema

#: The column with the weights of sampled rows.
WEIGHT = "weight"

Limits = Capacity | Mapping[Any, Capacity]


@dataclass(frozen=True)
class ListedRows:
    """Keeps the rows before cuts, and adds the key that puts tied rows in order.

    There is a cut for all rows, or one for each segment; and perhaps one for these lists together.
    """

    score: str
    id: str
    segment: str | None
    seed: int
    cuts: dict[Any, Cut]
    in_total: Cut | None = None
    kept: list[str] | None = None

    @property
    def _needs(self) -> list[str]:
        names = (self.score, self.id, self.segment)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def least(self) -> float:
        """No row with a lower score is on the list."""
        return min((cut.value for cut in self.cuts.values()), default=np.inf)

    def __call__(self, block: Any) -> Any:
        """Return the listed rows of an Arrow table, with a column `tie_key`."""
        pa = load_extra("pyarrow", needed_for="Selecting from a large table")
        columns = as_columns(block, self._needs)
        mask = self.before(columns)
        keys = hash_ids(columns[self.id][mask], seed=self.seed)
        rows = (block if self.kept is None else block.select(self.kept)).filter(pa.array(mask))
        return rows.append_column(TIE_KEY, pa.array(keys, pa.float64()))

    def before(self, columns: Columns) -> Mask:
        """Return which rows are listed."""
        mask = self._before(columns, self.segment, self.cuts)
        if self.in_total is not None:
            mask &= self._before(columns, None, {ALL: self.in_total})
        return mask

    def _before(self, columns: Columns, segment: str | None, cuts: dict[Any, Cut]) -> Mask:
        scores = np.asarray(columns[self.score], dtype=np.float64)
        before = np.zeros(scores.size, dtype=bool)
        for name, own in by_segment(columns, segment).items():
            ids = columns[self.id][own]

            def keys(tied: Any, ids: Any = ids) -> Any:
                return hash_ids(ids[tied], seed=self.seed)

            if name in cuts:
                before[own] = flag_above(scores[own], cuts[name], keys)
        return before


def find_list(ranks: Ranks, limits: Limits, total: Capacity | None = None) -> ListedRows:
    """Find the cuts of a list, and return the kernel that keeps its rows."""
    score, id, segment = ranks.score, ranks.id, ranks.segment
    check_columns(ranks.engine, ranks.table, score=score, id=id, segment=segment)
    assert id is not None
    if segment is None and isinstance(limits, Mapping):
        raise CapacityError("A dict of capacities needs segment=..., the column with the segments.")
    listed = ListedRows(score, id, segment, ranks.seed, ranks.cuts(_wanted(limits, ranks)))
    if total is None:
        return listed
    if segment is None:
        raise CapacityError("total=... belongs to segments; pass it as the capacity.")
    most = check_capacity(total).max_flags(sum(ranks.sizes.values()))
    return replace(listed, in_total=_cut_of(ranks, listed, most))


def _cut_of(ranks: Ranks, listed: ListedRows, most: int) -> Cut:
    """Return the cut before which so many rows of a list lie."""
    engine, names = ranks.engine, list(dict.fromkeys([listed.score, listed.id]))
    schema = table_schema(engine, ranks.table, kept=names, added={TIE_KEY: "double"})
    table = engine.between(ranks.table, listed.score, listed.least, np.inf)
    columns = list(dict.fromkeys([*names, *([ranks.segment] if ranks.segment else [])]))
    with engine.kept_rows(Plan(table, columns, replace(listed, kept=names), schema)) as rows:
        return replace(ranks, table=rows, segment=None).cuts({ALL: most})[ALL]


def _wanted(limits: Limits, ranks: Ranks) -> dict[Any, int]:
    """Return how many rows of each segment are wanted."""
    if not isinstance(limits, Mapping):
        limit = check_capacity(limits)
        return {name: limit.max_flags(n) for name, n in ranks.sizes.items()}
    unknown = [name for name in limits if name not in ranks.sizes]
    if unknown:
        raise TableError(
            f"The column {ranks.segment!r} has no rows with {', '.join(map(repr, unknown))}; it "
            f"has {', '.join(map(repr, sorted(ranks.sizes, key=str)))}."
        )
    return {
        name: check_capacity(limit).max_flags(ranks.sizes[name]) for name, limit in limits.items()
    }


def find_candidates(ranks: Ranks, columns: list[str], limits: Limits) -> Any:
    """Return the rows on the list of any of some columns as one Arrow table, each row once."""
    pa = load_extra("pyarrow", needed_for="Large assignments")
    lists = [find_list(replace(ranks, score=column), limits) for column in columns]
    given = (ranks.id, ranks.segment, *columns)
    names = list(dict.fromkeys(name for name in given if name is not None))
    schema = table_schema(ranks.engine, ranks.table, kept=names, added={}, free=["column"])
    parts = ranks.engine.summaries(ranks.table, names, partial(_on_any, lists, names))
    return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])


def _on_any(lists: list[ListedRows], names: list[str], block: Any) -> Any:
    columns = as_columns(block, names)
    return block.filter(np.any([each.before(columns) for each in lists], axis=0))


def sampled_rows(
    block: Any, *, target: str, rare_label: Any, id: str, share: float, seed: int
) -> Any:
    """Keep all rare rows, and each other one with a probability that a hash of its id draws."""
    pa = load_extra("pyarrow", needed_for="Sampling a large table")
    known = as_columns(block, [target, id])
    is_rare = np.asarray(known[target] == rare_label, dtype=bool)
    kept = is_rare | (hash_ids(known[id], seed=seed) < share)
    weights = np.where(is_rare, 1.0, 1 / share)[kept]
    return block.filter(pa.array(kept)).append_column(WEIGHT, pa.array(weights))
