"""What a controller answers, and its memory of earlier answers."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core import probing
from .._core.arrays import Floats, Mask
from .._core.probing import BY_SCORE, NOT_SELECTED
from .._core.validation import check_id

__all__ = [
    "ABOVE_THRESHOLD",
    "BELOW_THRESHOLD",
    "CAPACITY_USED_UP",
    "MOMENT_REFUSED",
    "PROBE",
    "PROBE_WITHOUT_SLOT",
    "REASONS",
    "SEEN_BEFORE",
    "USED_UP_ELSEWHERE",
    "AnswerMemory",
    "Decision",
    "DecisionBatch",
    "ProbedBatch",
    "ProbedDecision",
    "as_batch",
    "as_decision",
    "is_flag",
]

#: Why an item was flagged or not, in words. A reason's code is its position.
REASONS = (
    "below threshold",
    "above threshold",
    "capacity used up",
    "seen before",
    "moment refused",
    "capacity used up elsewhere",
    probing.PROBE,
    probing.PROBE_WITHOUT_SLOT,
)
#: The codes of the reasons. Only ABOVE_THRESHOLD and PROBE flag an item. No controller answers
#: USED_UP_ELSEWHERE: it is for whoever counts the flags of several of them.
BELOW_THRESHOLD, ABOVE_THRESHOLD, CAPACITY_USED_UP, SEEN_BEFORE, MOMENT_REFUSED = range(5)
USED_UP_ELSEWHERE, PROBE, PROBE_WITHOUT_SLOT = range(5, 8)


def is_flag(codes: Any) -> Any:
    """Whether the reason with a code flags an item; for one code or an array of them."""
    return (codes == ABOVE_THRESHOLD) | (codes == PROBE)


class Decision(NamedTuple):
    """The decision about one item.

    Attributes
    ----------
    flag : bool
        Whether to follow the item up.
    threshold : float
        The score that the item had to exceed.
    reason : str
        One of ``"above threshold"``, ``"below threshold"``, ``"capacity used up"``, for an id that
        already has an answer ``"seen before"``, and for an item whose moment lies many periods
        ahead ``"moment refused"``. Such an item was not decided; send it again with its moment.
    """

    flag: bool
    threshold: float
    reason: str

    @property
    def probability(self) -> float:
        """The probability of a flag, given the score: 1 or 0, because there are no probes."""
        return float(self.flag)

    def as_batch(self) -> DecisionBatch:
        """Return a batch of this decision alone."""
        codes = np.array([REASONS.index(self.reason)], np.int8)
        return DecisionBatch(np.array([self.flag]), np.array([self.threshold]), codes)


class ProbedDecision(NamedTuple):
    """The decision about one item by a controller with probes.

    Attributes
    ----------
    flag, threshold, reason
        As of :class:`Decision`. The reason may also be ``"probe"``, and ``"probe without a slot"``
        if the item was drawn after the slots of the probes had been used up. Such an item is not
        flagged, and its outcome counts as unknown.
    probability : float
        The probability of a flag: 1 above the threshold, and otherwise that of the draw. A retry
        has that of the first answer.
    """

    flag: bool
    threshold: float
    reason: str
    probability: float

    @property
    def selected_by(self) -> str:
        """One of ``"score"``, ``"probe"``, ``"probe without a slot"`` and ``"not selected"``."""
        return str(selected_by(self.flag, self.probability, REASONS.index(self.reason)))

    def as_batch(self) -> ProbedBatch:
        """Return a batch of this decision alone."""
        probabilities = np.array([self.probability])
        return ProbedBatch(*Decision(*self[:3]).as_batch(), probabilities)


class DecisionBatch(NamedTuple):
    """The decisions about many items, in the order of the items.

    Attributes
    ----------
    flagged : ndarray of bool
        Whether to follow each item up.
    thresholds : ndarray of float
        The score that each item had to exceed.
    codes : ndarray of int8
        The reasons, as positions in :data:`~shortlist.online.REASONS`.
    """

    flagged: Mask
    thresholds: Floats
    codes: NDArray[np.int8]

    @property
    def reasons(self) -> NDArray[np.str_]:
        """The reasons in words."""
        return np.array(REASONS)[self.codes]

    @property
    def probabilities(self) -> Floats:
        """The probability of a flag, given the score: 1 or 0, because there are no probes."""
        return self.flagged.astype(np.float64)

    def decision(self, i: int) -> Decision:
        """Return the decision about item `i` as :meth:`~Controller.decide` would return it."""
        return Decision(
            bool(self.flagged[i]), float(self.thresholds[i]), REASONS[int(self.codes[i])]
        )


class ProbedBatch(NamedTuple):
    """The decisions about many items by a controller with probes.

    Attributes
    ----------
    flagged, thresholds, codes
        As of :class:`DecisionBatch`.
    probabilities : ndarray of float
        The probability of a flag of each item, as of :class:`ProbedDecision`.
    """

    flagged: Mask
    thresholds: Floats
    codes: NDArray[np.int8]
    probabilities: Floats

    @property
    def reasons(self) -> NDArray[np.str_]:
        """The reasons in words."""
        return np.array(REASONS)[self.codes]

    @property
    def selected_by(self) -> NDArray[np.str_]:
        """How each item was selected, retries like the first answer; for `estimate_missed`."""
        return selected_by(self.flagged, self.probabilities, self.codes)

    def decision(self, i: int) -> ProbedDecision:
        """Return the decision about item `i` as :meth:`~Controller.decide` would return it."""
        flag, threshold, code, probability = (column[i].item() for column in self)
        return ProbedDecision(flag, threshold, REASONS[code], probability)


def as_decision(
    flag: bool, threshold: float, probability: float | None = None, *, code: int
) -> Decision | ProbedDecision:
    """Return a decision, with a probability if there is one."""
    if probability is None:
        return Decision(flag, threshold, REASONS[code])
    return ProbedDecision(flag, threshold, REASONS[code], probability)


def as_batch(
    flagged: Mask, thresholds: Floats, codes: NDArray[np.int8], probabilities: Floats | None
) -> DecisionBatch | ProbedBatch:
    """Return decisions, with probabilities if there are any."""
    if probabilities is None:
        return DecisionBatch(flagged, thresholds, codes)
    return ProbedBatch(flagged, thresholds, codes, probabilities)


def selected_by(flagged: Any, probabilities: Any, codes: Any) -> NDArray[np.str_]:
    """Say how items were selected; below the threshold, the probability is less than 1."""
    lost = ~np.asarray(flagged) & (np.asarray(codes) == PROBE_WITHOUT_SLOT)
    by_flag = np.where(np.asarray(probabilities) < 1, probing.PROBE, BY_SCORE)
    return np.where(flagged, by_flag, np.where(lost, probing.PROBE_WITHOUT_SLOT, NOT_SELECTED))


class AnswerMemory:
    """The answers to the most recent ids; the oldest id is forgotten first.

    An answer is a flag and a threshold, and a probability if there are probes.
    """

    __slots__ = ("_known", "_length", "_size")

    def __init__(self, size: int, *, with_probability: bool = False) -> None:
        self._known: OrderedDict[Any, tuple[Any, ...]] = OrderedDict()
        self._size, self._length = size, 2 + with_probability

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> AnswerMemory:
        """Return the same answers, which are forgotten alone."""
        other = copy.copy(self)
        other._known = self._known.copy()
        return other

    def get(self, id: Any) -> tuple[Any, ...] | None:
        """Return the answer to an id, or None if the id is unknown."""
        return self._known.get(id)

    def keep(self, id: Any, *answer: Any) -> None:
        """Remember an answer."""
        self._known[id] = answer
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def find_sources(self, ids: list[Any]) -> list[int]:
        """Return where the answer to each id comes from if they are decided in this order.

        The source of a new id is its own position, the source of a repeated id is the position
        that it repeats, and -1 means that the answer is already in memory.
        """
        # What is known is not copied: only ids that this bundle would push out are looked at.
        oldest = iter(self._known)
        forgotten: set[Any] = set()
        places: OrderedDict[Any, int] = OrderedDict()
        sources = []
        for position, id in enumerate(ids):
            if id in places:
                sources.append(places[id])
            elif id in self._known and id not in forgotten:
                sources.append(-1)
            else:
                places[id] = position
                sources.append(position)
                if len(self._known) - len(forgotten) + len(places) > self._size:
                    gone = next(oldest, None)
                    if gone is None:
                        places.popitem(last=False)
                    else:
                        forgotten.add(gone)
        return sources

    def to_list(self) -> list[list[Any]]:
        """Return ids and answers, the oldest first."""
        return [[id, *answer] for id, answer in self._known.items()]

    def load(self, answers: list[list[Any]]) -> None:
        """Read what :meth:`to_list` returned."""
        for id, flag, *numbers in answers:
            if 1 + len(numbers) != self._length:
                raise ValueError(f"an answer has {self._length} parts; got {[flag, *numbers]!r}.")
            self.keep(check_id(id), bool(flag), *(float(number) for number in numbers))
