"""Results by segment, and by day, week, month, quarter or year."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.intervals import proportion_interval
from ..tables import TableModel
from ..tables.drift import holm
from ..tables.monitor import chances_of_flags
from ..tables.rules import as_filled
from ._cases import EMPTY, Cases
from ._words import short

pd = load_extra("pandas", needed_for="Making a report")

_MOST_SEGMENTS = 20
_LONGEST_NAME = 80
_SIGNIFICANT = 0.05
_OTHERS = "(all others)"
# Of these, the first with so few periods.
_MOST_PERIODS = 26
_PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}


def by_segment(model: TableModel, cases: Cases, column: str) -> dict[str, Any]:
    """Measure the rule in each segment: the twenty largest, and all others together."""
    names = cases.segments
    assert names is not None
    found, counts = np.unique(names, return_counts=True)
    ranked = found[np.argsort(-counts, kind="stable")].tolist()
    listed = ranked
    if len(ranked) > _MOST_SEGMENTS + 1:
        listed = [*ranked[:_MOST_SEGMENTS], _OTHERS]
        names = np.where(np.isin(names, listed), names, _OTHERS)
    groups = _measured(model, cases, names, listed)
    return {"kind": "segment", "column": column, "unit": None, "n_groups": len(ranked), **groups}


def by_time(model: TableModel, cases: Cases, column: str) -> dict[str, Any]:
    """Measure the rule in each period, the oldest first, and compare its flags with the room."""
    moments = pd.Series(pd.to_datetime(cases.days, unit="D"))
    unit, periods = _in_periods(moments)
    listed = sorted(set(periods), key=lambda name: (name == EMPTY, name))
    groups = _measured(model, cases, periods, listed)
    _compare_flags(model, groups["groups"])
    return {"kind": "time", "column": column, "unit": unit, "n_groups": len(listed), **groups}


def _measured(
    model: TableModel, cases: Cases, names: NDArray[Any], listed: list[str]
) -> dict[str, list[dict[str, Any]]]:
    groups = [_measure(model, cases, name, names == name) for name in listed]
    _compare_found(groups)
    return {"groups": groups}


def _measure(model: TableModel, cases: Cases, name: str, own: Mask) -> dict[str, Any]:
    n_items, n_flagged = int(own.sum()), int(cases.flagged[own].sum())
    group = {
        "name": short(name, _LONGEST_NAME),
        "n_items": n_items,
        "n_flagged": n_flagged,
        "flag_rate": n_flagged / n_items,
        "room": cases.room(model, model.classifier.reference_prevalence_, own),
        "notes": [],
    }
    return group if cases.rows.is_rare is None else group | _found(model, cases, own, n_flagged)


def _found(model: TableModel, cases: Cases, own: Mask, n_flagged: int) -> dict[str, Any]:
    n_rare, n_found = (int((cases.rare & mask & own).sum()) for mask in (own, cases.flagged))
    interval = None
    if n_rare:
        counted = cases.counted({"own": cases.flagged}, own)
        filled = as_filled(n_flagged, n_rare, model.flag_capacity)
        interval = counted.curve(first="own").interval_at(filled)
    return {
        "n_rare": n_rare,
        "found": n_found,
        "detection": n_found / n_rare if n_rare else None,
        "detection_interval": interval,
        "precision": n_found / n_flagged if n_flagged else None,
        "precision_interval": proportion_interval(n_found, n_flagged) if n_flagged else None,
    }


# --- differences that chance does not explain ---


def _compare_found(groups: list[dict[str, Any]]) -> None:
    """Note where more or fewer of the rare cases are found than elsewhere, beyond chance.

    If a rare case is as likely to be found in each group, the number found in one group is
    hypergeometric, given all totals. Corrected for the number of groups by Holm's method.
    """
    known = [group for group in groups if group.get("n_rare")]
    n_rare, n_found = (sum(group[name] for group in known) for name in ("n_rare", "found"))
    tails = []
    for group in known:
        law = hypergeom(n_rare, n_found, group["n_rare"])
        fewer, more = law.cdf(group["found"]), law.sf(group["found"] - 1)
        note = "fewer found than elsewhere" if fewer < more else "more found than elsewhere"
        tails.append((float(min(1, 2 * min(fewer, more))), note))
    for group, notes in zip(known, _significant(tails), strict=True):
        group["notes"] += notes


def _compare_flags(model: TableModel, groups: list[dict[str, Any]]) -> None:
    """Note periods with more flags than the room, beyond chance."""
    over = [group for group in groups if group["n_flagged"] > group["room"]]
    note = "more flags than chance explains"
    tails = [(_chance_of_flags(model, group), note) for group in over]
    for group, notes in zip(over, _significant(tails, n_tests=len(groups)), strict=True):
        group["notes"] += notes


def _chance_of_flags(model: TableModel, group: dict[str, Any]) -> float:
    calibrations = model.classifier.calibrations_
    return chances_of_flags(calibrations, group["n_items"], group["n_flagged"])[0]


def _significant(tails: list[tuple[float, str]], n_tests: int | None = None) -> list[list[str]]:
    """Keep the notes whose p-values are significant after Holm's correction."""
    adjusted = holm([p_value for p_value, _ in tails], n_tests)
    return [
        [note] if p_value < _SIGNIFICANT else []
        for (_, note), p_value in zip(tails, adjusted, strict=True)
    ]


# --- periods ---


def _in_periods(moments: Any) -> tuple[str, NDArray[Any]]:
    """Return the shortest unit with few enough periods, and the period of each moment."""
    for unit, code in _PERIODS.items():
        periods = moments.dt.to_period(code)
        if periods.max().ordinal - periods.min().ordinal < _MOST_PERIODS or unit == "year":
            break
    names = periods.map(lambda period: _period_name(period, unit))
    return unit, names.where(moments.notna(), EMPTY).to_numpy(dtype=object)


def _period_name(period: Any, unit: str) -> str:
    if period is pd.NaT:
        return EMPTY
    if unit in ("day", "week"):
        return str(period.start_time.date())
    return str(period).replace("Q", " Q")
