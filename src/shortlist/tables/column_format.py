"""How the values of a column are written as texts: decimal sign, date format, words for missing.

The same patterns read whole columns (in Arrow) and single values (in Python).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.extras import load_extra
from .options import ReadOptions

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")

#: Texts, in small letters, that mean "missing" in a column of numbers, dates or truths.
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
_ODD = {
    **dict.fromkeys(("\u00a0", "\u202f", "\u2009", "\u2007"), " "),
    **dict.fromkeys(("\u2212", "\u2010", "\u2011", "\u2013", "\u2014", "\uff0d"), "-"),
    "\u2019": "'",
}
_TRANSLATION = str.maketrans(_ODD)


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
        The sign or name of the currency, if there was one and no other.
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
    def is_plain(self) -> bool:
        """Whether numbers are written as a computer writes them."""
        return self.decimal == "." and not (
            self.thousands or self.percent or self.unit or self.colons
        )

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
            thousands=_other(sign) if sign else self.thousands,
            missing=tuple(dict.fromkeys((*self.missing, *words_for_missing(reading.na)))),
            date_format=given.get(name, given.get(None, self.date_format)),
        )


PLAIN = ColumnFormat()


def _other(decimal: str) -> str:
    return "," if decimal == "." else "."


def words_for_missing(texts: Iterable[str]) -> tuple[str, ...]:
    """Return words as they are compared: in small letters, without spaces around them."""
    return tuple(dict.fromkeys(text.strip().lower() for text in texts))


def is_word_for_missing(text: str, format: ColumnFormat = PLAIN) -> bool:
    """Return whether a text means "missing" among numbers, dates or truths."""
    word = text.strip().lower()
    return word in _WORDS or word in format.missing


# --- numbers ---


@functools.cache
def _pattern(decimal: str, thousands: str, unit: str = "") -> str:
    """Return a pattern with named groups that Arrow and Python understand alike."""
    sign, group = re.escape(decimal), re.escape(thousands) + " '"
    # 0.123 has no thousands; in India, groups before the last one have two digits.
    whole = rf"[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{2,3}})*[{group}][0-9]{{3}}|[0-9]+"
    number = rf"(?:(?:{whole})(?:{sign}[0-9]+)?|{sign}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    unit = rf"(?:{re.escape(unit)})?" if unit else ""
    return (
        rf"^ *'?(?P<ahead>{_CURRENCY}?) *(?P<open>\(?) *(?P<before>[+-]?) *"
        rf"(?P<front>{_CURRENCY}?) *(?P<inside>[+-]?)"
        rf"(?P<number>{number})(?:{sign}-{{0,2}})?"  # 12.- is 12 and no cents
        rf" *(?P<percent>%?) *{unit}(?P<back>{_CURRENCY}?) *(?P<after>-?) *(?P<close>\)?) *$"
    )


def _pattern_of(format: ColumnFormat) -> str:
    return _pattern(format.decimal, format.thousands, format.unit)


def read_number(text: str, format: ColumnFormat = PLAIN) -> float | None:
    """Read one number as a column of this form is read; None if the text means "missing".

    Anything else raises a ValueError.

    >>> read_number("1.234,50 €", ColumnFormat(decimal=",", thousands="."))
    1234.5
    """
    if is_word_for_missing(text, format):
        return None
    number = _number(text, format)
    if number is None:
        raise ValueError(f"{text!r} is not a number of this column.")
    return None if number in sentinels(format) else number


def is_number(text: str, format: ColumnFormat) -> bool:
    """Return whether a text is a number of this form."""
    return _number(text, format) is not None


def _number(text: str, format: ColumnFormat) -> float | None:
    """Return the number that a text is, or None."""
    tidied = text.translate(_TRANSLATION).strip()
    if format.colons:
        parts = re.match(_times(format.colons), tidied)
        if parts is None:
            return None
        minus, *numbers = parts.groups()
        return float(f"{minus}1") * _sixtieths(*map(float, numbers))
    found = re.match(_pattern_of(format), tidied)
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    if bool(found["percent"]) != format.percent:
        return None
    plain = found["number"].replace(format.thousands, "") if format.thousands else found["number"]
    number = float(re.sub("[ ']", "", plain.replace(format.decimal, ".")))
    signs = found["open"] + found["before"] + found["inside"] + found["after"]
    number = -number if set(signs) & set("(-") else number
    return number / 100 if format.percent else number


def _times(colons: int) -> str:
    """Return a pattern for durations and times of day."""
    last = r":(?P<last>[0-5][0-9](?:\.[0-9]+)?)" if colons == 2 else ""
    return rf"^(?P<minus>-?)(?P<first>[0-9]+):(?P<second>[0-5][0-9]){last}$"


def _sixtieths(first: Any, second: Any, last: Any = None) -> Any:
    """Return the length of a duration in its last unit; numbers or arrays of them."""
    value = 60.0 * first + second
    return value if last is None else 60.0 * value + last


def matches_times(texts: Any, colons: int) -> Any:
    """Return which texts are durations or times of day with so many colons."""
    return pa.compute.fill_null(
        pa.compute.match_substring_regex(tidy(texts), _times(colons)), False
    )


def _as_times(texts: Any, format: ColumnFormat) -> tuple[Any, Any]:
    parts = pa.compute.extract_regex(tidy(texts), _times(format.colons))
    named = ("first", "second", "last")[: format.colons + 1]
    fields = [pa.compute.cast(pa.compute.struct_field(parts, n), pa.float64()) for n in named]
    values = np.array(_sixtieths(*(f.to_numpy(zero_copy_only=False) for f in fields)))
    values[_equals(pa.compute.struct_field(parts, "minus"), "-")] *= -1
    values[np.isin(values, sentinels(format))] = np.nan
    is_time = np.array(pa.compute.is_valid(parts), dtype=bool)
    return values, ~is_time & ~means_missing(texts, format)


@functools.cache
def sentinels(format: ColumnFormat) -> tuple[float, ...]:
    """Return the numbers among the words for missing, such as -999."""
    found = [_number(word, format) for word in format.missing]
    return tuple(number for number in found if number is not None)


def matches_numbers(texts: Any, decimal: str, unit: str = "") -> Any:
    """Return which texts are numbers with this decimal sign, and which of them end in %."""
    parts = pa.compute.extract_regex(tidy(texts), _pattern(decimal, _other(decimal), unit))
    is_number = pa.compute.fill_null(pa.compute.is_valid(parts), False)
    percent = pa.compute.equal(pa.compute.struct_field(parts, "percent"), "%")
    return is_number, pa.compute.fill_null(percent, False)


def currencies(texts: Any, format: ColumnFormat) -> list[str]:
    """Return the signs and names of currencies that stand beside numbers."""
    parts = pa.compute.extract_regex(tidy(texts), _pattern_of(format))
    found = [pa.compute.struct_field(parts, place).unique() for place in ("ahead", "front", "back")]
    return sorted({sign for signs in found for sign in signs.to_pylist() if sign})


def is_currency(text: str) -> bool:
    """Return whether a text is the sign or the name of a currency."""
    return re.fullmatch(_CURRENCY, text) is not None


def as_numbers(texts: Any, format: ColumnFormat) -> tuple[Any, Any]:
    """Return texts as 64-bit floats, and which of them are neither numbers nor missing."""
    texts = combined(texts)
    if _may_be_plain(texts, format):
        try:
            fast = pa.compute.cast(pa.compute.utf8_trim_whitespace(texts), pa.float64())
            return fast.to_numpy(zero_copy_only=False), np.zeros(len(texts), dtype=bool)
        except pa.ArrowInvalid:
            pass
    if format.colons:
        return _as_times(texts, format)
    compute = pa.compute
    parts = compute.extract_regex(tidy(texts), _pattern_of(format))
    field = functools.partial(compute.struct_field, parts)
    number = field("number")
    for sign in (format.thousands, " ", "'"):
        number = compute.replace_substring(number, sign, "") if sign else number
    number = compute.replace_substring(number, format.decimal, ".")
    values = np.array(compute.cast(number, pa.float64()).to_numpy(zero_copy_only=False))
    is_minus = _any(field("open"), field("after")) | _equals(field("before"), "-")
    is_minus |= _equals(field("inside"), "-")
    values[is_minus] *= -1
    is_odd = _any(field("percent")) != format.percent
    is_odd |= _any(field("open")) != _any(field("close"))
    values[is_odd] = np.nan
    if format.percent:
        values /= 100
    values[np.isin(values, sentinels(format))] = np.nan
    is_number = ~is_odd & np.array(compute.is_valid(parts), dtype=bool)
    return values, ~is_number & ~means_missing(texts, format)


def _may_be_plain(texts: Any, format: ColumnFormat) -> bool:
    """Return whether texts may be numbers as a computer writes them, which are read quickly."""
    if format.missing or format.percent or format.unit or format.colons:
        return False
    if format.is_plain:
        return True
    return not pa.compute.any(pa.compute.match_substring_regex(texts, "[.,]")).as_py()


def _any(*parts: Any) -> Any:
    """Return where one of these groups holds a sign."""
    found = [pa.compute.fill_null(pa.compute.not_equal(part, ""), False) for part in parts]
    return np.logical_or.reduce([np.array(each, dtype=bool) for each in found])


def _equals(part: Any, sign: str) -> Any:
    found = pa.compute.fill_null(pa.compute.equal(part, sign), False)
    return np.array(found, dtype=bool)


def means_missing(texts: Any, format: ColumnFormat) -> Any:
    """Return which texts are empty or mean "missing", as `is_word_for_missing` tells of one."""
    known = pa.array(sorted(_WORDS | set(format.missing)))
    is_missing = pa.compute.is_in(lowered(texts), value_set=known)
    return np.array(pa.compute.or_(is_missing, pa.compute.is_null(texts)), dtype=bool)


# --- texts ---


def tidy(texts: Any) -> Any:
    """Return texts without spaces around them, with ordinary spaces and minus signs."""
    texts = pa.compute.utf8_trim_whitespace(combined(texts))
    if not pa.compute.all(pa.compute.string_is_ascii(texts)).as_py():
        for odd, usual in _ODD.items():
            texts = pa.compute.replace_substring(texts, odd, usual)
    return texts


def lowered(texts: Any) -> Any:
    """Return texts in small letters, without spaces around them."""
    return pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(combined(texts)))


def matches_all(texts: Any, pattern: str) -> bool:
    """Return whether all texts match a pattern."""
    trimmed = pa.compute.utf8_trim_whitespace(texts)
    return bool(pa.compute.all(pa.compute.match_substring_regex(trimmed, pattern)).as_py())


def matches_any(texts: Any, pattern: str) -> bool:
    """Return whether a text matches a pattern."""
    return bool(pa.compute.any(pa.compute.match_substring_regex(texts, pattern)).as_py())


def combined(texts: Any) -> Any:
    """Return a column in one piece."""
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def read_truth(text: str) -> bool:
    """Read one word for true or false; another word raises a KeyError."""
    return bool(TRUTHS[text.strip().lower()])
