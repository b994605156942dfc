"""What all capacity-aware classifiers have in common."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareNetworkClassifier,
    CapacityAwareSVC,
)
from shortlist.exceptions import CapacityError

CAPACITY = Capacity.multiple(1)
CLASSIFIERS = [
    CapacityAwareSVC(CAPACITY),
    CapacityAwareLinearClassifier(CAPACITY),
    CapacityAwareNetworkClassifier(CAPACITY, n_members=2, max_iter=10),
    CapacityAwareForestClassifier(CAPACITY, n_estimators=10),
    CapacityAwareBoostingClassifier(CAPACITY, max_rounds=10, cv=2),
]
EACH = pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)


@parametrize_with_checks(CLASSIFIERS)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """The classifier passes the checks of scikit-learn."""
    check(estimator)


def without_capacity(model):
    """Return a copy that has no capacity of its own, with a seed."""
    return clone(model).set_params(capacity=None, random_state=0)


@EACH
def test_alone_it_needs_a_capacity(model, few_rare):
    """The error says what to do."""
    with pytest.raises(CapacityError, match=r"has none. Pass capacity=.*CapacityClassifier"):
        without_capacity(model).fit(*few_rare)
    with pytest.raises(TypeError, match="capacity must be a Capacity"):
        clone(model).set_params(capacity=0.1).fit(*few_rare)


@EACH
def test_it_takes_the_capacity_and_the_label_of_the_wrapper(model, few_rare):
    """Also at the end of a pipeline; the model that was passed in stays as it is."""
    X, y = few_rare
    learner = make_pipeline(StandardScaler(), without_capacity(model))
    wrapper = CapacityClassifier(learner, capacity=CAPACITY, rare_label=True, cv=0.5)
    inner = wrapper.set_params(random_state=0).fit(X, y).estimator_[-1]
    assert inner.capacity.as_fraction() == pytest.approx(y.mean(), rel=1e-12)
    assert inner.rare_label is True
    assert learner[-1].capacity is None
    own = Capacity.fraction(0.3)
    learner.set_params(**{f"{learner.steps[-1][0]}__capacity": own})
    assert clone(wrapper).fit(X, y).estimator_[-1].capacity == own


def test_a_stated_prevalence_reaches_the_learner(few_rare):
    """A multiple then refers to it, and not to the share in the labels."""
    wrapper = CapacityClassifier(
        CapacityAwareLinearClassifier(), capacity=Capacity.multiple(2), prevalence=0.01, cv=0.5
    )
    assert wrapper.fit(*few_rare).estimator_.capacity.as_fraction() == 0.02


def test_capacities_of_segments_alone_are_not_enough(few_rare):
    """A learner needs a capacity for all items, which can be its own."""
    X, y = few_rare
    limits = {"a": Capacity.fraction(0.1), "b": Capacity.fraction(0.2)}
    options = {"capacity": None, "segment_capacities": limits, "cv": 0.5}
    segments = np.where(X[:, 0] > 0, "a", "b")
    with pytest.raises(CapacityError, match="learns for a capacity for all items"):
        CapacityClassifier(CapacityAwareLinearClassifier(), **options).fit(X, y, segments=segments)
    model = CapacityClassifier(CapacityAwareLinearClassifier(CAPACITY), **options)
    flagged = model.fit(X, y, segments=segments).flag(X, segments=segments)
    assert 0 < flagged[segments == "a"].mean() < 0.2


@EACH
@pytest.mark.parametrize("swapped", [False, True])
def test_predictions_agree_with_the_scores(model, few_rare, swapped):
    """About as many training items as the capacity allows are predicted to be rare."""
    X, is_rare = few_rare
    y = np.where(is_rare, "a" if swapped else "z", "m")
    fitted = clone(model).set_params(random_state=0).fit(X, y)
    scores, margins = fitted.score_samples(X), fitted.decision_function(X)
    sign = -1 if swapped else 1
    assert_array_equal(sign * margins, scores - fitted.offset_)
    predicted = fitted.predict(X) == fitted.rare_label_
    assert_array_equal(predicted, scores >= fitted.offset_ if swapped else scores > fitted.offset_)
    assert np.mean(scores > fitted.offset_) <= is_rare.mean()


@EACH
def test_no_room_and_all_the_room(model, few_rare):
    """Nothing or everything is flagged."""
    for share in (0, 1):
        wrapper = CapacityClassifier(
            without_capacity(model), capacity=Capacity.fraction(share), cv=0.5, random_state=0
        )
        assert wrapper.fit(*few_rare).flag(few_rare[0]).mean() == share


@EACH
def test_an_interrupted_fit_leaves_an_unfitted_model(model, few_rare, monkeypatch):
    """This also holds if it had been fitted before."""
    fitted = clone(model).fit(*few_rare)

    def interrupted(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_sum_up", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(*few_rare)
    with pytest.raises(NotFittedError):
        fitted.predict(few_rare[0])


def test_more_than_two_classes_raise_an_error(rng):
    """The message says that two classes are needed."""
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        CapacityAwareSVC(CAPACITY).fit(rng.normal(size=(30, 2)), np.arange(30) % 3)
