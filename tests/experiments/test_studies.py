"""The studies run, on small sizes, and draw what they computed."""

import numpy as np
import pytest

from shortlist.datasets import _credit
from shortlist.experiments import consistency, credit_learners, ellipses, knn_gain

needs_credit = pytest.mark.skipif(
    _credit._find(None) is None, reason="the credit data are not here; set SHORTLIST_DATA"
)


@needs_credit
def test_the_credit_study_pairs_its_methods(tmp_path):
    """One row for each method, capacity and repetition; the same again for the same seed."""
    config = credit_learners.CreditLearnersConfig(
        repetitions=1, methods=("svm, paper, classical", "logistic, recommended, cross-fitted")
    )
    table = credit_learners.run(config)
    assert len(table) == 3 * 3
    assert table == credit_learners.run(config)
    assert credit_learners.draw(table, tmp_path / "credit.png").stat().st_size > 5_000
    top = [r for r in table if r["method"] == "logistic, recommended, top"]
    assert [row["flagged"] for row in top] == [200, 400, 600]


@needs_credit
def test_the_rule_for_ties_decides_the_gain_of_the_joint_choice(tmp_path):
    """To the smallest k there is a large gain, to the largest hardly any."""
    table = knn_gain.run(knn_gain.KnnGainConfig(repetitions=3, multiples=(3,)))
    small, large = knn_gain.gains(table)
    assert (small["tie_break"], large["tie_break"]) == ("smallest", "largest")
    assert knn_gain.draw(table, tmp_path / "gain.png").stat().st_size > 5_000
    assert small["gain_percent"] > 10 > large["gain_percent"]


def test_the_jackknife_of_a_mean_is_its_standard_error(rng):
    """The textbook case."""
    sample = rng.normal(size=30)
    value, error = knn_gain.jackknife(np.mean, sample)
    assert value == pytest.approx(sample.mean())
    assert error == pytest.approx(sample.std(ddof=1) / np.sqrt(30))


def test_ellipses_show_what_the_classical_rule_misses(tmp_path):
    """At a low prevalence it finds nothing, and the capacity rule something."""
    config = ellipses.EllipsesConfig(prevalences=(0.02, 0.2), repetitions=2, n_test=1_000)
    table = ellipses.run(config)
    first = [row for row in table if row["prevalence"] == 0.02]
    assert max(r["detection"] for r in first if r["rule"] == "classical") < 0.05
    assert min(r["detection"] for r in first if r["rule"] == "capacity") > 0.1
    assert ellipses.draw(table, tmp_path / "ellipses.png", config).stat().st_size > 10_000


def test_ellipse_points_lie_inside(rng):
    """Rare items inside the small ellipse, which lies inside the large one."""
    config = ellipses.EllipsesConfig()
    X, y = ellipses.sample(500, 500, config, rng)
    assert ((X / config.common_axes) ** 2).sum(axis=1).max() <= 1
    rare = (X[y == 0] - config.rare_center) / config.rare_axes
    assert (rare**2).sum(axis=1).max() <= 1


def test_consistency_draws_its_table(tmp_path):
    """Two panels for each dimension."""
    config = consistency.ConsistencyConfig(
        dimensions=(1,), sizes=(250, 1_000), families=("kde", "knn"), repetitions=(2, 2), n_grid=512
    )
    table = consistency.run(config)
    assert len(table) == 8
    assert consistency.draw(table, tmp_path / "consistency.png").stat().st_size > 10_000
