"""Segments (a region, a team, a product) with a capacity each, and which one an item belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.ids import is_missing
from .._core.validation import name_rows
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError

Codes = NDArray[np.intp]


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
) -> Codes:
    """Number the segments of the items in the order of their capacities."""
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


_MISSING, _UNKNOWN = -1, -2


def _code(value: Any, named: dict[Any, int], other: int) -> int:
    try:
        return _MISSING if is_missing(value) else named.get(value, other)
    except TypeError:  # a list, say, or a tuple with one inside
        raise ValueError(
            f"segments must hold one name for each item, such as a text or a number; got {value!r}."
        ) from None
