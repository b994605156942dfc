"""Single rows as JSON has them, from lines and requests: parsed as the columns of a table are."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from .._core.extras import load_extra
from .._core.validation import LARGEST
from .column_format import ColumnFormat, read_number, read_truth, sentinels
from .columns import MISSING_CATEGORY, as_values
from .options import INFER_ALL, ReadOptions
from .schema import Feature, TableSchema

pa = load_extra("pyarrow", needed_for="Reading tables")
pd = load_extra("pandas", needed_for="Reading tables")

_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Whole seconds, in years whose seconds pandas can turn into days without rounding twice.
_MOMENT = re.compile(
    r"(18[3-9]|19\d|20\d)\d-\d\d-\d\d([T ]\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_MOST_REMEMBERED = 1 << 16
_EXPECTED = {
    "numeric": "a finite number",
    "boolean": "true or false",
    "date": "a date such as 2024-05-31",
    "categorical": "a string",
}
_ERRORS = (KeyError, TypeError, ValueError, OverflowError)


class RowParser:
    """Parses rows for a model: each value becomes what a column of a table would make of it.

    >>> kinds = {"amount": "numeric", "opened": "date", "by": "categorical"}
    >>> features = tuple(Feature(name, kind) for name, kind in kinds.items())
    >>> parser = RowParser(TableSchema(features, target="fraud", rare_label="yes"))
    >>> parser.values({"amount": "12.5", "opened": "2024-05-31", "by": " web "})
    (12.5, 19874.0, 'web')
    """

    def __init__(self, schema: TableSchema, reading: ReadOptions = INFER_ALL) -> None:
        self._features = schema.adapted(reading).features
        self._columns = [(f.name, _PARSERS[f.kind](f)) for f in self._features]
        self._weights = {} if schema.work is None else schema.work.columns

    def values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values of the model's columns, or raise an error that names the column."""
        try:
            return tuple([parse(fields[name]) for name, parse in self._columns])
        except _ERRORS:  # which of them?
            for feature, (_, parse) in zip(self._features, self._columns, strict=True):
                _check(fields, feature, parse)
            raise

    def weights(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value and the effort of a case, as far as the model weighs them."""
        return {
            option.removeprefix("--"): _weight(fields.get(name), option, name)
            for option, name in self._weights.items()
        }

    def frame(self, rows: Sequence[Sequence[Any]]) -> Any:
        """Return parsed rows as a data frame for the model."""
        dtypes = [object if f.kind == "categorical" else float for f in self._features]
        return pd.DataFrame(
            {
                feature.name: pd.Series([row[place] for row in rows], dtype=dtype)
                for place, (feature, dtype) in enumerate(zip(self._features, dtypes, strict=True))
            }
        )


def parse_number(value: Any, format: ColumnFormat) -> float:
    """Return a number or a text as a number, and NaN if it is missing; others raise an error."""
    if isinstance(value, str):
        number = read_number(value, format)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    else:
        raise TypeError
    if number is None:
        return math.nan
    if abs(number) > LARGEST:
        raise ValueError
    return number


# --- one parser for each kind: missing values, then what is frequent, then all the rest ---


def _numeric(feature: Feature) -> Callable[[Any], float]:
    format, missing = feature.format, frozenset(sentinels(feature.format))

    def parse(value: Any) -> float:
        if value is None:
            return math.nan
        number = parse_number(value, format)
        return math.nan if number in missing else number

    return parse


def _boolean(feature: Feature) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        if value is None:
            return math.nan
        return float(value if isinstance(value, bool) else read_truth(_as_text(value)))

    return parse


def _categorical(feature: Feature) -> Callable[[Any], str]:
    words = frozenset(feature.format.missing)

    def parse(value: Any) -> str:
        if value is None:
            return MISSING_CATEGORY
        text = _as_text(value).strip()
        return MISSING_CATEGORY if not text or text.lower() in words else text

    return parse


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # raises an error for half of a surrogate pair
    return value


def _date(feature: Feature) -> Callable[[Any], float]:
    format = feature.format
    words, is_iso = frozenset(format.missing), format.date_format is None

    @functools.lru_cache(_MOST_REMEMBERED)
    def as_column(text: str) -> float:
        return float(as_values(pa.array([text]), "date", feature.name, format)[0])

    def parse(value: Any) -> float:
        if value is None:
            return math.nan
        if not isinstance(value, str):
            raise TypeError
        days = _days(value) if is_iso and value not in words else None
        return as_column(value) if days is None else days

    return parse


def _days(text: str) -> float | None:
    """Return a date of the usual form as days since 1970, and None for another form."""
    if _MOMENT.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * _SECONDS + since.seconds) / _SECONDS


_PARSERS: dict[str, Callable[[Feature], Callable[[Any], Any]]] = {
    "numeric": _numeric,
    "boolean": _boolean,
    "date": _date,
    "categorical": _categorical,
}


# --- what is wrong ---


def _check(fields: Mapping[str, Any], feature: Feature, parse: Callable[[Any], Any]) -> None:
    """Raise an error if this column is missing, or cannot be parsed."""
    if feature.name not in fields:
        raise ValueError(
            f"The column {feature.name!r} is missing. Write null if its value is unknown."
        )
    value = fields[feature.name]
    try:
        parse(value)
    except _ERRORS:
        raise ValueError(
            f"{feature.name!r} must be {_EXPECTED[feature.kind]}; got {value!r:.80}."
            f"{_remedy(value, feature)}"
        ) from None


def _remedy(value: Any, feature: Feature) -> str:
    """Return the option that could read a text, if there is one."""
    if not isinstance(value, str) or feature.kind not in ("numeric", "date"):
        return ""
    if feature.kind == "date":
        return f" If dates are written in another way, use date_format='{feature.name}=...'"
    other = "," if feature.format.decimal == "." else "."
    try:
        read_number(value, replace(feature.format, decimal=other, thousands=feature.format.decimal))
    except ValueError:
        return ""
    return f" If it is a number, use decimal={other!r}"


def _weight(given: Any, option: str, name: str) -> float:
    try:
        number = parse_number(given, ColumnFormat())
        if number > 0 if option == "effort" else number >= 0:
            return number
    except _ERRORS:
        pass
    least = "greater than 0" if option == "effort" else "of at least 0"
    shown = "nothing" if given is None else f"{given!r:.80}"
    raise ValueError(f"{name!r}, which {option}=... names, must be a number {least}; got {shown}.")
