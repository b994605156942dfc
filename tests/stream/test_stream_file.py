"""Whatever happens at any moment, no more flags are returned than the capacity allows."""

import contextlib
import itertools
import os
import shutil
import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import StateFileError
from shortlist.online import BudgetController, QuantileTracker
from shortlist.online.decisions import REASONS
from shortlist.service import _group
from shortlist.service import stream_file as _durable
from shortlist.service._models import Arrival
from shortlist.service._replica import Replica
from shortlist.service._sqlite import SQLiteStore
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.store import StoreError
from tests.stream.scores_of_lines import open_scores
from tools.faults import Disk

IDENTITY = {"model": "a", "capacity": 3}
_HIGHER = itertools.count(1_000_000)


def high():
    """Return a score above all earlier ones, because a budget does not flag ties."""
    return float(next(_HIGHER))


def flags(decided):
    """Return the flags of decisions."""
    return [each.flag for each in decided]


def budget():
    """Return three flags for every hundred items."""
    return BudgetController(Capacity.count(3, per=100), calibration_scores=np.arange(200.0))


def daily():
    """Return three flags a day, which the database counts, too."""
    options = {"period": 86_400.0, "expected_arrivals": 100}
    return BudgetController(Capacity.count(3), calibration_scores=np.arange(200.0), **options)


def durable(path, make=budget, **options):
    """Return a durable budget."""
    return open_scores(path, make(), **{"identity": IDENTITY, **options})


def copy_as_if_killed(path, target):
    """Copy the file and its log as they are now, and return the copy."""
    target.mkdir(exist_ok=True)
    for name in (path.name, f"{path.name}-wal"):
        if (path.parent / name).exists():
            shutil.copyfile(path.parent / name, target / name)
    return target / path.name


def test_decisions_are_those_of_the_controller(tmp_path, rng):
    """Batches, restarts and missing ids do not change the decisions."""
    scores = rng.normal(100, 60, 600)
    ids = [f"i{i}" if i % 3 else None for i in range(600)]
    alone = budget()
    expected = [alone.decide(s, id=i).flag for s, i in zip(scores.tolist(), ids, strict=True)]
    returned = []
    for start in range(0, 600, 60):
        with durable(tmp_path / "state") as controller:
            for first in range(start, start + 60, 20):
                part = slice(first, first + 20)
                returned += flags(controller.decide(scores[part], ids=ids[part]))
    assert returned == expected


def test_an_id_that_comes_again_gets_its_answer_again(tmp_path):
    """It gets the same answer in the next process, too, and uses up nothing."""
    with durable(tmp_path / "state") as controller:
        first = flags(controller.decide([high(), high()], ids=["a", "b"]))
    with durable(tmp_path / "state") as controller:
        again = controller.decide([-1.0, high(), high(), high()], ids=["a", "b", "c", "c"])
        assert controller.controller.remaining == 0
    assert first == [True, True]
    assert [each.repeated for each in again] == [True, True, False, True]
    assert flags(again) == [True] * 4
    assert REASONS[again[2].entry.code] == "above threshold"


@pytest.mark.parametrize("moment", range(1, 900, 31))
def test_a_crash_at_any_system_call(tmp_path, moment):
    """The next run never returns a fourth flag, and counts every flag returned before."""
    listen, tell = os.pipe()
    child = os.fork()
    if child == 0:
        Disk(None, torn=True, die_at=moment, seed=moment).install()
        with durable(tmp_path / "state") as controller:
            for _ in range(10):
                told = flags(controller.decide([high(), 0.0]))
                os.write(tell, bytes(told))
        os._exit(0)
    os.close(tell)
    returned = []
    while told := os.read(listen, 100):
        returned += told
    os.close(listen)
    _, status = os.waitpid(child, 0)
    crashed = os.WIFSIGNALED(status)
    for _ in range(20):
        high()  # the child's scores were higher
    with durable(tmp_path / "state") as controller:
        for _ in range(10):
            returned += flags(controller.decide([high(), 0.0]))
        assert controller.controller.remaining == 0
    assert sum(returned) <= 3
    assert sum(returned) >= 2 if crashed else sum(returned) == 3  # at most one was in flight
    assert not list(tmp_path.glob("*.part"))


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_log_that_ends_anywhere(data, tmp_path_factory):
    """What was committed before the cut counts, and decisions continue from there."""
    folder = tmp_path_factory.mktemp("cut")
    sizes = []
    with durable(folder / "state", sync=False) as controller:
        for _ in range(4):
            controller.decide([high()])
            sizes.append((folder / "state-wal").stat().st_size)
        copy = copy_as_if_killed(folder / "state", folder / "copy")
    size = data.draw(st.integers(0, sizes[-1]))
    os.truncate(f"{copy}-wal", size)
    n_whole = sum(end <= size for end in sizes)
    for _ in range(2):
        with durable(copy) as controller:
            assert controller.n_before == n_whole
            assert controller.controller.remaining == 3 - min(n_whole, 3)


@given(data=st.data(), n_decided=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_flipped_bit_gives_no_slot_twice(data, n_decided, tmp_path_factory):
    """The file is refused, or every flag that was returned keeps its slot."""
    folder = tmp_path_factory.mktemp("flip")
    with durable(folder / "state", daily, sync=False) as controller:
        returned = sum(flags(controller.decide([high()] * n_decided, at=np.zeros(n_decided))))
        copy = copy_as_if_killed(folder / "state", folder / "copy")
    bits = bytearray(copy.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(bits) - 1))
    bits[bit // 8] ^= 1 << bit % 8
    copy.write_bytes(bits)
    with contextlib.suppress(StateFileError, OSError), durable(copy, daily, sync=False) as again:
        for _ in range(4):
            returned += sum(flags(again.decide([high()], at=np.zeros(1))))
    assert returned <= 3


def test_two_processes_cannot_share_a_state(tmp_path):
    """The second gets an error, also by another path, and the first continues."""
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with durable(tmp_path / "state") as first:
        for path in ("state", "link"):
            with pytest.raises(StateFileError, match="in use by another process"):
                durable(tmp_path / path).__enter__()
        assert flags(first.decide([high()])) == [True]
    with durable(tmp_path / "state"):
        pass


def test_another_program_cannot_open_a_state_in_use(tmp_path):
    """The database keeps its own lock as long as the stream lasts."""
    with durable(tmp_path / "state") as first:
        first.decide([high()])
        with (
            contextlib.closing(sqlite3.connect(tmp_path / "state", timeout=0)) as link,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            link.execute("SELECT * FROM log")


def test_another_stream_is_refused(tmp_path):
    """The error names the difference; with `adopt` the new identity is saved at once."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high(), high()])
    other = {"model": "b", "capacity": 3}
    with pytest.raises(StateFileError, match="model was a and is b"):
        durable(tmp_path / "state", identity=other).__enter__()
    with durable(tmp_path / "state", identity=other, adopt=np.arange(200.0)) as controller:
        assert controller.controller.remaining == 1
    with pytest.raises(StateFileError, match="but not another period"):
        durable(tmp_path / "state", identity={**other, "period": 9}, adopt=[1.0]).__enter__()
    with durable(tmp_path / "state", identity=other):
        pass


def fail(monkeypatch, message):
    """Let the next commits fail as the database would."""

    def commit(self, group):
        raise StoreError(message)

    monkeypatch.setattr(SQLiteStore, "commit", commit)


def test_a_full_disk_returns_no_decision(tmp_path, monkeypatch):
    """No decision is returned, and the file does not count it."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high()])
    with monkeypatch.context() as patch:
        fail(patch, "database or disk is full")
        with pytest.raises(OSError, match="No space"), durable(tmp_path / "state") as controller:
            controller.decide([high()])
    with durable(tmp_path / "state") as controller:
        assert controller.controller.remaining == 2


def test_after_a_failed_write_nothing_more_is_decided(tmp_path, monkeypatch):
    """Reopening counts every decision that was returned, and no other."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high()])
        with monkeypatch.context() as patch:
            fail(patch, "disk I/O error")
            with pytest.raises(OSError, match="error"):
                controller.decide([high()])
        with pytest.raises(StateFileError, match="Open it again"):
            controller.decide([high()])
    with durable(tmp_path / "state") as controller:
        assert controller.n_before == 1
        assert flags(controller.decide([high(), high(), high()])) == [True, True, False]


def test_one_batch_may_span_many_periods(tmp_path):
    """Each period gets its own number, in the controller and in the database."""
    at = np.repeat(np.arange(5) * 86_400.0, 6)
    with durable(tmp_path / "state", daily) as controller:
        decided = controller.decide([high() for _ in at], at=at)
        late = controller.decide([high()], at=[0.0])
    assert np.array(flags(decided)).reshape(5, 6).sum(axis=1).tolist() == [3] * 5
    assert (flags(late), late[0].entry.at) == ([False], at[-1])
    with opened(str(tmp_path / "state")) as store:
        ended = store.query("SELECT period, used, seen FROM ended ORDER BY period")
        assert ended == [(day, 3, 6) for day in range(4)]
        assert store.query("SELECT period, used, seen FROM queue") == [(4, 3, 7)]
        [found] = audit_store(store)
    assert (found.problems, found.n_replayed, found.n_flags) == ([], 31, 15)


def test_no_items_are_no_decisions(tmp_path):
    """An empty batch gives an empty answer."""
    with durable(tmp_path / "state") as controller:
        assert controller.decide([]) == []
        assert controller.decide([], ids=[]) == []


def test_decisions_that_cannot_be_repeated_are_refused(tmp_path, monkeypatch):
    """This happens if the version changes between a crash and the next start."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high()])
        copy = copy_as_if_killed(tmp_path / "state", tmp_path / "copy")
    decide = Replica.decide

    def turned(self, arrivals):
        return decide(self, [Arrival(-each.score, each.case_id, each.at) for each in arrivals])

    with monkeypatch.context() as patch:
        patch.setattr(Replica, "decide", turned)
        with pytest.raises(StateFileError, match="cannot be resumed safely"), durable(copy):
            pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "damaged, or not a state file"),
        (b"hello\n" * 1_000, "damaged, or not a state file"),
        (b"SQLite format 3\0" + b"?" * 5_000, "damaged, or not a state file"),
    ],
    ids=["empty", "short", "long", "a header only"],
)
def test_another_file_is_refused_and_left_alone(tmp_path, content, message):
    """An error is raised, and nothing is decided."""
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(StateFileError, match=message), durable(tmp_path / "state"):
        pass
    assert (tmp_path / "state").read_bytes() == content


def test_another_database_is_refused(tmp_path):
    """One of a later release, and one that is not a stream's."""
    with durable(tmp_path / "state"):
        pass
    for change, message in (
        ("UPDATE queue SET name = 'default'", "is not a state file of shortlist stream"),
        ("UPDATE version SET number = 9", "has version 9"),
    ):
        with contextlib.closing(sqlite3.connect(tmp_path / "state")) as link, link:
            link.execute(change)
        with pytest.raises(StateFileError, match=message), durable(tmp_path / "state"):
            pass


def test_a_second_name_of_the_file_is_refused(tmp_path):
    """A hard link would not have the log beside it, and keep an old state for later."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high()])
    os.link(tmp_path / "state", tmp_path / "other")
    for name in ("state", "other"):
        with pytest.raises(StateFileError, match="hard links"), durable(tmp_path / name):
            pass
    (tmp_path / "other").unlink()
    with durable(tmp_path / "state") as controller:
        assert controller.n_before == 1


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_gone_while_in_use_takes_no_decision(tmp_path, how):
    """What is written to it would be lost."""
    with durable(tmp_path / "s") as controller:
        controller.decide([high()])
        (tmp_path / "s").unlink()
        if how == "replaced":
            (tmp_path / "s").write_bytes(b"")
        with pytest.raises(StateFileError, match="was replaced"):
            controller.decide([high()])


def test_the_log_of_a_deleted_file_is_not_read_into_a_new_one(tmp_path):
    """A log that stays behind belongs to no file."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high()])
        copy = copy_as_if_killed(tmp_path / "state", tmp_path / "copy")
    copy.unlink()
    with durable(copy) as controller:
        assert controller.n_before == 0


def test_a_decision_is_synced_before_it_is_returned(tmp_path, monkeypatch):
    """A killed process loses nothing, and a copy of what is on the disk has every answer."""
    with durable(tmp_path / "state") as controller:
        for n in range(1, 4):
            controller.decide([high()])
            copy = copy_as_if_killed(tmp_path / "state", tmp_path / f"copy{n}")
            with durable(copy) as again:
                assert again.n_before == n


def test_a_new_file_is_complete_before_it_has_its_name(tmp_path, monkeypatch):
    """And its name is on the disk before anything is decided."""
    synced = []
    monkeypatch.setattr(
        _durable, "sync_folder", lambda folder: synced.append(sorted(os.listdir(folder)))
    )
    with durable(tmp_path / "state"):
        assert synced == [["state", "state.lock"]]


def test_the_state_is_saved_from_time_to_time(tmp_path, monkeypatch):
    """A start repeats a few decisions only."""
    monkeypatch.setattr(_group, "_SNAPSHOT_EVERY", 50)
    with durable(tmp_path / "state") as controller:
        for _ in range(60):
            controller.decide([high(), 0.0])
        copy = copy_as_if_killed(tmp_path / "state", tmp_path / "copy")
    with opened(str(copy)) as store:
        [(saved, last)] = store.query("SELECT seq, last_seq FROM snapshot, queue")
    assert last - 50 < saved < last


def test_any_controller_can_be_durable(tmp_path, rng):
    """A tracker keeps its rate over restarts."""
    scores = rng.normal(size=300)

    def make():
        return QuantileTracker(Capacity.fraction(0.1), calibration_scores=rng.normal(size=100))

    returned = []
    for part in np.split(scores, 3):
        with durable(tmp_path / "state", make, sync=False) as controller:
            returned += flags(controller.decide(part))
    assert 0 < sum(returned) < 100


# --- budgets of work -----------------------------------------------------------------------------


def work():
    """Return a controller of ten units of work for every twenty items."""
    return BudgetController(
        Capacity.effort(10, per=20), calibration_scores=np.linspace(0, 1, 50), expected_effort=1.0
    )


EFFORTS = st.lists(st.sampled_from([0.1, 0.2, 1.0, 2.5, 4.0]), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None)
@given(batches=st.lists(EFFORTS, min_size=1, max_size=6))
def test_a_crash_after_any_decision_spends_nothing_twice(tmp_path_factory, batches):
    """However often it is killed and opened again, twenty items never get more than ten units."""
    folder, spent = tmp_path_factory.mktemp("state"), []
    path = folder / "state"
    for run, efforts in enumerate(batches):
        with durable(path, work, sync=False) as controller:
            decided = controller.decide(np.linspace(0.2, 0.9, len(efforts)), efforts=efforts)
            path = copy_as_if_killed(path, folder / f"{run}")  # without the save at the end
        spent += np.where(flags(decided), efforts, 0).tolist()
    for start in range(0, len(spent), 20):
        assert round(sum(spent[start : start + 20]), 6) <= 10


def test_the_work_of_a_day_is_counted_by_the_database(tmp_path):
    """A budget of work per period is checked in millionths, and the audit agrees."""
    options = {"period": 60.0, "expected_arrivals": 10, "expected_effort": 1.0}
    make = lambda: BudgetController(  # noqa: E731
        Capacity.effort(1), calibration_scores=np.linspace(0, 1, 50), **options
    )
    with durable(tmp_path / "state", make) as controller:
        decided = controller.decide(np.full(40, 0.99), at=np.zeros(40), efforts=[0.1] * 40)
    assert sum(flags(decided)) <= 10
    with opened(str(tmp_path / "state")) as store:
        [found] = audit_store(store)
    assert (found.problems, found.n_flags) == ([], sum(flags(decided)))


def test_what_is_not_worth_a_slot_moves_no_clock(tmp_path, rng):
    """The log and the controller have one clock; a moment in milliseconds blocks no period."""
    path = tmp_path / "state"
    with durable(path, daily, worth=0.0) as controller:
        controller.decide(rng.uniform(0, 200, size=60), at=np.arange(60) * 900.0)
        controller.decide([-1.0, -1.0], at=[90_000.0, 1.7e12])
        controller.decide(rng.uniform(0, 200, size=60), at=54_000 + np.arange(60) * 300.0)
        decided = controller.decide([high() for _ in range(5)], at=np.full(5, 180_000.0))
        path = copy_as_if_killed(path, tmp_path / "killed")  # without the save at the end
    assert sum(flags(decided)) == 3
    with durable(path, daily, worth=0.0) as controller:
        assert controller.n_before == 125
    with opened(str(path)) as store:
        assert [found.problems for found in audit_store(store)] == [[]]


@pytest.mark.parametrize(
    ("make", "capacity"),
    [
        (budget, Capacity.count(4, per=100)),
        (daily, Capacity.count(4)),
        (
            lambda: QuantileTracker(Capacity.fraction(0.05), calibration_scores=np.arange(200.0)),
            Capacity.fraction(0.06),
        ),
    ],
    ids=["items", "days", "rate"],
)
def test_an_adopted_stream_can_be_audited(tmp_path, rng, make, capacity):
    """Whatever its capacity is, the decisions before and after the change are made again."""
    other = lambda: make().set_capacity(capacity)  # noqa: E731
    for first, identity in ((make, {"capacity": 1}), (other, {"capacity": 2})):
        options = {"identity": identity, "adopt": np.arange(200.0)}
        with durable(tmp_path / "state", first, **options) as controller:
            moments = np.arange(300) * 900.0 if controller.controller.is_timed else None
            controller.decide(rng.uniform(0, 200, size=300), at=moments)
    with opened(str(tmp_path / "state")) as store:
        [found] = audit_store(store)
    assert (found.problems, found.n_replayed) == ([], 600)


def test_a_refused_moment_of_work_survives_a_crash(tmp_path):
    """The log keeps the effort of a line without an answer, too: its decision is made again."""
    options = {"period": 60.0, "expected_arrivals": 10, "expected_effort": 1.0}
    make = lambda: BudgetController(  # noqa: E731
        Capacity.effort(9), calibration_scores=np.linspace(0, 1, 50), **options
    )
    path = tmp_path / "state"
    with durable(path, make) as controller:
        decided = controller.decide([0.9, 0.9, 0.9], at=[1.0, 1e9, 2.0], efforts=[1.0] * 3)
        path = copy_as_if_killed(path, tmp_path / "killed")
    with durable(path, make) as controller:
        assert controller.controller.remaining == 9 - sum(flags(decided))
