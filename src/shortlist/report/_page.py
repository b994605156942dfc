"""From the summary to one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

import numpy as np

from .._core.extras import load_extra
from .._core.formatting import between, number, percent, stated_percent
from ._found import short

_STEPS = (1, 2, 5, 10)
_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001

_TABLE_LINES = 24
# The chart has two layouts, because the text of a chart shrinks with it.
_SIZES = {"wide": (760, 360), "narrow": (360, 300)}


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
            **(_at_the_cut(summary) if summary["cuts"] else {}),
        )
    )


def _at_the_cut(summary: dict[str, Any]) -> dict[str, Any]:
    return {
        "charts": [detection_chart(summary, name, *size) for name, size in _SIZES.items()],
        "start": summary["cuts"]["flags"].index(summary["promise"]["n_flagged"]),
        "lines": _lines(summary),
    }


def _environment() -> Any:
    jinja2 = load_extra("jinja2", needed_for="Making a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("shortlist.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "percent": percent,
        "stated": stated_percent,
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


def unbroken(value: Any) -> Any:
    """Return a text with shares that no line ends within."""
    return value.replace(" %", "\u00a0%") if type(value) is str else value


def _between(interval: Any) -> str:
    return "–" if interval is None else between(*interval)


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


def detection_chart(
    summary: dict[str, Any], name: str, width: float, height: float
) -> dict[str, Any]:
    """Lay out detection against flags, with band, random choice and the best possible detection."""
    cuts, data, promise = summary["cuts"], summary["data"], summary["promise"]
    flags, most = cuts["flags"], cuts["flags"][-1]
    left, right, top, bottom = 46.0, width - 14, 24.0, height - 40

    def x(value: float) -> float:
        return round(left + (right - left) * value / max(most, 1), 2)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * value, 2)

    def path(xs: Any, ys: Any) -> str:
        return "M" + "L".join(f"{x(each)} {y(height)}" for each, height in zip(xs, ys, strict=True))

    full = min(data["n_rare"], most)
    now = flags.index(promise["n_flagged"])
    around = [*flags, *reversed(flags)]
    return {
        "name": name,
        "frame": {
            "width": width,
            "height": height,
            "left": left,
            "right": right,
            "top": top,
            "bottom": bottom,
            "x_most": max(most, 1),
        },
        "curve": path(flags, cuts["detection"]),
        "band": path(around, [*cuts["detection_high"], *reversed(cuts["detection_low"])]) + "Z",
        "chance": path([0, most], [0, most / data["n_items"]]),
        "best": path([0, full, most], [0, full / data["n_rare"], full / data["n_rare"]]),
        "capacity_x": x(min(promise["room"], most)),
        "cut_x": x(flags[now]),
        "cut_y": y(cuts["detection"][now]),
        "x_ticks": [(x(tick), number(tick)) for tick in _ticks(most, width)],
        "y_ticks": [(y(tick), f"{100 * tick:g} %") for tick in (0.25, 0.5, 0.75, 1)],
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
