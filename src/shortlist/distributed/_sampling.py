"""Rows to train on from a table beyond memory: all rare rows, and some of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.extras import load_extra
from .._core.hashing import hash_ids
from .._core.validation import check_number, check_seed
from ..exceptions import TableError
from ._engine import Engine, as_columns, check_id, table_schema

__all__ = ["WEIGHT", "SampledRows", "plan_sample"]

#: The column with the weights of sampled rows.
WEIGHT = "weight"


@dataclass(frozen=True)
class SampledRows:
    """Keeps all rare rows, and each other row with a probability that a hash of its id draws."""

    target: str
    rare_label: Any
    id: str
    share: float
    seed: int = 0
    columns: list[str] | None = None

    def __call__(self, block: Any) -> Any:
        """Return the kept rows of an Arrow table, with a column `weight`."""
        pa = load_extra("pyarrow", needed_for="Sampling a large table")
        known = as_columns(block, [self.target, self.id])
        is_rare = np.asarray(known[self.target] == self.rare_label, dtype=bool)
        kept = is_rare | (hash_ids(known[self.id], seed=self.seed) < self.share)
        weights = np.where(is_rare, 1.0, 1 / self.share)[kept]
        return block.filter(pa.array(kept)).append_column(WEIGHT, pa.array(weights))


def plan_sample(
    engine: Engine,
    table: Any,
    share: float,
    *,
    target: str,
    rare_label: Any,
    id: str,
    random_state: Any = None,
) -> tuple[SampledRows, Any]:
    """Return the kernel that samples a table and the schema of its answer, after checks.

    Parameters
    ----------
    engine, table
        The engine, and a table of its kind.
    share : float
        Share of the other rows to keep, above 0 and at most 1.
    target, rare_label : str, label
        The column with the labels, and the label of which all rows are kept.
    id : str
        The column with the ids, which draw the sample.
    random_state : int, RandomState instance or None, default=None
        Key of the hash.

    Returns
    -------
    tuple of SampledRows and pyarrow.Schema
    """
    share = float(check_number("share", share))
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1; got {share:g}.")
    types = engine.column_types(table)
    if target not in types:
        raise TableError(f"There is no column {target!r}; the columns are {', '.join(types)}.")
    check_id(types, id)
    # Another key than that of the ties: which rows are learned from says nothing about them.
    seed = (check_seed(random_state) + 1) % 2**64
    schema = table_schema(engine, table, added={WEIGHT: "double"})
    return SampledRows(target, rare_label, id, share, seed), schema
