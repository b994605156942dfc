"""The studies run, on small sizes, and draw what they computed."""

import os

import numpy as np
import pytest

from shortlist.learners.members import MEMBERS, SIZES
from studies.detection import smooth_forest, thresholds
from studies.harness import judge_top
from studies.learners import consistency, credit
from studies.paper.credit_protocol import capacity_of
from studies.runner import run_all

needs_credit = pytest.mark.skipif(
    "SHORTLIST_DATA" not in os.environ, reason="the credit data are missing; set SHORTLIST_DATA"
)


def test_the_top_of_a_batch_takes_exactly_what_is_allowed():
    """Of four tied items, two are flagged."""
    scores, y = np.repeat([3.0, 2.0, 1.0], [1, 4, 95]), np.arange(100) % 2
    assert judge_top(scores, y, capacity_of(1, 0.03)).flagged == 3


@needs_credit
def test_the_credit_study_pairs_its_methods(tmp_path):
    """One row for each method, capacity and repetition; the same again for the same seed."""
    config = credit.CreditLearnersConfig(
        repetitions=1, methods=("svm, paper, classical", "logistic, recommended, cross-fitted")
    )
    table = run_all(credit.run_trial, credit.trials_of(config))
    assert len(table) == 3 * 3
    assert table == run_all(credit.run_trial, credit.trials_of(config))
    picture = credit.draw(credit.summary(table), tmp_path / "credit.png")
    assert picture.stat().st_size > 5_000
    top = [r for r in table if r["method"] == "logistic, recommended, top"]
    assert [row["flagged"] for row in top] == [200, 400, 600]


def test_consistency_draws_its_table(tmp_path):
    """Two panels for each dimension."""
    config = consistency.ConsistencyConfig(
        dimensions=(1,), sizes=(250, 1_000), families=("kde", "knn"), repetitions=(2, 2), n_grid=512
    )
    table = run_all(consistency.run_repetition, consistency.repetitions_of(config))
    assert len(table) == 8
    picture = consistency.draw(consistency.summary(table), tmp_path / "consistency.png")
    assert picture.stat().st_size > 10_000


def test_ways_to_use_ten_models_agree_where_scores_are_perfect():
    """With one score for all models, lists find everything, and thresholds leave a little."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(10_000) < 200)
    scores = y + 0.5 * rng.random(10_000)
    unseen = [(rng.random(800) < 0.02) + 0.5 * rng.random(800) for _ in range(10)]
    assigned = rng.integers(0, 10, (2, y.size))
    found = thresholds.compare(unseen, np.array([scores] * 10), y, 1, assigned)
    lists = (thresholds.MEAN, thresholds.OWN, thresholds.BY_TEST)
    assert [found[way] for way in lists] == [1.0, 1.0, 1.0]
    assert 0.8 < found[thresholds.EXACT] < 1


@pytest.mark.parametrize("n_rows", [100, 8_000, 40_000])
@pytest.mark.parametrize("smooth", [False, True])
def test_the_last_setting_of_the_smooth_forest_is_in_use(n_rows, smooth):
    """The study compares what was before with what is now."""
    last = smooth_forest.forest_with(*list(smooth_forest.SETTINGS.values())[-1])
    studied, used = (
        member.make(SIZES["default"], n_rows, 0, None, smooth).get_params()
        for member in (last, MEMBERS["forest"])
    )
    assert studied == used
