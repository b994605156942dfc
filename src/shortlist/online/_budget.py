"""A hard number of flags, or amount of work, per period, spent where the scores are highest."""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import poisson

from .._core.arrays import Floats
from .._core.probing import check_probe
from ..capacity import Capacity
from ..exceptions import CapacityError
from . import _pacing as book
from ._pacing import Ledger, open_ledger, stride_for, usual_flags
from .controller import Controller
from .decisions import WORK_UNITS, TailScale, check_calibration_scores, units_allowed
from .periods import check_period

_OUT_OF_DATE = 1 << 40  # so many arrivals since the threshold was computed
# A list has room for four entries per flag, or for at least two if four would be too many. If it
# cannot hold two per flag, only every second, fourth, ... arrival is listed.
_PER_FLAG = 4
_SHORTEST_LIST, _MODERATE_LIST, _LONGEST_LIST = 64, 2_048, 4_096
_GOLDEN = 0.6180339887498949
_SUFFICES = 0.999  # how often the limit of probes suffices


class BudgetController(Controller):
    """Never flag more than a number of items per period, and choose them well.

    This is the default for counts. The limit holds in every period, for any scores, after restarts
    and changes of the capacity, with clocks that run backwards and with repeated ids. Within a
    period, the flags left are paced over the arrivals still to come: the threshold is the score
    that as many of those are expected to exceed as there are flags left. What is to come is
    estimated from the same hours of the last six periods, of which the richer half decides.

    A budget can also be one of work: ``Capacity.effort(480)`` minutes in a period. Pass the score
    as value * probability / effort (:func:`~shortlist.worth.expected_worth`), and the effort of
    each item with it. An item that no longer fits is left out, and smaller ones fill what
    it leaves. In exact arithmetic, the work of the flags never exceeds the budget in any period.

    Parameters
    ----------
    capacity : Capacity
        ``Capacity.count(k)`` with `period`, or ``Capacity.count(k, per=n)`` for every n items; the
        same with ``Capacity.effort(...)``. Or ``Capacity.multiple(b)`` with `period` and
        `prevalence`: b times as many flags as rare items are to be expected in a period, rounded
        down, and computed again by :meth:`~Controller.set_prevalence`.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model. They stand in for the periods before the first.
    period : float or str, default=None
        Length of a period in seconds, or a period of a calendar as in :class:`CalendarPeriod`.
        `None` counts items instead, by the capacity's `per`.
    expected_arrivals : int, default=None
        Items in a period, as a first estimate. The number and its pattern over the period are then
        learned. Required with `period`.
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
    prevalence : float, default=None
        Share of rare items, for a multiple.
    remember : int, default=10000
        As for :class:`Controller`.

    Notes
    -----
    If the capacity is lowered below the number of flags already used, nothing more is flagged in
    that period. An item from an earlier period counts in the latest period seen.

    The quantile is solved again after every flag. For scores with a density without gaps, the
    regret against a choice with hindsight then grows like log T rather than the square root of T
    (Arlotto and Gurvich, arXiv 1710.07719, for finitely many values).

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
    [472.0, 479.0, 477.0]

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

    compiled_step = staticmethod(book.pacing_step)
    compiled_loop = staticmethod(book.pacing_loop)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        period: float | str | None = None,
        expected_arrivals: int | None = None,
        starts_at: Any = 0.0,
        expected_effort: float | None = None,
        probe: float = 0,
        probe_key: str | None = None,
        prevalence: float | None = None,
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
            period=check_period(period),
            expected_arrivals=expected_arrivals,
            starts_at=starts_at,
            expected_effort=expected_effort,
            prevalence=prevalence,
        )
        scores = check_calibration_scores(calibration_scores)
        self.state_floats, self.state_ints = self._first_state(scores)
        self.apply_capacity(capacity)

    @property
    def remaining(self) -> float:
        """Flags, or work, left in the period of the latest item."""
        ints = self.state_ints
        left = max(int(ints[book.TOTAL] - ints[book.USED] - ints[book.DRAWN]), 0)
        return float(Fraction(left, WORK_UNITS)) if self.counts_work else left

    def check_capacity(self, capacity: Capacity) -> None:
        """Accept a count or an effort, per period or per so many items."""
        if capacity.kind == "fraction":
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
        if capacity.kind == "multiple":
            learned = self.state_floats[book.EXPECTED] if self.state_floats.size else None
            arrivals = learned or self.options["expected_arrivals"] or 0
            capacity = Capacity.count(int(self.ratio(capacity) * int(arrivals)))
        return units_allowed(capacity)

    def _first_state(self, calibration_scores: Floats) -> tuple[Floats, Any]:
        """Start with periods made up from the calibration scores."""
        usual = self.options["expected_effort"] * WORK_UNITS if self.counts_work else 1.0
        n_flags = int(usual_flags(self._units(self.capacity), usual))
        roomy = min(max(_PER_FLAG * n_flags, _SHORTEST_LIST), _MODERATE_LIST)
        size = min(max(roomy, book.LEAST_PER_FLAG * n_flags), _LONGEST_LIST)
        ints, floats = np.zeros(book.N_INTS, np.int64), np.zeros(_n_floats(size))
        ints[[book.SIZE, book.STRIDE]] = size, stride_for(n_flags, size)
        on_a_clock = self.is_timed and self.calendar is None
        origin = self.options["starts_at"] if on_a_clock else 0.0
        expected = self.options["expected_arrivals"] or self._length()
        parts = [book.LENGTH, book.ORIGIN, book.EXPECTED, book.USUAL_WORK]
        floats[parts] = self._length(), origin, expected, usual
        _fill_past(open_ledger(floats, ints), calibration_scores)
        return floats, ints

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set the budget, and thin out today's list if it has become too short for it."""
        ledger = open_ledger(self.state_floats, self.state_ints)
        ints, floats, units = self.state_ints, self.state_floats, self._units(capacity)
        # How many items are drawn in a busy period, on average, and the most that get a flag.
        mean = float(check_probe(self.options["probe"]) * units) if self.has_probes else 0.0
        most = int(poisson.ppf(_SUFFICES, mean)) if mean > 0 else 0
        ints[book.TOTAL], floats[book.MEAN_DRAWS] = units, mean
        ints[book.ALLOWED], ints[book.SINCE] = min(most, units), _OUT_OF_DATE
        book.keep(int(ints[book.DRAWN]), ledger)
        book.set_rate(ledger)
        _thin_out(ledger)

    def is_sound(self, n_floats: int, n_ints: int) -> bool:
        """Whether the arrays are a ledger whose numbers of entries fit into its lists."""
        floats, ints = self.state_floats, self.state_ints
        if ints.size != n_ints or not 0 < ints[book.SIZE] <= _LONGEST_LIST:
            return False
        size = int(ints[book.SIZE])
        if floats.size != _n_floats(size):
            return False
        listed = np.array([ints[book.LISTED], *open_ledger(floats, ints).sizes[0]])
        is_timed = 0 < floats[book.LENGTH] < np.inf and np.isfinite(floats[book.ORIGIN])
        are_within = np.all((listed >= 0) & (listed <= size)) and ints[book.STRIDE] > 0
        return bool(is_timed and are_within and min(ints[book.CAPACITY], ints[book.SEEN]) >= 0)

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all listed scores."""
        ledger = open_ledger(self.state_floats, self.state_ints)
        for scores in (ledger.today[0], ledger.past[:, 0]):
            scores[...] = old.translate(scores, to=new)
        self.state_ints[book.SINCE] = _OUT_OF_DATE


def _n_floats(size: int) -> int:
    """Return how many floats a ledger has whose lists have room for so many entries."""
    lists = 2 * (1 + book.MEMORY) * size
    return book.N_HEAD_FLOATS + lists + 3 * book.MEMORY + 2 * book.BLOCKS


def _fill_past(ledger: Ledger, calibration: Floats) -> None:
    """Fill the past with the highest scores to be expected, spread evenly over each period."""
    ints, expected = ledger.ints, ledger.floats[book.EXPECTED]
    stride = ints[book.STRIDE]
    n = int(min(ints[book.SIZE], max(expected // stride, 1)))
    ranks = np.arange(n)
    shares = np.clip(1 - (ranks + 0.5) * stride / expected, 0, 1)
    for age in range(book.MEMORY):
        ledger.past[age, 0, :n] = np.quantile(calibration, shares)
        ledger.past[age, 1, :n] = ((ranks + 1) * _GOLDEN + age * _GOLDEN**2) % 1
        ledger.sizes[:, age] = n, stride / expected, expected
    ledger.profile[0] = 1 / book.BLOCKS


def _thin_out(ledger: Ledger) -> None:
    """Leave out every second entry of today's list until it reaches well past the capacity."""
    ints, today = ledger.ints, ledger.today
    stride = stride_for(int(ints[book.CAPACITY]), int(ints[book.SIZE]))
    while ints[book.STRIDE] < stride:
        kept = today[:, : ints[book.LISTED] : 2]
        today[:, : kept.shape[1]] = kept.copy()
        ints[book.LISTED], ints[book.STRIDE] = kept.shape[1], 2 * ints[book.STRIDE]


def _probe_options(probe: Any, key: Any) -> dict[str, Any]:
    """Return the options of the draw; none without probes, so that states stay as they were."""
    share = check_probe(probe)
    if key is not None and (not isinstance(key, str) or not key):
        raise TypeError(f"probe_key must be a text that is not empty; got {type(key).__name__}.")
    if share == 0:
        return {}
    return {"probe": float(share), "probe_key": key or secrets.token_hex(16)}
