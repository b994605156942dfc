"""The API: what each path answers, and to whom."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from shortlist.service._routes import ROUTES
from shortlist.service.databases import opened
from shortlist.service.keys import ROLES, make_key, revoke_key
from shortlist.service.store import PromiseError
from tests.service.helpers import case, made_queues, serving, until

BASE = "/v1/queues/default"


def flagged_case(client, id="top"):
    """Decide about a case that is flagged."""
    answer = client.post(f"{BASE}/decisions", json=case(id, 900.0, "US")).json()
    assert answer["flag"]
    return answer


def test_a_case_gets_an_object_and_a_list_gets_a_list(service):
    """Each answer has the id, the flag, the score, the threshold, the reason and more."""
    one = service.post(f"{BASE}/decisions", json=case("a")).json()
    many = service.post(f"{BASE}/decisions", json=[case("a"), case("b"), {"id": "c"}]).json()
    assert set(one) == {
        "id", "flag", "score", "threshold", "reason", "repeated", "at", "model"
    }  # fmt: skip
    assert [answer.get("repeated") for answer in many] == [True, False, None]
    assert "amount" in many[2]["error"]["detail"]
    assert service.post(f"{BASE}/decisions", json=[]).json() == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b'"text"', 400),
        (b"[1]", 400),
        (b"\xff", 400),
        (b'{"amount": 1, "country": "DE"}', 422),
        (b'{"id": "", "amount": 1, "country": "DE"}', 422),
        (b'{"id": "a\\u0000", "amount": 1, "country": "DE"}', 422),
        (b'{"id": true, "amount": 1, "country": "DE"}', 422),
        (b'{"id": "a", "amount": "much", "country": "DE"}', 422),
        (b'{"id": "a", "country": "DE"}', 422),
        (b"[" * 100_000, 400),
        (b"[" + b'{"id": 1},' * 1_024 + b'{"id": 1}]', 413),
        (b" " * (5 << 20), 413),
    ],
)
def test_invalid_bodies_are_problems(untouched, content, status):
    """The answer is a problem that says what to do; nothing is decided."""
    headers = {"content-type": "application/json"}
    answer = untouched.post(f"{BASE}/decisions", content=content, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert untouched.get(f"{BASE}/status").json()["seen"] == 0


def test_a_known_id_with_other_columns_is_refused(service):
    """Status 422; the order of the columns does not matter."""
    service.post(f"{BASE}/decisions", json=case("a"))
    turned = dict(reversed(case("a").items()))
    assert service.post(f"{BASE}/decisions", json=turned).json()["repeated"]
    assert service.post(f"{BASE}/decisions", json=case("a", 21.0)).status_code == 422


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": 1}, {"id": 1.0}),
        ({"amount": 20}, {"amount": 20.0}),
        ({"extra": 0}, {"extra": -0.0}),
        ({"shop": {"floors": [1, {"rooms": 2}]}}, {"shop": {"floors": [1.0, {"rooms": 2.0}]}}),
    ],
)
def test_a_whole_number_may_be_written_with_a_point(service, first, second):
    """As an id or as a value: 1 and 1.0 are the same, 1 and 1.5 are not."""
    for n, body in enumerate((first, second)):
        answer = service.post(f"{BASE}/decisions", json={**case("a"), **body})
        assert (answer.status_code, answer.json()["repeated"]) == (200, n == 1)
    answer = service.post(f"{BASE}/decisions", json={**case("a"), **first, "country": "FR"})
    assert answer.status_code == 422
    assert service.post(f"{BASE}/decisions", json=case(1.5)).status_code == 422


@pytest.mark.parametrize("depth", [5, 300, 900, 5_000])
def test_columns_may_be_nested_but_not_without_end(service, depth):
    """Whatever cannot be read is refused before it reaches the thread that decides."""
    body = b'{"id": "deep", "amount": 1, "country": "DE", "extra": %s1%s}'
    sent = body % (b"[" * depth, b"]" * depth)
    headers = {"content-type": "application/json"}
    code = service.post(f"{BASE}/decisions", content=sent, headers=headers).status_code
    assert code == 200 if depth == 5 else code in (200, 400, 422)
    assert service.post(f"{BASE}/decisions", json=case("next")).status_code == 200
    assert service.get("/v2/health/ready").status_code == 200


def test_numbers_of_a_query_are_digits(untouched):
    """As in JSON: no underscores, signs or blanks."""
    for wrong in ("1_0", "%2B10", "+10", "010", "1.5", "ten"):
        assert untouched.get(f"{BASE}/log?limit={wrong}").status_code == 422, wrong


def test_what_remains_respects_the_shared_total(tmp_path, model_file):
    """Room in the queue alone is no room: the total of all queues may be used up."""
    options = {"queues": {"north": 9}, "made": {"total": 5}}
    with serving(tmp_path / "shortlist.db", model_file, count=4, **options) as client:
        flags = {}
        for name in ("default", "north"):
            path = f"/v1/queues/{name}/decisions"
            cases = [case(n, 900.0, "US") for n in range(100)]
            flags[name] = sum(each["flag"] for each in client.post(path, json=cases).json())
            left = 5 - sum(flags.values())
            remaining = {
                row["name"]: row["remaining"] for row in client.get("/v1/queues").json()["queues"]
            }
            assert remaining == {
                "default": min(4 - flags["default"], left),
                "north": min(9 - flags.get("north", 0), left),
            }
        assert left == 0 < 9 - flags["north"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/jsonp", 415),
        ("text/xml", 415),
    ],
)
def test_only_json_is_read(service, kind, status):
    """The type is looked at before the body is, on every path."""
    body = b"<case/>" if "xml" in kind else b'{"id": "a", "amount": 1, "country": "DE"}'
    headers = {"content-type": kind}
    assert service.post(f"{BASE}/decisions", content=body, headers=headers).status_code == status
    body = body if "xml" in kind else b'{"count": 7}'
    assert service.put(f"{BASE}/capacity", content=body, headers=headers).status_code == status


def test_the_longest_list_is_one_group(service):
    """All 1,024 cases count at one moment, and each has its answer in its place."""
    cases = [case(f"a{k}", float(k)) for k in range(1_024)]
    answers = service.post(f"{BASE}/decisions", json=cases).json()
    assert [answer["id"] for answer in answers] == [each["id"] for each in cases]
    assert len({answer["at"] for answer in answers}) == 1
    assert sum(answer["flag"] for answer in answers) <= 5


def test_no_more_flags_than_the_capacity(service):
    """Of a hundred cases that deserve it, at most five are flagged, and the status counts them."""
    cases = [case(f"top {n}", 900.0, "US") for n in range(100)]
    flags = sum(answer["flag"] for answer in service.post(f"{BASE}/decisions", json=cases).json())
    status = service.get(f"{BASE}/status").json()
    assert 0 < flags <= 5
    assert (status["used"], status["remaining"], status["seen"]) == (flags, 5 - flags, 100)
    listed = service.get(f"{BASE}/cases?view=period&limit=1").json()
    last = listed["cases"][0]["id"]
    rest = service.get(f"{BASE}/cases", params={"view": "period", "before": last}).json()
    assert listed["total"] == rest["total"] == flags
    assert (len(listed["cases"]), len(rest["cases"])) == (1, flags - 1)


def test_reviewers_claim_and_tell_outcomes(service):
    """A claim keeps others away until it expires; outcomes are appended, once."""
    flagged_case(service)
    claim = {"id": "top", "reviewer": "kim", "seconds": 60}
    first = service.post(f"{BASE}/claims", json=claim)
    again = service.post(f"{BASE}/claims", json=claim)
    other = service.post(f"{BASE}/claims", json={**claim, "reviewer": "lee"})
    assert [each.status_code for each in (first, again, other)] == [200, 200, 409]
    assert first.json()["expires"] < again.json()["expires"]
    [listed] = service.get(f"{BASE}/cases?view=period").json()["cases"]
    assert (listed["id"], listed["holder"], listed["outcome"]) == ("top", "kim", None)
    assert listed["reasons"][0]["column"] == "amount"
    outcome = {"id": "top", "rare": True, "reviewer": "kim"}
    told = [service.post(f"{BASE}/outcomes", json=outcome) for _ in range(2)]
    assert [answer.json()["repeated"] for answer in told] == [False, True]
    changed = service.post(f"{BASE}/outcomes", json={**outcome, "rare": False}).json()
    assert changed["number"] == 2
    assert service.get(f"{BASE}/status").json()["precision"]["reviewed"] == 1
    outcomes = service.get(f"{BASE}/decisions/top").json()["outcomes"]
    assert [each["rare"] for each in outcomes] == [True, False]


def test_the_status_and_the_list_read_each_outcome_once(tmp_path, model_file):
    """With 50,000 outcomes, the database takes a few hundred steps for each, not thousands."""
    n, steps = 50_000, 0

    def count():
        nonlocal steps
        steps += 10_000
        return steps > 1_000 * n  # end it rather than wait for hours

    with serving(tmp_path / "shortlist.db", model_file, count=n) as client:
        number = client.get(f"{BASE}/status").json()["number"]
        store = client.service.store
        with store.write():
            numbers = "WITH RECURSIVE k (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM k LIMIT ?) "
            store.query(
                f"{numbers} INSERT INTO log (queue, seq, kind, build, at, period, case_id, score, "
                "threshold, code, slot, model, hash) SELECT 1, 1000 + k, 0, 1, 0, ?, 'c' || k, k, "
                "0, 1, k, 1, x'' FROM k",
                n,
                number,
            )
            store.query(
                f"{numbers} INSERT INTO outcome (queue, number, case_id, rare, reviewer, at, "
                "seal) SELECT 1, k, 'c' || k, 1, 'kim', 0, x'' FROM k",
                n,
            )
        store.link.set_progress_handler(count, 10_000)
        status = client.get(f"{BASE}/status").json()
        listed = client.get(f"{BASE}/cases?view=period&limit=1").json()
    assert status["precision"]["reviewed"] == listed["total"] == n
    assert listed["cases"][0]["outcome"]["rare"] is True
    assert 0 < steps <= 400 * n


def test_a_late_repetition_of_an_outcome_changes_nothing(service):
    """Its key says that it is the same one, although another reviewer spoke in between."""
    flagged_case(service)
    first = {"id": "top", "rare": True, "reviewer": "kim"}
    key = {"Idempotency-Key": "once"}
    numbers = [
        service.post(f"{BASE}/outcomes", json=body, headers=headers).json()["number"]
        for body, headers in [(first, key), ({**first, "reviewer": "lee"}, {}), (first, key)]
    ]
    assert numbers == [1, 2, 1]
    assert len(service.get(f"{BASE}/decisions/top").json()["outcomes"]) == 2
    other = service.post(f"{BASE}/outcomes", json={**first, "rare": False}, headers=key)
    assert other.status_code == 422


def test_what_reviewers_did_is_noted_and_kept(service, tmp_path, monkeypatch):
    """Claims and outcomes come with their note or not at all, and cannot be changed later."""
    flagged_case(service)
    body = {"id": "top", "reviewer": "kim"}
    outcome = {**body, "rare": True}
    for path, sent in (("claims", body), ("outcomes", outcome)):
        with monkeypatch.context() as patch:
            patch.setattr(service.service.store, "note", lambda *args, **options: 1 / 0)
            assert service.post(f"{BASE}/{path}", json=sent).status_code == 500
    with opened(str(tmp_path / "shortlist.db")) as store:
        for table in ("claim", "outcome", "note WHERE queue IS NOT NULL"):
            assert store.query(f"SELECT * FROM {table}") == []
        assert service.post(f"{BASE}/claims", json=body).status_code == 200
        assert service.post(f"{BASE}/outcomes", json=outcome).status_code == 200
        noted = store.query("SELECT action FROM note WHERE queue IS NOT NULL ORDER BY number")
        assert noted == [("claim",), ("outcome",)]
        for statement in ("UPDATE outcome SET rare = 0", "DELETE FROM note"):
            with pytest.raises(PromiseError, match="append-only"):
                store.query(statement)


def test_an_idempotency_key_is_good_for_one_outcome(service):
    """The same key with other words is refused."""
    flagged_case(service)
    outcome = {"id": "top", "rare": True, "reviewer": "kim"}
    headers = {"idempotency-key": "x1"}
    answers = [
        service.post(f"{BASE}/outcomes", json=body, headers=headers)
        for body in (outcome, outcome, {**outcome, "rare": False})
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 422]


def test_cases_that_were_not_flagged_cannot_be_reviewed(service):
    """Reviewing below the threshold would spoil what is known about it."""
    service.post(f"{BASE}/decisions", json=case("low", 1.0))
    for path, body in (("claims", {}), ("outcomes", {"rare": True})):
        answer = service.post(f"{BASE}/{path}", json={"id": "low", "reviewer": "kim", **body})
        assert answer.status_code == 409
        unknown = service.post(f"{BASE}/{path}", json={"id": "no", "reviewer": "kim", **body})
        assert unknown.status_code == 404


def test_capacities_change_now_or_later(service):
    """A change is an entry of the log; a moment may be a text."""
    now = service.put(f"{BASE}/capacity", json={"count": 0}).json()
    later = service.put(f"{BASE}/capacity", json={"count": 9, "from": "2100-01-01T00:00:00Z"})
    assert service.post(f"{BASE}/decisions", json=case("a", 900.0, "US")).json()["flag"] is False
    status = service.get(f"{BASE}/status").json()
    assert (status["capacity"], status["scheduled"][0]["count"]) == (0, 9)
    assert later.json()["seq"] == now["seq"] + 1
    past = service.put(f"{BASE}/capacity", json={"count": 3, "from": 1.0}).json()
    assert past["from"] == past["at"] > later.json()["at"]
    for wrong in ({"count": -1}, {"count": 1.5}, {"count": 1, "from": "soon"}, {}, {"n": 1}):
        assert service.put(f"{BASE}/capacity", json=wrong).status_code == 422


def test_another_model_takes_over(service, model_file, tmp_path):
    """Its file is sent, and every later answer names the new version."""
    headers = {"content-type": "application/octet-stream"}
    send = lambda content: service.post(f"{BASE}/model", content=content, headers=headers)  # noqa: E731
    refused = send(b"no model")
    assert refused.status_code == 422
    assert "The file is not a model" in refused.json()["detail"]
    other = tmp_path / "other"
    content = model_file.read_bytes()
    other.write_bytes(content)
    import zipfile

    with zipfile.ZipFile(other, "a") as archive:
        archive.comment = b"another version"
    answer = send(other.read_bytes()).json()
    assert answer["model"] == 2
    assert service.post(f"{BASE}/decisions", json=case("a")).json()["model"] == 2
    events = [e["event"] for e in service.get(f"{BASE}/log").json()["entries"] if e["event"]]
    assert {"model": 2, "from": answer["at"]} in events


def test_the_log_can_be_read_in_parts(service):
    """`after` and `limit` page through it, without gaps."""
    service.post(f"{BASE}/decisions", json=[case(n) for n in range(7)])
    entries, after = [], 0
    while part := service.get(f"{BASE}/log?after={after}&limit=4").json()["entries"]:
        entries += part
        after = part[-1]["seq"]
    assert [entry["seq"] for entry in entries] == list(range(1, 11))
    assert service.get(f"{BASE}/log?after=x").status_code == 422


def test_health_and_metrics(service):
    """Liveness, readiness and the gauges that come from the database."""
    assert service.get("/v2/health/live").status_code == 200
    assert service.get("/v2/health/ready").status_code == 200
    flagged_case(service)
    text = service.get("/metrics").text
    assert 'shortlist_used{queue="default"} 1.0' in text
    assert 'shortlist_capacity{queue="default"} 5.0' in text
    assert 'shortlist_requests_total{action="decide",status="200"} 1.0' in text
    assert 'shortlist_decision_seconds_bucket{le="+Inf"} 1.0' in text
    assert "shortlist_decision_seconds_count 1.0" in text
    assert service.get("/nowhere").status_code == 404
    assert service.get(f"{BASE}/decisions").status_code == 405


def test_without_keys_other_sites_are_refused(service):
    """A page in somebody's browser cannot ask the service of their machine."""
    for headers in ({"host": "evil.example"}, {"host": "[::1"}, {"sec-fetch-site": "cross-site"}):
        assert service.get("/v1/queues", headers=headers).status_code == 403
        answer = service.post(f"{BASE}/decisions", json=case("a"), headers=headers)
        assert answer.status_code == 403
    plain = {"content-type": "text/plain"}
    answer = service.post(f"{BASE}/decisions", content=b'{"id": 1}', headers=plain)
    assert answer.status_code == 415


OPERATIONS = {
    "queues": ("GET", "/v1/queues", None),
    "decide": ("POST", "/v1/queues/{q}/decisions", case("a")),
    "case": ("GET", "/v1/queues/{q}/decisions/a", None),
    "claim": ("POST", "/v1/queues/{q}/claims", {"id": "a"}),
    "outcome": ("POST", "/v1/queues/{q}/outcomes", {"id": "a", "rare": True}),
    "capacity": ("PUT", "/v1/queues/{q}/capacity", {"count": 5}),
    "allow": ("POST", "/v1/queues/{q}/allowed", {"entity": "ann", "until": 5}),
    "total": ("PUT", "/v1/total", {"count": 5}),
    "make_queue": ("POST", "/v1/queues", {"name": "south", "count": 1}),
    "me": ("GET", "/v1/me", None),
    "reviewers": ("GET", "/v1/reviewers", None),
    "set_reviewer": ("PUT", "/v1/reviewers/kim", {"minutes": 60}),
    "drop_reviewer": ("DELETE", "/v1/reviewers/kim", None),
    "cases": ("GET", "/v1/queues/{q}/cases", None),
    "next": ("POST", "/v1/queues/{q}/next", {}),
    "assign": ("POST", "/v1/queues/{q}/assignments", None),
    "release": ("POST", "/v1/queues/{q}/releases", {"id": "a"}),
    "model": ("POST", "/v1/queues/{q}/model", None),
    "shadow": ("GET", "/v1/queues/{q}/shadow", None),
    "set_shadow": ("PUT", "/v1/queues/{q}/shadow", None),
    "end_shadow": ("DELETE", "/v1/queues/{q}/shadow", None),
    "promote": ("POST", "/v1/queues/{q}/promote", None),
    "back": ("POST", "/v1/queues/{q}/back", None),
    "observe": ("POST", "/v1/queues/{q}/observations", [case("b")]),
    "status": ("GET", "/v1/queues/{q}/status", None),
    "log": ("GET", "/v1/queues/{q}/log", None),
    "metrics": ("GET", "/metrics", None),
    "backlog": ("GET", "/v1/queues/{q}/backlog", None),
    "undelivered": ("GET", "/v1/webhook", None),
    "send_again": ("POST", "/v1/webhook", {"numbers": []}),
}
#: What a key for some queues may not do.
EVERYWHERE = {
    "total", "make_queue", "set_reviewer", "drop_reviewer", "undelivered", "send_again"
}  # fmt: skip


def test_every_operation_and_every_role(tmp_path, model_file):
    """A role may do what its list says, on its own queues, and nothing else."""
    assert set(OPERATIONS) | {"live", "ready"} == {route.name for route in ROUTES}
    assert [route.name for route in ROUTES if route.is_open] == ["live", "ready"]
    database = tmp_path / "shortlist.db"
    made_queues(database, model_file, queues={"north": 3})
    with opened(str(database)) as store:
        keys = {role: make_key(store, role) for role in ROLES}
        north = {role: make_key(store, role, queues=["north"]) for role in ROLES}
        revoked = make_key(store, "manage")
        revoke_key(store, revoked.split("_")[1])
    with serving(database, model_file, queues={"north": 3}, keys_required=True) as client:

        def ask(action, key, queue="default"):
            method, path, body = OPERATIONS[action]
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            if action in ("model", "set_shadow"):
                headers["content-type"] = "application/octet-stream"
            return client.request(method, path.format(q=queue), json=body, headers=headers)

        for action in OPERATIONS:
            for wrong in (None, "sl_x_y", revoked, keys["read"][:-1], "_"):
                assert ask(action, wrong).status_code == 401, action
            for role, allowed in ROLES.items():
                status = ask(action, keys[role]).status_code
                assert (status not in (401, 403)) == (action in allowed), (action, role)
                if action in EVERYWHERE:
                    assert ask(action, north[role]).status_code == 403, (action, role)
                elif action not in ("queues", "metrics", "me", "reviewers"):
                    assert ask(action, north[role]).status_code == 403, (action, role)
                    status = ask(action, north[role], "north").status_code
                    assert (status not in (401, 403)) == (action in allowed), (action, role)
        names = [queue["name"] for queue in ask("queues", north["read"]).json()["queues"]]
        assert names == ["north"]
        assert client.get("/v2/health/live").status_code == 200
    with opened(str(database)) as store:
        made = store.query("SELECT action, key_id FROM audit")
        text = str(store.query("SELECT * FROM api_key")) + str(store.query("SELECT * FROM audit"))
    assert {"key made", "key revoked"} <= {action for action, _ in made}
    assert ("capacity", keys["manage"].split("_")[1]) in made
    assert not any(key.split("_")[2] in text for key in (*keys.values(), revoked))


def test_a_revoked_key_stops_working(tmp_path, model_file, monkeypatch):
    """Within seconds, without a restart."""
    monkeypatch.setattr("shortlist.service._service._FRESH", 0.2)
    database = tmp_path / "shortlist.db"
    made_queues(database, model_file)
    with opened(str(database)) as store:
        key = make_key(store, "read")
        with serving(database, model_file, keys_required=True) as client:
            headers = {"x-api-key": key}
            assert client.get("/v1/queues", headers=headers).status_code == 200
            revoke_key(store, key.split("_")[1])
            until(lambda: client.get("/v1/queues", headers=headers).status_code, 401)


def test_without_a_database_the_service_says_so(tmp_path, model_file):
    """Nothing is flagged: 503 with Retry-After, and not ready."""
    database = tmp_path / "shortlist.db"
    with serving(database, model_file, patience=0.3) as client:
        for file in tmp_path.glob("shortlist.db*"):
            file.rename(tmp_path / f"away-{file.name}")
        answer = client.post(f"{BASE}/decisions", json=case("a", 900.0, "US"))
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert client.get("/v2/health/ready").status_code == 503
        assert client.get("/v2/health/live").status_code == 200
        assert not database.exists()


def test_a_case_that_is_not_answered_is_told_so(tmp_path, model_file):
    """A database that hangs keeps nobody waiting: 503 for a case, a list and a change."""
    with serving(tmp_path / "shortlist.db", model_file, patience=0.1) as client:
        decider = client.service.deciders["default"]
        decider.submit, decider.change = lambda cases: True, lambda change: None
        with ThreadPoolExecutor(3) as at_once:
            answers = [
                at_once.submit(client.post, f"{BASE}/decisions", json=case("a")),
                at_once.submit(client.post, f"{BASE}/decisions", json=[case("a"), case("b")]),
                at_once.submit(client.put, f"{BASE}/capacity", json={"count": 1}),
            ]
    for answer in (each.result() for each in answers):
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "in time" in answer.json()["detail"]


def test_too_many_cases_are_refused_before_they_are_read(service, monkeypatch):
    """A list that would wait in vain costs nothing: its body is not even JSON."""
    service.post(f"{BASE}/decisions", json=case("a"))
    decider = service.service.decider("default")
    headers = {"content-type": "application/json"}
    monkeypatch.setattr(decider, "_n_submitted", decider._n_submitted + 500)
    monkeypatch.setattr(decider, "_pace", 0.01)
    refused = service.post(f"{BASE}/decisions", content=b"[" * 1_000_000, headers=headers)
    assert (refused.status_code, refused.json()["detail"]) == (503, "Too many cases are waiting.")
    assert refused.headers["retry-after"] == "1"
    monkeypatch.setattr(decider, "_pace", 0.001)
    assert service.post(f"{BASE}/decisions", json=case("b")).status_code == 200


def test_cases_that_wait_together_show_how_long_one_takes(service):
    """Large groups alone: a single case takes most of its time for the disk."""
    decider = service.service.decider("default")
    service.post(f"{BASE}/decisions", json=case("a"))
    assert decider._pace == 0
    service.post(f"{BASE}/decisions", json=[case(f"b{n}") for n in range(200)])
    assert 0 < decider._pace < 0.1


@pytest.mark.parametrize("path", ["/", "/dashboard.js", "/openapi.json"])
def test_files_are_only_read(untouched, path):
    """Whatever else is asked of them is refused."""
    assert untouched.get(path).status_code == untouched.head(path).status_code == 200
    for method in ("POST", "PUT", "DELETE"):
        assert untouched.request(method, path).status_code == 404
