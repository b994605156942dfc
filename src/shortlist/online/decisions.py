"""What a controller answers."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._core import probing
from .._core.arrays import Floats, Mask

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
    "joined a case",
    "allowed",
    "waits",
    "asked for",
)
# Only ABOVE_THRESHOLD and PROBE flag an item. No controller answers USED_UP_ELSEWHERE: it is for
# whoever counts the flags of several of them. JOINED and ALLOWED are for events of entities, and
# the last two for cases that wait.
BELOW_THRESHOLD, ABOVE_THRESHOLD, CAPACITY_USED_UP, SEEN_BEFORE, MOMENT_REFUSED = range(5)
USED_UP_ELSEWHERE, PROBE, PROBE_WITHOUT_SLOT, JOINED, ALLOWED = range(5, 10)
WAITS, ASKED = range(10, 12)


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
        the slots of the probes had been used up. Such an item is not flagged, its outcome counts as
        unknown, and a retry has the same reason.
        Of :class:`EntityCases` also ``"joined a case"`` and ``"allowed"``.
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

    @classmethod
    def of(cls, decisions: list[Decision]) -> Self:
        """Return single decisions as a batch."""
        batch = cls.empty(len(decisions))
        for i, (flag, threshold, reason, probability) in enumerate(decisions):
            batch.flagged[i], batch.codes[i] = flag, REASONS.index(reason)
            batch.thresholds[i], batch.probabilities[i] = threshold, probability
        return batch
