"""Files whose values have types of their own: Excel workbooks and JSON lines."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import math
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrow import pa, pd
from .._core.extras import load_extra
from .._core.files import flattened
from ..exceptions import TableError
from ._source import OpenTable, cases_of, listed, note_subtotal, translated
from ._text_files import open_bytes, utf8_file
from .column_format import MISSING_TEXTS
from .columns import number_text

_CHUNK_LINES = 1 << 14
_LARGEST_EXACT = 1 << 53


def as_arrow(values: list[Any]) -> Any:
    """Return Python values as an Arrow column: of their type, or as texts if types are mixed."""
    kinds = {type(value) for value in values if value is not None}
    if kinds & {list, dict, bytes, memoryview}:
        return pa.array([None if v is None else [str(v)] for v in values])
    if not kinds or kinds == {bool}:
        return pa.array(values, pa.bool_() if kinds else pa.null())
    if kinds <= {int, float} and not _is_long(values):
        return pa.array(values, pa.int64() if kinds == {int} else pa.float64())
    if kinds <= {datetime.datetime, datetime.date}:
        moments = [v if v is None or hasattr(v, "hour") else _midnight(v) for v in values]
        return pa.array(moments, pa.timestamp("us"))  # zones are converted to UTC
    return pa.array([None if v is None or v != v else _as_text(v) for v in values], pa.string())


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time())


def _is_long(values: list[Any]) -> bool:
    """Return whether a whole number would lose digits, such as a long id."""
    return any(type(v) is int and abs(v) > _LARGEST_EXACT for v in values)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    return number_text(value) if isinstance(value, float) else str(value)


# --- Excel ---


def open_workbook(path: Path, source: OpenTable) -> OpenTable:
    """Open a sheet of an Excel workbook; all of it is held in memory."""
    openpyxl = load_extra("openpyxl", needed_for="Reading Excel files")
    name, notes = source.name, source.notes
    with translated(name), open(path, "rb") as file:
        try:
            plain = not _has_merged_cells(path)
            book = openpyxl.load_workbook(file, read_only=plain, data_only=True)
            sheet = _sheet(book, source)
            cells = pd.DataFrame(list(sheet.iter_rows(values_only=True)), dtype=object)
            merged = [] if plain else [each.bounds for each in sheet.merged_cells.ranges]
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            if isinstance(error, TableError):
                raise
            raise TableError(
                f"{name} is damaged or not what its extension says: it is not an Excel workbook."
            ) from None
    cells = cells.replace(r"^\s*$", None, regex=True)
    where = f"The sheet {sheet.title!r} of {name}"
    groups = _spread(cells, merged, where, notes)
    cells = _below_heading(cells, groups, where, notes)
    columns = [[None if v is None else _as_text(v) for v in values] for _, values in cells.items()]
    texts = pa.table([pa.array(values, pa.string()) for values in columns], list(cells.columns))
    cells = cells.iloc[: cases_of(texts, source)[0]]
    note_subtotal(texts.slice(0, len(cells)), source)
    empty = cells.columns[cells.isna().all()]
    if len(empty) and len(cells):
        with contextlib.closing(openpyxl.load_workbook(path, read_only=True)) as book:
            _check_formulas(book[sheet.title], list(empty), name)
    missing = [*MISSING_TEXTS, *source.reading.na]
    cells = cells.mask(cells.map(str).map(str.strip).isin(missing), None)

    def chunks(wanted: Collection[str], at_once: float = 0) -> Iterator[Any]:
        yield pa.table({column: as_arrow(cells[column].tolist()) for column in wanted})

    return replace(source, columns=list(cells.columns), chunks=chunks)


def _sheet(book: Any, source: OpenTable) -> Any:
    name, wanted = source.name, source.reading.sheet
    names = [sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"]
    if wanted in book.sheetnames:
        return book[wanted]
    if not names or (wanted is not None and len(names) != 1):
        raise TableError(
            f"{name} has no sheet {wanted or 'with cells'!r}. Its sheets are "
            f"{listed(book.sheetnames)}; name one with sheet=...."
        )
    if len(names) > 1 or wanted is not None:
        source.notes.append(
            f"{name} has the sheets {listed(book.sheetnames)}; {names[0]!r} is read. For another "
            "one, use sheet=..."
        )
    return book[names[0]]


def _has_merged_cells(path: Path) -> bool:
    """Return whether cells of a workbook are merged; only a slower reader knows which."""
    with zipfile.ZipFile(path) as archive:
        sheets = [part for part in archive.namelist() if part.startswith("xl/worksheets/sheet")]
        return any(b"mergeCell " in archive.read(part) for part in sheets)


def _spread(cells: Any, merged: list[Any], where: str, notes: list[str]) -> list[int]:
    """Give all rows of merged cells their value; return the rows with cells merged sideways."""
    below = [bounds for bounds in merged if bounds[3] > bounds[1]]
    for left, first, _, last in below:
        cells.iloc[first:last, left - 1] = cells.iat[first - 1, left - 1]
    if below:
        notes.append(f"{where} has merged cells. Their value counts for all rows they span.")
    return [first - 1 for left, first, right, _ in merged if right > left]


def _below_heading(cells: Any, groups: list[int], where: str, notes: list[str]) -> Any:
    """Return the columns that have a name, below the heading."""
    is_filled = cells.notna().to_numpy()
    n_filled = is_filled.sum(axis=1)
    n_filled[groups] = 0
    # A title above the heading has few cells.
    first = next(iter(np.flatnonzero(2 * n_filled > np.median(n_filled[n_filled > 0]))), None)
    if first is None:
        raise TableError(f"{where} is empty. Its first row must hold the column names.")
    if is_filled[:first].any():
        notes.append(f"{where} has a title above its heading, which is left out.")
    is_named = is_filled[first]
    nameless = np.flatnonzero(is_filled[first:].any(axis=0) & ~is_named)
    if nameless.size:
        notes.append(f"{where} has no name for column {nameless[0] + 1}, which is left out.")
    below = cells.iloc[first + 1 :, is_named]
    return below.set_axis([str(name).strip() for name in cells.iloc[first][is_named]], axis=1)


def _check_formulas(sheet: Any, columns: list[str], name: str) -> None:
    """Refuse formulas whose results were never saved: they look like empty cells."""
    for row in sheet.iter_rows(values_only=True):
        formula = next((v for v in row if isinstance(v, str) and v.startswith("=")), None)
        if formula is not None:
            raise TableError(
                f"{name} holds formulas without results, such as {formula!r:.60}; the columns "
                f"{listed(columns)} are empty. Open the file in a spreadsheet program and save it."
            )


# --- JSON lines ---


def open_json_lines(path: Path, source: OpenTable) -> OpenTable:
    """Open a file with one JSON object per line; objects within objects become `a.b`."""
    records = _records(path, source)
    first = list(itertools.islice(records, _CHUNK_LINES))
    if not first:
        raise TableError(f"{source.name} is empty. It must hold one JSON object per line.")
    columns = list(dict.fromkeys(itertools.chain.from_iterable(first)))

    def chunks(wanted: Collection[str], at_once: float = _CHUNK_LINES) -> Iterator[Any]:
        most = None if at_once == math.inf else max(int(at_once), _CHUNK_LINES)
        batch = [*first, *itertools.islice(records, most and most - len(first))]
        if wanted is columns:  # later lines may have more fields
            columns[:] = dict.fromkeys(itertools.chain.from_iterable(batch))
        while batch:
            yield pa.table({c: as_arrow([each.get(c) for each in batch]) for c in wanted})
            batch = list(itertools.islice(records, most))

    return replace(source, columns=columns, chunks=chunks)


def _records(path: Path, source: OpenTable) -> Iterator[dict[str, Any]]:
    with translated(source.name):
        file = source.stack.enter_context(open_bytes(utf8_file(path, source)))
        for number, line in enumerate(file, 1):
            if line.strip():
                yield flattened(_record(line, number, source.name))


def _record(line: bytes, number: int, name: str) -> dict[str, Any]:
    problem = "it holds no named values"
    try:
        record = json.loads(line.decode("utf-8-sig"))
        if b"\\ud" in line.lower():
            json.dumps(record, ensure_ascii=False).encode()
        if isinstance(record, dict):
            return record
    except UnicodeDecodeError:
        raise
    except UnicodeEncodeError:
        problem = "it holds half of a surrogate pair, such as \\ud83d"
    except (ValueError, RecursionError):
        problem = "it cannot be parsed"
    raise TableError(
        f"Line {number:,} of {name} is not JSON: {problem}. Write one JSON object with named "
        "values per line."
    )
