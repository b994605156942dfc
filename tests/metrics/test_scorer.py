"""Detection at a capacity, from scores and as a scorer."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from shortlist import Capacity, CapacityClassifier, capacity_scorer
from shortlist.metrics import detection_at_capacity


def test_constant_scores_find_as_much_as_chance(fraud):
    """Ten per cent of the items find ten per cent of the rare ones."""
    X, y = fraud
    model = DummyClassifier().fit(X, y)
    assert capacity_scorer(Capacity.fraction(0.1))(model, X, y) == pytest.approx(0.1)


def test_a_tied_block_is_shared_fairly():
    """One place is left for three tied items, one of them rare: it counts a third."""
    is_rare = np.array([True, True, False, False, False])
    found = detection_at_capacity(is_rare, [0.9, 0.5, 0.5, 0.5, 0.1], Capacity.count(2))
    assert found == pytest.approx((1 + 1 / 3) / 2)


def test_whole_weights_are_repetitions(rng):
    """Weights and repeated rows give the same detection."""
    is_rare, scores = rng.uniform(size=40) < 0.3, rng.integers(0, 6, size=40).astype(float)
    weights = rng.integers(1, 4, size=40)
    repeated = detection_at_capacity(
        np.repeat(is_rare, weights), np.repeat(scores, weights), Capacity.count(20)
    )
    weighted = detection_at_capacity(is_rare, scores, Capacity.count(20), sample_weight=weights)
    assert weighted == pytest.approx(repeated)


@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("model", [LogisticRegression(max_iter=1000), LinearSVC()])
def test_either_label_can_be_rare(fraud, model, rare):
    """Scores rise with suspicion even if the rare label sorts first, also inside our classifier."""
    X, y = fraud
    y = y if rare else 1 - y
    scorer = capacity_scorer(Capacity.multiple(2))
    plain = make_pipeline(StandardScaler(), model)
    wrapped = make_pipeline(
        StandardScaler(), CapacityClassifier(model, capacity=Capacity.multiple(2), cv=0.5)
    )
    for estimator in (plain, wrapped, GridSearchCV(wrapped, {}, cv=2, scoring=scorer)):
        assert scorer(estimator.fit(X, y), X, y) > 0.4


def test_the_rare_label_is_that_of_the_model(fraud):
    """The model's rare label is used even on test data in which another label is rarer."""
    X, y = fraud
    model = CapacityClassifier(
        LogisticRegression(max_iter=1000), capacity=Capacity.multiple(2), cv=0.5
    )
    model.fit(X, y)
    keep = np.r_[np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:30]]
    scorer = capacity_scorer(Capacity.fraction(0.5))
    named = capacity_scorer(Capacity.fraction(0.5), rare_label=1)
    assert scorer(model, X[keep], y[keep]) == named(model, X[keep], y[keep])


def test_it_serves_searches_and_survives_pickling(fraud):
    """It works in GridSearchCV and cross_val_score, after pickling, and has a readable repr."""
    X, y = fraud
    scorer = capacity_scorer(Capacity.multiple(2), rare_label=1)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(model, {"logisticregression__C": [0.01, 1]}, scoring=scorer, cv=3)
    assert 0.3 < search.fit(X, y).best_score_ <= 1
    again = pickle.loads(pickle.dumps(scorer))
    assert cross_val_score(model, X, y, scoring=again, cv=3).min() > 0.3
    assert repr(again) == "capacity_scorer(Capacity.multiple(2), rare_label=1)"


def test_weights_are_routed_to_it(fraud):
    """With metadata routing the scorer can ask for sample weights."""
    X, y = fraud
    X = StandardScaler().fit_transform(X)
    weights = np.where(y == 1, 1.0, 2.0)
    scorer = capacity_scorer(Capacity.fraction(0.02))
    plain = GridSearchCV(LogisticRegression(), {}, scoring=scorer, cv=2).fit(X, y).best_score_
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        scorer.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {}, scoring=scorer, cv=2)
        weighted = search.fit(X, y, sample_weight=weights).best_score_
    assert 0 < weighted != plain


def test_a_model_without_scores_is_refused(fraud):
    """The error names the methods that are needed."""
    X, y = fraud

    class Silent(DummyClassifier):
        predict_proba = property()

    with pytest.raises(ValueError, match="predict_proba or decision_function"):
        capacity_scorer(Capacity.count(1))(Silent().fit(X, y), X, y)


def test_rare_items_without_weight_cannot_be_detected():
    """The score is 0 with a warning, as for the metric itself."""
    is_rare, weight = np.array([True, False, False]), np.array([0.0, 1.0, 1.0])
    with pytest.warns(UndefinedMetricWarning):
        score = detection_at_capacity(
            is_rare, np.arange(3.0), Capacity.fraction(0.5), sample_weight=weight
        )
    assert score == 0


def test_labels_in_place_of_the_mask_are_refused():
    """The message shows how to make the mask."""
    with pytest.raises(ValueError, match="such as y == rare_label; got dtype int64"):
        detection_at_capacity([0, 1], [0.1, 0.9], Capacity.count(1))
