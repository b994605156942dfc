"""Compiled scorers agree with their models: bit for bit, or from below."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from shortlist import Capacity, CapacityClassifier
from shortlist._core.ranking import lift
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
)
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.models import compile_scorer

CAPACITY = Capacity.multiple(2)
NUMBERS = ["a", "b", "c"]


def make_rows(n=400, seed=0):
    """Return rows with gaps, texts, and a number with few values; and labels."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=NUMBERS)
    X.loc[rng.random(n) < 0.1, "a"] = np.nan
    X["shop"] = rng.choice(["north", "south", "west"], n).astype(object)
    X["name"] = np.array([f"n{k:.0f}" for k in rng.exponential(4, n)], dtype=object)
    risk = X["b"] + 2 * (X["shop"] == "west") - 2
    return X, rng.random(n) < 1 / (1 + np.exp(-risk))


X, Y = make_rows()


def columns(*, scale=True, encode=None, **options):
    """Return a preparation of all columns."""
    numbers = [SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)]
    encode = encode or OneHotEncoder(
        min_frequency=5, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(*numbers, *([StandardScaler()] if scale else [])), NUMBERS),
            ("texts", encode, ["shop", "name"]),
        ],
        **options,
    )


def fitted(learner, prepared=None, **options):
    """Return a fitted classifier around a preparation and a learner."""
    pipeline = make_pipeline(columns() if prepared is None else prepared, learner)
    options = {"rare_label": True, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that have not converged
        return CapacityClassifier(pipeline, capacity=CAPACITY, **options).fit(X, Y)


def rows_of(frame):
    """Return rows of plain values."""
    return [list(row) for row in frame.itertuples(index=False)]


ENCODER = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
LEARNERS = {
    "logistic": (LogisticRegression(), "bounded"),
    "svc": (LinearSVC(), "bounded"),
    "network": (MLPClassifier((4, 3), activation="tanh", max_iter=20, random_state=0), "bounded"),
    "forest": (RandomForestClassifier(20, random_state=0), "exact"),
    "threads": (RandomForestClassifier(20, random_state=0, n_jobs=2), "bounded"),
    "extra": (ExtraTreesClassifier(20, random_state=0), "exact"),
    "bagging": (BaggingClassifier(max_features=0.5, random_state=0), "exact"),
    "histogram": (HistGradientBoostingClassifier(max_iter=20), "exact"),
    "lightgbm": (LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1), "exact"),
    "aware forest": (
        CapacityAwareForestClassifier(CAPACITY, n_estimators=20, rare_label=True, random_state=0),
        "bounded",
    ),
    "aware boosting": (
        CapacityAwareBoostingClassifier(CAPACITY, max_rounds=20, rare_label=True, random_state=0),
        "exact",
    ),
    "unknown": (GaussianNB(), "columns"),
}


#: Those that share their functions with no other one here.
_DIFFERENT = [
    *("logistic", "network", "forest", "threads", "bagging", "histogram", "lightgbm"),
    *("aware forest", "aware boosting", "unknown"),
]


@pytest.fixture(scope="module", params=_DIFFERENT)
def pair(request):
    """Return a model and its scorer, for each family."""
    learner, kind = LEARNERS[request.param]
    model = fitted(learner)
    scorer = compile_scorer(model, X)
    assert scorer.kind == kind, scorer.note
    return model, scorer


def agree(scorer, ours, theirs):
    """Compare scores as strictly as the kind of the scorer promises."""
    if scorer.kind == "exact":
        np.testing.assert_array_equal(ours, theirs)
        return
    if scorer.kind == "bounded":
        assert (ours <= theirs).all()
        assert (lift(ours) <= lift(theirs)).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_scores_are_those_of_the_model(pair):
    """On rows that neither has seen, alone and together, with gaps and unknown texts."""
    model, scorer = pair
    new, _ = make_rows(60, seed=1)
    new.loc[:3, "shop"] = "unknown"
    new.loc[4:9, NUMBERS] = np.nan
    ours = scorer.score_rows(rows_of(new))
    agree(scorer, ours, model.score_samples(new))
    assert [scorer.score_row(row) for row in rows_of(new)] == pytest.approx(ours, rel=1e-12)


def test_a_row_gets_the_same_score_alone(pair):
    """Compiled functions of trees do not depend on the rows that come along."""
    _, scorer = pair
    if scorer.kind == "exact":
        rows = rows_of(X[:20])
        together = scorer.score_rows(rows)
        np.testing.assert_array_equal([scorer.score_row(row) for row in rows], together)


odd_numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False, width=64),
    st.floats(-3, 3, width=32),
    st.sampled_from([np.nan, 0.0, -0.0, 1e-36, -1e-36, 1e-320, 1e37, 3.4e38, 3.5e38]),
)
odd_rows = st.tuples(
    *[odd_numbers] * 3,
    st.sampled_from(["north", "west", "", "never seen", " west"]),
    st.sampled_from(["n1", "n2", "n999", "(missing)"]),
)


@settings(max_examples=20)
@given(rows=st.lists(odd_rows, min_size=1, max_size=8))
def test_any_row_is_scored_or_refused_as_the_model_does(pair, rows):
    """Huge numbers, tiny ones, gaps and unknown texts."""
    model, scorer = pair
    frame = pd.DataFrame(rows, columns=X.columns).astype({"shop": object, "name": object})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow, in the model
        try:
            theirs = model.score_samples(frame)
        except ValueError:
            with pytest.raises(ValueError, match=r"infinity|NaN"):
                scorer.score_rows(rows)
            return
        ours = scorer.score_rows(rows)
    if np.isfinite(theirs).all():
        sane = np.abs(theirs) < 1e30  # rounding errors of larger ones are not bounded usefully
        agree(scorer, ours[sane], theirs[sane]) if scorer.kind == "exact" else None
        assert scorer.kind != "bounded" or (ours <= theirs).all()


@pytest.mark.parametrize("learner", ["forest", "extra", "histogram", "lightgbm"])
def test_numbers_at_a_split_go_where_the_model_sends_them(learner):
    """Each threshold is tried, and its neighbours in single and double precision."""
    model, numbers = _on_numbers(LEARNERS[learner][0])
    scorer = compile_scorer(model, numbers[:50])
    assert scorer.kind == "exact"
    values = np.unique(numbers[:, 0][~np.isnan(numbers[:, 0])])
    middle = (values[1:] + values[:-1]) / 2
    near = [values, middle, np.nextafter(middle, 9), np.nextafter(middle, -9)]
    single = middle.astype(np.float32)
    near += [single, np.nextafter(single, np.float32(9)), np.nextafter(single, np.float32(-9))]
    tried = np.tile(numbers[0], (sum(map(len, near)), 1))
    tried[:, 0] = np.concatenate(near)
    np.testing.assert_array_equal(scorer.score_rows(tried.tolist()), model.score_samples(tried))


def _on_numbers(learner, **options):
    """Fit a learner that takes gaps to an array, without any preparation."""
    rng = np.random.default_rng(2)
    numbers = rng.normal(size=(400, 3)).round(2)
    numbers[rng.random((400, 3)) < 0.1] = np.nan
    y = np.where(rng.random(400) < np.where(numbers[:, 0] > 0.5, 0.5, 0.1), "rare", "usual")
    options = {"capacity": CAPACITY, "random_state": 0, **options}
    return CapacityClassifier(learner, **options).fit(numbers, y), numbers


@settings(max_examples=20)
@given(rows=arrays(np.float64, (5, 3), elements=odd_numbers))
def test_trees_on_bare_arrays_with_gaps(rows):
    """The rare label may be the first of the classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, scorer in _bare():
            try:
                theirs = model.score_samples(rows)
            except ValueError:
                continue
            np.testing.assert_array_equal(scorer.score_rows(rows.tolist()), theirs)


_BARE = []


def _bare():
    if not _BARE:
        for name in ("forest", "extra", "histogram", "lightgbm"):
            model, numbers = _on_numbers(LEARNERS[name][0])
            _BARE.append((model, compile_scorer(model, numbers)))
            assert _BARE[-1][1].kind == "exact"
    return _BARE


@pytest.mark.parametrize(("name", "kind"), [("logistic", "bounded"), ("svc", "bounded")])
def test_the_first_class_may_be_the_rare_one(name, kind):
    """A score is then 1 less the probability of the other, or has the other sign."""
    y = np.where(Y, "fraud", "no fraud")
    pipeline = make_pipeline(columns(), LEARNERS[name][0])
    model = CapacityClassifier(pipeline, capacity=CAPACITY, random_state=0).fit(X, y)
    scorer = compile_scorer(model, X)
    assert (model.classes_[0], scorer.kind) == ("fraud", kind)
    agree(scorer, scorer.score_rows(rows_of(X)), model.score_samples(X))


@pytest.mark.parametrize("learner", ["lightgbm", "logistic"])
def test_the_models_of_folds_are_scored_together(learner):
    """The score is the mean of all of them."""
    model = fitted(LEARNERS[learner][0], cv=10)
    scorer = compile_scorer(model, X)
    assert scorer.kind == LEARNERS[learner][1]
    agree(scorer, scorer.score_rows(rows_of(X)), model.score_samples(X))


def test_native_categories_of_boosting_are_left_to_the_model():
    """Trees that split by sets of codes score for themselves."""
    rng = np.random.default_rng(0)
    numbers = np.column_stack([rng.integers(0, 40, 600), rng.normal(size=600)])
    y = rng.random(600) < np.where(np.isin(numbers[:, 0] % 7, [1, 4]), 0.5, 0.1)
    histogram = HistGradientBoostingClassifier(max_iter=10, categorical_features=[0])
    lightgbm = LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1, min_child_samples=5)
    for learner, params in ((histogram, {}), (lightgbm, {"categorical_feature": [0]})):
        model = CapacityClassifier(learner, capacity=CAPACITY, rare_label=True, random_state=0)
        model.fit(numbers, y, **params)
        scorer = compile_scorer(model, numbers)
        assert scorer.kind == "columns"
        assert "native categories" in scorer.note
        np.testing.assert_array_equal(
            scorer.score_rows(numbers[:50].tolist()), model.score_samples(numbers[:50])
        )


@pytest.mark.parametrize(
    ("prepared", "kind"),
    [
        (columns(encode=ENCODER), "exact"),
        (columns(encode=OneHotEncoder(handle_unknown="ignore", drop="first")), "exact"),
        (columns(encode=OneHotEncoder(handle_unknown="ignore"), sparse_threshold=1), "exact"),
        (columns(scale=False, remainder="passthrough"), "exact"),
        (
            columns(
                encode=make_pipeline(
                    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
                )
            ),
            "exact",
        ),
        (make_pipeline(columns(scale=False), StandardScaler(), StandardScaler()), "exact"),
        (make_pipeline(columns(), FunctionTransformer()), "exact"),
        (
            ColumnTransformer(
                [
                    ("a", make_pipeline(SimpleImputer(), SplineTransformer(3)), NUMBERS),
                    ("b", ENCODER, ["shop"]),
                ],
                sparse_threshold=0,
            ),
            "model",
        ),
        (
            make_pipeline(
                ColumnTransformer(
                    [("numbers", "passthrough", make_column_selector(dtype_include="number"))]
                ),
                StandardScaler(),
                SimpleImputer(add_indicator=True),
            ),
            "exact",
        ),
    ],
)
def test_preparations(prepared, kind):
    """Encoders, scalers and imputers in any order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(RandomForestClassifier(10, random_state=0), prepared)
        scorer = compile_scorer(model, X)
        assert scorer.kind == kind, scorer.note
        new, _ = make_rows(50, seed=3)
        new.loc[:3, "name"] = "unknown"
        np.testing.assert_array_equal(scorer.score_rows(rows_of(new)), model.score_samples(new))


@pytest.mark.parametrize("step", [SplineTransformer(3), RobustScaler()])
def test_a_pipeline_scores_for_itself_from_its_first_unknown_step_on(step):
    """The columns before it are prepared by compiled functions."""
    model = fitted(make_pipeline(step, RandomForestClassifier(10, random_state=0)))
    scorer = compile_scorer(model, X)
    assert scorer.kind == "columns"
    assert type(step).__name__ in scorer.note
    np.testing.assert_array_equal(scorer.score_rows(rows_of(X)), model.score_samples(X))


def test_an_unknown_text_that_is_an_error_stays_one():
    """The message is that of the encoder."""
    prepared = ColumnTransformer([("shop", OneHotEncoder(sparse_output=False), ["shop"])])
    model = fitted(RandomForestClassifier(5), prepared)
    scorer = compile_scorer(model, X)
    assert scorer.kind == "model"
    with pytest.raises(ValueError, match="unknown categories"):
        scorer.score_row([1.0, 2.0, 3.0, "east", "n1"])


def test_what_cannot_be_compiled_is_asked_itself():
    """The scorer says so, and gives the scores of the model."""
    texts = FunctionTransformer(lambda frame: frame.apply(lambda column: column.str.len()))
    prepared = ColumnTransformer([("lengths", texts, ["shop", "name"])])
    model = fitted(LogisticRegression(), prepared)
    scorer = compile_scorer(model, X)
    assert scorer.kind == "model"
    assert "scored by the model itself" in scorer.note
    assert scorer.score_row(rows_of(X)[0]) == model.score_samples(X[:1])[0]
    np.testing.assert_array_equal(scorer.score_rows(rows_of(X)), model.score_samples(X))


def test_a_scorer_that_differs_is_not_used():
    """A learner that calls itself a forest, and scores otherwise."""

    class Forest(RandomForestClassifier):
        def predict_proba(self, X):
            return np.sqrt(super().predict_proba(X))

    Forest.__name__ = "RandomForestClassifier"
    scorer = compile_scorer(fitted(Forest(10, random_state=0)), X)
    assert scorer.kind == "model"
    assert "differ" in scorer.note


def test_a_flag_implies_a_flag_of_the_model(pair):
    """At any threshold on the grid of comparable scores, as the rule and controllers compare."""
    model, scorer = pair
    ours, theirs = lift(scorer.score_rows(rows_of(X))), lift(model.score_samples(X))
    if scorer.kind == "columns":
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        return
    for threshold in np.unique(theirs)[::7]:
        assert not ((ours > threshold) & ~(theirs > threshold)).any()


def test_no_rows_have_no_scores(pair):
    """An empty batch is empty."""
    assert pair[1].score_rows([]).shape == (0,)


def test_a_table_model_can_still_be_copied_and_pickled(table_fit):
    """Compiled functions are left behind, and made anew."""
    model = table_fit.model
    assert model.row_scorer.kind == "bounded"
    again = pickle.loads(pickle.dumps(model))
    assert copy.copy(again).row_scorer.kind == "bounded"


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_an_ensemble_of_folds_is_never_above_itself(method):
    """Forests, boosting, a network and a logistic model together, each on its own columns."""
    ensemble = CapacityEnsembleClassifier(size="quick", random_state=0)
    options = {"rare_label": True, "random_state": 0, "response_method": method}
    model = CapacityClassifier(ensemble, capacity=CAPACITY, cv=2, **options)
    scorer = compile_scorer(model.fit(X, Y), X)
    assert scorer.kind == "bounded", scorer.note
    new, _ = make_rows(60, seed=4)
    new.loc[:3, "shop"] = "unknown"
    agree(scorer, scorer.score_rows(rows_of(new)), model.score_samples(new))
