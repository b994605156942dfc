"""Lines of JSON: read from a file descriptor, and parsed for a model."""

from __future__ import annotations

import json
import os
import re
import select
from collections.abc import Iterator
from typing import Any

from .._core.files import flattened
from .._core.validation import parse_moment, to_seconds
from ._models import Item, LoadedModel

LONGEST_LINE = 1 << 20
#: Stands for a line that was longer than that and was skipped.
TOO_LONG = b"\0too long"
_CHUNK = 1 << 16
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # what no database takes, or half a pair
_NO_IDS = "a case that comes again is decided again. Name the field with the ids with --id"
_NO_MOMENTS = "the moment of a line is now. Name the field with the moments with --time"


def read_batches(descriptor: int, *, most: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `most` lines.

    A list is yielded as soon as no more input is waiting. Therefore a slow stream is answered line
    by line, and a fast one in batches.
    """
    lines: list[bytes] = []
    rest, skipping, ended = b"", False, False
    while not ended:
        chunk = os.read(descriptor, _CHUNK)
        ended = not chunk
        *complete, rest = (rest + chunk + (b"\n" if ended and rest else b"")).split(b"\n")
        for line in complete:
            lines.append(TOO_LONG if skipping else line)
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = b"", True
        while len(lines) >= most or (lines and (ended or not _is_waiting(descriptor))):
            yield lines[:most]
            del lines[:most]
    if skipping:
        yield [TOO_LONG]


def _is_waiting(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


class LineReader:
    """Parses lines for a model: its columns by name, and the fields with the id and the moment."""

    def __init__(
        self, model: LoadedModel, *, id_field: str | None, time_field: str, entity: str | None
    ) -> None:
        self._model, self._time_field, self._entity = model, time_field, entity
        self._id_field = next(iter(model.id_fields), None) if id_field is None else id_field
        self._expected = {}
        if self._id_field is not None and self._id_field in (id_field, model.table.schema.id):
            self._expected[self._id_field] = _NO_IDS
        if time_field != "at":
            self._expected[time_field] = _NO_MOMENTS

    def read(self, number: int, line: bytes, now: float | None = None) -> Item:
        """Parse a line, which counts as of now without a moment; the item says what is wrong."""
        shown = None
        try:
            fields = _object(line)
            if self._expected:
                self._expected = {f: why for f, why in self._expected.items() if f not in fields}
            given = fields.get(self._id_field) if self._id_field is not None else None
            shown = given if isinstance(given, (str, int)) else None
            id, at = _id(given, self._id_field), fields.get(self._time_field)
            if at is not None:
                at = parse_moment(at) if isinstance(at, str) else to_seconds(at)
            at = now if at is None else at
            entity = _id(fields.get(self._entity), self._entity) if self._entity else None
            if self._entity and entity is None:
                raise ValueError(f"{self._entity!r} is missing: whose event is it?")
            item = self._model.read(fields)
            return item._replace(line=number, shown=shown, id=id, at=at, entity=entity)
        except (TypeError, ValueError) as error:
            return Item(line=number, shown=shown, error=" ".join(str(error).split()))

    def notes(self) -> list[str]:
        """Return what it means that no line so far had the field with the id or the moment."""
        return [f"No line has the field {field!r}: {why}" for field, why in self._expected.items()]


def _object(line: bytes) -> dict[str, Any]:
    if line == TOO_LONG:
        raise ValueError(f"The line is longer than {LONGEST_LINE:,} bytes.")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("The line is not JSON. Write one object per line.") from None
    if not isinstance(fields, dict):
        raise ValueError("The line must be a JSON object with the columns of the model.")
    return flattened(fields)


def _id(value: Any, field: str | None) -> str | None:
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"{field!r} is empty. Leave it out, or write null, if a case has no id.")
    if isinstance(value, str) and _NOT_TEXT.search(value):
        raise ValueError(f"{field!r} has characters that no text may have.")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # 1 and "1" are the same id, as in tables
    raise ValueError(f"{field!r} must be a string or a whole number; got {value!r:.80}.")
