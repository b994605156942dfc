"""A model that scores besides decides nothing, and is promoted only if it finds more."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from shortlist.online.decisions import ABOVE_THRESHOLD, PROBE
from shortlist.service._models import Arrival
from shortlist.service._shadow import Reviews, compare, judge
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.keys import NO_KEY
from shortlist.service.settings import QueueSettings
from shortlist.service.store import SHADOW
from tests.service.helpers import (
    FakeClock,
    Hand,
    PlainModel,
    case,
    fit_small_model,
    new_queue,
    serving,
)

BASE = "/v1/queues/default"
FILE = {"content-type": "application/octet-stream"}
PERIOD = 100_000.0  # a test hardly ever comes between two of them


class TwoScores(PlainModel):
    """Scores a case by its field `score`, or by `other` as the second model."""

    def read(self, fields):
        """Return both scores."""
        return Arrival(values=(fields["score"], fields.get("other", fields["score"])))

    def scored(self, items):
        """Return items with the score of this model; one without has an error."""
        for item in items:
            score = item.values[self.id - 1]
            item.score = float(score or 0.0)
            item.error = "It has no score." if score is None else None
        return items


def two_scores(hand):
    """Let a hand score by two models."""
    hand.decider._models = SimpleNamespace(loaded=(1, 2), get=lambda id, store: TwoScores(id))
    return hand


def world(address, rng, *, periods, n, scores, probe=0.5, capacity=40, shadow=True):
    """Decide about some periods of cases with a shadow model, and tell all outcomes."""
    clock = FakeClock((time.time() // PERIOD - periods - 1) * PERIOD + 1)
    settings = QueueSettings(PERIOD, n, probe=probe, probe_key="k")
    queue = new_queue(address, capacity=capacity, at=clock.wall, settings=settings)
    hand = two_scores(Hand(address, queue, clock=clock.make()))
    hand.store._store.clock = lambda: None
    hand.decide([("first", {"score": 0.0})])
    if shadow:
        hand.change(SHADOW, shadow=2)
    told = []
    for period in range(periods):
        clock.advance(PERIOD * 0.2 if period else PERIOD - 1)
        rare = rng.random(n) < 0.1
        for part in np.array_split(np.arange(n), 8):
            own, other = scores(rng, rare[part])
            cases = [
                (f"{period}-{place}", {"score": float(a), "other": b})
                for place, a, b in zip(part, own, other, strict=True)
            ]
            told += hand.decide(cases)
            clock.advance(PERIOD / 10)
        for answer in told[-n:]:
            if answer.flag:
                store = hand.store._store
                number = store.insert_next(
                    "outcome", "number",
                    {"queue": queue, "case_id": answer.id, "reviewer": "r", "at": clock.wall,
                     "rare": bool(rare[int(answer.id.split("-")[1])])},
                    scope=("queue",),
                )  # fmt: skip
                store.note(clock.wall, "r", "outcome", None, {}, vouch=[("outcome", queue, number)])
    hand.close()
    return queue, told


def compared(address):
    """Compare the models of a queue."""
    with opened(address) as store:
        return compare(SimpleNamespace(store=store, row=store.queues()[0], key=NO_KEY))


def noise(rng, rare):
    """Return what says nothing about the cases."""
    return rng.normal(size=rare.size).tolist()


def signal(rng, rare):
    """Return what says much about the cases."""
    return (rng.normal(size=rare.size) + 3 * rare).tolist()


def test_a_shadow_model_changes_no_decision(address, tmp_path):
    """Neither by its scores nor by having none; the log keeps them."""
    scores = lambda rng, rare: (noise(rng, rare), [None, *noise(rng, rare)[1:]])  # noqa: E731
    _, with_one = world(address, np.random.default_rng(1), periods=2, n=60, scores=scores)
    _, without = world(
        str(tmp_path / "b.db"), np.random.default_rng(1), periods=2, n=60, scores=scores,
        shadow=False,
    )  # fmt: skip
    assert [(a.id, a.flag, a.score, a.threshold, a.reason) for a in with_one] == [
        (a.id, a.flag, a.score, a.threshold, a.reason) for a in without
    ]
    assert sum(a.flag for a in with_one) > 20
    with opened(address) as store:
        kept = store.query("SELECT shadow FROM log WHERE kind = 0 ORDER BY seq")
        assert sum(shadow is not None for (shadow,) in kept) == 120 - 2 * 8
        assert audit_store(store)[0].problems == []


def test_the_better_model_gets_the_verdict(tmp_path):
    """A model that finds more is promoted, one that finds less is not; without probes nobody
    knows."""
    find = {"promote": (noise, signal), "keep": (signal, noise), "unknown": (noise, signal)}
    found = {}
    for name, (own, other) in find.items():
        world(
            str(tmp_path / name), np.random.default_rng(2), periods=4, n=800, capacity=240,
            probe=0.0 if name == "unknown" else 0.5,
            scores=lambda rng, rare, own=own, other=other: (own(rng, rare), other(rng, rare)),
        )  # fmt: skip
        found[name] = compared(str(tmp_path / name))
    assert {name: each.verdict for name, each in found.items()} == {
        "promote": "promote", "keep": "keep", "unknown": "not enough evidence",
    }  # fmt: skip
    better = found["promote"]
    assert (better.model, better.shadow, better.periods, better.cases) == (1, 2, 4, 3_200)
    assert better.only_shadow[0] > better.only_model[1]
    assert better.flagged_by_both < better.flagged_by_model
    assert 0 < better.flagged_by_shadow <= 4 * 240


def test_the_same_model_twice_overlaps_and_is_not_promoted(tmp_path):
    """It would flag the same cases."""

    def scores(rng, rare):
        own = signal(rng, rare)
        return own, [2 * score for score in own]  # as its calibration scores are

    world(str(tmp_path / "a"), np.random.default_rng(3), periods=3, n=300, scores=scores)
    found = compared(str(tmp_path / "a"))
    assert found.verdict == "not enough evidence"
    assert found.flagged_by_both == found.flagged_by_model == found.flagged_by_shadow > 20
    assert (found.only_model, found.only_shadow, found.unscored) == ((0, 0), (0, 0), 0)


def test_only_complete_periods_and_their_outcomes_count(tmp_path):
    """An outcome that came later changes nothing before the next period ends."""
    address = str(tmp_path / "a")
    scores = lambda rng, rare: (noise(rng, rare), signal(rng, rare))  # noqa: E731
    queue, told = world(address, np.random.default_rng(4), periods=3, n=300, scores=scores)
    before = compared(address)
    with opened(address) as store:
        for answer in told:
            if answer.flag:
                store.insert_next(
                    "outcome", "number",
                    {"queue": queue, "case_id": answer.id, "rare": True, "reviewer": "r",
                     "at": time.time() + PERIOD},
                    scope=("queue",),
                )  # fmt: skip
    assert compared(address) == before


def test_a_verdict_is_hardly_ever_wrong():
    """At 12 looks of 60 worlds in which both are equally good: at most one in twenty is wrong.

    More than 8 of 60 have a probability of 1 % at most if each has one of 5 %.
    """
    rng, n, wrong = np.random.default_rng(5), 1_200, 0
    for _ in range(60):
        rare, first = rng.random(n) < 0.05, rng.random(n) < 0.2
        second = rng.permutation(first)
        probe = ~first & (rng.random(n) < 0.1)
        for look, end in enumerate(range(100, n + 1, 100), 1):
            rows = [
                (0.0, 0.0, 0, 0.0, "", PROBE if probe[k] else ABOVE_THRESHOLD,
                 1 if probe[k] or first[k] else None, None, 1.0 if first[k] else 0.1,
                 bool(rare[k]) if probe[k] or first[k] else None)
                for k in range(end)
            ]  # fmt: skip
            reviews = Reviews(rows, look)
            only_first, only_second = (first & ~second)[:end], (second & ~first)[:end]
            verdict = judge(reviews.rare_in(only_second), reviews.rare_in(only_first))
            more = int(rare[:end][only_second].sum()) - int(rare[:end][only_first].sum())
            if (verdict == "promote" and more <= 0) or (verdict == "keep" and more >= 0):
                wrong += 1
                break
    assert wrong <= 8


def test_outcomes_that_are_missing_widen_the_intervals():
    """Whatever has no outcome may be rare or not; what nobody saw is known by probes only."""
    row = (0.0, 0.0, 0, 0.0, "", ABOVE_THRESHOLD, 1, None, 1.0)
    reviews = Reviews(
        [(*row, True), (*row, False), (*row, None), (*row[:6], None, *row[7:], None)], 1
    )
    parts = np.eye(4, dtype=bool)
    assert [reviews.rare_in(part) for part in parts] == [(1, 1), (0, 0), (0, 1), (0, 1)]
    assert [judge((3.0, 9.0), lost) for lost in ((0, 2), (0, 3), (9, 12), (10, 12))] == [
        "promote", "not enough evidence", "not enough evidence", "keep",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def other_file(tmp_path_factory):
    """Return a model with the same columns and another capacity."""
    from shortlist import Capacity

    return fit_small_model(tmp_path_factory.mktemp("other"), capacity=Capacity.fraction(0.2))


def test_one_call_promotes_and_one_goes_back(address, model_file, other_file):
    """The two models change places, in every worker, and the log says so."""
    with serving(address, model_file) as one, serving(address, None) as two:
        model = lambda client, id: client.post(  # noqa: E731
            f"{BASE}/decisions", json=case(id)
        ).json()["model"]
        for path in ("promote", "back"):
            assert one.post(f"{BASE}/{path}").status_code == 409
        assert one.get(f"{BASE}/shadow").status_code == 404
        content = other_file.read_bytes()
        assert one.put(f"{BASE}/shadow", content=content, headers=FILE).json()["shadow"] == 2
        assert [model(one, "a"), model(two, "b")] == [1, 1]
        assert one.get(f"{BASE}/shadow").json()["verdict"] == "not enough evidence"
        promoted = two.post(f"{BASE}/promote").json()
        assert (promoted["model"], promoted["shadow"]) == (2, 1)
        assert [model(one, "c"), model(two, "d")] == [2, 2]
        returned = one.post(f"{BASE}/back").json()
        assert (returned["model"], returned["shadow"]) == (1, 2)
        assert [model(one, "e"), model(two, "f")] == [1, 1]
        assert one.delete(f"{BASE}/shadow").json()["shadow"] == 0
        assert one.get(f"{BASE}/shadow").status_code == 404
        model(one, "g")
        entries = one.get(f"{BASE}/log").json()["entries"]
        events = [each["event"] for each in entries if each["kind"] in (2, 6)]
        assert [(each.get("model"), each.get("shadow")) for each in events] == [
            (1, None), (None, 2), (2, 1), (1, 2), (None, 0),
        ]  # fmt: skip
        rows = one.service.store.query("SELECT shadow FROM log WHERE kind = 0 ORDER BY seq")
        assert [shadow is not None for (shadow,) in rows] == [True] * 6 + [False]
    with opened(address) as store:
        assert audit_store(store)[0].problems == []


def test_a_shadow_that_does_not_fit_is_refused(tmp_path, model_file):
    """As a model that is to decide."""
    wrong = fit_small_model(tmp_path, renamed={"country": "land"})
    with serving(tmp_path / "shortlist.db", model_file) as client:
        refused = client.put(f"{BASE}/shadow", content=wrong.read_bytes(), headers=FILE)
        assert (refused.status_code, "'land' is missing" in refused.text) == (422, True)
