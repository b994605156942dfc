"""Capacities of classes, segments and a total, checked together and turned into exact limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.arrays import Ints
from .._core.labels import EstimatedShare
from .._core.validation import UNCHANGED, is_unchanged
from ..assignment.assigned import check_no_work
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, CapacityTypeError
from ..thresholds.samples import SegmentCapacities


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
    def n_rare(self) -> int:
        """How many items of `fit` have a rare label."""
        return sum(self.counts[label] for label in self.classes)

    @property
    def limits(self) -> list[tuple[Capacity | None, int]]:
        """All limits, with the rare items that multiples count: of classes, segments, the total.

        Without segments, one without a limit holds all items.
        """
        segments = [None] if self.segments is None else self.segments.limits
        return [
            *((limit, self.counts[label]) for label, limit in self.classes.items()),
            *((limit, self.n_rare) for limit in [*segments, self.total]),
        ]

    @property
    def given(self) -> list[Capacity]:
        """All capacities that were given."""
        return [capacity for capacity, _ in self.limits if capacity is not None]

    def share(self, count: int) -> EstimatedShare:
        """Return a number of items of `fit` as their share."""
        return EstimatedShare(count, sum(self.counts.values()))

    def check_rates(self) -> None:
        """Raise an error for a capacity that is no share of the items."""
        for capacity, n_rare in self.limits:
            if capacity is not None:
                capacity.as_ratio(self.share(n_rare))

    def in_batch(self, sizes: list[int]) -> Ints:
        """Return all limits as whole numbers, for so many items that each applies to."""
        return np.array(
            [
                size if capacity is None else capacity.max_flags(size, self.share(n_rare))
                for (capacity, n_rare), size in zip(self.limits, sizes, strict=True)
            ]
        )

    def changed(self, capacities: Any = UNCHANGED, total: Any = UNCHANGED) -> JointCapacities:
        """Replace some of the capacities; rare labels keep their order."""
        joint = check_joint_capacities(
            self.classes if is_unchanged(capacities) else capacities,
            self.total if is_unchanged(total) else total,
            self.segments,
            counts=self.counts,
        )
        if set(joint.classes) != set(self.classes):
            raise CapacityError(
                f"capacities must name the rare labels of fit, {list(self.classes)}; got "
                f"{list(joint.classes)}."
            )
        return replace(joint, classes={label: joint.classes[label] for label in self.classes})


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
