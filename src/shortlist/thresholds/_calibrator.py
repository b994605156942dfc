"""From the scores of unseen items to the rule that fits: one threshold, folds or segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core.arrays import Mask, Rows
from .._core.folds import Unseen
from .._core.ranking import TieKeys
from .._core.work import Work
from ..capacity import Capacity, check_capacity
from ._choosing import check_capacity_for
from ._efforts import budget_of
from ._rules import FoldRule, Rule, ThresholdRule
from ._segments import SegmentRule
from ._terms import CalibrationSample, Terms
from .segments import SegmentCapacities

__all__ = ["Calibrator", "make_rule"]

_NO_WORK = Work()


@dataclass(frozen=True)
class Calibrator:
    """Turns scores of unseen items into a rule.

    It is made before any model is fitted, and an impossible capacity fails then.

    Attributes
    ----------
    capacity, segments, terms
        As for :class:`Rule`.
    tie_keys : function of rows, or None
        Tie keys of all items given to `fit`, if ties are hashed.
    keyed_by_ids : bool
        Whether they come from ids.
    is_rare, segment_of : ndarray or None
        Labels of all items, and the numbers of their segments.
    group_of : ndarray or None
        Numbers of their groups, if some items belong together.
    work : Work
        Values and efforts of all items, if there are any.
    """

    capacity: Capacity | None
    segments: SegmentCapacities | None
    terms: Terms
    tie_keys: TieKeys | None = None
    keyed_by_ids: bool = False
    is_rare: Mask | None = None
    segment_of: Rows | None = None
    group_of: Rows | None = None
    work: Work = _NO_WORK

    def __post_init__(self) -> None:
        limits = [self.capacity, *(self.segments.limits if self.segments else [])]
        for limit in limits:
            if limit is None:
                continue
            if limit.kind == "effort":
                check_capacity_for(limit, self.work.efforts)
                budget_of(limit, self.work.efforts, self.terms.max_effort)
            else:
                limit.as_ratio(self.terms.reference.value)
        if not any(limit is not None and limit.kind == "effort" for limit in limits):
            check_capacity_for(limits[0] or Capacity.fraction(1), self.work.efforts)

    def rule(
        self, unseen: Sequence[Unseen], *, out_of_bag: bool = False, refitted: bool = False
    ) -> Rule:
        """Calibrate on scores of rows that the models have not seen, one part for each model."""
        samples = self.samples(unseen, out_of_bag=out_of_bag, refitted=refitted)
        return make_rule(samples, self.capacity, self.terms, segments=self.segments)

    def samples(
        self, unseen: Sequence[Unseen], *, out_of_bag: bool = False, refitted: bool = False
    ) -> list[CalibrationSample]:
        """Keep such scores with what is known about their rows."""
        return [
            CalibrationSample.of(
                scores,
                rows=rows,
                tie_keys=self.tie_keys,
                keyed_by_ids=self.keyed_by_ids,
                is_rare=self.is_rare,
                segments=self.segment_of,
                out_of_bag=out_of_bag,
                groups=self.group_of,
                refitted=refitted,
                work=self.work,
            )
            for rows, scores in unseen
        ]


def make_rule(
    samples: Sequence[CalibrationSample],
    capacity: Capacity | None,
    terms: Terms,
    *,
    segments: SegmentCapacities | None = None,
) -> Rule:
    """Calibrate a rule: by segments, if these have capacities, else by folds or by one threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> import numpy as np
    >>> from shortlist.thresholds import CalibrationSample, Terms, make_rule
    >>> sample = CalibrationSample(np.arange(100.0))
    >>> rule = make_rule([sample], Capacity.fraction(0.1), Terms())
    >>> rule.describe()["thresholds"]
    [90.0]
    >>> rule.with_capacity(Capacity.fraction(0.2)).describe()["thresholds"]
    [80.0]
    """
    if segments is not None:
        return SegmentRule(samples, capacity, terms, segments)
    return (ThresholdRule if len(samples) == 1 else FoldRule)(
        samples, check_capacity(capacity), terms
    )
