"""What a controller answers, and its memory of earlier answers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask
from .._core.validation import check_id

__all__ = [
    "ABOVE_THRESHOLD",
    "BELOW_THRESHOLD",
    "CAPACITY_USED_UP",
    "MOMENT_REFUSED",
    "REASONS",
    "SEEN_BEFORE",
    "AnswerMemory",
    "Decision",
    "DecisionBatch",
]

#: Why an item was flagged or not, in words. A reason's code is its position.
REASONS = (
    "below threshold",
    "above threshold",
    "capacity used up",
    "seen before",
    "moment refused",
)
#: The codes of the reasons. Only ABOVE_THRESHOLD flags an item.
BELOW_THRESHOLD, ABOVE_THRESHOLD, CAPACITY_USED_UP, SEEN_BEFORE, MOMENT_REFUSED = range(5)


class Decision(NamedTuple):
    """The decision about one item.

    Attributes
    ----------
    flag : bool
        Whether to follow the item up.
    threshold : float
        The score that the item had to exceed.
    reason : str
        One of ``"above threshold"``, ``"below threshold"``, ``"capacity used up"``, for an id that
        already has an answer ``"seen before"``, and for an item whose moment lies many periods
        ahead ``"moment refused"``. Such an item was not decided; send it again with its moment.
    """

    flag: bool
    threshold: float
    reason: str


class DecisionBatch(NamedTuple):
    """The decisions about many items, in the order of the items.

    Attributes
    ----------
    flagged : ndarray of bool
        Whether to follow each item up.
    thresholds : ndarray of float
        The score that each item had to exceed.
    codes : ndarray of int8
        The reasons, as positions in :data:`~shortlist.online.REASONS`.
    """

    flagged: Mask
    thresholds: Floats
    codes: NDArray[np.int8]

    @property
    def reasons(self) -> NDArray[np.str_]:
        """The reasons in words."""
        return np.array(REASONS)[self.codes]

    def decision(self, i: int) -> Decision:
        """Return the decision about item `i` as :meth:`~Controller.decide` would return it."""
        return Decision(
            bool(self.flagged[i]), float(self.thresholds[i]), REASONS[int(self.codes[i])]
        )


class AnswerMemory:
    """The answers to the most recent ids; the oldest id is forgotten first."""

    __slots__ = ("_known", "_size")

    def __init__(self, size: int) -> None:
        self._known: OrderedDict[Any, tuple[bool, float]] = OrderedDict()
        self._size = size

    def __len__(self) -> int:
        return len(self._known)

    def get(self, id: Any) -> tuple[bool, float] | None:
        """Return the flag and the threshold of an id, or None if the id is unknown."""
        return self._known.get(id)

    def keep(self, id: Any, flag: bool, threshold: float) -> None:
        """Remember an answer."""
        self._known[id] = (flag, threshold)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def find_sources(self, ids: list[Any]) -> list[int]:
        """Return where the answer to each id comes from if they are decided in this order.

        The source of a new id is its own position, the source of a repeated id is the position
        that it repeats, and -1 means that the answer is already in memory.
        """
        # What is known is not copied: only ids that this bundle would push out are looked at.
        oldest = iter(self._known)
        forgotten: set[Any] = set()
        places: OrderedDict[Any, int] = OrderedDict()
        sources = []
        for position, id in enumerate(ids):
            if id in places:
                sources.append(places[id])
            elif id in self._known and id not in forgotten:
                sources.append(-1)
            else:
                places[id] = position
                sources.append(position)
                if len(self._known) - len(forgotten) + len(places) > self._size:
                    gone = next(oldest, None)
                    if gone is None:
                        places.popitem(last=False)
                    else:
                        forgotten.add(gone)
        return sources

    def to_list(self) -> list[list[Any]]:
        """Return ids and answers, the oldest first."""
        return [[id, flag, threshold] for id, (flag, threshold) in self._known.items()]

    def load(self, answers: list[list[Any]]) -> None:
        """Read what :meth:`to_list` returned."""
        for id, flag, threshold in answers:
            self.keep(check_id(id), bool(flag), float(threshold))
