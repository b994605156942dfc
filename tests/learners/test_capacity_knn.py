"""The number of neighbours and the vote weight, chosen together."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity, calibrate_threshold
from shortlist._core.folds import hold_out
from shortlist.learners import (
    KERNELS,
    CapacityKNeighborsClassifier,
    KernelKNeighborsClassifier,
)
from shortlist.learners._kernel_knn import rare_shares, votes

CAPACITY = Capacity.fraction(0.05)


def make(**params):
    """Return a classifier with a fixed seed and the rule of the paper."""
    params = {"guarantee": "plug-in", "ties": "exclude", **params}
    return CapacityKNeighborsClassifier(
        **{"capacity": CAPACITY, "n_neighbors": 20, "random_state": 0, **params}
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_k_at_once_equal_one_at_a_time(kernel, rng):
    """Each column is the vote with that many neighbours, scaled by the next one."""
    distances = np.sort(rng.exponential(size=(40, 11)), axis=1)
    is_rare = rng.uniform(size=(40, 10)) < 0.2
    ks = np.arange(1, 11)
    shares = rare_shares(distances, is_rare, n_neighbors=ks, kernel=kernel, n_features=3)
    for column, k in enumerate(ks):
        alone = votes(
            distances[:, : k + 1],
            is_rare[:, :k].astype(np.intp),
            n_classes=2,
            kernel=kernel,
            n_features=3,
        )
        assert_allclose(shares[:, column], alone[:, 1], atol=1e-14)


def split(is_rare):
    """Return the rows to learn from and those held out, as `make` splits them."""
    return hold_out(is_rare.astype(np.intp), 0.5, np.random.default_rng(0))


@pytest.mark.parametrize("tie_break", ["smallest", "largest"])
def test_the_choice_is_that_of_a_search_by_hand(fraud, tie_break):
    """Fit every k on the same half, threshold it on the other, keep the best."""
    X, y = fraud
    model = make(tie_break=tie_break).fit(X, y)
    train, held_out = split(y == 1)
    found = []
    for k in range(1, 21):
        knn = KernelKNeighborsClassifier(k).fit(X[train], y[train])
        scores = knn.predict_proba(X[held_out])[:, 1]
        flagged = calibrate_threshold(scores, CAPACITY, guarantee="plug-in").flag(scores)
        found.append(np.mean(flagged[y[held_out] == 1]))
    assert_allclose(model.detections_, found)
    best = np.flatnonzero(model.detections_ == model.detections_.max()) + 1
    assert model.n_neighbors_ == (best[0] if tie_break == "smallest" else best[-1])


def test_votes_for_a0_flag_the_same_items(fraud):
    """a0 times the rare votes outweigh 1 - a0 times the common ones exactly where flagged."""
    X, y = fraud
    model = make().fit(X, y)
    common, rare = model.predict_proba(X).T
    assert_array_equal(model.flag(X), model.a0_ * rare > (1 - model.a0_) * common)


@pytest.mark.parametrize("ties", ["exclude", "hash"])
def test_an_item_without_a_rare_neighbour_is_never_flagged(fraud, ties):
    """Not even when everything could be followed up."""
    X, y = fraud
    model = make(capacity=Capacity.fraction(1.0), ties=ties).fit(X, y)
    nothing_rare = model.score_samples(X) == 0
    assert nothing_rare.any()
    assert not model.flag(X)[nothing_rare].any()
    assert model.flag(X)[~nothing_rare].all()
    assert (model.decision_function(X)[nothing_rare] <= 0).all()


def test_calibration_items_stay_within_capacity(fraud):
    """Whatever k is chosen, the plug-in promise holds."""
    X, y = fraud
    for b in (0.5, 1, 3):
        model = make(capacity=Capacity.multiple(b)).fit(X, y)
        _, held_out = split(y == 1)
        assert model.flag(X[held_out]).mean() <= b * y.mean()


def test_the_surface_holds_what_counting_gives(fraud):
    """Shares of all items and of rare items with votes above 1 - a0, for every k."""
    X, y = fraud
    model = make(n_neighbors=[1, 5, 20]).fit(X, y)
    train, held_out = split(y == 1)
    surface = model.surface_
    assert surface.flagged.shape == surface.detection.shape == (3, surface.a0.size)
    for row, k in enumerate(surface.n_neighbors):
        knn = KernelKNeighborsClassifier(k).fit(X[train], y[train])
        scores = knn.predict_proba(X[held_out])[:, 1]
        for column in (0, 1, 300, 950, 1_000):
            flagged = scores > 1 - surface.a0[column]
            assert surface.flagged[row, column] == pytest.approx(flagged.mean())
            assert surface.detection[row, column] == pytest.approx(flagged[y[held_out] == 1].mean())


def test_the_surface_answers_for_other_capacities(fraud):
    """The best point is within the capacity, and as good as a fit for that capacity finds."""
    X, y = fraud
    surface = make().fit(X, y).surface_
    for share in (0.0, 0.01, 0.05, 0.2, 1.0):
        best = surface.best(Capacity.fraction(share))
        fitted = make(capacity=Capacity.fraction(share)).fit(X, y)
        assert best.flagged <= share
        # Steps of a0 may stop just short of the exact cut: by two of the forty rare items at most.
        assert fitted.detections_.max() - 0.05 <= best.detection <= fitted.detections_.max()
    assert surface.best(CAPACITY, tie_break="smallest").n_neighbors <= best.n_neighbors
    with pytest.raises(ValueError, match="tie_break must be one of"):
        surface.best(CAPACITY, tie_break="first")
    with pytest.raises(ValueError, match="prevalence"):
        surface.best(Capacity.multiple(2))


def test_other_guarantees_choose_k_on_training_items(fraud):
    """The calibration items must have no part in it, so the choice does not depend on them."""
    X, y = fraud
    model = make(guarantee="expected").fit(X, y)
    assert model.calibration_.flagged_fraction <= 0.05
    with pytest.raises(ValueError, match="no part in the choice of k"):
        make(guarantee="expected", selection="calibration").fit(X, y)
    make(guarantee="expected", selection="calibration", n_neighbors=[7]).fit(X, y)


def test_k_stays_and_a0_moves_with_the_capacity(fraud):
    """More capacity, more weight to a rare vote."""
    X, y = fraud
    model = make(capacity=Capacity.fraction(0.01)).fit(X, y)
    more = model.with_capacity(Capacity.fraction(0.1))
    assert more.n_neighbors_ == model.n_neighbors_
    assert more.a0_ > model.a0_


def test_no_capacity_flags_nothing(fraud):
    """Then a rare vote weighs nothing."""
    model = make(capacity=Capacity.fraction(0)).fit(*fraud)
    assert model.a0_ == 0
    assert not model.flag(fraud[0]).any()


def test_sparse_items_are_taken(fraud):
    """And leave the capacity as it is."""
    X, y = fraud
    model = make().fit(sparse.csr_array(X), y)
    assert model.flag(sparse.csr_array(X)).mean() < 0.1


def test_a_pickled_model_decides_alike(fraud):
    """Fitted models travel."""
    X, y = fraud
    model = make(ties="hash").fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).flag(X), model.flag(X))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_neighbors": []}, "at least one number of neighbours"),
        ({"n_neighbors": [3, 0]}, "Each of n_neighbors must be a whole number"),
        ({"n_neighbors": 5_000}, "n_neighbors=5000 needs at least 5001 training rows"),
        ({"tie_break": "first"}, "tie_break must be one of"),
        ({"selection": "test"}, "selection must be one of"),
        ({"cv": 1.0}, "cv=1.0 as a float is the share"),
        ({"cv": 5}, "cv must be a float"),
        ({"capacity": 0.05}, "capacity must be a Capacity"),
    ],
)
def test_wrong_parameters_are_named(fraud, wrong, message):
    """Each message says which argument, and what was needed."""
    with pytest.raises((ValueError, TypeError), match=message):
        make(**wrong).fit(*fraud)


def test_a_refit_that_fails_leaves_nothing_to_decide_with(fraud):
    """A threshold of earlier neighbours says nothing about new ones."""
    model = make().fit(*fraud)
    with pytest.raises(ValueError, match="n_neighbors"):
        model.set_params(n_neighbors=5_000).fit(*fraud)
    with pytest.raises(NotFittedError):
        model.flag(fraud[0])


def test_a_single_rare_item_is_too_few(rng):
    """One part of the data would have none."""
    with pytest.raises(ValueError, match="takes at least two items of this class"):
        make().fit(rng.normal(size=(60, 2)), np.arange(60) == 0)


CHECKED = [
    CapacityKNeighborsClassifier(Capacity.multiple(1), n_neighbors=3, guarantee="plug-in"),
    CapacityKNeighborsClassifier(Capacity.multiple(1), n_neighbors=2),
    CapacityKNeighborsClassifier(
        Capacity.fraction(0.3), n_neighbors=[1, 2], guarantee="expected", ties="hash"
    ),
]


def expected_failures(classifier):
    """Name the checks whose assumption a capacity contradicts, and why."""
    return {
        "check_classifiers_train": (
            "the capacity decides, so predict is not the class with the highest probability"
        ),
    }


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """Everything that holds for scikit-learn's own classifiers."""
    check(estimator)
