"""The client, the commands, and the audit, against a service that runs."""

import json
import os
import re
import shutil
import signal
import threading
from pathlib import Path
from urllib.parse import parse_qs

import jsonschema_rs
import numpy as np
import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app
from shortlist.client import Client, ServiceError
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from tests.service.helpers import case, made_queues, serve, serving
from tools.openapi import FILE


def command(*arguments):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(each) for each in arguments])


API = json.loads(FILE.read_bytes())


class DescribedClient(Client):
    """Whatever it sends and gets is as `openapi.json` describes."""

    def _send(self, method, path, body, headers):
        response, answer = super()._send(method, path, body, headers)
        whole, _, query = (path if path.startswith("/v1/") else self._base + path).partition("?")
        [found] = [
            each
            for each, methods in API["paths"].items()
            if method.lower() in methods and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), whole)
        ]
        operation = API["paths"][found][method.lower()]
        assert parse_qs(query).keys() <= {each["name"] for each in operation["parameters"]}
        if body is not None:
            kind = "octet-stream" if isinstance(body, bytes) else "json"
            taken = operation["requestBody"]["content"][f"application/{kind}"]
            assert isinstance(body, bytes) or fits(body, taken["schema"])
        responses = operation["responses"]
        given = responses.get(str(response.status), responses["default"])["content"]
        [content] = [given[response.headers["content-type"]]]
        assert fits(answer, content["schema"])
        return response, answer


def fits(value, schema):
    """Whether a value is what a schema of the description says."""
    return jsonschema_rs.is_valid({**schema, "components": API["components"]}, value)


@pytest.fixture
def client(service):
    """Return a client of a running service, which checks each request and answer."""
    with DescribedClient(str(service.base_url)) as made:
        yield made


def test_a_client_decides_and_reviews(client):
    """Everything that the API offers, in one afternoon."""
    answer = client.decide(case("top", 900.0, "US"))
    assert answer.flag
    assert client.decide(case("top", 900.0, "US")).repeated
    first, wrong = client.decide_many([case("b"), {"id": "c"}])
    assert (first.id, wrong.kind) == ("b", "invalid-case")
    assert client.claim("top", reviewer="kim")["reviewer"] == "kim"
    assert client.tell("top", rare=True, reviewer="kim") == 1
    assert client.find("top")["outcomes"][0]["rare"]
    assert [each["id"] for each in client.cases("period")] == ["top"]
    client.set_capacity(7)
    assert client.status()["capacity"] == 7
    assert [entry["seq"] for entry in client.log(after=3)] == [4, 5, 6]


def test_a_newer_service_may_say_more(client, monkeypatch):
    """Fields that this client does not know are left out."""
    known = client.decide(case("top", 900.0, "US"))
    told = {**known._asdict(), "queue": "default", "lane": 3}
    answers = {"one": told, "many": [told, {"error": {"status": 422, "lane": 3}}]}
    monkeypatch.setattr(client, "ask", lambda *_: answers["one"])
    assert client.decide(case("top")) == known
    monkeypatch.setattr(client, "ask", lambda *_: answers["many"])
    first, second = client.decide_many([case("top"), case("b")])
    assert (first, second.status) == (known, 422)


def test_a_client_shares_the_work(client, monkeypatch):
    """Reviewers, assignments, the next case, releases, and a queue of one's own."""
    monkeypatch.setattr("shortlist.client._PIECE", 2)
    client.set_capacity(50)
    assert all(each.flag for each in client.decide_many([case(f"{n}", 900.0) for n in range(5)]))
    client.set_reviewer("kim & co", 3, segments=None)
    assert client.set_capacity(staff=1)["count"] == 3
    assert len(client.assign()["assigned"]) + len(client.cases("mine", reviewer="kim & co")) >= 3
    assert [each["minutes"] for each in client.ask("GET", "/v1/reviewers")["reviewers"]] == [3]
    held = client.next(reviewer="kim & co")["id"]
    assert client.release(held, reviewer="kim & co", decline=True)["holder"] is None
    assert client.tell(held, rare=None, reviewer="lee") == 1
    assert [len(client.cases(view)) for view in ("open", "closed")] == [4, 1]
    client.ask("DELETE", "/v1/reviewers/kim%20%26%20co")
    assert client.ask("GET", "/v1/reviewers")["reviewers"] == []
    assert client.ask("POST", "/v1/queues", {"name": "north", "count": 3})["capacity"] == 3
    assert client.ask("GET", "/v1/me") == {
        "name": None,
        "role": "all",
        "queues": ["default", "north"],
    }


def test_a_client_tries_a_model_before_it_decides(client, model_file, tmp_path):
    """A shadow model, the comparison, and the way there and back."""
    import zipfile

    other = tmp_path / "other"
    other.write_bytes(model_file.read_bytes())
    with zipfile.ZipFile(other, "a") as archive:
        archive.comment = b"another version"
    assert client.ask("PUT", "/shadow", other.read_bytes())["shadow"] == 2
    assert client.ask("GET", "/shadow")["verdict"] == "not enough evidence"
    assert client.ask("POST", "/promote", again=False)["model"] == 2
    assert client.ask("POST", "/back", again=False)["model"] == 1
    assert client.ask("DELETE", "/shadow")["shadow"] == 0


def test_a_long_list_comes_in_pieces(client, monkeypatch):
    """Whatever fits into one answer, the client returns every flagged case once, by score."""
    client.set_capacity(9)
    client.decide_many([case(f"top {n}", 900.0 + n, "US") for n in range(20)])
    whole = client.cases("period")
    assert len(whole) == client.status()["used"] > 3
    monkeypatch.setattr("shortlist.client._PIECE", 2)
    assert client.cases("period") == whole


def test_an_outcome_that_is_told_again_after_a_lost_answer_counts_once(client, monkeypatch):
    """The repetition comes after another reviewer's outcome, and has the key of the first."""
    client.decide(case("top", 900.0, "US"))
    send, lost = client._send, []

    def lose_the_first(*request):
        answer = send(*request)
        if not lost:
            lost.append(answer)
            monkeypatch.setattr(client, "_send", send)
            assert client.tell("top", rare=False, reviewer="lee") == 2
            raise OSError("the answer was lost")
        return answer

    monkeypatch.setattr(client, "_send", lose_the_first)
    assert client.tell("top", rare=True, reviewer="kim") == 1
    assert len(client.find("top")["outcomes"]) == 2


def test_observations_count_once_whatever_happens_to_the_answer(client, monkeypatch):
    """Nobody knows whether a lost request was heard, so that it is an error and no repetition."""
    send = client._send

    def lose(*request):
        send(*request)
        raise OSError("the answer was lost")

    monkeypatch.setattr(client, "_send", lose)
    with pytest.raises(ServiceError, match="may have counted") as caught:
        client.observe([case("a")])
    assert caught.value.kind == "no-answer"
    monkeypatch.undo()
    assert [entry["kind"] for entry in client.log(after=3)] == [4]
    attempts = []  # but a service that does not listen has heard nothing

    def refuse(*request):
        attempts.append(request)
        if len(attempts) < 3:
            raise ConnectionRefusedError
        return send(*request)

    monkeypatch.setattr(client, "_send", refuse)
    assert client.observe([case("c")]) == 1
    assert len(attempts) == 3


def test_problems_are_errors(client):
    """They have a status and a kind; hopeless requests are not repeated."""
    client.decide(case("a"))
    with pytest.raises(ServiceError) as caught:
        client.decide(case("a", 1.0))
    assert (caught.value.status, caught.value.kind) == (422, "conflict")
    with pytest.raises(ValueError, match="http://"):
        Client("127.0.0.1")


def test_a_client_repeats_until_there_is_an_answer(tmp_path, model_file):
    """A service that is away for a moment costs time, and nothing else."""
    here, away = tmp_path / "shortlist.db", tmp_path / "away"
    with (
        serving(here, model_file, patience=0.3) as service,
        Client(str(service.base_url), retries=8) as client,
    ):
        client.decide(case("a"))
        here.rename(away)
        back = threading.Timer(0.5, away.rename, [here])
        back.start()
        assert client.decide(case("b")).id == "b"
        back.join()


def test_an_audit_replays_every_decision(tmp_path, model_file, service):
    """Nothing is wrong with what a service did."""
    with Client(str(service.base_url)) as client:
        client.decide_many([case(n, 10.0 * n) for n in range(200)])
        client.set_capacity(2)
        client.decide_many([case(f"b{n}", 10.0 * n) for n in range(50)])
    run = command("serve", "audit", tmp_path / "shortlist.db", "--json")
    assert run.exit_code == 0
    [found] = json.loads(run.stdout)["queues"]
    assert (found["n_decisions"], found["n_replayed"], found["problems"]) == (250, 250, [])
    assert found["n_rescored"] == found["n_flags"] > 0


@pytest.fixture(scope="module")
def decided(tmp_path_factory, model_file):
    """Return the database of a service that has decided about sixty cases."""
    database = tmp_path_factory.mktemp("decided") / "shortlist.db"
    with serving(database, model_file) as service, Client(str(service.base_url)) as client:
        amounts = np.random.default_rng(0).permutation(60) * 10.0
        client.decide_many([case(n, float(each)) for n, each in enumerate(amounts)])
        assert client.status()["used"] >= 2
    return database


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE log SET slot = NULL WHERE slot = 1", "slot 2 where 1"),
        ("UPDATE log SET threshold = 0.123 WHERE kind = 0 AND seq = 20", "differ"),
        ("DELETE FROM log WHERE seq = 15", "does not follow"),
        ("UPDATE log SET at = at - 99999 WHERE seq = 15", "earlier"),
        ("UPDATE log SET case_id = '3' WHERE case_id = '4'", "second time"),
        ('UPDATE log SET body = \'{"count": 1, "from": 0}\' WHERE seq = 1', "flag 2 of 1"),
        (
            "UPDATE log SET body = replace(body, '\"amount\":', '\"amount\":1') WHERE slot = 1",
            "columns",
        ),
        ("UPDATE log SET body = '{}' WHERE slot = 2", "columns"),
        ("UPDATE model SET file = x'00'", "file of model 1"),
        ("UPDATE model SET calibration = x'0000000000000000'", "table model"),
    ],
)
def test_an_audit_finds_what_was_changed(tmp_path, decided, change, problem):
    """Whoever changes the database by hand, past all of its locks, is found out."""
    database = tmp_path / "shortlist.db"
    shutil.copy(decided, database)
    with opened(str(database)) as store:
        for name in ("log_unchanged", "log_erased", "log_kept", "log_capacity"):
            store.query(f"DROP TRIGGER {name}")
        store.query("DROP INDEX log_case")
        store.query(change)
        [found] = audit_store(store)
    assert any(problem in each for each in found.problems), found.problems


def test_one_command_serves_until_it_is_told_to_stop(tmp_path, model_file):
    """It forks workers, refills them, drains at SIGTERM, and goes on where it was."""
    process, port = serve(tmp_path, model_file, "--count", "5", "--period", "day")
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            first = client.decide(case("a", 900.0, "US"))
            children = f"/proc/{process.pid}/task/{process.pid}/children"
            for pid in Path(children).read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            assert client.decide(case("a", 900.0, "US")) == first._replace(repeated=True)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(180) == 0
        assert "ERROR" not in process.stderr.read()
        process.stderr.close()
    process, port = serve(tmp_path, None)
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            assert client.decide(case("a", 900.0, "US")).repeated
    finally:
        process.terminate()
        process.wait(180)
        process.stderr.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--count 50"),
        (["--count", "5", "--queue", "north"], "north=30"),
        (["--count", "5", "--period", "soon"], "not a length of time"),
        (["--count", "5", "--period", "day Moon/Sea"], "time zone"),
    ],
)
def test_a_start_that_cannot_work_says_why(tmp_path, model_file, options, words):
    """In one line, and nothing is served."""
    run = command(
        "serve", model_file, "--database", tmp_path / "shortlist.db", "--port", 0, *options
    )
    assert run.exit_code == 2
    assert words in run.stderr
    assert "Traceback" not in run.stderr


def test_the_same_command_starts_again_after_a_change(tmp_path, model_file):
    """What was changed over HTTP stays, and the command says so; a crash is no restart loop."""
    for expected in (5, 7):
        process, port = serve(tmp_path, model_file, "--count", "5", "--period", "day")
        with Client(f"http://127.0.0.1:{port}") as client:
            assert client.status()["capacity"] == expected
            client.set_capacity(7)
        process.terminate()
        assert process.wait(180) == 0
        said = process.stderr.read()
        process.stderr.close()
        assert ("keeps capacity 7, and not 5" in said) == (expected == 7)


def test_a_start_changes_no_capacity(address, model_file, caplog):
    """A restart with another number says what the queue keeps; a request changes it."""
    database = address
    made_queues(database, model_file, count=5)
    with serving(database, model_file, count=6) as service:
        assert service.get("/v1/queues/default/status").json()["capacity"] == 5
        service.put("/v1/queues/default/capacity", json={"count": 6})
    assert "keeps capacity 5, and not 6. Change it while the service runs" in caplog.text
    with opened(str(database)) as store:
        changes = store.query(
            "SELECT key_id, action, queue, detail FROM audit WHERE queue IS NOT NULL "
            "ORDER BY at, action"
        )
    assert [change[:3] for change in changes] == [
        ("command", "capacity", "default"),
        ("command", "model", "default"),
        ("", "capacity", "default"),
    ]
    assert [json.loads(changes[place][3])["count"] for place in (0, 2)] == [5, 6]


def test_a_shared_total_is_for_good(tmp_path, model_file, caplog):
    """A request changes it, but a queue cannot get one or lose it."""
    plain, shared = tmp_path / "plain.db", tmp_path / "shared.db"
    queues = {"north": 5}

    def start(database, total, *, changed=None):
        with serving(database, model_file, queues=queues, made={"total": total}) as service:
            if changed is not None:
                answer = service.put("/v1/total", json={"count": changed})
                assert answer.status_code == (409 if total is None else 200)
            cases = [case(n, 10.0 * n) for n in range(100)]
            for name in ("default", "north"):
                service.post(f"/v1/queues/{name}/decisions", json=cases)

    start(plain, None, changed=9)
    with pytest.raises(ValueError, match="made with total None"):
        start(plain, 6)
    start(shared, 6)
    with pytest.raises(ValueError, match="made with total 6"):
        start(shared, None)
    start(shared, 2, changed=2)
    assert "keeps total 6, and not 2" in caplog.text
    with opened(str(shared)) as store:
        details = store.query("SELECT detail FROM audit WHERE action = 'total' ORDER BY at")
        assert [json.loads(detail)["capacity"] for (detail,) in details] == [6, 2]
        assert [found.problems for found in audit_store(store)] == [[], []]
        store.query("DROP TRIGGER note_kept")
        store.query("DELETE FROM note")
        assert all("of 2 in period" in found.problems[-1] for found in audit_store(store))


def test_keys_are_made_listed_and_revoked_by_a_command(tmp_path, model_file):
    """A key is shown once; with a key, the service may listen to others."""
    made_queues(tmp_path / "shortlist.db", model_file)

    def keys(*options):
        run = command("serve", "keys", "--database", tmp_path / "shortlist.db", *options)
        assert run.exit_code == 0
        return run.stdout

    key = keys("decide", "--queue", "default", "--person", "shop").strip()
    name = key.split("_")[1]
    assert key.startswith("sl_")
    assert key.split("_")[2] not in keys()
    assert "valid" in keys()
    revoked = command("serve", "revoke", name, "--database", tmp_path / "shortlist.db")
    assert (revoked.exit_code, "is revoked" in revoked.stderr) == (0, True)
    assert "revoked" in keys()
    keys("review", "--person", "kim")
    assert "kim" in keys()
    wrong = ("serve", "keys", "review", "--database", tmp_path / "shortlist.db")
    refused = command(*wrong, "--person", "")
    assert (refused.exit_code, "ot a valid name" in refused.stderr) == (2, True)
    before = keys()
    without = command(*wrong[:2], *wrong[3:], "--days", "3")  # whose role nobody has said
    assert (without.exit_code, "give the role" in without.stderr) == (2, True)
    assert keys() == before


def test_a_command_takes_the_secret_of_a_proxy_and_a_segment(tmp_path, model_file, monkeypatch):
    """The secret comes from the environment, without a line break at its end."""
    seen = []
    monkeypatch.setattr(
        "shortlist.service.supervisor.run_service", lambda config, **_: seen.append(config) or 0
    )
    monkeypatch.setenv("SHORTLIST_PROXY_SECRET", "s3\n")
    database = tmp_path / "shortlist.db"
    run = command(
        "serve", model_file, "--count", 5, "--segment", "country", "--database", database,
    )  # fmt: skip
    assert (run.exit_code, seen[0].proxy_secret) == (0, b"s3")
    with opened(str(database)) as store:
        assert '"segment": "country"' in store.queues()[0].settings
    monkeypatch.setenv("SHORTLIST_PROXY_SECRET", "\n")
    assert command("serve", "--database", database).exit_code == 0
    assert seen[1].proxy_secret is None
