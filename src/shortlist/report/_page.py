"""From the summary to one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib import resources
from typing import Any

from .._core.extras import load_extra
from ._charts import detection_chart, drift_bars, flag_chart, period_chart, score_chart
from ._found import NEAR
from ._words import number, percent

_TABLE_LINES = 24
# Each chart has two layouts, because the text of a chart shrinks with it.
_WIDTHS = {"wide": 760, "narrow": 360}
# "</script>" or "<!--" in the data must not end the script that holds them.
_ESCAPED: dict[str, str | int | None] = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


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
            numbers=_as_script(summary),
            sections=[f"{name}.html" for name, needed in _SECTIONS.items() if needed(summary)],
            **_charts(summary),
            **(_at_the_cut(summary) if summary["cuts"] else {}),
        )
    )


#: The sections of the page in their order, and whether a summary has what they show.
_SECTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "verdict": lambda summary: True,
    "curve": lambda summary: summary["cuts"],
    "list": lambda summary: summary["list"],
    "groups": lambda summary: summary["groups"],
    "money": lambda summary: summary["money"],
    "missed": lambda summary: summary.get("missed"),
    "rules": lambda summary: summary["comparison"],
    "expectations": lambda summary: summary["card"]["fit"],
    "scores": lambda summary: True,
    "calibration": lambda summary: True,
    "drift": lambda summary: True,
    "next": lambda summary: True,
    "card": lambda summary: True,
}


def _charts(summary: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return each chart in two sizes."""
    promise, periods = summary["promise"], _periods(summary)

    def both(chart: Callable[..., dict[str, Any]], content: Any, *heights: float) -> list[Any]:
        return [
            {"name": name, **chart(content, width=width, height=height)}
            for (name, width), height in zip(_WIDTHS.items(), heights, strict=True)
        ]

    return {
        "charts": both(detection_chart, summary, 360, 300) if summary["cuts"] else [],
        "score_charts": both(score_chart, summary["scores"], 240, 220),
        "flag_charts": both(flag_chart, promise, 110, 110) if promise["expected_flags"] else [],
        "period_charts": both(period_chart, periods, 220, 220) if periods else [],
    }


def _periods(summary: dict[str, Any]) -> list[dict[str, Any]]:
    return next((each["groups"] for each in summary["groups"] if each["kind"] == "time"), [])


def _at_the_cut(summary: dict[str, Any]) -> dict[str, Any]:
    return {
        "start": summary["cuts"]["flags"].index(summary["promise"]["n_flagged"]),
        "lines": _lines(summary),
        "near": _near(summary),
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
    environment.filters |= {
        "percent": percent,
        "number": number,
        "between": _between,
        "score": _score,
        "short": _short,
        "drift_bars": drift_bars,
    }
    return environment


def _file(name: str) -> str:
    templates = resources.files("shortlist.report") / "templates"
    return (templates / name).read_text(encoding="utf-8")


def _as_script(summary: dict[str, Any]) -> str:
    text = json.dumps(summary, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(str.maketrans(_ESCAPED))


def _between(interval: Any) -> str:
    return "–" if interval is None else f"{percent(interval[0])} to {percent(interval[1])}"


def _short(text: str, length: int = 30) -> str:
    """Cut a long name short where it stands in a sentence; the model card has it whole."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _score(score: float | None) -> str:
    """Format a score; infinite scores are None in the summary."""
    return "–" if score is None else f"{score:.4g}"


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


def _near(summary: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the cases on either side of the rule in use, for readers without scripts."""
    cases, cut = summary["cases"], summary["promise"]["n_flagged"]
    listed = [dict(zip(cases, each, strict=True)) for each in zip(*cases.values(), strict=True)]
    above = [case for case in listed if case["rank"] <= cut]
    return {
        "above": list(reversed(above))[:NEAR],
        "below": [case for case in listed if case["rank"] > cut][:NEAR],
    }
