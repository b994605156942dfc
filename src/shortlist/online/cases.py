"""Cases of several events: those of one entity within a window are one case, with one slot."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Rows
from .._core.ids import check_id, values_of
from .._core.validation import check_number, check_positive
from .controller import Controller
from .decisions import (
    ALLOWED,
    JOINED,
    MOMENT_REFUSED,
    REASONS,
    SEEN_BEFORE,
    Decision,
    check_moments,
    check_score,
    to_seconds,
)

# Codes of what neither begins a case nor joins one.
_NO_EVENT = (SEEN_BEFORE, MOMENT_REFUSED, ALLOWED)


class OpenCase(NamedTuple):
    """The last case of an entity: its key, when it was flagged, and the highest score so far."""

    key: Any
    at: float
    highest: float


class EntityCases:
    """Let the events of one entity be one case, which takes one slot.

    When an event is flagged, a case of its entity begins. For as long as the `window`, further
    events of the entity join it, whatever their scores are: they take no slot, and no controller
    counts them. During the `cooldown` that follows, they join it unless the score has risen by
    `rise` above all scores of the case; then the event is decided like any other, and can begin the
    next case. Events of an entity that is on the allow-list are not decided until its end.

    A flag is always one of the controller. Therefore no period has more cases than slots, whatever
    the order of the events, and whoever comes again. The object can be pickled, and goes on from
    there.

    Parameters
    ----------
    window : float
        How many seconds after the flag an event belongs to the case.
    cooldown : float, default=0
        How many seconds after that the entity is not raised again.
    rise : float, default=None
        By how much a score must exceed all scores of the case to be raised again during the
        cool-down. `None` raises nothing again.
    allowed : mapping, default=None
        The end of the allowance of entities, in seconds or as datetimes.

    Examples
    --------
    A customer is flagged at once, and the next two payments join the case. After the hour, only a
    much higher score takes another slot.

    >>> from shortlist import Capacity
    >>> from shortlist.online import BudgetController, EntityCases
    >>> budget = BudgetController(
    ...     Capacity.count(3), period=86_400, expected_arrivals=10, calibration_scores=range(10)
    ... )
    >>> cases = EntityCases(window=3_600, cooldown=86_400, rise=2)
    >>> events = [(20.0, 0), (25.0, 60), (8.0, 3_000), (26.0, 7_200), (28.0, 7_300)]
    >>> [cases.decide(budget, score, entity="ann", at=at).reason for score, at in events]
    ['above threshold', 'joined a case', 'joined a case', 'joined a case', 'above threshold']
    >>> budget.remaining
    1
    """

    def __init__(
        self,
        *,
        window: float,
        cooldown: float = 0.0,
        rise: float | None = None,
        allowed: Mapping[Any, Any] | None = None,
    ) -> None:
        self.window = check_positive("window", window)
        self.cooldown = float(check_number("cooldown", cooldown))
        if self.cooldown < 0:
            raise ValueError(f"cooldown must be at least 0 seconds; got {cooldown!r}.")
        self.rise = math.inf if rise is None else check_positive("rise", rise)
        self._allowed: dict[Any, float] = {}
        for entity, until in (allowed or {}).items():
            self.allow(entity, until)
        # In the order of their flags: the oldest are over first.
        self._cases: OrderedDict[Any, OpenCase] = OrderedDict()

    # --- the rule ------------------------------------------------------------------------------

    def allow(self, entity: str | int, until: Any) -> None:
        """Put an entity on the allow-list until a moment, in the place of what was said before.

        Parameters
        ----------
        entity : str or int
            The entity.
        until : float or datetime
            When its events are decided again.
        """
        self._allowed[check_id(entity, "entity")] = to_seconds(until)

    def case_of(self, entity: str | int, at: float) -> OpenCase | None:
        """Return the case that an event of an entity belongs to unless it is flagged, if any.

        Parameters
        ----------
        entity : str or int
            The entity.
        at : float
            The moment of the event, not before any other.

        Returns
        -------
        OpenCase or None
            With its `key`, the moment of its flag (`at`) and its `highest` score.
        """
        case = self._cases.get(entity)
        return case if case is not None and at < case.at + self.window + self.cooldown else None

    def __contains__(self, entity: Any) -> bool:
        return entity in self._cases or entity in self._allowed

    def settle(self, entity: Any, score: float, at: float) -> int | None:
        """Return the code of an event that is not to be decided; None for all others."""
        if at < self._allowed.get(entity, -math.inf):
            return ALLOWED
        case = self.case_of(entity, at)
        if case is None:
            return None
        is_raised = at >= case.at + self.window and score >= case.highest + self.rise
        return None if is_raised else JOINED

    def begin(self, entity: Any, key: Any, score: float, at: float) -> None:
        """Let a case begin with a flag."""
        self._cases[entity] = OpenCase(key, at, score)
        self._cases.move_to_end(entity)
        while self._cases and self.case_of(next(iter(self._cases)), at) is None:
            self._cases.popitem(last=False)

    def wait(self, entity: Any, key: Any, score: float) -> None:
        """Let a case begin that waits for its slot; until then, all events of its entity join."""
        self._cases[entity] = OpenCase(key, math.inf, score)

    def end(self, entity: Any) -> None:
        """Let the case of an entity be over: it has waited in vain."""
        self._cases.pop(entity, None)

    def join(self, entity: Any, score: float, at: float) -> Any:
        """Let an event without a flag join the case of its entity; return the key, or None."""
        case = self.case_of(entity, at)
        if case is None:
            return None
        self._cases[entity] = case._replace(highest=max(case.highest, score))
        return case.key

    # --- streams -------------------------------------------------------------------------------

    def decide(
        self,
        controller: Controller,
        score: float,
        *,
        entity: str | int,
        at: Any,
        id: str | int | None = None,
        effort: float | None = None,
    ) -> Decision:
        """Decide about one event, by a controller unless it joins a case.

        Parameters
        ----------
        controller : Controller
            Keeps the capacity; always the same one.
        score : float
            Higher is more suspicious.
        entity : str or int
            Whose event it is.
        at, id, effort
            As for :meth:`Controller.decide`; `at` is required.

        Returns
        -------
        Decision
            With the reason ``"joined a case"`` or ``"allowed"`` if it was not decided.
        """
        entity, score = check_id(entity, "entity"), check_score(score)
        with controller.lock:
            now = max(to_seconds(at), controller.now)
            code = self.settle(entity, score, now)
            if code is None:
                decision = controller.decide(score, at=at, id=id, effort=effort)
            else:
                decision = controller.pass_over(code, at=at, id=id)
            if REASONS.index(decision.reason) in _NO_EVENT:
                return decision
            if decision.flag:
                self.begin(entity, id, score, now)
            else:
                self.join(entity, score, now)
            return decision

    # --- tables --------------------------------------------------------------------------------

    def number(self, entities: ArrayLike, at: Any = None) -> Rows:
        """Return which case each row of a table belongs to, as numbers from 0 on.

        Rows of one entity are one case if there are no moments. Otherwise a case begins with the
        first row of an entity that no case has, and has all its rows within the window.

        Parameters
        ----------
        entities : array-like of shape (n_rows,)
            Whole numbers or texts.
        at : array-like of shape (n_rows,), default=None
            Their moments.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Numbers in the order in which cases begin in the table, or in time.
        """
        names = [check_id(each, "entities") for each in values_of(entities).tolist()]
        moments = np.zeros(len(names)) if at is None else check_moments(at, len(names))
        numbers, begun = np.empty(len(names), np.intp), dict[Any, tuple[float, int]]()
        n_cases = 0
        for row in np.argsort(moments, kind="stable").tolist():
            first, number = begun.get(names[row], (-math.inf, -1))
            if moments[row] - first >= self.window:
                number, n_cases = n_cases, n_cases + 1
                begun[names[row]] = moments[row], number
            numbers[row] = number
        return numbers
