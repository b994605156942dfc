"""A week of six reviewers through the HTTP API: absences, declines, releases and a kill a day."""

import uuid

import httpx
import numpy as np
import pytest
from scipy.optimize import linprog

from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.keys import make_key
from tests.service.helpers import FakeClock, case, made_queues
from tests.service.killed import KilledService

BASE = "/v1/queues/default"
DAY, MINUTES = 86_400.0, 10  # of a case
#: How long each is there, and the countries they know.
PEOPLE = {
    "ana": (60, None),
    "bo": (40, ["DE"]),
    "cy": (30, ["DE", "FR"]),
    "di": (20, ["US"]),
    "ed": (50, ["US", "FR"]),
    "fay": (10, None),
}


class Week:
    """The service of a week, as those see it who work with it."""

    def __init__(self, address, clock, keys):
        self.clock, self.keys = clock, keys
        self.service = KilledService(address, clock.wall)
        self.rng = np.random.default_rng(2_026)
        self.n_killed = 0
        self.absent = set()
        self.declined = set()
        self.service.start()

    def ask(self, who, method, path, body=None, **headers):
        """Return an answer; if the service was killed, start it again and repeat the request."""
        headers["x-api-key"] = self.keys[who]
        path = path if path.startswith("/v1") else f"{BASE}/{path}"
        self.service.set_clock(self.clock.wall)
        try:
            answer = self.service.client.request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            self.service.start_again()
            self.n_killed += 1
            answer = self.service.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 500, answer.text
        return answer

    def cases(self, view, who="lead"):
        """Return all cases of a view, fetched in pages."""
        found, before = [], ""
        while page := self.ask(who, "GET", f"cases?view={view}&limit=7{before}").json()["cases"]:
            found += page
            before = f"&before={page[-1]['id']}"
        assert len({each["id"] for each in found}) == len(found)
        return found

    def check(self):
        """No case is lost or in two hands, and nobody has more than their minutes."""
        log, after = [], 0
        while part := self.ask("lead", "GET", f"log?after={after}").json()["entries"]:
            log, after = log + part, part[-1]["seq"]
        flagged = {each["case_id"] for each in log if each["slot"] is not None}
        places = [(each["period"], each["slot"]) for each in log if each["slot"] is not None]
        assert len(set(places)) == len(places)
        still, done = self.cases("open"), self.cases("closed")
        assert {each["id"] for each in still} | {each["id"] for each in done} == flagged
        assert len(still) + len(done) == len(flagged)
        mine = {name: {each["id"] for each in self.cases("mine", name)} for name in PEOPLE}
        for name, held in mine.items():
            assert held == {each["id"] for each in still if each["holder"] == name}
            today = self.clock.wall // DAY * DAY
            own = [each["outcome"] for each in done if each["outcome"]["reviewer"] == name]
            taken = len(held) + sum(outcome["at"] >= today for outcome in own)
            assert taken * MINUTES <= PEOPLE[name][0]
            assert not any((id, name) in self.declined for id in held)

    def is_able(self, name, each):
        """Whether a person knows the country of a case, and has not declined it."""
        known = PEOPLE[name][1]
        is_known = known is None or each["segment"] in known
        return is_known and (each["id"], name) not in self.declined

    def check_morning(self):
        """What is assigned is worth as much as a linear programme finds."""
        free = [each for each in self.cases("open") if each["holder"] is None]
        names = [name for name in PEOPLE if name not in self.absent]
        held = {name: len(self.cases("mine", name)) for name in names}
        told = self.ask("lead", "POST", "assignments").json()
        assert told["left"] == len(free) - len(told["assigned"])
        if not free or not names:
            return 0
        able = np.array([[self.is_able(name, each) for name in names] for each in free])
        n, m = able.shape
        room = [PEOPLE[name][0] - MINUTES * held[name] for name in names]
        scores = np.array([each["score"] for each in free])
        once, minutes = np.kron(np.eye(n), np.ones(m)), np.kron(np.full(n, MINUTES), np.eye(m))
        best = linprog(
            -np.repeat(scores, m),
            A_ub=np.vstack([once, minutes]),
            b_ub=[*np.ones(n), *room],
            bounds=[(0, float(each)) for each in able.ravel()],
        )
        score_of = dict(zip([each["id"] for each in free], scores, strict=True))
        found = sum(score_of[each["id"]] for each in told["assigned"])
        assert found == pytest.approx(-best.fun, rel=1e-9)
        return len(told["assigned"])


def test_a_week_of_six_reviewers(address, model_file, monkeypatch):
    """No slot twice, no case lost or in two hands, minutes kept, each morning the optimum."""
    clock = FakeClock(20_000 * DAY)
    monkeypatch.setattr("time.time", lambda: clock.wall)
    made_queues(address, model_file, count=0, made={"segment": "country"})
    with opened(address) as store:
        keys = {name: make_key(store, "review", person=name) for name in PEOPLE}
        keys |= {"lead": make_key(store, "manage"), "shop": make_key(store, "decide")}
    week = Week(address, clock, keys)
    rng, numbers, n_assigned = week.rng, iter(range(10**6)), 0
    try:
        week.ask("lead", "PUT", "capacity", {"staff": MINUTES})
        for name, (minutes, segments) in PEOPLE.items():
            body = {"minutes": minutes, "segments": segments}
            week.ask("lead", "PUT", f"/v1/reviewers/{name}", body)
        for day in range(7):
            n_assigned += week.check_morning()
            week.check()
            week.service.kill_soon(int(rng.integers(1, 20)), is_late=rng.random() < 0.5)
            for _ in range(24):
                clock.advance(float(rng.uniform(60, 1_800)))
                work(week, numbers)
            week.check()
            set_absences(week, day)
            clock.advance((day + 1 + 20_000) * DAY + 8 * 3_600 - clock.wall)
        week.check()
        closed, still = week.cases("closed"), week.cases("open")
    finally:
        week.service.stop()
    assert week.n_killed == 7
    assert n_assigned > 10
    assert len(closed) > 30 < len(closed) + len(still)
    with opened(address) as store:
        [found] = audit_store(store)
        assert (found.problems, found.n_flags) == ([], len(closed) + len(still))


def work(week, numbers):
    """Let something happen: cases arrive, or somebody takes, closes, releases or declines one."""
    rng = week.rng
    if rng.random() < 0.25:
        cases = [
            case(f"c{next(numbers)}", float(rng.gamma(2, 200)), str(rng.choice(["DE", "FR", "US"])))
            for _ in range(12)
        ]
        week.ask("shop", "POST", "decisions", cases)
        return
    who = str(rng.choice([name for name in PEOPLE if name not in week.absent]))
    given = week.ask(who, "POST", "next", {}).json()["case"]
    if given is None:
        return
    id, what = given["id"], rng.random()
    assert given["holder"] == who
    other = str(rng.choice([name for name in PEOPLE if name != who]))
    refused = week.ask(other, "POST", "outcomes", {"id": id, "rare": True})
    assert refused.status_code == 409
    if what < 0.65:
        rare = [True, False, None][int(rng.integers(3))]
        key = {"idempotency-key": uuid.UUID(int=int(rng.integers(2**62))).hex}
        answer = week.ask(who, "POST", "outcomes", {"id": id, "rare": rare}, **key)
        assert answer.status_code == 200
    else:
        decline = what > 0.8
        answer = week.ask(who, "POST", "releases", {"id": id, "decline": decline})
        assert answer.status_code in (200, 409)  # 409: the crash came after the commit
        if decline:
            week.declined.add((id, who))


def set_absences(week, day):
    """In the evening, say who is absent on the next day."""
    tomorrow = (20_000 + day + 2) * DAY
    absent = {name for name in PEOPLE if week.rng.random() < 0.3} - {"ana"}
    for name in sorted(week.absent | absent):
        minutes, segments = PEOPLE[name]
        until = tomorrow if name in absent else None
        body = {"minutes": minutes, "segments": segments, "absent_until": until}
        assert week.ask("lead", "PUT", f"/v1/reviewers/{name}", body).status_code == 200
    week.absent = absent
