"""What is said about a column of texts, and patterns of texts that deserve a note."""

from __future__ import annotations

from typing import Any

#: A note names the column, and the option that decides otherwise.
_NOTES = {
    "empty": "{name!r} is empty. Nothing can be learned from it.",
    "prose": (
        "{name!r} holds free text and is left out. To learn from it as categories, use "
        "categorical={name!r}"
    ),
    "truths": "{name!r} holds {words}, read as true and false.",
    "codes": (
        "{name!r} holds codes with leading zeros, such as {first!r}, and is treated as text. If "
        "they are numbers, use numeric={name!r}"
    ),
    "look": (
        "{name!r} is read as numbers with {seen}: {first!r} is {value:.15g}. If that is wrong, "
        "use decimal=... or categorical={name!r}"
    ),
    "currencies": (
        "{name!r} mixes the currencies {found}, which count alike. Convert it to one currency, or"
        " leave it out: drop={name!r}"
    ),
    "words": (
        "{name!r} holds {what}; in {n:,} of {n_present:,} rows it holds {words}, read as missing."
    ),
    "unknown words": (
        "{name!r} holds {what}; in {n:,} of {n_present:,} rows it holds {words}, read as missing."
        " If they mean something, use categorical={name!r}"
    ),
    "conflict": (
        "{name!r} mixes decimal points and decimal commas, such as {first!r} and {other!r}, and "
        "is treated as text. Write them all in the same way, or say which sign is right with "
        "decimal=... and numeric={name!r}"
    ),
    "many words": (
        "{name!r} holds numbers, but in {n:,} of {n_present:,} rows it does not, such as "
        "{first!r}. It is treated as text. To read these as missing, use numeric={name!r}"
    ),
    "no numbers": (
        "{name!r} holds no numbers, although numeric=... names it. It is treated as text."
    ),
    "percent": (
        "{name!r} holds % in some rows only, and is treated as text. Write all values in the same"
        " way, or leave it out: drop={name!r}"
    ),
    "either sign": (
        "{name!r} could be read in two ways. Its {sign} is taken for the {meaning}. If that is "
        "wrong, use decimal={other!r}"
    ),
    "durations": (
        "{name!r} is read as durations or times of day: {first!r} is {value:.15g} in its last "
        "unit. If that is wrong, use categorical={name!r}"
    ),
    "odd": (
        "{name!r} looks like numbers or dates, such as {first!r}, but cannot be read as such and "
        "is treated as text. Write plain numbers in one unit, or dates such as 2024-05-31; or "
        "leave it out: drop={name!r}"
    ),
    "months": (
        "{name!r} looks like {what} written as {written} and is {taken}. To read them as dates, "
        "use date_format='{name}={written}'"
    ),
    "no such days": (
        "{name!r} looks like dates, such as {first!r}, but not all exist. It is treated as text. "
        "Say how they are written with date_format='{name}=...'"
    ),
    "either order": (
        "{name!r} looks like dates, such as {first!r}, but day and month are ambiguous. It is "
        "treated as text. Use date_format='{name}=DD/MM/YYYY' or date_format='{name}=MM/DD/YYYY'"
    ),
    "several formats": (
        "{name!r} holds dates in several formats, such as {first!r} and {other!r}, and is treated"
        " as text. Write them all in the same way, or say how most are written: "
        "date_format='{name}=DD/MM/YYYY'"
    ),
    "dates": (
        "{name!r} is read as dates: {first!r} is {day}. If that is wrong, use "
        "date_format='{name}=...'"
    ),
    "other order": (
        "{name!r} holds {other!r}, although most of its dates have the {part} first. Days up to "
        "12 do not show this: more dates may be the wrong way round. Check how the table was made, "
        "or leave the column out: drop={name!r}"
    ),
}


def note(key: str, name: str, **values: Any) -> str:
    """Return a note about a column."""
    return _NOTES[key].format(name=name, **values)


#: How months are written, and the format that reads them.
MONTHS = {
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
#: Quarters, weeks, times of day, lengths of time and fractions have an order, which is lost when
#: they are taken for categories.
ORDERED = (
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
