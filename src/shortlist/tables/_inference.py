"""What a column holds: numbers, dates, truths or categories, and how they are written.

Every debatable decision produces a note, which names the option that decides otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.extras import load_extra
from .._core.written import number
from ..exceptions import TableError
from ._dates import day_formats, other_order, read_date, read_dates
from .column_format import (
    OTHER_SIGN,
    PLAIN,
    TRUTHS,
    ColumnFormat,
    currencies,
    duration,
    find_number,
    is_currency,
    is_word_for_missing,
    number_parts,
    words_for_missing,
)
from .columns import is_moment, is_number, is_text, plain
from .options import as_strptime

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")

#: A column is plainly numeric (or of dates) if at most this share of its texts are other words.
_MOST_OTHER_WORDS = 0.05
_FEWEST_TEXTS = 50
_MOST_DIFFERENT = 0.5
_FEWEST_WORDS = 3
_MOST_SHOWN = 3
_CODE = "^0[0-9]+$"
#: Codes such as 3E2, which a computer reads as 300.
_LIKE_EXPONENTS = "^[0-9]{1,4}[eE][0-9]{1,2}$"
#: With a point as decimal sign these are thousandths, with a comma whole thousands.
_EITHER_WAY = r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})?$"
_WITH_UNIT = r"^[+-]?[0-9][0-9.,' ]*(?P<unit>[A-Za-zµ°²³/]{1,6})$"
#: A negative number in brackets, or with its minus behind.
_NEGATIVE = r"\)$|[0-9%A-Za-z€£$] *-$"
_LIKE_DAYS = r"^[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{2,4}$"
_HAS_A_YEAR = "^(19|20)[0-9]{2}[^0-9]|[^0-9](19|20)[0-9]{2}$"
_BEGINS_AS_A_NUMBER = r"^[^\p{L}\p{Nd}]{0,3}\p{Nd}"
#: Numbers that can be dates: their pattern, and how they would be written.
_NUMBERS_LIKE_DATES = {
    r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$": "YYYYMMDD",
    r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])$": "YYYYMM",
    r"^(0[1-9]|1[0-2])\.(19|20)[0-9]{2}$": "MM.YYYY",
}
#: The same for texts.
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
#: Quarters, weeks, times of day, lengths of time and fractions have an order, which is lost when
#: they are taken for categories.
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


@dataclass(frozen=True)
class Guess:
    """The kind and the format of a column, with notes.

    `signs` are the decimal signs that its numbers allow: one if they decide it, two if either is
    possible, none if there is no sign in them. If either is possible, only `seen` occurs.
    """

    kind: str
    format: ColumnFormat = PLAIN
    notes: list[str] = field(default_factory=list)
    signs: tuple[str, ...] = ()
    seen: str = ""


class _Texts:
    """The different texts of a named column, first seen first, and how many rows hold each."""

    def __init__(self, name: str, array: Any, counts: NDArray[np.int64]) -> None:
        self.name, self.array, self.counts = name, array, counts
        self.n_rows = int(counts.sum())

    @functools.cached_property
    def values(self) -> list[str]:
        return list(self.array.to_pylist())

    @classmethod
    def of(cls, column: Any, name: str, format: ColumnFormat) -> _Texts:
        """Count the texts that are not empty, and that the user does not call missing."""
        counted = pa.compute.utf8_trim_whitespace(column).drop_null().value_counts()
        values, counts = counted.field("values"), counted.field("counts")
        missing = pa.array(["", *format.missing])
        kept = pa.compute.invert(pa.compute.is_in(pa.compute.utf8_lower(values), missing))
        return cls(name, values.filter(kept), counts.filter(kept).to_numpy())

    @property
    def first(self) -> str:
        return str(self.array[0].as_py())

    def where(self, mask: Sequence[bool] | NDArray[np.bool_]) -> _Texts:
        mask = np.asarray(mask, dtype=bool)
        return _Texts(self.name, self.array.filter(pa.array(mask)), self.counts[mask])

    def known(self, format: ColumnFormat) -> _Texts:
        """Return the texts that do not mean "missing"."""
        return self.where([not is_word_for_missing(text, format) for text in self.values])

    def matching(self, pattern: str) -> NDArray[np.bool_]:
        matched = pa.compute.match_substring_regex(self.array, pattern)
        return np.array(matched, dtype=bool)

    def all(self, pattern: str) -> bool:
        return bool(self.matching(pattern).all())

    def any(self, pattern: str) -> bool:
        return bool(self.matching(pattern).any())

    def looks(self, what: str, remedy: str, *examples: str, taken: str = "treated as text") -> str:
        """Return a note on a column that is not taken for what it may be."""
        shown = " and ".join(repr(each) for each in examples or [self.first])
        return f"{self.name!r} {what}, such as {shown}, and is {taken}. {remedy}"

    def as_dates(self, written: str, taken: str) -> str:
        """Return a note on a column that is not taken for dates."""
        what = "dates" if "D" in written else "months"
        remedy = f"To read them as dates, use date_format='{self.name}={written}'"
        return self.looks(f"looks like {what} written as {written}", remedy, taken=taken)

    def is_read(self, what: str, example: str, value: Any, remedy: str) -> str:
        """Return a note on a column that is taken for something."""
        said = f"{self.name!r} is read as {what}: {example!r} is {value}."
        return f"{said} If that is wrong, use {remedy}"


def guess_column(
    column: Any, name: str, *, format: ColumnFormat = PLAIN, numeric: bool = False
) -> Guess:
    """Infer the kind and the format of an Arrow column, from its type or from all of its texts.

    `format` is what the user said about it; `numeric` says that it holds numbers.
    """
    column = plain(column)
    kind = column.type
    texts = _Texts.of(column, name, format) if is_text(kind) else None
    present = pa.compute.is_null(column, nan_is_null=True).false_count
    if not present or (texts and not texts.n_rows):
        return Guess("numeric", format, [f"{name!r} is empty. Nothing can be learned from it."])
    if texts:
        return _guess_texts(texts, format, numeric)
    if pa.types.is_boolean(kind):
        return Guess("boolean", format)
    if is_number(kind):
        return Guess("numeric", replace(format, whole=bool(pa.types.is_integer(kind))))
    if is_moment(kind):
        return Guess("date", format)
    raise TableError(
        f"A model cannot use values of type {kind}. Leave the column out, or "
        "convert it to numbers, texts, dates or true and false."
    )


def _guess_texts(texts: _Texts, format: ColumnFormat, numeric: bool = False) -> Guess:
    if format.date_format is not None:
        return _dates_as_told(texts, format)
    if numeric:
        return _forced_numbers(texts, format)
    ways = (_plain_numbers, _truths, _dates, _durations, _numbers)
    guesses = (guess(texts, format) for guess in ways)
    return next((guess for guess in guesses if guess), None) or _categories(texts, format)


def _as_text(texts: _Texts, format: ColumnFormat, *said: str) -> Guess:
    return Guess("categorical", format, [texts.looks(*said)])


def _mostly(texts: _Texts, is_read: Any, format: ColumnFormat, kind: str) -> Guess | None:
    """Return a kind that nearly all texts have; the others are read as missing, and noted."""
    words = texts.where(~is_read).known(format)
    is_plain = is_read.any() and words.n_rows <= _MOST_OTHER_WORDS * texts.n_rows
    return _with_words(texts, is_read, format, kind) if is_plain else None


def _with_words(texts: _Texts, is_read: Any, format: ColumnFormat, kind: str) -> Guess:
    others = texts.where(~is_read)
    missing = (*format.missing, *words_for_missing(others.values))
    format = replace(format, missing=tuple(dict.fromkeys(missing)))
    if not others.n_rows:
        return Guess(kind, format)
    most = np.argsort(-others.counts, kind="stable")[:_MOST_SHOWN]
    shown = ", ".join(repr(others.values[place]) for place in most)
    more = len(others.values) - _MOST_SHOWN
    shown += f" and {more} more" if more > 0 else ""
    said = (
        f"{texts.name!r} holds {'dates' if kind == 'date' else 'numbers'}; in {others.n_rows:,} of "
        f"{texts.n_rows:,} rows it holds {shown}, read as missing. If they mean something, use "
        f"categorical={texts.name!r}"
    )
    return Guess(kind, format, [said])


def is_prose(column: Any) -> bool:
    """Return whether a column holds free text: several words, mostly different in every row."""
    present = plain(column).drop_null()
    if len(present) < _FEWEST_TEXTS or len(present.unique()) < _MOST_DIFFERENT * len(present):
        return False
    words = pa.compute.count_substring_regex(present, r"\S+")
    return bool(np.median(np.array(words)) > _FEWEST_WORDS)


def settle_decimals(
    guesses: dict[str, Guess], *, decimal: str | None, sep: str | None
) -> dict[str, Guess]:
    """Decide about columns that could be read either way, by what the others say."""
    seen = {guess.signs[0] for guess in guesses.values() if len(guess.signs) == 1}
    usual = "," if sep == ";" else "."
    decimal = decimal or (next(iter(seen)) if len(seen) == 1 else usual)
    all_commas = seen == {","} and decimal == ","  # some files have both
    return {name: _settled(guess, name, decimal, all_commas) for name, guess in guesses.items()}


def _settled(guess: Guess, name: str, decimal: str, all_commas: bool) -> Guess:
    if guess.format.whole and all_commas:  # later numbers may have thousands
        return replace(guess, format=replace(guess.format, decimal=",", thousands="."))
    if len(guess.signs) < 2:
        return guess
    other, is_decimal = OTHER_SIGN[decimal], guess.seen == decimal
    sign = "comma" if guess.seen == "," else "point"
    meaning = "decimal sign" if is_decimal else "sign between thousands"
    said = (
        f"{name!r} could be read in two ways. Its {sign} is taken for the {meaning}. If that is "
        f"wrong, use decimal={other!r}"
    )
    thousands = other if not is_decimal or decimal == "," else ""
    format = replace(guess.format, decimal=decimal, thousands=thousands)
    return replace(guess, format=format, notes=[*guess.notes, said], signs=(decimal,))


# --- numbers ---


def _plain_numbers(texts: _Texts, format: ColumnFormat) -> Guess | None:
    """Return numbers as a computer writes them, which are by far the most frequent."""
    try:
        pa.compute.cast(texts.array, pa.float64())
    except pa.ArrowInvalid:
        return None
    codes = texts.matching(_CODE)
    if codes.any() and texts.all("^[0-9]+$"):
        remedy = f"If they are numbers, use numeric={texts.name!r}"
        return _as_text(texts.where(codes), format, "holds codes with leading zeros", remedy)
    notes = _about_days(texts)
    exponents = texts.where(texts.matching(_LIKE_EXPONENTS))
    if exponents.n_rows:
        first, remedy = exponents.first, f"categorical={texts.name!r}"
        notes.append(exponents.is_read("numbers", first, number(float(first)), remedy))
    if not texts.any(r"\."):
        return Guess("numeric", replace(format, whole=True), notes)
    if format.decimal == ",":
        return None
    if not format.thousands and not notes and texts.all(_EITHER_WAY):
        return Guess("numeric", format, [], (".", ","), ".")
    return Guess("numeric", format, notes, (".",))


def _about_days(texts: _Texts) -> list[str]:
    """Say that numbers may be dates: read as numbers, months have gaps between years."""
    finite = texts.where(~texts.matching("(?i)^[+-]?(nan|inf)"))
    written = next((w for pattern, w in _NUMBERS_LIKE_DATES.items() if finite.all(pattern)), None)
    if written is None or len(finite.values) < 2:
        return []
    return [finite.as_dates(written, "read as a number")]


class _Numbers:
    """The texts of a column as numbers of one format: those it reads, and the others."""

    def __init__(self, texts: _Texts, format: ColumnFormat) -> None:
        parts = [number_parts(text, format) for text in texts.values]
        self.sign, self.is_read = format.decimal, np.array([part is not None for part in parts])
        self.read, self.others = texts.where(self.is_read), texts.where(~self.is_read)
        found = [part for part in parts if part]
        self.currencies = currencies(found)
        self.n_percent = int(self.read.counts[[part["percent"] == "%" for part in found]].sum())
        self.is_mixed = 0 < self.n_percent < self.read.n_rows


def _ways(texts: _Texts, format: ColumnFormat) -> tuple[list[_Numbers], ColumnFormat]:
    """Read numbers with each decimal sign that is possible, the best way first."""
    signs = [format.decimal] if format.thousands else [".", ","]
    format = replace(format, unit=_unit(texts))
    forms = [replace(format, decimal=sign, thousands=OTHER_SIGN[sign]) for sign in signs]
    ways = [_Numbers(texts, form) for form in forms]
    return sorted(ways, key=lambda way: -way.read.n_rows), format


def _forced_numbers(texts: _Texts, format: ColumnFormat) -> Guess:
    ways, with_unit = _ways(texts, format)
    if ways[0].read.n_rows and not ways[0].is_mixed:
        return _as_numbers(texts, ways, with_unit)
    what = "holds no numbers, although numeric=... names it"
    return _as_text(texts, format, what, "Correct it, or name another column.")


def _numbers(texts: _Texts, format: ColumnFormat) -> Guess | None:
    """Return numbers with decimal commas, thousands, currencies or %, and a few other words."""
    ways, with_unit = _ways(texts, format)
    best, name = ways[0], texts.name
    is_either = np.logical_or.reduce([way.is_read for way in ways])
    n_read, n_either = best.read.n_rows, int(texts.counts[is_either].sum())
    few, words = _MOST_OTHER_WORDS * texts.n_rows, best.others.known(format)
    if n_either > n_read and n_either >= texts.n_rows - few:
        what = "mixes decimal points and decimal commas"
        remedy = f"Write them in the same way, or use decimal=... and numeric={name!r}"
        return _as_text(texts, format, what, remedy, best.read.first, best.others.first)
    if len(best.read.values) < 2 or (words.n_rows > few and 2 * n_read <= texts.n_rows):
        return None
    if words.n_rows > few:
        what = f"holds numbers, but in {words.n_rows:,} of {texts.n_rows:,} rows other words"
        remedy = f"To read these as missing, use numeric={name!r}"
        return _as_text(words, format, what, remedy)
    if best.is_mixed:
        remedy = f"Write all values in the same way, or leave it out: drop={name!r}"
        return _as_text(texts, format, "holds % in some rows only", remedy)
    return _as_numbers(texts, ways, with_unit)


def _as_numbers(texts: _Texts, ways: list[_Numbers], format: ColumnFormat) -> Guess:
    best = ways[0]
    format = replace(format, percent=best.n_percent > 0, currency=" and ".join(best.currencies))
    seen = "," if best.read.any(",") else "."
    signs: tuple[str, ...] = (best.sign,)
    if len(ways) > 1 and best.read.n_rows == ways[1].read.n_rows:
        signs = (".", ",") if best.read.any("[.,]") else ()
    if len(signs) == 1 and "," in (best.sign, seen):
        format = replace(format, decimal=best.sign, thousands=OTHER_SIGN[best.sign])
    look = _about_look(best, format) if len(signs) < 2 else []
    guess = _with_words(texts, best.is_read, format, "numeric")
    return replace(guess, notes=[*look, *guess.notes], signs=signs, seen=seen)


def _unit(texts: _Texts) -> str:
    """Return what stands behind nearly every number, such as kg."""
    found = pa.compute.extract_regex(texts.array.slice(0, 1_000), _WITH_UNIT)
    units = pa.compute.struct_field(found, "unit")
    if len(units.unique().drop_null()) != 1 or 2 * units.null_count > len(units):
        return ""
    unit = str(units.drop_null()[0].as_py())
    return "" if is_currency(unit) else unit


def _about_look(best: _Numbers, format: ColumnFormat) -> list[str]:
    """Say how numbers are read that are not written as a computer writes them."""
    numbers = best.read
    negative = numbers.where(numbers.matching(_NEGATIVE))
    has_thousands = format.thousands and numbers.any(f"[0-9][{format.thousands}][0-9]{{3}}")
    written = replace(format, missing=(), thousands=format.thousands if has_thousands else "")
    looks = [
        written.in_words,
        "a gap between thousands" if numbers.any(r"[0-9][\s'’][0-9]{3}") else "",
        "brackets or a minus behind if negative" if negative.n_rows else "",
        "which count alike" if len(best.currencies) > 1 else "",
    ]
    seen = ", ".join(filter(None, looks))
    if not seen:
        return []
    first = max((negative if negative.n_rows else numbers).values[:1_000], key=len)
    remedy = f"decimal=..., categorical={numbers.name!r} or drop={numbers.name!r}"
    value = f"{find_number(first, format):.15g}"
    return [numbers.is_read(f"numbers ({seen})", first, value, remedy)]


def _durations(texts: _Texts, format: ColumnFormat) -> Guess | None:
    """Return durations and times of day, which have one colon, or two."""
    if not texts.any("[0-9]:[0-9]"):
        return None
    read = {n: np.array([duration(t, n) is not None for t in texts.values]) for n in (1, 2)}
    colons, is_read = max(read.items(), key=lambda pair: int(texts.counts[pair[1]].sum()))
    guess = _mostly(texts, is_read, replace(format, colons=colons), "numeric")
    if guess is None:
        return None
    first = texts.where(is_read).first
    value = f"{duration(first, colons):.15g} in its last unit"
    remedy = f"categorical={texts.name!r}"
    said = texts.is_read("durations or times of day", first, value, remedy)
    return replace(guess, notes=[said, *guess.notes])


# --- truths, dates and categories ---


def _truths(texts: _Texts, format: ColumnFormat) -> Guess | None:
    words = {text.lower() for text in texts.values}
    if not words <= set(TRUTHS) or words <= {"0", "1"}:
        return None
    if words <= {"true", "false"}:
        return Guess("boolean", format)
    shown = " and ".join(repr(word) for word in sorted(words, key=lambda word: -TRUTHS[word])[:4])
    return Guess("boolean", format, [f"{texts.name!r} holds {shown}, read as true and false."])


def _dates(texts: _Texts, format: ColumnFormat) -> Guess | None:
    known = texts.known(format)
    if not known.n_rows:
        return None
    formats = day_formats(known.values, known.counts)
    ways = (f"date_format='{texts.name}={order}/YYYY'" for order in ("DD/MM", "MM/DD"))
    remedy = f"Say how they are written, for example with {' or '.join(ways)}"
    if not formats:
        what = "looks like dates that do not all exist"
        return _as_text(known, format, what, remedy) if known.all(_LIKE_DAYS) else None
    date_format, n_read = formats[0]
    is_read = ~np.isnan(read_dates(known.values, date_format))
    read, left = known.where(is_read), known.where(~is_read)
    if known.n_rows - n_read > _MOST_OTHER_WORDS * known.n_rows:
        what = "holds dates in several formats"
        return _as_text(known, format, what, remedy, read.first, left.first)
    if len(formats) > 1:
        return _as_text(known, format, "looks like dates whose order is ambiguous", remedy)
    found = _dates_as_told(texts, replace(format, date_format=date_format))
    notes = _about_other_order(left, date_format)
    if date_format not in (None, "%d.%m.%Y"):
        day = np.datetime64(int(read_date(read.first, date_format)), "D")
        notes.append(read.is_read("dates", read.first, day, f"date_format='{texts.name}=...'"))
    return replace(found, notes=[*notes, *found.notes])


def _about_other_order(left: _Texts, date_format: str | None) -> list[str]:
    """Say that some dates have day and month in the other order, if some must have."""
    other = other_order(date_format)
    if other is None:
        return []
    swapped = left.where(~np.isnan(read_dates(left.values, other)))
    if not swapped.n_rows:
        return []
    part = "day" if str(date_format).index("d") < str(date_format).index("m") else "month"
    return [
        f"{left.name!r} holds {swapped.first!r}, although most of its dates have the {part} first. "
        "Days up to 12 do not show this: more dates may be the wrong way round. Check how the "
        f"table was made, or leave the column out: drop={left.name!r}"
    ]


def _dates_as_told(texts: _Texts, format: ColumnFormat) -> Guess:
    """Read dates as the user says, if most texts are such dates."""
    is_read = ~np.isnan(read_dates(texts.values, format.date_format))
    guess = _mostly(texts, is_read, format, "date")
    return guess or _guess_texts(texts, replace(format, date_format=None))


def _are_dates(texts: list[str], date_format: str) -> bool:
    return not np.isnan(read_dates(texts, date_format)).any()


def _categories(texts: _Texts, format: ColumnFormat) -> Guess:
    """Return categories, with a note if the texts look like months, numbers or parts of years."""
    known = texts.known(format)
    if not known.n_rows:
        return Guess("categorical", format)
    for pattern, written in _MONTHS.items():
        if known.all(pattern) and _are_dates(known.values, as_strptime(written)):
            return Guess("categorical", format, [known.as_dates(written, "treated as text")])
    n_numbers = int(known.counts[known.matching(_BEGINS_AS_A_NUMBER)].sum())
    many = len(known.values) >= _FEWEST_TEXTS or known.all(_HAS_A_YEAR)
    is_odd = many and n_numbers >= (1 - _MOST_OTHER_WORDS) * known.n_rows
    if is_odd or known.all("(?i)" + "|".join(f"(?:{pattern})" for pattern in _ORDERED)):
        remedy = "Write plain numbers in one unit, or dates such as 2024-05-31"
        remedy += f"; or leave it out: drop={texts.name!r}"
        return _as_text(known, format, "looks like numbers or dates", remedy)
    return Guess("categorical", format)
