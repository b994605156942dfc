"""What is said about a column of texts: how it is read, and the option that decides otherwise."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .._core.extras import load_extra
from ._dates import as_days
from .column_format import ColumnFormat, as_numbers, currencies, matches_all, matches_any, tidy
from .options import as_strptime

pa = load_extra("pyarrow", needed_for="Reading tables")

_MOST_SHOWN = 3
#: A code such as 007, which would lose its zeros as a number.
CODE = r"^0[0-9]+$"
#: A negative number in brackets, or with its minus behind.
_NEGATIVE = r"\)$|[0-9%A-Za-z€£$] *-$"

#: How months are written, and the format that reads them.
_MONTHS = {
    "^[0-9]{4}-[0-9]{2}$": "YYYY-MM",
    "^[0-9]{4}/[0-9]{2}$": "YYYY/MM",
    "^[0-9]{1,2}/[0-9]{4}$": "MM/YYYY",
    "^[0-9]{1,2}-[0-9]{4}$": "MM-YYYY",
    "^[A-Z][a-z]{2}-[0-9]{2}$": "%b-%y",
    "^[A-Z][a-z]{2}-[0-9]{4}$": "%b-%Y",
    "^[A-Z][a-z]{2} [0-9]{4}$": "%b %Y",
    "^[A-Z][a-z]{2,8} [0-9]{4}$": "%B %Y",
}

_YEAR = r"(?:19|20)[0-9]{2}"
_PART_OF_YEAR = r"(?:Q ?[1-4]|H ?[12]|(?:W|KW|CW|week) ?[0-5]?[0-9])"
_MONTH = (
    r"\b(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|janv|févr|mars|avr|juin"
    r"|juil|août|déc)[\p{L}]*\b"
)
#: What has an order that is lost when it is taken for categories.
_ORDERED = (
    rf"^{_PART_OF_YEAR}[ /'.-]*{_YEAR}$|^{_PART_OF_YEAR}[ /'.-]+[0-9]{{2}}$",  # Q1 2024, KW 5/24
    rf"^{_YEAR}[ /'.-]*{_PART_OF_YEAR}$|^[0-9]{{2}}[ /'.-]+{_PART_OF_YEAR}$",  # 2024-W05
    rf"^[1-4] ?Q[ /'.-]*(?:{_YEAR}|[0-9]{{2}})$|^FY ?(?:{_YEAR}|[0-9]{{2}})",  # 1Q24, FY23/24
    rf"[0-9].*{_MONTH}|{_MONTH}.*[0-9]",  # Mon 5 Jan 2024
    r"^[0-9]{8}T[0-9]{4}",  # 20240105T101500
    r"^[0-9]{1,2}(?::[0-9]{2}){0,2} ?[ap]\.?m\.?$",  # 5:30 PM
    r"^-?P(?:[0-9.]+[YMWD])*(?:T(?:[0-9.]+[HMS])+)?$",  # PT2H30M
    r"^[0-9]+ ?(?:'|ft|feet) ?[0-9]{1,2} ?(?:\"|''|in)?$",  # 5'11"
    r"^(?:[0-9]+[ -])?[0-9]{1,2} ?/ ?[0-9]{1,2}$|^[0-9]* ?[½⅓⅔¼¾⅛⅜⅝⅞]$",  # 15 1/2
    r"^(?:no|nr|num|ca|circa|about|approx|etwa|rund|über|over|under|up to)\.? ?[0-9]",  # ca. 50
)


def codes(present: Any, name: str) -> str:
    """Say that numbers with leading zeros are texts."""
    code = present.filter(pa.compute.match_substring_regex(present, CODE))[0].as_py()
    return (
        f"{name!r} holds codes with leading zeros, such as {code!r}, and is treated as text. If "
        f"they are numbers, use numeric={name!r}"
    )


def look(format: ColumnFormat, numbers: Any, name: str) -> list[str]:
    """Say how numbers are read that are not written as a computer writes them."""
    seen = []
    if format.decimal == ",":
        seen.append("decimal commas")
    if format.thousands and matches_any(numbers, rf"[0-9][{format.thousands}][0-9]{{3}}"):
        seen.append("a sign between thousands")
    elif matches_any(tidy(numbers), "[0-9][ '][0-9]{3}"):
        seen.append("gaps between thousands")
    if format.percent:
        seen.append("%")
    if format.unit:
        seen.append(f"the unit {format.unit}")
    found = currencies(numbers, format)
    if found:
        seen.append("currencies")
    numbers = tidy(numbers)
    if matches_any(numbers, _NEGATIVE):
        seen.append("brackets or a minus behind if they are negative")
        numbers = numbers.filter(pa.compute.match_substring_regex(numbers, _NEGATIVE))
    if not seen:
        return []
    example = max(numbers.slice(0, 1_000).to_pylist(), key=len)
    value = as_numbers(pa.array([example]), format)[0][0]
    return [
        f"{name!r} is read as numbers with {_listed(seen)}: {example!r} is "
        f"{value:.15g}. If that is wrong, use decimal=... or categorical={name!r}",
        *([_about_currencies(found, name)] if len(found) > 1 else []),
    ]


def _about_currencies(found: list[str], name: str) -> str:
    return (
        f"{name!r} mixes the currencies {_listed(found)}, which count alike. Convert it to one "
        f"currency, or leave it out: drop={name!r}"
    )


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def words(
    others: Any, unknown: list[str], name: str, n_present: int, *, what: str = "numbers"
) -> list[str]:
    """Say which words among numbers or dates are read as missing."""
    if len(others) == 0:
        return []
    counts = Counter(text.strip() for text in others.to_pylist())
    shown = ", ".join(repr(word) for word, _ in counts.most_common(_MOST_SHOWN))
    more = f" and {len(counts) - _MOST_SHOWN} more" if len(counts) > _MOST_SHOWN else ""
    remedy = f" If they mean something, use categorical={name!r}" if unknown else ""
    return [
        f"{name!r} holds {what}; in {len(others):,} of {n_present:,} rows it holds {shown}{more}, "
        f"read as missing.{remedy}"
    ]


def conflict(numbers: Any, others: Any, name: str) -> str:
    """Say that both decimal signs occur."""
    return (
        f"{name!r} mixes decimal points and decimal commas, such as {numbers[0].as_py()!r} and "
        f"{others[0].as_py()!r}, and is treated as text. Write them all in the same way, or say "
        f"which sign is right with decimal=... and numeric={name!r}"
    )


def many_words(words: list[str], name: str, n_present: int) -> str:
    """Say that too many values are no numbers."""
    return (
        f"{name!r} holds numbers, but in {len(words):,} of {n_present:,} rows it does not, such as "
        f"{words[0]!r}. It is treated as text. To read these as missing, use numeric={name!r}"
    )


def times(texts: Any, format: ColumnFormat, name: str) -> str:
    """Say how durations or times of day are read."""
    first = texts[0].as_py()
    value = as_numbers(pa.array([first]), format)[0][0]
    return (
        f"{name!r} is read as durations or times of day: {first!r} is {value:.15g} in its last "
        f"unit. If that is wrong, use categorical={name!r}"
    )


def odd_numbers(texts: Any, name: str) -> str:
    """Say that texts begin with digits, but are no numbers that can be read."""
    first = texts[0].as_py()
    return (
        f"{name!r} looks like numbers or dates, such as {first!r}, but cannot be read as such and "
        "is treated as text. Write plain numbers in one unit, or dates such as 2024-05-31; or "
        f"leave it out: drop={name!r}"
    )


def looks_ordered(texts: Any) -> bool:
    """Return whether texts are quarters, weeks, times of day, lengths of time or fractions.

    Categories have no order, so that what is known about 5 PM says nothing about 6 PM.

    >>> looks_ordered(pa.array(["Q1 2024", "Q4 2023"])), looks_ordered(pa.array(["Q1", "red"]))
    (True, False)
    """
    return matches_all(texts, "(?i)" + "|".join(f"(?:{pattern})" for pattern in _ORDERED))


def month_format(texts: Any) -> str | None:
    """Return how months are written, for `date_format`; None if the texts are no months."""
    found = (written for pattern, written in _MONTHS.items() if matches_all(texts, pattern))
    written = next(found, None)
    format = ColumnFormat(date_format=None if written is None else as_strptime(written))
    return None if written is None or np.isnan(as_days(texts, format)).any() else written


def months(name: str, written: str, *, as_text: bool = False) -> str:
    """Say that a column may hold dates, and is read as something else."""
    what = "treated as text" if as_text else "read as a number"
    kind = "dates" if "D" in written else "months"
    return (
        f"{name!r} looks like {kind} written as {written} and is {what}. To read them as dates, "
        f"use date_format='{name}={written}'"
    )


def percent(name: str) -> str:
    """Say that only some values are percentages."""
    return (
        f"{name!r} holds % in some rows only, and is treated as text. Write all values in the same "
        f"way, or leave it out: drop={name!r}"
    )


def either_order(texts: Any, name: str) -> str:
    """Say that day and month cannot be told apart."""
    return (
        f"{name!r} looks like dates, such as {texts[0].as_py()!r}, but day and month are "
        f"ambiguous. It is treated as text. Use date_format='{name}=DD/MM/YYYY' or "
        f"date_format='{name}=MM/DD/YYYY'"
    )


def mixed_dates(texts: Any, date_format: str | None, name: str) -> str:
    """Say that dates are written in several ways."""
    is_other = np.isnan(as_days(texts, ColumnFormat(date_format=date_format)))
    first, other = (texts[int(np.argmax(mask))].as_py() for mask in (~is_other, is_other))
    return (
        f"{name!r} holds dates in several formats, such as {first!r} and {other!r}, and is "
        "treated as text. Write them all in the same way, or say how most are written: "
        f"date_format='{name}=DD/MM/YYYY'"
    )


def order(texts: Any, date_format: str, name: str) -> str:
    """Say how the first date is read."""
    days = as_days(texts, ColumnFormat(date_format=date_format))
    first = int(np.argmax(~np.isnan(days)))
    day = np.datetime64(int(days[first]), "D")
    return (
        f"{name!r} is read as dates: {texts[first].as_py()!r} is {day}. If that is wrong, use "
        f"date_format='{name}=...'"
    )


def other_order(swapped: Any, date_format: str | None, name: str) -> str:
    """Say that some dates make sense only with day and month exchanged."""
    first = "day" if str(date_format).index("d") < str(date_format).index("m") else "month"
    return (
        f"{name!r} holds {swapped[0].as_py()!r}, although most of its dates have the {first} "
        "first. Days up to 12 do not tell: more dates may be the wrong way round. Check how the "
        f"table was made, or leave the column out: drop={name!r}"
    )
