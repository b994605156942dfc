"""What strangers can do to a running service: nothing without a key, and little harm."""

import pytest

from shortlist.service.databases import opened
from shortlist.service.keys import make_key, revoke_key
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
