"""Dates that are written as texts."""

from __future__ import annotations

import functools
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = _EPOCH.replace(tzinfo=None)
_DAY = timedelta(days=1)
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
    r"([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?) ?([AaPp][Mm])?"
    r" ?(Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_ODD = {
    **dict.fromkeys(("\u00a0", "\u202f", "\u2009", "\u2007"), " "),
    **dict.fromkeys(("\u2212", "\u2010", "\u2011", "\u2013", "\u2014", "\uff0d"), "-"),
    "\u2019": "'",
}
_TRANSLATION = str.maketrans(_ODD)
#: Formats that are told apart by which of them reads all values; None is the usual one.
DATE_FORMATS = (
    None,
    *(f"%{a}{sign}%{b}{sign}%{year}" for sign in "/-" for year in "Yy" for a, b in ("dm", "md")),
    *("%d.%m.%Y", "%d.%m.%y", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y"),
    *("%a %d %b %Y", "%a, %d %b %Y", "%A %d %B %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)


def tidied(text: str) -> str:
    """Return a text without spaces around it, with ordinary spaces and minus signs."""
    return (text if text.isascii() else text.translate(_TRANSLATION)).strip()


def find_date(text: str, date_format: str | None = None) -> float | None:
    """Return a date as days since 1970 in UTC; None if it is not of this format.

    >>> find_date("2024-05-31"), find_date("5/31/24 6:00 PM", "%m/%d/%y")
    (19874.0, 19874.75)
    """
    try:
        moment = _moment(text, date_format)
    except ValueError:
        return None
    return (moment - (_EPOCH if moment.tzinfo else _NAIVE_EPOCH)) / _DAY


def _moment(text: str, date_format: str | None) -> datetime:
    if date_format is None and _MOMENT.fullmatch(text):
        return datetime.fromisoformat(text)
    text = tidied(text)
    if date_format is not None and re.search("%[HIMSfpzTXc]", date_format):
        return datetime.strptime(text, date_format)
    with_time = _WITH_TIME.fullmatch(text)
    if with_time is None:
        return datetime.combine(_day(text, date_format), time())
    return datetime.combine(_day(with_time[1], date_format), _time(with_time[2]))


@functools.lru_cache(_MOST_REMEMBERED)
def _day(text: str, date_format: str | None) -> date:
    if date_format is not None:
        return datetime.strptime(text, date_format).date()
    if found := _YEARS_FIRST.fullmatch(text):
        return date(int(found[1]), int(found[3]), int(found[4]))
    if found := _DAYS_FIRST.fullmatch(text):
        return date(int(found[3]), int(found[2]), int(found[1]))
    raise ValueError(f"{text!r} is not a date.")


@functools.lru_cache(_MOST_REMEMBERED)
def _time(text: str) -> time:
    """Return a time of day, in 24 or twice 12 hours."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time of day.")
    hours, half, zone = int(found[1]), found[3], found[4] or ""
    if half:
        hours = hours % 12 + 12 * (half.lower() == "pm") if 1 <= hours <= 12 else 99
    return time.fromisoformat(f"{hours:02}{found[2]}{'Z' if zone.isalpha() else zone}")


def days_since_1970(moments: Any) -> NDArray[np.float64]:
    """Return moments in UTC as days since 1970; they may lie in any year."""
    days = (moments.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    return np.array(days, dtype=np.float64)
