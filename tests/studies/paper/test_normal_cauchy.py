"""The figure of the one-dimensional illustration says what the text of the paper says."""

import numpy as np
import pytest

from studies.paper import normal_cauchy


@pytest.fixture(scope="module")
def table():
    """Run a few shifts, the critical one among them."""
    return normal_cauchy.run(normal_cauchy.Config(largest_shift=12, n_shifts=7))


def column(table, rule, name):
    """Return a column of one rule, one entry for each shift."""
    by_shift = {row["mu"]: row[name] for row in table if row["rule"] == rule}
    return np.array([by_shift[mu] for mu in sorted(by_shift)])


def test_the_capacity_is_always_filled(table):
    """And finds more than the rule of Bayes at every shift."""
    assert column(table, "capacity", "flagged_fraction") == pytest.approx(np.full(7, 0.02))
    found, usual = (column(table, rule, "sensitivity") for rule in ("capacity", "classical"))
    assert (found > usual).all()
    assert (np.diff(found) > 0).all()


def test_the_rule_of_bayes_is_blind_below_the_critical_shift(table):
    """mu = 8 lies below 8.72, mu = 10 above."""
    usual = column(table, "classical", "sensitivity")
    assert usual[:5].tolist() == [0] * 5
    assert (usual[5:] > 0).all()


def test_accuracy_rises_under_the_capacity_and_is_flat_then_rising_for_bayes(table):
    """The paper calls the latter non-monotone, which it is not."""
    assert (np.diff(column(table, "capacity", "accuracy")) > 0).all()
    assert (np.diff(column(table, "classical", "accuracy")) >= 0).all()


def test_the_picture_has_four_labelled_panels(table):
    """Panels A to D, every axis named."""
    axes = normal_cauchy.draw(table).axes
    assert [ax.get_title()[0] for ax in axes] == list("ABCD")
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in axes)
