"""Capacities of classes, segments and a total, checked together and turned into exact limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Ints
from .._core.intervals import clopper_pearson_lower
from .._core.labels import EstimatedShare
from .._core.validation import UNCHANGED, is_unchanged
from ..assignment.assigned import check_no_work
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError
from ..thresholds.segments import SegmentCapacities, check_segment_capacities


class Limit(NamedTuple):
    """A capacity with its name in messages, and the number of rare items that multiples count."""

    name: str
    capacity: Capacity | None
    n_rare: int


@dataclass(frozen=True)
class JointCapacities:
    """How many items may be flagged: by class, by segment and in total.

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
    def limits(self) -> list[Limit]:
        """All limits: of the classes, then of the segments, then of the total.

        Without segments, one without a limit holds all items.
        """
        n_rare = sum(self.counts[label] for label in self.classes)
        segments = [(None, None)] if self.segments is None else self.segments.items
        return [
            *(Limit(f"class {each!r}", c, self.counts[each]) for each, c in self.classes.items()),
            *(Limit(_name_segment(name), capacity, n_rare) for name, capacity in segments),
            Limit("the total", self.total, n_rare),
        ]

    @property
    def given(self) -> list[Capacity]:
        """All capacities that were given."""
        return [limit.capacity for limit in self.limits if limit.capacity is not None]

    def share(self, count: int) -> EstimatedShare:
        """Return a number of items of `fit` as their share."""
        return EstimatedShare(count, sum(self.counts.values()))

    def ratios(self, *, error: float | None = None) -> list[Fraction | None]:
        """Return all limits as exact fractions, of a segment's own items; None means no limit.

        Multiples refer to the shares in `fit`, or to lower bounds of these, which hold together
        except with the probability `error`.
        """
        share = self.share if error is None else self._lowest_share(error)
        return [
            None if capacity is None else capacity.as_ratio(share(n_rare))
            for _, capacity, n_rare in self.limits
        ]

    def _lowest_share(self, error: float) -> Callable[[int], EstimatedShare]:
        n, error = sum(self.counts.values()), error / (len(self.classes) + 1)
        return lambda count: EstimatedShare(float(clopper_pearson_lower(count, n, error=error)))

    def in_batch(self, sizes: list[int]) -> Ints:
        """Return all limits as whole numbers, for so many items that each applies to."""
        return np.array(
            [
                size if capacity is None else capacity.max_flags(size, self.share(n_rare))
                for (_, capacity, n_rare), size in zip(self.limits, sizes, strict=True)
            ]
        )

    def changed(
        self,
        capacities: Any = UNCHANGED,
        *,
        total: Any = UNCHANGED,
        segment_capacities: Any = UNCHANGED,
    ) -> JointCapacities:
        """Replace some of the capacities; rare labels and segments keep their order."""
        segments = self.segments
        if not is_unchanged(segment_capacities):
            if segments is None:
                raise CapacityError(
                    "segment_capacities were not given to fit. Therefore the segments of the "
                    "calibration items are unknown. Fit again with segments."
                )
            segments = segments.changed_to(
                check_segment_capacities(segment_capacities, segments.others)
            )
        joint = check_joint_capacities(
            self.classes if is_unchanged(capacities) else capacities,
            self.total if is_unchanged(total) else total,
            segments,
            counts=self.counts,
        )
        if set(joint.classes) != set(self.classes):
            raise CapacityError(
                f"capacities must name the rare labels of fit, {list(self.classes)}; got "
                f"{list(joint.classes)}."
            )
        return replace(joint, classes={label: joint.classes[label] for label in self.classes})


def _name_segment(name: Any) -> str:
    return "other segments" if name is None else f"segment {name!r}"


def check_joint_capacities(
    capacities: Any, total: Any, segments: SegmentCapacities | None, *, counts: dict[Any, int]
) -> JointCapacities:
    """Check the capacities against the labels of the data, and against each other."""
    joint = JointCapacities(_check_classes(capacities, counts), counts, total, segments)
    absent = [label for label in joint.classes if not counts[label]]
    if absent:
        raise CapacityError(
            f"The rare labels {absent} do not occur in y. Their sensitivity is undefined. "
            "Leave them out of capacities, or add items."
        )
    for capacity in joint.given:
        check_no_work(check_capacity(capacity))
    if not joint.given:
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
