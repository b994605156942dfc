"""The people behind a capacity: who they are, what they hold, and who gets which case."""

import json
import time
from concurrent.futures import Future

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

from shortlist.online.decisions import PROBE
from shortlist.service._decider import Request
from shortlist.service._reviews import FlaggedCase, hold
from shortlist.service._staff import Reviewer, Staff, _follow
from shortlist.service._status import Capacities
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.keys import make_key
from shortlist.service.settings import QueueSettings
from shortlist.service.setup import _close_period, _set_clock_back
from shortlist.service.store import CAPACITY, Entry
from tests.service.helpers import case, made_queues, new_queue, serving, until

BASE = "/v1/queues/default"


def flag(client, *ids, country="US"):
    """Let cases be flagged, the first with the highest score."""
    cases = [case(id, 990.0 - 10 * place, country) for place, id in enumerate(ids)]
    answers = client.post(f"{BASE}/decisions", json=cases).json()
    assert all(answer["flag"] for answer in answers)


def ids_of(client, query="", **headers):
    """Return the ids of a list of cases."""
    answer = client.get(f"{BASE}/cases{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["cases"]]


def holders(client):
    """Return who holds each open case."""
    return [each["holder"] for each in client.get(f"{BASE}/cases").json()["cases"]]


@pytest.fixture
def team(address, model_file):
    """Yield a service with keys of two reviewers and of their lead, on both databases."""
    made_queues(address, model_file, count=100, made={"segment": "country"})
    with opened(address) as store:
        keys = {name: make_key(store, "review", person=name) for name in ("kim", "lee")}
        keys["lead"] = make_key(store, "manage")
        keys["shop"] = make_key(store, "decide")
    with serving(address, None) as client:
        clients = {
            name: httpx.Client(base_url=client.base_url, headers={"x-api-key": key}, timeout=180)
            for name, key in keys.items()
        }
        yield clients | {"service": client.service, "keys": keys}
        for each in clients.values():
            each.close()
    with opened(address) as store:
        assert not any(found.problems for found in audit_store(store))


def test_open_cases_come_in_pages_and_in_order(team):
    """Each once, the highest score first, with who holds it; closed ones in a view of their own."""
    flag(team["shop"], *"abcdefg")
    pages, last = [], ""
    while page := ids_of(team["kim"], f"?limit=3{last}"):
        pages.append(page)
        last = f"&before={page[-1]}"
    assert pages == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert team["kim"].post(f"{BASE}/claims", json={"id": "c"}).status_code == 200
    assert team["lee"].post(f"{BASE}/outcomes", json={"id": "a", "rare": None}).status_code == 200
    assert team["lee"].post(f"{BASE}/outcomes", json={"id": "b", "rare": True}).status_code == 200
    assert ids_of(team["kim"], "?view=mine") == ["c"]
    assert ids_of(team["lee"], "?view=closed") == ["b", "a"]
    assert ids_of(team["lee"], "?view=closed&before=b") == ["a"]
    assert ids_of(team["lee"]) == list("cdefg")
    assert ids_of(team["lee"], "?segment=DE") == []
    assert ids_of(team["lee"], "?segment=US&before=f") == ["g"]
    answer = team["lee"].get(f"{BASE}/cases?limit=1").json()
    [first] = answer["cases"]
    assert (answer["total"], first["holder"], first["segment"]) == (5, "kim", "US")
    assert (first["outcome"], first["assigned"], first["n_events"]) == (None, False, 1)
    assert first["at"] < first["due"]
    assert team["lee"].get(f"{BASE}/cases?before=nobody").status_code == 404


def test_cannot_tell_closes_a_case_and_counts_nowhere(team):
    """It is neither rare nor common."""
    flag(team["shop"], "a", "b", "c")
    for id, rare in (("a", True), ("b", None), ("c", False)):
        team["kim"].post(f"{BASE}/outcomes", json={"id": id, "rare": rare, "note": "seen"})
    precision = team["kim"].get(f"{BASE}/status").json()["precision"]
    assert (precision["reviewed"], precision["found"]) == (2, 1)
    assert ids_of(team["kim"]) == []
    shown = team["kim"].get(f"{BASE}/decisions/b").json()
    assert [each["rare"] for each in shown["outcomes"]] == [None]
    assert shown["outcomes"][0]["note"] == "seen"
    assert shown["columns"] == case("b", 980.0, "US")


def test_nobody_acts_for_another(team):
    """A key is a person: no other name is taken, and another's case is neither closed nor freed."""
    flag(team["shop"], "a", "b")
    kim, lee, lead = team["kim"], team["lee"], team["lead"]
    for path, body in (("claims", {}), ("outcomes", {"rare": True}), ("releases", {})):
        answer = kim.post(f"{BASE}/{path}", json={"id": "a", "reviewer": "lee", **body})
        assert answer.status_code == 422
        answer = team["shop"].post(f"{BASE}/{path}", json={"id": "a", **body})
        assert answer.status_code == 403
    assert kim.post(f"{BASE}/claims", json={"id": "a"}).json()["reviewer"] == "kim"
    for path, body in (("claims", {}), ("outcomes", {"rare": True}), ("releases", {})):
        assert lee.post(f"{BASE}/{path}", json={"id": "a", **body}).status_code == 409
    assert lead.post(f"{BASE}/outcomes", json={"id": "a", "rare": True}).status_code == 403
    assert lead.post(f"{BASE}/releases", json={"id": "a"}).json() == {"id": "a", "holder": None}
    assert lee.post(f"{BASE}/outcomes", json={"id": "a", "rare": True}).status_code == 200
    for path in ("claims", "outcomes", "releases"):
        body = {"id": "a", **({"rare": False} if path == "outcomes" else {})}
        assert kim.post(f"{BASE}/{path}", json=body).status_code == 409
    assert lee.post(f"{BASE}/outcomes", json={"id": "a", "rare": False}).json()["number"] == 2
    me = kim.get("/v1/me").json()
    assert me == {"name": "kim", "role": "review", "queues": ["default"]}
    assert lead.get("/v1/me").json()["name"] is None


def test_a_proxy_vouches_for_names(tmp_path, model_file):
    """With the secret; without it a name is worth nothing, and keys go on working."""
    secret = {"x-proxy-secret": "s3"}
    with serving(tmp_path / "shortlist.db", model_file, proxy_secret=b"s3") as client:
        me = lambda **headers: client.get("/v1/me", headers=headers)  # noqa: E731
        asked = {**secret, "x-forwarded-user": "kim"}
        assert me(**asked).json() == {"name": "kim", "role": "review", "queues": ["default"]}
        assert me(**asked, **{"x-forwarded-role": "manage"}).json()["role"] == "manage"
        for wrong in (
            {"x-forwarded-user": "kim"},
            {"x-forwarded-user": "kim", "x-proxy-secret": "other"},
            {**asked, "x-forwarded-role": "anything"},
            {},
        ):
            assert me(**wrong).status_code == 401
        assert me(**secret).status_code == 422
        names = [
            client.get("/v1/me", headers=[*secret.items(), ("x-forwarded-user", name)]).json()
            for name in (b"J\xfcrgen", b"J\xf6rgen")
        ]
        assert names[0] != names[1]
        put = client.put("/v1/reviewers/kim", json={"minutes": 9}, headers=asked)
        assert put.status_code == 403
        with opened(str(tmp_path / "shortlist.db")) as store:
            key = make_key(store, "read", person="lee")
    with serving(tmp_path / "shortlist.db", None, proxy_secret=b"s3") as client:
        assert client.get("/v1/me", headers={"x-api-key": key}).json()["name"] == "lee"


def test_a_probe_looks_like_every_other_case(address, model_file):
    """To a reviewer; whoever leads sees which they are."""
    made = {"probe": 0.5, "probe_key": "a test"}
    with serving(address, model_file, count=40, made=made) as client:
        rng = np.random.default_rng(0)
        for part in range(8):
            cases = [case(f"{part}-{n}", float(a)) for n, a in enumerate(rng.gamma(2, 50, 25))]
            client.post(f"{BASE}/decisions", json=cases)
    with opened(address) as store:
        keys = {role: make_key(store, role, person="kim") for role in ("review", "manage")}
    with serving(address, None) as client:
        seen = {
            role: client.get(f"{BASE}/cases", headers={"x-api-key": key}).json()["cases"]
            for role, key in keys.items()
        }
        probes = {each["id"] for each in seen["manage"] if each["probe"]}
        places = [place for place, each in enumerate(seen["review"]) if each["id"] in probes]
        assert 0 < len(places) < len(seen["review"])
        assert places != list(range(len(seen["review"]) - len(places), len(seen["review"])))
        assert all("probe" not in each and each["score"] is None for each in seen["review"])
        path, key = f"{BASE}/cases?view=period", keys["review"]
        listed = client.get(path, headers={"x-api-key": key}).json()["cases"]
        assert not any("probe" in each for each in listed)
        forms = set()
        for each in seen["review"]:
            path = f"{BASE}/decisions/{each['id']}"
            shown = client.get(path, headers={"x-api-key": keys["review"]}).json()
            forms.add(tuple(shown))
        assert len(forms) == 1
        assert not {"score", "threshold", "reason", "selected_by", "inclusion"} & set(*forms)
        assert [each["id"] for each in listed] == [each["id"] for each in seen["review"]]
        assert {r["effect"] for each in listed for r in each["reasons"]} == {None}
        status = lambda: client.get(f"{BASE}/status", headers={"x-api-key": key}).json()  # noqa: E731
        before = status()
        body = {"id": next(iter(probes)), "rare": True}
        client.post(f"{BASE}/outcomes", json=body, headers={"x-api-key": key})
        after = status()
        moments = {"now": 0, "alarms": []}
        assert {**after, **moments} == {**before, **moments}
        assert after["precision"] is None
        people = {"minutes": len(seen["review"]) // 2, "absent_until": None}
        lead = {"x-api-key": keys["manage"]}
        client.put("/v1/reviewers/lee", json=people, headers=lead)
        client.post(f"{BASE}/assignments", json={}, headers=lead)
        left = client.get(f"{BASE}/cases", headers=lead).json()["cases"]
        assigned = [each["probe"] for each in left if each["holder"] == "lee"]
        assert 0 < sum(assigned) < len(assigned)


def test_whoever_asks_gets_the_next_case(team):
    """The best that nobody holds, the same again until it is done, and none beyond the minutes."""
    flag(team["shop"], *"abcde")
    lead = team["lead"]
    lead.put(f"{BASE}/capacity", json={"staff": 10})
    lead.put("/v1/reviewers/kim", json={"minutes": 25})
    lead.post(f"{BASE}/assignments")
    assert holders(lead) == ["kim", "kim", None, None, None]
    lead.post(f"{BASE}/releases", json={"id": "b"})
    ask = lambda who: (team[who].post(f"{BASE}/next", json={}).json()["case"] or {}).get("id")  # noqa: E731
    assert [ask("kim"), ask("kim"), ask("lee"), ask("lee")] == ["a", "a", "b", "b"]
    team["kim"].post(f"{BASE}/outcomes", json={"id": "a", "rare": True})
    assert (ask("kim"), ask("kim")) == ("c", "c")
    team["kim"].post(f"{BASE}/outcomes", json={"id": "c", "rare": None})
    assert ask("kim") is None
    assert lead.post(f"{BASE}/assignments").json() == {"assigned": [], "left": 2}
    team["lee"].post(f"{BASE}/outcomes", json={"id": "b", "rare": False})
    assert ask("lee") == "d"
    lead.put("/v1/reviewers/kim", json={"minutes": 99, "segments": ["DE"]})
    assert ask("kim") is None
    lead.put("/v1/reviewers/kim", json={"minutes": 99, "segments": ["DE", "US"]})
    assert ask("kim") == "e"


def test_what_is_declined_goes_to_somebody_else(team):
    """Never back to the same person, and to nobody if nobody else is able."""
    lead = team["lead"]
    lead.put("/v1/reviewers/kim", json={"minutes": 10, "segments": ["US"]})
    lead.put("/v1/reviewers/lee", json={"minutes": 1})
    flag(team["shop"], "a", "b")
    assigned = lead.post(f"{BASE}/assignments").json()
    holders = {each["id"]: each["holder"] for each in assigned["assigned"]}
    assert (set(holders), assigned["left"]) == ({"a", "b"}, 0)
    held = next(id for id, holder in holders.items() if holder == "kim")
    declined = team["kim"].post(f"{BASE}/releases", json={"id": held, "decline": True}).json()
    assert declined["holder"] in (None, "lee")
    again = lead.post(f"{BASE}/assignments").json()
    assert held not in [each["id"] for each in again["assigned"] if each["holder"] == "kim"]


def test_who_is_no_known_reviewer_gets_nothing_again_that_they_declined(team):
    """Like everybody else."""
    flag(team["shop"], "a", "b")
    kim = team["kim"]
    assert kim.post(f"{BASE}/next", json={}).json()["case"]["id"] == "a"
    kim.post(f"{BASE}/releases", json={"id": "a", "decline": True})
    assert kim.post(f"{BASE}/next", json={}).json()["case"]["id"] == "b"


def test_what_was_declined_is_given_back_although_nobody_gets_it_at_once(team, monkeypatch):
    """An answer that it has failed would be wrong: declining it again would find nothing held."""
    flag(team["shop"], "a")
    team["kim"].post(f"{BASE}/claims", json={"id": "a"})
    monkeypatch.setattr("shortlist.service._staff._TRIES", 0)
    declined = team["kim"].post(f"{BASE}/releases", json={"id": "a", "decline": True})
    assert (declined.status_code, declined.json()) == (200, {"id": "a", "holder": None})


def test_what_absent_people_hold_goes_to_others(team):
    """At once when they are marked absent or removed; what they claimed by themselves expires."""
    lead = team["lead"]
    lead.put("/v1/reviewers/kim", json={"minutes": 9})
    flag(team["shop"], "a", "b")
    assert len(lead.post(f"{BASE}/assignments").json()["assigned"]) == 2
    lead.put("/v1/reviewers/lee", json={"minutes": 1})
    away = {"minutes": 9, "absent_until": time.time() + 3_600}
    people = lead.put("/v1/reviewers/kim", json=away).json()["reviewers"]
    assert [each["name"] for each in people] == ["kim", "lee"]
    assert sorted(map(str, holders(lead))) == ["None", "lee"]
    lead.put("/v1/reviewers/kim", json={"minutes": 9})
    assert len(lead.delete("/v1/reviewers/lee").json()["reviewers"]) == 1
    assert holders(lead) == ["kim", "kim"]
    assert lead.delete("/v1/reviewers/lee").status_code == 404
    assert lead.put("/v1/reviewers/%00", json={"minutes": 9}).status_code == 422


def test_what_somebody_takes_meanwhile_is_not_assigned(team, monkeypatch):
    """The best assignment is found without the lock: what has changed by then is found again."""
    team["lead"].put("/v1/reviewers/kim", json={"minutes": 9})
    flag(team["shop"], "a", "b")
    find, taken = Staff.assign, []

    def find_slowly(staff, cases):
        found = find(staff, cases)
        if not taken:
            store = team["service"].store
            [first] = [each for each, _ in found if each.id == "a"]
            with store.write():
                hold(store, first, "lee", None)
                vouch = [("claim", first.entry.queue, first.entry.seq)]
                store.note(time.time(), "lee", "claim", "default", {}, vouch=vouch)
            taken.append(first.id)
        return found

    monkeypatch.setattr(Staff, "assign", find_slowly)
    assigned = team["lead"].post(f"{BASE}/assignments").json()["assigned"]
    assert assigned == [{"id": "b", "holder": "kim"}]
    assert holders(team["lead"]) == ["lee", "kim"]


def test_a_capacity_follows_who_is_there(team):
    """By ordinary entries of the log, until somebody sets a number."""
    lead, shop = team["lead"], team["shop"]
    capacity = lambda: shop.get(f"{BASE}/status").json()["capacity"]  # noqa: E731
    changed = lead.put(f"{BASE}/capacity", json={"staff": 12}).json()
    assert (changed["count"], changed["staff"], capacity()) == (0, 12, 0)
    lead.put("/v1/reviewers/kim", json={"minutes": 60})
    lead.put("/v1/reviewers/lee", json={"minutes": 59})
    assert capacity() == 9
    lead.put("/v1/reviewers/lee", json={"minutes": 59, "absent_until": "2100-01-01T00:00:00Z"})
    assert capacity() == 5
    lead.put("/v1/reviewers/lee", json={"minutes": 59, "queues": ["elsewhere"]})
    assert capacity() == 5
    events = [each["event"] for each in lead.get(f"{BASE}/log").json()["entries"]]
    amounts = [each["count"] for each in events if each and "staff" in each]
    assert amounts == [0, 5, 9, 5]
    lead.put(f"{BASE}/capacity", json={"count": 7})
    lead.put("/v1/reviewers/kim", json={"minutes": 600})
    assert capacity() == 7
    both, later = {"staff": 5, "count": 1}, {"staff": 5, "from": 1e10}
    for wrong in ({"staff": 0}, {"staff": 1e-200}, both, later, {}):
        assert lead.put(f"{BASE}/capacity", json=wrong).status_code == 422


def test_who_is_there_undoes_nothing_that_somebody_sets_meanwhile(team, monkeypatch):
    """A capacity that follows people gives way to one that was set while it was worked out."""
    lead, service, find, given = team["lead"], team["service"], _follow, []
    lead.put(f"{BASE}/capacity", json={"staff": 12})

    def find_slowly(store):
        found = find(store)
        if found and not given:
            given.append(Request(kind=CAPACITY, change={"count": 7}, future=Future()))
            given[0].deadline = time.monotonic() + 60
            service.decider("default").submit(given[0])
            given[0].future.result(60)
        return found

    monkeypatch.setattr("shortlist.service._staff._follow", find_slowly)
    lead.put("/v1/reviewers/kim", json={"minutes": 600})
    assert given
    assert lead.get(f"{BASE}/status").json()["capacity"] == 7


def test_a_capacity_follows_people_again_after_a_restore_and_a_wrong_clock(team, address):
    """In a period that was restored there are no flags, whoever is there."""
    team["lead"].put("/v1/reviewers/kim", json={"minutes": 60})
    team["lead"].put(f"{BASE}/capacity", json={"staff": 12})
    with opened(address) as store:
        [row] = store.queues()
        _, end = QueueSettings.from_json(row.settings).periods.bounds(row.period)
        _close_period(store, row)
        capacities = Capacities(store, row.id)
        assert (capacities.at(end - 1), capacities.staff(end - 1)) == (0, None)
        assert (capacities.at(end), capacities.staff(end)) == (5, 12)
        _set_clock_back(store, row._replace(high_water=end), time.time())
        assert Capacities(store, row.id).staff(time.time()) == 12


def test_time_alone_changes_who_is_there(address, model_file, monkeypatch):
    """One worker notices for all: when somebody is back, capacity and assignments follow, once."""
    monkeypatch.setattr("shortlist.service._service._FRESH", 0.1)
    with serving(address, model_file, count=9) as one, serving(address, None) as two:
        flag(one, "a", "b")
        away = {"minutes": 3, "absent_until": time.time() + 3_600}
        one.put("/v1/reviewers/kim", json=away)
        two.put(f"{BASE}/capacity", json={"staff": 1})
        assert (holders(two), one.get(f"{BASE}/status").json()["capacity"]) == ([None, None], 0)
        one.put("/v1/reviewers/kim", json=away | {"absent_until": time.time() + 1.0})
        until(lambda: one.get(f"{BASE}/status").json()["capacity"], 3)
        until(lambda: holders(two), ["kim", "kim"])
        time.sleep(0.5)
        events = [each["event"] for each in one.get(f"{BASE}/log").json()["entries"]]
    assert [each["count"] for each in events if each and "staff" in each] == [0, 3]


def test_a_period_begins_once(address, monkeypatch):
    """Although the last decision is ahead of the clock; and nobody locks who has nothing to do."""
    new_queue(address, period=86_400.0, at=time.time() + 2 * 86_400)
    with opened(address) as store:
        row = {"name": "kim", "minutes": 9, "segments": "null", "queues": "null"}
        store.put("reviewer", row)
        with store.write():
            store.note(time.time(), "k", "reviewer", None, {})
        _follow(store)
        monkeypatch.setattr(store, "_start", lambda alone=False: 1 / 0)
        _follow(store)
        notes = store.query("SELECT number FROM note WHERE action = 'assignment'")
    assert len(notes) == 1


def test_who_is_told_of_first_does_not_get_everything(team, address, monkeypatch):
    """Leads name one after the other; assignments come by themselves from the next period on."""
    lead, now = team["lead"], time.time()
    flag(team["shop"], "a", "b")
    lead.put("/v1/reviewers/kim", json={"minutes": 100})
    lead.put("/v1/reviewers/lee", json={"minutes": 100})
    assert holders(lead) == [None, None]
    lead.put(f"{BASE}/capacity", json={"staff": 100})
    assert len(lead.post(f"{BASE}/assignments", json={}).json()["assigned"]) == 2
    assert sorted(holders(lead)) == ["kim", "lee"]
    for id, name in (("a", "kim"), ("b", "lee")):
        holder = name if holders(lead)[0] == "kim" else {"kim": "lee", "lee": "kim"}[name]
        team[holder].post(f"{BASE}/releases", json={"id": id})
    assert holders(lead) == [None, None]
    monkeypatch.setattr("time.time", lambda: now + 86_400)
    with opened(address) as store:
        _follow(store)
    assert sorted(holders(lead)) == ["kim", "lee"]


def test_minutes_of_a_day_are_those_of_a_day_in_queues_of_other_periods(team, monkeypatch):
    """Who reviews a queue of days and one of weeks has their minutes on each day, for both."""
    lead, shop, kim, now = team["lead"], team["shop"], team["kim"], time.time()
    weekly = "/v1/queues/weekly"
    lead.put("/v1/reviewers/kim", json={"minutes": 20, "segments": ["US"]})
    lead.put(f"{BASE}/capacity", json={"staff": 10})
    made = lead.post("/v1/queues", json={"name": "weekly", "staff": 10, "period": 7 * 86_400.0})
    assert made.json()["capacity"] == 7  # half of 7 days of 20 minutes
    lead.put("/v1/reviewers/kim", json={"minutes": 20, "segments": ["US"]})
    weeks = {"minutes": 20, "segments": ["DE"], "queues": ["weekly"]}
    lead.put("/v1/reviewers/lee", json=weeks)  # of whom the whole week counts
    flag(shop, "today")
    assert shop.post(f"{weekly}/decisions", json=case("week", 990, "US")).json()["flag"]
    assert shop.post(f"{weekly}/decisions", json=case("more", 980, "US")).json()["flag"]
    assert kim.post(f"{BASE}/next", json={}).json()["case"]["id"] == "today"
    kim.post(f"{BASE}/outcomes", json={"id": "today", "rare": True})
    first = kim.post(f"{weekly}/next", json={}).json()["case"]["id"]
    kim.post(f"{weekly}/outcomes", json={"id": first, "rare": True})
    assert kim.post(f"{weekly}/next", json={}).json()["case"] is None
    monkeypatch.setattr("time.time", lambda: now + 86_400)
    assert kim.post(f"{weekly}/next", json={}).json()["case"]["id"] in {"week", "more"} - {first}


def test_people_of_several_queues_are_shared_out(team):
    """Nobody's minutes count twice."""
    lead = team["lead"]
    lead.put("/v1/reviewers/kim", json={"minutes": 100})
    made = lead.post("/v1/queues", json={"name": "north", "staff": 10})
    assert (made.status_code, made.json()["capacity"]) == (200, 10)
    assert lead.put(f"{BASE}/capacity", json={"staff": 10}).json()["count"] == 5
    lead.put("/v1/reviewers/kim", json={"minutes": 100})
    queues = lead.get("/v1/queues").json()["queues"]
    assert {each["name"]: each["capacity"] for each in queues} == {"default": 5, "north": 5}


def test_queues_are_made_while_the_service_runs(address, model_file):
    """All workers decide about them at once, by the rules of another one; a name is taken once."""
    made = {"segment": "country", "entity": "customer", "worth": 0.01}
    with (
        serving(address, model_file, queues={"north": 3}, made=made) as one,
        serving(address, None) as two,
    ):
        body = {"name": "south", "count": 2, "like": "north", "period": "day Europe/Berlin"}
        made = one.post("/v1/queues", json=body).json()
        assert (made["capacity"], made["period"]) == (2, "day Europe/Berlin")
        for client in (two, one):
            cases = [case(f"{client.base_url} {n}", 900.0, "US") for n in range(50)]
            cases = [{**each, "customer": each["id"]} for each in cases]
            answers = client.post("/v1/queues/south/decisions", json=cases)
            assert answers.status_code == 200
        assert one.get("/v1/queues/south/status").json()["used"] <= 2
        for wrong, status in (
            (body, 409),
            ({**body, "name": "a", "like": "nobody"}, 404),
            ({**body, "name": "a", "effort": 4}, 422),
            ({**body, "name": "a", "period": "day Nowhere/Land"}, 422),
            ({"name": "a", "effort": 4}, 422),
            ({"name": "no name", "count": 1}, 422),
            ({"name": "a"}, 422),
        ):
            assert one.post("/v1/queues", json=wrong).status_code == status, wrong
    with opened(address) as store:
        kept = [QueueSettings.from_json(row.settings) for row in store.queues()]
        assert {(each.segment, each.entity, each.worth) for each in kept} == {
            ("country", "customer", 0.01)
        }
        assert {found.queue: found.problems for found in audit_store(store)} == {
            "default": [], "north": [], "south": [],
        }  # fmt: skip


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE claim SET reviewer = 'lee'",
        "DELETE FROM claim",
        "INSERT INTO claim (queue, seq, reviewer, assigned) VALUES (1, 999, 'kim', 0)",
        "UPDATE reviewer SET minutes = 1000",
        "DELETE FROM reviewer",
        "DELETE FROM declined",
        "UPDATE api_key SET person = 'lee'",
        "UPDATE outcome SET rare = NULL",
    ],
)
def test_the_audit_notices_who_did_what(address, model_file, edit):
    """Claims, reviewers, what they declined, whose a key is: every row is noted."""
    with serving(address, model_file, count=100) as client:
        client.put("/v1/reviewers/kim", json={"minutes": 9})
        flag(client, "a", "b", "c")
        client.post(f"{BASE}/assignments")
        client.post(f"{BASE}/releases", json={"id": "a", "reviewer": "kim", "decline": True})
        client.post(f"{BASE}/outcomes", json={"id": "b", "reviewer": "kim", "rare": True})
    with opened(address) as store:
        make_key(store, "review", person="kim")
        assert [found.problems for found in audit_store(store)] == [[]]
        on = " ON outcome" if store.dialect == "postgresql" else ""
        store.query(f"DROP TRIGGER outcome_unchanged{on}")
        store.query(f"DROP TRIGGER outcome_erased{on}")
        store.query(edit)
        assert [found.problems for found in audit_store(store)] != [[]]


@st.composite
def staffs(draw):
    """Return who is there, and cases that take equal or different times."""
    of_work = draw(st.booleans())
    queue = QueueSettings("day", 1, usual_effort=1.0 if of_work else None, segment="s")
    cases, minutes = [], draw(st.sampled_from([1.0, 7.5]))
    for seq in range(draw(st.integers(0, 9))):
        score = draw(st.floats(-2 if not of_work else 0, 2, width=16))
        effort = draw(st.sampled_from([0.0, 1.0, 2.5, 4.1])) if of_work else None
        body = json.dumps({"s": draw(st.sampled_from("ab"))})
        entry = Entry(1, seq, 0, 1, 0.0, 0, str(seq), score=score, effort=effort, body=body)
        cases.append(FlaggedCase(entry, None, None, False, None))
    people = [
        Reviewer(name, 0, draw(st.sampled_from([None, ["a"], ["b"], ["a", "b"]])), None, None)
        for name in "kln"[: draw(st.integers(0, 3))]
    ]
    room = {each.name: draw(st.integers(0, 40)) * 1_000 for each in people}
    pairs = st.tuples(st.integers(0, 8), st.sampled_from("kln"))
    return Staff(queue, minutes, people, room, draw(st.sets(pairs, max_size=4))), cases


@settings(max_examples=150, deadline=None)
@given(staffs())
def test_the_assignment_is_the_best_one(staffed):
    """As good as an integer programme says; nobody gets what they may not have."""
    staff, cases = staffed
    able = {
        (item.id, each.name): (
            each.segments is None or json.loads(item.entry.body)["s"] in each.segments
        )
        and (item.entry.seq, each.name) not in staff.declined
        for item in cases
        for each in staff.people
    }
    takes = {
        item.id: round(
            1_000 * staff.minutes * (1 if item.entry.effort is None else item.entry.effort)
        )
        for item in cases
    }
    takes = {id: max(each, 1) for id, each in takes.items()}
    chosen = staff.assign(cases)
    assert len({item.id for item, _ in chosen}) == len(chosen)
    worth = {}
    if cases:
        worth = dict(zip([item.id for item in cases], staff._worth(cases), strict=True))
    left = dict(staff.room)
    for item, name in chosen:
        assert able[item.id, name]
        left[name] -= takes[item.id]
    assert all(each >= 0 for each in left.values())
    n, m = len(cases), len(staff.people)
    if not n * m:
        assert chosen == []
        return
    allowed = np.array([[able[c.id, p.name] for p in staff.people] for c in cases])
    times = np.array([takes[item.id] for item in cases])
    room = np.array([staff.room[each.name] for each in staff.people])
    gains = np.array([worth[item.id] for item in cases])
    once = LinearConstraint(np.kron(np.eye(n), np.ones(m)), ub=1)
    within = LinearConstraint(np.kron(times, np.eye(m)), ub=room)
    best = milp(
        -np.repeat(gains, m) * allowed.ravel(), integrality=1,
        bounds=(0, allowed.ravel().astype(float)), constraints=[once, within],
    )  # fmt: skip
    assert sum(worth[item.id] for item, _ in chosen) == pytest.approx(-best.fun, abs=1e-6)


def test_cases_that_take_no_time_are_assigned_as_well():
    """Each counts as a thousandth of a minute."""
    queue = QueueSettings("day", 1, usual_effort=1.0)
    entries = [Entry(1, n, 0, 1, 0.0, 0, str(n), score=0.5, effort=0.0) for n in range(3)]
    cases = [FlaggedCase(entry, None, None, False, None) for entry in entries]
    staff = Staff(queue, 1.0, [Reviewer("kim", 0, None, None, None)], {"kim": 2}, set())
    assert len(staff.assign(cases)) == 2


def test_a_probe_is_worth_as_much_as_the_flag_before_it():
    """By its own score it would be left over, which would give it away."""
    queue = QueueSettings("day", 1, probe=0.1, probe_key="a test")
    entries = [
        Entry(1, n, 0, 1, 0.0, 0, str(n), score=score, code=code)
        for n, (score, code) in enumerate([(0.9, 1), (0.1, PROBE), (0.8, 1)])
    ]
    cases = [FlaggedCase(entry, None, None, False, None) for entry in entries]
    staff = Staff(queue, 1.0, [Reviewer("kim", 0, None, None, None)], {"kim": 2_000}, set())
    assert [item.id for item, _ in staff.assign(cases)] == ["0", "1"]


def test_the_tolerance_of_the_solver_gives_nobody_more_time():
    """Long cases that fit by all but a thousandth of a minute do not fit."""
    queue = QueueSettings("day", 1, usual_effort=1.0)
    efforts, scores = (9000.001, 9000.001, 4000, 5000, 7000.001), (1.0, 0.75, 0.75, 0.5, 0.5)
    entries = [
        Entry(1, n, 0, 1, 0.0, 0, str(n), score=score / effort, effort=effort)
        for n, (score, effort) in enumerate(zip(scores, efforts, strict=True))
    ]
    cases = [FlaggedCase(entry, None, None, False, None) for entry in entries]
    room = {"kim": 10_000_000, "lee": 16_000_000, "sam": 2_000_000}
    people = [Reviewer(name, 0, None, None, None) for name in room]
    for item, name in Staff(queue, 1.0, people, room, set()).assign(cases):
        room[name] -= round(1_000 * item.entry.effort)
    assert min(room.values()) >= 0


def test_short_cases_stay_in_sight_of_many_long_ones():
    """Ten long ones are worth more each, and one of them takes as long as ten short ones."""
    queue = QueueSettings("day", 1, usual_effort=1.0)
    entries = [
        Entry(1, n, 0, 1, 0.0, 0, str(n), score=0.1 if n < 10 else 0.9, effort=effort)
        for n, effort in enumerate([10.0] * 10 + [1.0] * 10)
    ]
    cases = [FlaggedCase(entry, None, None, False, None) for entry in entries]
    staff = Staff(queue, 1.0, [Reviewer("kim", 0, None, None, None)], {"kim": 10_000}, set())
    assert [item.entry.effort for item, _ in staff.assign(cases)] == [1.0] * 10
