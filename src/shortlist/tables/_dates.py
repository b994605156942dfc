"""Dates that are written as texts."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .column_format import tidied

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = _EPOCH.replace(tzinfo=None)
_FIRST_DAY, _DAY = date(1970, 1, 1), timedelta(days=1)
_MOST_REMEMBERED = 1 << 16
#: Years first, with or without signs, or days first with dots.
_YEARS_FIRST = re.compile(r"([0-9]{4})([-/]?)([0-9]{2})\2([0-9]{2})")
_DAYS_FIRST = re.compile(r"([0-9]{2})\.([0-9]{2})\.([0-9]{4})")
#: A usual moment, which Python reads by itself.
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_WITH_TIME = re.compile(r"([^:]*?)[T ] *([0-9]{1,2}:[0-9]{2}.*)")
_TIME = re.compile(
    r"(?P<hours>[0-9]{1,2}):(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2}(?:\.[0-9]{1,9})?))?"
    r" ?(?P<half>[AaPp][Mm])? ?(?:Z|UTC|GMT|(?P<side>[+-])(?P<ahead>[0-9]{2}):?(?P<more>[0-9]{2}))?"
)
#: Formats that are told apart by which of them reads all values; None is the usual one.
_FORMATS = (
    *(f"%{a}{sign}%{b}{sign}%{year}" for sign in "/-" for year in "Yy" for a, b in ("dm", "md")),
    *("%d.%m.%Y", "%d.%m.%y", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%Y-%m-%d", "%Y/%m/%d"),
    *("%a %d %b %Y", "%a, %d %b %Y", "%A %d %B %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)
_COMPACT = re.compile(r"[0-9]{8}\b")  # as likely a number as a date
_LOOKS_LIKE = re.compile(r"[0-9]{1,4}[./ -]|[A-Z][a-z]{2,8},? [A-Z0-9]")
_SAMPLE = 200
_MOST = 0.5


def read_date(text: str, date_format: str | None = None) -> float:
    """Return a date as days since 1970 in UTC; a ValueError if it is not of this format.

    >>> read_date("2024-05-31"), read_date("5/31/24 6:00 PM", "%m/%d/%y")
    (19874.0, 19874.75)
    """
    if date_format is None and _MOMENT.fullmatch(text):
        return _days_of(datetime.fromisoformat(text))
    text = tidied(text)
    if date_format is not None and re.search("%[HIMSfpzTXc]", date_format):
        return _days_of(datetime.strptime(text, date_format))
    with_time = _WITH_TIME.fullmatch(text)
    if with_time is None:
        return _day(text, date_format) / _DAY
    return (_day(with_time[1], date_format) + _time(with_time[2])) / _DAY


def _days_of(moment: datetime) -> float:
    return (moment - (_EPOCH if moment.tzinfo else _NAIVE_EPOCH)) / _DAY


@functools.lru_cache(_MOST_REMEMBERED)
def _day(text: str, date_format: str | None) -> timedelta:
    if date_format is not None:
        return datetime.strptime(text, date_format).date() - _FIRST_DAY
    if found := _YEARS_FIRST.fullmatch(text):
        return date(int(found[1]), int(found[3]), int(found[4])) - _FIRST_DAY
    if found := _DAYS_FIRST.fullmatch(text):
        return date(int(found[3]), int(found[2]), int(found[1])) - _FIRST_DAY
    raise ValueError(f"{text!r} is not a date.")


@functools.lru_cache(_MOST_REMEMBERED)
def _time(text: str) -> timedelta:
    """Return the time since midnight in UTC, in 24 or twice 12 hours."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time of day.")
    hours, minutes, seconds = int(found["hours"]), int(found["minutes"]), found["seconds"] or "0"
    if found["half"]:
        hours = hours % 12 + 12 * (found["half"].lower() == "pm") if 1 <= hours <= 12 else 24
    if hours > 23 or minutes > 59 or float(seconds) >= 60:
        raise ValueError(f"{text!r} is not a time of day.")
    whole, _, part = seconds.partition(".")
    time = timedelta(0, int(whole), int(f"{part:0<6}"[:6]), 0, minutes, hours)
    if not found["side"]:
        return time
    ahead = timedelta(hours=int(found["ahead"]), minutes=int(found["more"]))
    return time - ahead if found["side"] == "+" else time + ahead


def read_dates(texts: Iterable[str], date_format: str | None) -> NDArray[np.float64]:
    """Return texts as days since 1970 in UTC; NaN where a text is not of this format."""
    return np.array([_or_nan(text, date_format) for text in texts], dtype=np.float64)


def _or_nan(text: str, date_format: str | None) -> float:
    try:
        return read_date(text, date_format)
    except ValueError:
        return np.nan


def days_since_1970(moments: Any) -> NDArray[np.float64]:
    """Return moments in UTC as days since 1970; they may lie in any year."""
    days = (moments.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    return np.array(days, dtype=np.float64)


def day_formats(texts: list[str], counts: NDArray[np.int64]) -> list[tuple[str | None, int]]:
    """Return the formats that read most texts, and how many rows they read.

    There are two if they read equally many, but as different days. There is none if the texts do
    not look like dates.
    """
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    if sum(_LOOKS_LIKE.match(text) is not None for text in sample) < _MOST * len(sample):
        return []
    best: list[tuple[str | None, int]] = []
    days: Any = None
    for date_format in (None, *_FORMATS):
        if np.isnan(_told(sample, date_format)).mean() > 1 - _MOST:
            continue
        read = _told(texts, date_format)
        n_read = int(counts[~np.isnan(read)].sum())
        if not best or n_read > best[0][1]:
            best, days = [(date_format, n_read)], read
        elif n_read == best[0][1] and not np.array_equal(read, days, equal_nan=True):
            best.append((date_format, n_read))
        if date_format is None and n_read == counts.sum():
            break
    return best


def _told(texts: list[str], date_format: str | None) -> NDArray[np.float64]:
    days = read_dates(texts, date_format)
    if date_format is None:
        days[[_COMPACT.match(text) is not None for text in texts]] = np.nan
    return days


def other_order(date_format: str | None) -> str | None:
    """Return a format with day and month exchanged; None if it does not have both as numbers.

    >>> other_order("%d/%m/%Y")
    '%m/%d/%Y'
    """
    if date_format is None or not {"%d", "%m"} <= set(re.findall("%.", date_format)):
        return None
    return date_format.replace("%d", "%\0").replace("%m", "%d").replace("%\0", "%m")
