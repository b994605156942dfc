"""Files that are written whole, or not at all."""

import os
import stat

import pytest

from shortlist._core.files import check_writable, write_whole


def test_a_finished_file_takes_its_name(tmp_path):
    """And nothing else is left in the folder."""
    with write_whole(tmp_path / "out") as file:
        file.write(b"all")
    assert (tmp_path / "out").read_bytes() == b"all"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("interruption", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_an_unfinished_file_leaves_no_trace(tmp_path, interruption):
    """What stood there before still does, after a full disk as after Ctrl-C."""
    (tmp_path / "out").write_bytes(b"before")

    def write_half():
        with write_whole(tmp_path / "out") as file:
            file.write(b"half")
            raise interruption

    with pytest.raises(type(interruption)):
        write_half()
    assert (tmp_path / "out").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["out"]


def test_a_disk_that_is_full_at_the_last_moment(tmp_path, monkeypatch):
    """Some disks complain only when the data are to be kept: then the name is not given either."""

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"), write_whole(tmp_path / "out") as file:
        file.write(b"all")
    assert os.listdir(tmp_path) == []


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    """Temporary files are private; the result has the mode that it had."""
    (tmp_path / "real").write_bytes(b"before")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with write_whole(tmp_path / "link") as file:
        file.write(b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"after"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_places_that_cannot_be_written_are_named(tmp_path):
    """Before any work is done."""
    with pytest.raises(FileNotFoundError, match="does not exist"):
        check_writable(tmp_path / "missing" / "out")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_writable(tmp_path)
