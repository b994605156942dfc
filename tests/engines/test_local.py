"""Lists from files and folders are those of one array in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

from shortlist import Capacity, calibrate_threshold
from shortlist import select as select_array
from shortlist.distributed import calibrate, select
from shortlist.distributed.engine import LocalEngine
from shortlist.exceptions import CapacityError, TableError

RNG = np.random.default_rng(0)
N = 5_000
TABLE = pa.table(
    {
        "case": [f"c{i}" for i in range(N)],
        "risk": np.round(RNG.normal(size=N), 1),
        "team": np.array(["north", "south", "west"])[RNG.integers(0, 3, N)],
        "amount": RNG.integers(0, 100, N),
    }
)


def write(folder, kind):
    """Write the table as one file or as a folder of several, and return its path."""
    if kind == "parquet":
        pa.parquet.write_table(TABLE, folder / "t.parquet", row_group_size=700)
        return folder / "t.parquet"
    if kind == "feather":
        pa.feather.write_feather(TABLE, folder / "t.feather", chunksize=999)
        return folder / "t.feather"
    for number, start in enumerate(range(0, N, 1_200)):
        pa.parquet.write_table(TABLE.slice(start, 1_200), folder / f"part-{number}.parquet")
    return folder


@pytest.mark.parametrize("kind", ["parquet", "feather", "folder"])
def test_every_format_gives_the_same_list(tmp_path, kind):
    """A file or folder of any format gives the list of `select`, in order."""
    listed = select(write(tmp_path, kind), Capacity.count(300), score="risk", id="case")
    ids, scores = np.array(TABLE["case"].to_pylist()), TABLE["risk"].to_numpy()
    want = select_array(scores, Capacity.count(300), ids=ids)
    assert set(listed["case"].to_pylist()) == set(ids[want])
    assert listed["rank"].to_pylist() == list(range(1, 301))
    assert (np.diff(listed["risk"].to_numpy()) <= 0).all()
    assert set(listed.column_names) == {*TABLE.column_names, "rank"}


def test_segments_and_a_total(tmp_path):
    """The list of the lists of all segments is the best one within all limits."""
    limits = {"north": Capacity.count(50), "south": Capacity.fraction(0.1)}
    of_teams = select(TABLE, limits, score="risk", id="case", segment="team")
    listed = select(of_teams.drop_columns(["rank"]), Capacity.count(120), score="risk", id="case")
    ids, scores = np.array(TABLE["case"].to_pylist()), TABLE["risk"].to_numpy()
    teams = np.array(TABLE["team"].to_pylist())
    allowed = np.zeros(N, dtype=bool)
    for team, limit in limits.items():
        own = np.flatnonzero(teams == team)
        allowed[own[select_array(scores[own], limit, ids=ids[own])]] = True
    rows = np.flatnonzero(allowed)
    want = rows[select_array(scores[rows], Capacity.count(120), ids=ids[rows])]
    assert set(listed["case"].to_pylist()) == set(ids[want])


@pytest.fixture
def passes(monkeypatch):
    """Return a list with the number of rows that each pass has read."""
    read, batches = [], LocalEngine.batches

    def counted(engine, *given):
        read.append(0)
        for batch in batches(engine, *given):
            read[-1] += batch.num_rows
            yield batch

    monkeypatch.setattr(LocalEngine, "batches", counted)
    return read


def test_few_passes_are_made(tmp_path, passes):
    """One finds the score, one the key that divides tied rows, one the list of higher rows."""
    select(write(tmp_path, "folder"), Capacity.count(10), score="risk", id="case")
    assert len(passes) == 3
    assert passes[0] == N
    assert max(passes[1:]) < 100


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"score": "rsk"}, "no column 'rsk'"),
        ({}, {"score": "team"}, "scores must be numbers"),
        ({"case": pa.array([None] * N, pa.decimal128(5, 2))}, {}, "must be whole numbers or text"),
        ({"risk": pa.array([None] + [1.0] * (N - 1))}, {}, "1 of 5,000 are NaN or empty"),
        ({"case": ["same"] * N}, {}, "same id"),
        ({}, {"segment": "risk"}, "segments must be whole numbers or text"),
        ({}, {"segment": "town"}, "no column 'town'"),
        ({"rank": [1] * N}, {}, "has a column 'rank' already"),
    ],
)
def test_bad_tables_are_refused(change, options, words):
    """Missing columns, texts as scores, decimals as ids, gaps and repeated ids."""
    table = TABLE
    for name, values in change.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, [values])
    given = {"score": "risk", "id": "case", **options}
    with pytest.raises(TableError, match=words):
        select(table, Capacity.count(10), **given)


def test_limits_of_unknown_segments_are_refused():
    """A dict needs the column of its segments, and names that occur in it."""
    with pytest.raises(CapacityError, match="needs segment"):
        select(TABLE, {"north": Capacity.count(1)}, score="risk", id="case")
    with pytest.raises(TableError, match="no rows with 'east'"):
        select(TABLE, {"east": Capacity.count(1)}, score="risk", id="case", segment="team")


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize(
    "guarantee", ["plug-in", "expected", "confident", "next-batch", "simultaneous"]
)
@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("k", [0, 1, 5, 300, 2_500])
def test_thresholds_are_those_of_one_machine(guarantee, hashed, k):
    """Every guarantee gives the threshold of the whole column: value, key, k and interval."""
    capacity = Capacity.count(k, per=N)
    options = {"guarantee": guarantee, "random_state": 3}
    got = calibrate(TABLE, capacity, score="risk", id="case" if hashed else None, **options)
    ids = np.array(TABLE["case"].to_pylist()) if hashed else None
    assert got == calibrate_threshold(TABLE["risk"].to_numpy(), capacity, ids=ids, **options)


def listed_by_position(table):
    """Return the positions of the rows that `select` on arrays lists."""
    ids, scores = table["case"].to_numpy(), table["risk"].to_numpy()
    return set(np.flatnonzero(select_array(scores, Capacity.count(40), ids=ids)).tolist())


NUMBERS = {
    "halves": (RNG.integers(-4, 4, N) / 8).astype(np.float16),
    "singles": (RNG.integers(-4, 4, N) / 10).astype(np.float32),
    "small": RNG.integers(-3, 4, N).astype(np.int8),
    "whole": RNG.integers(2**24 - 3, 2**24 + 4, N),
    "rounded": RNG.integers(2**53 - 3, 2**53 + 9, N),
    "unsigned": RNG.integers(2**64 - 5_000, 2**64 - 1, N, dtype=np.uint64),
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("in_file", [True, False])
def test_scores_of_every_type(tmp_path, kind, in_file):
    """Scores are compared as 64-bit floats, also where these round whole numbers."""
    table = pa.table({"case": np.arange(N), "risk": NUMBERS[kind], "at": np.arange(N)})
    if in_file:
        pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=900)
    source = tmp_path / "t.parquet" if in_file else table
    listed = select(source, Capacity.count(40), score="risk", id="case")
    assert set(listed["at"].to_pylist()) == listed_by_position(table)


def test_datasets_with_filters(tmp_path):
    """A dataset of Arrow is read with its own filter."""
    at = np.arange(N)
    table = pa.table({"case": at, "risk": np.round(RNG.random(N), 2), "at": at, "rest": at % 7})
    for part in range(3):
        pa.parquet.write_table(table.slice(part * 1_700, 1_700), tmp_path / f"{part}.parquet")
    dataset = pa.dataset.dataset(tmp_path).filter(pa.dataset.field("rest") != 3)
    table = table.filter(pa.compute.field("rest") != 3)
    listed = select(dataset, Capacity.count(40), score="risk", id="case")
    places = table["at"].to_numpy()
    want = {int(places[at]) for at in listed_by_position(table)}
    assert set(listed["at"].to_pylist()) == want


def test_two_columns_of_one_name_are_refused():
    """Which one is meant cannot be known."""
    table = pa.table([np.arange(3), np.arange(3), np.ones(3)], names=["case", "case", "risk"])
    with pytest.raises(TableError, match="Two columns are called 'case'"):
        select(table, Capacity.count(1), score="risk", id="case")


def test_a_table_without_rows_has_an_empty_list():
    """Of all rows, and in each segment."""
    table = TABLE.slice(0, 0)
    for options in ({}, {"segment": "team"}):
        listed = select(table, Capacity.count(5), score="risk", id="case", **options)
        assert (listed.num_rows, "rank" in listed.column_names) == (0, True)
