"""Every engine gives the answers of one machine, item for item."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import (
    Capacity,
    CapacityClassifier,
    calibrate_threshold,
    capacity_curve,
    select,
)
from shortlist._core.ids import hash_ids
from shortlist.distributed import _ranks
from shortlist.exceptions import TableError

# pyspark and Dask warn about newer versions of pandas, and leave sockets to the collector.
pytestmark = pytest.mark.filterwarnings("ignore")

N = 3_000
ODD = np.array([np.inf, -np.inf, 0.0, -0.0])
KINDS = {
    "tied": lambda rng: np.where(
        rng.random(N) < 0.1, rng.choice(ODD, N), np.round(rng.normal(size=N), 1)
    ),
    "equal": lambda rng: np.ones(N),
}


def make_frame(kind, *, texts=False, seed=0):
    """Make a frame of scores with ids, teams and something else."""
    rng = np.random.default_rng(seed)
    cases = np.arange(N) * 7 + 2**60
    return pd.DataFrame(
        {
            "case": [f"c{i}" for i in cases] if texts else cases,
            "risk": KINDS[kind](rng),
            "team": rng.choice(["north", "south"], N, p=[0.999, 0.001]),
            "note": rng.choice(["a", "b"], N),
        }
    )


def listed(engine, table, capacity, **options):
    """Return the ids of a list in the order of their ranks."""
    answer = engine.functions.select(table, capacity, score="risk", id="case", **options)
    rows = engine.rows(answer).sort_values("rank")
    assert rows["rank"].tolist() == list(range(1, len(rows) + 1))
    assert list(rows.columns) == ["case", "risk", "team", "note", "rank"]
    return rows["case"].tolist()


@pytest.mark.parametrize(("kind", "texts", "n_parts"), [("tied", True, 5), ("equal", False, 9)])
def test_lists(engine, kind, texts, n_parts):
    """Ties, infinities, both zeros, texts and large numbers as ids, in any number of parts."""
    frame = make_frame(kind, texts=texts)
    ids = frame["case"].to_numpy()
    chosen = select(frame["risk"].to_numpy(), Capacity.count(321), ids=ids)
    got = listed(engine, engine.table(frame, n_parts), Capacity.count(321))
    assert len(got) == 321
    assert set(got) == set(ids[chosen])


def test_lists_of_segments(engine):
    """Segments have lists of their own; a segment may have hardly any rows."""
    frame = make_frame("tied")
    got = listed(engine, engine.table(frame, 4), Capacity.fraction(0.1), segment="team")
    want = []
    for _, own in frame.groupby("team"):
        ids = own["case"].to_numpy()
        want += ids[select(own["risk"].to_numpy(), Capacity.fraction(0.1), ids=ids)].tolist()
    assert set(got) == set(want)


def test_thresholds(engine):
    """The threshold is that of the whole column: value, key, k and interval."""
    frame, capacity = make_frame("tied"), Capacity.fraction(0.03)
    options = {"guarantee": "confident", "random_state": 1}
    got = engine.functions.calibrate(
        engine.table(frame, 3), capacity, score="risk", id="case", **options
    )
    ids, scores = frame["case"].to_numpy(), frame["risk"].to_numpy()
    assert got == calibrate_threshold(scores, capacity, ids=ids, **options)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"risk": [np.nan] + [1.0] * (N - 1)}, "1 of 3,000 are NaN"),
        ({"case": 0.5}, "must be whole numbers or text"),
        ({"case": 0}, "same id"),
        ({"case": [None] + ["x"] * (N - 1)}, "'case' is empty in 1 of"),
    ],
)
def test_bad_tables_are_refused(engine, change, words):
    """A score that is not a number, ids that are not whole or missing, and one id for all."""
    frame = make_frame("equal").assign(**change)
    with pytest.raises(TableError, match=words):
        listed(engine, engine.table(frame, 3), Capacity.count(5))


def test_names_with_dots_and_whole_scores(engine):
    """Any column name, and ranks by scores that are rounded to 64-bit floats."""
    rng, n = np.random.default_rng(2), 300
    scores = rng.integers(2**53 - 2, 2**53 + 9, n)
    frame = pd.DataFrame({"case.id": np.arange(n), "a.risk": scores, "x y": "note", "case": "c"})
    answer = engine.functions.select(
        engine.table(frame, 3), Capacity.count(50), score="a.risk", id="case.id"
    )
    rows = engine.rows(answer).sort_values("rank")
    chosen = np.flatnonzero(select(scores, Capacity.count(50), ids=frame["case.id"].to_numpy()))
    keys = hash_ids(chosen)
    order = np.lexsort((keys, -scores[chosen].astype(float)))
    assert rows["case.id"].tolist() == chosen[order].tolist()


# --- models ---


@pytest.fixture(scope="module")
def cases():
    """Return labelled rows with coarse features, so that scores are tied."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.integers(0, 3, size=(4_000, 3)).astype(float), columns=["a", "b", "c"])
    y = rng.random(4_000) < 0.02 * (1 + X["a"] * X["b"])
    return X.assign(case=np.arange(4_000) + 2**60, rare=np.where(y, "yes", "no"))


@pytest.fixture(scope="module")
def model(cases):
    """Return a classifier that knows its columns."""
    fit = cases[:2_000]
    classifier = CapacityClassifier(
        LogisticRegression(), capacity=Capacity.fraction(0.05), rare_label="yes"
    )
    return classifier.fit(fit[["a", "b", "c"]], fit["rare"], ids=fit["case"].to_numpy())


def test_scores_and_flags(engine, cases, model):
    """Every row gets the score and the flag that it gets on one machine."""
    new = cases[2_000:]
    table = engine.table(new, 3)
    decided = model.decide(new[["a", "b", "c"]], ids=new["case"].to_numpy())
    got = engine.rows(engine.functions.flag(model, table, id="case", keep=["rare"]))
    assert list(got.columns) == ["case", "rare", "score", "flagged"]
    got = got.set_index("case").loc[new["case"]]
    np.testing.assert_array_equal(got["flagged"], decided.flagged)
    np.testing.assert_array_equal(got["score"], decided.scores)
    scored = engine.rows(engine.functions.score(model, table, id="case"))
    want = model.score_samples(new[["a", "b", "c"]])
    np.testing.assert_array_equal(scored.set_index("case").loc[new["case"], "score"], want)


def test_evaluations(engine, cases, model):
    """M, its interval, flag rate and curve are those of all rows at once, to the last digit."""
    from shortlist._core.ranking import lift, rank
    from shortlist.tables.measure import rows_at, spread_capacities
    from shortlist.tables.rules import measure_rule

    new, capacity = cases[2_000:], Capacity.fraction(0.05)
    options = {"id": "case", "target": "rare"}
    got = engine.functions.evaluate(model, engine.table(new, 3), find=0.6, **options)
    X, ids = new[["a", "b", "c"]], new["case"].to_numpy()
    flagged, scores = model.flag(X, ids=ids), model.score_samples(X)
    is_rare = (new["rare"] == "yes").to_numpy()
    order = rank(lift(scores), hash_ids(ids, seed=model.rule_.terms.seed).__getitem__)[0]
    assert got.n_rare == is_rare.sum()
    own = measure_rule("this model", is_rare, flagged, capacity)
    flagged_first = order[np.argsort(~flagged[order], kind="stable")]
    of_rule = curve_of(is_rare, flagged_first).interval_at(Capacity.count(int(flagged.sum())))
    scale = own.detection * is_rare.sum() / own.found  # what can be followed up
    low, high = scale * of_rule.low, scale * of_rule.high
    assert got.model == replace(own, detection_interval=(low, high))
    curve = curve_of(is_rare, order)
    want = rows_at(curve, spread_capacities(len(new)))
    pd.testing.assert_frame_equal(*(pd.DataFrame(each) for each in (got.curve, want)))
    assert replace(got.needed, threshold=0) == replace(curve.needed_for(0.6), threshold=0)
    with pytest.raises(TableError, match=r"find=\.\.\. is a share of the rare cases"):
        engine.functions.evaluate(model, new, find=60, **options)


def curve_of(is_rare, order):
    """Return the capacity curve of a ranking."""
    return capacity_curve(is_rare[order], -np.arange(order.size), rare_label=True)


def test_missing_columns_are_named(engine, cases, model):
    """Before anything is computed."""
    with pytest.raises(TableError, match="no column 'b'"):
        engine.functions.score(model, engine.table(cases.drop(columns="b"), 2), id="case")


def test_text_files_are_left_to_tables(tmp_path, cases, model):
    """How a model reads values is known there, for files of any size."""
    from shortlist.distributed import score

    cases.to_csv(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"t\.csv is not a \.parquet.* shortlist\.tables"):
        score(model, tmp_path / "t.csv", id="case")


# --- plans and workers ---


def test_columns_of_dask_that_may_hold_anything_are_refused():
    """The type object says neither whether ids are numbers nor whether they are texts."""
    dask = pytest.importorskip("dask", reason="pip install 'shortlist[dask]'")
    import dask.dataframe as dd

    import shortlist.dask as functions

    frame = make_frame("tied")[:50].astype({"case": object})
    with dask.config.set({"dataframe.convert-string": False}):
        df = dd.from_pandas(frame, npartitions=2)
        with pytest.raises(TableError, match="'case' has the type object"):
            functions.select(df, Capacity.count(5), score="risk", id="case")


def test_a_plan_of_spark_is_computed_once_or_refused(spark):
    """Random numbers are refused, files are read again, and anything else is cached."""
    import shortlist.spark as functions

    df = spark.createDataFrame(make_frame("tied"))
    options = {"score": "risk", "id": "case"}
    with pytest.raises(TableError, match="draws random numbers"):
        functions.select(df.selectExpr("case", "rand() as risk"), Capacity.count(5), **options)
    grouped = df.groupBy("case").agg({"risk": "max"}).withColumnRenamed("max(risk)", "risk")
    functions.select(grouped, Capacity.count(5), **options)
    assert (grouped.is_cached, df.is_cached) == (True, False)


def test_executors_may_send_few_scores(spark, monkeypatch):
    """The list is the same when a second pass is needed."""
    import shortlist.spark as functions

    df = spark.createDataFrame(make_frame("tied"))

    def listed():
        found = functions.select(df, Capacity.count(401), score="risk", id="case")
        return found.toPandas()["case"].tolist()

    here = listed()
    monkeypatch.setattr(_ranks, "_FEW", 20)
    assert listed() == here


def test_other_versions_on_a_worker_are_refused(monkeypatch, model):
    """A model that travels is not loaded there; the error names the package and both versions."""
    from shortlist.distributed._models import ModelRows

    rows = ModelRows(model, "case")
    assert pickle.loads(pickle.dumps(rows)).features == rows.features
    monkeypatch.setattr("sklearn.__version__", "0.1")
    travelling = pickle.dumps(rows)
    monkeypatch.undo()
    with pytest.raises(TableError, match=r"sklearn .* instead of 0\.1"):
        pickle.loads(travelling)


def test_other_frames_are_refused(engine):
    """A data frame of another kind is named in the error."""
    with pytest.raises(TableError, match="got DataFrame"):
        listed(engine, make_frame("tied"), Capacity.count(5))
