"""What strangers can do to a running service: nothing without a key, and little harm."""

import contextlib
import io
import os
import re
import socket
import stat
import time
import tracemalloc
import zipfile
from functools import partialmethod
from pathlib import Path
from unittest.mock import ANY

import httpx
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from shortlist import Capacity
from shortlist.cli._app import app
from shortlist.exceptions import ModelFileError
from shortlist.learners.packed_forest import packed_if_forest
from shortlist.models.files import _parts, dump_estimator, load_estimator
from shortlist.service import _apart
from shortlist.service._postgres import PostgresStore
from shortlist.service._sqlite import SQLiteStore
from shortlist.service.databases import opened
from shortlist.service.keys import make_key, revoke_key
from shortlist.service.store import StoreError
from shortlist.tables import fit_table, load_model, save_model
from tests.service.helpers import FakeClock, case, made_queues, serve, serving, until

BASE = "/v1/queues/default"
FILE = {"content-type": "application/octet-stream"}


@pytest.fixture
def fast(monkeypatch):
    """Let services read their keys again at once."""
    monkeypatch.setattr("shortlist.service._service._FRESH", 0.05)


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"],
)
def test_without_keys_nothing_comes_through_a_proxy(untouched, header):
    """A proxy on the same machine would let everybody in, also if it rewrites the host."""
    headers = {header: "192.0.2.7", "Host": "127.0.0.1"}
    for method, path in (("GET", "/v1/queues"), ("GET", "/metrics"), ("GET", f"{BASE}/status")):
        answer = untouched.request(method, path, headers=headers)
        assert (answer.status_code, "keys decide" in answer.text) == (403, True)
    answer = untouched.post(f"{BASE}/decisions", json=case("a"), headers=headers)
    assert answer.status_code == 403
    assert untouched.get("/v1/queues").status_code == 200


def test_from_the_first_key_on_every_request_needs_one(address, model_file, fast):
    """Without a restart; and it stays so when all keys are revoked, also after a restart."""
    with serving(address, model_file) as client, opened(address) as store:

        def status(**headers):
            return client.get("/v1/queues", headers=headers).status_code

        assert status() == 200
        key = make_key(store, "read")
        until(status, 401)
        bearer = {"authorization": f"Bearer {key}", "x-forwarded-for": "192.0.2.7"}
        assert status(**bearer) == 200
        revoke_key(store, key.split("_")[1])
        until(lambda: status(**bearer), 401)
        assert status() == 401
    with serving(address, model_file) as client:
        assert client.get("/v1/queues").status_code == 401
        assert client.post(f"{BASE}/decisions", json=case("a")).status_code == 401


def test_nobody_is_let_in_before_the_keys_are_known(tmp_path, model_file):
    """A worker that has not reached its database yet does not take this for a lack of keys."""
    database = tmp_path / "shortlist.db"
    made_queues(database, model_file)
    with opened(str(database)) as store:
        make_key(store, "read")
    with serving(database, model_file) as client:
        client.service.ring._keys = None  # as before it was read
        client.service.ring._required = False
        assert client.get("/v1/queues").status_code == 503


def test_a_key_for_one_queue_sees_no_other_in_the_metrics(address, model_file, fast):
    """Neither its numbers nor the counts of all queues together."""
    with serving(address, model_file, queues={"north": 3}) as client, opened(address) as store:
        client.post(f"{BASE}/decisions", json=case("a"))
        keys = [make_key(store, "read", queues=queues) for queues in (["north"], None)]
        until(lambda: client.get("/metrics", headers={"x-api-key": keys[1]}).status_code, 200)
        until(lambda: client.get("/metrics").status_code, 401)
        north, whole = (client.get("/metrics", headers={"x-api-key": key}).text for key in keys)
    assert 'queue="north"' in north
    assert "default" not in north
    assert "requests_total" not in north
    assert 'shortlist_seen{queue="default"} 1.0' in whole
    assert "requests_total" in whole


# --- files ----------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_database(tmp_path, model_file):
    """It has personal data, also in the log that is not yet part of the file."""
    previous = os.umask(0o022)
    try:
        with serving(tmp_path / "shortlist.db", model_file) as client:
            client.post(f"{BASE}/decisions", json=case("a"))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(previous)
    assert {"shortlist.db", "shortlist.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def audit(*options):
    """Run the audit as a command; return its exit code and its output."""
    run = CliRunner().invoke(app, ["serve", "audit", *map(str, options)])
    return run.exit_code, " ".join(run.output.split())


def test_an_audit_of_nothing_fails(address, tmp_path):
    """An empty file, a file of something else and tables without queues prove nothing."""
    if "://" not in address:
        (tmp_path / "shortlist.db").touch()
    code, words = audit(address)
    assert (code, "has made its tables" in words) == (2, True)
    with opened(address, create=True):
        pass
    code, words = audit(address)
    assert (code, "nothing to check" in words) == (2, True)
    (tmp_path / "text").write_text("no database at all")
    assert audit(tmp_path / "text")[0] == 2


def test_an_audit_changes_nothing(tmp_path, model_file):
    """A copy has the same bytes afterwards, and no other file lies beside it."""
    with serving(tmp_path / "shortlist.db", model_file) as client:
        client.post(f"{BASE}/decisions", json=[case(n, 10.0 * n) for n in range(50)])
        assert audit(tmp_path / "shortlist.db") == (0, ANY)  # while it runs
    copy = tmp_path / "copy" / "shortlist.db"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "shortlist.db").read_bytes())
    copy.chmod(0o444)
    copy.parent.chmod(0o555)
    before = copy.read_bytes()
    code, words = audit(copy)
    assert (code, "Every promise was kept" in words) == (0, True)
    assert list(copy.parent.iterdir()) == [copy]
    assert copy.read_bytes() == before


def test_what_is_opened_to_be_read_cannot_be_changed(address, model_file):
    """The database refuses it."""
    made_queues(address, model_file)
    with opened(address, only_read=True) as store:
        assert [row.name for row in store.queues()] == ["default"]
        with pytest.raises(StoreError, match=r"read-?only"):
            store.query("UPDATE queue SET capacity = 9")


# --- models ---------------------------------------------------------------------------------------


def post_model(client, content):
    """Send a model file; return the status and the detail."""
    answer = client.post(f"{BASE}/model", content=content, headers=FILE)
    return answer.status_code, answer.json().get("detail", "")


def packed(parts):
    """Return a compressed archive; a part may be a number of zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            with archive.open(name, "w") as part:
                if isinstance(content, int):
                    for _ in range(content >> 20):
                        part.write(bytes(1 << 20))
                else:
                    part.write(content)
    return file.getvalue()


@pytest.mark.parametrize("where", ["model.skops", "manifest.json", "schema.json", "matrix.npz"])
def test_a_small_file_cannot_fill_the_memory(untouched, model_file, where):
    """What an archive unpacks to is limited, also in the archives within it."""
    with zipfile.ZipFile(model_file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    zeros = 300 << 20
    if where in parts:
        parts[where] = zeros
    elif where == "schema.json":
        parts["model.skops"] = packed({where: zeros})
    else:
        parts["model.skops"] = packed({"schema.json": b"{}", where: packed({"data.npy": zeros})})
    content = packed(parts)
    tracemalloc.start()
    code, words = post_model(untouched, content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(content) < 2 << 20
    assert (code, "which no model needs" in words) == (422, True), words
    assert most < 200 << 20
    assert untouched.get("/v2/health/ready").status_code == 200


@pytest.fixture(scope="module")
def forest(tmp_path_factory, model_file):
    """Return a model file with trees, which is fit for use."""
    fitted = fit_table(
        model_file.parent / "cases.csv", target="fraud", capacity=Capacity.fraction(0.1),
        own=RandomForestClassifier(3, max_depth=3, random_state=0), folds=2,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("forest") / "model"
    save_model(fitted.model, path)
    load_model(path)
    return path


def spoil(nodes, child, feature, change):
    """Let the root of a tree lead out of it, back to itself, or to a column that is not there."""
    field, value = {
        "beyond": (child, 10**8), "cycle": (child, 0), "column": (feature, 10**6)
    }[change]  # fmt: skip
    nodes[field][0] = value


def test_a_tree_that_leads_nowhere_is_refused(untouched, forest, tmp_path):
    """Compiled code would read beyond its arrays, or never come to an end."""
    model = load_model(forest)
    trees = [each.tree_ for each in _parts(model.classifier) if hasattr(each, "tree_")]
    assert trees
    state = trees[-1].__getstate__()
    spoil(state["nodes"], "left_child", "feature", "beyond")
    trees[-1].__setstate__(state)
    save_model(model, tmp_path / "model")
    code, words = post_model(untouched, (tmp_path / "model").read_bytes())
    assert (code, "leads nowhere" in words) == (422, True), words
    assert untouched.get("/v2/health/ready").status_code == 200


@pytest.fixture(scope="module")
def endless(tmp_path_factory, model_file):
    """Return a model file whose trees, kept by LightGBM as text, lead back to their roots."""
    lightgbm = pytest.importorskip("lightgbm")
    fitted = fit_table(
        model_file.parent / "cases.csv", target="fraud", capacity=Capacity.fraction(0.1),
        own=lightgbm.LGBMClassifier(n_estimators=2, min_child_samples=5, verbose=-1), folds=1,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("endless") / "model"
    save_model(fitted.model, path)
    parts = unpacked(path.read_bytes())
    inner = unpacked(parts["model.skops"])
    spoiled = re.sub(rb"left_child=[-0-9]+", b"left_child=0", inner["schema.json"])
    assert spoiled != inner["schema.json"]
    return packed({**parts, "model.skops": packed({**inner, "schema.json": spoiled})})


def unpacked(content):
    """Return the parts of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def workers_of(process):
    """Return the ids of the processes that a service has started."""
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def test_a_model_that_ends_its_reader_ends_no_worker(model_file, endless, tmp_path):
    """Through the command: the answer says what happened, and the same workers go on."""
    process, port = serve(tmp_path, model_file, "--count", "5")
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=180) as client:
            before = workers_of(process)
            code, words = post_model(client, endless)
            shadow = client.put(f"{BASE}/shadow", content=endless, headers=FILE)
            decided = client.post(f"{BASE}/decisions", json=case("a"))
            after = workers_of(process)
    finally:
        process.terminate()
        process.wait(180)
        process.stderr.close()
    assert (code, shadow.status_code, decided.status_code) == (422, 422, 200)
    assert "was ended by SIG" in words
    assert before == after != []


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("_MOST_SECONDS", 0.2, "takes longer than 0.2 seconds"), ("_MOST_BYTES", 1 << 27, "0.125 GB")],
)
def test_a_model_is_read_within_limits(untouched, other_model, monkeypatch, limit, value, words):
    """A model that takes too long, or too much memory, is refused; the service goes on."""
    monkeypatch.setattr(_apart, limit, value)
    code, said = post_model(untouched, other_model)
    assert (code, words in said) == (422, True), said
    assert untouched.get("/v2/health/ready").status_code == 200


@pytest.fixture
def other_model(model_file, request):
    """Return a model that no test has sent before."""
    return packed({**unpacked(model_file.read_bytes()), request.node.name: b""})


@pytest.mark.parametrize("change", ["beyond", "cycle", "column"])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, HistGradientBoostingClassifier, "packed"])
def test_trees_of_all_kinds_are_checked(kind, change):
    """They are different arrays with the same dangers."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    if kind == "packed":
        model = packed_if_forest(RandomForestClassifier(2).fit(X, X[:, 0] > 0))
    else:
        model = kind().fit(X, X[:, 0] > 0)
    assert load_estimator(dump_estimator(model), "model").n_features_in_ == 3
    if kind == "packed":
        spoil(model.nodes, "left", "code", change)
    elif kind is DecisionTreeClassifier:
        state = model.tree_.__getstate__()
        spoil(state["nodes"], "left_child", "feature", change)
        model.tree_.__setstate__(state)
    else:
        spoil(model._predictors[-1][0].nodes, "left", "feature_idx", change)
    with pytest.raises(ModelFileError, match="leads nowhere"):
        load_estimator(dump_estimator(model), "model")


def test_made_up_splits_on_categories_are_refused():
    """Compiled code would look for a set beyond its array; without trust, no model has any."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, X[:, 0] > 0)
    nodes = model._predictors[0][0].nodes
    nodes["is_categorical"][0], nodes["bitset_idx"][0] = 1, 4 * 10**9
    with pytest.raises(ModelFileError, match="leads nowhere"):
        load_estimator(dump_estimator(model), "model")
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features=[0])
    model.fit(np.abs(X).round(), X[:, 0] > 1)
    with pytest.raises(ModelFileError, match="types that a model does not need"):
        load_estimator(dump_estimator(model), "model")
    loaded = load_estimator(dump_estimator(model), "model", trust=True)
    assert (loaded.predict(np.abs(X).round()) == model.predict(np.abs(X).round())).all()


@pytest.mark.parametrize("change", ["item", "part", "end"])
def test_a_search_for_neighbours_that_leads_nowhere_is_refused(change):
    """Its arrays are followed by compiled code, too."""
    for n in (1, 2, 7, 8, 9, 63, 64, 65, 200):
        X = np.random.default_rng(n).normal(size=(n, 3))
        model = KNeighborsClassifier(1, algorithm="kd_tree", leaf_size=4).fit(X, X[:, 0] > 0)
        assert load_estimator(dump_estimator(model), "model").n_samples_fit_ == n
    state = list(model._tree.__getstate__())
    if change == "item":
        state[1][0] = 10**12
    elif change == "part":
        state[2]["is_leaf"][-1] = 0
    else:
        state[2]["idx_end"][-1] = 10**9
    model._tree.__setstate__(tuple(state))
    with pytest.raises(ModelFileError, match="leads nowhere"):
        load_estimator(dump_estimator(model), "model")


# --- readiness ------------------------------------------------------------------------------------


def test_a_refused_clock_is_neither_ready_nor_silent(address, model_file, caplog):
    """Before any case arrives on SQLite; the alarm goes when the clock is right again."""
    clock = FakeClock(time.time())
    with serving(address, model_file, clock=clock.make()) as client:
        ready = lambda: client.get("/v2/health/ready").status_code  # noqa: E731
        kinds = lambda: [e["kind"] for e in client.get(f"{BASE}/status").json()["alarms"]]  # noqa: E731
        assert ready() == 200
        clock.wall += 3_600
        if "://" in address:  # whose own clock is compared when a case is decided
            assert client.post(f"{BASE}/decisions", json=case("a")).status_code == 503
        until(ready, 503)
        until(lambda: "clock" in kinds(), True)
        assert "is not decided (clock)" in caplog.text
        clock.wall -= 3_600
        until(ready, 200)
        until(lambda: "clock" in kinds(), False)
        assert client.post(f"{BASE}/decisions", json=case("b")).status_code == 200


def test_a_full_disk_is_neither_ready_nor_silent(address, model_file, caplog, monkeypatch):
    """Reading still works; but nothing can be decided until there is room."""
    with serving(address, model_file, patience=0.3) as client:
        ready = lambda: client.get("/v2/health/ready").status_code  # noqa: E731
        with monkeypatch.context() as patch:

            def full(store, commit, group):
                if not group.entries and group.snapshot is None:
                    return commit(store, group)  # for so little, there still is room
                store.rollback()
                raise StoreError("database or disk is full")

            for kind in (SQLiteStore, PostgresStore):
                patch.setattr(kind, "commit", partialmethod(full, kind.commit))
            assert client.post(f"{BASE}/decisions", json=case("a")).status_code == 503
            assert [ready() for _ in range(20)] == [503] * 20
            until(lambda: "(database): database or disk is full" in caplog.text, True)
        until(ready, 200)
        assert client.post(f"{BASE}/decisions", json=case("b")).status_code == 200


# --- headers --------------------------------------------------------------------------------------


def raw(client):
    """Return a plain connection to a service."""
    link = socket.create_connection((client.base_url.host, client.base_url.port))
    link.settimeout(30)
    return link


def test_headers_that_do_not_end_are_not_waited_for(untouched, monkeypatch):
    """Neither at first nor after an answer, nor if nothing is said at all."""
    monkeypatch.setattr("shortlist.service.app._SLOWEST_HEADERS", 0.3)
    whole = b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for sent in (b"", whole[:20], whole + whole[:20]):
        with raw(untouched) as link:
            link.sendall(sent[: len(whole)])
            if len(sent) > len(whole):
                assert link.recv(4_096).startswith(b"HTTP/1.1 200")
                link.sendall(sent[len(whole) :])
            assert link.recv(4_096) == b""
    assert untouched.get("/v2/health/live").status_code == 200


@pytest.mark.parametrize("before", [0, 2])
def test_headers_without_end_are_refused(untouched, before):
    """A service keeps some kilobytes of them, and no more; also of later requests."""
    with raw(untouched) as link:
        for _ in range(before):
            link.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert link.recv(4_096).startswith(b"HTTP/1.1 200")
        link.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(1_000):
                link.sendall(b"x-" + b"a" * 1_000 + b": 1\r\n")
            link.sendall(b"\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"200 OK" not in link.recv(4_096)


@pytest.mark.parametrize("sent", [b"", b"{"])
def test_a_body_that_does_not_come_is_not_waited_for(untouched, monkeypatch, sent):
    """Neither if it stops in the middle nor if it never begins."""
    monkeypatch.setattr("shortlist.service.app._SLOWEST_BODY", 0.3)
    headers = "Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    with raw(untouched) as link:
        link.sendall(f"POST {BASE}/decisions HTTP/1.1\r\n{headers}".encode() + sent)
        with link.makefile("rb") as file:
            assert file.read().startswith(b"HTTP/1.1 408")


def test_the_metrics_count_every_alarm_of_the_status(service):
    """Also one that no worker raised: the capacity was used up early."""
    count = lambda: 'shortlist_alarms{queue="default"} 1.0' in service.get("/metrics").text  # noqa: E731
    assert service.post(f"{BASE}/decisions", json=case("top", 900.0, "US")).json()["flag"]
    assert not count()
    service.put(f"{BASE}/capacity", json={"count": 1})
    assert [each["kind"] for each in service.get(f"{BASE}/status").json()["alarms"]] == ["rate"]
    assert count()


def test_options_may_come_from_the_environment():
    """All of them, under their names."""
    from typer.testing import CliRunner

    from shortlist.cli._app import app

    given = {"SHORTLIST_COUNT": "5", "SHORTLIST_PERIOD": "nonsense"}
    told = CliRunner().invoke(app, ["serve", "model"], env=given)
    assert (told.exit_code, "--period nonsense" in told.output) == (2, True)
