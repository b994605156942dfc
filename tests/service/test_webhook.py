"""The webhook: signed, at least once, in order for each case, and what fails is kept."""

import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import tempfile
import threading
import time
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.client import Client
from shortlist.service import _service, webhook
from shortlist.service.databases import opened
from shortlist.service.erasure import erase_cases
from shortlist.service.webhook import check_webhook
from tests.service.helpers import Hand, case, new_queue, serve, serving, until

BASE = "/v1/queues/default"
DAY = 86_400.0
KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


class Receiver:
    """A program that is told of events, and may refuse them."""

    def __init__(self):
        self.events, self.forged, self.ids, self.refuses = [], [], [], lambda event: False
        receiver, self.elsewhere = self, ""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                """Take an event."""
                content = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receiver.take(self.headers, content))
                self.send_header("location", receiver.elsewhere)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args):
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook"

    def take(self, headers, content):
        """Check who sent an event, and keep it unless it is refused."""
        id, moment = headers["webhook-id"], headers["webhook-timestamp"]
        signed = hmac.new(KEY, f"{id}.{moment}.".encode() + content, hashlib.sha256).digest()
        if headers["webhook-signature"] != f"v1,{base64.b64encode(signed).decode()}":
            self.forged.append(content)
        event = json.loads(content)
        if self.refuses(event):
            return 500
        self.ids.append(id)
        self.events.append(event)
        return 200

    def close(self):
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()

    def told(self, kind):
        """Return what was told of one kind of event."""
        return [event["data"] for event in self.events if event["type"] == kind]


@pytest.fixture
def receiver(monkeypatch):
    """Yield a receiver; the chores of services are done often."""
    monkeypatch.setattr(_service, "_FRESH", 0.1)
    receiver = Receiver()
    yield receiver
    receiver.close()


def flag(client, *ids):
    """Let cases be flagged."""
    for id in ids:
        assert client.post(f"{BASE}/decisions", json=case(id, 900.0, "US")).json()["flag"]


def test_flags_and_assignments_are_told_in_order(address, model_file, receiver):
    """Signed, each once if nothing fails; and nothing of what was before."""
    with serving(address, model_file, count=9) as client:
        flag(client, "before")
    with serving(address, model_file, count=9, webhook=(receiver.address, SECRET)) as client:
        until(lambda: places(client), True)
        flag(client, "a", "b")
        client.post(f"{BASE}/claims", json={"id": "a", "reviewer": "kim"})
        client.post(f"{BASE}/releases", json={"id": "a", "reviewer": "kim"})
        client.post(f"{BASE}/claims", json={"id": "b", "reviewer": "lee"})
        until(lambda: len(receiver.events), 5)
        assert waiting(client) == 0
    assert [each["case"] for each in receiver.told("flag")] == ["a", "b"]
    assert set(receiver.told("flag")[0]) == {"queue", "case", "score", "period"}
    by_case = defaultdict(list)
    for event in receiver.events:
        by_case[event["data"]["case"]].append(event["type"])
    assert by_case == {"a": ["flag", "assignment", "assignment"], "b": ["flag", "assignment"]}
    holders = {each["case"]: each["reviewer"] for each in receiver.told("assignment")}
    assert holders == {"a": None, "b": "lee"}  # a was given back
    assert receiver.forged == []
    assert len(set(receiver.ids)) == 5


def places(client):
    """Return whether the webhook has begun."""
    return bool(client.service.store.query("SELECT queue FROM hook_place"))


def waiting(client):
    """Return how many events wait, once that number stands still."""
    until(lambda: client.get("/v1/webhook").json()["waiting"], 0)
    return 0


def test_two_leaders_write_an_event_down_once(address, model_file, receiver):
    """Whoever comes second finds that the first one has been there."""
    with serving(address, model_file, count=9) as client:
        service = client.service
        one, two = (webhook.Webhook(service, receiver.address, SECRET) for _ in range(2))
        one._gather()
        flag(client, "a", "b")
        happened = two._happened

        def late(*between):
            events = list(happened(*between))
            one._gather()
            return events

        two._happened = late
        two._gather()
        assert service.store.query("SELECT count(*) FROM hook_event") == [(2,)]


def test_a_leader_that_was_replaced_settles_only_what_it_has_sent(address, model_file, receiver):
    """Another worker has sent the same event since, and a later event has taken its number."""
    with serving(address, model_file, count=9) as client:
        service = client.service
        old, new = (webhook.Webhook(service, receiver.address, SECRET) for _ in range(2))
        old._gather()
        flag(client, "a")
        [(id, tries, _)] = old._due()
        [again] = new._due()
        new._settle([(again[0], 0, None)])
        flag(client, "b")
        new._gather()
        old._settle([(id, tries, None)])
        [(_, _, content)] = new._due()
        assert json.loads(content)["data"]["case"] == "b"


def test_what_is_refused_is_sent_again_in_order(address, model_file, receiver):
    """A refused event holds back later ones of its case, and of no other case."""
    receiver.refuses = lambda event: event["type"] == "flag" and event["data"]["case"] == "a"
    with serving(address, model_file, count=9, webhook=(receiver.address, SECRET)) as client:
        until(lambda: places(client), True)
        flag(client, "a", "b")
        client.post(f"{BASE}/claims", json={"id": "a", "reviewer": "kim"})
        client.post(f"{BASE}/claims", json={"id": "b", "reviewer": "lee"})
        until(lambda: [event["data"]["case"] for event in receiver.events], ["b", "b"])
        receiver.refuses = lambda event: False
        until(lambda: len(receiver.events), 4)
    assert [event["type"] for event in receiver.events[2:]] == ["flag", "assignment"]


def test_a_restart_loses_nothing(address, model_file, receiver):
    """What was decided while nobody was listening is sent afterwards."""
    receiver.refuses = lambda event: True
    hook = (receiver.address, SECRET)
    with serving(address, model_file, count=9, webhook=hook) as client:
        until(lambda: places(client), True)
        flag(client, "a", "b")
    with serving(address, model_file, count=9) as client:  # without a webhook
        flag(client, "c")
    receiver.refuses = lambda event: False
    with serving(address, model_file, count=9, webhook=hook):
        until(lambda: sorted({each["case"] for each in receiver.told("flag")}), ["a", "b", "c"])


def test_a_kill_in_the_middle_loses_nothing(tmp_path, model_file, receiver, monkeypatch):
    """All processes are killed while events are sent; each flag is told, in order for each case."""
    monkeypatch.setenv("SHORTLIST_WEBHOOK_SECRET", SECRET)
    receiver.refuses = lambda event: time.sleep(0.02)
    ids = [f"case {n}" for n in range(25)]
    # Started late, it has a share of the day's places: enough even in the day's last second.
    options = ("--count", "100000000", "--webhook", receiver.address)
    process, port = serve(tmp_path, model_file, *options)
    with Client(f"http://127.0.0.1:{port}") as client:
        with opened(str(tmp_path / "shortlist.db")) as store:
            until(lambda: bool(store.query("SELECT queue FROM hook_place")), True)
        for id in ids:
            assert client.decide(case(id, 900.0, "US")).flag
            client.claim(id, reviewer="kim")
        until(lambda: len(receiver.events) > 9, True)
    killed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in (process.pid, *map(int, killed)):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    n_before = len(receiver.events)
    assert n_before < 2 * len(ids)
    with opened(str(tmp_path / "shortlist.db")) as store:  # as if they had been gone for an hour
        store.query("UPDATE worker SET seen = seen - 3600")
    process, _ = serve(tmp_path, None, "--webhook", receiver.address)
    until(lambda: {each["case"] for each in receiver.told("assignment")} == set(ids), True)
    process.terminate()
    process.communicate()
    by_case = defaultdict(list)
    for event in receiver.events:
        by_case[event["data"]["case"]].append(event["type"])
    assert set(by_case) == set(ids)
    for told in by_case.values():  # some twice, and never an assignment before its flag
        assert told[0] == "flag"
        assert told == sorted(told, reverse=True)


def test_what_fails_too_often_is_kept_and_can_be_sent_again(
    tmp_path, model_file, receiver, monkeypatch
):
    """The list says what went wrong."""
    monkeypatch.setattr(webhook, "_MOST_TRIES", 2)
    receiver.refuses = lambda event: True
    path = tmp_path / "shortlist.db"
    with serving(path, model_file, count=9, webhook=(receiver.address, SECRET)) as client:
        until(lambda: places(client), True)
        flag(client, "a")
        until(lambda: len(client.get("/v1/webhook").json()["given_up"]), 1)
        [given_up] = client.get("/v1/webhook").json()["given_up"]
        assert (given_up["type"], given_up["case"]) == ("flag", "a")
        assert (given_up["error"], given_up["tries"]) == ("status 500", 2)
        receiver.refuses = lambda event: False
        client.post("/v1/webhook", json={"numbers": [given_up["number"]]})
        until(lambda: len(receiver.events), 1)
        until(lambda: client.get("/v1/webhook").json()["given_up"], [])


def test_alarms_are_told_once_while_they_last(tmp_path, model_file, receiver):
    """Those of the numbers, and those that a decider raises."""
    path = tmp_path / "shortlist.db"
    with serving(path, model_file, count=2, webhook=(receiver.address, SECRET)) as client:
        until(lambda: places(client), True)
        flag(client, "a", "b")  # used up early
        until(lambda: [each["kind"] for each in receiver.told("alarm")], ["rate"])
        with opened(str(path)) as store:
            for _ in range(2):
                store.raise_alarm("1", "error", "ValueError: the case x is odd", time.time())
        until(lambda: [each["kind"] for each in receiver.told("alarm")], ["rate", "error"])
        assert "case x" not in json.dumps(receiver.events)
        with opened(str(path)) as store:
            store.clear_alarm("1", "error")
            store.raise_alarm("1", "error", "again", time.time())
        until(lambda: [each["kind"] for each in receiver.told("alarm")][1:], ["error"] * 2)


def test_a_receiver_that_hangs_delays_no_decision(tmp_path, model_file, receiver):
    """It is waited for in another thread."""
    gate = threading.Event()
    receiver.refuses = lambda event: gate.wait(180)
    path = tmp_path / "shortlist.db"
    with serving(path, model_file, count=40, webhook=(receiver.address, SECRET)) as client:
        until(lambda: places(client), True)
        flag(client, "first")
        until(lambda: client.get("/v1/webhook").json()["waiting"], 1)
        flag(client, *(f"case {n}" for n in range(20)))
        assert client.get(f"{BASE}/status").json()["flags"] == 21
        assert receiver.events == []
        gate.set()


def test_an_erased_case_is_not_sent(tmp_path, model_file, receiver):
    """It was erased while the receiver was away; nobody hears of it, and nothing waits for ever."""
    receiver.refuses = lambda event: True
    path, hook = tmp_path / "shortlist.db", (receiver.address, SECRET)
    with serving(path, model_file, count=9, webhook=hook) as client:
        until(lambda: places(client), True)
        flag(client, "a", "b")
        until(lambda: client.get("/v1/webhook").json()["waiting"], 2)
    with opened(str(path)) as store:
        erase_cases(store, ["a"])
    receiver.refuses = lambda event: False
    with serving(path, model_file, count=9, webhook=hook) as client:
        until(lambda: client.get("/v1/webhook").json()["waiting"], 0)
    assert [each["case"] for each in receiver.told("flag")] == ["b"]


def test_a_redirect_is_not_followed(tmp_path, model_file, receiver, monkeypatch):
    """What is sent is for one address."""
    other = Receiver()
    monkeypatch.setattr(receiver, "take", lambda headers, content: 302)
    monkeypatch.setattr(receiver, "elsewhere", other.address)
    path = tmp_path / "shortlist.db"
    with serving(path, model_file, count=9, webhook=(receiver.address, SECRET)) as client:
        until(lambda: places(client), True)
        flag(client, "a")
        error = "SELECT max(error) FROM hook_event"
        until(lambda: client.service.store.query(error), [("status 302",)])
    assert other.events == []
    other.close()


def test_a_receiver_that_talks_nonsense_is_asked_again():
    """Whatever it answers, or if nobody is there: what went wrong is kept, and nothing ends."""
    with socket.create_server(("127.0.0.1", 0)) as nonsense:
        port = nonsense.getsockname()[1]

        def answer():
            link, _ = nonsense.accept()
            link.recv(1 << 16)
            link.sendall(b"hello\r\n\r\n")
            link.close()

        talking = threading.Thread(target=answer)
        talking.start()
        sender = webhook.Webhook(None, f"http://127.0.0.1:{port}/", SECRET)
        assert "BadStatusLine" in sender._send("id", b"{}")
        talking.join()
    assert "refused" in sender._send("id", b"{}")


@pytest.mark.parametrize(
    ("address", "secret", "message"),
    [
        ("http://example.org/hook", SECRET, "https://"),
        ("ftp://127.0.0.1/", SECRET, "https://"),
        ("https://", SECRET, "https://"),
        ("https://example.org/", "", "SHORTLIST_WEBHOOK_SECRET"),
        ("https://example.org/", "short", "openssl rand"),
    ],
)
def test_an_open_or_unsigned_webhook_is_refused(address, secret, message):
    """Cases would be read, or forged, on the way."""
    with pytest.raises(ValueError, match=message):
        check_webhook(address, secret)


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["flag", "claim", "send", "crash"]), st.integers(0, 7)),
        max_size=30,
    )
)
def test_whatever_fails_each_event_arrives_and_those_of_a_case_in_order(steps):
    """Receivers refuse, and workers die after they have sent and before they could write it."""
    clock, arrived, expected = [0.0], [], Counter()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(webhook, "time", SimpleNamespace(time=lambda: clock[0]))
        patch.setattr(webhook, "_MOST_TRIES", 10**6)
        path = f"{folder}/shortlist.db"
        queue = new_queue(path, capacity=10_000, period=DAY)
        hand = Hand(path, queue)
        with opened(path) as store:
            leads = SimpleNamespace(leads=lambda: True)
            hook = webhook.Webhook(SimpleNamespace(store=store, roster=leads), "", SECRET)
            hook._note_alarms = lambda: None
            hook._due()
            for kind, number in [*steps, *[("send", 0)] * 40]:
                clock[0] += 10.0**9
                if kind == "flag" and expected["flag"] < 8:
                    [answer] = hand.decide([(f"case {expected['flag']}", 1e6)])
                    expected["flag"] += answer.flag
                elif kind == "claim" and expected["flag"]:
                    case_id = f"case {number % expected['flag']}"
                    [entry] = store.find_cases(queue, [case_id])
                    store.note(0.0, "", "claim", "default", {"claim": {f"{queue}/{entry.seq}": ""}})
                    expected["assignment"] += 1
                elif kind in ("send", "crash"):
                    due = hook._due()
                    refused = {each[0] for n, each in enumerate(due) if number >> (n % 3) & 1}
                    arrived += [(id, content) for id, _, content in due if id not in refused]
                    if kind == "send":
                        sent = [(n, tries, "no" if n in refused else None) for n, tries, *_ in due]
                        hook._settle(sent)
            hand.close()
            assert store.query("SELECT count(*) FROM hook_event") == [(0,)]
    events = [json.loads(content) for content in dict(arrived).values()]  # each id once
    assert Counter(event["type"] for event in events) == expected
    for case_id in {event["data"]["case"] for event in events}:
        own = [event["type"] for event in events if event["data"]["case"] == case_id]
        assert own == ["flag", *["assignment"] * (len(own) - 1)]
