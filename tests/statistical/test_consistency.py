"""Learners approach the optimal rule as data grow."""

from pathlib import Path

import numpy as np
import pytest

from studies.learners import consistency
from studies.learners.known_problem import KnownProblem
from studies.runner import run_all
from studies.tables import read_table, select_rows

RESULTS = Path(__file__).parents[2] / "studies" / "learners"


# On a line, leaves of m^(2/3) items are as wide as what is to be flagged until m is a few thousand.
@pytest.mark.parametrize(
    ("dimension", "families", "largest"),
    [
        (1, ("kde", "knn", "svm", "network"), 2_000),
        (1, ("forest",), 16_000),
        (2, ("kde", "knn", "svm", "forest", "network"), 2_000),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_disagreement_and_gap_fall(dimension, families, largest):
    """From 250 items to the largest number, six samples of each."""
    config = consistency.ConsistencyConfig(
        dimensions=(dimension,),
        families=families,
        sizes=(250, largest),
        repetitions=(6, 6),
        n_grid=1_024,
        seed=1,
    )
    table = run_all(consistency.run_repetition, consistency.repetitions_of(config))
    for row in consistency.trends(table):
        # The rank correlation of two groups of six is Mann and Whitney's test. Means fall by
        # several standard deviations of a repetition: nearly all pairs are in order. p is 0.001 if
        # all are, and 0.05 with 8 of 36 the other way round. A family that does not improve passes
        # in one case of twenty.
        assert row["p_value"] < 0.05, row


def test_the_committed_study_shows_where_families_fall():
    """All but the hinge loss do, from 250 to 64,000 items (slow ones to 16,000)."""
    means = read_table(RESULTS / "consistency.csv")
    assert {row["n"] for row in means} == {250, 1_000, 4_000, 16_000, 64_000}
    rows = read_table(RESULTS / "consistency_trends.csv")
    assert len(rows) == 2 * 2 * len(consistency.FAMILIES)
    for row in rows:
        cell = {name: row[name] for name in ("value", "dimension", "family")}
        found = select_rows(means, **cell)
        assert (row["first"], row["last"]) == (found[0]["mean"], found[-1]["mean"])
        if row["family"].startswith("hinge"):
            assert row["last"] > row["first"] / 2, row
            continue
        # Twenty tests at once: 0.001 each leaves two per cent for a false alarm among them. On a
        # line, the forest falls at the largest sizes only, which have few repetitions.
        is_late = tuple(cell.values()) == ("disagreement", 1, "forest")
        assert row["p_value"] < (0.01 if is_late else 0.001), row
        assert row["last"] < row["first"] / 4, row


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_optimal_rule_of_the_known_problem_fills_the_capacity(dimension):
    """On the grid, and on a sample."""
    problem = KnownProblem(dimension)
    grid = problem.grid(4_096)
    flagged = problem.flag(grid.X)
    assert grid.probability(flagged) == pytest.approx(0.2, abs=1.5e-3)
    expected = problem.optimal.adjusted_detection
    # M is cut where the grid flags a little more than the capacity.
    assert grid.adjusted_detection(flagged, problem.capacity) == pytest.approx(expected, abs=6e-3)
    # A share of 100,000 items has an error of 0.0013, and four of them are allowed for.
    X, y = problem.sample(100_000, np.random.default_rng(0))
    assert problem.flag(X).mean() == pytest.approx(0.2, abs=0.0052)
    # Ten thousand rare items: an error of 0.005 at most.
    assert problem.flag(X[y == 1]).mean() == pytest.approx(expected, abs=0.02)
