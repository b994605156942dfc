"""Dates that are written as texts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .._core.extras import load_extra
from .column_format import ColumnFormat, tidy

pa = load_extra("pyarrow", needed_for="Reading tables")
pd = load_extra("pandas", needed_for="Reading tables")

_DAY = np.timedelta64(1, "D")
_TIME = r"(?:[T ][0-9]{1,2}:[0-9]{2}.*)?$"
#: Years first, or days first with dots, and how each is turned into the first.
_PLAIN = {
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})(" + _TIME[:-1] + ")$": r"\1-\2-\3\4",
    r"^([0-9]{4})/([0-9]{2})/([0-9]{2})(" + _TIME[:-1] + ")$": r"\1-\2-\3\4",
    r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})(" + _TIME[:-1] + ")$": r"\3-\2-\1\4",
}
_WHOLE = "^[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:[T ]|$)"
#: Other ways, told apart by which of them reads all values.
_OTHERS = (
    *(f"%{a}{sign}%{b}{sign}%{year}" for sign in "/-" for year in "Yy" for a, b in ("dm", "md")),
    *("%d.%m.%Y", "%d.%m.%y", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%Y-%m-%d", "%Y/%m/%d"),
    *("%a %d %b %Y", "%a, %d %b %Y", "%A %d %B %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)
_TIMES = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p")
_LOOKS_LIKE = r"^[0-9]{1,4}[./ -]|^[A-Z][a-z]{2,8},? [A-Z0-9]"
_SHAPES = {
    **dict.fromkeys(("%d", "%m"), "[0-9]{1,2}"),
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    **dict.fromkeys(("%a", "%A", "%b", "%B"), "[A-Za-z]{3,9}"),
}
_SAMPLE = 1_000
_MOST = 0.5


def as_days(texts: Any, format: ColumnFormat) -> Any:
    """Return texts as days since 1970 in UTC; NaN where a text is no date of this form."""
    texts = tidy(texts)
    if format.date_format is not None:
        return _days(_parsed(texts.to_pandas(), format.date_format))
    for sign in ("/", "."):  # most dates have neither and need no change
        if pa.compute.any(pa.compute.match_substring(texts, sign)).as_py():
            for pattern, iso in _PLAIN.items():
                texts = pa.compute.replace_substring_regex(texts, pattern, iso)
    texts = pa.compute.replace_substring_regex(texts, r"([0-9]) ?(?:UTC|GMT)$", r"\1Z")
    # A year or a month alone is no day, although ISO 8601 allows it.
    texts = pa.compute.if_else(pa.compute.match_substring_regex(texts, _WHOLE), texts, None)
    moments = texts.to_pandas().astype(object)
    return _days(pd.to_datetime(moments, format="ISO8601", utc=True, errors="coerce"))


def _days(moments: Any) -> Any:
    return days_since_1970(moments.dt.tz_localize(None).to_numpy())


def days_since_1970(moments: Any) -> Any:
    """Return moments in UTC as days since 1970; they may lie in any year."""
    days = (moments.astype("datetime64[us]") - np.datetime64(0, "us")) / _DAY
    return np.array(days, dtype=np.float64)


def _parsed(texts: Any, date_format: str) -> Any:
    """Read dates of a format, with or without a time of day and a time zone."""
    moments = pd.to_datetime(texts, format=date_format, utc=True, errors="coerce")
    if not texts.str.contains(":").any():
        return moments
    for time in _TIMES:
        for join in (" ", "T"):
            for zone in ("", "%z", " %z"):
                left = moments.isna() & texts.notna()
                if not left.any():
                    return moments
                given = f"{date_format}{join}{time}{zone}"
                more = pd.to_datetime(texts[left], format=given, utc=True, errors="coerce")
                if more.notna().any():
                    moments = moments.copy()
                    moments[left] = more
    return moments


def day_formats(texts: Any) -> list[tuple[str | None, int]]:
    """Return the formats that read most texts, and how many they read.

    There are two if they read equally many, but as different days. There is none if the texts do
    not look like dates.
    """
    texts = tidy(texts)
    sample = texts.slice(0, _SAMPLE)
    if _share(sample, _LOOKS_LIKE) < _MOST:
        return []
    best: list[tuple[str | None, int]] = []
    days: Any = None
    for date_format in (None, *_OTHERS):
        if date_format and _share(sample, _shape(date_format)) < _MOST:
            continue
        if np.isnan(_told(sample, date_format)).mean() > 1 - _MOST:
            continue
        read = _told(texts, date_format)
        n_read = int((~np.isnan(read)).sum())
        if not best or n_read > best[0][1]:
            best, days = [(date_format, n_read)], read
        elif n_read == best[0][1] and not np.array_equal(read, days, equal_nan=True):
            best.append((date_format, n_read))
        if date_format is None and n_read == len(texts):
            break
    return best


def other_order(date_format: str | None) -> str | None:
    """Return a format with day and month exchanged; None if it does not have both as numbers.

    >>> other_order("%d/%m/%Y")
    '%m/%d/%Y'
    """
    if date_format is None or not {"%d", "%m"} <= set(re.findall("%.", date_format)):
        return None
    return date_format.replace("%d", "%\0").replace("%m", "%d").replace("%\0", "%m")


def _told(texts: Any, date_format: str | None) -> Any:
    """Return days, where a text has all parts of a date; "1001-12" may be a code."""
    days = as_days(texts, ColumnFormat(date_format=date_format))
    if date_format is None:
        whole = [pa.compute.match_substring_regex(texts, pattern) for pattern in _PLAIN]
        days[~np.logical_or.reduce([np.array(each, dtype=bool) for each in whole])] = np.nan
    return days


def _shape(date_format: str) -> str:
    """Return a pattern for texts that may be of a format."""
    shape = re.escape(date_format).replace(r"\ ", " ")
    for code, pattern in _SHAPES.items():
        shape = shape.replace(code, pattern)
    return rf"^{shape}(?:[T ].*)?$"


def _share(texts: Any, pattern: str) -> float:
    matched = pa.compute.match_substring_regex(texts, pattern)
    return float(np.mean(np.array(matched, dtype=bool)))
