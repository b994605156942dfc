"""The tables of a database: made once, and append-only where they are proof."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from shortlist.service.store import StoreError
from tests.service.helpers import new_queue, open_store


def test_a_database_shows_every_change_once(address):
    """Changes of the log and noted changes stand in one view, and notes cannot be taken back."""
    new_queue(address)
    store = open_store(address)
    store.connect()
    store.make_tables()
    store.note(0.0, "b", "outcome", "default", {})
    found = store.query("SELECT action, key_id FROM audit ORDER BY action")
    added = [(f"{name} added", "command") for name in ("build", "model", "model")]
    assert found == sorted(
        [*added, ("capacity", "command"), ("model", "command"), ("outcome", "b")]
    )
    with pytest.raises(Exception, match="append-only"):
        store.query("DELETE FROM note")
    store.close()


def test_a_database_of_another_release_is_refused(address):
    """Its tables may mean something else."""
    new_queue(address)
    store = open_store(address)
    store.connect()
    with store.write():
        store.query("UPDATE version SET number = 9")
    with pytest.raises(ValueError, match="has version 9"):
        store.make_tables()
    store.close()


def test_a_thread_that_waits_for_a_closed_database_is_told_so(address):
    """Threads of a worker share a connection; one may close it while another waits for its turn."""
    new_queue(address)
    store = open_store(address)
    store.connect()
    with ThreadPoolExecutor(1) as pool:
        with store.thread:
            asked = pool.submit(store.query, "SELECT 1")
            time.sleep(0.1)
            store.close()
        with pytest.raises(StoreError, match=r"not open|not connected"):
            asked.result()
