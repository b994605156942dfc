"""Whatever happens at any moment, no more flags are returned than the capacity allows."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import StateFileError
from shortlist.online import BudgetController, QuantileTracker
from shortlist.streaming import DurableController, _durable, _state_file

IDENTITY = {"model": "a", "capacity": 3}
_HIGHER = itertools.count(1_000_000)


class Crash(BaseException):
    """Stands for the sudden end of the process."""


def packed(head):
    """Return a file with nothing but this head."""
    return _state_file._packed(head, 0)[0]


def high():
    """Return a score above all earlier ones, because a budget does not flag ties."""
    return float(next(_HIGHER))


def crashed_after(path, n_decided):
    """Leave the file of a process that crashed after this many single decisions."""
    try:
        with durable(path) as controller:
            for _ in range(n_decided):
                controller.decide([high()])
            raise Crash
    except Crash:
        pass


def budget():
    """Return three flags for every hundred items."""
    return BudgetController(Capacity.count(3, per=100), calibration_scores=np.arange(200.0))


def durable(path, **options):
    """Return a durable budget."""
    return DurableController(path, budget, **{"identity": IDENTITY, **options})


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
                returned += controller.decide(scores[part], ids=ids[part]).flagged.tolist()
    assert returned == expected


def test_an_id_that_comes_again_gets_its_answer_again(tmp_path):
    """It gets the same answer in the next process, too, and uses up nothing."""
    with durable(tmp_path / "state") as controller:
        first = controller.decide([high(), high()], ids=["a", "b"]).flagged.tolist()
    with durable(tmp_path / "state") as controller:
        again = controller.decide([-1.0, high(), high()], ids=["a", "b", "c"])
        assert controller.controller.remaining == 0
    assert first == [True, True]
    assert again.reasons.tolist() == ["seen before", "seen before", "above threshold"]


def crash_at(monkeypatch, moment):
    """End the process at the given system call, in the middle of a write."""
    calls = [0]

    def counted(function, torn=None):
        def call(*arguments, **options):
            calls[0] += 1
            if calls[0] == moment:
                if torn is not None:
                    torn(*arguments)
                raise Crash
            return function(*arguments, **options)

        return call

    write = os.write
    monkeypatch.setattr(
        os, "write", counted(write, lambda fd, data: write(fd, data[: len(data) // 2]))
    )
    monkeypatch.setattr(_state_file, "_sync_data", counted(_state_file._sync_data))
    monkeypatch.setattr(os, "fsync", counted(os.fsync))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    return calls


@pytest.mark.parametrize("moment", range(1, 40))
def test_a_crash_at_any_system_call(tmp_path, monkeypatch, moment):
    """The next run never returns a fourth flag, and counts every flag returned before."""
    monkeypatch.setattr(_durable, "_COMPACT_AFTER", 600)
    returned = []
    with monkeypatch.context() as patch:
        calls = crash_at(patch, moment)
        try:
            with durable(tmp_path / "state") as controller:
                for _ in range(10):
                    returned += controller.decide([high(), 0.0]).flagged.tolist()
        except Crash:
            pass
        crashed = calls[0] >= moment
    with durable(tmp_path / "state") as controller:
        for _ in range(10):
            returned += controller.decide([high(), 0.0]).flagged.tolist()
        assert controller.controller.remaining == 0
    assert sum(returned) <= 3
    assert (
        sum(returned) >= 2 if crashed else sum(returned) == 3
    )  # at most the one in flight is lost
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")] or crashed


@given(data=st.data())
def test_a_file_that_ends_anywhere_after_its_head(data, tmp_path_factory):
    """The file is read up to its last complete line, and decisions continue from there."""
    path = tmp_path_factory.mktemp("cut") / "state"
    crashed_after(path, 4)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    size = data.draw(st.integers(ends[0], len(content)))
    path.write_bytes(content[:size])
    n_whole = sum(end <= size for end in ends) - 1
    with durable(path) as controller:
        assert controller.n_before == n_whole
        assert controller.controller.remaining == 3 - min(n_whole, 3)
    with durable(path) as controller:
        assert controller.n_before == n_whole


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_damaged_record_is_not_skipped(tmp_path, place):
    """It is refused even at the end of the file, because its decision may have been returned."""
    path = tmp_path / "state"
    crashed_after(path, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[place] = lines[place].replace(b"1", b"2", 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(StateFileError, match="damaged"), durable(path):
        pass


def test_two_processes_cannot_share_a_state(tmp_path):
    """The second gets an error, and the first continues."""
    with durable(tmp_path / "state") as first:
        with pytest.raises(StateFileError, match="in use by another process"):
            durable(tmp_path / "state").__enter__()
        assert first.decide([high()]).flagged.all()
    with durable(tmp_path / "state"):
        pass


def test_another_stream_is_refused(tmp_path):
    """The error names the difference; with `adopt` the new identity is saved at once."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high(), high()])
    other = {"model": "b", "capacity": 3}
    with pytest.raises(StateFileError, match="model was 'a' and is 'b'"):
        durable(tmp_path / "state", identity=other).__enter__()
    seen = []
    with durable(tmp_path / "state", identity=other, adopt=lambda *both: seen.append(both[1])) as c:
        assert c.controller.remaining == 1
    assert seen == [IDENTITY]
    with durable(tmp_path / "state", identity=other):
        pass


def test_a_full_disk_returns_no_decision(tmp_path, monkeypatch):
    """No decision is returned, and the file is unchanged or counts the decision."""
    with durable(tmp_path / "state") as controller:
        controller.decide([high()])

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"), durable(tmp_path / "state") as controller:
            controller.decide([high()])
    with durable(tmp_path / "state") as controller:
        assert controller.controller.remaining == 2


def test_after_a_failed_write_nothing_more_is_decided(tmp_path, monkeypatch):
    """Reopening counts every decision that was returned, and drops the incomplete line."""
    write = os.write

    def half(descriptor, data):
        write(descriptor, data[:20])
        raise OSError(28, "No space left on device")

    with durable(tmp_path / "state") as controller:
        controller.decide([high()])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(OSError, match="No space"):
                controller.decide([high()])
        with pytest.raises(StateFileError, match="Open it again"):
            controller.decide([high()])
    with durable(tmp_path / "state") as controller:
        assert controller.n_before == 1
        assert controller.decide([high(), high(), high()]).flagged.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ([1.0, np.nan], {}),
        ([1.0, np.inf], {"ids": ["a", None]}),
        ([[1.0]], {}),
        ([1.0, 2.0], {"ids": ["a"]}),
        ([1.0, 2.0], {"ids": [None, 1.5]}),
        ([1.0, 2.0], {"at": [1.0, np.nan]}),
    ],
    ids=["NaN", "infinite", "table", "too few ids", "no id", "no moment"],
)
def test_bad_input_changes_nothing(tmp_path, scores, options):
    """Neither the controller nor the file changes."""
    with durable(tmp_path / "state") as controller:
        before = controller.controller.state(), (tmp_path / "state").read_bytes()
        with pytest.raises((TypeError, ValueError)):
            controller.decide(scores, **options)
        assert (controller.controller.state(), (tmp_path / "state").read_bytes()) == before
        assert controller.decide([high()]).flagged.all()


def test_a_period_needs_moments(tmp_path):
    """A missing moment raises an error; with a moment the item is decided."""

    def make():
        options = {"period": 60.0, "expected_arrivals": 5}
        return BudgetController(Capacity.count(1), calibration_scores=np.arange(9.0), **options)

    with DurableController(tmp_path / "state", make, identity={}) as controller:
        with pytest.raises(ValueError, match="at is required"):
            controller.decide([high()])
        assert controller.decide([high()], at=[3.0]).flagged.all()


def test_no_items_are_no_decisions(tmp_path):
    """An empty batch gives an empty answer."""
    with durable(tmp_path / "state") as controller:
        assert controller.decide([]).flagged.size == 0
        assert controller.decide([], ids=[]).flagged.size == 0


def test_decisions_that_cannot_be_repeated_are_refused(tmp_path, monkeypatch):
    """This happens if the version changes between a crash and the next start."""
    crashed_after(tmp_path / "state", 1)
    decide = _durable._decide
    with monkeypatch.context() as patch:
        turned = lambda c, items: decide(c, items._replace(scores=-items.scores))  # noqa: E731
        patch.setattr(_durable, "_decide", turned)
        with (
            pytest.raises(StateFileError, match="cannot be resumed safely"),
            durable(tmp_path / "state"),
        ):
            pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "damaged, or not a state file"),
        (b"hello\n", "damaged, or not a state file"),
        (packed({"format": "else"}), "is not a state file"),
        (packed({"format": "shortlist stream", "version": 9}), "has version 9"),
        (packed({"format": "shortlist stream", "version": 1}), "Finish the period"),
    ],
)
def test_another_file_is_refused_and_left_alone(tmp_path, content, message):
    """An error is raised, and nothing is decided."""
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(StateFileError, match=message), durable(tmp_path / "state"):
        pass
    assert (tmp_path / "state").read_bytes() == content


def test_the_file_stays_small(tmp_path, monkeypatch):
    """From time to time, a complete state replaces the appended lines."""
    monkeypatch.setattr(_durable, "_COMPACT_AFTER", 2_000)
    with durable(tmp_path / "state") as controller:
        head = (tmp_path / "state").stat().st_size
        for _ in range(300):
            controller.decide([high(), 0.0])
            assert (tmp_path / "state").stat().st_size < 2 * head + 3_000


def test_any_controller_can_be_durable(tmp_path, rng):
    """A tracker keeps its rate over restarts."""
    scores = rng.normal(size=300)

    def make():
        return QuantileTracker(Capacity.fraction(0.1), calibration_scores=rng.normal(size=100))

    returned = []
    for part in np.split(scores, 3):
        with DurableController(tmp_path / "state", make, identity={}, sync=False) as controller:
            returned += controller.decide(part).flagged.tolist()
    assert 0 < sum(returned) < 100
