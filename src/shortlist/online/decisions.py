"""What a controller answers, and what it is given: checks, and the scale of scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .._core import probing
from .._core.arrays import Floats, Ints, Mask
from .._core.ids import check_id, check_ids
from .._core.ranking import check_scores
from .._core.validation import check_count, check_number, check_positive
from .._core.work import check_efforts
from ..capacity import Capacity, check_prevalence, exact
from ..exceptions import CapacityError

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


# --- what callers pass in ---

_MOST_KNOTS = 1_024
FARTHEST_SCORE = 1e300  # differences of two such scores are still finite
#: Work is counted in millionths.
WORK_UNITS = 10**6
_MOST_WORK = 10**12
_LARGEST = float(np.finfo(np.float64).max)


def check_score(score: Any) -> float:
    """Return one score as a finite float."""
    if type(score) is float and -_LARGEST <= score <= _LARGEST:  # the common case comes first
        return score
    return float(check_number("score", score))


def check_score_array(scores: ArrayLike) -> Floats:
    """Return scores as a contiguous array of finite floats."""
    values = np.ascontiguousarray(check_scores(scores), dtype=np.float64)
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"scores must be finite; got {values[bad]} in row {bad}. Nothing has been changed."
        )
    return values


def check_names(ids: ArrayLike | None, n: int) -> list[str | int] | None:
    """Return one id per item, each a plain text or whole number; None if there are none."""
    checked = check_ids(ids, n)
    return None if checked is None else [check_id(id) for id in checked.tolist()]


def check_calibration_scores(scores: ArrayLike) -> Floats:
    """Return calibration scores as finite floats, at least one."""
    checked = check_scores(scores, name="calibration_scores").astype(np.float64)
    if checked.size == 0:
        raise ValueError("calibration_scores must hold at least one score; got none.")
    if not np.all(np.isfinite(checked)):
        raise ValueError("calibration_scores must be finite; leave out infinite scores.")
    return np.clip(checked, -FARTHEST_SCORE, FARTHEST_SCORE)


def _check_weight(name: str, weight: Any) -> float:
    if check_positive(name, weight) > 1:
        raise ValueError(f"{name} must be at most 1; got {weight!r}.")
    return float(weight)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("step", "expected_arrivals", "expected_effort"), check_positive),
    "alpha": _check_weight,
    "burst": partial(check_count, at_most=1 << 20),
    "prevalence": lambda _, prevalence: float(check_prevalence(prevalence)),
    "remember": partial(check_count, at_most=1 << 40),
    "starts_at": lambda name, moment: float(check_number(name, to_seconds(moment))),
    "window": partial(check_count, at_most=1 << 24),
}


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Check the options of any controller; None stays None, and unknown ones are left as given."""
    return {
        name: _CHECKS[name](name, option) if name in _CHECKS and option is not None else option
        for name, option in options.items()
    }


def check_shared(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the options that all controllers of a rate share; a misspelt one is an error."""
    unknown = [name for name in shared if name not in ("prevalence", "remember")]
    if unknown:
        raise TypeError(
            f"A controller of a rate has no option {', '.join(map(repr, unknown))}. A number per "
            "period is kept by BudgetController."
        )
    return shared


def check_work(capacity: Capacity, efforts: Any, n_items: int) -> Ints:
    """Return the work of items in millionths, rounded up; 1 in a budget of flags."""
    if capacity.kind != "effort":
        if efforts is not None:
            raise CapacityError(
                f"effort was given, but {capacity!r} limits the number of flags. Use a "
                "BudgetController with Capacity.effort(...)."
            )
        return np.ones(n_items, np.int64)
    if efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work: every item needs its effort. Pass effort=... to "
            "decide, and efforts=... to decide_many."
        )
    array = check_efforts(efforts, n_items)
    if array is None or (array.size and array.max() > _MOST_WORK):
        raise ValueError(f"efforts must be at most {_MOST_WORK:g} each; got {efforts!r}.")
    scaled = array * WORK_UNITS
    whole = np.rint(scaled)  # decimals of up to six digits are exact
    is_decimal = whole / WORK_UNITS == array
    return np.where(is_decimal, whole, np.ceil(scaled * (1 + 1e-15))).astype(np.int64)


def units_allowed(capacity: Capacity) -> int:
    """Return a number of flags, or a budget of work in millionths, rounded down."""
    if capacity.value > _MOST_WORK:
        raise CapacityError(f"A budget can be at most {_MOST_WORK:g}; got {capacity!r}.")
    return int(exact(capacity.value) * (WORK_UNITS if capacity.kind == "effort" else 1))


# --- moments, as seconds since 1970 --------------------------------------------------------------

_FARTHEST = 1e15  # thirty million years; anything beyond is a mistake


def to_seconds(at: Any) -> float:
    """Return a moment in seconds; a datetime without a time zone is read as UTC."""
    if type(at) is float and -_FARTHEST <= at <= _FARTHEST:  # the common case comes first
        return at
    if isinstance(at, (bool, np.bool_)) or not isinstance(
        at, (int, float, np.number, datetime, np.datetime64)
    ):
        raise TypeError(
            f"at must be seconds or a datetime; got {at!r} of type {type(at).__name__}."
        )
    if isinstance(at, np.datetime64):
        at = at.astype("datetime64[us]").item()
    if isinstance(at, datetime) and at == at:  # a missing time differs from itself
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    try:
        moment = float(at)
    except (TypeError, ValueError, OverflowError):
        moment = math.nan
    if not -_FARTHEST <= moment <= _FARTHEST:  # false for NaT and NaN, too
        raise ValueError(f"at must be a moment within {_FARTHEST:g} seconds; got {at!r}.")
    return moment


def parse_moment(text: str) -> float:
    """Return the seconds of a moment in ISO 8601, such as 2026-05-31T10:00:00Z."""
    try:
        return to_seconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r:.80} is not a moment. Use seconds, or a text such as 2026-05-31T10:00:00Z."
        ) from None


def check_moments(at: Any, n: int) -> NDArray[np.float64]:
    """Return one moment in seconds per item; a single moment applies to all items."""
    if np.ndim(at) == 0:
        return np.full(n, to_seconds(at[()] if isinstance(at, np.ndarray) else at))
    moments = np.asarray(at)
    if moments.shape != (n,):
        raise ValueError(f"at must hold one moment for each of {n} items; got {moments.shape}.")
    if moments.dtype.kind not in "fiu":
        return np.array([to_seconds(moment) for moment in moments], dtype=np.float64)
    moments = moments.astype(np.float64)
    if not np.all(np.abs(moments) <= _FARTHEST):
        raise ValueError(f"at must hold numbers of seconds within {_FARTHEST:g}, and no NaN.")
    return moments


# --- the scale of scores -------------------------------------------------------------------------


class TailScale(NamedTuple):
    """Translates between scores and tail levels, and between the scores of two models.

    A score that a share p of the calibration scores reaches lies at the level -log p. A step on
    this scale changes the flag rate by the same factor everywhere, and the scores of a new model
    can replace those of the old one without a jump. The scale is bounded, even beyond the
    calibration scores; the guarantee of :class:`~shortlist.online.QuantileTracker` rests on that.

    `knots` are scores in rising order, and the level of each.
    """

    knots: Floats

    @classmethod
    def from_scores(cls, calibration_scores: Floats) -> Self:
        """Return the scale of a model, given finite scores of recent items.

        The ranks are thinned geometrically: knots lie evenly on the scale, and a million scores
        take no more room than a thousand.
        """
        falling = np.sort(calibration_scores)[::-1]
        n = falling.size
        ranks = np.unique(np.round(np.geomspace(1, n, min(n, _MOST_KNOTS))).astype(np.int64))
        # The last of tied scores counts, because all of them reach the value.
        knots, from_back = np.unique(falling[ranks - 1][::-1], return_index=True)
        reached = ranks[::-1][from_back]
        return cls(np.vstack([knots, -np.log(reached / (n + 1))]))

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest level; no score lies beyond them."""
        return float(self.knots[1, 0]) - 1.0, float(self.knots[1, -1]) + 1.0

    @property
    def spread(self) -> float:
        """The distance between the lowest and the highest calibration score; 1 if they are one."""
        return float(self.knots[0, -1] - self.knots[0, 0]) or 1.0

    def translate(self, scores: Floats, *, to: TailScale) -> Floats:
        """Turn scores of this model into scores of another one that lie as far out in the tail."""
        scores = np.clip(scores, -FARTHEST_SCORE, FARTHEST_SCORE)
        levels = np.interp(scores, self.knots[0], self.knots[1])
        translated = np.interp(levels, to.knots[1], to.knots[0])
        # Beyond the calibration scores, distances are kept in units of the spread.
        ratio = min(to.spread / self.spread, FARTHEST_SCORE)
        with np.errstate(over="ignore"):
            above = np.clip(scores - self.knots[0, -1], 0, None) * ratio
            below = np.clip(self.knots[0, 0] - scores, 0, None) * ratio
        return np.clip(translated + above - below, -FARTHEST_SCORE, FARTHEST_SCORE)


@njit(cache=True)
def score_at(level: float, knots: Any) -> float:
    """Return the score at a level of the scale with these knots; infinite beyond its ends."""
    last = knots.shape[1] - 1
    spread = knots[0, last] - knots[0, 0]
    if spread <= 0.0:
        spread = 1.0
    if level >= knots[1, last]:
        beyond = level - knots[1, last]
        return np.inf if beyond >= 1.0 else knots[0, last] + spread * beyond / (1.0 - beyond)
    if level < knots[1, 0]:
        beyond = knots[1, 0] - level
        return -np.inf if beyond > 1.0 - 1e-12 else knots[0, 0] - spread * beyond / (1.0 - beyond)
    high = np.searchsorted(knots[1], level, side="right")
    share = (level - knots[1, high - 1]) / (knots[1, high] - knots[1, high - 1])
    return knots[0, high - 1] + share * (knots[0, high] - knots[0, high - 1])
