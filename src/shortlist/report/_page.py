"""From the summary to one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from .._core.extras import load_extra
from .._core.formatting import between, number, stated_percent
from ._words import percent, short, unbroken

_STEPS = (1, 2, 5, 10)
_LABEL_WIDTH = 76  # of a date
_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001

_TABLE_LINES = 24
# Each chart has two layouts, because the text of a chart shrinks with it.
_WIDTHS = {"wide": 760, "narrow": 360}


def render_report(summary: dict[str, Any]) -> str:
    """Return a self-contained HTML page: it loads nothing and runs only its own script.

    Parameters
    ----------
    summary : dict
        The result of :func:`make_report`, possibly saved as JSON and loaded again.

    Returns
    -------
    str
        HTML. Everything that comes from the data is escaped.
    """
    script = _file("page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=summary,
            style=_file("page.css"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **_charts(summary),
            **(_at_the_cut(summary) if summary["cuts"] else {}),
        )
    )


def _charts(summary: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return each chart in two sizes."""
    times = [each["groups"] for each in summary["groups"] if each["kind"] == "time"]

    def both(chart: Callable[..., dict[str, Any]], content: Any, *heights: float) -> list[Any]:
        return [
            {"name": name, **chart(content, width=width, height=height)}
            for (name, width), height in zip(_WIDTHS.items(), heights, strict=True)
        ]

    return {
        "charts": both(detection_chart, summary, 360, 300) if summary["cuts"] else [],
        "period_charts": both(period_chart, times[0], 220, 220) if times else [],
    }


def _at_the_cut(summary: dict[str, Any]) -> dict[str, Any]:
    return {
        "start": summary["cuts"]["flags"].index(summary["promise"]["n_flagged"]),
        "lines": _lines(summary),
    }


def _environment() -> Any:
    jinja2 = load_extra("jinja2", needed_for="Making a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("shortlist.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "percent": percent,
        "stated": lambda share: unbroken(stated_percent(share)),
        "number": number,
        "between": _between,
        "short": short,
        "drift_bars": drift_bars,
    }
    environment.filters |= filters
    return environment


def _file(name: str) -> str:
    templates = resources.files("shortlist.report") / "templates"
    return (templates / name).read_text(encoding="utf-8")


def _between(interval: Any) -> str:
    return "–" if interval is None else unbroken(between(*interval))


def _lines(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return some lines of the curve for a table: evenly spaced, and those of rule and capacity."""
    cuts, promise = summary["cuts"], summary["promise"]
    n_cuts = len(cuts["flags"])
    chosen = set(range(0, n_cuts, max(1, n_cuts // _TABLE_LINES))) | {n_cuts - 1}
    marks = {promise["room"]: "capacity", promise["n_flagged"]: "rule in use"}
    chosen |= {place for place, flags in enumerate(cuts["flags"]) if flags in marks}
    return [
        {name: column[place] for name, column in cuts.items()}
        | {"mark": marks.get(cuts["flags"][place], "")}
        for place in sorted(chosen)
    ]


# --- the layout of charts: scales, paths, bars and ticks, which the templates draw ---


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
        "x_ticks": [(frame.x(tick), number(tick)) for tick in _ticks(most, width)],
        "y_ticks": [(frame.y(tick), f"{100 * tick:g}\u00a0%") for tick in (0.25, 0.5, 0.75, 1)],
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
        "y_ticks": [(frame.y(tick), number(tick)) for tick in _ticks(most, 360)[1:]],
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


def _ticks(most: float, width: float) -> list[float]:
    """Return round numbers from 0 to the largest count: about four of them, or eight."""
    wanted = max(most / (4 if width < 500 else 8), 1)
    size = 10.0 ** np.floor(np.log10(wanted))
    step = next(digit * size for digit in _STEPS if digit * size >= wanted * (1 - 1e-9))
    return np.arange(0, most * (1 + 1e-9), step).tolist()
