"""One line of JSON at a time: its id, its moment, and its values as the model takes them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from .._core.extras import load_extra
from ..online._time import seconds
from ..tables import MISSING_TEXTS, Feature, TableSchema
from ._lines import LONGEST_LINE, TOO_LONG

pa = load_extra("pyarrow", needed_for="Reading tables")

__all__ = ["Item", "LineReader"]

_TRUTHS = {"true": True, "false": False}
_ARROW = {
    "numeric": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.string(),
    "categorical": pa.string(),
}


@dataclass(frozen=True)
class Item:
    """What a line says; `shown` is the id as it came, and `error` what is wrong with the line."""

    line: int
    shown: Any = None
    id: str | None = None
    at: float | None = None
    values: tuple[Any, ...] = ()
    error: str | None = None


class LineReader:
    """Reads lines for a model: its columns by name, and the fields with the id and the moment."""

    def __init__(self, schema: TableSchema, *, id_field: str | None, time_field: str) -> None:
        self._schema = replace(schema, id=None)  # ids are looked at here, line by line
        self._features = schema.features
        names = {feature.name for feature in schema.features}
        own = schema.id if schema.id is not None else None if "id" in names else "id"
        self._id_field = own if id_field is None else id_field
        self._time_field = time_field

    def read(self, number: int, line: bytes) -> Item:
        """Read a line; whatever is wrong with it is told in the item."""
        if line == TOO_LONG:
            return Item(number, error=f"The line is longer than {LONGEST_LINE:,} bytes.")
        shown = None
        try:
            fields = _object(line)
            given = fields.get(self._id_field) if self._id_field is not None else None
            shown = given if isinstance(given, (str, int)) else None
            id, at = _id(given, self._id_field), fields.get(self._time_field)
            moment = None if at is None else _moment(at)
            values = tuple([_value(fields, feature) for feature in self._features])
            return Item(number, shown, id, moment, values)
        except (TypeError, ValueError) as error:
            return Item(number, shown, error=" ".join(str(error).split()))

    def frame(self, items: list[Item]) -> Any:
        """Return the values of sound items as rows for the model."""
        columns = {
            feature.name: pa.array([item.values[place] for item in items], _ARROW[feature.kind])
            for place, feature in enumerate(self._features)
        }
        return self._schema.convert(pa.table(columns)).X


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("The line is not JSON. Write one object per line.") from None
    if not isinstance(fields, dict):
        raise ValueError("The line must hold a JSON object with the columns of the model.")
    return fields


def _id(value: Any, field: str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # in a table, too, 1 and "1" are the same id
    raise ValueError(f"{field!r} must be a text or a whole number; got {value!r:.80}.")


def _moment(value: Any) -> float:
    if isinstance(value, str):
        try:
            return seconds(datetime.fromisoformat(value))
        except (ValueError, OverflowError):
            raise ValueError(
                f"{value!r:.80} is not a moment. Use seconds, or a text such as "
                "2026-05-31T10:00:00Z."
            ) from None
    return seconds(value)


def _value(fields: dict[str, Any], feature: Feature) -> Any:
    if feature.name not in fields:
        raise ValueError(f"There is no {feature.name!r}. Write null if it is unknown.")
    value = fields[feature.name]
    if value is None:
        return None
    try:
        return _READERS[feature.kind](value)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{feature.name!r} must be {_WANTED[feature.kind]}; got {value!r:.80}."
        ) from None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        if text in MISSING_TEXTS:
            return None
        if "_" in text:  # Python reads 1_000, tables do not
            raise ValueError
        value = float(text)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    number = float(value)
    if math.isinf(number):
        raise ValueError
    return None if math.isnan(number) else number


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _TRUTHS[_text(value).strip().lower()]


def _date(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half a character pair is no text
    return value


_READERS: dict[str, Any] = {
    "numeric": _number,
    "boolean": _truth,
    "date": _date,
    "categorical": _text,
}
_WANTED = {
    "numeric": "a finite number",
    "boolean": "true or false",
    "date": "a date such as 2024-05-31",
    "categorical": "a text",
}
