"""The studies run, on small sizes, and draw what they computed."""

import pytest

from shortlist.datasets import _credit
from shortlist.experiments import consistency, credit_learners

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


def test_consistency_draws_its_table(tmp_path):
    """Two panels for each dimension."""
    config = consistency.ConsistencyConfig(
        dimensions=(1,), sizes=(250, 1_000), families=("kde", "knn"), repetitions=(2, 2), n_grid=512
    )
    table = consistency.run(config)
    assert len(table) == 8
    assert consistency.draw(table, tmp_path / "consistency.png").stat().st_size > 10_000
