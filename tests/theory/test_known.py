"""Known densities in many dimensions, and for many classes."""

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity, assign, calibrate_threshold
from shortlist.theory import KnownDensities, OptimalRule


def known(dimension=2, prevalence=0.05):
    """Return rare items around (1, 1, ...) among standard normal ones."""
    densities = {
        "rare": stats.multivariate_normal(np.ones(dimension)),
        "common": stats.multivariate_normal(np.zeros(dimension)),
    }
    return KnownDensities(densities, {"rare": prevalence, "common": 1 - prevalence})


@pytest.mark.parametrize("dimension", [2, 5])
def test_the_optimal_rule_in_many_dimensions(dimension):
    """Two shifted normal classes are a problem on the line: the sum of the coordinates."""
    classes = known(dimension)
    X, y = classes.sample(200_000, random_state=0)
    score = classes.posterior(X)[:, 0]
    best = calibrate_threshold(score, Capacity.multiple(2), prevalence=0.05, ties="exclude")
    on_the_line = OptimalRule(
        stats.norm(np.sqrt(dimension)),
        stats.norm(),
        prevalence=0.05,
        capacity=Capacity.multiple(2),
    )
    assert best.flag(score)[y == "rare"].mean() == pytest.approx(on_the_line.sensitivity, abs=0.02)
    level = on_the_line.gamma / (on_the_line.gamma + 0.95 / 0.05)
    assert best.value == pytest.approx(level, rel=0.02)
    assert best.interval.low <= 0.1 <= best.interval.high


def test_posteriors_are_those_of_the_formula():
    """One dimension, by hand; and the shares where no class has a density."""
    classes = KnownDensities({0: stats.uniform(0, 1), 1: stats.uniform(0, 4)}, {0: 0.2, 1: 0.8})
    np.testing.assert_allclose(classes.posterior([0.5, 2.0, 9.0])[:, 0], [0.5, 0.0, 0.2])


def test_several_rare_classes_have_a_proven_optimum():
    """The duals of the sample prove what no rule within both capacities can exceed."""
    densities = {j: stats.multivariate_normal([2.0 * (j == 1), 2.0 * (j == 2)]) for j in range(3)}
    classes = KnownDensities(densities, {0: 0.9, 1: 0.06, 2: 0.04})
    X, y = classes.sample(20_000, random_state=0)
    gains = classes.posterior(X) / [np.inf, 0.06, 0.04]  # nothing for leaving an item alone
    solved = assign(gains, [1_200, 800], return_details=True)
    found = [(solved.columns[y == j] == j).mean() for j in (1, 2)]
    assert solved.value == pytest.approx(solved.bound)
    assert sum(found) == pytest.approx(solved.value / len(X), abs=0.03)
    # On other items, the same prices bound what any rule within both capacities finds.
    X, _ = classes.sample(50_000, random_state=1)
    gains, capacities = classes.posterior(X)[:, 1:] / [0.06, 0.04], np.array([0.06, 0.04])
    surplus = np.maximum(gains - solved.prices, 0).max(axis=1)
    most = surplus.mean() + solved.prices @ capacities
    best = np.argmax(gains - solved.prices, axis=1)
    rates = np.bincount(best[surplus > 0], minlength=2) / len(X)
    reached = gains[np.arange(len(X)), best][surplus > 0].sum() / len(X)
    reached -= solved.prices @ np.maximum(rates - capacities, 0)  # what is over is paid for
    error = surplus.std() / len(X) ** 0.5
    assert most - 6 * error <= reached <= most + 1e-12


@pytest.mark.parametrize(
    ("shares", "message"),
    [({"rare": 0.1}, "same classes"), ({"rare": 0.1, "common": 0.5}, "add up to 1")],
)
def test_shares_that_make_no_sense(shares, message):
    """They must be those of the classes, and all of them."""
    densities = {"rare": stats.norm(), "common": stats.norm(1)}
    with pytest.raises(ValueError, match=message):
        KnownDensities(densities, shares)
