"""A bounded memory of ids and the answers they got."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ._input import check_id

__all__ = ["Answers"]


class Answers:
    """The answers to the last so many ids; the oldest is forgotten first."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int) -> None:
        self._known: OrderedDict[Any, tuple[bool, float]] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def get(self, id: Any) -> tuple[bool, float] | None:
        """Return flag and threshold of an id that is known."""
        return self._known.get(id)

    def keep(self, id: Any, flag: bool, threshold: float) -> None:
        """Remember an answer."""
        self._known[id] = (flag, threshold)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def plan(self, ids: list[Any]) -> list[int]:
        """Say where the answer to each id comes from, if they are decided in this order.

        That is its own position where it is new, an earlier position where it repeats that one,
        and -1 where its answer is known already.
        """
        places: OrderedDict[Any, int] = OrderedDict.fromkeys(self._known, -1)
        sources = []
        for position, id in enumerate(ids):
            if id not in places:
                places[id] = position
                if len(places) > self._most:
                    places.popitem(last=False)
                sources.append(position)
            else:
                sources.append(places[id])
        return sources

    def to_list(self) -> list[list[Any]]:
        """Return ids and answers, the oldest first."""
        return [[id, flag, threshold] for id, (flag, threshold) in self._known.items()]

    def fill(self, answers: list[list[Any]]) -> None:
        """Read what `to_list` has written."""
        for id, flag, threshold in answers:
            self.keep(check_id(id), bool(flag), float(threshold))
