"""Capacities of classes, segments and a total, checked together and turned into exact limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.arrays import Rows
from .._core.intervals import clopper_pearson_lower
from .._core.labels import EstimatedShare
from .._core.validation import UNCHANGED, is_unchanged
from ..assignment.assigned import check_no_work
from ..assignment.integers import PerLimit
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError
from ..thresholds.segments import SegmentCapacities, check_segment_capacities


@dataclass(frozen=True)
class JointCapacities:
    """How many items may be flagged: by class, in total and by segment.

    Attributes
    ----------
    classes : dict from labels to Capacity
        For each rare label; `None` as a value means no limit.
    counts : dict from labels to ints
        How often each label occurs in `fit`, the common ones included. Multiples refer to this.
    total : Capacity or None
        For all rare labels together.
    segments : SegmentCapacities or None
        For each segment.
    """

    classes: dict[Any, Capacity | None]
    counts: dict[Any, int]
    total: Capacity | None = None
    segments: SegmentCapacities | None = None

    @property
    def all(self) -> list[Capacity]:
        """All capacities that were given."""
        given = [*self.classes.values(), self.total, *self.segment_limits]
        return [capacity for capacity in given if capacity is not None]

    @property
    def segment_limits(self) -> list[Capacity | None]:
        """The capacity of each segment; without segments, one without a limit holds all items."""
        return [None] if self.segments is None else self.segments.limits

    @property
    def segment_names(self) -> list[Any]:
        """The name of each segment; None stands for all that are not named."""
        return [None] if self.segments is None else [name for name, _ in self.segments.items]

    @property
    def names(self) -> PerLimit:
        """What each limit is called in messages."""
        segments = [
            "other segments" if name is None else f"segment {name!r}" for name in self.segment_names
        ]
        return PerLimit([f"class {label!r}" for label in self.classes], segments, "the total")

    def prevalence(self, label: Any = None) -> Fraction:
        """Return the exact share of a label in `fit`; without a label, of all rare labels."""
        return EstimatedShare(self._count(label), sum(self.counts.values()))

    def ratios(self) -> PerLimit:
        """Return all limits as exact fractions, at the shares of `fit`; None means no limit.

        That of a segment is a fraction of its own items.
        """
        return self._each(lambda limit, label: limit.as_ratio(self.prevalence(label)))

    def lowest_ratios(self, *, error: float) -> PerLimit:
        """Return all limits at lower bounds of the shares, which hold together up to `error`."""
        n, error = sum(self.counts.values()), error / (len(self.classes) + 1)

        def lowest(limit: Capacity, label: Any) -> Fraction:
            share = clopper_pearson_lower(self._count(label), n, error=error)
            return limit.as_ratio(EstimatedShare(float(share)))

        return self._each(lowest)

    def batch_limits(self, segments: Rows) -> dict[str, Any]:
        """Return the limits of a batch as arguments of :func:`~shortlist.assign`."""
        n, share = len(segments), self.prevalence()
        of_all = self._each(lambda limit, label: limit.max_flags(n, self.prevalence(label)))
        sizes = np.bincount(segments, minlength=len(self.segment_limits)).tolist()
        by_segment = [
            None if limit is None else limit.max_flags(size, share)
            for limit, size in zip(self.segment_limits, sizes, strict=True)
        ]
        return {
            "capacities": of_all.classes,
            "total": of_all.total,
            "segments": segments,
            "segment_capacities": dict(enumerate(by_segment)),
        }

    def changed(
        self,
        capacities: Any = UNCHANGED,
        *,
        total: Any = UNCHANGED,
        segment_capacities: Any = UNCHANGED,
    ) -> JointCapacities:
        """Replace some of the capacities; the rare labels and their order stay the same."""
        named = None if self.segments is None else self.segments.named
        joint = check_joint_capacities(
            self.classes if is_unchanged(capacities) else capacities,
            self.total if is_unchanged(total) else total,
            named if is_unchanged(segment_capacities) else segment_capacities,
            None if self.segments is None else self.segments.others,
            counts=self.counts,
        )
        if set(joint.classes) != set(self.classes):
            raise CapacityError(
                f"capacities must name the rare labels of fit, {list(self.classes)}; got "
                f"{list(joint.classes)}."
            )
        return replace(joint, classes={label: joint.classes[label] for label in self.classes})

    def with_segments_of(self, calibrated: JointCapacities) -> JointCapacities:
        """Number the segments as in calibration; raise an error if they are not the same."""
        if calibrated.segments is not None:
            return replace(self, segments=calibrated.segments.changed_to(self.segments))
        if self.segments is not None:
            raise CapacityError(
                "segment_capacities were not given to fit. Therefore the segments of the "
                "calibration items are unknown. Fit again with segments."
            )
        return self

    def _count(self, label: Any) -> int:
        return sum(self.counts[rare] for rare in (self.classes if label is None else [label]))

    def _each(self, function: Callable[[Capacity, Any], Any]) -> PerLimit:
        """Apply a function to each capacity and its label, which is None for all rare labels."""

        def of(capacity: Capacity | None, label: Any = None) -> Any:
            return None if capacity is None else function(capacity, label)

        return PerLimit(
            [of(capacity, label) for label, capacity in self.classes.items()],
            [of(capacity) for capacity in self.segment_limits],
            of(self.total),
        )


def check_joint_capacities(
    capacities: Any,
    total: Any,
    segment_capacities: Any,
    other_segments: Any,
    *,
    counts: dict[Any, int],
) -> JointCapacities:
    """Check the capacities against the labels of the data, and against each other."""
    joint = JointCapacities(
        _check_classes(capacities, counts),
        counts,
        total,
        check_segment_capacities(segment_capacities, other_segments),
    )
    absent = [label for label in joint.classes if not counts[label]]
    if absent:
        raise CapacityError(
            f"The rare labels {absent} do not occur in y. Their sensitivity is undefined. "
            "Leave them out of capacities, or add items."
        )
    for capacity in joint.all:
        check_no_work(check_capacity(capacity))
    if not joint.all:
        raise CapacityError(
            "No capacity was given: all classes are unlimited, and so is the total."
        )
    return joint


def _check_classes(capacities: Any, counts: dict[Any, int]) -> dict[Any, Capacity | None]:
    known = list(counts)
    if isinstance(capacities, Capacity):
        most_common = max(known, key=counts.__getitem__)
        return {label: capacities for label in known if label != most_common}
    if not isinstance(capacities, Mapping):
        raise CapacityTypeError(
            "capacities must be a dict from rare labels to capacities, such as "
            "{'fraud': Capacity.fraction(0.01)}, or one Capacity for every label but the most "
            f"common; got {capacities!r}."
        )
    unknown = [label for label in capacities if label not in known]
    if unknown:
        raise CapacityError(
            f"capacities names {', '.join(map(repr, unknown))}, which do not occur among the "
            f"labels: {', '.join(map(repr, known[:10]))}{', ...' if len(known) > 10 else ''}."
        )
    if not 0 < len(capacities) < len(known):
        raise CapacityError(
            f"capacities names {'every' if capacities else 'no rare'} label. Name at least one, "
            "with None for no limit, and leave out the labels of the majority."
        )
    # Use the labels of the data: 1.0 in capacities may stand for 1 there.
    return {known[known.index(label)]: limit for label, limit in capacities.items()}
