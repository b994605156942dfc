"""Whether the promise about flags was kept, and whether chance explains a difference."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from .._core.binomial import Interval
from ..tables import TableModel
from ..thresholds import CalibratedThreshold
from ._words import capacity_in_words, guarantee_in_words, percent

__all__ = ["FlagLaw", "judge_promise", "room_for"]

_UNLIKELY = 0.05
# Of more known cases than this share, the verdict is about them and not about new cases.
_A_FEW = 0.01


class FlagLaw:
    """The law of the number of flags among new cases that are like the calibration cases.

    The flag rate of a threshold at the (k + 1)-th largest of n scores follows Beta(k + 1, n - k),
    and the number of flags among N cases follows a beta-binomial distribution. It covers the
    randomness of calibration and of the new cases. With a threshold for each of several models, the
    parameters are added up, which is close to the law of their mean. (For a confident multiple,
    where k depends on the labels, the law holds approximately, too.)
    """

    def __init__(self, calibrations: list[CalibratedThreshold], n_items: int) -> None:
        self.n_items = n_items
        self.n_above = sum(each.k + 1 for each in calibrations)
        self.n_below = sum(each.n_calibration - each.k for each in calibrations)
        # Without a threshold among the calibration scores, nothing or everything is flagged.
        self.is_certain = self.n_above == 0 or any(c.k >= c.n_calibration for c in calibrations)

    @property
    def is_silent(self) -> bool:
        """Whether nothing is ever flagged."""
        return self.n_above == 0

    @cached_property
    def _probabilities(self) -> NDArray[np.float64]:
        counts = np.arange(self.n_items + 1)
        return betabinom.pmf(counts, self.n_items, self.n_above, self.n_below)

    def chance_of_as_many(self, n_flagged: int) -> float:
        """Return the probability of so many flags or more."""
        return 1.0 if self.is_certain else float(min(1, self._probabilities[n_flagged:].sum()))

    def chance_of_as_few(self, n_flagged: int) -> float:
        """Return the probability of so few flags or fewer."""
        if self.is_certain:
            return 1.0
        return float(min(1, self._probabilities[: n_flagged + 1].sum()))

    def expected(self) -> Interval | None:
        """Return a range that holds the number of flags with a probability of 95 % at least."""
        if self.is_certain:
            return None
        at_most = np.cumsum(self._probabilities)
        low, high = np.searchsorted(at_most, (_UNLIKELY / 2, 1 - _UNLIKELY / 2)).tolist()
        return Interval(low, min(high, self.n_items))


def room_for(model: TableModel, n_items: int) -> int:
    """Return how many of so many cases can be followed up."""
    classifier = model.classifier
    return classifier.capacity.max_flags(n_items, classifier.reference_prevalence_)


def judge_promise(
    model: TableModel, n_items: int, n_flagged: int, *, n_seen: int | None = None
) -> dict[str, Any]:
    """Compare the number of flags on new cases with the capacity.

    `n_seen` is how many of the cases the model was fitted on; None if that is not known.
    """
    classifier, law = model.classifier, FlagLaw(model.classifier.calibrations_, n_items)
    room = room_for(model, n_items)
    as_many, as_few = law.chance_of_as_many(n_flagged), law.chance_of_as_few(n_flagged)
    verdict = _verdict(n_flagged, room, as_many, law)
    explanation = _EXPLANATIONS[verdict].format(
        flagged=f"{n_flagged:,}",
        n=f"{n_items:,}",
        room=f"{room:,}",
        over=f"{n_flagged - room:,}",
        chance=percent(as_many),
    )
    if verdict == "kept" and as_few < _UNLIKELY:
        explanation += _FEW.format(few=percent(as_few))
    headline = _HEADLINES[verdict]
    if n_seen:
        explanation = _SEEN.format(seen=f"{n_seen:,}", n=f"{n_items:,}") + explanation
        if n_seen > _A_FEW * n_items:
            verdict, headline = "seen", _HEADLINES["seen"]
    return {
        "capacity": capacity_in_words(classifier.capacity),
        "capacity_fraction": classifier.capacity_fraction_,
        "unit": classifier.capacity.kind,
        "room": room,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "in_words": guarantee_in_words(model),
        "n_items": n_items,
        "n_flagged": n_flagged,
        "n_seen": n_seen,
        "flag_rate": n_flagged / n_items,
        "expected_flags": law.expected(),
        "chance_of_as_many": as_many,
        "chance_of_as_few": as_few,
        "verdict": verdict,
        "headline": headline,
        "explanation": explanation,
    }


def _verdict(n_flagged: int, room: int, as_many: float, law: FlagLaw) -> str:
    if law.is_silent:
        return "silent"
    if n_flagged <= room:
        return "kept"
    return "chance" if as_many >= _UNLIKELY else "broken"


_HEADLINES = {
    "kept": "The capacity was kept",
    "chance": "Over the capacity, but chance can explain it",
    "broken": "The capacity was not kept",
    "silent": "This model flags nothing",
    "seen": "No verdict: the model has seen these cases before",
}
_EXPLANATIONS = {
    "kept": "The rule flagged {flagged} of {n} cases. The capacity allows {room}.",
    "chance": (
        "The rule flagged {flagged} of {n} cases, {over} more than the capacity of {room}. If "
        "these cases are like the calibration cases, the probability of so many flags or more is "
        "{chance}."
    ),
    "broken": (
        "The rule flagged {flagged} of {n} cases, {over} more than the capacity of {room}. If "
        "these cases were like the calibration cases, the probability of so many flags or more "
        "would be {chance}. They have probably changed: see the section on drift, and recalibrate "
        "the threshold on recent cases."
    ),
    "silent": (
        "There were too few calibration cases for the guarantee, so the rule keeps its promise by "
        "flagging none of {n} cases. Fit the model on more cases, or with a weaker guarantee."
    ),
}
_FEW = (
    " If these cases are like the calibration cases, the probability of so few flags or fewer is "
    "{few}. The scores have probably shifted, and capacity is left unused."
)
_SEEN = (
    "{seen} of these {n} cases trained the model or set its threshold. What it does on cases that "
    "it knows says little about new ones. Make the report from other cases. "
)
