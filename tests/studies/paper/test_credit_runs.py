"""Finished runs are kept in the repository, continued, and never mixed with others."""

import json
import os
from pathlib import Path

import pytest

from studies.paper import credit_runs, renew
from studies.paper.aware_statements import ABOVE_RECOMMENDED
from studies.paper.credit_figures import credit
from studies.paper.credit_protocol import CreditConfig, cells_of
from studies.paper.credit_runs import ALL, check_again, counts, read_runs, whole, write_runs
from studies.paper.statements import ordering
from studies.tables import read_table, write_table

pytest.importorskip("imblearn")
FOLDER = Path(__file__).parents[3] / "studies" / "paper"
NEEDS_DATA = pytest.mark.skipif(
    "SHORTLIST_DATA" not in os.environ, reason="the credit data are missing; set SHORTLIST_DATA"
)


def made(runs):
    """Return rows that no model made."""
    return {
        run: [
            {
                "learner": run.learner,
                "method": run.method,
                "prevalence": run.prevalence,
                "repetition": run.repetition,
                "multiple": b,
                "adjusted_detection": run.repetition / 7,
                "flagged": 3 + b,
                "found": b,
            }
            for b in run.multiples
        ]
        for run in runs
    }


def test_what_is_written_is_read_again(tmp_path):
    """In the same order and with every digit; the same runs have the same bytes."""
    runs = made(ALL[:200])
    write_runs(runs, tmp_path)
    first = (tmp_path / "credit-runs.csv.gz").read_bytes()
    assert read_runs(tmp_path) == runs
    write_runs(dict(reversed(runs.items())), tmp_path)
    assert (tmp_path / "credit-runs.csv.gz").read_bytes() == first
    assert read_runs(tmp_path / "elsewhere") == {}


def test_runs_of_other_versions_are_refused(tmp_path):
    """The error says what they were made with and what is here."""
    write_runs(made(ALL[:9]), tmp_path)
    mark = tmp_path / "credit-runs.json"
    mark.write_text(
        json.dumps({**json.loads(mark.read_text()), "numpy": "1.0", "forest, paper": "?"})
    )
    with pytest.raises(ValueError, match=r"numpy is .*, was 1\.0; forest, paper is .*--afresh"):
        read_runs(tmp_path)


def test_only_whole_repetitions_count():
    """A learner with all its methods and shares; recommended forest and g_b* by themselves."""
    part = [run for run in ALL if run.repetition == 0]
    lacking = [r for r in part if (r.learner, r.method, r.prevalence) != ("svm", "smote", 0.05)]
    lacking = [r for r in lacking if (r.method, r.prevalence) != ("aware", 0.01)]
    found = counts(whole(made(lacking)))
    assert {pair: count for pair, count in found.items() if count == 0} == {
        **{("svm", method): 0 for method in credit.methods},
        ("svm", "aware"): 0,
    }
    assert set(found.values()) == {0, 1}


def test_only_what_is_missing_is_run(tmp_path, monkeypatch):
    """Neither what is kept nor what is stored, up to the number of repetitions."""
    kept = made(run for run in ALL if run.repetition < 2)
    asked = []
    monkeypatch.setattr(renew, "check_again", lambda runs: None)
    monkeypatch.setattr(renew, "run_all", lambda work, runs, **how: asked.extend(runs))
    assert renew.add_runs(3, tmp_path, kept, 1) == kept
    assert asked == [run for run in ALL if run.repetition == 2]
    asked.clear()
    renew.add_runs(0, tmp_path, kept, 1)
    assert asked == []


@pytest.fixture
def tables(tmp_path):
    """Return a folder with the tables of two repetitions."""
    first = made(run for run in ALL if run.repetition < 2)
    rows = [row for run in first for row in first[run]]
    for name, figure in renew.FIGURES.items():
        write_table(cells_of(renew.rows_of(figure, rows)), tmp_path / f"{name}.csv")
    said = [each.row() for each in renew.statements_of(rows, set(counts(first)))]
    write_table(said, tmp_path / "summary.csv")
    above = [{"statement": ABOVE_RECOMMENDED, "setting": "", "mean": 0, "error": 0, "count": 2}]
    write_table(above, tmp_path / "comparisons.csv")
    page = "\n".join(f"## {name}\n\n| a |\n\n" for name in ("credit", "credit-smote20", "summary"))
    (tmp_path / "index.md").write_text(f"# Page\n\nMade today.\n\n{page}")
    return tmp_path


def test_a_figure_that_shares_methods_changes_as_a_whole(tables, monkeypatch):
    """Its own SMOTE has to be there as often as in its table: then all of it is renewed."""
    more = made(run for run in ALL if run.repetition < 3)
    without = {run: rows for run, rows in more.items() if run.method != "smote20"}
    monkeypatch.setattr(renew, "check_again", lambda runs: None)
    before = (tables / "credit-smote20.csv").read_bytes()
    write_runs(without, tables)
    renew.main(0, tables / "store", tables, 1)
    assert {row["count"] for row in read_table(tables / "credit.csv")} == {3}
    assert (tables / "credit-smote20.csv").read_bytes() == before
    write_runs(more, tables)
    renew.main(0, tables / "store", tables, 1)
    assert {row["count"] for row in read_table(tables / "credit-smote20.csv")} == {3}
    about = [
        r for r in read_table(tables / "comparisons.csv") if "twenty for one" in r["statement"]
    ]
    assert {row["count"] for row in about} == {3}


def test_tables_grow_by_what_has_as_many_repetitions(tables, monkeypatch, capsys):
    """Others stay, and so does every statement about them."""
    part = made(run for run in ALL if run.repetition < 3 and run.method in ("recommended", "aware"))
    few = made(run for run in ALL if run.repetition < 1 and run.learner == "knn")
    write_runs({**part, **few}, tables)
    monkeypatch.setattr(renew, "check_again", lambda runs: None)
    before = (tables / "summary.csv").read_text().splitlines()
    renew.main(0, tables / "store", tables, 1)
    count = {row["method"]: row["count"] for row in read_table(tables / "credit.csv")}
    assert count == {**dict.fromkeys(credit.methods, 2), "recommended": 3}
    changed = set((tables / "summary.csv").read_text().splitlines()) - set(before)
    assert all(ABOVE_RECOMMENDED in line for line in changed)
    about = [r["count"] for r in read_table(tables / "comparisons.csv")]
    assert about == [3] * 18
    said = capsys.readouterr().out
    assert "3 of 100: forest recommended" in said
    assert said.splitlines()[-1] in (tables / "index.md").read_text()


@NEEDS_DATA
def test_a_run_that_comes_out_otherwise_is_refused():
    """One run of each method is made again; here it is one that takes no time."""
    run = next(run for run in ALL if (run.learner, run.method) == ("knn", "capacity"))
    rows = credit_runs.run_method(run)
    check_again({run: rows})
    with pytest.raises(ValueError, match="must not be averaged"):
        check_again({run: [*rows[:2], {**rows[2], "found": rows[2]["found"] + 1}]})


@pytest.fixture(scope="module")
def committed():
    """Return the rows of the runs in the repository."""
    return read_table(FOLDER / "credit-runs.csv.gz")


@pytest.mark.parametrize("name", renew.FIGURES)
def test_the_committed_means_are_those_of_the_committed_runs(committed, name):
    """To the last digit, unless the table has more repetitions, from before runs were kept."""
    kept = renew.rows_of(renew.FIGURES[name], committed)
    if not kept:
        pytest.skip("no runs of all methods of this figure are kept so far")
    runs = {cell_of(row): row for row in cells_of(kept)}
    table = read_table(FOLDER / f"{name}.csv")
    older = [row for row in table if row["count"] > runs[cell_of(row)]["count"]]
    assert [row for row in table if row not in older] == [
        runs[cell_of(row)] for row in table if row not in older
    ]


def cell_of(row):
    """Return what a row is about."""
    return tuple(row[name] for name in ("learner", "method", "prevalence", "multiple"))


def test_the_committed_comparison_is_that_of_the_committed_runs(committed):
    """Recommended forest and g_b*, paired over the repetitions that both have."""
    found = ordering(
        committed, {"method": "recommended"}, {"method": "aware"}, by=("prevalence", "multiple")
    )
    table = read_table(FOLDER / "comparisons.csv")
    about = [row for row in table if row["statement"] == ABOVE_RECOMMENDED]
    for row, ours in zip(about, found.differences, strict=True):
        older = row["count"] > ours["count"]
        assert older or {name: row[name] for name in ("mean", "error", "count")} == {
            name: ours[name] for name in ("mean", "error", "count")
        }


def test_the_committed_runs_are_of_the_presets_as_they_are():
    """Whatever is installed; `renew` also compares the versions."""
    kept = json.loads((FOLDER / "credit-runs.json").read_text())
    here = credit_runs.made_with()
    assert kept.keys() == here.keys()
    settings = [name for name in here if ", " in name or name in ("clients", "seed", "b")]
    assert {name: kept[name] for name in settings} == {name: here[name] for name in settings}


def test_all_runs_are_those_of_the_paper():
    """A hundred repetitions, and thirty of support vector machines."""
    config = CreditConfig()
    for pair, count in counts(made(ALL)).items():
        wanted = config.svm_repetitions if pair[0] == "svm" else config.repetitions
        assert count == wanted
