"""Budgets of work for several classes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, MulticlassCapacityClassifier, assign
from shortlist.exceptions import CapacityError

rng = np.random.default_rng(0)
X = rng.normal(size=(1_500, 3))
Y = np.where(X[:, 0] > 1.3, "fraud", np.where(X[:, 1] > 1.3, "error", "fine"))


def classifier(capacities, **options):
    """Return an unfitted classifier."""
    options = {"random_state": 0, **options}
    return MulticlassCapacityClassifier(LogisticRegression(), capacities=capacities, **options)


def test_budgets_of_classes_are_numbers_of_flags():
    """Thirty minutes each, and 95 for a batch, are three flags."""
    budgets = {"fraud": Capacity.effort(480, per=1_000), "error": Capacity.effort(200, per=1_000)}
    model = classifier({"fraud": budgets["fraud"].as_flags(30), "error": None}).fit(X, Y)
    listed = model.select(X, {"fraud": Capacity.effort(95).as_flags(30), "error": None})
    assert (listed == "fraud").sum() == 3


def test_budgets_of_work_are_refused_with_what_to_do():
    """Joint limits count rows; efforts that differ from row to row have no exact assignment."""
    budget, counts = Capacity.effort(300, per=1_000), dict.fromkeys(["fraud", "error"], None)
    for options in (
        {"capacities": {"fraud": budget, "error": None}},
        {"capacities": counts, "total": budget},
        {"capacities": counts, "segment_capacities": {"north": budget}},
    ):
        with pytest.raises(CapacityError, match="as_flags"):
            classifier(**options).fit(X, Y, segments=["north"] * len(Y))
    with pytest.raises(CapacityError, match="as_flags"):
        assign(np.ones((5, 2)), [Capacity.effort(3)])
    with pytest.raises(CapacityError, match="a number of rows"):
        assign(np.ones((5, 2)), [Capacity.fraction(0.1)])
    with pytest.raises(ValueError, match="to select"):
        classifier({"fraud": Capacity.fraction(0.1)}).fit(X, Y, efforts=np.ones(len(Y)))


@pytest.mark.parametrize("values", [[1, 2], [-1] * 1_500, [np.nan] * 1_500])
def test_amounts_at_stake_are_numbers(values):
    """One for each item, finite and not negative."""
    model = classifier({"fraud": Capacity.fraction(0.1)}).fit(X, Y)
    with pytest.raises(ValueError, match="values must"):
        model.select(X, values=values)
