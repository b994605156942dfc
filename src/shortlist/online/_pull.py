"""Cases that wait to be asked for, within a number of slots per period."""

from __future__ import annotations

import bisect
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats
from .._core.ids import check_id
from .._core.validation import check_positive
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._budget import BudgetController
from ._pacing import take_flag
from .decisions import BELOW_THRESHOLD, REASONS, SEEN_BEFORE, Decision, TailScale, check_score
from .periods import read_period


class WaitingCase(NamedTuple):
    """A case that waits, or was handed out.

    Attributes
    ----------
    id : str or int
        Its id.
    score : float
        Its score.
    since : float
        When it arrived, in seconds.
    flagged_at : float or None
        When it got its slot; None while it waits.
    """

    id: Any
    score: float
    since: float
    flagged_at: float | None = None


class PullController(BudgetController):
    """Let cases wait, and hand out the most worthwhile one to whoever asks, never above a number.

    A case can wait as long as its patience lasts. Whoever asks gets the waiting case with the
    highest score if it is worth one of the slots left: if the bar of a :class:`BudgetController`
    lies below it. A case whose patience ends before anybody asked is flagged then, if it is worth
    one of the slots that better cases which wait leave free; otherwise it expires. At the end of a
    period, the slots left go to the best cases that wait. Flagged cases are handed out first. No
    period has more cases than slots, whoever asks whenever, after restarts and changes of the
    capacity, and with clocks that run backwards.

    Parameters
    ----------
    capacity : Capacity
        ``Capacity.count(k)``: slots in a period.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model. They stand in for the periods before the first.
    patience : float
        How many seconds a case can wait.
    period, expected_arrivals, starts_at, remember
        As for :class:`BudgetController`; the first two are required.

    Attributes
    ----------
    n_waiting : int
        How many cases wait, without those whose patience ended.

    Notes
    -----
    :meth:`~Controller.decide` still decides about a case at once, within the same slots.

    Examples
    --------
    Two slots a day, and four hours of patience. The second case is asked for after an hour; the
    first one is worth the other slot when its patience ends.

    >>> from shortlist import Capacity
    >>> from shortlist.online import PullController
    >>> pull = PullController(
    ...     Capacity.count(2),
    ...     period=86_400,
    ...     expected_arrivals=10,
    ...     calibration_scores=range(10),
    ...     patience=4 * 3_600,
    ... )
    >>> [pull.add(score, id=id, at=0) for id, score in (("a", 9.2), ("b", 9.5), ("c", 2))]
    [True, True, True]
    >>> pull.next(at=3_600).id
    'b'
    >>> [case.id for case in pull.flagged(at=4 * 3_600)]
    ['a']
    >>> pull.next(at=5 * 3_600) is None, pull.remaining
    (True, 0)
    """

    def __init__(
        self, capacity: Capacity, *, calibration_scores: ArrayLike, patience: float, **options: Any
    ) -> None:
        super().__init__(capacity, calibration_scores=calibration_scores, **options)
        if self.counts_work or self.has_probes or not self.is_timed:
            raise CapacityError(
                f"Waiting cases need a number of slots per period; got {capacity!r}. Use "
                "Capacity.count(k) with period=..., and neither efforts nor probes."
            )
        self.options["patience"] = check_positive("patience", patience)
        self._periods = read_period(self.options["period"], starts_at=self.options["starts_at"])
        # Cases in the order of arrival by number, and the numbers by falling scores.
        self._waiting: OrderedDict[int, WaitingCase] = OrderedDict()
        self._ranked: list[tuple[float, int]] = []
        self._flagged: list[WaitingCase] = []
        # The ids of all these, with the numbers that they had while they waited: a case that is
        # here is known however many came after it.
        self._here: dict[Any, int] = {}

    @property
    def n_waiting(self) -> int:
        """How many cases wait, without those whose patience ended."""
        return len(self._waiting)

    # --- both ends -----------------------------------------------------------------------------

    def add(self, score: float, *, id: str | int, at: Any) -> bool:
        """Let a case wait.

        Parameters
        ----------
        score : float
            Higher is more suspicious.
        id : str or int
            Its id. A case that was added before is not added again.
        at : float or datetime
            When it arrived.

        Returns
        -------
        bool
            Whether it waits now; False for a repeated id, and for a moment many periods ahead, as
            in :meth:`~Controller.decide`.
        """
        id, score, moment = check_id(id), check_score(score), self._time.moment(at)
        with self.lock:
            if self._repeat(id) is not None or not self._reach(moment):
                return False
            self._decide_new(score, moment, None, 1, deciding=False)
            self._keep(id, BELOW_THRESHOLD, math.inf, 0.0)
            self._wait(WaitingCase(id, score, self.now))
            return True

    def next(self, *, at: Any, among: Callable[[Any], bool] | None = None) -> WaitingCase | None:
        """Return the most worthwhile case, and take a slot for it.

        Parameters
        ----------
        at : float or datetime
            When somebody asks.
        among : callable, default=None
            Whether who asks is able to do the case with an id; the others are left to others.

        Returns
        -------
        WaitingCase or None
            First those that were flagged, then the one with the highest score. None if no case
            waits that is worth one of the slots left.
        """
        moment = self._time.moment(at)
        with self.lock:
            if not self._reach(moment):
                return None
            if not self._flagged:
                able = (
                    (n_ahead, number)
                    for n_ahead, (_, number) in enumerate(self._ranked)
                    if among is None or among(self._waiting[number].id)
                )
                n_ahead, number = next(able, (0, None))
                if number is None or not self._take(self._waiting[number].score, n_ahead, moment):
                    return None
                self._flag(self._leave(number))
            case = self._flagged.pop(0)
            self._here.pop(case.id, None)
            return case

    def flagged(self, *, at: Any) -> list[WaitingCase]:
        """Return the cases that got a slot before anybody asked, each of them once.

        Parameters
        ----------
        at : float or datetime
            The present moment.

        Returns
        -------
        list of WaitingCase
            In the order in which they were flagged. :meth:`next` does not return them again.
        """
        moment = self._time.moment(at)
        with self.lock:
            self._reach(moment)
            found, self._flagged = self._flagged, []
            for case in found:
                self._here.pop(case.id, None)
            return found

    # --- waiting -------------------------------------------------------------------------------

    def _repeat(self, id: Any) -> Decision | None:
        known = super()._repeat(id)
        if known is None and id in self._here:
            return Decision(False, math.inf, REASONS[SEEN_BEFORE], 0.0)
        return known

    def _are_plain(self, moments: Floats, ids: list[Any] | None) -> bool:
        return not self._here and super()._are_plain(moments, ids)

    def _reach(self, moment: float) -> bool:
        """Settle first all cases whose patience ends until a moment, unless that is refused."""
        if self._time.is_refused(moment):
            return False
        while self._waiting:
            number, case = next(iter(self._waiting.items()))
            ends, closes = case.since + self.options["patience"], self._last_moment()
            if min(ends, closes) > max(moment, self.now):
                break
            if closes < ends:
                self._use_up(closes)
            else:
                self._settle(number, case, ends)
        self._make_due_changes(moment)
        self._time.now = max(self.now, moment)
        return True

    def _last_moment(self) -> float:
        """Return the next moment that is the last one of a period."""
        after = self._periods.number(math.nextafter(self.now, math.inf))
        return math.nextafter(self._periods.bounds(after)[1], -math.inf)

    def _use_up(self, closes: float) -> None:
        """Flag the best cases that wait at the end of a period, as far as slots are left."""
        while self._ranked and self._take(-self._ranked[0][0], 0, closes):
            self._flag(self._leave(self._ranked[0][1]))

    def _settle(self, number: int, case: WaitingCase, ends: float) -> None:
        """Flag a case at the end of its patience, or let it expire."""
        n_ahead = bisect.bisect_left(self._ranked, (-case.score, number))
        self._leave(number)
        if self._take(case.score, n_ahead, ends):
            self._flag(case)
        else:
            self._here.pop(case.id, None)

    def _flag(self, case: WaitingCase) -> None:
        self._flagged.append(case._replace(flagged_at=self.now))

    def _take(self, score: float, n_ahead: int, moment: float) -> bool:
        self._make_due_changes(moment)
        time = self._time.move_to(moment)
        return bool(take_flag(score, n_ahead, time, self.state_floats, self.state_ints))

    def _wait(self, case: WaitingCase) -> None:
        number = next(reversed(self._waiting), -1) + 1
        self._waiting[number] = case
        self._here[case.id] = number
        bisect.insort(self._ranked, (-case.score, number))

    def _leave(self, number: int) -> WaitingCase:
        case = self._waiting.pop(number)
        del self._ranked[bisect.bisect_left(self._ranked, (-case.score, number))]
        return case

    def waits(self, id: str | int) -> bool:
        """Whether a case waits."""
        case = self._waiting.get(self._here.get(id, -1))
        return case is not None and case.id == id

    def drop(self, id: str | int) -> None:
        """Let a case wait no longer: somebody else has handed it out."""
        if self.waits(id):
            self._leave(self._here.pop(id))

    def lift(self, id: str | int, score: float) -> None:
        """Let a case that waits have a higher score, by which it is handed out: it has grown."""
        if self.waits(id) and score > self._waiting[self._here[id]].score:
            number = self._here[id]
            case = self._waiting[number]
            del self._ranked[bisect.bisect_left(self._ranked, (-case.score, number))]
            self._waiting[number] = case._replace(score=score)  # its place in time stays
            bisect.insort(self._ranked, (-score, number))

    # --- saved state ---------------------------------------------------------------------------

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate the scores of all cases that wait, too; they keep their order."""
        super().change_scale(old, new)
        waiting = list(self._waiting.values())
        scores = old.translate(np.array([case.score for case in waiting]), to=new).tolist()
        self._waiting.clear()
        self._ranked.clear()
        for case, score in zip(waiting, scores, strict=True):
            self._wait(case._replace(score=score))

    def own_state(self) -> dict[str, Any]:
        """Return all cases that wait or have a slot."""
        waiting, flagged = self._waiting.values(), self._flagged
        return {"waiting": [list(each) for each in waiting], "kept": [list(c) for c in flagged]}

    def load_own_state(self, state: dict[str, Any]) -> None:
        """Let the saved cases wait again."""
        for case in state["waiting"]:
            self._wait(_read_case(case))
        self._flagged = [_read_case(case) for case in state["kept"]]
        self._here.update((case.id, -1) for case in self._flagged)


def _read_case(saved: list[Any]) -> WaitingCase:
    id, score, since, at = saved
    flagged_at = None if at is None else check_score(at)
    return WaitingCase(check_id(id), check_score(score), check_score(since), flagged_at)
