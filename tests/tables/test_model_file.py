"""Models in files that never execute code when they are read."""

import io
import json
import os
import pickle
import zipfile

import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FunctionTransformer, make_pipeline

import shortlist
from shortlist import Capacity
from shortlist.exceptions import ModelFileError
from shortlist.tables import load_model, save_model
from shortlist.tables.estimators import LEARNERS
from shortlist.tables.model_file import FORMAT_VERSION, describe_model
from shortlist.tables.read import open_table


def rewrite(path, new, *, manifest=lambda content: content, payload=lambda content: content):
    """Copy a model file with another manifest or another model inside."""
    with zipfile.ZipFile(path) as archive:
        content = manifest(json.loads(archive.read("manifest.json")))
        model, rows = payload(archive.read("model.skops")), archive.read("rows.bin")
    with zipfile.ZipFile(new, "w") as archive:
        archive.writestr("manifest.json", json.dumps(content))
        archive.writestr("model.skops", model)
        archive.writestr("rows.bin", rows)
    return new


@pytest.mark.parametrize("learner", LEARNERS[1:])
def test_a_model_comes_back_as_it_was(learner_model, new_cases, tmp_path, learner):
    """The same flags, the same schema, and still open to another capacity."""
    model = learner_model(learner)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    with open_table(new_cases) as source:
        rows = loaded.schema.read(source)
    for capacity in (Capacity.multiple(2), Capacity.fraction(0.2)):
        before, after = (
            m.classifier.with_capacity(capacity).flag(rows.X, ids=rows.ids) for m in (model, loaded)
        )
        assert_array_equal(before, after)
    assert (loaded.schema, loaded.reference, loaded.learner) == (
        model.schema,
        model.reference,
        model.learner,
    )


def test_a_file_describes_itself(model_file):
    """Versions, schema, capacity and guarantee, in JSON that needs no shortlist to be read."""
    content = describe_model(model_file)
    assert content["format_version"] == FORMAT_VERSION
    assert content["shortlist_version"] == shortlist.__version__
    assert content["capacity"] == {"kind": "count", "value": 100, "per": 1000}
    assert content["guarantee"] == "expected"
    assert content["schema"]["target"] == "fraud"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format_version": 99}, "has format 99.*Fit the model again"),
        ({"format_version": 1}, "has format 1, written by shortlist.*Fit the model again"),
        ({"capacity": {"kind": "count"}}, "manifest cannot be read: .*value"),
        ({"scikit_learn_version": "0.24.2"}, r"fitted with scikit-learn 0\.24\.2"),
        ({"format": "something else"}, "not a model of shortlist"),
        ({"schema": {}}, "manifest cannot be read: .*features"),
        ({"reference": {}}, "manifest cannot be read: 'amount'"),
    ],
)
def test_other_versions_and_damage_are_named(model_file, tmp_path, change, complaint):
    """Before the model itself is looked at."""
    path = rewrite(model_file, tmp_path / "m", manifest=lambda content: content | change)
    with pytest.raises(ModelFileError, match=complaint):
        load_model(path)


def test_a_manifest_with_something_missing(model_file, tmp_path):
    """It is damaged, and says what it lacks."""
    without = {k: v for k, v in describe_model(model_file).items() if k != "capacity"}
    path = rewrite(model_file, tmp_path / "m", manifest=lambda _: without)
    with pytest.raises(ModelFileError, match="lacks capacity"):
        load_model(path)


class Malicious:
    """What an attacker would put into a pickle."""

    def __reduce__(self):
        """Ask for a command to be run."""
        return os.system, ("touch executed",)


def test_nothing_in_a_file_is_executed(model_file, tmp_path, monkeypatch):
    """Neither a pickle nor a function that skops would have to look up."""
    monkeypatch.chdir(tmp_path)
    hidden = make_pipeline(FunctionTransformer(os.system))
    for payload in (pickle.dumps(Malicious()), skops.io.dumps(hidden)):
        path = rewrite(model_file, tmp_path / "m", payload=lambda _, p=payload: p)
        with pytest.raises(ModelFileError, match=r"was not loaded|damaged"):
            load_model(path)
    assert not (tmp_path / "executed").exists()


def test_what_is_not_a_model_is_refused(tmp_path, model_file):
    """A text, another archive, a cut-off file, a folder, nothing at all; or another estimator."""
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("a", "b")
    (tmp_path / "cut").write_bytes(model_file.read_bytes()[:-500])
    (tmp_path / "folder").mkdir()
    for name in ("text", "archive", "cut", "folder", "missing"):
        with pytest.raises(ModelFileError, match=r"not a model|is a folder|no model file"):
            load_model(tmp_path / name)
    other = io.BytesIO(skops.io.dumps({"a": 1})).getvalue()
    path = rewrite(model_file, tmp_path / "m", payload=lambda _: other)
    with pytest.raises(ModelFileError, match="does not hold a fitted"):
        load_model(path)


def test_only_models_of_tables_are_saved(tmp_path):
    """Another classifier is refused in words, and no file is left."""
    with pytest.raises(ModelFileError, match=r"got LogisticRegression\. Save other classifiers"):
        save_model(LogisticRegression(), tmp_path / "model")
    assert not list(tmp_path.iterdir())
