"""Results by segment, and by day, week, month, quarter or year."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.intervals import proportion_interval
from ..tables import TableModel
from ..tables.rules import as_filled
from ._cases import EMPTY, Cases
from ._words import short

pd = load_extra("pandas", needed_for="Making a report")

_MOST_SEGMENTS = 20
_LONGEST_NAME = 80
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
    return {
        "kind": "segment",
        "column": column,
        "unit": None,
        "n_groups": len(ranked),
        "groups": [_measure(model, cases, name, names == name) for name in listed],
    }


def by_time(model: TableModel, cases: Cases, column: str) -> dict[str, Any]:
    """Measure the rule in each period, the oldest first."""
    moments = pd.Series(pd.to_datetime(cases.days, unit="D"))
    unit, periods = _in_periods(moments)
    listed = sorted(set(periods), key=lambda name: (name == EMPTY, name))
    return {
        "kind": "time",
        "column": column,
        "unit": unit,
        "n_groups": len(listed),
        "groups": [_measure(model, cases, name, periods == name) for name in listed],
    }


def _measure(model: TableModel, cases: Cases, name: str, own: Mask) -> dict[str, Any]:
    n_items, n_flagged = int(own.sum()), int(cases.flagged[own].sum())
    group = {
        "name": short(name, _LONGEST_NAME),
        "n_items": n_items,
        "n_flagged": n_flagged,
        "flag_rate": n_flagged / n_items,
        "room": cases.room(model, model.classifier.reference_prevalence_, own),
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
