"""A promise about a capacity: which there are, where each puts a threshold, and its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .._core.formatting import number, stated_percent
from .._core.intervals import Interval, clopper_pearson_lower
from .._core.validation import check_count, check_option, warn_user
from ..capacity import Capacity, capacity_in_words, check_capacity
from ..exceptions import CapacityError, InsufficientCalibrationWarning
from . import guarantees
from ._bands import simultaneous_interval, simultaneous_place
from .guarantees import Place, rate_above
from .samples import CalibrationSample
from .threshold import CalibratedThreshold

TIES = ("exclude", "hash")
_MOST_OVER_TIME = 1_000_000  # items: of more, some are drawn, and others in every calibration


@dataclass(frozen=True)
class Promise:
    """A capacity, its exact value as a fraction, and how surely it is to be kept."""

    capacity: Capacity
    ratio: Fraction
    guarantee: Guarantee
    error: float
    n_batches: int = 1
    in_folds: bool = False


@dataclass(frozen=True)
class Guarantee:
    """A kind of promise: where it puts a threshold among n scores, its words, and what it covers.

    What is not said of a guarantee it does not do.
    """

    name: str
    place: Callable[[int, Promise], Place]
    words: str  # with the names that `guarantee_in_words` fills in
    fold_place: Callable[[int, Promise], Place] | None = None  # of each fold; None: not in folds
    surely: bool = False  # holds with a confidence, not on average
    of_sample: bool = False  # is about the calibration items only
    of_batches: bool = False  # is about numbers of flags in batches
    at_once: bool = False  # holds for every capacity at once
    over_time: bool = False  # holds for all calibrations on a growing sample at once


def _expected(n: int, promise: Promise) -> Place:
    return guarantees.expected_place(n, promise.ratio)


def _next_batch(n: int, promise: Promise) -> Place:
    max_flags, batch = int(promise.capacity.value), int(promise.capacity.per or 0)
    error, n_batches = promise.error, promise.n_batches
    return guarantees.next_batch_place(n, max_flags, batch, error=error, n_batches=n_batches)


_AMONG = "the flags among {which} {at_most}, "
_BY_NAME = {
    each.name: each
    for each in (
        Guarantee(
            "plug-in",
            lambda n, promise: guarantees.plug_in_place(n, promise.ratio),
            "the flags among the calibration {cases} {at_most}; about {which} nothing is promised.",
            fold_place=_expected,
            of_sample=True,
        ),
        Guarantee("expected", _expected, _AMONG + "on average over calibrations.", _expected),
        Guarantee(
            "confident",
            lambda n, promise: guarantees.confident_place(n, promise.ratio, error=promise.error),
            _AMONG + "{surely}.",
            lambda n, promise: guarantees.shortfall_place(n, promise.ratio, error=promise.error),
            surely=True,
        ),
        Guarantee("next-batch", _next_batch, "{in_batch}, {surely}.", surely=True, of_batches=True),
        Guarantee(
            "simultaneous",
            lambda n, promise: simultaneous_place(n, promise.ratio, error=promise.error),
            _AMONG + "{surely}, whichever capacity is chosen.",
            surely=True,
            at_once=True,
        ),
        Guarantee(
            "anytime",
            lambda n, promise: guarantees.anytime_place(n, promise.ratio, error=promise.error),
            _AMONG + "{surely} after all calibrations together, each with all {cases} so far.",
            surely=True,
            over_time=True,
        ),
    )
}
GUARANTEES = tuple(_BY_NAME)


def guarantee_of(name: str) -> Guarantee:
    """Return a guarantee by its name, or raise an error that names all of them."""
    return _BY_NAME[check_option("guarantee", name, GUARANTEES)]


def check_guarantee(name: str, capacity: Capacity, n_batches: Any = 1) -> None:
    """Raise an error for an unknown guarantee, or one that does not fit the capacity."""
    guarantee = guarantee_of(name)
    check_capacity(capacity)
    of_batch = capacity.kind in ("count", "effort") and capacity.per is not None
    if guarantee.of_batches and not of_batch:
        raise CapacityError(
            f"guarantee={name!r} promises a number of flags in a batch of known size; got "
            f"{capacity!r}. Use Capacity.count(K, per=N), or Capacity.effort(B, per=N)."
        )
    if (guarantee.of_sample or guarantee.over_time) and capacity.kind == "effort":
        raise CapacityError(
            f"guarantee={name!r} counts flags, and {capacity!r} is a budget of work. Use "
            "guarantee='expected', the default, which also promises something."
        )
    if check_count("n_batches", n_batches) != 1 and not guarantee.of_batches:
        raise ValueError(
            f"n_batches={n_batches} belongs to guarantee='next-batch'; got guarantee="
            f"{name!r}, which makes no promise about single batches."
        )


def check_folds(guarantee: str, sizes: Sequence[int]) -> None:
    """Raise an error for a guarantee that thresholds of so many items each cannot keep together."""
    kind = guarantee_of(guarantee)
    if len(sizes) > 1 and kind.fold_place is None:
        raise ValueError(
            f"guarantee={guarantee!r} needs one model with one threshold, and each of {len(sizes)} "
            "folds has its own. Hold items out with cv=0.5, which cv='auto' does, or recalibrate."
        )
    if kind.over_time and max(sizes) > _MOST_OVER_TIME:
        raise ValueError(
            f"guarantee={guarantee!r} holds for up to {_MOST_OVER_TIME:,} calibration items; got "
            f"{max(sizes):,}. Calibrate on fewer, or use guarantee='confident'."
        )


@lru_cache(maxsize=256)
def place_of(n: int, promise: Promise) -> Place:
    r"""Return the place of a threshold among n scores.

    With folds, the rows are divided into F of them. Model j learns from all rows but those of fold
    j, which give its threshold. A hash of a new item, which has nothing to do with its score, picks
    the model that decides. The rate of the rule is therefore the mean :math:`\bar R` of the rates
    :math:`R_j` of the F thresholds. These depend on each other in unknown ways: every model has
    seen the rows that calibrate the others. Both promises hold however they depend.

    *Expected.* By linearity: each :math:`E[R_j] = c`.

    *Confident.* Let :math:`T_j` be the mean of :math:`R_j` over the worst share `error` of all
    calibrations (its expected shortfall). If each :math:`T_j` is at most c, then
    :math:`P(\bar R > c) \le error`. Proof: for an event A of probability `error`,
    :math:`E[R_j \mid A] \le T_j`, so :math:`E[\bar R \mid A] \le c`. If :math:`\bar R > c` had a
    probability above `error`, an A inside of that event would contradict this.
    """
    guarantee = promise.guarantee
    find = guarantee.fold_place if promise.in_folds else guarantee.place
    assert find is not None, f"{guarantee.name} has no rule for folds"
    return find(n, promise)


@lru_cache(maxsize=256)
def rate_interval(
    place: Place, n_flagged: int, n: int, promise: Promise, *, hashed: bool
) -> Interval:
    """Bound the true flag rate R of a threshold, for every distribution of the scores S.

    Above: R is at most what it is for the upper-tail probabilities of scores with ties broken at
    random, whose law is known.

    Below, without lots: the bound L(j) of Clopper and Pearson at the number j of scores above t,
    although t itself depends on the scores. Proof: j is at most k, so the bound can fail only where
    P(S > t) < L(k); let a be the lowest such value. If t = a, the bound fails at a. If t > a, all
    k + 1 scores from t on lie above a, and the bound fails at a as well. At the fixed value a it
    fails with at most the allowed probability. (If there is no lowest value, take limits.) Lots
    only add to the rate.
    """
    if place.k >= n and hashed:
        return Interval(1.0, 1.0)  # scores of minus infinity are flagged, too
    if n == 0:
        return Interval(0.0, place.share)
    if promise.guarantee.at_once:
        return simultaneous_interval(place, n_flagged, n, error=promise.error)
    tail = promise.error / 2
    low = float(clopper_pearson_lower(n_flagged, n, error=tail))
    return Interval(low, rate_above(place, n, error=tail))


def warn_too_few(
    promise: Promise,
    thresholds: Sequence[CalibratedThreshold],
    samples: Sequence[CalibrationSample] = (),
) -> None:
    """Warn if not even the highest score, of all folds together, is flagged for sure."""
    n_places = sum(each.k + 1 + each.share for each in thresholds)
    is_limited = any(each.limited_by == "worth" for each in thresholds)
    if n_places >= 1 or is_limited or not promise.capacity.value:
        return
    n, unit = sum(each.n_calibration for each in thresholds), "scores"
    if samples and samples[0].groups is not None:
        n, unit = sum(len(np.unique(np.asarray(each.groups))) for each in samples), "groups"
    by_lot = float(np.mean([each.share for each in thresholds]))
    outcome = (
        f"A share of {by_lot:.2g} of the items above the highest score is flagged, drawn by lot."
        if by_lot
        else "The threshold flags nothing. (With ids and ties='hash', it could flag some by lot.)"
    )
    promised = guarantee_in_short(promise.guarantee.name, 1 - promise.error, promise.n_batches)
    warn_user(
        f"{promise.capacity!r}, with the guarantee {promised}, needs more calibration {unit} than "
        f"{n}. {outcome}",
        InsufficientCalibrationWarning,
    )


# --- in words ---------------------------------------------------------------------------------


def guarantee_in_short(guarantee: str, confidence: float, n_batches: int = 1) -> str:
    """Name a guarantee, with its confidence where it has one."""
    with_confidence = f", with {stated_percent(confidence)} confidence"
    surely = with_confidence if guarantee_of(guarantee).surely else ""
    return f"{guarantee}{surely}" + (f", for {n_batches} batches" if n_batches > 1 else "")


def flags_in_words(rule: Any, *, cases: str = "items", unit: str = "units") -> str:
    """Say in one sentence what a rule promises for flags of one case at a time."""
    terms, of_work = rule.terms, rule.capacity is not None and rule.capacity.kind == "effort"
    most = f"at most {_limit(rule, cases, unit)}"
    at_most = f"{'take' if of_work else 'are'} {most}"
    batches = "the next batch" if terms.n_batches == 1 else f"each of {terms.n_batches} batches"
    has_groups = rule.samples[0].groups is not None
    return terms.kind.words.format(
        cases=cases,
        which=f"{cases} of new groups" if has_groups else f"future {cases}",
        at_most=at_most,
        surely=f"with {stated_percent(terms.confidence)} confidence",
        in_batch=f"the flags of {batches} {at_most}" if of_work else f"{batches} has {most}",
    )


def promise_in_words(rule: Any) -> str:
    """Say what a rule promises: for the flags of single items, and for lists."""
    ranked = " ranked by one score for all items," if len(rule.samples) > 1 else ""
    lists = f"Lists (select):{ranked} never longer than the capacity."
    return f"Row by row: {flags_in_words(rule)} {_basis(rule.samples)} {lists}"


def _limit(rule: Any, cases: str, unit: str) -> str:
    capacity, terms = rule.capacity, rule.terms
    by_segment = "the capacity of each segment"
    if capacity is None:
        return by_segment
    if capacity.kind == "effort":
        limit = capacity_in_words(capacity, unit=unit, cases=cases)
    elif terms.kind.of_batches:
        limit = f"{number(capacity.value, 12)} flags"
    else:
        limit = f"{stated_percent(capacity.as_fraction(terms.reference.value))} of all {cases}"
    return limit if rule.segments is None else f"{limit}, and {by_segment}"


def _basis(samples: Sequence[Any]) -> str:
    if samples[0].out_of_bag:
        return "This is approximate: each calibration item was scored by some of the trees only."
    if len(samples) > 1:
        return (
            f"One of {len(samples)} models decides about each item, picked by a hash; each was "
            "calibrated on items that it has not seen."
        )
    return "It was calibrated on items that the model has not seen."
