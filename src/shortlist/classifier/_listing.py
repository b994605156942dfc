"""A batch of scored items, and the list that a rule makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from .._core.arrays import Floats, Rows
from .._core.hashing import tie_keys_of
from .._core.probing import probe_seed
from .._core.ranking import lift
from .._core.work import Work, in_order_of_worth
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..thresholds import Rule, Selection, describe_list, expected_gains, with_probes

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Items with their scores, the keys of ties and of probes, segments, values and efforts."""

    scores: Floats
    keys: Any
    probe_keys: Any
    segments: Rows | None
    work: Work

    @classmethod
    def of(
        cls,
        X: Any,
        scores: Floats,
        ids: ArrayLike | None,
        *,
        seed: int,
        segments: Rows | None,
        work: Work,
    ) -> Self:
        """Hash the ids of items, or their values."""
        return cls(
            scores,
            tie_keys_of(X, ids, seed=seed),
            lambda: tie_keys_of(X, ids, seed=probe_seed(seed)),
            segments,
            work,
        )

    def listed(
        self, rule: Rule, capacity: Capacity | None, *, probe: Any, strata: int, worth: Any
    ) -> Selection:
        """Return the best list within the capacity, or within that of the rule."""
        limit = None if capacity is None else check_capacity(capacity)
        if probe:
            _refuse_probes_of_work(limit or rule.capacity, *(_limits(rule)))
        gains = expected_gains(self.scores, self.work.values)
        if self.work.is_given or worth is not None:
            found = rule.choose(
                self.scores, self.keys, self.work, limit, self.segments, worth=worth
            )
        else:
            flagged = rule.select(self.scores, self.keys, limit, self.segments)
            found = describe_list(flagged, gains, float(flagged.sum()))
        if not probe:
            return found
        options: dict[str, Any] = {"strata": strata, "groups": self.segments}
        ranked_by, _ = in_order_of_worth(lift(self.scores), self.work.values, None)
        return with_probes(
            found, gains, lift(ranked_by), self.keys, self.probe_keys(), probe, **options
        )


def _limits(rule: Rule) -> list[Capacity | None]:
    return [] if rule.segments is None else list(rule.segments.limits)


def _refuse_probes_of_work(*limits: Capacity | None) -> None:
    for limit in limits:
        if limit is not None and limit.kind == "effort":
            raise CapacityError(
                f"probe=... is a share of the slots, and {limit!r} is a budget of work. Limit the "
                "number of flags, or leave probes out."
            )
