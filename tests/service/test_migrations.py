"""A database of an earlier version goes on working."""

import pytest

from shortlist.service import _store
from tests.service.helpers import new_queue, open_store


def test_an_older_database_shows_every_change_once(address, monkeypatch):
    """The first version copied capacities and models into a table of changes."""
    monkeypatch.setattr(_store, "_LATEST", 1)
    new_queue(address)
    store = open_store(address)
    store.connect()
    rows = [(1, 0.0, "", "capacity", "default", "{}"), (2, 0.0, "a", "claim", "default", "{}")]
    for row in rows:
        store.query("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", *row)
    store.query("INSERT INTO claim VALUES (1, 'x', 'kim', 'token', 2.0)")
    monkeypatch.undo()
    store.migrate()
    store.migrate()
    store.note(0.0, "b", "outcome", "default", "{}")
    found = store.query("SELECT action, key_id FROM audit ORDER BY action")
    by_command = [("capacity", "command"), ("model", "command")]
    assert found == sorted([*by_command, ("claim", "a"), ("outcome", "b")])
    assert store.query("SELECT * FROM claim") == [(1, "x", "kim", 2.0)]
    with pytest.raises(Exception, match="append-only"):
        store.query("DELETE FROM note")
    store.close()
