"""What a column of texts holds: numbers, dates, truths or categories, and how they are written.

Everything that is decided here and that a reader could see otherwise gets a note, which names the
column and the option that decides otherwise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._core.extras import load_extra
from . import _inference_notes as about
from ._dates import as_days, day_formats, other_order
from .column_format import (
    PLAIN,
    TRUTHS,
    ColumnFormat,
    combined,
    currencies,
    is_currency,
    is_word_for_missing,
    lowered,
    matches_all,
    matches_any,
    matches_numbers,
    matches_times,
    means_missing,
    words_for_missing,
)

pa = load_extra("pyarrow", needed_for="Reading tables")

#: A column is plainly numeric (or of dates) if at most this share of its texts are other words.
_MOST_OTHER_WORDS = 0.05
_FEWEST_TEXTS = 50
_MOST_DIFFERENT = 0.5
_FEWEST_WORDS = 3
_DIGITS = r"^[0-9]+$"
#: With a point as decimal sign these are thousandths, with a comma whole thousands.
_EITHER_WAY = r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})?$"
_WITH_UNIT = r"^[+-]?[0-9][0-9.,' ]*(?P<unit>[A-Za-zµ°²³/]{1,6})$"
_MAY_BE_A_DATE = r"^\s*[0-9]{1,4}[./ -]|^\s*[A-Z][a-z]{2,8},? [A-Z0-9]"
_HAS_A_YEAR = "^(19|20)[0-9]{2}[^0-9]|[^0-9](19|20)[0-9]{2}$"
_MONTH_AND_YEAR = r"^(0[1-9]|1[0-2])\.(19|20)[0-9]{2}$"
_BEGINS_AS_A_NUMBER = r"^[^\p{L}\p{Nd}]{0,3}\p{Nd}"
_OTHER = {".": ",", ",": "."}
#: Whole numbers that can be dates: the lowest, the highest, and how they would be written.
_LIKE_DATES = ((19000101, 21001231, "YYYYMMDD"), (190001, 210012, "YYYYMM"))


@dataclass(frozen=True)
class Guess:
    """The kind and the form of a column, with notes.

    `signs` are the decimal signs that its numbers allow: one if they tell, two if either is
    possible, none if there is no sign in them. If either is possible, only `seen` occurs.
    """

    kind: str
    format: ColumnFormat = PLAIN
    notes: list[str] = field(default_factory=list)
    signs: tuple[str, ...] = ()
    seen: str = ""


def guess_format(
    texts: Any, name: str, *, format: ColumnFormat = PLAIN, numeric: bool = False
) -> Guess:
    """Tell what a column of texts holds.

    `form` is what the user said about it; `numeric` says that it holds numbers.
    """
    present = _present(combined(texts), format)
    if len(present) == 0:
        return Guess("numeric", format, [f"{name!r} is empty. Nothing can be learned from it."])
    if format.date_format is not None:
        return _dates_as_told(present, name, format)
    if numeric:
        return _numbers(present, name, format, forced=True) or _no_numbers(present, name, format)
    return (
        _plain_numbers(present, name, format)
        or _truths(present, name, format)
        or _dates(present, name, format)
        or _times(present, name, format)
        or _numbers(present, name, format)
        or _no_category(present, name, format)
    )


def _present(texts: Any, format: ColumnFormat) -> Any:
    """Return the texts that are not empty, and that the user does not call missing."""
    present = texts.drop_null()
    words = pa.array(["", *format.missing])
    return present.filter(pa.compute.invert(pa.compute.is_in(lowered(present), value_set=words)))


def is_prose(texts: Any) -> bool:
    """Return whether a column holds free text: several words, mostly different in every row."""
    present = combined(texts).drop_null()
    if len(present) < _FEWEST_TEXTS or len(present.unique()) < _MOST_DIFFERENT * len(present):
        return False
    words = pa.compute.count_substring_regex(present, r"\S+")
    return bool(np.median(np.array(words)) > _FEWEST_WORDS)


def settle_decimals(
    guesses: dict[str, Guess], *, decimal: str | None, sep: str | None
) -> dict[str, Guess]:
    """Decide about columns that could be read either way, by what the others say."""
    told = Counter(guess.signs[0] for guess in guesses.values() if len(guess.signs) == 1)
    if decimal is None:
        decimal = told.most_common(1)[0][0] if told else ("," if sep == ";" else ".")
    settled = {name: _settled(guess, name, decimal) for name, guess in guesses.items()}
    if len(told) != 1 or decimal == ".":  # some files have both
        return settled
    return {name: _with_commas(guess) for name, guess in settled.items()}


def _with_commas(guess: Guess) -> Guess:
    """Let whole numbers be written as the other columns are: later ones may have thousands."""
    if not guess.format.whole:
        return guess
    return replace(guess, format=replace(guess.format, decimal=",", thousands="."))


def _settled(guess: Guess, name: str, decimal: str) -> Guess:
    if len(guess.signs) < 2:
        return guess
    other = "," if decimal == "." else "."
    is_decimal = guess.seen == decimal
    thousands = other if not is_decimal or decimal == "," else ""
    note = (
        f"{name!r} could be read in two ways. Its {'comma' if guess.seen == ',' else 'point'} is "
        f"taken for the {'decimal sign' if is_decimal else 'sign between thousands'}. If that is "
        f"wrong, use decimal={other!r}"
    )
    format = replace(guess.format, decimal=decimal, thousands=thousands)
    return replace(guess, format=format, notes=[*guess.notes, note], signs=(decimal,))


# --- numbers ---


def _plain_numbers(present: Any, name: str, format: ColumnFormat) -> Guess | None:
    """Return numbers as a computer writes them, which are by far the most frequent."""
    trimmed = pa.compute.utf8_trim_whitespace(present)
    try:
        values = pa.compute.cast(trimmed, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    if pa.compute.any(pa.compute.starts_with(trimmed, "0")).as_py() and _are_codes(trimmed):
        return Guess("categorical", format, [about.codes(trimmed, name)])
    if not pa.compute.any(pa.compute.match_substring(trimmed, ".")).as_py():
        return Guess("numeric", replace(format, whole=True), _about_days(values, name))
    if format.decimal == ",":
        return None
    if matches_all(trimmed, _MONTH_AND_YEAR):
        return Guess("numeric", format, [about.months(name, "MM.YYYY")], (".",))
    if not format.thousands and matches_all(trimmed, _EITHER_WAY):
        return Guess("numeric", format, [], (".", ","), ".")
    return Guess("numeric", format, [], (".",))


def _are_codes(texts: Any) -> bool:
    return matches_all(texts, _DIGITS) and matches_any(texts, about.CODE)


def _about_days(values: Any, name: str) -> list[str]:
    """Say that whole numbers may be dates: read as numbers, months have gaps between years."""
    days = values[np.isfinite(values)]
    for low, high, written in _LIKE_DATES:
        months = days // (100 if written.endswith("DD") else 1) % 100
        is_date = (days >= low) & (days <= high) & (months >= 1) & (months <= 12)
        if written.endswith("DD"):
            is_date &= (days % 100 >= 1) & (days % 100 <= 31)
        if days.size and is_date.all() and days.min() < days.max():
            return [about.months(name, written)]
    return []


def _numbers(
    present: Any, name: str, format: ColumnFormat, *, forced: bool = False
) -> Guess | None:
    """Return numbers with decimal commas, thousands, currencies or %, and a few other words."""
    format = replace(format, unit=_unit(present))
    told = [format.decimal] if format.thousands else [".", ","]
    by_sign = {sign: _as_bools(matches_numbers(present, sign, format.unit)) for sign in told}
    n_read = {sign: int(is_number.sum()) for sign, (is_number, _) in by_sign.items()}
    best = max(told, key=lambda sign: n_read[sign])
    is_number, is_percent = by_sign[best]
    others = present.filter(pa.array(~is_number))
    words = [text for text in others.to_pylist() if not is_word_for_missing(text, format)]
    numbers = present.filter(pa.array(is_number))
    if not forced:
        doubt = _doubt(by_sign, words, numbers, others, name)
        if doubt is not None:
            return Guess("categorical", replace(format, unit=""), doubt) if doubt else None
    if n_read[best] == 0 or (is_percent.any() and int(is_percent.sum()) != n_read[best]):
        return None
    missing = tuple(dict.fromkeys((*format.missing, *words_for_missing(others.to_pylist()))))
    found = replace(format, percent=bool(is_percent.any()), missing=missing)
    beside = currencies(numbers, replace(found, decimal=best, thousands=_OTHER[best]))
    found = replace(found, currency=beside[0] if len(beside) == 1 else "")
    signs = _signs(numbers, n_read)
    seen = "," if matches_any(numbers, ",") else "."
    if len(signs) == 1 and (best == "," or seen == ","):
        found = replace(found, decimal=best, thousands=_OTHER[best])
    notes = about.look(found, numbers, name) if len(signs) < 2 else []
    notes += about.words(others, words, name, len(present))
    return Guess("numeric", found, notes, signs, seen)


def _doubt(
    by_sign: Any, words: list[str], numbers: Any, others: Any, name: str
) -> list[str] | None:
    """Return why a column is not plainly numeric, as notes; None if it is."""
    n_present = len(numbers) + len(others)
    is_any = np.logical_or.reduce([is_number for is_number, _ in by_sign.values()])
    best = max(int(is_number.sum()) for is_number, _ in by_sign.values())
    if int(is_any.sum()) > best and int(is_any.sum()) >= (1 - _MOST_OTHER_WORDS) * n_present:
        return [about.conflict(numbers, others, name)]
    if len(numbers.unique()) < 2:
        return []
    if len(words) > _MOST_OTHER_WORDS * n_present:
        return [about.many_words(words, name, n_present)] if 2 * len(numbers) > n_present else []
    percent = max(int(is_percent.sum()) for _, is_percent in by_sign.values())
    return [about.percent(name)] if 0 < percent < len(numbers) else None


def _unit(present: Any) -> str:
    """Return what stands behind nearly every number, such as kg."""
    sample = pa.compute.utf8_trim_whitespace(present.slice(0, 1_000))
    units = pa.compute.struct_field(pa.compute.extract_regex(sample, _WITH_UNIT), "unit")
    if len(units.unique().drop_null()) != 1 or 2 * units.null_count > len(units):
        return ""
    unit = str(units.drop_null()[0].as_py())
    return "" if is_currency(unit) else unit


def _as_bools(pair: Any) -> tuple[Any, Any]:
    return tuple(np.array(each, dtype=bool) for each in pair)  # type: ignore[return-value]


def _signs(numbers: Any, n_read: dict[str, int]) -> tuple[str, ...]:
    """Return the decimal signs that the numbers allow."""
    if len(n_read) == 1:
        return tuple(n_read)
    if not matches_any(numbers, r"[.,]"):
        return ()
    if n_read["."] == n_read[","]:
        return (".", ",")
    return (max(n_read, key=lambda sign: n_read[sign]),)


def _no_numbers(present: Any, name: str, format: ColumnFormat) -> Guess:
    note = f"{name!r} holds no numbers, although numeric=... names it. It is treated as text."
    return Guess("categorical", format, [note])


def _times(present: Any, name: str, format: ColumnFormat) -> Guess | None:
    """Return durations and times of day, which have one colon, or two."""
    if not matches_any(present.slice(0, 100), "[0-9]:[0-9]"):
        return None
    n_read = {colons: np.array(matches_times(present, colons), dtype=bool) for colons in (1, 2)}
    colons, is_read = max(n_read.items(), key=lambda pair: int(pair[1].sum()))
    others = present.filter(pa.array(~is_read))
    words = [text for text in others.to_pylist() if not is_word_for_missing(text, format)]
    if not is_read.any() or len(words) > _MOST_OTHER_WORDS * len(present):
        return None
    missing = tuple(dict.fromkeys((*format.missing, *words_for_missing(others.to_pylist()))))
    found = replace(format, colons=colons, missing=missing)
    notes = [about.times(present.filter(pa.array(is_read)), found, name)]
    return Guess("numeric", found, notes + about.words(others, words, name, len(present)))


def _no_category(present: Any, name: str, format: ColumnFormat) -> Guess:
    """Return categories, with a note if the texts look like months, numbers or parts of years."""
    texts = present.filter(pa.array(~means_missing(present, format)))
    if len(texts) == 0:
        return Guess("categorical", format)
    months = about.month_format(texts)
    if months:
        return Guess("categorical", format, [about.months(name, months, as_text=True)])
    n_numbers = np.array(pa.compute.match_substring_regex(texts, _BEGINS_AS_A_NUMBER)).sum()
    many = len(texts.unique()) >= _FEWEST_TEXTS or matches_all(texts, _HAS_A_YEAR)
    odd = many and n_numbers >= (1 - _MOST_OTHER_WORDS) * len(texts)
    odd = odd or about.looks_ordered(texts)
    return Guess("categorical", format, [about.odd_numbers(texts, name)] if odd else [])


# --- truths and dates ---


def _truths(present: Any, name: str, format: ColumnFormat) -> Guess | None:
    words = set(lowered(present.unique()).to_pylist())
    if not words <= set(TRUTHS) or words <= {"0", "1"}:
        return None
    if words <= {"true", "false"}:
        return Guess("boolean", format)
    shown = " and ".join(repr(word) for word in sorted(words, key=lambda word: -TRUTHS[word])[:4])
    return Guess("boolean", format, [f"{name!r} holds {shown}, read as true and false."])


def _dates(present: Any, name: str, format: ColumnFormat) -> Guess | None:
    if not matches_any(present.slice(0, 100), _MAY_BE_A_DATE):
        return None
    texts = present.filter(pa.array(~means_missing(present, format)))
    formats = day_formats(texts) if len(texts) else []
    if not formats:
        return _no_dates(texts, name, format)
    date_format, n_read = formats[0]
    if len(texts) - n_read > _MOST_OTHER_WORDS * len(texts):
        return Guess("categorical", format, [about.mixed_dates(texts, date_format, name)])
    if len(formats) > 1:
        return Guess("categorical", format, [about.either_order(texts, name)])
    found = _dates_as_told(present, name, replace(format, date_format=date_format))
    notes = _about_other_order(texts, date_format, name)
    if date_format not in (None, "%d.%m.%Y"):
        notes = [about.order(texts, date_format, name), *notes]
    return replace(found, notes=[*notes, *found.notes])


def _about_other_order(texts: Any, date_format: str | None, name: str) -> list[str]:
    """Say that some dates have day and month in the other order, if some must have."""
    other = other_order(date_format)
    if other is None:
        return []
    left = texts.filter(pa.array(np.isnan(as_days(texts, ColumnFormat(date_format=date_format)))))
    swapped = left.filter(pa.array(~np.isnan(as_days(left, ColumnFormat(date_format=other)))))
    return [about.other_order(swapped, date_format, name)] if len(swapped) else []


def _no_dates(texts: Any, name: str, format: ColumnFormat) -> Guess | None:
    if not matches_all(texts, r"^[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{2,4}$"):
        return None
    note = (
        f"{name!r} looks like dates, such as {texts[0].as_py()!r}, but not all exist. It is "
        f"treated as text. Say how they are written with date_format='{name}=...'"
    )
    return Guess("categorical", format, [note])


def _dates_as_told(present: Any, name: str, format: ColumnFormat) -> Guess:
    """Read dates as the user says, if most texts are such dates."""
    is_read = ~np.isnan(as_days(present, format))
    others = present.filter(pa.array(~is_read))
    words = [text for text in others.to_pylist() if not is_word_for_missing(text, format)]
    if len(words) > _MOST_OTHER_WORDS * len(present):
        return guess_format(present, name, format=replace(format, date_format=None))
    missing = (*format.missing, *words_for_missing(others.to_pylist()))
    found = replace(format, missing=tuple(dict.fromkeys(missing)))
    notes = about.words(others, words, name, len(present), what="dates") if len(others) else []
    return Guess("date", found, notes)
