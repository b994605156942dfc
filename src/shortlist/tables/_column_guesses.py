"""What a column holds: numbers, dates, truths or categories, and how they are written.

Of all ways to read a column, that which reads most of its texts is taken. Every debatable decision
produces a note, which names the option that decides otherwise.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrow import pa
from .._core.formatting import number
from ..exceptions import TableError
from ._source import as_strptime, listed
from .column_format import (
    DATE_FORMATS,
    OTHER_SIGN,
    PLAIN,
    TRUTHS,
    ColumnFormat,
    currencies,
    find_date,
    find_value,
    is_currency,
    is_word_for_missing,
    number_parts,
    words_for_missing,
)
from .columns import is_moment, is_number, is_text, plain

#: A column is plainly numeric (or of dates) if at most this share of its texts are other words.
_MOST_OTHER_WORDS = 0.05
_FEWEST_TEXTS = 50
_MOST_DIFFERENT = 0.5
_FEWEST_WORDS = 3
_MOST_SHOWN = 3
_SAMPLE = 200
_CODE = "^0[0-9]+$"
_OF_POSTAL_CODES = re.compile(
    r"(?i)(?:^|[\W_])(?:zip|plz)(?:[\W_]|$)|zip_?code|post_?(?:al|code|leit)"
)
#: Floats hold whole numbers up to 2 ** 53 exactly.
_MOST_DIGITS = 15
#: Codes such as 3E2, which a computer reads as 300.
_LIKE_EXPONENTS = "^[0-9]{1,4}[eE][0-9]{1,2}$"
#: With a point as decimal sign these are thousandths, with a comma whole thousands.
_EITHER_WAY = r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})?$"
_WITH_UNIT = r"^[+-]?[0-9][0-9.,' ]*(?P<unit>[A-Za-zµ°²³/]{1,6})$"
#: A negative number in brackets, or with its minus behind.
_NEGATIVE = r"\)$|[0-9%A-Za-z€£$] *-$"
_COMPACT = r"^[0-9]{8}\b"  # as likely a number as a date
_HAS_A_YEAR = "^(19|20)[0-9]{2}[^0-9]|[^0-9](19|20)[0-9]{2}$"
_BEGINS_AS_A_NUMBER = r"^[^\p{L}\p{Nd}]{0,3}\p{Nd}"
#: Numbers, and texts, that are taken for dates only if the user says so.
_NUMBERS_LIKE_DATES = ("YYYYMMDD", "YYYYMM", "MM.YYYY")
_MONTHS = ("YYYY-MM", "YYYY/MM", "MM/YYYY", "MM-YYYY", "%b-%y", "%b-%Y", "%b %Y", "%B %Y")
_CENTURIES = (-25_567, 47_481)  # days since 1970 of 1900-01-01 and 2099-12-31
_YEAR = r"(?:19|20)[0-9]{2}"
_PART_OF_YEAR = r"(?:Q ?[1-4]|H ?[12]|(?:W|KW|CW|week) ?[0-5]?[0-9])"
_MONTH = (
    r"\b(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|janv|févr|mars|avr|juin"
    r"|juil|août|déc)[\p{L}]*\b"
)
#: Quarters, weeks, times of day, lengths of time and fractions have an order, which is lost when
#: they are taken for categories.
_ORDERED = (
    r"^[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{2,4}$",  # 31.02.2024, a day that does not exist
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

    `sign` is the decimal sign that its numbers show, if they do. With `either`, it may be a decimal
    sign or one between thousands. A column that `is_empty` has no value in any row.
    """

    kind: str
    format: ColumnFormat = PLAIN
    notes: list[str] = field(default_factory=list)
    sign: str = ""
    either: bool = False
    is_empty: bool = False


Candidates = list[tuple[str, ColumnFormat]]


class _Texts:
    """The different texts of a named column, first seen first, how many rows hold each, and notes.

    Parts of the texts share the notes.
    """

    def __init__(self, name: str, array: Any, counts: NDArray[np.int64], notes: list[str]) -> None:
        self.name, self.array, self.counts, self.notes = name, array, counts, notes
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
        return cls(name, values.filter(kept), counts.filter(kept).to_numpy(), [])

    @property
    def first(self) -> str:
        return str(self.array[0].as_py())

    def where(self, mask: Sequence[bool] | NDArray[np.bool_]) -> _Texts:
        mask = np.asarray(mask, dtype=bool)
        return _Texts(self.name, self.array.filter(pa.array(mask)), self.counts[mask], self.notes)

    def known(self) -> _Texts:
        """Return the texts that do not mean "missing"."""
        return self.where([not is_word_for_missing(text) for text in self.values])

    def sample(self) -> _Texts:
        """Return at most a few hundred of the texts."""
        return self.where(np.arange(len(self.array)) % max(1, len(self.array) // _SAMPLE) == 0)

    def matching(self, pattern: str) -> NDArray[np.bool_]:
        matched = pa.compute.match_substring_regex(self.array, pattern)
        return np.array(matched, dtype=bool)

    def all(self, pattern: str) -> bool:
        return bool(self.matching(pattern).all())

    def any(self, pattern: str) -> bool:
        return bool(self.matching(pattern).any())

    def note_reading(self, what: str, example: str, value: Any, remedy: str) -> None:
        """Say how the column is read."""
        said = f"{self.name!r} is read as {what}: {example!r} is {value}."
        self.notes.append(f"{said} If that is wrong, use {remedy}")

    def as_text(self, format: ColumnFormat, what: str, *examples: str, remedy: str = "") -> Guess:
        """Return categories, and say that the column may be something else."""
        shown = " and ".join(repr(each) for each in examples or [self.first])
        remedy = remedy or (
            f"To read it otherwise, write all values in one way, or use numeric={self.name!r} "
            f"(with decimal=... or na=...) or date_format='{self.name}=DD/MM/YYYY'; to leave it "
            f"out, drop={self.name!r}"
        )
        said = f"{self.name!r} {what}, such as {shown}, and is treated as text. {remedy}"
        self.notes.append(said)
        return Guess("categorical", format)

    def note_dates(self, formats: Sequence[str], taken: str) -> bool:
        """Say that all texts can be read as dates of these centuries, and are not."""
        first, last = _CENTURIES
        for written in formats if len(self.array) > 1 else ():
            days = (find_date(text, as_strptime(written)) for text in self.values)
            if all(day is not None and first <= day <= last for day in days):
                self.notes.append(
                    f"{self.name!r} looks like {'dates' if 'D' in written else 'months'} written "
                    f"as {written}, such as {self.first!r}, and is {taken}. To read them as dates, "
                    f"use date_format='{self.name}={written}'"
                )
                return True
        return False


class _Way:
    """Texts as one kind and format reads them: their values, those that are read, and the rest."""

    def __init__(self, texts: _Texts, kind: str, format: ColumnFormat) -> None:
        self.kind, self.format = kind, format
        found = [find_value(text, kind, format) for text in texts.values]
        self.values = np.array(found, dtype=np.float64)
        if kind == "date" and format.date_format is None:
            self.values[texts.matching(_COMPACT)] = np.nan
        self.is_read = ~np.isnan(self.values)
        self.read, self.left = texts.where(self.is_read), texts.where(~self.is_read)

    def rivals(self, ways: list[_Way]) -> list[bool]:
        """Return, for each other way that reads as many rows, whether it reads other values."""
        alike = [way for way in ways if way is not self and way.read.n_rows == self.read.n_rows]
        return [not np.array_equal(way.values, self.values, equal_nan=True) for way in alike]


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
        return Guess("numeric", format, is_empty=True)
    if texts:
        guess = _guess_texts(texts, format, numeric)
        return replace(guess, notes=texts.notes)
    if pa.types.is_boolean(kind):
        return Guess("boolean", format)
    if pa.types.is_integer(kind):
        largest = max(abs(end.as_py()) for end in pa.compute.min_max(column).values())
        about = _about_codes(name, str(column.drop_null()[0]), len(str(largest)))
        return Guess("numeric", replace(format, whole=True), about)
    if is_number(kind):
        return Guess("numeric", format)
    if is_moment(kind):
        return Guess("date", format)
    raise TableError(
        f"A model cannot use values of type {kind}. Leave the column out, or "
        "convert it to numbers, texts, dates or true and false."
    )


def _guess_texts(texts: _Texts, format: ColumnFormat, numeric: bool) -> Guess:
    if format.date_format is not None:
        said = _Way(texts, "date", format)
        if said.read.n_rows and said.left.known().n_rows <= _MOST_OTHER_WORDS * texts.n_rows:
            return _with_words(said, format, texts)
        format = replace(format, date_format=None)
    if numeric:
        ways = _best_first(texts, _formats_of_numbers(texts, format))
        if ways[0].read.n_rows:
            return _as_numbers(texts, format, ways)
        return texts.as_text(format, "holds no numbers, although numeric=... names it")
    simple = _plain_numbers(texts, format) or _truths(texts, format)
    if simple:
        return simple
    candidates = [("date", replace(format, date_format=written)) for written in DATE_FORMATS]
    candidates += _formats_of_numbers(texts, format)
    ways = _likely(texts, candidates)
    if not ways or (ways[0].kind == "numeric" and len(ways[0].read.array) < 2):
        return _categories(texts.known(), format)
    return _judged(texts, format, ways, candidates)


def _formats_of_numbers(texts: _Texts, format: ColumnFormat) -> Candidates:
    """Return durations, and numbers with each decimal sign, with and without %."""
    times = [replace(format, colons=colons) for colons in (1, 2)]
    format = replace(format, unit=_unit(texts))
    signs = [format.decimal] if format.thousands else [".", ","]
    formats = [replace(format, decimal=sign, thousands=OTHER_SIGN[sign]) for sign in signs]
    shares = [replace(each, percent=True) for each in formats]
    return [("numeric", each) for each in (*times, *formats, *shares)]


def _best_first(texts: _Texts, candidates: Candidates) -> list[_Way]:
    return sorted((_Way(texts, *each) for each in candidates), key=lambda way: -way.read.n_rows)


def _likely(texts: _Texts, candidates: Candidates) -> list[_Way]:
    """Return the ways that read at least half of a sample."""
    sample = texts.sample()
    if 2 * sample.matching("[0-9]").sum() < len(sample.array):
        return []
    tried = ((each, _Way(sample, *each)) for each in candidates)
    likely = [each for each, way in tried if 2 * len(way.read.array) >= len(sample.array)]
    return _best_first(texts, likely)


def _judged(texts: _Texts, format: ColumnFormat, ways: list[_Way], candidates: Candidates) -> Guess:
    """Take the best way, unless too much is left, or something else could be meant."""
    best, few = ways[0], _MOST_OTHER_WORDS * texts.n_rows
    words, what = best.left.known(), "dates" if best.kind == "date" else "numbers"
    sample, sort = words.sample(), (best.kind, best.format.colons)
    alike = [_Way(sample, *each) for each in candidates if (each[0], each[1].colons) == sort]
    other = sample.where(np.any([way.is_read for way in alike], axis=0))
    n_strange = words.n_rows * (1 - other.n_rows / max(1, sample.n_rows))
    if other.n_rows and n_strange <= few and (best.kind == "numeric" or words.n_rows > few):
        said = f"holds {what} that are written in several ways"
        return texts.as_text(format, said, best.read.first, other.first)
    if words.n_rows > few and 2 * best.read.n_rows <= texts.n_rows:
        return _categories(texts.known(), format)
    if words.n_rows > few:
        said = f"holds {what}, but in {words.n_rows:,} of {texts.n_rows:,} rows other words"
        return words.as_text(format, said)
    if best.kind == "numeric":
        return _as_numbers(texts, format, ways)
    if any(best.rivals(ways)):
        return texts.as_text(format, "looks like dates whose order is ambiguous")
    return _as_dates(texts, best, other)


def _with_words(way: _Way, format: ColumnFormat, texts: _Texts) -> Guess:
    """Return the kind of a way with a format; the texts that it does not read are missing."""
    missing = (*format.missing, *words_for_missing(way.left.values))
    if way.left.n_rows:
        texts.notes.append(
            f"{texts.name!r} holds {'dates' if way.kind == 'date' else 'numbers'}; in "
            f"{way.left.n_rows:,} of {texts.n_rows:,} rows it holds "
            f"{listed(way.left.values, _MOST_SHOWN)}, read as missing. If they mean something, use "
            f"categorical={texts.name!r}"
        )
    return Guess(way.kind, replace(format, missing=tuple(dict.fromkeys(missing))))


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
    seen = {guess.sign for guess in guesses.values() if guess.sign and not guess.either}
    usual = "," if sep == ";" else "."
    decimal = decimal or (next(iter(seen)) if len(seen) == 1 else usual)
    all_commas = seen == {","} and decimal == ","  # some files have both
    return {name: _settled(guess, name, decimal, all_commas) for name, guess in guesses.items()}


def _settled(guess: Guess, name: str, decimal: str, all_commas: bool) -> Guess:
    if guess.format.whole and all_commas:  # later numbers may have thousands
        return replace(guess, format=replace(guess.format, decimal=",", thousands="."))
    if not guess.either:
        return guess
    other, is_decimal = OTHER_SIGN[decimal], guess.sign == decimal
    sign = "comma" if guess.sign == "," else "point"
    meaning = "decimal sign" if is_decimal else "sign between thousands"
    said = (
        f"{name!r} could be read in two ways. Its {sign} is taken for the {meaning}. If that is "
        f"wrong, use decimal={other!r}"
    )
    thousands = other if not is_decimal or decimal == "," else ""
    format = replace(guess.format, decimal=decimal, thousands=thousands)
    return replace(guess, format=format, notes=[*guess.notes, said])


# --- numbers ---


def _plain_numbers(texts: _Texts, format: ColumnFormat) -> Guess | None:
    """Return numbers as a computer writes them, which are by far the most frequent."""
    has_points = texts.any(r"\.")
    try:
        pa.compute.cast(texts.array, pa.float64())
    except pa.ArrowInvalid:
        return None
    if has_points and format.decimal == ",":
        return None
    codes, exponents = texts.matching(_CODE), texts.where(texts.matching(_LIKE_EXPONENTS))
    if codes.any() and texts.all("^[0-9]+$"):
        remedy = f"If they are numbers, use numeric={texts.name!r}"
        return texts.where(codes).as_text(format, "holds codes with leading zeros", remedy=remedy)
    texts.note_dates(_NUMBERS_LIKE_DATES, "read as a number")
    if exponents.n_rows:
        first, remedy = exponents.first, f"categorical={texts.name!r}"
        texts.note_reading("numbers", first, number(float(first)), remedy)
    if not has_points:
        longest = pa.compute.max(pa.compute.utf8_length(texts.array)).as_py()
        texts.notes += _about_codes(texts.name, texts.first, longest)
        return Guess("numeric", replace(format, whole=True))
    return Guess("numeric", format, [], ".", not format.thousands and texts.all(_EITHER_WAY))


def _about_codes(name: str, first: str, n_digits: int) -> list[str]:
    """Say that whole numbers may be postal codes, or have more digits than a float."""
    if n_digits > _MOST_DIGITS:
        return [
            f"{name!r} holds whole numbers with more than {_MOST_DIGITS} digits, of which the last "
            f"ones are lost. If they are ids or codes, use categorical={name!r} or drop={name!r}"
        ]
    if _OF_POSTAL_CODES.search(name):
        return [
            f"{name!r} is read as numbers: {first!r} is a size. Postal codes are not, and lose "
            f"their leading zeros as numbers. If they are codes, use categorical={name!r}"
        ]
    return []


def _as_numbers(texts: _Texts, format: ColumnFormat, ways: list[_Way]) -> Guess:
    """Return numbers with decimal commas, thousands, currencies, % or colons."""
    best = ways[0]
    if best.format.colons:
        first, value = best.read.first, f"{best.values[best.is_read][0]:.15g} in its last unit"
        remedy = f"categorical={texts.name!r}"
        texts.note_reading("durations or times of day", first, value, remedy)
        return _with_words(best, best.format, texts)
    parts = (number_parts(text, best.format) for text in best.read.values)
    currency = " and ".join(currencies(part for part in parts if part))
    format = replace(format, unit=best.format.unit, percent=best.format.percent, currency=currency)
    sign, seen = best.format.decimal, "," if best.read.any(",") else "."
    rivals = best.rivals(ways)
    if any(rivals):
        return replace(_with_words(best, format, texts), sign=seen, either=True)
    if "," in (sign, seen):
        format = replace(format, decimal=sign, thousands=OTHER_SIGN[sign])
    _note_look(best, format)
    return replace(_with_words(best, format, texts), sign="" if rivals else sign)


def _unit(texts: _Texts) -> str:
    """Return what stands behind nearly every number, such as kg."""
    found = pa.compute.extract_regex(texts.array.slice(0, 1_000), _WITH_UNIT)
    units = pa.compute.struct_field(found, "unit")
    if len(units.unique().drop_null()) != 1 or 2 * units.null_count > len(units):
        return ""
    unit = str(units.drop_null()[0].as_py())
    return "" if is_currency(unit) else unit


def _note_look(best: _Way, format: ColumnFormat) -> None:
    """Say how numbers are read that are not written as a computer writes them."""
    numbers = best.read
    negative = numbers.where(numbers.matching(_NEGATIVE))
    has_thousands = format.thousands and numbers.any(f"[0-9][{format.thousands}][0-9]{{3}}")
    written = replace(format, missing=(), thousands=format.thousands if has_thousands else "")
    looks = [
        written.in_words,
        "a gap between thousands" if numbers.any(r"[0-9][\s'’][0-9]{3}") else "",
        "brackets or a minus behind if negative" if negative.n_rows else "",
        "which count alike" if " and " in format.currency else "",
    ]
    seen = ", ".join(filter(None, looks))
    if seen:
        first = max((negative if negative.n_rows else numbers).values[:1_000], key=len)
        remedy = f"decimal=..., categorical={numbers.name!r} or drop={numbers.name!r}"
        value = f"{find_value(first, 'numeric', best.format):.15g}"
        numbers.note_reading(f"numbers ({seen})", first, value, remedy)


# --- truths, dates and categories ---


def _truths(texts: _Texts, format: ColumnFormat) -> Guess | None:
    words = {text.lower() for text in texts.values}
    if not words <= set(TRUTHS) or words <= {"0", "1"}:
        return None
    if not words <= {"true", "false"}:
        shown = " and ".join(map(repr, sorted(words, key=lambda word: -TRUTHS[word])[:4]))
        texts.notes.append(f"{texts.name!r} holds {shown}, read as true and false.")
    return Guess("boolean", format)


def _as_dates(texts: _Texts, way: _Way, other: _Texts) -> Guess:
    """Return dates, with notes on an unusual format and on dates in another one."""
    written = way.format.date_format
    if other.n_rows:
        texts.notes.append(
            f"{texts.name!r} holds {other.first!r}, although most of its dates are written as "
            f"{written or 'YYYY-MM-DD'}. Others may be the wrong way round, without showing it. "
            f"Check how the table was made, or leave the column out: drop={texts.name!r}"
        )
    if written not in (None, "%d.%m.%Y"):
        day = np.datetime64(int(way.values[way.is_read][0]), "D")
        texts.note_reading("dates", way.read.first, day, f"date_format='{texts.name}=...'")
    return _with_words(way, way.format, texts)


def _categories(known: _Texts, format: ColumnFormat) -> Guess:
    """Return categories, with a note if the texts look like months, numbers or parts of years."""
    sample = known.sample()
    if known.n_rows and sample.all("[0-9]"):
        formats = [replace(format, date_format=written) for written in DATE_FORMATS]
        dates = [_Way(sample, "date", each) for each in formats]
        best = max(dates, key=lambda way: way.read.n_rows)
        if np.any([way.is_read for way in dates], axis=0).all():
            said = "holds dates that are written in several ways"
            return known.as_text(format, said, best.read.first, best.left.first)
    if not known.n_rows or known.note_dates(_MONTHS, "treated as text"):
        return Guess("categorical", format)
    n_numbers = int(known.counts[known.matching(_BEGINS_AS_A_NUMBER)].sum())
    many = len(known.array) >= _FEWEST_TEXTS or known.all(_HAS_A_YEAR)
    is_odd = many and n_numbers >= (1 - _MOST_OTHER_WORDS) * known.n_rows
    if is_odd or known.all("(?i)" + "|".join(f"(?:{pattern})" for pattern in _ORDERED)):
        return known.as_text(format, "looks like numbers or dates")
    return Guess("categorical", format)
