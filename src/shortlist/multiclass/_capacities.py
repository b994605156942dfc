"""Capacities of classes, segments and a total, checked together and turned into exact ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from .._wrapping.segments import SegmentCapacities, check_segment_capacities
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError

__all__ = ["JointCapacities", "Ratios", "check_joint_capacities"]


@dataclass(frozen=True)
class JointCapacities:
    """What may be flagged: by class, in total and by segment."""

    classes: dict[Any, Capacity | None]
    total: Capacity | None
    segments: SegmentCapacities | None

    def ratios(self, prevalence: Callable[[Any], Fraction]) -> Ratios:
        """Return all limits as exact fractions; `prevalence` is asked for a label, or for None."""
        return Ratios(
            [
                None if capacity is None else capacity.as_ratio(prevalence(label))
                for label, capacity in self.classes.items()
            ],
            None if self.total is None else self.total.as_ratio(prevalence(None)),
            [
                None if capacity is None else capacity.as_ratio(prevalence(None))
                for capacity in self.segment_limits
            ],
        )

    @property
    def segment_limits(self) -> list[Capacity | None]:
        """The capacities of the segments; without any, all items are one without a limit."""
        return [None] if self.segments is None else self.segments.limits

    @property
    def all(self) -> list[Capacity]:
        """All capacities there are."""
        given = [*self.classes.values(), self.total, *self.segment_limits]
        return [capacity for capacity in given if capacity is not None]


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
    joint = JointCapacities(
        by_class,
        None if total is None else check_capacity(total),
        check_segment_capacities(segment_capacities, other_segments),
    )
    for capacity in joint.all:
        check_capacity(capacity)
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
