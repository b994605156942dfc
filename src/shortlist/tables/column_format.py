"""How the values of a column are written as texts, and how one such text is read.

Columns of tables, lines and requests are all read by these functions. Only numbers that are
written simply have a faster way, for whole columns.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrow import pa
from ._source import ReadOptions

#: The category of a missing value. That a value is missing is often informative.
MISSING_CATEGORY = "(missing)"
#: Texts that mean "missing" in every column of a text or Excel file, as they are written.
MISSING_TEXTS = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<null>")
#: Texts that mean "missing" in a column of numbers, dates or truths, in lower case.
_WORDS = frozenset(
    "? - -- --- – — . .. n/a na n.a. n.a #n/a #na nan null none nil <null> (null) (missing) "  # noqa: SIM905
    "unknown unbekannt missing fehlt fehlend k.a. k.a undefined tbd #value! #ref! #div/0! "
    "#name? #num! #null! #wert! #nv 0000-00-00 00.00.0000 00/00/0000".split()
) | {"", "k. a.", "keine angabe", "not available", "not known", "0000-00-00 00:00:00", "\\n"}
#: Words for true and false, in small letters.
TRUTHS = {
    **dict.fromkeys(("true", "yes", "ja", "wahr", "y", "j", "t", "oui", "vrai", "sí"), 1.0),
    **dict.fromkeys(("false", "no", "nein", "falsch", "n", "f", "non", "faux"), 0.0),
    **dict.fromkeys(("on", "1", "1.0"), 1.0),
    **dict.fromkeys(("off", "0", "0.0"), 0.0),
}
_CURRENCY = (
    r"(?:(?:US|R|A|C|CA|AU|NZ|HK|S|MX)?\$|[€£¥₹₽₺₩₪₫₴฿]|USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK"
    r"|PLN|CZK|HUF|BRL|MXN|AUD|CAD|NZD|Rs\.?|kr\.?|zł|Kč|Ft|Fr\.)"
)
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
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class ColumnFormat:
    """How the values of a column are written, where they are texts.

    Attributes
    ----------
    decimal : str
        The decimal sign.
    thousands : str
        The sign between thousands, if there is one; spaces and apostrophes need no mention.
    percent : bool
        Whether numbers end in %; 12 % is 0.12.
    date_format : str or None
        A format of `strptime` without the time of day; None for years first (2024-05-31) and for
        days first with dots (31.05.2024).
    missing : tuple of str
        Words that mean "missing" in this column, in small letters.
    unit : str
        What stands behind every number, such as kg.
    codes : bool
        Whether numbers are codes, such as those of shops: categories.
    whole : bool
        Whether there were whole numbers only when the model was fitted.
    currency : str
        The signs or names of the currencies, such as "€" or "$ and EUR".
    colons : int
        The number of colons in durations and times of day; 1:30 is 90, and 1:30:15 is 5415.
    """

    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    date_format: str | None = None
    missing: tuple[str, ...] = ()
    unit: str = ""
    codes: bool = False
    whole: bool = False
    currency: str = ""
    colons: int = 0

    @property
    def in_words(self) -> str:
        """What is not as a computer writes it, for people; an empty text if all is.

        Examples
        --------
        >>> from shortlist.tables.column_format import ColumnFormat
        >>> ColumnFormat(decimal=",", thousands=".", currency="€", missing=("unknown",)).in_words
        "decimal comma, thousands with a point, in €, missing: 'unknown'"
        """
        signs = {".": "point", ",": "comma"}
        words = [
            "decimal comma" if self.decimal == "," else "",
            f"thousands with a {signs[self.thousands]}" if self.thousands else "",
            "in %" if self.percent else "",
            f"in {self.unit or self.currency}" if self.unit or self.currency else "",
            "durations with colons" if self.colons else "",
            f"written as {self.date_format}" if self.date_format else "",
            f"missing: {', '.join(map(repr, self.missing))}" if self.missing else "",
        ]
        return ", ".join(word for word in words if word)

    def adapted(self, name: str, reading: ReadOptions) -> ColumnFormat:
        """Return the form of a column in a file about which the user says more."""
        given = dict(reading.date_formats())
        sign = reading.decimal
        return replace(
            self,
            decimal=sign or self.decimal,
            thousands=OTHER_SIGN[sign] if sign else self.thousands,
            missing=tuple(dict.fromkeys((*self.missing, *words_for_missing(reading.na)))),
            date_format=given.get(name, given.get(None, self.date_format)),
        )


PLAIN = ColumnFormat()
OTHER_SIGN = {".": ",", ",": "."}


def words_for_missing(texts: Iterable[str]) -> tuple[str, ...]:
    """Return words as they are compared: in small letters, without spaces around them."""
    return tuple(dict.fromkeys(text.strip().lower() for text in texts))


def is_word_for_missing(text: str) -> bool:
    """Return whether a text means "missing" among numbers, dates or truths."""
    return text.strip().lower() in _WORDS


# --- single texts ---


def tidied(text: str) -> str:
    """Return a text without spaces around it, with ordinary spaces and minus signs."""
    return (text if text.isascii() else text.translate(_TRANSLATION)).strip()


@functools.cache
def _pattern(decimal: str, thousands: str, unit: str) -> re.Pattern[str]:
    sign, group = re.escape(decimal), re.escape(thousands) + " '"
    # 0.123 has no thousands; in India, groups before the last one have two digits.
    whole = rf"[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{2,3}})*[{group}][0-9]{{3}}|[0-9]+"
    number = rf"(?:(?:{whole})(?:{sign}[0-9]+)?|{sign}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    unit = rf"(?:{re.escape(unit)})?" if unit else ""
    return re.compile(
        rf"'?(?P<ahead>{_CURRENCY}?) *(?P<open>\(?) *(?P<before>[+-]?) *"
        rf"(?P<front>{_CURRENCY}?) *(?P<inside>[+-]?)"
        rf"(?P<number>{number})(?:{sign}-{{0,2}})?"  # 12.- is 12 and no cents
        rf" *(?P<percent>%?) *{unit}(?P<back>{_CURRENCY}?) *(?P<after>-?) *(?P<close>\)?)"
    )


def number_parts(text: str, format: ColumnFormat) -> re.Match[str] | None:
    """Return the parts of a number of this format, with or without %; None for other texts."""
    pattern = _pattern(format.decimal, format.thousands, format.unit)
    found = pattern.fullmatch(tidied(text))
    return None if found is None or bool(found["open"]) != bool(found["close"]) else found


def currencies(parts: Iterable[re.Match[str]]) -> list[str]:
    """Return the signs and names of currencies that stand beside numbers."""
    return sorted({part[place] for part in parts for place in ("ahead", "front", "back")} - {""})


def is_currency(text: str) -> bool:
    """Return whether a text is the sign or the name of a currency."""
    return re.fullmatch(_CURRENCY, text) is not None


def _duration(text: str, colons: int) -> float | None:
    """Return a duration or a time of day in its last unit; None for other texts."""
    last = r":([0-5][0-9](?:\.[0-9]+)?)" if colons == 2 else ""
    parts = re.fullmatch(rf"(-?)([0-9]+):([0-5][0-9]){last}", tidied(text))
    if parts is None:
        return None
    minus, *numbers = parts.groups()
    value = functools.reduce(lambda whole, part: 60.0 * whole + part, map(float, numbers))
    return -value if minus else value


def find_number(text: str, format: ColumnFormat) -> float | None:
    """Return the number that a text is in this format; None if it is not a number.

    >>> find_number("1.234,50 €", ColumnFormat(decimal=",", thousands="."))
    1234.5
    """
    if format.colons:
        return _duration(text, format.colons)
    parts = number_parts(text, format)
    if parts is None or bool(parts["percent"]) != format.percent:
        return None
    digits = parts["number"].replace(" ", "").replace("'", "")
    if format.thousands:
        digits = digits.replace(format.thousands, "")
    number = float(digits.replace(format.decimal, "."))
    if parts["open"] or parts["after"] or "-" in (parts["before"], parts["inside"]):
        number = -number
    return number / 100 if format.percent else number


def find_value(text: str, kind: str, format: ColumnFormat) -> float | None:
    """Return what a text is among numbers, truths or dates; None if it is no such value."""
    if kind == "boolean":
        return TRUTHS.get(text.strip().lower())
    return find_date(text, format.date_format) if kind == "date" else find_number(text, format)


@functools.cache
def sentinels(format: ColumnFormat) -> frozenset[float]:
    """Return the numbers among the words for missing, such as -999."""
    found = (_INFINITE.get(word, find_number(word, format)) for word in format.missing)
    return frozenset(number for number in found if number is not None)


def read_text(text: str, kind: str, format: ColumnFormat = PLAIN) -> Any:
    """Read one text: NaN (or a category) if it means "missing", a ValueError for invalid ones.

    >>> read_text("1.234,50 €", "numeric", ColumnFormat(decimal=",", thousands="."))
    1234.5
    """
    word = text.strip().lower()
    is_missing = word in format.missing
    if kind == "categorical":
        text.encode()  # raises an error for half of a surrogate pair
        return MISSING_CATEGORY if is_missing or not word else text.strip()
    value = None if is_missing else find_value(text, kind, format)
    if value is None and not is_missing and word not in _WORDS:
        raise ValueError(f"{text!r} is not a value of this column.")
    is_number = kind == "numeric" and value is not None
    return math.nan if value is None or (is_number and value in sentinels(format)) else value


def simple_numbers(texts: Any, format: ColumnFormat) -> tuple[Any, Any]:
    """Return an Arrow column as numbers, and which texts could not be read quickly.

    Numbers with a unit, a currency and the like are left to :func:`read_text`.
    """
    if format.percent or format.unit or format.colons:
        return np.full(len(texts), np.nan), np.ones(len(texts), dtype=bool)
    if format.decimal == "." and not format.thousands and not format.missing:
        with contextlib.suppress(pa.ArrowInvalid):
            fast = pa.compute.cast(pa.compute.utf8_trim_whitespace(texts), pa.float64())
            return fast.to_numpy(zero_copy_only=False), np.zeros(len(texts), dtype=bool)
    is_simple = pa.compute.match_substring_regex(texts, _simple_pattern(format))
    digits = pa.compute.utf8_trim_whitespace(pa.compute.if_else(is_simple, texts, None))
    if format.thousands:
        digits = pa.compute.replace_substring(digits, format.thousands, "")
    digits = pa.compute.replace_substring(digits, format.decimal, ".")
    values = np.array(pa.compute.cast(digits, pa.float64()).to_numpy(zero_copy_only=False))
    values[np.isin(values, list(sentinels(format)))] = np.nan
    return values, ~np.array(pa.compute.fill_null(is_simple, True), dtype=bool)


def _simple_pattern(format: ColumnFormat) -> str:
    decimal, group = re.escape(format.decimal), re.escape(format.thousands)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|" if group else ""
    return rf"^\s*-?(?:{grouped}[0-9]+)(?:{decimal}[0-9]+)?\s*$"


# --- dates ---


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
