"""The kernel rule in the plane."""

import numpy as np
import pytest

from studies.paper import ellipses

CONFIG = ellipses.Config(prevalences=(0.05, 0.2), repetitions=2, n_test=1_000)


@pytest.fixture(scope="module")
def table():
    """Run two repetitions at two shares."""
    return ellipses.run(CONFIG)


def test_the_classical_rule_misses_what_is_rare(table):
    """At a low share it finds little, and the capacity rule more."""
    first = [row for row in table if row["prevalence"] == 0.05]
    assert max(r["detection"] for r in first if r["rule"] == "classical") < 0.1
    assert min(r["detection"] for r in first if r["rule"] == "capacity") > 0.1


def test_the_digest_has_means(table):
    """Two shares, two rules, two capacities."""
    assert len(ellipses.digest(table)) == 8


def test_the_picture_has_four_labelled_panels(table):
    """Panels A to D, every axis named."""
    axes = ellipses.draw(table).axes
    assert [ax.get_title()[0] for ax in axes] == list("ABCD")
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in axes)


def test_points_lie_inside(rng):
    """Rare items inside the small ellipse, which lies inside the large one."""
    X, y = ellipses.sample(500, 500, CONFIG, rng)
    assert ((X / CONFIG.common_axes) ** 2).sum(axis=1).max() <= 1
    rare = (X[y == 0] - CONFIG.rare_center) / CONFIG.rare_axes
    assert np.square(rare).sum(axis=1).max() <= 1
