"""CapacityClassifier: any model inside, any input, one promise."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from shortlist import Capacity, CapacityClassifier, calibrate_threshold, capacity_scorer
from shortlist._core.ranking import lift
from shortlist._core.scoring import rare_scores
from shortlist.aware import CapacityAwareLinearClassifier
from shortlist.exceptions import CapacityError, InsufficientCalibrationWarning


def logistic():
    """Return a model that fits the simulated payments quickly."""
    return make_pipeline(StandardScaler(), LogisticRegression())


def fitted(X, y, estimator=None, **options):
    """Fit with settings that most tests share: the rule of the paper, which can be counted."""
    paper = {"guarantee": "plug-in", "ties": "exclude"}
    options = {"capacity": Capacity.multiple(2), "random_state": 0, **paper, **options}
    model = logistic() if estimator is None else estimator
    return CapacityClassifier(model, **{"cv": 0.5, **options}).fit(X, y)


def test_it_flags_within_capacity_and_finds_more_than_the_default(fraud):
    """On the calibration half at most 2 x 2 % are flagged; detection beats the default rule."""
    X, y = fraud
    model = fitted(X, y)
    assert model.rare_label_ == 1
    assert model.prevalence_ == 0.02
    assert model.capacity_fraction_ == 0.04
    assert model.calibration_.flagged_fraction == 0.04
    default = clone(model.estimator).fit(X, y).predict(X)
    flagged = model.flag(X)
    assert flagged[y == 1].mean() > 1.2 * default[y == 1].mean()
    assert_array_equal(model.predict(X) == 1, flagged)
    assert_array_equal(model.decision_function(X) > 0, flagged)
    assert_array_equal(model.score_samples(X) > model.threshold_, flagged)


def test_the_threshold_is_that_of_the_held_out_scores(fraud):
    """Splitting, scoring and calibrating by hand gives the same."""
    X, y = fraud
    model = fitted(X, y, guarantee="confident", capacity=Capacity.fraction(0.05))
    scores = model.calibration_scores_
    by_hand = calibrate_threshold(scores, Capacity.fraction(0.05), guarantee="confident")
    assert model.threshold_ == by_hand.value
    assert scores.size == 2_000


@pytest.mark.parametrize("model", [logistic(), make_pipeline(StandardScaler(), LinearSVC())])
def test_the_rare_label_may_sort_first(fraud, model):
    """Labels "bad" and "good" behave like 1 and 0."""
    X, y = fraud
    names = np.where(y == 1, "bad", "good")
    numbers, words = fitted(X, y, model), fitted(X, names, model)
    assert words.rare_label_ == "bad"
    assert_array_equal(words.flag(X), numbers.flag(X))
    assert_array_equal(words.predict(X) == "bad", numbers.predict(X) == 1)
    assert_allclose(words.decision_function(X), -numbers.decision_function(X), atol=1e-12)
    assert_allclose(words.score_samples(X), numbers.score_samples(X), atol=1e-12)


@pytest.mark.parametrize("wrapped_twice", [True, False])
def test_labels_can_sort_either_way_at_any_depth(fraud, wrapped_twice):
    """A classifier of ours inside another one, or inside a pipeline, keeps its orientation."""
    X, y = fraud
    inner = CapacityClassifier(LinearSVC(), capacity=Capacity.multiple(2), random_state=0, cv=0.5)
    model = make_pipeline(StandardScaler(), inner)
    for labels, rare in ((y, 1), (np.where(y == 1, "bad", "good"), "bad")):
        outer = fitted(X, labels, model) if wrapped_twice else model.fit(X, labels)
        found = (outer.predict(X) == rare)[y == 1].mean()
        assert found > 0.4
        assert (
            rare_scores(outer, X, rare_label=rare)[y == 1].mean()
            > rare_scores(outer, X, rare_label=rare).mean()
        )
        common = 0 if rare == 1 else "good"
        opposite = rare_scores(outer, X, rare_label=common, response_method="decision_function")
        assert np.corrcoef(opposite, rare_scores(outer, X, rare_label=rare))[0, 1] < -0.99


def test_trembling_scores_do_not_move_a_block(fraud):
    """Noise in the last bits leaves tied items tied, at the cut as elsewhere."""
    X, y = fraud

    class Trembling(RecordsFitParams):
        def predict_proba(self, X):
            rng = np.random.default_rng()
            rare = np.choose(np.asarray(X)[:, 0].astype(int) % 5, [0.1, 0.3, 1 / 3, 0.7, 0.9])
            rare = rare * (1 + rng.integers(-3, 4, size=rare.size) * 2.0**-53)
            return np.column_stack([1 - rare, rare])

    for ties in ("exclude", "hash"):
        model = fitted(X, y, Trembling(), capacity=Capacity.fraction(0.3), ties=ties)
        flags = [model.flag(X) for _ in range(20)]
        assert all((again == flags[0]).all() for again in flags)
        assert flags[0].mean() < 0.35


def test_the_equivalent_rule_of_bayes(fraud):
    """gamma, modified prior and class weights all give the same flags as the threshold."""
    X, y = fraud
    model = fitted(X, y)
    rare = model.predict_proba(X)[:, 1]
    flagged = model.flag(X)
    pi = model.prevalence_
    likelihood_ratio = rare / (1 - rare) * (1 - pi) / pi
    assert_array_equal(likelihood_ratio > model.likelihood_ratio_threshold_, flagged)
    prior = model.modified_prior_
    assert_array_equal(prior * likelihood_ratio > (1 - prior) * (1 + 1e-12), flagged)
    weight = model.class_weight_
    assert set(weight) == {0, 1}
    assert_array_equal(weight[1] * rare > weight[0] * (1 - rare) * (1 + 1e-12), flagged)


def test_scores_that_are_not_probabilities_have_no_equivalent_prior(fraud):
    """The attributes are absent, not wrong."""
    X, y = fraud
    model = fitted(X, y, make_pipeline(StandardScaler(), LinearSVC()))
    for name in ("likelihood_ratio_threshold_", "modified_prior_", "class_weight_"):
        assert not hasattr(model, name)
    assert not hasattr(model, "predict_proba")
    by_margin = fitted(X, y, response_method="decision_function")
    assert not hasattr(by_margin, "modified_prior_")
    assert hasattr(by_margin, "predict_proba")


def test_flagging_nothing_has_a_prior_of_zero(fraud):
    """The extremes of the equivalences are finite where they can be."""
    X, y = fraud
    model = fitted(X, y).with_capacity(Capacity.fraction(0))
    assert model.modified_prior_ == 0
    assert model.class_weight_ == {0: 1.0, 1: 0.0}
    assert not model.flag(X).any()
    assert (model.decision_function(X) < 0).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.with_capacity(Capacity.fraction(1)).decision_function(X) > 0).all()


def test_changing_the_capacity_refits_nothing(fraud):
    """A new classifier, the same model, nested flags; the old one stays."""
    X, y = fraud
    model = fitted(X, y)
    threshold = model.threshold_
    larger = model.with_capacity(Capacity.multiple(4))
    assert larger.estimator_ is model.estimator_
    assert model.threshold_ == threshold > larger.threshold_
    assert model.capacity == Capacity.multiple(2)
    assert larger.flag(X)[model.flag(X)].all()
    again = fitted(X, y, capacity=Capacity.multiple(4))
    assert again.threshold_ == larger.threshold_


def test_recalibration_needs_no_labels(fraud, rng):
    """The threshold follows a shift of the data; the model stays."""
    X, y = fraud
    model = fitted(X, y)
    model_before, threshold = model.estimator_, model.threshold_
    shifted = X.copy()
    shifted[:, 0] *= 3
    assert model.recalibrate(shifted) is model
    assert model.estimator_ is model_before
    assert model.threshold_ > threshold
    assert model.flag(shifted).mean() <= 0.04


def test_a_list_of_exactly_so_many(fraud):
    """The batch mode, with the own capacity or another one."""
    X, y = fraud
    model = fitted(X, y, KNeighborsClassifier())
    assert model.select(X).sum() == 160
    chosen = model.select(X, Capacity.count(37))
    assert chosen.sum() == 37
    order = np.random.default_rng(1).permutation(len(X))
    assert_array_equal(model.select(X[order], Capacity.count(37)), chosen[order])
    ids = np.arange(len(X))
    assert_array_equal(model.select(X[order], ids=ids[order]), model.select(X, ids=ids)[order])


def test_hashed_ties_use_the_capacity_of_coarse_scores(fraud):
    """Five neighbours give six scores: strict cuts waste capacity, hashed ones do not."""
    X, y = fraud
    model = KNeighborsClassifier()
    strict, hashed = fitted(X, y, model), fitted(X, y, model, ties="hash")
    assert strict.calibration_.flagged_fraction < 0.03
    assert hashed.calibration_.flagged_fraction == 0.04
    flagged = hashed.flag(X)
    assert_array_equal(hashed.predict(X) == 1, flagged)
    assert_array_equal(hashed.decision_function(X) > 0, flagged)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.DataFrame, sparse.csr_array])
def test_one_row_at_a_time_is_the_same_as_a_batch(fraud, container):
    """With hashed ties, in every container."""
    X, y = fraud
    X = X[:, [6, 7]]  # two indicators: four different rows, so ties everywhere
    model = fitted(container(X), y, KNeighborsClassifier(), ties="hash")
    batch = model.flag(container(X[:200]))
    alone = [model.flag(container(X[row : row + 1]))[0] for row in range(200)]
    assert_array_equal(batch, alone)


def test_ids_break_ties_when_given(fraud):
    """Identical rows with different ids get different answers, the same ones every time."""
    X, y = fraud
    X = np.zeros((len(X), 1))
    ids = np.array([f"case {number}" for number in range(len(X))])
    model = CapacityClassifier(
        KNeighborsClassifier(),
        capacity=Capacity.fraction(0.1),
        guarantee="plug-in",
        ties="hash",
        random_state=0,
        cv=0.5,
    ).fit(X, y, ids=ids)
    flagged = model.flag(X, ids=ids)
    # Fitted rows number 2,000 in calibration; standard error of the rate 0.007.
    assert 0.07 < flagged.mean() < 0.13
    assert_array_equal(model.predict(X[::-1], ids=ids[::-1]) == 1, flagged[::-1])
    assert_array_equal(model.decision_function(X, ids=ids) > 0, flagged)
    assert model.recalibrate(X, ids=ids).flag(X, ids=ids).mean() == pytest.approx(0.1)
    with pytest.raises(ValueError, match="each of the 4000 items"):
        model.flag(X, ids=ids[:5])


def test_ids_in_calibration_and_in_use_go_together(fraud):
    """A cut among hashes of ids says nothing about hashes of rows, nor the other way round."""
    X, y = fraud
    X, ids = X[:, [6, 7]], np.arange(len(X))
    by_rows = fitted(X, y, KNeighborsClassifier(), ties="hash")
    with pytest.raises(ValueError, match="calibrated without ids"):
        by_rows.flag(X, ids=ids)
    by_ids = by_rows.recalibrate(X, ids=ids)
    with pytest.raises(ValueError, match="calibrated with ids"):
        by_ids.predict(X)
    assert by_ids.flag(X, ids=ids).mean() == pytest.approx(0.04)
    assert by_ids.select(X).sum() == 160  # a batch is settled within itself
    strict = fitted(X, y, KNeighborsClassifier())
    assert_array_equal(strict.flag(X, ids=ids), strict.flag(X))


class TestWhereTheThresholdComesFrom:
    """The meanings of `cv`."""

    def test_parallel_folds_give_the_same(self, fraud):
        """n_jobs changes nothing but the time, also with metadata routing."""
        X, y = fraud
        parallel, alone = fitted(X, y, cv=3, n_jobs=2), fitted(X, y, cv=3)
        assert_array_equal(parallel.thresholds_, alone.thresholds_)
        with sklearn.config_context(enable_metadata_routing=True):
            inner = make_pipeline(
                StandardScaler().set_fit_request(sample_weight=False),
                LogisticRegression().set_fit_request(sample_weight=True),
            )
            model = CapacityClassifier(inner, capacity=Capacity.multiple(2), cv=3, n_jobs=2)
            assert model.fit(X, y, sample_weight=np.ones(len(X))).capacity_fraction_ == 0.04

    def test_an_ensemble_keeps_one_threshold_per_fold(self, fraud):
        """Each row is decided by the model its hash picks, alone as in a batch."""
        X, y = fraud
        model = fitted(X, y, cv=4, guarantee="expected")
        assert len(model.estimators_) == len(model.thresholds_) == 4
        assert not hasattr(model, "estimator_")
        assert not hasattr(model, "modified_prior_")
        flagged = model.flag(X)
        assert 0.02 < flagged.mean() < 0.06
        assert_array_equal([model.flag(X[row : row + 1])[0] for row in range(100)], flagged[:100])
        margin = model.decision_function(X)
        assert_array_equal(margin > 0, flagged)
        ranked = np.argsort(model.predict_proba(X)[:, 1])
        settled = ranked[np.abs(margin[ranked]) > 1e-12]  # elsewhere one model overrules the mean
        assert (np.diff(margin[settled]) >= 0).all()
        members = [member.predict_proba(X) for member in model.estimators_]
        assert_allclose(model.predict_proba(X), np.mean(members, axis=0))
        assert model.select(X).sum() == 160
        assert model.with_capacity(Capacity.multiple(4)).flag(X)[flagged].all()
        assert not hasattr(model, "calibration_")
        recent = model.recalibrate(X)  # one threshold for the mean of all models
        assert recent.calibration_.n_calibration == len(X)
        assert_array_equal(recent.flag(X), recent.decide(X).scores > recent.threshold_)
        assert_array_equal(recent.decide(X).scores, recent.score_samples(X))

    def test_refitting_as_a_single_model_forgets_the_ensemble(self, fraud):
        """And the other way round."""
        X, y = fraud
        model = fitted(X, y)
        model.set_params(cv=3).fit(X, y)
        assert not hasattr(model, "estimator_")
        model.set_params(cv=0.5).fit(X, y)
        assert model.estimators_ == [model.estimator_]

    @pytest.mark.parametrize("as_frozen", [True, False])
    def test_a_trained_model_is_taken_as_it_is(self, fraud, as_frozen):
        """Prefit and frozen models are not refitted, and all rows calibrate."""
        X, y = fraud
        trained = logistic().fit(X[:2000], y[:2000])
        estimator, cv = (FrozenEstimator(trained), 0.5) if as_frozen else (trained, "prefit")
        model = fitted(X[2000:], y[2000:], estimator, cv=cv)
        assert model.estimator_ is estimator
        assert model.calibration_.n_calibration == 2_000
        assert model.flag(X[2000:]).mean() <= model.capacity_fraction_

    def test_a_trained_model_needs_no_labels(self, fraud):
        """Unlabelled items suffice, if it is said which label is rare."""
        X, y = fraud
        trained = FrozenEstimator(logistic().fit(X, y))
        options = {"capacity": Capacity.fraction(0.05), "guarantee": "plug-in"}
        model = CapacityClassifier(trained, rare_label=1, **options).fit(X)
        assert model.flag(X).mean() == 0.05
        assert np.isnan(model.prevalence_)
        with pytest.raises(ValueError, match="rare_label="):
            CapacityClassifier(trained, **options).fit(X)
        with pytest.raises(CapacityError, match="prevalence"):
            CapacityClassifier(trained, rare_label=1, capacity=Capacity.multiple(2), cv=0.5).fit(X)

    def test_an_untrained_model_cannot_be_prefit(self, fraud):
        """The complaint is scikit-learn's own."""
        with pytest.raises(NotFittedError, match="FrozenEstimator"):
            CapacityClassifier(
                LogisticRegression(), capacity=Capacity.count(1, per=9), cv="prefit"
            ).fit(*fraud)

    @pytest.mark.parametrize("cv", [0.0, 1.0, 1.5, -0.5])
    def test_a_share_lies_between_nothing_and_everything(self, fraud, cv):
        """The complaint says what a float means."""
        with pytest.raises(ValueError, match="held out"):
            fitted(*fraud, cv=cv)


class TestGuarantees:
    """Promises reach the threshold."""

    def test_an_unknown_prevalence_is_covered(self, fraud):
        """With labels and a multiple, confident flags less than with a known fraction."""
        X, y = fraud
        known = fitted(X, y, capacity=Capacity.fraction(0.04), guarantee="confident")
        covered = fitted(X, y, guarantee="confident")
        assert 0 < covered.calibration_.k < known.calibration_.k

    def test_recalibration_covers_the_unknown_prevalence_too(self, fraud):
        """Without labels by a bound on the prevalence of `fit`, with labels by walking again."""
        X, y = fraud
        plug_in = fitted(X, y).recalibrate(X)
        unlabelled = fitted(X, y, guarantee="confident").recalibrate(X)
        stated = fitted(X, y, guarantee="confident", prevalence=0.02).recalibrate(X)
        labelled = fitted(X, y, guarantee="confident").recalibrate(X, y)
        assert 0 < unlabelled.calibration_.k < stated.calibration_.k < plug_in.calibration_.k
        assert unlabelled.calibration_.k < labelled.calibration_.k < plug_in.calibration_.k
        assert unlabelled.calibration_.confidence == 0.95
        half = fitted(X, y).recalibrate(X[y == 0][:1000], np.r_[np.ones(10), np.zeros(990)])
        assert half.prevalence_ == 0.01

    def test_a_stated_prevalence_is_what_a_multiple_refers_to(self, fraud):
        """Common items may have been sampled less often."""
        X, y = fraud
        model = fitted(X, y, prevalence=0.005)
        assert model.prevalence_ == 0.02
        assert model.capacity_fraction_ == 0.01
        assert model.calibration_.flagged_fraction == 0.01
        assert model.select(X).sum() == 40

    def test_too_little_data_flags_by_lot(self, fraud):
        """Some of what lies above the highest calibration score, and says so."""
        X, y = fraud
        options = {"guarantee": "expected", "ties": "hash"}
        with pytest.warns(InsufficientCalibrationWarning, match="drawn by lot"):
            model = fitted(X, y, capacity=Capacity.fraction(0.0003), **options)
        flagged, highest = model.flag(X), model.calibration_scores_.max()
        assert flagged.sum() <= np.count_nonzero(model.score_samples(X) > highest)

    def test_the_next_batch(self, fraud):
        """A count with `per` is a promise about the next batch."""
        X, y = fraud
        model = fitted(X, y, capacity=Capacity.count(40, per=1000), guarantee="next-batch")
        assert model.calibration_.k < 80
        assert model.capacity_fraction_ == 0.04


def test_one_rare_class_among_many():
    """Eights among digits: flagged or not, the other labels keep their places."""
    X, y = load_digits(return_X_y=True)
    y = y.astype(str)
    model = CapacityClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        capacity=Capacity.multiple(1),
        rare_label="8",
        random_state=0,
        cv=0.5,
    ).fit(X, y)
    predicted, flagged = model.predict(X), model.flag(X)
    assert_array_equal(predicted == "8", flagged)
    assert (predicted == y).mean() > 0.95
    decision = model.decision_function(X)
    assert decision.shape == (len(X), 10)
    assert_array_equal(model.classes_[decision.argmax(axis=1)], predicted)
    assert_array_equal(decision[:, 8] > 0, flagged)
    assert model.modified_prior_ > 0
    assert not hasattr(model, "class_weight_")  # weights would compare with each class, not all


def test_a_class_missing_from_the_fitting_half_is_aligned():
    """A common class with a single item may fall into the calibration half."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.array(["a"] * 150 + ["b"] * 49 + ["c"])
    for seed in range(6):
        model = CapacityClassifier(
            LogisticRegression(),
            capacity=Capacity.fraction(0.2),
            rare_label="b",
            random_state=seed,
            cv=0.5,
        ).fit(X, y)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert_array_equal(model.predict(X) == "b", model.flag(X))
        assert model.predict_proba(X).shape == (200, 3)


def test_frames_with_strings_reach_the_model_untouched(fraud):
    """A pipeline with an encoder works on pandas and polars alike."""
    X, y = fraud
    columns = {"amount": X[:, 0], "place": np.where(X[:, 7] > 0, "abroad", "home")}
    encode = make_column_transformer((OneHotEncoder(), ["place"]), remainder="passthrough")
    flags = []
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        model = fitted(frame, y, make_pipeline(encode, RandomForestClassifier(20, random_state=0)))
        assert list(model.feature_names_in_) == ["amount", "place"]
        flags.append(model.flag(frame))
    assert_array_equal(*flags)
    series = fitted(pd.DataFrame(columns), pd.Series(y), model.estimator)
    assert_array_equal(series.flag(pd.DataFrame(columns)), flags[0])


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_input(fraud, make):
    """Matrices and arrays, also formats without rows."""
    X, y = fraud
    model = LogisticRegression(max_iter=2000)
    dense = fitted(X[:, 3:], y, model, ties="hash")
    assert_array_equal(
        fitted(make(X[:, 3:]), y, model, ties="hash").flag(make(X[:, 3:])), dense.flag(X[:, 3:])
    )


class RecordsFitParams(ClassifierMixin, BaseEstimator):
    """A model that remembers the weights it was given."""

    def fit(self, X, y, sample_weight=None):
        """Keep the weights."""
        self.classes_ = np.unique(y)
        self.sample_weight_ = sample_weight
        return self

    def predict_proba(self, X):
        """Score by the first column."""
        rare = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return np.column_stack([1 - rare, rare])


@pytest.mark.parametrize("cv", [0.5, 2])
def test_weights_go_to_the_model(fraud, cv):
    """Sliced with the rows, with metadata routing on and off."""
    X, y = fraud
    weights = np.arange(len(X), dtype=float)
    options = {"capacity": Capacity.multiple(2), "cv": cv, "random_state": 0}
    off = CapacityClassifier(RecordsFitParams(), **options).fit(X, y, sample_weight=weights)
    assert [model.sample_weight_.size for model in off.estimators_] == [2_000] * (
        cv if cv == 2 else 1
    )
    with sklearn.config_context(enable_metadata_routing=True):
        model = RecordsFitParams().set_fit_request(sample_weight=True)
        on = CapacityClassifier(model, **options).fit(X, y, sample_weight=weights)
    for one, other in zip(on.estimators_, off.estimators_, strict=True):
        assert_array_equal(one.sample_weight_, other.sample_weight_)


def test_groups_are_routed_to_the_splitter(fraud):
    """A group splitter asks for its groups."""
    X, y = fraud
    with sklearn.config_context(enable_metadata_routing=True):
        model = CapacityClassifier(logistic(), capacity=Capacity.multiple(2), cv=GroupKFold(3)).fit(
            X, y, groups=np.arange(len(X)) % 300
        )
    assert model.calibration_scores_.size == len(X)


def test_it_lives_in_searches_and_pipelines(fraud):
    """Inside a pipeline, and searched over capacity and the inner model's parameters."""
    X, y = fraud
    pipeline = make_pipeline(
        StandardScaler(),
        CapacityClassifier(LogisticRegression(), capacity=Capacity.multiple(1), cv=0.5),
    )
    grid = {
        "capacityclassifier__capacity": [Capacity.multiple(1), Capacity.multiple(3)],
        "capacityclassifier__estimator__C": [0.1, 1.0],
    }
    search = GridSearchCV(pipeline, grid, cv=2, scoring="recall").fit(X, y)
    assert search.best_params_["capacityclassifier__capacity"] == Capacity.multiple(3)


def test_copies_and_pickles_decide_alike(fraud):
    """Pickled, a model flags the same; cloned, it is unfitted and equal in its parameters."""
    X, y = fraud
    model = fitted(X, y, ties="hash")
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.flag(X), model.flag(X))
    assert again.with_capacity(Capacity.multiple(3)).flag(X).sum() > model.flag(X).sum()
    copy = clone(model)
    assert copy.capacity == model.capacity
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_infinite_scores_stay_within_capacity():
    """A model may be infinitely sure."""

    class Sure(RecordsFitParams):
        def decision_function(self, X):
            return np.where(np.asarray(X)[:, 0] > 0, np.inf, -np.inf)

        predict_proba = property()

    X = np.arange(-50, 50).reshape(-1, 1)
    y = np.arange(100) >= 80
    model = fitted(X, y, Sure(), capacity=Capacity.fraction(0.1))
    assert not model.flag(X).any()
    hashed = fitted(X, y, Sure(), capacity=Capacity.fraction(0.1), ties="hash")
    assert_array_equal(hashed.decision_function(X) > 0, hashed.flag(X))
    everything = fitted(X, y, Sure(), capacity=Capacity.fraction(1), ties="hash")
    assert everything.flag(X).all()
    assert (everything.decision_function(X) > 0).all()


def test_parameters_set_after_fit_wait_for_the_next_fit(fraud):
    """Threshold, fraction and list all follow the capacity that was calibrated."""
    X, y = fraud
    model = fitted(X, y)
    model.set_params(capacity=Capacity.multiple(10))
    assert model.capacity_fraction_ == 0.04
    assert model.select(X).sum() == 160


def test_a_failed_fit_leaves_no_mixture(fraud):
    """Neither a half-fitted model nor new labels on an old threshold."""
    X, y = fraud
    model = fitted(X, y)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        model.predict(X)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    assert hasattr(model.fit(frame, y), "feature_names_in_")
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_labels_keep_their_type(fraud):
    """Objects stay objects, and the rare label is the one in y."""
    X, y = fraud
    names = np.where(y == 1, "bad", "good").astype(object)
    assert fitted(X, names).predict(X).dtype == object
    assert fitted(X, y, rare_label=True).rare_label_ == 1
    assert type(fitted(X, y, rare_label=1.0).rare_label_) is int


def test_seeds_of_every_kind(fraud):
    """None, ints, generators and random states."""
    X, y = fraud
    for seed in (None, 3, np.random.default_rng(3), np.random.RandomState(3)):
        assert fitted(X, y, random_state=seed).calibration_.flagged_fraction == 0.04
    assert fitted(X, y, random_state=3).threshold_ == fitted(X, y, random_state=3).threshold_


class TestErrors:
    """What goes wrong is said in words."""

    def test_a_trained_model_takes_no_fit_parameters(self, fraud):
        """They would not be used."""
        X, y = fraud
        model = CapacityClassifier(
            FrozenEstimator(logistic().fit(X, y)), capacity=Capacity.fraction(0.1)
        )
        with pytest.raises(ValueError, match=r"\['sample_weight'\] would go unused"):
            model.fit(X, y, sample_weight=y)

    def test_a_promise_that_does_not_suit_fails_before_the_model_is_fitted(self, fraud):
        """An hour of training is not lost."""

        class Untouchable(RecordsFitParams):
            def fit(self, X, y, sample_weight=None):
                raise AssertionError

        for options in (
            {"guarantee": "next-batch"},
            {"capacity": Capacity.multiple(100), "prevalence": 0.03},
            {"cv": "pre"},
        ):
            with pytest.raises(ValueError, match=r"per=N|at most 1 / prevalence|'prefit'"):
                fitted(*fraud, Untouchable(), **options)

    def test_a_missing_label(self, fraud):
        """NaN in y is named."""
        X, y = fraud
        with pytest.raises(ValueError, match="y contains NaN"):
            fitted(X, np.where(y == 1, np.nan, y))

    def test_nan_scores_are_named_by_their_rows_in_X(self, fraud):
        """Not by their places in the held-out part."""
        X, y = fraud

        class Holes(RecordsFitParams):
            def predict_proba(self, X):
                rare = np.where(np.asarray(X)[:, 0] < 0, np.nan, 0.5)
                return np.column_stack([1 - rare, rare])

        broken = np.abs(X) + 1
        broken[3998:, 0] = -1
        with pytest.raises(ValueError, match=r"at rows? 399\d"):
            fitted(broken, y, Holes(), cv=KFold(4), ties="hash")

    def test_pairwise_columns_are_refused(self, fraud):
        """Three classes have three pairs, which are not their scores."""
        X, y = fraud[0][:800], np.arange(800) % 3
        with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
            fitted(X, y, SVC(decision_function_shape="ovo"), rare_label=2)

    def test_a_bare_count_is_no_rate(self, fraud):
        """Fifty of how many?"""
        with pytest.raises(CapacityError, match="per="):
            fitted(*fraud, capacity=Capacity.count(50))

    def test_a_number_is_no_capacity(self, fraud):
        """The complaint shows the three ways to write one."""
        with pytest.raises(TypeError, match=r"Capacity.fraction\(0.05\)"):
            fitted(*fraud, capacity=0.01)

    def test_an_unknown_label(self, fraud):
        """A slip of type is shown beside the labels there are."""
        with pytest.raises(ValueError, match="'1' does not occur among the labels: 0, 1"):
            fitted(*fraud, rare_label="1")

    def test_one_class_only(self, fraud):
        """There is nothing to look for."""
        X, _ = fraud
        with pytest.raises(ValueError, match="only one class"):
            fitted(X, np.zeros(len(X)))

    def test_a_single_rare_item(self, fraud):
        """It cannot be in both halves."""
        X, _ = fraud
        with pytest.raises(ValueError, match="has 1 of 4000 items"):
            fitted(X, np.arange(len(X)) == 0)

    def test_a_fold_without_the_rare_class(self, fraud):
        """The complaint names the usual cause."""
        X, _ = fraud
        y = np.r_[np.zeros(3000), np.ones(1000)]
        with pytest.raises(ValueError, match="use a stratified split"):
            fitted(X, y, RandomForestClassifier(5), cv=KFold(4))

    def test_scores_that_are_nan(self, fraud):
        """Rows are named."""

        class Broken(RecordsFitParams):
            def predict_proba(self, X):
                return np.full((len(X), 2), np.nan)

        with pytest.raises(ValueError, match="NaN"):
            fitted(*fraud, Broken())

    def test_bad_options(self, fraud):
        """Each lists what there is."""
        for option in ("guarantee", "ties", "response_method"):
            with pytest.raises(ValueError, match=f"{option} must be one of"):
                fitted(*fraud, **{option: "unheard-of"})
        with pytest.raises(ValueError, match="has no predict_proba"):
            fitted(*fraud, SVC(), response_method="predict_proba")


class FirstColumn(ClassifierMixin, BaseEstimator):
    """A trained model whose score is the first feature, in the type it comes in."""

    classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        """Learn nothing."""
        return self

    def decision_function(self, X):
        """Return the first column."""
        return X[:, 0]

    def __sklearn_is_fitted__(self):
        """Tell that there is nothing to learn."""
        return True


def test_scores_in_a_coarser_type_than_in_calibration_are_refused(rng):
    """Rounded, a whole block of ties could pass; single precision throughout is fine."""
    X = rng.choice([0.1, 0.2, 0.7], size=(2_000, 1))
    model = CapacityClassifier(
        FrozenEstimator(FirstColumn()), capacity=Capacity.fraction(0.4), rare_label=1
    )
    single, ids = X.astype(np.float32), np.arange(2_000)
    with pytest.raises(ValueError, match=r"gives float32 scores .* recalibrate"):
        model.fit(X, ids=ids).flag(single, ids=ids)
    for again in (model.recalibrate(single, ids=ids), model.fit(single, ids=ids)):
        assert again.flag(single, ids=ids).mean() <= 0.4
        assert again.flag(X, ids=ids).mean() <= 0.4


def test_scores_in_a_finer_type_than_in_calibration_are_rounded():
    """An atom that is a point of the grid in single precision lies below itself in double."""
    grid_point = lift(np.array([0.7], dtype=np.float32))[0]
    atom = np.nextafter(np.float64(grid_point), 1)  # rounds to the grid point
    X = np.where(np.arange(1_000) % 2, atom, 0.1)[:, np.newaxis]
    for ties in ("exclude", "hash"):
        model = CapacityClassifier(
            FrozenEstimator(FirstColumn()), capacity=Capacity.fraction(0.3), rare_label=1, ties=ties
        ).fit(X.astype(np.float32), ids=np.arange(1_000))
        assert model.flag(X, ids=np.arange(1_000)).mean() <= 0.3


def test_a_lower_infinity_alone_is_treated_as_in_a_batch(rng):
    """Where the cut runs through a block of them, each item is decided by its own hash."""
    scores = np.where(rng.random(2_000) < 0.01, np.inf, -np.inf)
    X = np.column_stack([scores, rng.random(2_000)])
    model = CapacityClassifier(
        FrozenEstimator(FirstColumn()), capacity=Capacity.fraction(0.3), rare_label=1, ties="hash"
    ).fit(X)
    flagged = model.flag(X)
    assert flagged.mean() <= 0.3
    assert_array_equal(model.flag(X[scores < 0]), flagged[scores < 0])
    assert_array_equal(np.concatenate([model.flag(row[None]) for row in X[:50]]), flagged[:50])


def test_recalibration_refuses_mistyped_ties(fraud):
    """They would have counted as "hash"."""
    X, y = fraud
    model = fitted(X, y).set_params(ties="exlude")
    with pytest.raises(ValueError, match="ties must be one of 'exclude', 'hash'; got 'exlude'"):
        model.recalibrate(X)


def test_a_failed_recalibration_changes_nothing(fraud):
    """A stated prevalence that is impossible leaves that of `fit` and the threshold alone."""
    X, y = fraud
    model = fitted(X, y)
    before = model.prevalence_, model.threshold_, model.select(X[:500]).sum()
    mostly_rare = (np.arange(y.size) % 10 > 0).astype(int)
    model.set_params(prevalence=0.9)
    with pytest.raises(CapacityError):
        model.recalibrate(X, mostly_rare)
    assert (model.prevalence_, model.threshold_, model.select(X[:500]).sum()) == before


def test_a_failed_fit_leaves_nothing_behind(fraud):
    """Neither labels nor a model, whichever step it was that failed."""
    X, y = fraud
    model = CapacityClassifier(logistic(), capacity=Capacity.multiple(60), prevalence=0.03, cv=0.5)
    before = dict(vars(model))
    with pytest.raises(CapacityError):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize("guarantee", ["plug-in", "confident"])
def test_a_multiple_without_labels_is_refused(fraud, guarantee):
    """Nobody knows what it is a multiple of."""
    X, y = fraud
    model = CapacityClassifier(
        FrozenEstimator(logistic().fit(X, y)),
        capacity=Capacity.fraction(0.1),
        rare_label=1,
        guarantee=guarantee,
    ).fit(X)
    with pytest.raises(CapacityError, match="prevalence"):
        model.with_capacity(Capacity.multiple(2))


@pytest.mark.parametrize("labels", [(0, 1), ("good", "bad")], ids=["rare last", "rare first"])
def test_rank_metrics_read_the_decision_function_rightly(fraud, labels):
    """The area under the curve is that of the scores, whichever label sorts first."""
    X, y = fraud
    named = np.array(labels)[y]
    model = fitted(X, named, rare_label=labels[1])
    expected = roc_auc_score(y, model.score_samples(X))
    assert get_scorer("roc_auc")(model, X, named) == pytest.approx(expected, abs=1e-3)
    assert_array_equal(
        model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)]
    )


def test_the_score_is_detection_within_the_capacity(fraud):
    """Searches compare models by the rare items that they find, not by accuracy."""
    X, y = fraud
    model = fitted(X, y, capacity=Capacity.fraction(0.05))
    assert model.score(X, y) == capacity_scorer(Capacity.fraction(0.05))(model, X, y)
    assert model.with_capacity(Capacity.fraction(1)).score(X, y) == 1


def test_the_score_takes_weights(fraud):
    """An item with weight 2 counts as two items."""
    X, y = fraud
    model = fitted(X, y, capacity=Capacity.fraction(0.05))
    twice = np.flatnonzero(y == 1)[:10]
    weights = np.ones(len(y))
    weights[twice] = 2
    X_twice, y_twice = np.vstack([X, X[twice]]), np.concatenate([y, y[twice]])
    assert model.score(X, y, weights) == pytest.approx(model.score(X_twice, y_twice), abs=0.01)


def test_missing_labels_among_texts_are_counted():
    """Instead of an error about comparing texts with numbers."""
    X = np.arange(40.0)[:, None]
    for missing in (np.nan, None, pd.NA):
        y = np.array(["yes", "no", "no", missing] * 10, dtype=object)
        with pytest.raises(ValueError, match=r"10 of 40 labels are missing, the first at place 3"):
            CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.2)).fit(X, y)


def test_several_models_are_named_where_one_is_asked_for(few_rare):
    """The error of `estimator_` names `estimators_`; one model has both."""
    model = CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.1), cv=3)
    with pytest.raises(AttributeError, match=r"has no estimator_\.$"):
        _ = model.estimator_
    model.fit(*few_rare)
    with pytest.raises(AttributeError, match="There are 3 models: see estimators_"):
        _ = model.estimator_
    assert not hasattr(model, "estimator_")
    single = model.set_params(cv=0.5).fit(*few_rare)
    assert single.estimator_ is single.estimators_[0]


def test_a_notebook_shows_capacity_threshold_and_promise(few_rare):
    """Above the diagram of scikit-learn; before a fit, the capacity alone."""
    model = CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.1), cv=0.5)
    assert "<dt>Capacity</dt><dd>10 % of all cases</dd></dl>" in model._repr_html_()
    page = model.fit(*few_rare)._repr_mimebundle_()["text/html"]
    assert f"<dt>Threshold</dt><dd>{model.threshold_:.4g}</dd>" in page
    assert "<dt>Promise</dt><dd>Row by row: the flags among future items" in page
    assert "LogisticRegression" in page


@pytest.mark.parametrize(
    ("urls", "site"),
    [
        (
            ["Paper, https://a.example", "Documentation, https://b.example/x/"],
            "https://b.example/x",
        ),
        (["Paper, https://a.example"], None),
        (None, None),
    ],
)
def test_a_notebook_links_to_our_pages(urls, site, monkeypatch):
    """Where pyproject.toml says; to a page of docs/api.md. Classes of others have none."""
    known = {"get_all": lambda name: urls if name == "Project-URL" else None}
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: SimpleNamespace(**known))
    model = CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.1))
    aware = CapacityAwareLinearClassifier(capacity=Capacity.fraction(0.1))
    pages = {model: "CapacityClassifier", aware: "aware.CapacityAwareLinearClassifier"}
    for each, page in pages.items():
        link = f"{site}/generated/shortlist.{page}.html" if site else ""
        assert each._get_doc_link() == link
        assert (f'href="{link}"' in each._repr_html_()) == bool(site)
    theirs = type("Theirs", (CapacityClassifier,), {"__module__": "elsewhere"})
    assert theirs(LogisticRegression(), capacity=Capacity.fraction(0.1))._get_doc_link() == ""


def test_the_classifier_of_the_paper(few_rare):
    """Half to learn from, half to calibrate on, the plug-in threshold, and no part of a tie."""
    X, y = few_rare
    model = CapacityClassifier.as_in_paper(LogisticRegression(), b=2, prevalence=0.05).fit(X, y)
    assert model.calibration_.n_calibration == len(y) // 2
    assert model.calibration_.k == int(0.1 * (len(y) // 2))
    assert (model.calibration_.guarantee, model.calibration_.ties) == ("plug-in", "exclude")
    assert CapacityClassifier.as_in_paper(LogisticRegression(), b=1, prevalence=0.1, cv=3).cv == 3


@pytest.mark.parametrize("name", ["fit", "predict"])
def test_frames_with_two_columns_of_one_name_are_refused(name):
    """It is unclear which of them is meant."""
    X = pd.DataFrame(np.arange(600.0).reshape(200, 3), columns=["a", "b", "c"])
    y = np.arange(200) % 10 == 0
    fitted = CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.1)).fit(X, y)
    twice = X.set_axis(["a", "b", "b"], axis=1)
    with pytest.raises(ValueError, match=r"more than one column named 'b'.*Rename"):
        fitted.fit(twice, y) if name == "fit" else fitted.predict(twice)
