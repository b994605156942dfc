"""What is known about rows besides their features: ids, segments, groups, values and efforts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .arrays import Doubles, Floats, Rows
from .hashing import tie_keys_of
from .ranking import TieKeys
from .work import weigh

__all__ = ["RowFacts"]


@dataclass(frozen=True)
class RowFacts:
    """The rows themselves, and what else is known about each; None where it was not given.

    Ids, values and efforts are checked, and segments and groups are numbered.
    """

    X: Any
    ids: NDArray[Any] | None = None
    segments: Rows | None = None
    groups: Rows | None = None
    values: Doubles | None = None
    efforts: Doubles | None = None

    def keys(self, seed: int) -> TieKeys:
        """Return the tie keys of rows: a hash of their ids, or else of their own values."""
        return tie_keys_of(self.X, self.ids, seed=seed)

    def work_of(self, rows: Rows) -> tuple[Doubles | None, Doubles | None]:
        """Return values and efforts of some rows."""
        return _of(self.values, rows), _of(self.efforts, rows)

    def weigh(self, scores: Floats) -> Floats:
        """Return what is compared with a threshold: scores, or what the rows are worth by them."""
        return weigh(scores, self.values, self.efforts)


def _of(column: Doubles | None, rows: Rows) -> Doubles | None:
    return None if column is None else column[rows]
