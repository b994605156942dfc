"""Another model takes over while cases arrive: none is lost, and all workers switch together."""

import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from shortlist.service._models import ModelCache
from tests.service.helpers import case, serve, serving

BASE = "/v1/queues/default"
FILE = {"content-type": "application/octet-stream"}


@pytest.fixture
def other_file(model_file, tmp_path):
    """Return a file with the same model as another version."""
    other = tmp_path / "other"
    other.write_bytes(model_file.read_bytes())
    with zipfile.ZipFile(other, "a") as archive:
        archive.comment = b"another version"
    return other


def test_a_model_is_swapped_under_traffic(address, model_file, other_file, tmp_path):
    """Through the command, with two workers: every case is decided, by one model or the other."""
    process, port = serve(tmp_path, model_file, "--count", "5", "--database", address)
    done, models = threading.Event(), []

    def ask(name):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            n = after = 0
            while n < 40 or after < 40:
                answer = client.post(f"{BASE}/decisions", json=case(f"{name}-{n}"))
                assert answer.status_code == 200, answer.text
                models.append(answer.json()["model"])
                n, after = n + 1, after + done.is_set()

    try:
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, name) for name in range(4)]
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                    while len(models) < 160:
                        time.sleep(0.01)
                    content = other_file.read_bytes()
                    swapped = client.post(f"{BASE}/model", content=content, headers=FILE)
                    alarms = client.get(f"{BASE}/status").json()["alarms"]
            finally:
                done.set()
            for each in asked:
                each.result()
    finally:
        process.terminate()
        process.wait(30)
        said = process.stderr.read()
        process.stderr.close()
    assert swapped.json()["model"] == 2
    assert set(models) == {1, 2}
    assert {alarm["kind"] for alarm in alarms} <= {"drift", "rate"}
    assert "WARNING" not in said


def test_a_switch_waits_until_every_worker_has_loaded_the_model(
    address, model_file, other_file, monkeypatch
):
    """While one of them still reads the file, all decide by the old model, and nobody waits."""
    reading, go_on, load = threading.Event(), threading.Event(), ModelCache._load

    def slowly(self, id, store):
        reading.set()
        assert go_on.wait(60)
        return load(self, id, store)

    with serving(address, model_file) as one, serving(address, None) as two:
        monkeypatch.setattr(ModelCache, "_load", slowly)
        with ThreadPoolExecutor() as pool:
            try:
                swapped = pool.submit(
                    one.post, f"{BASE}/model", content=other_file.read_bytes(), headers=FILE
                )
                assert reading.wait(60)
                for n in range(20):
                    for client in (one, two):
                        answer = client.post(
                            f"{BASE}/decisions", json=case(f"{n}-{client.base_url}")
                        )
                        assert answer.json()["model"] == 1
                assert not swapped.done()
            finally:
                go_on.set()
            assert swapped.result().json()["model"] == 2
        loaded = [client.service.models._loaded for client in (one, two)]
        assert all(2 in models for models in loaded)
        for client in (one, two):
            answer = client.post(f"{BASE}/decisions", json=case(f"after {client.base_url}"))
            assert answer.json()["model"] == 2


def test_a_model_that_a_worker_cannot_load_is_not_switched_to(
    address, model_file, other_file, monkeypatch
):
    """The queue keeps its model, and the answer says so; workers that are gone do not count."""
    monkeypatch.setattr("shortlist.service._service._LONGEST_LOAD", 1.0)
    content = other_file.read_bytes()
    with serving(address, model_file) as one:
        with serving(address, None) as two, monkeypatch.context() as patch:
            patch.setattr(two.service.models, "get", lambda *args: int("no model"))
            refused = one.post(f"{BASE}/model", content=content, headers=FILE)
            assert (refused.status_code, "1 workers" in refused.text) == (503, True)
            assert one.post(f"{BASE}/decisions", json=case("a")).json()["model"] == 1
        assert one.post(f"{BASE}/model", content=content, headers=FILE).json()["model"] == 2


def test_no_model_is_loaded_while_the_queue_is_locked(address, model_file, other_file, monkeypatch):
    """A worker that missed the announcement loads the model first, and takes the lock then."""
    locked, load = [], ModelCache._load

    def watched(self, id, store):
        locked.append(
            store.link.in_transaction
            if store.dialect == "sqlite"
            else store.link.info.transaction_status.name != "IDLE"
        )
        return load(self, id, store)

    with serving(address, model_file) as one, serving(address, None) as two:
        two.post(f"{BASE}/decisions", json=case("a"))
        two.post(f"{BASE}/decisions", json=case("b"))
        monkeypatch.setattr(two.service.roster, "keep_up", lambda: None)
        monkeypatch.setattr(one.service.roster, "count_late", lambda number: 0)
        monkeypatch.setattr(ModelCache, "_load", watched)
        content = other_file.read_bytes()
        assert one.post(f"{BASE}/model", content=content, headers=FILE).json()["model"] == 2
        assert two.post(f"{BASE}/decisions", json=case("c")).json()["model"] == 2
    assert locked == [False]
