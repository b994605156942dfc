"""The decision of a model as an ONNX graph."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession

from shortlist import Capacity
from shortlist._core.ranking import lift
from shortlist.exceptions import ModelFileError
from shortlist.models import onnx_export as exporting
from shortlist.models.onnx_export import OnnxGraph, keys_for
from shortlist.tables import fit_table, model_file
from shortlist.tables.estimators import LEARNERS
from shortlist.tables.read import open_table

EXPORTED = [
    learner
    for learner in LEARNERS
    # Others have no graph, or a test of their own.
    if learner not in ("auto", "kde", "knn", "svm", "aware-network", "aware-svm")
]
WITH_PROBABILITY = ("logistic", "forest", "boosting", "network")


def export_model(model, path, check=None):
    """Write a graph, and compare it with its model on a table."""
    exported = model_file.export_model(model, path)
    if check is None:
        return exported, None
    with model.schema.open(check) as source:
        rows = model.schema.read(source)
    return exported, OnnxGraph.read(path).compare(model.classifier, rows.X, ids=rows.ids)


@pytest.fixture
def models(learner_model):
    """Return a maker of models, which fits each learner once."""
    return learner_model


def rows_of(model, path):
    """Read the rows of a table for a model."""
    with open_table(path) as source:
        return model.schema.read(source)


def run(path, model, rows):
    """Return the answers of a graph, which gets the keys that the model decides by."""
    return OnnxGraph.read(path).run(rows.X, keys_for(model.classifier, rows.X, rows.ids))


def run_strictly(path, X):
    """Return the answers of a graph if all ties and lots are lost."""
    return OnnxGraph.read(path).run(X, dict.fromkeys(("tie_key", "lot"), np.ones(len(X))))


def with_threshold(model, **changes):
    """Return a model with another threshold, or one that flags some of the rows tied with it."""
    classifier = model.classifier.with_capacity(model.classifier.capacity)
    classifier.rule_.calibrations = [replace(classifier.calibration_, **changes)]
    return replace(model, classifier=classifier)


@pytest.mark.parametrize("learner", EXPORTED)
def test_a_graph_decides_as_its_model(models, new_cases, tmp_path, learner):
    """With texts, gaps, dates and categories that were never seen, to the last digits."""
    model = models(learner)
    exported, compared = export_model(model, tmp_path / "m.onnx", check=new_cases)
    rows = rows_of(model, new_cases)
    rows.X.loc[:20, "country"] = "nowhere"
    answers = run(tmp_path / "m.onnx", model, rows)
    scores = model.classifier.score_samples(rows.X)
    largest = np.abs(model.classifier.calibration_scores_).max()
    assert_allclose(answers["score"].ravel(), scores, rtol=0, atol=1e-12 * largest)
    assert_array_equal(answers["flag"].ravel(), model.classifier.flag(rows.X, ids=rows.ids))
    assert ("probability" in answers) == (learner in WITH_PROBABILITY)
    if "probability" in answers:
        chances = model.classifier.predict_proba(rows.X)[:, 1]
        assert_allclose(answers["probability"].ravel(), chances, atol=1e-12)
    assert compared.n_items == 800
    assert compared.flagged_more == compared.flagged_less == 0
    assert exported.margin < 1e-9 * largest


@pytest.fixture(scope="module")
def default_model(cases):
    """Return what `shortlist fit` makes by default, of a smaller size."""
    capacity = Capacity.count(100, per=1_000)
    options = {"size": "quick", "folds": 3}
    return fit_table(cases, target="fraud", id="case", capacity=capacity, **options).model


def test_the_default_ensemble_decides_alike(default_model, new_cases, tmp_path):
    """Members of five kinds in three folds, one of which is picked for each row by a hash."""
    path = tmp_path / "m.onnx"
    exported, compared = export_model(default_model, path, check=new_cases)
    assert "fold_key" in exported.keys
    assert "lot" in exported.keys
    assert compared.flagged_by_both > 20
    assert compared.flagged_more == compared.flagged_less == 0
    rows = rows_of(default_model, new_cases)
    assert rows.X["amount"].isna().any()
    answers = run(path, default_model, rows)
    classifier = default_model.classifier
    assert_allclose(answers["score"].ravel(), classifier.score_samples(rows.X), rtol=1e-13)
    assert_array_equal(answers["flag"].ravel(), classifier.flag(rows.X, ids=rows.ids))
    compiled = default_model.row_scorer.score_rows(rows.X.to_numpy(dtype=object).tolist())
    assert_allclose(answers["score"].ravel(), compiled, rtol=1e-10)


def test_a_graph_has_one_answer(cases, new_cases, tmp_path):
    """That of the model. A graph that lacks the keys does not run, rather than to flag nothing.

    Small folds have thresholds above all scores: what all of them would flag is nothing at all.
    """
    pd.read_csv(cases).head(300).to_csv(tmp_path / "few.csv", index=False)
    options = {"target": "fraud", "id": "case", "rare": "yes", "learner": "logistic"}
    model = fit_table(tmp_path / "few.csv", capacity=Capacity.fraction(0.02), **options).model
    assert model.classifier.calibrations_[0].k == -1
    exported, compared = export_model(model, tmp_path / "m.onnx", check=new_cases)
    assert exported.keys == ["lot", "fold_key"]
    assert compared.flagged_by_both > 0
    assert compared.flagged_more == compared.flagged_less == 0
    session = InferenceSession(tmp_path / "m.onnx")
    assert not session.get_overridable_initializers()
    rows = rows_of(model, new_cases)
    columns = {
        each.name: exporting._input(rows.X[each.name], each.type == "tensor(string)")
        for each in session.get_inputs()
        if each.name not in exported.keys
    }
    with pytest.raises(ValueError, match=r"Required inputs \(\['lot', 'fold_key'\]\) are missing"):
        session.run(["flag"], columns)


@pytest.mark.parametrize("learner", EXPORTED)
def test_a_graph_never_flags_more_at_the_threshold(models, new_cases, tmp_path, learner):
    """Rows are moved to the threshold as closely as numbers allow, from both sides."""
    model = models(learner)
    export_model(model, tmp_path / "m.onnx")
    rows = rows_of(model, new_cases).X.dropna().assign(country="cl", vip=1.0)
    flagged = strictly(model, rows)
    inside, outside = rows[flagged].head(50), rows[~flagged].head(50)
    n = min(len(inside), len(outside))
    close = meet(model, inside.head(n), outside.head(n))
    answers = run_strictly(tmp_path / "m.onnx", close)
    by_model = strictly(model, close)
    assert 0 < by_model.sum() < 2 * n  # at the very threshold a model may tremble by itself
    assert not (answers["flag"].ravel() & ~by_model).any()


def strictly(model, X):
    """Tell which rows lie strictly above the threshold of a model."""
    return model.classifier.score_samples(X) > model.classifier.threshold_


def meet(model, inside, outside):
    """Halve the ways between flagged and unflagged rows until they are neighbours."""
    numbers = ["amount", "opened"]
    low, high = (rows.reset_index(drop=True).copy() for rows in (outside, inside))
    for _ in range(60):
        middle = high.copy()
        middle[numbers] = (low[numbers].to_numpy() + high[numbers].to_numpy()) / 2
        flagged = strictly(model, middle)
        high.loc[flagged, numbers] = middle.loc[flagged, numbers]
        low.loc[~flagged, numbers] = middle.loc[~flagged, numbers]
    return pd.concat([low, high], ignore_index=True)


def test_a_row_that_ties_with_the_threshold_is_not_flagged(models, new_cases, tmp_path):
    """Whichever row it is: its own score is the threshold, and rounding must not lift it."""
    rows = rows_of(models("boosting"), new_cases)
    scores = lift(np.asarray(models("boosting").classifier.score_samples(rows.X)))
    for place in range(0, 800, 80):
        model = with_threshold(models("boosting"), value=float(scores[place]), tie_key=0.0)
        export_model(model, tmp_path / "m.onnx")
        answers = run_strictly(tmp_path / "m.onnx", rows.X)
        assert not answers["flag"].ravel()[place]
        assert_array_equal(answers["flag"].ravel(), scores > scores[place])


def test_tree_splits_are_met_exactly(models, tmp_path):
    """A row on a split goes the same way in the graph, and so does its neighbour on each side."""
    model = models("forest")
    export_model(model, tmp_path / "m.onnx")
    scaler = model.classifier.estimator_["columns"].named_transformers_["numbers"][-1]
    trees = model.classifier.estimator_["learner"].estimators_
    splits = np.concatenate([t.tree_.threshold[t.tree_.feature == 0] for t in trees])
    on_splits = scaler.mean_[0] + scaler.scale_[0] * splits
    around = np.concatenate([np.nextafter(on_splits, side) for side in (-np.inf, np.inf)])
    amounts = np.concatenate([on_splits, around])
    X = pd.DataFrame(
        {"amount": amounts, "country": "ar", "opened": 19_800.0, "vip": 0.0},
        index=range(amounts.size),
    )
    answers = run_strictly(tmp_path / "m.onnx", X)
    scores = model.classifier.score_samples(X)
    assert_allclose(answers["score"].ravel(), scores, rtol=0, atol=1e-12)


def test_an_empty_text_is_a_missing_one(models, tmp_path):
    """As it is in a file."""
    model = models("logistic")
    export_model(model, tmp_path / "m.onnx")
    X = (
        model.probe_rows()
        .head(2)
        .assign(country=["", "(missing)"], amount=3.0, opened=0.0, vip=1.0)
    )
    first, second = run_strictly(tmp_path / "m.onnx", X)["score"].ravel()
    assert first == second


@pytest.mark.parametrize("learner", ["kde", "knn", "svm", "aware-network", "aware-svm"])
def test_what_has_no_graph_is_named(models, tmp_path, learner):
    """With the learners that have one; and nothing is written."""
    with pytest.raises(
        ModelFileError,
        match=r"(Discriminant|Kernel|Network|SVC)\w* has no ONNX form.*--learner auto",
    ):
        export_model(models(learner), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_hashed_ties_are_decided_by_their_keys(models, tmp_path, new_cases):
    """A graph cannot hash: it gets the keys. Those of 1 leave all tied rows out."""
    rows = rows_of(models("forest"), new_cases)
    rows = replace(rows, X=rows.X.iloc[np.repeat(np.arange(20), 40)].reset_index(drop=True))
    scores = lift(np.asarray(models("forest").classifier.score_samples(rows.X)))
    value = float(np.sort(scores)[-100])
    model = with_threshold(models("forest"), value=value, tie_key=0.5, ties="hash", share=0.0)
    exported, _ = export_model(model, tmp_path / "m.onnx")
    assert exported.keys == ["tie_key"]
    by_model = model.classifier.flag(rows.X, ids=rows.ids)
    assert 0 < by_model[scores == value].sum() < 40 <= (scores == value).sum()
    assert_array_equal(run(tmp_path / "m.onnx", model, rows)["flag"].ravel(), by_model)
    without = run_strictly(tmp_path / "m.onnx", rows.X)["flag"].ravel()
    assert_array_equal(without, scores > value)


def test_scores_that_differ_are_not_exported(models, tmp_path, monkeypatch):
    """The promise rests on their agreement, so it is looked at before anything is written."""
    monkeypatch.setattr(exporting, "_noise", lambda *args: 1e-3)
    with pytest.raises(ModelFileError, match=r"differ by up to 1.0e-03"):
        export_model(models("logistic"), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_scores_that_differ_a_little_widen_the_margin(models, tmp_path, monkeypatch, new_cases):
    """What could come to lie on two sides of the threshold is not flagged."""
    monkeypatch.setattr(exporting, "_noise", lambda *args: 1e-12)
    exported, compared = export_model(models("logistic"), tmp_path / "m.onnx", check=new_cases)
    assert 1.5e-11 < exported.margin < 1.7e-11
    assert compared.flagged_more == 0


def test_a_graph_that_flags_more_is_not_written(models, tmp_path, monkeypatch):
    """Found on artificial rows."""
    with monkeypatch.context() as patched:
        patched.setattr(exporting, "_cut", lambda *args: exporting._Cut(-1.0, -1.0, 0.0, 0.0))
        patched.setattr(exporting, "_check_margin", lambda *args: None)
        with pytest.raises(ModelFileError, match="rows that the model does not flag"):
            export_model(models("logistic"), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_threshold_that_flags_nothing_stays_so(models, tmp_path, new_cases):
    """Infinity has no margin, and needs none."""
    model = models("logistic")
    nothing = replace(model, classifier=model.classifier.with_capacity(Capacity.fraction(0)))
    exported, compared = export_model(nothing, tmp_path / "m.onnx", check=new_cases)
    assert exported.margin == 0
    assert compared.flagged_by_both == compared.flagged_more == 0


def test_a_file_says_what_it_holds(models, tmp_path):
    """Threshold, margin and all that the model file says, for those who find it later."""
    model = models("logistic")
    exported, _ = export_model(model, tmp_path / "m.onnx")
    content = onnx.load(tmp_path / "m.onnx")
    properties = {entry.key: entry.value for entry in content.metadata_props}
    threshold = model.classifier.threshold_ + exported.margin
    assert json.loads(properties["thresholds"]) == pytest.approx([threshold], rel=1e-15)
    assert properties["seed"] == "0"
    assert json.loads(properties["model"])["guarantee"] == "expected"
    assert "capacity" in content.graph.doc_string


def test_a_column_with_the_name_of_an_output(cases, tmp_path):
    """Cannot be told from it."""
    frame = pd.read_csv(cases).rename(columns={"amount": "score"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = fit_table(
        tmp_path / "t.csv", target="fraud", capacity=Capacity.fraction(0.1), learner="logistic"
    ).model
    with pytest.raises(ModelFileError, match="'score' has the name of an output"):
        export_model(model, tmp_path / "m.onnx")


def test_a_graph_that_cannot_be_read(tmp_path):
    """One line, as for every file."""
    with pytest.raises(ModelFileError, match="cannot be read"):
        OnnxGraph.read(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(ModelFileError, match="onnxruntime cannot run this graph"):
        OnnxGraph.read(tmp_path / "text.onnx")
