"""From a calibration sample to a rule that holds all capacities together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.ranking import cut_after
from .._core.validation import warn_user
from ..assignment._fixed_point import to_fixed_point
from ..assignment._solve import solve
from ..exceptions import InsufficientCalibrationWarning
from ..thresholds._guarantees import confident_k, confident_sample_size, plug_in_k
from ._capacities import Ratios
from ._rule import NEVER, JointRule, to_units

__all__ = ["JointSample", "confident_rule", "plug_in_rule"]

Ints = NDArray[np.int64]

_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True)
class JointSample:
    """Calibration items: gains of each class over leaving alone, segments and tie keys.

    `precision` is the type of the posteriors that the gains come from.
    """

    gains: NDArray[np.float64]
    left_alone: NDArray[np.float64]
    segments: NDArray[np.intp]
    keys: NDArray[np.float64] | None
    keyed_by_ids: bool
    precision: np.dtype[Any] = _DOUBLE

    def __len__(self) -> int:
        return len(self.gains)

    def take(self, rows: NDArray[np.intp]) -> JointSample:
        """Return some of the items."""
        keys = None if self.keys is None else self.keys[rows]
        return replace(
            self,
            gains=self.gains[rows],
            left_alone=self.left_alone[rows],
            segments=self.segments[rows],
            keys=keys,
        )

    def objective(self, columns: NDArray[np.intp]) -> float:
        """Return the mean value of the chosen columns."""
        flagged = np.flatnonzero(columns)
        gained = self.gains[flagged, columns[flagged] - 1].sum()
        return float((self.left_alone.sum() + gained) / max(len(self), 1))


def plug_in_rule(sample: JointSample, ratios: Ratios) -> JointRule:
    """Keep all capacities on the sample itself, at the lowest prices of its best assignment."""
    scale = to_fixed_point(sample.gains)
    units = to_units(sample.gains, scale, sample.keys)
    in_segment = np.bincount(sample.segments, minlength=len(ratios.segments))
    solution = solve(
        units,
        class_limits=_whole(ratios.classes, len(sample)),
        segment_of=sample.segments,
        segment_limits=_whole(ratios.segments, in_segment),
        total=int(_whole([ratios.total], len(sample))[0]),
        tie_keys=lambda rows: rows.astype(
            np.float64
        ),  # prices do not depend on who is chosen among equals
    )
    rule = JointRule(
        scale,
        solution.class_prices,
        solution.segment_prices,
        solution.total_price,
        class_cuts=_open_or_never(ratios.classes),
        segment_cuts=_open_or_never(ratios.segments),
        total_cut=int(_open_or_never([ratios.total])[0]),
    )
    return _price_empty_segments(rule, units, in_segment, ratios)


def _whole(ratios: list[Fraction | None], sizes: Any) -> Ints:
    sizes = np.broadcast_to(sizes, len(ratios)).tolist()
    limits = [
        size if ratio is None else math.floor(ratio * size)
        for ratio, size in zip(ratios, sizes, strict=True)
    ]
    return np.array(limits, dtype=np.int64)


def _open_or_never(ratios: list[Fraction | None]) -> Ints:
    """Return cuts: 0, or beyond reach where the capacity is none at all."""
    return np.array([NEVER if ratio == 0 else 0 for ratio in ratios], dtype=np.int64)


def _price_empty_segments(
    rule: JointRule, units: Ints, in_segment: NDArray[np.intp], ratios: Ratios
) -> JointRule:
    """Price a segment without calibration items as if all of them were its own."""
    prices = rule.segment_prices.copy()
    for s in np.flatnonzero(in_segment == 0):
        ratio = ratios.segments[s]
        if ratio is not None and ratio > 0:
            surplus = rule.margins(units, np.full(len(units), s)).surplus
            prices[s] = _cut(surplus, plug_in_k(len(units), ratio))
    return replace(rule, segment_prices=prices)


def _cut(values: Ints, k: int) -> int:
    """Return the (k + 1)-th largest value, and at least 0: units are exact as floats."""
    cut = cut_after(values.astype(np.float64), k).value
    return NEVER if cut == np.inf else max(0, int(cut)) if cut > 0 else 0


def confident_rule(
    sample: JointSample,
    ratios: Ratios,
    *,
    error: float,
    rng: np.random.Generator,
    names: dict[str, list[str]],
) -> JointRule:
    """Hold all capacities at once, except with probability `error`.

    Prices come from one half of the sample. On the other half, which the prices have not seen, the
    leads of the items that would get class j are scores like any others, so that a cut at an order
    statistic keeps the flag rate of the class; surpluses do the same for segments and the total.
    By Bonferroni the limits share the error. Items below a cut are left alone.
    """
    shuffled = rng.permutation(len(sample))
    half = len(sample) // 2
    unseen = sample.take(shuffled[half:])
    share = error / max(ratios.n_limits, 1)
    # A class that cannot be promised anything must not compete, neither here nor later.
    rule = plug_in_rule(
        sample.take(shuffled[:half]), _without_hopeless(ratios, len(unseen), error=share)
    )
    units = to_units(unseen.gains, rule.scale, unseen.keys)
    found = rule.margins(units, unseen.segments)
    cut_at = _Cuts(share)
    class_cuts = [
        cut_at(np.where(found.best == j, found.lead, -1), ratio, names["classes"][j])
        for j, ratio in enumerate(ratios.classes)
    ]
    segment_cuts = [
        cut_at(found.surplus[unseen.segments == s], ratio, names["segments"][s])
        for s, ratio in enumerate(ratios.segments)
    ]
    total_cut = cut_at(found.surplus, ratios.total, "the total")
    cut_at.warn(1 - error)
    return replace(
        rule,
        class_cuts=np.array(class_cuts, dtype=np.int64),
        segment_cuts=np.array(segment_cuts, dtype=np.int64),
        total_cut=total_cut,
    )


def _without_hopeless(ratios: Ratios, n: int, *, error: float) -> Ratios:
    """Close the classes for which `n` items are too few."""
    classes = [
        Fraction(0) if ratio is not None and confident_k(n, ratio, error=error) < 0 else ratio
        for ratio in ratios.classes
    ]
    return replace(ratios, classes=classes)


class _Cuts:
    """Cuts at one error each, and a list of those for which there were too few items."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.too_few: list[str] = []

    def __call__(self, values: Ints, ratio: Fraction | None, name: str) -> int:
        if ratio is None or ratio >= 1:
            return 0
        k = confident_k(values.size, ratio, error=self.error)
        if k < 0 and ratio > 0:
            needed = confident_sample_size(ratio, error=self.error)
            self.too_few.append(f"{name} (needs {needed} items, got {values.size})")
        return _cut(values, k)

    def warn(self, confidence: float) -> None:
        """Say which capacities get no flags, and why."""
        if self.too_few:
            warn_user(
                f"guarantee='confident' with confidence {confidence:g}, shared by all capacities, "
                "takes half of the calibration items for prices, and has too few in the other half "
                f"for {', '.join(self.too_few)}. Nothing is flagged there.",
                InsufficientCalibrationWarning,
            )
