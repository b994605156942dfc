"""What a controller answers, and its memory of earlier answers."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._core import probing
from .._core.arrays import Floats, Mask
from .._core.ids import check_id

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
# Only ABOVE_THRESHOLD and PROBE flag an item. No controller answers USED_UP_ELSEWHERE: it is for
# whoever counts the flags of several of them.
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
        With probes also ``"probe"``, and ``"probe without a slot"`` if the item was drawn after
        the slots of the probes had been used up. Such an item is not flagged, and its outcome
        counts as unknown.
    probability : float
        The probability of a flag, given the score: 1 above the threshold, and otherwise that of
        the draw, which is 0 without probes. A retry has that of the first answer.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.online import QuantileTracker
    >>> tracker = QuantileTracker(Capacity.fraction(0.1), calibration_scores=range(100))
    >>> decision = tracker.decide(95.0)
    >>> decision.flag, decision.reason, decision.probability
    (True, 'above threshold', 1.0)
    """

    flag: bool
    threshold: float
    reason: str
    probability: float

    @property
    def selected_by(self) -> str:
        """One of ``"score"``, ``"probe"``, ``"probe without a slot"`` and ``"not selected"``."""
        alone = DecisionBatch.empty(1)
        alone.fill(0, self)
        return str(alone.selected_by[0])


class DecisionBatch(NamedTuple):
    """The decisions about many items: an array for each part of a :class:`Decision`."""

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
        by_flag = np.where(self.probabilities < 1, probing.PROBE, probing.BY_SCORE)
        lost = self.codes == PROBE_WITHOUT_SLOT
        not_flagged = np.where(lost, probing.PROBE_WITHOUT_SLOT, probing.NOT_SELECTED)
        return np.where(self.flagged, by_flag, not_flagged)

    @classmethod
    def empty(cls, n: int) -> Self:
        """Return a batch of `n` decisions that are still to be filled in."""
        return cls(np.empty(n, bool), np.empty(n), np.empty(n, np.int8), np.empty(n))

    def part(self, items: slice) -> DecisionBatch:
        """Return views of the decisions about some of the items."""
        flagged, thresholds = self.flagged[items], self.thresholds[items]
        return DecisionBatch(flagged, thresholds, self.codes[items], self.probabilities[items])

    def fill(self, i: int, decision: Decision) -> None:
        """Write down the decision about item `i`."""
        flag, threshold, reason, probability = decision
        self.flagged[i], self.thresholds[i], self.probabilities[i] = flag, threshold, probability
        self.codes[i] = REASONS.index(reason)

    def decision(self, i: int) -> Decision:
        """Return the decision about item `i` as :meth:`~Controller.decide` would return it."""
        flag, threshold, code, probability = (column[i].item() for column in self)
        return Decision(flag, threshold, REASONS[code], probability)


class AnswerMemory:
    """The answers to the most recent ids: flag, threshold, probability. The oldest go first."""

    __slots__ = ("_known", "_size")

    def __init__(self, size: int) -> None:
        self._known: OrderedDict[Any, tuple[bool, float, float]] = OrderedDict()
        self._size = size

    def __contains__(self, id: Any) -> bool:
        return id in self._known

    def copy(self) -> AnswerMemory:
        """Return the same answers, which are forgotten alone."""
        other = copy.copy(self)
        other._known = self._known.copy()
        return other

    def get(self, id: Any) -> tuple[bool, float, float] | None:
        """Return the answer to an id, or None if the id is unknown."""
        return self._known.get(id)

    def keep(self, id: Any, flag: bool, threshold: float, probability: float) -> None:
        """Remember an answer."""
        self._known[id] = flag, threshold, probability
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def keep_many(self, ids: Iterable[Any], batch: DecisionBatch) -> None:
        """Remember the answers of a batch."""
        parts = (batch.flagged.tolist(), batch.thresholds.tolist(), batch.probabilities.tolist())
        for id, flag, threshold, probability in zip(ids, *parts, strict=True):
            self.keep(id, flag, threshold, probability)

    def count_new(self, ids: Iterable[Any]) -> int:
        """Return how many ids come before the first that is known or repeated."""
        new: set[Any] = set()
        for id in ids:
            if id in self._known or id in new:
                break
            new.add(id)
        return len(new)

    def to_list(self) -> list[list[Any]]:
        """Return ids and answers, the oldest first, as plain JSON, which has no infinity."""
        return [[id, flag, str(cut), chance] for id, (flag, cut, chance) in self._known.items()]

    def load(self, answers: list[list[Any]]) -> None:
        """Read what :meth:`to_list` returned."""
        for id, flag, threshold, probability in answers:
            self.keep(check_id(id), bool(flag), float(threshold), float(probability))
