"""A hard number of flags, or amount of work, per period, spent where the scores are highest."""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats
from .._core.probing import check_probe
from ..capacity import Capacity
from ..exceptions import CapacityError
from . import _ledger as book
from ._inputs import (
    WORK_UNITS,
    flags_allowed,
    work_allowed,
)
from ._ledger import first_ledger, is_sound, open_ledger, thin_out
from ._pacing import (
    PATTERN,
    RECENT,
    keep,
    most_probes,
    pacing_loop,
    pacing_step,
    set_rate,
    usual_flags,
)
from ._scale import TailScale
from .controller import Controller

_FIRST_RULE = {"auto": RECENT, "recent": RECENT, "pattern": PATTERN}
_OUT_OF_DATE = 1 << 40  # so many arrivals since the thresholds were computed


class BudgetController(Controller):
    """Never flag more than a number of items per period, and choose them well.

    This is the default for counts. The limit holds in every period, for any scores, after restarts
    and changes of the capacity, with clocks that run backwards and with repeated ids. Within a
    period, the flags left are paced over the arrivals still to come: the threshold is the score
    that as many of those are expected to exceed as there are flags left.

    A budget can also be one of work: ``Capacity.effort(480)`` minutes in a period. Pass the score
    as value * probability / effort (:func:`~shortlist.worth.expected_worth`), and the effort of
    each item with it. An item that no longer fits is left out, and smaller ones fill what
    it leaves. In exact arithmetic, the work of the flags never exceeds the budget in any period.

    Parameters
    ----------
    capacity : Capacity
        ``Capacity.count(k)`` with `period`, or ``Capacity.count(k, per=n)`` for every n items; the
        same with ``Capacity.effort(...)``.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model. They stand in for the periods before the first.
    period : float or str, default=None
        Length of a period in seconds, or a period of a calendar as in :class:`CalendarPeriod`.
        `None` counts items instead, by the capacity's `per`.
    expected_arrivals : int, default=None
        Items in a period, as a first estimate. The number and its pattern over the period are then
        learned. Required with `period`.
    pace : {"auto", "recent", "pattern"}, default="auto"
        Which scores set the threshold:

        - ``"recent"``: the latest scores, over the length of one period. Reacts quickly to changes.
        - ``"pattern"``: the same hours of the last six periods, of which the richer half decides.
          For strong patterns within the day, such as scores that rise through it, and for bursts.
        - ``"auto"``: both rules run, and the one that would have flagged the larger share of the
          highest scores of earlier periods leads.
    starts_at : float or datetime, default=0
        A moment at which a period starts: the start of the first one or of any other, such as a
        local midnight.
    expected_effort : float, default=None
        The usual work of a flagged item, as a first estimate; it is then learned. Required with
        ``Capacity.effort(...)``.
    probe : float, default=0
        Share of the flags that goes to items below the threshold, drawn at random, so that
        :func:`~shortlist.feedback.estimate_missed` can say what is missed: on average in a busy
        period, and a little less in others. The probability of each draw is part of the answer.
        The draw is a keyed hash of the id: a retry has the same answer. An item without an id is
        drawn by its number. Cannot be combined with ``Capacity.effort(...)``.
    probe_key : str, default=None
        A text that makes the draws reproducible. `None` makes up a secret one, which is saved with
        the state. Whoever knows it can choose ids that are never drawn.
    remember : int, default=10000
        As for :class:`Controller`.

    Notes
    -----
    If the capacity is lowered below the number of flags already used, nothing more is flagged in
    that period. An item from an earlier period counts in the latest period seen.

    The quantile is solved again after every flag. Therefore the regret against a choice with
    hindsight grows like log T rather than the square root of T (Arlotto and Gurvich, arXiv
    1710.07719).

    Each item below the threshold is drawn with a probability that is fixed at the start of its
    period, from the arrivals of the last six, whatever happened before it. Probes and scores share
    the flags: enough are kept for the draws still to come. If many more items arrive than in any of
    the last six periods, probes run out of flags before they take those of the scores. An item that
    is drawn then is not flagged (``"probe without a slot"``); pass it to `estimate_missed` with an
    unknown outcome.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import BudgetController
    >>> rng = np.random.default_rng(0)
    >>> budget = BudgetController(
    ...     Capacity.count(50),
    ...     period=86_400,
    ...     expected_arrivals=5_000,
    ...     calibration_scores=rng.normal(size=5_000),
    ... )
    >>> times = np.sort(rng.uniform(0, 3 * 86_400, size=15_000))
    >>> flagged = budget.decide_many(rng.normal(size=15_000), at=times).flagged
    >>> np.bincount((times[flagged] // 86_400).astype(int)).tolist()
    [50, 50, 50]
    >>> budget.remaining
    0

    Eight hours a day, for cases that take from 5 to 60 minutes each:

    >>> budget = BudgetController(
    ...     Capacity.effort(480),
    ...     period=86_400,
    ...     expected_arrivals=5_000,
    ...     expected_effort=20,
    ...     calibration_scores=rng.exponential(size=5_000),
    ... )
    >>> minutes = rng.integers(5, 61, size=15_000)
    >>> flagged = budget.decide_many(
    ...     rng.exponential(size=15_000), at=times, efforts=minutes
    ... ).flagged
    >>> np.bincount((times[flagged] // 86_400).astype(int), minutes[flagged]).tolist()
    [463.0, 479.0, 477.0]

    A tenth of 50 flags a day for probes:

    >>> budget = BudgetController(
    ...     Capacity.count(50),
    ...     period=86_400,
    ...     expected_arrivals=5_000,
    ...     calibration_scores=rng.normal(size=5_000),
    ...     probe=0.1,
    ...     probe_key="an example",
    ... )
    >>> batch = budget.decide_many(rng.normal(size=15_000), at=times, ids=np.arange(15_000))
    >>> np.bincount((times[batch.flagged] // 86_400).astype(int)).tolist()
    [50, 50, 50]
    >>> batch.selected_by.tolist().count("probe"), batch.probabilities.min().round(4).item()
    (13, 0.001)
    """

    compiled_step = staticmethod(pacing_step)
    compiled_loop = staticmethod(pacing_loop)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        period: float | str | None = None,
        expected_arrivals: int | None = None,
        pace: str = "auto",
        starts_at: Any = 0.0,
        expected_effort: float | None = None,
        probe: float = 0,
        probe_key: str | None = None,
        remember: int = 10_000,
    ) -> None:
        if period is not None and expected_arrivals is None:
            raise ValueError(
                "expected_arrivals is required with period=...: pass the usual number of items in "
                "a period. A rough number is enough, because it is learned."
            )
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            remember=remember,
            **_probe_options(probe, probe_key),
            period=period,
            expected_arrivals=expected_arrivals,
            pace=pace,
            starts_at=starts_at,
            expected_effort=expected_effort,
        )

    @property
    def remaining(self) -> float:
        """Flags, or work, left in the period of the latest item."""
        ints = self.state_ints
        left = max(int(ints[book.TOTAL] - ints[book.USED] - ints[book.DRAWN]), 0)
        return float(Fraction(left, WORK_UNITS)) if self.counts_work else left

    def check_capacity(self, capacity: Capacity) -> None:
        """Accept a count or an effort, per period or per so many items."""
        if capacity.kind not in ("count", "effort"):
            raise CapacityError(
                f"A budget is a whole number of flags; got {capacity!r}. Use Capacity.count(k) "
                "with period=..., or QuantileTracker for a rate."
            )
        is_work = self.counts_work
        if is_work != (self.options["expected_effort"] is not None):
            raise CapacityError(
                f"{capacity!r} {'needs' if is_work else 'has no'} expected_effort: the usual work "
                "of a flagged item belongs to Capacity.effort(...)."
            )
        if is_work and self.has_probes:
            raise CapacityError(
                f"probe=... is a share of the flags, and {capacity!r} is a budget of work. Limit "
                "the number of flags, or leave probes out."
            )
        self._units(capacity)
        if (capacity.per is None) != self.is_timed or capacity.per != self.capacity.per:
            raise CapacityError(
                f"A budget is Capacity.{capacity.kind}(k) with period=..., or Capacity."
                f"{capacity.kind}(k, per=n) without, and with the same n throughout; got "
                f"{capacity!r} {'with' if self.is_timed else 'without'} a period."
            )

    def _length(self) -> float:
        return self._time.length if self.is_timed else float(self.capacity.per or 1)

    def _units(self, capacity: Capacity) -> int:
        """Return the budget in flags, or in units of work."""
        return work_allowed(capacity) if self.counts_work else flags_allowed(capacity)

    def initial_state(self, calibration_scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Start with periods made up from the calibration scores."""
        usual = self.options["expected_effort"] * WORK_UNITS if self.counts_work else 1.0
        ledger = first_ledger(
            calibration_scores,
            capacity=int(usual_flags(self._units(self.capacity), usual)),
            expected=self.options["expected_arrivals"] or self._length(),
            usual_work=usual,
        )
        pace = self.options["pace"]
        ledger.ints[[book.PINNED, book.LEADER]] = pace != "auto", _FIRST_RULE[pace]
        on_a_clock = self.is_timed and self.calendar is None
        origin = self.options["starts_at"] if on_a_clock else 0.0
        ledger.floats[[book.LENGTH, book.ORIGIN]] = self._length(), origin
        return ledger.floats, ledger.ints

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set the budget, and thin out today's list if it has become too short for it."""
        ledger = open_ledger(self.state_floats, self.state_ints)
        ints, floats, units = self.state_ints, self.state_floats, self._units(capacity)
        # How many items are drawn in a busy period, on average.
        mean = float(check_probe(self.options["probe"]) * units) if self.has_probes else 0.0
        ints[book.TOTAL], floats[book.MEAN_DRAWS] = units, mean
        ints[book.ALLOWED], ints[book.SINCE] = most_probes(mean, units), _OUT_OF_DATE
        keep(int(ints[book.DRAWN]), ledger)
        set_rate(ledger)
        thin_out(ledger)

    def is_sound(self) -> bool:
        """Whether the lists have their sizes, and no entry lies beyond their ends."""
        return is_sound(self.state_floats, self.state_ints)

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all listed scores."""
        ledger = open_ledger(self.state_floats, self.state_ints)
        for scores in (ledger.today[0], ledger.past[:, 0], ledger.caught):
            scores[...] = old.translate(scores, to=new)
        self.state_ints[book.SINCE] = _OUT_OF_DATE


def _probe_options(probe: Any, key: Any) -> dict[str, Any]:
    """Return the options of the draw; none without probes, so that states stay as they were."""
    share = check_probe(probe)
    if key is not None and (not isinstance(key, str) or not key):
        raise TypeError(f"probe_key must be a text that is not empty; got {type(key).__name__}.")
    if share == 0:
        return {}
    return {"probe": float(share), "probe_key": key or secrets.token_hex(16)}
