"""The scores of lines: compiled or by the model, and never both in one stream."""

import json
import os

import numpy as np
import pytest

from shortlist import Capacity
from shortlist._core.ranking import lift
from shortlist.exceptions import StateFileError
from shortlist.service._models import LoadedModel
from shortlist.service.stream import LineReader, StreamSettings, run_stream
from shortlist.service.stream_file import open_stream
from shortlist.tables import fit_table


@pytest.fixture(scope="module")
def forest(cases):
    """Return a forest fitted to the table."""
    capacity = Capacity.count(100, per=1_000)
    options = {"target": "fraud", "id": "case", "learner": "forest"}
    return fit_table(cases, capacity=capacity, folds=1, **options).model


@pytest.fixture(scope="module")
def lines(new_cases):
    """Return lines of JSON with gaps, an unknown category and a time of day."""
    import pandas as pd

    frame = pd.read_csv(new_cases, dtype={"vip": str}).drop(columns="fraud").head(120)
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    records[3]["country"], records[4]["opened"] = " xx ", "2024-05-31T10:20:30+02:00"
    records[5]["opened"], records[6]["vip"] = "31.05.2024", None
    return [json.dumps(record).encode() for record in records]


def read(model, lines):
    """Parse lines."""
    loaded = LoadedModel(0, model)
    reader = LineReader(loaded, id_field=None, time_field="at", entity=None)
    return loaded, [reader.read(number, line) for number, line in enumerate(lines)]


def test_lines_are_scored_as_by_the_model(forest, table_fit, lines):
    """Trees give the same bits, alone and together; a linear model is never above."""
    for model, kind in ((forest, "exact"), (table_fit.model, "bounded")):
        loaded, items = read(model, lines)
        ours = loaded.score(items)
        frame = loaded.frame(items)
        theirs = lift(model.classifier.score_samples(frame))
        assert model.row_scorer.kind == kind, model.row_scorer.note
        assert (ours <= theirs).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        if kind == "exact":
            np.testing.assert_array_equal(ours, theirs)
            alone = np.concatenate([loaded.score([item]) for item in items])
            np.testing.assert_array_equal(alone, ours)
        said = StreamSettings(Capacity.fraction(0.1)).to_json(model).get("scorer")
        assert said == (None if kind == "exact" else "bounded")


def stream(model, lines, state, *, batch, **identity):
    """Run lines through a stream, and return its answers."""
    settings = StreamSettings(capacity=Capacity.count(5, per=100))
    source, out = state.with_suffix(".in"), state.with_suffix(".out")
    source.write_bytes(b"\n".join(lines) + b"\n")
    descriptor = os.open(source, os.O_RDONLY)
    opened = open_stream(
        state,
        settings.controller(model),
        identity={**settings.to_json(model), **identity},
    )
    with opened as durable, out.open("wb") as file:
        run_stream(model, durable, descriptor, file, batch=batch)
    os.close(descriptor)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.TableNote")
def test_batches_decide_alike(forest, lines, tmp_path):
    """Lines that wait are decided as lines that come one by one."""
    whole = stream(forest, lines, tmp_path / "a", batch=1_024)
    first = stream(forest, lines[:50], tmp_path / "b", batch=1)
    rest = stream(forest, lines[50:], tmp_path / "b", batch=7)
    assert [a["flag"] for a in whole] == [a["flag"] for a in first + rest]


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.TableNote")
def test_a_stream_keeps_its_scorer(table_fit, lines, tmp_path):
    """Scores that may differ in the last digit are not mixed."""
    stream(table_fit.model, lines[:10], tmp_path / "a", batch=1)
    with pytest.raises(StateFileError, match="scorer was bounded"):
        stream(table_fit.model, lines[10:20], tmp_path / "a", batch=1, scorer="exact")
