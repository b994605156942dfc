"""A service for tests of its pages: answers of the API from memory, which can be away."""

import json
import time
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import shortlist.service

FILES = Path(shortlist.service.__file__).parent / "dashboard"
ADDRESS = "http://shortlist.test/"
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
DAY = 86_400.0


class FakeService:
    """Answers the requests of a page; `asked` has everything that changes something."""

    def __init__(self, n_cases=6, *, person="Kim", role="manage", period=20_410):
        self.person, self.role, self.away, self.asked = person, role, False, []
        self.number, self.starts = period, time.time() - DAY / 3
        self.cases = {f"c{n:05}": self._case(n) for n in range(n_cases)}

    def _case(self, n):
        age = n % 4 if n < 8 else 0
        return {
            "id": f"c{n:05}", "score": 0.99 - n / 20_000, "at": self.starts - DAY * age + 60,
            "due": self.starts + DAY * (1 - age), "period": self.number - age,
            "reasons": [{"column": "amount", "value": 900.25 + n, "effect": 0.4}],
            "holder": "Kim" if n % 2 == 0 else None, "expires": None, "assigned": n % 2 == 0,
            "outcome": None, "n_events": 1 + (n == 0), "segment": ("card", "wire")[n % 2],
        }  # fmt: skip

    def attach(self, page):
        """Answer what a page asks for."""
        page.route(f"{ADDRESS}**", self._route)

    def _route(self, route):
        path = urlsplit(route.request.url).path.lstrip("/")
        if not path.startswith("v1/"):
            name = path or "index.html"
            kind = KINDS[name.rpartition(".")[2]]
            # A page that looks every two seconds would let tests wait.
            body = (FILES / name).read_text().replace("EVERY = 2000", "EVERY = 300")
            route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")
        elif self.away:
            route.abort("connectionrefused")
        else:
            status, answer = self._answer(route.request, path.removeprefix("v1/"))
            route.fulfill(status=status, body=json.dumps(answer), content_type="application/json")

    def _answer(self, request, path):
        _, _, rest = path.partition("queues/default/")
        if request.method == "POST":
            body = json.loads(request.post_data or "{}")
            self.asked.append((rest, body, request.headers.get("idempotency-key")))
            return self._change(rest, body)
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}
        if rest.startswith("decisions/"):
            return 200, self._whole(self.cases[unquote(rest.removeprefix("decisions/"))])
        answers = {
            "me": lambda: {"name": self.person, "role": self.role, "queues": None},
            "queues": lambda: {"queues": [{"name": "default"}]},
            "reviewers": self._reviewers,
            "queues/default/status": self._status,
            "queues/default/backlog": self._backlog,
            "queues/default/cases": lambda: self._listed(query),
            "queues/default/shadow": lambda: {
                "model": 1, "shadow": 2, "periods": 9, "verdict": "not enough evidence",
                "only_model": [2.0, 9.0], "only_shadow": [3.0, 14.0],
            },
        }  # fmt: skip
        return 200, answers[path]()

    def _listed(self, query):
        chosen = [each for each in self.cases.values() if self._is_in(each, query["view"])]
        chosen = [each for each in chosen if query.get("segment") in (None, each["segment"])]
        chosen.sort(key=lambda each: (each["period"], -each["score"]))
        ids = [each["id"] for each in chosen]
        first = ids.index(query["before"]) + 1 if "before" in query else 0
        part = chosen[first : first + int(query["limit"])]
        return {"queue": "default", "total": len(chosen), "cases": part}

    def _is_in(self, case, view):
        if view == "closed":
            return case["outcome"] is not None
        return case["outcome"] is None and (view == "open" or case["holder"] == "Kim")

    def _whole(self, case):
        event = {"at": case["at"], "id": "c00000 again", "columns": {"amount": 900.25}}
        closed = case["outcome"]
        return {
            **case, "columns": {"amount": 900.25, "country": "US", "text": "<b>bold</b>"},
            "events": [event] * case["n_events"], "outcomes": [closed] if closed else [],
        }  # fmt: skip

    def _change(self, rest, body):
        if rest == "assignments":
            return 200, {"assigned": [{}, {}], "left": 1}
        if rest == "next":
            free = [each for each in self.cases.values() if not each["holder"]]
            free = [each for each in free if each["outcome"] is None]
            if not free:
                return 200, {"case": None}
            free[0]["holder"] = "Kim"
            return 200, {"case": free[0]}
        case = self.cases[body["id"]]
        if rest == "outcomes":
            case["outcome"] = {"reviewer": "Kim", "at": time.time(), "rare": body["rare"]}
            case["outcome"]["note"] = body.get("note")
        else:
            case["holder"] = "Kim" if rest == "claims" else None
        return 200, {"id": body["id"]}

    def _reviewers(self):
        away = time.time() + 2 * DAY
        return {
            "reviewers": [
                {"name": "Kim", "minutes": 240, "segments": None, "absent_until": None, "held": 3},
                {"name": "Lee", "minutes": 90, "segments": ["card"], "absent_until": away,
                 "held": 0},
            ]
        }  # fmt: skip

    def _backlog(self):
        found = Counter()
        for each in self.cases.values():
            if each["outcome"] is None:
                found[each["period"], each["holder"]] += 1
        return {
            "backlog": [
                {"period": period, "starts": self.starts - DAY * (self.number - period),
                 "holder": holder, "open": n}
                for (period, holder), n in sorted(found.items(), key=str)
            ]
        }  # fmt: skip

    def _status(self):
        history = [
            {
                "number": self.number - ago, "starts": self.starts - DAY * ago,
                "capacity": 50, "used": 50 - ago % 3, "seen": 1_900 + ago,
                "precision": {"reviewed": 40, "found": 20 + ago, "share": 0.5 + ago / 40,
                              "low": 0.36 + ago / 60, "high": 0.66 + ago / 80},
            }
            for ago in range(13, -1, -1)
        ]  # fmt: skip
        return {
            "name": "default", "capacity": 50, "unit": "count", "number": self.number,
            "starts": self.starts, "ends": self.starts + DAY, "used": 38, "remaining": 12,
            "seen": 1_900, "ready": True, "model": 1, "shadow": 2, "history": history,
            "detection": {"share": 0.8, "low": 0.61, "high": 0.93},
            "detection_note": "95 % interval from 60 probes in the last 30 periods.",
            "more": {"reviewed": 40, "found": 4, "share": 0.1, "low": 0.03, "high": 0.24},
            "alarms": [{"kind": "rate", "message": "The capacity was used up early.", "at": 1.0}],
        }  # fmt: skip
