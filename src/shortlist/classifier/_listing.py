"""A batch of scored items, and the list that a rule makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from .._core.arrays import Floats, Rows
from .._core.hashing import tie_keys_of
from .._core.probing import probe_seed
from .._core.ranking import lift
from .._core.work import Work
from ..capacity import Capacity, check_capacity
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
        if self.work.is_given or worth is not None:
            found = rule.choose(
                self.scores, self.keys, self.work, limit, self.segments, worth=worth
            )
            _refuse_probes(probe)
            return found
        flagged = rule.select(self.scores, self.keys, limit, self.segments)
        gains = expected_gains(self.scores, None)
        found = describe_list(flagged, gains, float(flagged.sum()))
        if not probe:
            return found
        options: dict[str, Any] = {"strata": strata, "groups": self.segments}
        ranked_by = lift(self.scores)
        return with_probes(found, gains, ranked_by, self.keys, self.probe_keys(), probe, **options)


def _refuse_probes(share: Any) -> None:
    if share:
        raise ValueError(
            "probe= together with values, efforts or worth is offered by shortlist.select only. "
            "Pass it the probabilities of predict_proba."
        )
