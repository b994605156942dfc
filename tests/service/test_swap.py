"""Another model takes over while cases arrive: none is lost, and all workers switch together."""

import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest

from shortlist import Capacity
from shortlist.service._decider import Decider
from shortlist.service._models import ModelCache, Roster
from shortlist.service._service import Service
from shortlist.service.databases import opened
from shortlist.tables import WorkColumns
from tests.service.helpers import case, fit_small_model, new_queue, serve, serving, until

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
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=180) as client:
            n = after = 0
            while n < 40 or after < 40:
                answer = client.post(f"{BASE}/decisions", json=case(f"{name}-{n}"))
                assert answer.status_code == 200, answer.text
                models.append(answer.json()["model"])
                n, after = n + 1, after + done.is_set()
                time.sleep(0.005)  # leave the workers time to read the other model

    try:
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, name) for name in range(4)]
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=180) as client:
                    while len(models) < 160 and not any(each.done() for each in asked):
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
        process.wait(180)
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
        assert go_on.wait(180)
        return load(self, id, store)

    with serving(address, model_file) as one, serving(address, None) as two:
        monkeypatch.setattr(ModelCache, "_load", slowly)
        with ThreadPoolExecutor() as pool:
            try:
                swapped = pool.submit(
                    one.post, f"{BASE}/model", content=other_file.read_bytes(), headers=FILE
                )
                assert reading.wait(180)
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
        loaded = [client.service.models.loaded for client in (one, two)]
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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return model files that differ from the small one: in a column, its id, or what it weighs."""
    minutes, hours = (WorkColumns(effort="effort", unit=unit) for unit in ("minutes", "hours"))
    work = {"capacity": Capacity.effort(0.5, per=1)}
    made = {
        "column": {"renamed": {"country": "land"}},
        "kind": {"renamed": {"amount": "country", "country": "amount"}},
        "number": {"id": "number"},
        "account": {"id": "account"},
        "minutes": {"work": minutes, **work},
        "hours": {"work": hours, **work},
    }
    return {
        name: fit_small_model(tmp_path_factory.mktemp(name), **options)
        for name, options in made.items()
    }


def post_model(client, file, query=""):
    """Send a model file."""
    return client.post(f"{BASE}/model{query}", content=file.read_bytes(), headers=FILE)


@pytest.mark.parametrize(
    ("present", "other", "words"),
    [
        ("small", "column", "'land' is missing"),
        ("small", "kind", "must be a finite number"),
        ("small", "account", "ids in 'id'"),
        ("number", "account", "ids in 'number'"),
        ("minutes", "small", "without --effort"),
        ("minutes", "hours", "another unit"),
    ],
)
@pytest.mark.parametrize("flagged", [False, True])
@pytest.mark.xdist_group("models that do not fit")
def test_a_model_that_does_not_fit_is_refused(
    tmp_path, model_file, files, present, other, words, flagged
):
    """By its columns, its id or its unit; the queue goes on with the model that it has."""
    known = {**files, "small": model_file}
    of_work = {"made": {"of_work": True}} if present == "minutes" else {}
    body = {**case("a", 900.0, "US"), "number": "a", "effort": 1.0}
    with serving(tmp_path / "shortlist.db", known[present], **of_work) as client:
        if flagged:
            assert client.post(f"{BASE}/decisions", json=body).json()["flag"]
        for query in ("", "?dry_run=true"):
            refused = post_model(client, known[other], query)
            assert refused.status_code == 422
            assert words in refused.json()["detail"]
            assert "queue 'default'" in refused.json()["detail"]
        answer = client.post(f"{BASE}/decisions", json={**body, "id": "b", "number": "b"})
        assert (answer.status_code, answer.json()["model"]) == (200, 1)


@pytest.mark.xdist_group("models that do not fit")
def test_a_column_that_cases_have_may_be_new_to_the_model(tmp_path, model_file, files):
    """The latest flagged case was sent with it."""
    with serving(tmp_path / "shortlist.db", model_file) as client:
        body = {**case("a", 900.0, "US"), "land": "US"}
        assert client.post(f"{BASE}/decisions", json=body).json()["flag"]
        assert post_model(client, files["column"]).json()["model"] == 2
        after = client.post(f"{BASE}/decisions", json={**body, "id": "b"})
        assert (after.status_code, after.json()["model"]) == (200, 2)


def test_a_dry_run_changes_nothing(address, model_file, other_file):
    """It says that the model fits, and nobody loads or keeps it."""
    with serving(address, model_file) as client:
        before = client.get(f"{BASE}/log").json()
        tried = post_model(client, other_file, "?dry_run=true").json()
        assert tried["dry_run"] is True
        assert tried["seq"] == before["entries"][-1]["seq"]
        assert client.get(f"{BASE}/log").json() == before
        for table in ("worker WHERE wanted > 0", "model WHERE id > 1"):
            query = f"SELECT count(*) FROM {table}"
            assert client.service.store.query(query) == [(0,)]
        assert post_model(client, other_file, "?dry_run=maybe").status_code == 422


def test_the_id_column_belongs_to_the_queue(address, model_file, files, monkeypatch):
    """The same body is the same case, although the new model knows no id column."""
    monkeypatch.setattr("shortlist.service._group._SNAPSHOT_EVERY", 1)  # a start begins with it
    body = {**case("for the new model", 900.0, "US"), "number": "for the queue"}
    with serving(address, files["number"]) as client:
        first = client.post(f"{BASE}/decisions", json=body).json()
        assert post_model(client, model_file).json()["model"] == 2
        again = client.post(f"{BASE}/decisions", json=body).json()
        assert (first["id"], again["id"]) == ("for the queue", "for the queue")
        assert again["repeated"]
        assert client.get(f"{BASE}/status").json()["seen"] == 1
    with serving(address, None) as client:
        assert client.post(f"{BASE}/decisions", json=body).json()["repeated"]


def test_a_worker_that_has_just_started_knows_the_id_column(
    address, model_file, files, monkeypatch
):
    """A case that comes before the worker has read its queue is read as any other."""
    body, join, may_join = {**case("x", 900.0, "US"), "number": "y"}, Decider._join, Event()
    with serving(address, files["number"]) as client:
        first = client.post(f"{BASE}/decisions", json=body).json()
    monkeypatch.setattr(Decider, "_join", lambda self: may_join.wait(20) and join(self))
    monkeypatch.setattr(Service, "ready", True)
    with serving(address, None) as client, ThreadPoolExecutor(1) as thread:
        asked = thread.submit(client.post, f"{BASE}/decisions", json=body)
        until(lambda: bool(client.service.decider("default").n_waiting) or asked.done(), True)
        may_join.set()
        again = asked.result().json()
    assert (first["id"], again["id"], again["repeated"]) == ("y", "y", True)


def test_two_swaps_at_once_wait_each_for_its_own_model(address):
    """A worker that has loaded a later model has not therefore loaded an earlier one."""
    new_queue(address)

    class Models:
        loaded = {}  # noqa: RUF012

        def get(self, id, store):
            if id == 1:
                raise ValueError("It cannot be loaded.")
            self.loaded[id] = id

    with opened(address) as store:
        roster = Roster(store, Models())
        roster.sign()
        roster.keep_up()
        assert [roster.count_late(id) for id in (1, 2)] == [1, 1]
        roster.keep_up()
        assert [roster.count_late(id) for id in (1, 2)] == [1, 0]
        roster.keep_up()
        assert roster.count_late(1) == 1
