"""Which database an address means."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from ._postgres import PostgresStore
from ._sqlite import SQLiteStore
from .store import Store, StoreError


def open_store(address: str, *, on_lock: Callable[[bool], None] | None = None) -> Store:
    """Return a store, not yet connected: PostgreSQL for an address, SQLite for a file."""
    if address.startswith(("postgresql://", "postgres://")):
        return PostgresStore(address)
    return SQLiteStore(Path(address), on_lock=on_lock)


@contextlib.contextmanager
def opened(address: str, *, create: bool = False, only_read: bool = False) -> Iterator[Store]:
    """Open a database that a service has made, or make one; or open it to change nothing."""
    store = open_store(address)
    if isinstance(store, SQLiteStore) and not create and not store.path.is_file():
        raise ValueError(
            f"There is no database {address}. Start a service first: shortlist serve MODEL"
        )
    try:
        if only_read:
            store.connect_to_read()
            store.check_tables()
        else:
            store.connect(create=create)
            store.make_tables()
        yield store
    except StoreError as error:
        raise ValueError(f"The database cannot be used: {error}") from error
    finally:
        store.close()
