"""Ids that occur more than once, counted while rows pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.extras import load_extra

pd = load_extra("pandas", needed_for="Reading tables")

_MOST_IDS = 1 << 22  # whose repetitions are counted


class Repeated(NamedTuple):
    """How many ids occur more than once, in how many further rows; or at least so many."""

    n_ids: int
    n_rows: int
    is_exact: bool


class IdCounter:
    """Counts ids that occur more than once."""

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.uint64]] = []
        self._n_counted = self._n_seen = 0

    def add(self, ids: NDArray[Any]) -> None:
        """Look at some ids."""
        if self._n_seen < _MOST_IDS:
            names = np.asarray(ids, dtype=object)
            self._hashes.append(pd.util.hash_array(names, categorize=False))
            self._n_counted += len(ids)
        self._n_seen += len(ids)

    @property
    def repeated(self) -> Repeated:
        """What is known about ids that occur more than once."""
        if not self._hashes:
            return Repeated(0, 0, True)
        _, counts = np.unique(np.concatenate(self._hashes), return_counts=True)
        further = counts[counts > 1] - 1
        return Repeated(further.size, int(further.sum()), self._n_counted == self._n_seen)
