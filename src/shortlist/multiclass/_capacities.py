"""Capacities of classes, segments and a total, checked together and turned into exact ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._hashing import is_missing
from .._validation import name_rows
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError

__all__ = ["JointCapacities", "Ratios", "check_joint_capacities", "segment_codes"]


@dataclass(frozen=True)
class JointCapacities:
    """What may be flagged: by class, in total, by segment, and in each segment not named."""

    classes: dict[Any, Capacity | None]
    total: Capacity | None
    segments: dict[Any, Capacity | None] | None
    other_segments: Capacity | None

    def ratios(self, prevalence: Callable[[Any], Fraction]) -> Ratios:
        """Return all limits as exact fractions; `prevalence` is asked for a label, or for None."""
        segments: list[Capacity | None] = list((self.segments or {}).values())
        if self.segments is not None and self.other_segments is not None:
            segments.append(self.other_segments)
        return Ratios(
            [
                None if capacity is None else capacity.as_ratio(prevalence(label))
                for label, capacity in self.classes.items()
            ],
            None if self.total is None else self.total.as_ratio(prevalence(None)),
            [
                None if capacity is None else capacity.as_ratio(prevalence(None))
                for capacity in segments
            ]
            or [None],
        )

    @property
    def all(self) -> list[Capacity]:
        """All capacities there are."""
        given = [*self.classes.values(), self.total, *(self.segments or {}).values()]
        return [capacity for capacity in (*given, self.other_segments) if capacity is not None]


@dataclass(frozen=True)
class Ratios:
    """Limits as fractions of all items (a segment's: of its own); None is no limit."""

    classes: list[Fraction | None]
    total: Fraction | None
    segments: list[Fraction | None]

    @property
    def n_limits(self) -> int:
        """Number of limits that could be exceeded."""
        several = [*self.classes, self.total, *self.segments]
        return sum(ratio is not None and 0 < ratio < 1 for ratio in several)


def check_joint_capacities(
    capacities: Any,
    total: Any,
    segment_capacities: Any,
    other_segments: Any,
    *,
    classes: NDArray[Any],
    most_common: Any,
) -> JointCapacities:
    """Check the capacities against the labels of the data, and against each other."""
    by_class = _check_classes(capacities, classes, most_common)
    if segment_capacities is not None and not isinstance(segment_capacities, Mapping):
        raise CapacityTypeError(
            "segment_capacities must be a dict from segments to capacities, such as "
            f"{{'north': Capacity.fraction(0.02)}}; got {segment_capacities!r}."
        )
    if other_segments is not None and segment_capacities is None:
        raise CapacityError(
            "default_segment_capacity was given without segment_capacities. Pass "
            "segment_capacities={} to put every segment under the default."
        )
    joint = JointCapacities(
        by_class,
        None if total is None else check_capacity(total),
        None if segment_capacities is None else dict(segment_capacities),
        other_segments,
    )
    for capacity in joint.all:
        check_capacity(capacity)
    if segment_capacities is not None and not segment_capacities and other_segments is None:
        raise CapacityError(
            "segment_capacities={} names no segment. Name some, or pass default_segment_capacity."
        )
    if not joint.all:
        raise CapacityError(
            "No capacity was given: all classes are unlimited, and so is the total."
        )
    return joint


def _check_classes(
    capacities: Any, classes: NDArray[Any], most_common: Any
) -> dict[Any, Capacity | None]:
    if isinstance(capacities, Capacity):
        return {label: capacities for label in classes.tolist() if label != most_common}
    if not isinstance(capacities, Mapping):
        raise CapacityTypeError(
            "capacities must be a dict from rare labels to capacities, such as "
            "{'fraud': Capacity.fraction(0.01)}, or one Capacity for every label but the most "
            f"common; got {capacities!r}."
        )
    known = classes.tolist()
    unknown = [label for label in capacities if label not in known]
    if unknown:
        raise CapacityError(
            f"capacities names {', '.join(map(repr, unknown))}, which do not occur among the "
            f"labels: {', '.join(map(repr, known[:10]))}{', ...' if len(known) > 10 else ''}."
        )
    if not capacities:
        raise CapacityError("capacities names no rare label. Name at least one; None is no limit.")
    if len(capacities) == len(known):
        raise CapacityError(
            "capacities names every label, which leaves none for the items that are not flagged. "
            "Leave out the labels of the majority."
        )
    # As they stand in the data, whatever equal number or string was asked for.
    return {known[known.index(label)]: limit for label, limit in capacities.items()}


def segment_codes(
    segments: ArrayLike | None, capacities: JointCapacities, n_items: int
) -> NDArray[np.intp]:
    """Number the segments in the order of their capacities; those not named come last."""
    if capacities.segments is None:
        if segments is not None:
            raise ValueError(
                "segments were given, but no segment_capacities, so that they would go unused. "
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
    named = {segment: code for code, segment in enumerate(capacities.segments)}
    other = len(named) if capacities.other_segments is not None else _UNKNOWN
    codes = np.fromiter((_code(value, named, other) for value in values), np.intp, n_items)
    _check_codes(codes, values)
    return codes


_MISSING, _UNKNOWN = -1, -2


def _code(value: Any, named: dict[Any, int], other: int) -> int:
    return _MISSING if is_missing(value) else named.get(value, other)


def _check_codes(codes: NDArray[np.intp], values: list[Any]) -> None:
    missing = np.flatnonzero(codes == _MISSING)
    if missing.size:
        raise ValueError(
            f"segments must not be missing; found None or NaN at {name_rows(missing)}."
        )
    unknown = np.flatnonzero(codes == _UNKNOWN)
    if unknown.size:
        shown = ", ".join(repr(value) for value in dict.fromkeys(values[i] for i in unknown[:5]))
        raise CapacityError(
            f"segments holds {shown} at {name_rows(unknown)}, for which there is no capacity. "
            "Name these segments in segment_capacities, or pass default_segment_capacity=..."
        )
