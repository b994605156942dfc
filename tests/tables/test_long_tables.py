"""Tables that pass in chunks, and folders of them, give the answers of one table in memory."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shortlist import Capacity
from shortlist._core import ids
from shortlist.distributed import evaluate
from shortlist.exceptions import TableError
from shortlist.tables import (
    _places,
    _text_files,
    cases,
    evaluate_table,
    read,
    recalibrate_table,
    select_rows,
)
from shortlist.thresholds import samples

#: The rows below repeat ids, which is noted.
pytestmark = pytest.mark.filterwarnings("ignore:150 rows repeat an id:UserWarning")


@pytest.fixture(scope="module")
def rows(new_cases):
    """Return rows with repeated ids and coarse amounts, so that scores are tied."""
    frame = pd.read_csv(new_cases)
    frame["team"] = np.where(frame.index % 3 == 0, "north", "south")
    again = frame.sample(150, random_state=0)
    return pd.concat([frame, again], ignore_index=True)


@pytest.fixture(params=["parquet", "csv", "folder of parquet", "folder of csv"])
def path(request, rows, tmp_path):
    """Write the rows in each form, and return the path."""
    kind = request.param.split()[-1]
    folder = tmp_path / "rows"
    folder.mkdir()
    starts = range(0, len(rows), 100) if "folder" in request.param else [0]
    for number, start in enumerate(starts):
        part = rows[start : start + 100] if "folder" in request.param else rows
        name = folder / f"part-{number:02}.{kind}"
        part.to_csv(name, index=False) if kind == "csv" else part.to_parquet(name, index=False)
    (folder / "_SUCCESS").write_text("")
    return folder if "folder" in request.param else folder / f"part-00.{kind}"


@pytest.fixture
def whole(rows, tmp_path):
    """Return the path of the same rows in one file, which is read at once."""
    rows.to_csv(tmp_path / "whole.csv", index=False)
    return tmp_path / "whole.csv"


@pytest.fixture
def in_pieces(monkeypatch):
    """Let chunks be short, and no more rows be kept than needed."""

    def switch():
        monkeypatch.setattr(read, "_CHUNK_ROWS", 37)
        monkeypatch.setattr(_text_files, "_BLOCK_BYTES", 4_000)
        monkeypatch.setattr(_text_files, "_BLOCKS_AT_ONCE", 1)
        monkeypatch.setattr(_places, "_SPARE", 0)
        monkeypatch.setattr(cases, "_BLOCK_ROWS", 101)

    return switch


def listed(selection):
    """Return what a list says; scores by a model can differ in the last digits between chunks."""
    rows = [{**row, "score": round(row["score"], 9), "reasons": None} for row in selection.rows]
    return rows, selection.n_items


@pytest.mark.parametrize(
    "options",
    [
        {"count": 40},
        {"count": 1},
        {"count": 0},
        {"count": 5_000},
        {"count": {"north": 7, "south": 20}, "segment": "team"},
        {"count": 30, "probe": 0.2},
    ],
    ids=str,
)
def test_lists(table_fit, path, whole, in_pieces, options):
    """The same rows in the same order, with repeated ids, whatever the form and the chunks."""
    want = select_rows(table_fit.model, whole, **options, keep=["team"])
    in_pieces()
    got = select_rows(table_fit.model, path, **options, keep=["team"])
    assert listed(got) == listed(want)
    assert [note.replace(str(path), str(whole)) for note in got.notes] == want.notes


def test_lists_without_ids_and_with_exclusions(table_fit, path, whole, in_pieces, tmp_path):
    """Cases to leave out take no places."""
    exclude = tmp_path / "seen.csv"
    top = [row["case"] for row in select_rows(table_fit.model, whole, count=10).rows]
    pd.DataFrame({"case": top[::2]}).to_csv(exclude, index=False)
    want = select_rows(table_fit.model, whole, count=20, exclude=exclude)
    in_pieces()
    got = select_rows(table_fit.model, path, count=20, exclude=exclude)
    assert listed(got) == listed(want)
    assert not {row["case"] for row in got.rows} & set(top[::2])


def test_a_pool_holds_few_rows(table_fit, path, in_pieces, monkeypatch):
    """No more rows than twice the list and a chunk are ever held."""
    sizes, add = [], _places.Ranking.add

    def counted(pool, cases):
        add(pool, cases)
        sizes.append(pool._n_held)

    monkeypatch.setattr(_places.Ranking, "add", counted)
    in_pieces()
    select_rows(table_fit.model, path, count=20)
    assert max(sizes) <= 40 + 100


def test_evaluations(table_fit, path, whole, in_pieces):
    """Evaluations are those of all rows at once, and progress is reported."""
    want, n_read = evaluate_table(table_fit.model, whole), []
    in_pieces()
    got = evaluate_table(table_fit.model, path, on_progress=n_read.append)
    assert got == want
    if path.suffix != ".csv" and not any(path.glob("*.csv")):  # these only the commands read
        large = vars(evaluate(table_fit.model, path, id="case"))
        assert {name: large[name] for name in vars(want)} == vars(want)
    assert n_read[-1] == 950
    assert len(n_read) > 5


@pytest.mark.parametrize("target", [None, "fraud"])
def test_recalibrations(table_fit, path, whole, in_pieces, target):
    """Threshold, key, counts and model card are those of all rows at once."""
    options = {"capacity": Capacity.fraction(0.05), "target": target}
    want = recalibrate_table(table_fit.model, whole, **options)
    in_pieces()
    got = recalibrate_table(table_fit.model, path, **options)
    assert got.model.classifier.calibrations_ == want.model.classifier.calibrations_
    counts = ("n_rows", "n_left_out", "flagged_before", "flagged_now")
    assert [getattr(got, name) for name in counts] == [getattr(want, name) for name in counts]
    stamp = {"recalibrated_at": None}
    assert replace(got.model.card, **stamp) == replace(want.model.card, **stamp)
    np.testing.assert_array_equal(got.model.fingerprints.hashes, want.model.fingerprints.hashes)
    assert got.model.fingerprints.n_repeated == want.model.fingerprints.n_repeated


@pytest.mark.parametrize("guarantee", ["expected", "confident"])
@pytest.mark.parametrize("target", [None, "fraud"])
def test_what_is_drawn_of_many_scores(table_fit, whole, in_pieces, guarantee, target, monkeypatch):
    """The same rows are drawn, in chunks and at once; the flags of all rows are counted."""
    for module in (ids, samples):
        monkeypatch.setattr(module, "MOST_ITEMS", 300)
    options = {"capacity": Capacity.multiple(2), "guarantee": guarantee, "target": target}
    want = recalibrate_table(table_fit.model, whole, **options)
    in_pieces()
    got = recalibrate_table(table_fit.model, whole, **options)
    assert (got.n_rows, got.flagged_now) == (want.n_rows, want.flagged_now)
    got, want = got.model.classifier, want.model.classifier
    assert got.calibrations_ == want.calibrations_
    for name in ("scores", "tie_keys", "keyed_by_ids"):
        kept, expected = (getattr(each.rule_.samples[0], name) for each in (got, want))
        np.testing.assert_array_equal(kept, expected)
    assert 100 < got.rule_.samples[0].scores.size <= 300


def test_the_new_threshold_is_that_of_the_classifier(table_fit, whole):
    """From scores gathered in chunks, the rule is the one of `recalibrate` on all rows."""
    import copy

    model = table_fit.model
    with model.schema.open(whole) as source:
        read = model.schema.read(source)
    classifier = copy.copy(model.classifier).recalibrate(read.X, ids=read.ids)
    got = recalibrate_table(model, whole).model.classifier
    assert got.calibrations_ == classifier.calibrations_
    assert got.flag(read.X, ids=read.ids).sum() == recalibrate_table(model, whole).flagged_now


def test_folders_of_one_kind_only(table_fit, rows, tmp_path):
    """Two formats, no files at all, or a part without a column are errors that name the folder."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    with pytest.raises(TableError, match=r"is empty\. Name a file"):
        select_rows(table_fit.model, folder, count=1)
    rows.to_csv(folder / "a.csv", index=False)
    rows.drop(columns="amount").to_csv(folder / "b.csv", index=False)
    with pytest.raises(TableError, match=r"b\.csv has no column 'amount', which .*a\.csv has"):
        select_rows(table_fit.model, folder, count=1)
    rows.to_parquet(folder / "c.parquet")
    with pytest.raises(TableError, match=r"one extension.*\.csv, \.parquet"):
        select_rows(table_fit.model, folder, count=1)
