"""Which database an address means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ._postgres import PostgresStore
from ._sqlite import SQLiteStore
from ._store import Store

__all__ = ["open_store"]


def open_store(address: str, *, on_lock: Callable[[bool], None] | None = None) -> Store:
    """Return a store, not yet connected: PostgreSQL for an address, SQLite for a file."""
    if address.startswith(("postgresql://", "postgres://")):
        return PostgresStore(address)
    return SQLiteStore(Path(address), on_lock=on_lock)
