"""What an engine must do, and what it does with it: two functions on blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from .._core.extras import load_extra
from ..exceptions import TableError
from ._kernels import Columns

__all__ = ["BLOCK", "Engine", "RowKernel", "as_columns", "blocks_of", "check_columns"]

#: The most rows of a block.
BLOCK = 1 << 20


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
        """Call a kernel on the columns of every block, and return its answers in any order."""
        ...

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return a table of this engine with the rows that a kernel returns for each block."""
        ...


def check_columns(engine: Engine, table: Any, *, score: str | None, id: str | None) -> None:
    """Raise an error if columns are missing, or of a type that could mean two things."""
    pa = load_extra("pyarrow", needed_for="tables that are read block by block")
    types = engine.column_types(table)
    for name in (score, id):
        if name is not None and name not in types:
            raise TableError(f"There is no column {name!r}; the columns are {', '.join(types)}.")
    if score is not None and not _is_number(pa, types[score]):
        raise TableError(
            f"The column {score!r} holds {types[score]}, and scores must be numbers. Convert it."
        )
    if id is not None and not _is_id(pa, types[id]):
        raise TableError(
            f"The column {id!r} holds {types[id]}. Ids that break ties must be whole numbers or "
            "text: the decimal 7, the number 7.0 and the text '7' are different ids. Convert it."
        )


def _is_number(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_id(pa: Any, kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_integer(kind))


def as_columns(block: Any, names: list[str]) -> Columns:
    """Return columns of an Arrow table or batch as arrays; an empty score becomes NaN."""
    return {name: _as_array(block.column(name), name) for name in names}


def _as_array(column: Any, name: str) -> Any:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    kind = str(column.type)
    if column.null_count and kind.startswith(("int", "uint")):
        # A gap makes floats of whole numbers, and large ids would change.
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy(zero_copy_only=False)


def blocks_of(batches: Iterable[Any]) -> Iterable[Any]:
    """Cut Arrow batches or tables into pieces of at most 2**20 rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, BLOCK):
            yield batch.slice(start, BLOCK)
