"""The two back ends of a blueprint agree with the model, on small random fits of every kind."""

import hashlib
import warnings

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareSVC,
)
from shortlist.exceptions import ModelFileError
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.models import compare_onnx, compile_scorer, export_onnx
from shortlist.models.onnx_export import OnnxGraph, build_graph, keys_for

CAPACITY = Capacity.fraction(0.2)
NUMBERS = ["a", "b", "c"]


def _network(rng):
    shape = tuple(rng.integers(1, 6, size=rng.integers(1, 3)).tolist())
    units = rng.choice(["identity", "logistic", "relu", "tanh"])
    return MLPClassifier(shape, activation=units, max_iter=10, random_state=0)


def _aware(cls, **options):
    return lambda rng: cls(CAPACITY, rare_label="rare", random_state=0, **options)


#: For each kind, a function of a generator that makes a small learner.
KINDS = {
    "logistic": lambda rng: LogisticRegression(C=float(rng.choice([0.01, 1.0, 100.0]))),
    "ridge": lambda rng: RidgeClassifier(),
    "discriminant": lambda rng: LinearDiscriminantAnalysis(),
    "linear svc": lambda rng: LinearSVC(),
    "network": _network,
    "tree": lambda rng: DecisionTreeClassifier(max_depth=int(rng.integers(1, 9)), random_state=0),
    "forest": lambda rng: RandomForestClassifier(int(rng.integers(1, 12)), random_state=0),
    "extra trees": lambda rng: ExtraTreesClassifier(int(rng.integers(1, 12)), random_state=0),
    "bagging": lambda rng: BaggingClassifier(
        _network(rng) if rng.random() < 0.5 else None, 3, max_features=0.7, random_state=0
    ),
    "histogram": lambda rng: HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "lightgbm": lambda rng: LGBMClassifier(
        n_estimators=5, min_child_samples=int(rng.integers(1, 30)), verbose=-1, n_jobs=1
    ),
    "ensemble": lambda rng: CapacityEnsembleClassifier(
        size="quick",
        members=("boosting", "forest", "logistic", "network"),
        random_state=int(rng.integers(99)),
    ),
    "aware forest": _aware(CapacityAwareForestClassifier, n_estimators=5),
    "aware boosting": _aware(CapacityAwareBoostingClassifier, max_rounds=5),
    "aware linear": _aware(CapacityAwareLinearClassifier),
}
_SLOW = ("ensemble", "aware forest", "aware boosting")


def draw_table(rng, n=None):
    """Draw numbers with gaps and few values, texts with rare ones, and labels."""
    n = int(rng.integers(120, 240)) if n is None else n
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(int(rng.integers(0, 3))), columns=NUMBERS)
    X["a"] = X["a"].where(rng.random(n) > 0.15)
    X["shop"] = rng.choice(["north", "south", "west", ""], n, p=[0.5, 0.3, 0.15, 0.05])
    X["shop"] = X["shop"].astype(object)
    risk = X["b"] + 1.5 * (X["shop"] == "west") - 1
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "rare", rng.choice(["usual", "a"]))
    return X, y


def draw_columns(rng):
    """Draw a preparation of the columns."""
    steps = [SimpleImputer(strategy="median", add_indicator=bool(rng.random() < 0.5))]
    if rng.random() < 0.7:
        steps.append(StandardScaler())
    texts = OneHotEncoder(
        min_frequency=5, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    if rng.random() < 0.4:
        texts = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    parts = [("numbers", make_pipeline(*steps), NUMBERS), ("texts", texts, ["shop"])]
    return ColumnTransformer(parts if rng.random() < 0.5 else parts[::-1])


def draw_fit(kind, rng):
    """Fit a learner of a kind to a random table, with one threshold or with folds."""
    X, y = draw_table(rng)
    learner = KINDS[kind](rng)
    model = learner if kind == "ensemble" else make_pipeline(draw_columns(rng), learner)
    ties = str(rng.choice(["hash", "exclude"]))
    folds = {"cv": 3} if rng.random() < 0.5 else {"cv": 0.5}
    options = {"rare_label": "rare", "random_state": int(rng.integers(9)), "ties": ties, **folds}
    ids = rng.permutation(len(X)).astype(str) if rng.random() < 0.5 else None
    classifier = CapacityClassifier(model, capacity=CAPACITY, **options)
    return X, ids is not None, classifier.fit(X, y, ids=ids)


def check_fit(kind, seed):
    """Compare compiled functions, a graph and the model on new rows of one random fit."""
    rng = np.random.default_rng([seed, *kind.encode()])
    X, has_ids, classifier = draw_fit(kind, rng)
    new, _ = draw_table(rng, 150)
    new.loc[:5, "shop"] = "unknown"
    ids = np.arange(len(new)).astype(str) if has_ids else None
    scores = classifier.score_samples(new)
    size = max(1e-300, np.abs(classifier.calibration_scores_).max())

    scorer = compile_scorer(classifier, X)
    compiled = scorer.score_rows(new.to_numpy(dtype=object).tolist())
    assert scorer.kind in ("exact", "bounded"), scorer.note
    np.testing.assert_allclose(compiled, scores, rtol=0, atol=1e-9 * size)
    if scorer.kind == "exact":
        np.testing.assert_array_equal(compiled, scores)
    elif scorer.kind == "bounded":
        assert (compiled <= scores).all()

    content, _ = build_graph(classifier, X)
    answers = OnnxGraph(content).run(new, keys_for(classifier, new, ids))
    np.testing.assert_allclose(answers["score"].ravel(), scores, rtol=0, atol=1e-12 * size)
    flags = answers["flag"].ravel()
    np.testing.assert_array_equal(flags, classifier.flag(new, ids=ids))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_functions_graph_and_model_agree(kind, seed):
    """Scores to the last digits, and the same flags: with gaps, ties, folds and unknown texts."""
    if kind in _SLOW and seed >= 3:
        pytest.skip("three of these take longer than five of the others")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that have not converged
        check_fit(kind, seed)


def test_an_array_can_be_exported(tmp_path, fraud):
    """Its columns are called x0, x1 and so on; gaps go where the trees send them."""
    X, y = fraud
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    learner = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    classifier = CapacityClassifier(learner, capacity=CAPACITY, cv=0.5, random_state=0).fit(X, y)
    exported = export_onnx(classifier, X[:200], tmp_path / "m.onnx")
    assert list(exported.inputs) == [f"x{place}" for place in range(X.shape[1])]
    compared = compare_onnx(classifier, tmp_path / "m.onnx", X)
    assert compared.flagged_by_both > 100
    assert compared.flagged_more == compared.flagged_less == 0
    assert compared.largest_difference < 1e-12


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (make_pipeline(StandardScaler(), GaussianNB()), "GaussianNB"),
        (make_pipeline(SplineTransformer(3), LogisticRegression()), "SplineTransformer"),
        (make_pipeline(StandardScaler(), SVC()), "SVC"),
        (CapacityAwareSVC(CAPACITY, rare_label=True), "CapacityAwareSVC"),
        (HistGradientBoostingClassifier(categorical_features=[0]), "native"),
        (LGBMClassifier(n_estimators=9, verbose=-1, min_data_per_group=5, cat_smooth=1), "native"),
    ],
)
def test_what_has_no_graph_is_named(model, named, tmp_path):
    """And nothing is written."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 300).astype(float), rng.normal(size=300)])
    y = rng.random(300) < np.where(np.isin(X[:, 0], [1, 4]), 0.5, 0.1)
    params = {"categorical_feature": [0]} if isinstance(model, LGBMClassifier) else {}
    classifier = CapacityClassifier(model, capacity=CAPACITY, cv=0.5, random_state=0)
    classifier.fit(X, y, **params)
    with pytest.raises(ModelFileError, match=rf"{named}.* has no ONNX form"):
        export_onnx(classifier, X, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_that_refuses_texts_is_refused(tmp_path):
    """A graph cannot raise its error."""
    X, y = draw_table(np.random.default_rng(0))
    model = make_pipeline(ColumnTransformer([("s", OneHotEncoder(), ["shop"])]), GaussianNB())
    model.steps[-1] = ("tree", DecisionTreeClassifier())
    classifier = CapacityClassifier(model, capacity=CAPACITY, cv=0.5, random_state=1).fit(X, y)
    with pytest.raises(ModelFileError, match="encoder that raises an error"):
        export_onnx(classifier, X, tmp_path / "m.onnx")


def test_segments_have_no_graph(tmp_path, fraud):
    """Each of them has a threshold of its own."""
    X, y = fraud
    options = {"segment_capacities": {0: CAPACITY, 1: CAPACITY}, "cv": 0.5, "random_state": 0}
    classifier = CapacityClassifier(LogisticRegression(max_iter=999), capacity=None, **options)
    classifier.fit(X, y, segments=(X[:, 0] > np.median(X[:, 0])).astype(int))
    with pytest.raises(ModelFileError, match="capacities of segments"):
        export_onnx(classifier, X, tmp_path / "m.onnx")


def test_keys_of_text_ids_are_as_documented():
    """Whoever runs a graph without Python computes them by these few lines."""

    def mix(word):
        word = (word + 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        return word ^ word >> 31

    def key(id, seed):
        secret = seed.to_bytes(8, "little")
        hashed = hashlib.blake2b(id.encode(), digest_size=8, key=secret).digest()
        return (mix(mix(int.from_bytes(hashed, "little") ^ mix(seed))) >> 11) / 2**53

    X, _, classifier = draw_fit("tree", np.random.default_rng(0))
    ids = np.array([f"case {k}" for k in range(len(X))])
    seed, found = classifier.rule_.terms.seed, keys_for(classifier, X, ids)
    assert found["tie_key"].tolist() == [key(id, seed) for id in ids.tolist()]
    assert found["fold_key"].tolist() == [key(id, seed + 1) for id in ids.tolist()]
