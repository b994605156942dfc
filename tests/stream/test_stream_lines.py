"""Lines from a descriptor: in batches if several are waiting, otherwise one by one."""

import os

import pytest

from shortlist.service import stream as _lines
from shortlist.service.stream import TOO_LONG, read_batches


@pytest.fixture
def pipe():
    """Return both ends of a pipe."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end) if _is_open(end) else None


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_line_is_handed_on_at_once(pipe):
    """The stream is still open, and half of the next line has arrived."""
    batches = read_batches(pipe[0], most=100)
    os.write(pipe[1], b"one\ntw")
    assert next(batches) == [b"one"]
    os.write(pipe[1], b"o\nthree\n")
    assert next(batches) == [b"two", b"three"]
    os.write(pipe[1], b"last, without an end")
    os.close(pipe[1])
    assert list(batches) == [[b"last, without an end"]]


def test_waiting_lines_come_together_up_to_a_limit(tmp_path):
    """No line is lost or changed."""
    lines = [b"%d" % i for i in range(50_000)]
    (tmp_path / "f").write_bytes(b"\n".join(lines) + b"\n")
    descriptor = os.open(tmp_path / "f", os.O_RDONLY)
    batches = list(read_batches(descriptor, most=1_000))
    os.close(descriptor)
    assert max(map(len, batches)) == 1_000
    assert [line for batch in batches for line in batch] == lines


@pytest.mark.parametrize("ending", [b"\nafter\n", b""])
def test_an_endless_line_is_skipped(tmp_path, monkeypatch, ending):
    """It takes no memory, and the next line is read normally."""
    monkeypatch.setattr(_lines, "LONGEST_LINE", 1 << 16)
    (tmp_path / "f").write_bytes(b"before\n" + b"x" * (1 << 20) + ending)
    descriptor = os.open(tmp_path / "f", os.O_RDONLY)
    lines = [line for batch in read_batches(descriptor, most=9) for line in batch]
    os.close(descriptor)
    assert lines == [b"before", TOO_LONG, *([b"after"] if ending else [])]


def test_nothing_is_nothing(pipe):
    """An empty stream has no batches."""
    os.close(pipe[1])
    assert list(read_batches(pipe[0], most=9)) == []
