"""Who is found: what one rule finds in each group, and what a floor for every group would cost."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask, Rows
from .._core.formatting import counted, stated_percent
from .._core.intervals import Interval, proportion_interval
from ..capacity import exact

_MOST_GROUPS = 20
_OTHERS = "(all others)"


@dataclass(frozen=True)
class GroupResult:
    """What a rule flags and finds in one group.

    The intervals of a column hold for all groups at once, with 95 % confidence. `list_share` is the
    share of all flags that are in the group.
    """

    group: str
    n_items: int
    n_rare: int
    flagged: int
    found: int
    detection: float | None
    detection_interval: Interval
    precision: float | None
    precision_interval: Interval
    list_share: float | None
    list_share_interval: Interval


@dataclass(frozen=True)
class Floor:
    """What it costs to find at least a share of the rare rows in every group, on these rows.

    `least` is the number of reviews that this takes by itself, with a list of its own for each
    group, and `allowed` that of the capacity. If it is enough, the rest goes to the highest scores:
    `found` by one list for all, and `found_with_floor`, with `reviews` in each group.
    """

    detection: float
    allowed: int
    least: int
    found: int
    found_with_floor: int | None
    reviews: dict[str, int]

    @property
    def in_words(self) -> str:
        """What the floor takes and costs, in a sentence or two."""
        takes = (
            f"To find at least {stated_percent(self.detection)} in every group takes "
            f"{counted(self.least, 'review')} of these cases, with a threshold for each group; the "
            f"capacity is {self.allowed:,}."
        )
        if self.found_with_floor is None:
            return f"{takes} It is not enough."
        return (
            f"{takes} With the rest for the highest scores, {self.found_with_floor:,} rare cases "
            f"are found, and {self.found:,} without a floor."
        )


class GroupCodes:
    """Numbers groups in the order in which they first come, chunk by chunk."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._counts: Counter[int] = Counter()

    def of(self, names: NDArray[Any]) -> Rows:
        """Return the number of each row's group."""
        each, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
        own = [self._numbers.setdefault(name, len(self._numbers)) for name in each.tolist()]
        self._counts.update(dict(zip(own, counts.tolist(), strict=True)))
        return np.array(own, dtype=np.int64)[codes]

    def largest(self, codes: Rows) -> tuple[list[str], Rows]:
        """Return the names of the largest groups, with all others as one, and their numbers."""
        names, ranked = list(self._numbers), [code for code, _ in self._counts.most_common()]
        kept = ranked if len(ranked) <= _MOST_GROUPS + 1 else ranked[:_MOST_GROUPS]
        places = np.full(len(names), len(kept))
        places[kept] = np.arange(len(kept))
        shown = [names[code] for code in kept]
        return (shown if len(kept) == len(names) else [*shown, _OTHERS]), places[codes]


def by_group(names: list[str], codes: Rows, is_rare: Mask, flagged: Mask) -> list[GroupResult]:
    """Measure a rule in each group; the intervals of all groups hold together."""
    counts = np.bincount(codes * 4 + is_rare * 2 + flagged, minlength=4 * len(names))
    counts, error = counts.reshape(-1, 2, 2), 0.05 / len(names)
    n_listed = int(flagged.sum())
    return [
        GroupResult(
            name,
            int(own.sum()),
            int(own[1].sum()),
            int(own[:, 1].sum()),
            int(own[1, 1]),
            *_measured(int(own[1, 1]), int(own[1].sum()), error),
            *_measured(int(own[1, 1]), int(own[:, 1].sum()), error),
            *_measured(int(own[:, 1].sum()), n_listed, error),
        )
        for name, own in zip(names, counts, strict=True)
    ]


def _measured(successes: int, trials: int, error: float) -> tuple[float | None, Interval]:
    share = successes / trials if trials else None
    return share, proportion_interval(successes, trials, error=error)


def price_of_floor(
    names: list[str], codes: Rows, is_rare: Mask, order: Rows, *, detection: float, allowed: int
) -> Floor:
    """Return what it costs to find at least a share of the rare rows in every group.

    `order` has the rows from the highest score on. Each group needs the beginning of its own
    ranking. The best list has these rows, and as many others as the capacity allows.
    """
    needed = np.zeros(codes.size, dtype=bool)
    for code in range(len(names)):
        own = order[codes[order] == code]
        found = np.cumsum(is_rare[own])
        wanted = math.ceil(exact(detection) * int(found[-1]))
        needed[own[: np.searchsorted(found, wanted) + 1 if wanted else 0]] = True
    plain, least = order[:allowed], int(needed.sum())
    listed = order[np.argsort(~needed[order], kind="stable")][:allowed]
    is_enough = least <= allowed
    reviews = np.bincount(
        codes[listed] if is_enough else codes[needed], minlength=len(names)
    ).tolist()
    return Floor(
        float(detection),
        allowed,
        least,
        int(is_rare[plain].sum()),
        int(is_rare[listed].sum()) if is_enough else None,
        dict(zip(names, reviews, strict=True)),
    )
