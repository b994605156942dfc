"""The workers of all machines: each loads a model that is announced before anyone decides by it."""

from __future__ import annotations

import secrets

from ._models import ModelCache
from .store import Store

__all__ = ["Roster"]

_GONE = 15  # seconds after which a worker that has not signed does not count


class Roster:
    """This worker among all others of a database.

    Parameters
    ----------
    store : Store
        Shared with other threads.
    models : ModelCache
        The models of this worker.
    """

    def __init__(self, store: Store, models: ModelCache) -> None:
        self._store, self._models = store, models
        self._name = secrets.token_hex(8)
        self._loaded = self._looked = -1

    def sign(self) -> None:
        """Write that this worker is alive, and up to which announcement it has loaded models."""
        store = self._store
        with store.write():
            if self._looked < 0:  # the latest announcement may be of a model not yet in force
                [(latest,)] = store.query("SELECT coalesce(max(number), 0) FROM swap")
                self._looked = self._loaded = max(latest - 1, 0)
            store.query(f"DELETE FROM worker WHERE seen < {store.now} - {_GONE}")
            store.query(
                f"INSERT INTO worker (name, seen, swap) VALUES (?, {store.now}, ?) ON CONFLICT "
                "(name) DO UPDATE SET seen = excluded.seen, swap = excluded.swap",
                self._name,
                self._loaded,
            )

    def leave(self) -> None:
        """Write that nobody needs to wait for this worker."""
        with self._store.write():
            self._store.query("DELETE FROM worker WHERE name = ?", self._name)

    def announce(self, model: int) -> int:
        """Ask all workers to load a model; return the number of this announcement."""
        return self._store.insert_next("swap", "number", {"model": model})

    def keep_up(self) -> None:
        """Load what was announced; a model that this program cannot load is never signed for."""
        for number, model in self._store.query(
            "SELECT number, model FROM swap WHERE number > ? ORDER BY number", self._looked
        ):
            try:
                self._models.get(model, self._store)
                self._loaded = number
                self.sign()
            except (ValueError, ImportError):
                pass
            self._looked = number

    def count_late(self, number: int) -> int:
        """Return how many workers have not yet loaded what was announced."""
        [(late,)] = self._store.query(
            f"SELECT count(*) FROM worker WHERE swap < ? AND seen >= {self._store.now} - {_GONE}",
            number,
        )
        return int(late)
