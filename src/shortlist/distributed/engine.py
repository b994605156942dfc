"""What an engine must do: call functions on blocks of rows, wherever these are; and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._core.arrow import pa
from .._core.extras import load_extra
from .._core.files import write_whole
from ..exceptions import TableError
from ..tables.read import files_of

dataset = load_extra("pyarrow.dataset", needed_for="Reading large tables")

#: The most rows of a block of scores, and of a block of whole rows.
BLOCK, FEW = 1 << 20, 1 << 16
#: The column with the order of tied rows, in the rows of a list.
TIE_KEY = "tie_key"
#: The columns of a block.
Columns = dict[str, NDArray[Any]]


class Plan(NamedTuple):
    """Rows that a kernel makes of blocks of a table: Arrow tables with the columns of a schema.

    The kernel gets the columns named, or all.
    """

    table: Any
    columns: list[str] | None
    kernel: Callable[[Any], Any]
    schema: Any


class Engine(Protocol):
    """Knows one kind of table, and calls kernels where its rows are. Engines inherit from it.

    Kernels are called in any order, and perhaps twice after a fault: their answers depend on the
    block alone.
    """

    def opened(self, table: Any, *, passes: int) -> Any:
        """Check what was given, and return a table that so many passes see alike."""

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterable[Any]:
        """Call a kernel on Arrow tables with some columns, and return its answers."""

    def map_rows(self, plan: Plan) -> Any:
        """Return a table of this engine with the rows of a plan."""

    def write_rows(self, plan: Plan, out: Path) -> None:
        """Write such rows as Parquet."""

    def kept_rows(self, plan: Plan) -> AbstractContextManager[Any]:
        """Compute such a table once, and keep it for several passes."""

    def in_order(self, rows: Any, score: str) -> Any:
        """Return the rows of a list in order, with a column `rank`."""

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another, and perhaps more rows."""


def on_arrays(engine: Engine, table: Any, columns: list[str]) -> Callable[[Any], Iterable[Any]]:
    """Return a function that calls a kernel for arrays on every block."""
    return lambda kernel: engine.summaries(table, columns, partial(_on_arrays, kernel, columns))


def _on_arrays(kernel: Any, columns: list[str], block: Any) -> Any:
    return kernel(as_columns(block, columns))


# --- columns ---


def check_columns(engine: Engine, table: Any, **roles: str | None) -> None:
    """Raise an error if columns are missing, or of a type that could mean two things.

    Roles are `score`, `id` and `segment`.
    """
    types = engine.column_types(table)
    named = {role: name for role, name in roles.items() if name is not None}
    check_present(types, named.values())
    for role, name in named.items():
        fits, needed = _ROLES[role]
        if not fits(types[name]):
            raise TableError(
                f"The column {name!r} holds {types[name]}, and {role}s must be {needed}. Convert "
                "the column."
            )


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_id(kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))


#: Which types columns may have, and what they must hold.
_ROLES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "score": (_is_number, "numbers"),
    "segment": (lambda kind: _is_id(kind) or str(kind) == "bool", "whole numbers or text"),
    "id": (
        _is_id,
        "whole numbers or text: the decimal 7, the number 7.0 and the text '7' are different ids",
    ),
}


def check_present(types: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise an error if a table lacks a column."""
    missing = [name for name in names if name not in types]
    if missing:
        raise TableError(
            f"The table has no column {', '.join(map(repr, missing))}; its columns are "
            f"{', '.join(map(repr, types))}."
        )


def table_schema(
    engine: Engine,
    table: Any,
    *,
    kept: list[str] | None = None,
    added: dict[str, str],
    free: Iterable[str] = (),
) -> Any:
    """Return the Arrow schema of some columns of a table, or of all, with others added."""
    types = engine.column_types(table)
    names = list(types) if kept is None else kept
    new = [(name, pa.type_for_alias(kind)) for name, kind in added.items()]
    taken = [name for name in (*added, *free) if name in names]
    if taken:
        raise TableError(f"The table has a column {taken[0]!r} already. Rename it first.")
    return pa.schema([*((name, types[name]) for name in names), *new])


def as_columns(block: Any, names: list[str]) -> Columns:
    """Return columns of an Arrow table as arrays.

    A missing number becomes NaN. Missing ids and segments are an error.
    """
    return {name: _as_array(block.column(name), name) for name in names}


def _as_array(column: Any, name: str) -> Any:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    if column.null_count and not str(column.type).startswith(("double", "float", "halffloat")):
        raise TableError(
            f"The column {name!r} is empty in {column.null_count:,} of {len(column):,} rows. Fill "
            "it, or leave these rows out."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))


def blocks_of(batches: Iterable[Any], size: int = BLOCK) -> Iterator[Any]:
    """Join Arrow batches to tables of about so many rows at most."""
    waiting: list[Any] = []
    n_waiting = 0
    for batch in batches:
        if waiting and n_waiting + batch.num_rows > size:
            yield pa.Table.from_batches(waiting)
            waiting, n_waiting = [], 0
        waiting.append(batch)
        n_waiting += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def ranked(rows: Any, score: str) -> Any:
    """Put listed rows in order, the most suspicious first, and number them."""
    columns = as_columns(rows, [score, TIE_KEY])
    scores = np.asarray(columns[score], dtype=np.float64)
    order = np.lexsort((columns[TIE_KEY], -scores))
    numbers = pa.array(np.arange(1, rows.num_rows + 1))
    return rows.take(pa.array(order)).drop_columns([TIE_KEY]).append_column("rank", numbers)


# --- files and folders ---

_BATCH, _FEW_COLUMNS = 1 << 17, 3
_READ_AHEAD = {"batch_readahead": 8, "fragment_readahead": 1}
_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather"}


class LocalEngine(Engine):
    """Reads Parquet and Feather files, and folders of them, in bounded memory."""

    def opened(self, table: Any, *, passes: int = 1) -> Any:
        """Return an Arrow dataset of a path, a folder or Arrow."""
        if isinstance(table, dataset.Dataset):
            return table
        if isinstance(table, (str, Path)):
            return dataset.dataset(str(table), format=_format_of(Path(table)))
        try:
            return dataset.dataset(table)
        except TypeError:
            raise TableError(
                "table must be the path of a file or folder, an Arrow dataset or an Arrow table; "
                f"got {type(table).__name__}. For a data frame of pandas: "
                "pyarrow.Table.from_pandas(...)."
            ) from None

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        names = table.schema.names
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise TableError(f"Two columns are called {min(twice)!r}. Rename one of them.")
        return dict(zip(names, table.schema.types, strict=True))

    def batches(self, table: Any, columns: list[str] | None, size: int) -> Iterator[Any]:
        """Read some columns in batches, as they lie in the file, the next ones ahead."""
        size = min(size, _BATCH)
        yield from table.to_batches(
            columns=columns, batch_size=size, **_READ_AHEAD, **_scanning(table)
        )

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every block; blocks of many columns are shorter."""
        size = BLOCK if len(columns) <= _FEW_COLUMNS else BLOCK >> 2
        return map(kernel, blocks_of(self.batches(table, columns, size), size))

    def _mapped(self, plan: Plan) -> Iterator[Any]:
        for block in blocks_of(self.batches(plan.table, plan.columns, FEW), FEW):
            yield plan.kernel(block).cast(plan.schema)

    def map_rows(self, plan: Plan) -> Any:
        """Return the rows of a plan as one Arrow table."""
        return pa.concat_tables([plan.schema.empty_table(), *self._mapped(plan)])

    def write_rows(self, plan: Plan, out: Path) -> None:
        """Write the rows of a plan to a Parquet file, whole or not at all."""
        with write_whole(out) as file, pa.parquet.ParquetWriter(file, plan.schema) as writer:
            for rows in self._mapped(plan):
                writer.write_table(rows)

    @contextmanager
    def kept_rows(self, plan: Plan) -> Iterator[Any]:
        """Write such rows to a temporary Parquet file."""
        with TemporaryDirectory(prefix="shortlist-") as folder:
            path = Path(folder) / "rows.parquet"
            self.write_rows(plan, path)
            yield self.opened(path)

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another; all, if they are not doubles."""
        if str(table.schema.field(score).type) != "double":
            return table  # Arrow refuses to round large whole numbers
        column = dataset.field(score)
        return table.filter((column >= low) & (column <= high))

    def in_order(self, rows: Any, score: str) -> Any:
        """Return the rows of a list in order."""
        return ranked(rows, score)


def _format_of(path: Path) -> str:
    """Return the format of a file, or of the files of a folder."""
    if not path.exists():
        raise TableError(f"There is no file or folder {path}.")
    first = files_of(path)[0] if path.is_dir() else path
    if first.suffix.lower() not in _FORMATS:
        raise TableError(
            f"{first} is not a .parquet, .feather or .arrow file. Text files are read by the "
            "commands and by shortlist.tables, at any size; or convert it to Parquet."
        )
    return _FORMATS[first.suffix.lower()]


def _scanning(table: Any) -> dict[str, Any]:
    """Return how to read: columns of local Parquet files are not buffered as a whole.

    That would take as much memory as the column, and three times as long.
    """
    format = getattr(getattr(table, "format", None), "default_extname", None)
    if format != "parquet" or table.filesystem.type_name != "local":
        return {}
    return {"fragment_scan_options": dataset.ParquetFragmentScanOptions(pre_buffer=False)}
