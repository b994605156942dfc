"""The loader of the credit data."""

import gzip
import os

import numpy as np
import pytest

from shortlist import datasets
from shortlist.datasets import CREDIT_FEATURES, load_credit_default


@pytest.fixture
def credit():
    """Return the data, or skip the test where they are missing."""
    if "SHORTLIST_DATA" not in os.environ:
        pytest.skip("the credit data are missing; set SHORTLIST_DATA to their folder")
    return load_credit_default()


@pytest.fixture
def small(monkeypatch):
    """Make the loader expect a table of three clients."""
    table = np.arange(72).reshape(3, 24)
    monkeypatch.setattr(datasets, "_SHAPE", table.shape)
    monkeypatch.setattr(datasets, "_CHECKSUM", datasets._checksum(table))
    return table


def write(table, file, *, compress=False):
    """Write a table as the published file has it: a header, and a number for each client."""
    lines = ["ID," + ",".join("abcdefghijklmnopqrstuvwx")]
    lines += [f"{number}," + ",".join(map(str, row)) for number, row in enumerate(table, 1)]
    content = "\r".join(lines).encode()
    file.write_bytes(gzip.compress(content) if compress else content)
    return file


def test_the_published_table(credit):
    """30,000 clients, 6,636 defaults; of the last 25,000, as in the paper, 5,529."""
    X, y = credit
    assert X.shape == (30_000, len(CREDIT_FEATURES)) == (30_000, 23)
    assert y.sum() == 6_636
    X_last, y_last = load_credit_default(rows=25_000)
    assert y_last.sum() == 5_529
    np.testing.assert_array_equal(X_last, X[5_000:])


@pytest.mark.parametrize("compress", [False, True])
def test_a_file_or_its_folder_can_be_named(small, tmp_path, monkeypatch, compress):
    """By argument, or by the environment variable; compressed or not."""
    file = write(small, tmp_path / datasets.FILE_NAME, compress=compress)
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path))
    for X, y in (load_credit_default(file, rows=2), load_credit_default(rows=2)):
        np.testing.assert_array_equal(X, small[1:, :-1])
        np.testing.assert_array_equal(y, small[1:, -1])


def test_a_changed_table_is_refused(small, tmp_path):
    """One other number is enough."""
    small[1, 5] += 1
    with pytest.raises(ValueError, match="checksum differs"):
        load_credit_default(write(small, tmp_path / "changed.csv"), rows=2)


def test_a_table_of_another_shape_is_refused(small, tmp_path):
    """A row is missing."""
    with pytest.raises(ValueError, match=r"got shape \(2, 24\)"):
        load_credit_default(write(small[:2], tmp_path / "short.csv"), rows=2)


def test_a_file_that_is_not_there_is_named(tmp_path):
    """Nothing else is taken silently instead."""
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        load_credit_default(tmp_path)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    """The message names the file."""
    (tmp_path / "text.csv").write_text("a,b\nhello,world\n")
    with pytest.raises(ValueError, match="not a table of numbers"):
        load_credit_default(tmp_path / "text.csv")


@pytest.mark.parametrize("rows", [0, 30_001])
def test_rows_must_be_there(rows):
    """Between one and all of them."""
    with pytest.raises(ValueError, match="rows must lie between"):
        load_credit_default(rows=rows)


def test_without_a_network_the_message_says_what_to_do(monkeypatch):
    """Offline and without a file, it says how to get the data and where to put them."""

    def offline(**_):
        raise OSError("no route")

    monkeypatch.delenv("SHORTLIST_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(OSError, match=r"name the file: path=.*SHORTLIST_DATA") as caught:
        load_credit_default()
    assert "data set 42477 from openml.org" in str(caught.value)


def test_only_named_places_are_read(monkeypatch):
    """Without an argument and the variable, no folder near the package is searched."""
    monkeypatch.delenv("SHORTLIST_DATA", raising=False)
    assert datasets._find(None) is None
