"""What strangers can do to a running service: nothing without a key, and little harm."""

import os
import stat
from unittest.mock import ANY

import pytest
from typer.testing import CliRunner

from shortlist.cli import app
from shortlist.service.databases import opened
from shortlist.service.keys import make_key, revoke_key
from shortlist.service.store import StoreError
from tests.service.helpers import case, serving, until

BASE = "/v1/queues/default"


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
        assert (answer.status_code, "keys --make" in answer.text) == (403, True)
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
    with serving(database, model_file):
        pass
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
    with serving(address, model_file):
        pass
    with opened(address, only_read=True) as store:
        assert [row.name for row in store.queues()] == ["default"]
        with pytest.raises(StoreError, match=r"read-?only"):
            store.query("UPDATE queue SET capacity = 9")
