"""How SMOTE is asked for."""

import sys

import numpy as np
import pytest

from studies.paper import smote_scheme
from studies.paper.smote_scheme import appendix_factor, oversample, share_after


def test_rare_cases_are_multiplied_and_stay_between(rng):
    """Four for each one; the common cases are untouched."""
    pytest.importorskip("imblearn")
    X, y = rng.normal(size=(200, 3)) * [1, 100, 1e4], (np.arange(200) < 20).astype(int)
    X_more, y_more = oversample(X, y, factor=4, seed=0)
    assert (y_more.sum(), (y_more == 0).sum()) == (80, 180)
    np.testing.assert_allclose(X_more[:200], X)
    assert (X_more[200:] >= X[y == 1].min(axis=0) - 1e-9).all()
    assert (X_more[200:] <= X[y == 1].max(axis=0) + 1e-9).all()


def test_two_rare_cases_are_needed(rng):
    """The message counts them."""
    with pytest.raises(ValueError, match="the sample has 1"):
        oversample(rng.normal(size=(10, 2)), (np.arange(10) < 1).astype(int), factor=4, seed=0)


def test_without_the_extra_the_message_names_it(rng, monkeypatch):
    """And says which figures do without."""
    monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    with pytest.raises(ImportError, match=r"shortlist\[smote\]"):
        oversample(rng.normal(size=(10, 2)), np.arange(10) % 2, factor=4, seed=0)


def test_the_scheme_of_the_appendix():
    """Twenty synthetic cases at the lowest share, 9.5 % rare afterwards, and fewer later on."""
    assert appendix_factor(0.005) == 21
    assert share_after(0.005, 21) == pytest.approx(0.0955, abs=1e-4)
    table = smote_scheme.run(smote_scheme.QUICK)
    numbers = [row["synthetic_per_case"] for row in table if row["scheme"] == "appendix"]
    assert (np.diff(numbers) < 0).all()
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in smote_scheme.draw(table).axes)
