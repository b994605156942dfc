"""What an engine must do, and what it does with it: a few functions on blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._core.extras import load_extra
from ..exceptions import TableError
from ._kernels import Columns

if TYPE_CHECKING:
    from ._cut import CutSearch, SearchColumns

__all__ = [
    "BLOCK",
    "FEW",
    "Engine",
    "OnArrays",
    "RowKernel",
    "as_columns",
    "blocks_of",
    "check_columns",
    "check_id",
    "table_schema",
]

#: The most rows of a block of scores, and of a block of whole rows.
BLOCK, FEW = 1 << 20, 1 << 16


class RowKernel(Protocol):
    """Turns a block of rows, an Arrow table, into rows to keep or new ones."""

    @property
    def columns(self) -> list[str] | None:
        """The columns that it reads; None stands for all."""
        ...

    def __call__(self, block: Any) -> Any:
        """Return an Arrow table."""
        ...


class Engine(Protocol):
    """Calls kernels where the rows are."""

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        ...

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterable[Any]:
        """Call a kernel on Arrow tables with some columns, and return its answers in any order."""
        ...

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a table of this engine with the rows of an Arrow schema that a kernel returns."""
        ...

    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> AbstractContextManager[Any]:
        """Compute such a table once, and keep it for several passes."""
        ...

    def search(self, table: Any, columns: SearchColumns) -> CutSearch:
        """Return what finds cuts in a table: ``CutSearch.through(self, table, columns)``."""
        ...

    def check_versions(self, table: Any) -> None:
        """Raise an error if a worker has other versions of the packages that models need."""
        ...


@dataclass(frozen=True)
class OnArrays:
    """Calls a kernel for arrays on columns of an Arrow table."""

    kernel: Any
    columns: list[str]

    def __call__(self, block: Any) -> Any:
        """Return the kernel's answer about a block."""
        return self.kernel(as_columns(block, self.columns))


def check_columns(
    engine: Engine,
    table: Any,
    *,
    score: str,
    id: str | None,
    segment: str | None = None,
    free: Iterable[str] = (),
) -> None:
    """Raise an error if columns are missing, or of a type that could mean two things."""
    pa = load_extra("pyarrow", needed_for="tables that are read block by block")
    types = engine.column_types(table)
    for name in (score, id, segment):
        if name is not None and name not in types:
            raise TableError(f"There is no column {name!r}; the columns are {', '.join(types)}.")
    for name in free:
        if name in types:
            raise TableError(f"The table has a column {name!r} already. Rename it first.")
    if not _is_number(pa, types[score]):
        raise TableError(
            f"The column {score!r} holds {types[score]}, and scores must be numbers. Convert it."
        )
    if segment is not None and not (_is_id(pa, types[segment]) or str(types[segment]) == "bool"):
        raise TableError(
            f"The column {segment!r} holds {types[segment]}. Segments must be whole numbers or "
            "text. Convert it."
        )
    if id is not None:
        check_id(types, id)


def check_id(types: dict[str, Any], id: str) -> None:
    """Raise an error if a column is missing, or is not one of ids."""
    pa = load_extra("pyarrow", needed_for="tables that are read block by block")
    if id not in types:
        raise TableError(f"There is no column {id!r}; the columns are {', '.join(types)}.")
    if not _is_id(pa, types[id]):
        raise TableError(
            f"The column {id!r} holds {types[id]}. Ids that break ties must be whole numbers or "
            "text: the decimal 7, the number 7.0 and the text '7' are different ids. Convert it."
        )


def table_schema(
    engine: Engine, table: Any, *, kept: list[str] | None = None, added: dict[str, str]
) -> Any:
    """Return the Arrow schema of some columns of a table, or of all, with others added."""
    pa = load_extra("pyarrow", needed_for="Reading large tables")
    types = engine.column_types(table)
    names = list(types) if kept is None else kept
    new = [(name, pa.type_for_alias(kind)) for name, kind in added.items()]
    taken = [name for name in added if name in names]
    if taken:
        raise TableError(f"The table has a column {taken[0]!r} already. Rename it first.")
    return pa.schema([*((name, types[name]) for name in names), *new])


def _is_number(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_id(pa: Any, kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_integer(kind))


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
    """Join and cut Arrow batches or tables into tables of at most so many rows."""
    pa = load_extra("pyarrow", needed_for="Reading large tables")
    waiting: list[Any] = []
    n_waiting = 0
    for batch in batches:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        for start in range(0, table.num_rows, size):
            piece = table.slice(start, size)
            if n_waiting + piece.num_rows > size:
                yield pa.concat_tables(waiting)
                waiting, n_waiting = [], 0
            waiting.append(piece)
            n_waiting += piece.num_rows
    if waiting:
        yield pa.concat_tables(waiting)
