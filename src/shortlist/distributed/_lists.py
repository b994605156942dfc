"""Kernels that keep rows of a table: those of a list, and those of a sample to train on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.extras import load_extra
from .._core.hashing import hash_ids
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, TableError
from ._ranks import ALL, Ranks, RowsBefore
from .engine import TIE_KEY, as_columns, check_columns

__all__ = ["WEIGHT", "ListedRows", "SampledRows", "find_list"]

#: The column with the weights of sampled rows.
WEIGHT = "weight"

Limits = Capacity | Mapping[Any, Capacity]


@dataclass(frozen=True)
class ListedRows:
    """Keeps the rows before all cuts, and adds the key that puts tied rows in order."""

    before: tuple[RowsBefore, ...]
    columns: list[str] | None = None

    @property
    def least(self) -> float:
        """No row with a lower score is on the list."""
        return min((cut.value for cut in self.before[0].cuts.values()), default=np.inf)

    def __call__(self, block: Any) -> Any:
        """Return the listed rows of an Arrow table, with a column `tie_key`."""
        pa = load_extra("pyarrow", needed_for="Selecting from a large table")
        by = self.before[0]
        needs = [name for name in (by.score, by.id, by.segment) if name is not None]
        columns = as_columns(block, list(dict.fromkeys(needs)))
        mask = np.logical_and.reduce([each(columns) for each in self.before])
        keys = hash_ids(columns[by.id][mask], seed=by.seed)
        return block.filter(pa.array(mask)).append_column(TIE_KEY, pa.array(keys, pa.float64()))


def find_list(ranks: Ranks, limits: Limits, total: Capacity | None = None) -> ListedRows:
    """Find the cuts of a list, and return the kernel that keeps its rows."""
    free = ("rank", TIE_KEY)
    score, id, segment = ranks.score, ranks.id, ranks.segment
    check_columns(ranks.engine, ranks.table, score=score, id=id, segment=segment, free=free)
    assert id is not None
    if segment is None and isinstance(limits, Mapping):
        raise CapacityError("A dict of capacities needs segment=..., the column with the segments.")
    first = RowsBefore(score, id, ranks.cuts(_wanted(limits, ranks)), ranks.seed, segment)
    if total is None:
        return ListedRows((first,))
    if segment is None:
        raise CapacityError("total=... belongs to segments; pass it as the capacity.")
    most = check_capacity(total).max_flags(sum(ranks.sizes.values()))
    second = ranks.among(first).cuts({ALL: most})
    return ListedRows((first, RowsBefore(score, id, second, ranks.seed)))


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


@dataclass(frozen=True)
class SampledRows:
    """Keeps all rare rows, and each other row with a probability that a hash of its id draws."""

    target: str
    rare_label: Any
    id: str
    share: float
    seed: int
    columns: list[str] | None = None

    def __call__(self, block: Any) -> Any:
        """Return the kept rows of an Arrow table, with a column `weight`."""
        pa = load_extra("pyarrow", needed_for="Sampling a large table")
        known = as_columns(block, [self.target, self.id])
        is_rare = np.asarray(known[self.target] == self.rare_label, dtype=bool)
        kept = is_rare | (hash_ids(known[self.id], seed=self.seed) < self.share)
        weights = np.where(is_rare, 1.0, 1 / self.share)[kept]
        return block.filter(pa.array(kept)).append_column(WEIGHT, pa.array(weights))
