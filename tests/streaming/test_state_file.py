"""A state file: a torn write is dropped and reported, damage is refused, and nobody shares it."""

import json
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import StateFileError
from shortlist.online import BudgetController
from shortlist.streaming import DurableController, _state_file

N_RECORDS = 3


def budget():
    """Return three flags for every hundred items."""
    return BudgetController(Capacity.count(3, per=100), calibration_scores=np.arange(3.0))


def durable(path):
    """Return a durable budget."""
    return DurableController(path, budget, identity={"model": "a"})


@pytest.fixture
def state(tmp_path):
    """Return the file of a process that crashed after three flags."""
    path = tmp_path / "state"
    crashed = durable(path).__enter__()
    for place in range(N_RECORDS):
        crashed.decide([1e6 + place], ids=[f"@ {place}"])
    crashed.__exit__(RuntimeError, None, None)
    return path


@pytest.fixture
def small(tmp_path):
    """Return a file with a small head and three records, of which every bit can be tried."""
    file = _state_file.StateFile(tmp_path / "small", sync=False)
    for place in range(4):
        (file.append if place else file.replace)({"flags": "01", "id": f"@ {place}"})
    file.close()
    return file.path


def ends_of(content):
    """Return where each record ends."""
    return [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]


def read(path):
    """Return how many records a file has and how many bytes were dropped."""
    file = _state_file.StateFile(path)
    try:
        return len(file.read()), file.n_dropped
    finally:
        file.close()


def test_every_flipped_bit_is_damage(small):
    """None is taken for a torn write: the slot of a damaged record would be given again."""
    content = small.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            small.write_bytes(flipped)
            with pytest.raises(StateFileError, match=r"Nothing was decided|has version"):
                read(small)
            assert small.read_bytes() == flipped


def test_every_truncation_is_refused_or_reported(small):
    """A cut inside the head is damage; elsewhere the complete records before the cut count."""
    content = small.read_bytes()
    ends = ends_of(content)
    for size in range(len(content) + 1):
        small.write_bytes(content[:size])
        if size < ends[0]:
            with pytest.raises(StateFileError, match="Nothing was decided"):
                read(small)
            assert small.stat().st_size == size
            continue
        whole = max(end for end in ends if end <= size)
        assert read(small) == (ends.index(whole) + 1, size - whole)
        assert small.stat().st_size == whole
        assert read(small) == (ends.index(whole) + 1, 0)


def test_a_truncation_and_a_flipped_bit_are_damage_where_it_can_be_told(small):
    """What is left of a header must look like one, and a complete header must match."""
    content = small.read_bytes()
    start = ends_of(content)[-2]
    for size in range(start + 1, len(content)):
        for place in range(start, min(size, start + _state_file._HEADER)):
            flipped = bytearray(content[:size])
            flipped[place] ^= 0x80
            small.write_bytes(flipped)
            with pytest.raises(StateFileError, match="damaged"):
                read(small)


@pytest.mark.parametrize("edit", ["lost", "twice", "swapped", "zeros", "appended"])
def test_records_that_do_not_follow_one_another_are_damage(state, edit):
    """Each checksum continues the one before it; blocks of zeros are no record."""
    head, *records = state.read_bytes().splitlines(keepends=True)
    edited = {
        "lost": [records[0], records[2]],
        "twice": [*records, records[-1]],
        "swapped": [records[1], records[0], records[2]],
        "zeros": [*records[:-1], bytes(len(records[-1]))],
        "appended": [*records, b"\0" * 10],
    }[edit]
    state.write_bytes(b"".join([head, *edited]))
    with pytest.raises(StateFileError, match="damaged"), durable(state):
        pass


def test_an_empty_file_is_no_new_budget(tmp_path):
    """A stream never leaves an empty file; an empty file has lost what was decided."""
    (tmp_path / "state").touch()
    with pytest.raises(StateFileError, match=r"is empty.*Nothing was decided"):
        durable(tmp_path / "state").__enter__()
    assert (tmp_path / "state").stat().st_size == 0


def test_what_was_dropped_is_said(state):
    """The number of bytes is an attribute."""
    with durable(state) as controller:
        assert controller.n_dropped_bytes == 0
    crashed = durable(state).__enter__()
    crashed.decide([5e6])
    crashed.__exit__(RuntimeError, None, None)
    os.truncate(state, state.stat().st_size - 4)
    with durable(state) as controller:
        assert controller.n_dropped_bytes > 4
        assert controller.n_before == N_RECORDS


def test_files_of_older_versions_are_refused(tmp_path):
    """The error says what to do, and the file is left alone."""
    text = json.dumps({"format": "shortlist stream", "version": 2, "shortlist": "0.2"}).encode()
    content = b"%08x %s\n" % (zlib.crc32(text), text)
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(StateFileError, match=r"version 2 .* Finish the period"):
        durable(tmp_path / "state").__enter__()
    assert (tmp_path / "state").read_bytes() == content


def test_a_second_name_of_the_file_is_refused(state):
    """A hard link would admit a second process, and keep an old state for later."""
    other = state.with_name("other")
    with durable(state) as controller:
        assert controller.n_before == N_RECORDS
        os.link(state, other)
        with pytest.raises(StateFileError, match="in use by another process"):
            durable(other).__enter__()
        controller.decide([0.0])
        other.unlink()
    os.link(state, other)
    for name in (state, other):
        with pytest.raises(StateFileError, match="2 names"):
            durable(name).__enter__()
    other.unlink()
    with durable(state):
        pass


def test_a_second_process_is_refused_whatever_the_path(state, tmp_path):
    """The file itself is locked too, also after it was replaced."""
    with durable(state) as controller:
        for _ in range(2):
            (tmp_path / "state.lock").unlink(missing_ok=True)
            with pytest.raises(StateFileError, match="in use by another process"):
                durable(state).__enter__()
            controller.decide([0.0])
            controller.save()


def test_a_file_that_was_removed_while_in_use_takes_no_decision(state):
    """What is written to it would be lost."""
    controller = durable(state).__enter__()
    state.unlink()
    with pytest.raises(StateFileError, match="removed or replaced"):
        controller.decide([0.0])
    controller.__exit__(RuntimeError, None, None)


def traced(monkeypatch):
    """Return a list that system calls are added to, in order."""
    calls = []

    def trace(owner, attribute, name):
        function = getattr(owner, attribute)

        def call(*arguments, **options):
            is_folder = name == "fsync" and os.path.isdir(f"/proc/self/fd/{arguments[0]}")
            calls.append("sync folder" if is_folder else name)
            return function(*arguments, **options)

        monkeypatch.setattr(owner, attribute, call)

    trace(os, "write", "write")
    trace(os, "fsync", "fsync")
    trace(_state_file, "_sync_data", "sync data")
    trace(Path, "replace", "rename")
    return calls


def test_a_decision_is_synced_before_it_is_returned(tmp_path, monkeypatch):
    """Written, then synced, then returned; a state is synced, renamed, and its folder synced."""
    calls = traced(monkeypatch)
    with durable(tmp_path / "state") as controller:
        assert calls == ["fsync", "rename", "sync folder"]
        calls.clear()
        controller.decide([1e6])
        assert calls == ["write", "sync data"]
        calls.clear()
        controller.save()
        assert calls == ["fsync", "rename", "sync folder"]
        controller.decide([1e6])
        calls.clear()
    assert calls == ["fsync", "rename", "sync folder"]


def test_a_dropped_record_is_cut_off_for_good(state, monkeypatch):
    """The shorter file is synced before anything is decided."""
    os.truncate(state, state.stat().st_size - 1)
    calls = traced(monkeypatch)
    with durable(state):
        assert calls == ["fsync"]


def test_no_decision_without_its_record(tmp_path, monkeypatch):
    """If the sync fails, no decision is returned and none follows."""

    def broken(descriptor):
        raise OSError(5, "Input/output error")

    with durable(tmp_path / "state") as controller:
        monkeypatch.setattr(_state_file, "_sync_data", broken)
        with pytest.raises(OSError, match="Input/output"):
            controller.decide([1e6])
        with pytest.raises(StateFileError, match="Open it again"):
            controller.decide([1e6])
