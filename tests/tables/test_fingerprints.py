"""Rows that a model knows are recognised, whatever file they come from."""

import numpy as np
import pandas as pd
import pytest

from shortlist.tables import learned_rows as module
from shortlist.tables.learned_rows import RowFingerprints
from shortlist.tables.schema import TableRows


def rows_of(n, rng, ids=False):
    """Return rows with numbers, gaps and texts, which hardly ever repeat."""
    amount = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    town = rng.choice(["x", "y", "(missing)"], n).astype(object)
    names = np.array([f"c{rng.integers(1e12)}" for _ in range(n)], dtype=object) if ids else None
    return TableRows(
        pd.DataFrame({"amount": amount, "age": rng.normal(size=n), "town": town}), names
    )


def few_values(n, rng, ids=False):
    """Return rows of which most repeat."""
    X = pd.DataFrame({"age": rng.integers(0, 5, n).astype(float)})
    return TableRows(X, np.array([f"{rng.integers(1e12)}" for _ in range(n)], "O") if ids else None)


def test_known_rows_are_counted(rng):
    """All of them, whatever their order; new ones are not."""
    old, new = rows_of(500, rng), rows_of(300, rng)
    fingerprints = RowFingerprints.of(old, key=3)
    seen = fingerprints.compare(old.take(rng.permutation(500)[:100]))
    assert (seen.n_seen, seen.is_surprising) == (100, True)
    assert "100 of 100 rows trained or calibrated this model" in seen.in_words
    assert fingerprints.compare(new).in_words is None
    assert not np.isin(fingerprints.hashes_of(new), fingerprints.hashes).any()


def test_rows_that_repeat_by_chance_are_no_surprise(rng):
    """Without ids nobody can tell them apart; with ids the hashes cover them."""
    seen = RowFingerprints.of(few_values(400, rng), key=0).compare(few_values(300, rng))
    assert seen.n_seen == 300
    assert not seen.is_surprising
    assert "by chance" in seen.in_words
    old, new = few_values(400, rng, ids=True), few_values(300, rng, ids=True)
    fingerprints = RowFingerprints.of(old, key=0)
    assert fingerprints.with_ids
    assert fingerprints.compare(new).n_seen == 0
    assert fingerprints.compare(old).is_surprising


def test_renumbered_rows_are_recognised(rng):
    """Ids count only where rows repeat without them."""
    old = rows_of(300, rng, ids=True)
    renumbered = TableRows(old.X, np.arange(300).astype(str).astype(object))
    assert RowFingerprints.of(old, key=0).compare(renumbered).n_seen == 300


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_sample_of_a_long_table_gives_an_estimate(rng, share, monkeypatch):
    """The size of the file is bounded."""
    monkeypatch.setattr(module, "_MOST", 2_000)
    old, new = rows_of(20_000, rng), rows_of(10_000, rng)
    fingerprints = RowFingerprints.of(old, key=0)
    assert fingerprints.hashes.size == 2_000
    assert not fingerprints.is_complete
    n_old = int(share * 10_000)
    mixed = TableRows(pd.concat([old.X.head(n_old), new.X.head(10_000 - n_old)]))
    seen = fingerprints.compare(mixed)
    # Four standard errors of a share from about a tenth of 10,000 rows are at most 0.064.
    assert abs(seen.n_seen - n_old) <= 640
    assert seen.is_surprising == (n_old > 0)


def test_further_rows_join(rng):
    """After a recalibration, both tables are known."""
    old, more = rows_of(100, rng), rows_of(50, rng)
    first = RowFingerprints.of(old, key=0)
    joined = first.joined(first.hashes_of(more))
    assert joined.compare(old).n_seen == 100
    assert joined.compare(more).n_seen == 50
    assert joined.n_rows == 150


def test_fingerprints_go_through_a_file(rng):
    """As plain numbers and eight bytes a row."""
    fingerprints = RowFingerprints.of(rows_of(100, rng), key=7)
    again = RowFingerprints.from_json(fingerprints.to_json(), fingerprints.to_bytes())
    assert again.to_json() == fingerprints.to_json()
    assert again.to_bytes() == fingerprints.to_bytes()
    assert len(fingerprints.to_bytes()) == 800


def test_a_model_file_keeps_them(model_file, cases):
    """And a model knows the rows of its own table."""
    from shortlist.tables import load_model

    model = load_model(model_file)
    with model.schema.open(cases) as source:
        seen = model.fingerprints.compare(model.schema.read(source))
    assert seen.is_surprising
    assert seen.n_seen >= 0.75 * seen.n_items
