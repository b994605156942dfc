"""Budgets of work for several classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, MulticlassCapacityClassifier, assign
from shortlist.exceptions import CapacityError

rng = np.random.default_rng(0)
X = rng.normal(size=(1_500, 3))
Y = np.where(X[:, 0] > 1.3, "fraud", np.where(X[:, 1] > 1.3, "error", "fine"))


def classifier(capacities, **options):
    """Return an unfitted classifier."""
    options = {"class_efforts": {"fraud": 30, "error": 10}, "random_state": 0, **options}
    return MulticlassCapacityClassifier(LogisticRegression(), capacities=capacities, **options)


def test_budgets_of_classes_are_numbers_of_flags():
    """Thirty minutes each, and 480 for every 1,000 items, are sixteen flags."""
    budgets = {"fraud": Capacity.effort(480, per=1_000), "error": Capacity.effort(200, per=1_000)}
    counts = {"fraud": Capacity.count(16, per=1_000), "error": Capacity.count(20, per=1_000)}
    model, plain = classifier(budgets).fit(X, Y), classifier(counts).fit(X, Y)
    assert np.array_equal(model.predict(X), plain.predict(X))
    listed = model.select(X, {"fraud": Capacity.effort(95), "error": Capacity.effort(40)})
    assert ((listed == "fraud").sum(), (listed == "error").sum()) == (3, 4)
    half = model.with_capacities({"fraud": Capacity.effort(240, per=1_000), "error": None})
    assert half.capacities["fraud"] == Capacity.count(8, per=1_000)


def test_a_budget_for_all_classes_needs_equal_efforts():
    """Otherwise the best assignment is a knapsack, and it is refused."""
    counts = {"fraud": Capacity.fraction(0.1), "error": Capacity.fraction(0.1)}
    total = Capacity.effort(300, per=1_000)
    with pytest.raises(CapacityError, match="exact only if they take the same"):
        classifier(counts, total=total).fit(X, Y)
    same = classifier(counts, total=total, class_efforts={"fraud": 30, "error": 30}).fit(X, Y)
    assert (same.select(X) != "fine").sum() <= 15
    with pytest.raises(CapacityError, match="class_efforts"):
        classifier({"fraud": total, "error": None}, class_efforts=None).fit(X, Y)
    with pytest.raises(ValueError, match="case_values"):
        classifier(counts).fit(X, Y, efforts=np.ones(len(Y)))


@given(
    budgets=st.tuples(*[st.sampled_from([0, 0.3, 1, 2.5, 7])] * 2),
    efforts=st.tuples(*[st.sampled_from([0.1, 0.5, 1, 3])] * 2),
    seed=st.integers(0, 20),
)
def test_an_assignment_never_spends_more_than_its_budgets(budgets, efforts, seed):
    """Each column keeps its own budget, in exact arithmetic, and fills it if there is value."""
    values = np.random.default_rng(seed).uniform(size=(30, 3))
    values[:, 0] = 0
    columns = assign(values, [Capacity.effort(b) for b in budgets], efforts=efforts)
    for column, (budget, effort) in enumerate(zip(budgets, efforts, strict=True), 1):
        n = int((columns == column).sum())
        assert round(n * effort, 9) <= budget
        assert round((n + 1) * effort, 9) > budget or (columns == 0).sum() == 0


def test_efforts_of_rows_have_no_exact_assignment():
    """They are refused, with what to do."""
    with pytest.raises(ValueError, match="differ from row to row"):
        assign(np.ones((5, 2)), [1], efforts=np.ones(5))
    with pytest.raises(CapacityError, match="Say how much a row takes"):
        assign(np.ones((5, 2)), [Capacity.effort(3)])
    with pytest.raises(CapacityError, match="number of rows, or a budget"):
        assign(np.ones((5, 2)), [Capacity.fraction(0.1)])
