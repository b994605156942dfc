"""Ready-made learners."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import Pipeline

from shortlist import Capacity, CapacityClassifier, capacity_scorer
from shortlist.learners import (
    KernelDensityClassifier,
    KernelKNeighborsClassifier,
    make_learner,
)
from shortlist.learners.recipes import FAMILIES

PAPER = ("kde", "knn", "svm", "forest", "network")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_learner_works_under_a_capacity(name, fraud):
    """In a CapacityClassifier, flags on the calibration items stay within capacity."""
    if name == "boosting":
        pytest.importorskip("lightgbm")
    X, y = fraud
    for preset in ("recommended", "paper")[: 1 + (name in PAPER)]:
        learner = make_learner(name, preset, random_state=0)
        if name == "forest":
            learner.set_params(n_estimators=50)
        model = CapacityClassifier(
            clone(learner), capacity=Capacity.multiple(2), ties="hash", random_state=0, cv=0.5
        ).fit(X, y)
        assert model.calibration_.flagged_fraction <= 0.04
        assert (model.flag(X) & (y == 1)).sum() > 0.3 * y.sum()


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_trees_take_sparse_items(name, fraud):
    """The others need dense ones."""
    if name == "boosting":
        pytest.importorskip("lightgbm")
    X, y = csr_matrix(fraud[0]), fraud[1]
    learner = make_learner(name, random_state=0)
    model = CapacityClassifier(learner, capacity=Capacity.multiple(2), random_state=0, cv=0.5)
    assert 0 < model.fit(X, y).flag(X).mean() < 0.1


def test_the_settings_of_the_paper():
    """They are those of section 3.7."""
    svm, forest = make_learner("svm", "paper")[-1], make_learner("forest", "paper")
    assert (svm.C, svm.gamma) == (1, 0.1)
    assert (forest.n_estimators, forest.min_samples_split) == (503, 6)
    assert make_learner("knn", "paper").n_neighbors == 5
    network = make_learner("network", "paper")[-1]
    assert len(network.hidden_layer_sizes) == 1


def test_the_seed_is_handed_on():
    """The same seed gives the same forest."""
    assert make_learner("forest", random_state=3).random_state == 3
    assert isinstance(make_learner("network", random_state=3), Pipeline)


def test_the_network_ranks_what_it_hardly_learned(rng):
    """With ten rare items its probabilities are close together but ranked well."""
    y, y_new = np.arange(300) < 10, np.arange(2_000) < 1_000
    X, X_new = (rng.normal(size=(labels.size, 3)) + labels[:, None] for labels in (y, y_new))
    scores = make_learner("network", random_state=0).fit(X, y).predict_proba(X_new)[:, 1]
    assert np.unique(scores).size == 2_000
    assert roc_auc_score(y_new, scores) > 0.8


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - set(PAPER)))
def test_what_the_paper_does_not_have_raises_an_error(name):
    """The message lists the families with this preset."""
    with pytest.raises(ValueError, match=r"The paper has no .* offers 'kde', 'knn'"):
        make_learner(name, "paper")


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (KernelDensityClassifier(), "only one class, .* use stratified folds"),
        (KernelKNeighborsClassifier(3), "fold without that class is a common cause"),
    ],
)
def test_a_class_missing_from_a_fold_is_named(learner, message, rng):
    """All rare items come first, and folds are not stratified."""
    X, y = rng.normal(size=(60, 3)), np.arange(60) < 6
    scoring = capacity_scorer(Capacity.multiple(1), rare_label=True)
    with pytest.raises(ValueError, match=message):
        cross_val_score(learner, X, y, cv=KFold(3), scoring=scoring, error_score="raise")


def test_unknown_names_raise_an_error():
    """The message lists the valid names."""
    with pytest.raises(ValueError, match="name must be one of 'kde'"):
        make_learner("tree")
    with pytest.raises(ValueError, match="preset must be one of 'paper', 'recommended'"):
        make_learner("forest", "best")


def test_boosting_chooses_its_form_by_unseen_rows():
    """One form cannot suit noisy and clear tables."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 12))
    noisy = X.sum(axis=1) / 5 + rng.normal(size=2_000) > 2.2
    clear = (np.floor(2 * X[:, 0]) + np.floor(2 * X[:, 1])) % 5 == 0
    shares = [make_learner("boosting", random_state=0).fit(X, y).weights_ for y in (noisy, clear)]
    assert shares[0]["boosting"]["smooth"] > 0.6
    assert shares[1]["boosting"].get("flexible", 0) > 0.6
