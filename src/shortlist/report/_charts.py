"""The layout of the charts: scales, paths, bars and ticks, which the template draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._drift import on_scale
from ._words import number

_STEPS = (1, 2, 5, 10)
_LABEL_WIDTH = 76  # of a date
_ODDS = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001


@dataclass(frozen=True)
class Frame:
    """The size of a chart, and the ranges of its axes: from 0 to `x_most` and to `y_most`."""

    width: float
    height: float
    x_most: float
    y_most: float
    left: float = 46.0
    top: float = 24.0

    @property
    def right(self) -> float:
        """Right edge of the plot."""
        return self.width - 14

    @property
    def bottom(self) -> float:
        """Lower edge of the plot."""
        return self.height - 40

    def x(self, value: float) -> float:
        """Return the position of a value on the horizontal axis."""
        return round(self.left + (self.right - self.left) * value / self.x_most, 2)

    def y(self, value: float) -> float:
        """Return the position of a value on the vertical axis."""
        return round(self.bottom - (self.bottom - self.top) * value / self.y_most, 2)

    def path(self, xs: Any, ys: Any) -> str:
        """Return a path through points."""
        points = (f"{self.x(x)} {self.y(y)}" for x, y in zip(xs, ys, strict=True))
        return "M" + "L".join(points)

    def area(self, xs: Any, low: Any, high: Any) -> str:
        """Return the outline of the area between two lines."""
        return self.path([*xs, *reversed(xs)], [*high, *reversed(low)]) + "Z"


def detection_chart(summary: dict[str, Any], *, width: float, height: float) -> dict[str, Any]:
    """Lay out detection against flags, with band, random choice and the best possible detection."""
    cuts, data, promise = summary["cuts"], summary["data"], summary["promise"]
    flags, most = cuts["flags"], cuts["flags"][-1]
    frame = Frame(width, height, max(most, 1), 1.0)
    full = min(data["n_rare"], most)
    now = flags.index(promise["n_flagged"])
    return {
        "frame": frame,
        "curve": frame.path(flags, cuts["detection"]),
        "band": frame.area(flags, cuts["detection_low"], cuts["detection_high"]),
        "chance": frame.path([0, most], [0, most / data["n_items"]]),
        "best": frame.path([0, full, most], [0, full / data["n_rare"], full / data["n_rare"]]),
        "capacity_x": frame.x(min(promise["room"], most)),
        "cut_x": frame.x(flags[now]),
        "cut_y": frame.y(cuts["detection"][now]),
        "x_ticks": [(frame.x(tick), number(tick)) for tick in _counts(most, width)],
        "y_ticks": [(frame.y(tick), _share(tick)) for tick in (0.25, 0.5, 0.75, 1)],
        "others": _others(summary["comparison"]["rules"], frame, data["n_rare"]),
    }


def _others(rules: list[dict[str, Any]], frame: Frame, n_rare: int) -> list[dict[str, Any]]:
    """Return the positions of rules with another ranking or threshold, if they fit the chart."""
    return [
        {
            "mark": rule["kind"],
            "name": rule["rule"],
            "x": frame.x(rule["flagged"]),
            "y": frame.y(rule["found"] / n_rare),
        }
        for rule in rules
        if rule["kind"] == "default" and rule["flagged"] <= frame.x_most
    ]


def score_chart(scores: dict[str, Any], *, width: float, height: float) -> dict[str, Any]:
    """Lay out two histograms, each as shares of its class; or one, without labels."""
    counts = [scores[name] for name in ("n_all", "n_common", "n_rare") if name in scores]
    common, *rare = [np.divide(each, max(sum(each), 1)) for each in counts]
    highest = float(max(common.max(), *(each.max() for each in rare), 0))
    frame = Frame(width, height, common.size, highest * 1.05)
    scale, threshold = scores["scale"], scores["threshold"]
    low, high = on_scale([scores["edges"][0], scores["edges"][-1]], scale)

    def x(score: float) -> float:
        place = (float(on_scale(score, scale)) - low) / (high - low)
        return frame.x(common.size * min(max(place, 0), 1))

    ticks = round_ticks(low, high, 5)
    if scale == "log-odds":
        ticks = [each for each in _ODDS if low < on_scale(each, scale) < high]
    write = _share if scale == "log-odds" else number
    return {
        "frame": frame,
        "rare": _steps(frame, rare[0]) if rare else None,
        "common": _steps(frame, common),
        "threshold_x": None if threshold is None else x(threshold),
        "x_ticks": [(x(tick), write(tick)) for tick in ticks],
        "y_ticks": [(frame.y(tick), _share(tick)) for tick in round_ticks(0, highest, 4)[1:]],
    }


def _steps(frame: Frame, shares: Any) -> str:
    xs = np.repeat(np.arange(len(shares) + 1), 2)
    ys = [0, *np.repeat(shares, 2).tolist(), 0]
    return frame.path(xs.tolist(), ys) + "Z"


def flag_chart(promise: dict[str, Any], *, width: float, height: float) -> dict[str, Any]:
    """Lay out the expected range of the number of flags, the flags, and the room."""
    low, high = promise["expected_flags"]
    most = max(1.15 * max(high, promise["n_flagged"], promise["room"]), 1)
    frame = Frame(width, height, most, 1.0)
    return {
        "frame": frame,
        "y": round((frame.top + frame.bottom) / 2 - 4, 2),
        "low": frame.x(low),
        "high": frame.x(high),
        "at": frame.x(promise["n_flagged"]),
        "room": frame.x(promise["room"]),
        "x_ticks": [(frame.x(tick), number(tick)) for tick in _counts(most, width)],
    }


def period_chart(groups: list[dict[str, Any]], *, width: float, height: float) -> dict[str, Any]:
    """Lay out bars of flags, and of rare cases among them, for each period, and its room."""
    most = max(1, *(max(group["n_flagged"], group["room"]) for group in groups))
    frame = Frame(width, height, len(groups), 1.1 * most)
    step = frame.x(1) - frame.x(0)
    every = max(1, int(np.ceil(_LABEL_WIDTH / step)))
    return {
        "frame": frame,
        "bars": [
            {
                "x": round(frame.x(place) + 0.2 * step, 2),
                "width": round(0.6 * step, 2),
                "gap": round(0.12 * step, 2),
                "flags": frame.y(group["n_flagged"]),
                "found": frame.y(group["found"]) if "found" in group else None,
                "room": frame.y(group["room"]),
            }
            for place, group in enumerate(groups)
        ],
        "x_ticks": [
            (round(frame.x(place) + step / 2, 2), groups[place]["name"])
            for place in range(0, len(groups), every)
        ],
        "y_ticks": [(frame.y(tick), number(tick)) for tick in _counts(most, 360)[1:]],
    }


def drift_bars(column: dict[str, Any]) -> dict[str, Any]:
    """Lay out the shares of all bins as pairs of bars, before and after, for one column."""
    shares = {when: np.array(column[when]) / sum(column[when]) for when in ("before", "after")}
    highest = max(*shares["before"], *shares["after"], _LOWEST_BAR)
    return {
        "width": _BIN_WIDTH * len(column["before"]),
        "bars": [
            {
                "when": when,
                "x": _BIN_WIDTH * place + (0 if when == "before" else _BIN_WIDTH * 0.45),
                "y": round(float(_BARS_HEIGHT + 1 - height), 1),
                "height": round(float(height), 1),
            }
            for when in shares
            for place, height in enumerate(_BARS_HEIGHT * shares[when] / highest)
        ],
    }


def _share(tick: float) -> str:
    return f"{100 * tick:.6g}\u00a0%"


def round_ticks(low: float, high: float, count: int, *, least: float = 0.0) -> list[float]:
    """Return at most about `count` round numbers in a range, at least `least` apart."""
    wanted = max((high - low) / count, least)
    size = 10.0 ** np.floor(np.log10(wanted))
    step = next(digit * size for digit in _STEPS if digit * size >= wanted * (1 - 1e-9))
    first, last = np.ceil(low / step - 1e-6), np.floor(high / step + 1e-6)
    return [float(tick) for tick in (np.arange(first, last + 1) * step).round(12)]


def _counts(most: float, width: float) -> list[float]:
    return round_ticks(0, most, 4 if width < 500 else 8, least=1)
