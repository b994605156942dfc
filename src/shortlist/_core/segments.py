"""Segments (a region, a team, a product): which one an item belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..exceptions import CapacityError
from .arrays import Rows
from .ids import is_missing
from .validation import name_rows


def segment_codes(segments: ArrayLike | None, capacities: Any, n_items: int) -> Rows:
    """Number the segments of the items in the order of their capacities, if there are any.

    `capacities` has those `named`, and one for all `others`, or None.
    """
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
