"""A catalogue of inputs for every command: a right answer, a note with the remedy, or an error.

Each entry says what is typed, the exit code, and the words that must come. For all of them: no
traceback, no words of Python, no input that was changed, and no output after an error.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from typer.testing import CliRunner

from made_cases import make_cases
from shortlist import Capacity
from shortlist.cli._app import app
from shortlist.tables import fit_table, load_model, save_model

# What a user of the command line cannot pass, and should not read.
PYTHON = re.compile(
    r"\b(cv|rare_label|prevalence|random_state|guarantee|ids|n_batches|estimator|dtype)=|"
    r"Capacity\.|(=|got |is )None\b|Traceback|ndarray|object at 0x"
)


class Desk:
    """A folder with tables and models, and the commands to use on them."""

    def __init__(self, folder):
        self.folder = folder
        self.old, self.new = make_cases(1_000, seed=0), make_cases(400, seed=1)
        self.new["team"] = np.where(np.arange(400) % 4 == 0, "north", "south")
        self.new["name"] = [f"Ann {i}" for i in range(400)]
        self.old_path = self.table(self.old, "old.csv")
        self.new_path = self.table(self.new, "new.csv")
        options = {"target": "fraud", "learner": "logistic"}
        capacity = Capacity.count(100, per=1_000)
        fitted = fit_table(self.old_path, id="case", capacity=capacity, **options)
        self.model = folder / "model"
        save_model(fitted.model, self.model)
        nameless = self.table(self.old.drop(columns="case"), "nameless.csv")
        self.no_id = folder / "no_id"
        save_model(fit_table(nameless, capacity=capacity, **options).model, self.no_id)
        self.n = 0

    def table(self, frame, name=None):
        """Write a table and return its path."""
        if name is None:
            self.n += 1
            name = f"t{self.n}.csv"
        path = self.folder / name
        frame.to_csv(path, index=False)
        return path

    def text(self, content, name=None):
        """Write a file with the given text and return its path."""
        self.n += 1
        path = self.folder / (name or f"f{self.n}.csv")
        path.write_text(content)
        return path

    def changed(self, **columns):
        """Write the new table with other columns."""
        return self.table(self.new.assign(**columns))

    def own(self, model, name):
        """Write a classifier of one's own."""
        path = self.folder / name
        (skops.io.dump if name.endswith("skops") else joblib.dump)(model, path)
        return path

    def out(self, name="out.csv"):
        """Return the path of an output that does not exist yet."""
        self.n += 1
        return self.folder / f"{self.n}-{name}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Return the folder that all entries share; none of them changes what is in it."""
    return Desk(tmp_path_factory.mktemp("desk"))


@dataclass
class Entry:
    """What is typed, the exit code, the words that must come, and what else must hold."""

    typed: object
    code: int
    words: tuple = ()
    check: object = None


CATALOGUE = {}


def entry(name, typed, code, *words, check=None):
    """Add an entry to the catalogue."""
    assert name not in CATALOGUE
    CATALOGUE[name] = Entry(typed, code, words, check)


def numbers(result):
    """Return the JSON that a command printed."""
    return json.loads(result.stdout)


# --- wrong files, in every command ---

COMMANDS = {
    "select": ("--count", "5"),
    "flag": (),
    "check": (),
    "evaluate": (),
    "recalibrate": ("-o", "OUT"),
}
for command, more in COMMANDS.items():

    def on(table, command=command, more=more):
        """Return what is typed for a table."""
        return lambda d: [
            *command.split(),
            d.model,
            table(d),
            *(d.out() if option == "OUT" else option for option in more),
        ]

    def with_model(model, command=command, more=more):
        """Return what is typed for a model file."""
        return lambda d: [
            *command.split(),
            model(d),
            d.new_path,
            *(d.out() if option == "OUT" else option for option in more),
        ]

    entry(f"{command}: no table", on(lambda d: d.folder / "none.csv"), 2, "There is no file")
    entry(f"{command}: a folder", on(lambda d: d.folder), 2, "extension")
    entry(f"{command}: empty file", on(lambda d: d.text("")), 2, "is empty")
    entry(f"{command}: format", on(lambda d: d.text("x", "t.doc")), 2, "is none of .csv")
    entry(
        f"{command}: column missing",
        on(lambda d: d.table(d.new.drop(columns="amount"))),
        2,
        "no column 'amount'",
        "which the model needs",
    )
    entry(
        f"{command}: id missing",
        on(lambda d: d.table(d.new.drop(columns="case"))),
        2,
        "no column 'case'",
    )
    entry(
        f"{command}: gaps in the id",
        on(lambda d: d.changed(case=d.new["case"].where(d.new.index > 2))),
        2,
        "'case' is empty in 3 of 400 rows",
    )
    entry(f"{command}: words as numbers", on(lambda d: d.changed(amount="much")), 2, "'amount'")
    entry(f"{command}: no model", with_model(lambda d: d.folder / "none"), 2, "no model file")
    entry(f"{command}: a table as model", with_model(lambda d: d.new_path), 2, "not a model")
    entry(
        f"{command}: a damaged model",
        with_model(lambda d: d.text("PK\x03\x04 broken", "broken")),
        2,
        "not a model",
    )
    entry(
        f"{command}: heading only",
        on(lambda d: d.table(d.new.head(0))),
        2,
        "has no rows below its heading. If there were no cases, there is nothing to do",
    )

# --- units, categories, empty and constant columns: select and flag warn, check has a code ---

STRANGE = {
    "cents": (
        lambda d: d.changed(amount=d.new["amount"] * 100),
        ("'amount'", "Check the unit", "101 times as large"),
    ),
    "thousands": (
        lambda d: d.changed(amount=d.new["amount"] / 1000),
        ("'amount'", "Check the unit", "0.001 times as large"),
    ),
    "sign": (lambda d: d.changed(amount=-d.new["amount"]), ("'amount'", "the unit and the sign")),
    "capitals": (
        lambda d: d.changed(country=d.new["country"].str.upper()),
        ("'country'", "(before: 'ar')", "Correct the spelling"),
    ),
    "new category": (
        lambda d: d.changed(country=np.where(np.arange(400) < 90, "mx", d.new["country"])),
        ("'country'", "'mx'", "in 90 of 400 rows"),
    ),
    "empty": (lambda d: d.changed(country=""), ("'country' is empty in all 400 rows", "Fill")),
    "half empty": (
        lambda d: d.changed(amount=d.new["amount"].where(d.new.index % 2 == 0)),
        ("'amount' is empty in", "Check how the table was made"),
    ),
    "constant": (lambda d: d.changed(amount=12.5), ("'amount' is 12.5 in all", "varied")),
    "old dates": (lambda d: d.changed(opened="1999-01-01"), ("'opened'", "1999-01-01")),
    "no vip": (lambda d: d.changed(vip="false"), ("'vip' is 0 in all 400 rows",)),
}
for strange, (table, words) in STRANGE.items():
    entry(f"flag: {strange}", lambda d, t=table: ["flag", d.model, t(d)], 0, "Warning: ", *words)
    entry(f"check: {strange}", lambda d, t=table: ["check", d.model, t(d)], 5, *words)
for strange in ("cents", "capitals"):  # the other commands have the same warnings
    table, words = STRANGE[strange]
    for command in ("select --count 3", "recalibrate -o", "evaluate"):
        entry(
            f"{command}: {strange}",
            lambda d, t=table, c=command: [
                *c.split(),
                *([d.out()] if c.endswith("-o") else []),
                d.model,
                t(d),
            ],
            0,
            "Warning: ",
            *words,
        )
entry(
    "flag: one unseen value is a note",
    lambda d: ["flag", d.model, d.changed(country=np.where(d.new.index == 7, "mx", "ar"))],
    0,
    "Note: 'country'",
    "'mx'",
)
entry(
    "evaluate: ids twice",
    lambda d: ["evaluate", d.model, d.table(pd.concat([d.new, d.new.head(40)]))],
    0,
    "Note: 40 rows repeat an id ('case') of another row",
)
entry(
    "flag: nothing strange",
    lambda d: ["flag", d.model, d.new_path, "-o", d.out()],
    0,
    check=lambda d, r: "Warning" not in r.stderr,
)
entry(
    "check: nothing strange",
    lambda d: ["check", d.model, d.new_path, "--json"],
    0,
    check=lambda d, r: numbers(r)["has_drifted"] is False and numbers(r)["n_items"] == 400,
)
entry(
    "check: later dates are natural",
    lambda d: ["check", d.model, d.changed(opened="2024-12-01"), "--json"],
    5,
    check=lambda d, r: [f["kind"] for f in numbers(r)["findings"]] == ["constant"],
)
entry(
    "check: a new year",
    lambda d: [
        "check",
        d.model,
        d.changed(opened=(pd.to_datetime(d.new["opened"]) + pd.Timedelta(300, "D")).dt.date),
        "--json",
    ],
    0,  # the column has shifted, the scores hardly
    check=lambda d, r: (
        numbers(r)["findings"] == [] and numbers(r)["columns"][0]["name"] == "opened"
    ),
)
entry(
    "check: drift as JSON",
    lambda d: ["check", d.model, d.changed(amount=d.new["amount"] * 100), "--json"],
    5,
    check=lambda d, r: (
        numbers(r)["has_drifted"]
        and {"jump", "many flags"} <= {f["kind"] for f in numbers(r)["findings"]}
    ),
)
entry(
    "check: one row",
    lambda d: ["check", d.model, d.table(d.new.head(1))],
    0,
    "of 1 case would be flagged",
)
entry(
    "check: the rows of the fit",
    lambda d: ["check", d.model, d.old_path],
    0,
    "No drift detected",
)
entry(
    "flag: too many by the exact test",
    lambda d: ["flag", d.model, d.changed(amount=d.new["amount"] + 60)],
    0,
    "and the capacity allows 40",
    "shortlist recalibrate",
)

# --- the same rows twice ---

entry(
    "evaluate: rows of the fit",
    lambda d: ["evaluate", d.model, d.old_path],
    0,
    "Warning: ",
    "trained or calibrated this model",
    "Not valid",
)
entry(
    "evaluate: new rows",
    lambda d: ["evaluate", d.model, d.new_path, "--json"],
    0,
    check=lambda d, r: numbers(r)["seen"]["is_surprising"] is False,
)
entry(
    "evaluate: half of the rows",
    lambda d: ["evaluate", d.model, d.table(pd.concat([d.old.head(200), d.new.head(200)]))],
    0,
    "of 400 rows trained or calibrated",
)
entry(
    "evaluate: rows of the fit in another format",
    lambda d: ["evaluate", d.model, d.text(d.old.to_csv(index=False, sep=";"), "old2.csv")],
    0,
    "trained or calibrated this model",
)
entry(
    "evaluate: rows of the fit without ids",
    lambda d: ["evaluate", d.no_id, d.old_path, "--json"],
    0,
    "trained or calibrated",
    check=lambda d, r: numbers(r)["seen"]["n_seen"] >= 700,
)
entry(
    "recalibrate: only rows of the fit",
    lambda d: ["recalibrate", d.model, d.table(known(d)), "-o", d.out()],
    2,
    "trained or calibrated this model",
    "more recent rows",
)
entry(
    "recalibrate: some rows of the fit",
    lambda d: ["recalibrate", d.model, d.table(pd.concat([known(d), d.new])), "-o", d.out()],
    0,
    "were left out",
    "rests on 400 cases",
)


def known(d):
    """Return rows that certainly trained or calibrated the model."""
    model = load_model(d.model)
    with model.schema.open(d.old_path) as source:
        hashes = model.fingerprints.hashes_of(model.schema.read(source))
    return d.old[np.isin(hashes, model.fingerprints.hashes)].head(300)


# --- labels ---

entry(
    "evaluate: no labels",
    lambda d: ["evaluate", d.model, d.table(d.new.drop(columns="fraud"))],
    2,
    "no column 'fraud'",
)
entry(
    "evaluate: wrong target",
    lambda d: ["evaluate", d.model, d.new_path, "--target", "frod"],
    2,
    "'frod'",
    "--target",
)
entry(
    "evaluate: no rare case",
    lambda d: ["evaluate", d.model, d.changed(fraud="no")],
    2,
    "no row with the rare label 'yes'",
)
entry(
    "evaluate: only rare cases",
    lambda d: ["evaluate", d.model, d.changed(fraud="yes")],
    2,
    "only one class",
)
entry(
    "evaluate: labels the other way round",
    lambda d: ["evaluate", d.model, d.changed(fraud=d.new["fraud"].map(SWAPPED))],
    0,
    "The rare label 'yes' is in",
    "it is not rare here",
)
SWAPPED = {"yes": "no", "no": "yes"}
entry(
    "evaluate: no labels at all",
    lambda d: ["evaluate", d.model, d.table(d.new.drop(columns="fraud"))],
    2,
    "has no column 'fraud'",
    "the column with the labels",
)
entry(
    "evaluate: no load",
    lambda d: ["evaluate", d.model, d.new_path, "--load", 0],
    2,
    "--load",
)

# --- limits for cron ---

entry(
    "flag: within --at-most",
    lambda d: ["flag", d.model, d.new_path, "--at-most", 400, "-o", d.out()],
    0,
    "of 400 flagged",
)
entry(
    "flag: over --at-most",
    lambda d: ["flag", d.model, d.new_path, "--at-most", 3, "-o", d.out()],
    4,
    "more than 3 places",
    "Nothing was written",
)
entry(
    "flag: over --at-most on standard output",
    lambda d: ["flag", d.model, d.new_path, "--at-most", 3],
    4,
    "Nothing was written",
    check=lambda d, r: r.stdout == "",
)
entry(
    "flag: within --at-most on standard output",
    lambda d: ["flag", d.model, d.new_path, "--at-most", 400],
    0,
    check=lambda d, r: len(r.stdout.splitlines()) == 401,
)
entry(
    "flag: none may be flagged",
    lambda d: ["flag", d.model, d.new_path, "--at-most", 0],
    4,
    "more than 0 places",
)
entry("flag: --at-most below 0", lambda d: ["flag", d.model, d.new_path, "--at-most", -1], 2)
entry("flag: --at-most in words", lambda d: ["flag", d.model, d.new_path, "--at-most", "ten"], 2)

# --- lists ---


def listed(*options, check=None, code=0, words=(), name=None, table=None, model=None):
    """Add an entry about select with --json."""
    entry(
        f"select: {name}",
        lambda d: [
            "select",
            model(d) if model else d.model,
            table(d) if table else d.new_path,
            "--json",
            *(option(d) if callable(option) else option for option in options),
        ],
        code,
        *words,
        check=check,
    )


KEEP = ("--count", 3, "--keep", "name", "-o")


def rows(result):
    """Return the rows of a list."""
    return numbers(result)["rows"]


listed(
    "--count", 5, name="five", check=lambda d, r: [x["rank"] for x in rows(r)] == [1, 2, 3, 4, 5]
)
listed("--count", 0, name="nobody", check=lambda d, r: rows(r) == [])
listed(
    "--count", 9999, name="everybody", check=lambda d, r: len(rows(r)) == 400, words=("only 400",)
)
listed("--count", "x", name="no number", code=2, words=("--count", "north=20,south=30"))
listed("--count", "-3", name="below zero", code=2, words=("--count",))
listed("--count", "2.5", name="half a case", code=2, words=("--count",))
listed(name="no count", code=2, words=("--count",))
listed("--count", "north=2", name="counts without a segment", code=2, words=("--segment",))
listed(
    "--count", 5, "--segment", "team", name="one count for segments", code=2, words=("north=20",)
)
listed(
    "--segment",
    "team",
    "--count",
    "north=2,south=3",
    "--keep",
    "team",
    name="quotas",
    check=lambda d, r: sorted(x["team"] for x in rows(r)) == ["north"] * 2 + ["south"] * 3,
)
listed(
    "--segment",
    "team",
    "--count",
    "north=2",
    "--count",
    "south=3",
    name="quotas one by one",
    check=lambda d, r: len(rows(r)) == 5,
)
listed(
    "--segment",
    "team",
    "--count",
    "north=2",
    name="a segment without a quota",
    words=("300 rows", "'south'", "--count does not name them"),
    check=lambda d, r: len(rows(r)) == 2,
)
listed(
    "--segment",
    "team",
    "--count",
    "nrth=2",
    name="a segment that does not exist",
    code=2,
    words=("'nrth'", "'north'", "'south'"),
)
listed(
    "--segment",
    "team",
    "--count",
    "north=1000",
    name="a quota that is too large",
    words=("'north' has only 100 cases",),
    check=lambda d, r: len(rows(r)) == 100,
)
listed(
    "--segment", "tm", "--count", "a=2", name="no such segment column", code=2, words=("--segment",)
)
listed(
    "--segment",
    "team",
    "--count",
    "north=1,north=2",
    name="a quota twice",
    code=2,
    words=("each named once",),
)
listed("--count", 3, "--keep", "nme", name="keep: wrong column", code=2, words=("'nme'", "--keep"))
listed(
    "--count",
    3,
    "--keep",
    "name,team",
    name="keep two columns",
    check=lambda d, r: all({"name", "team", "case"} <= set(x) for x in rows(r)),
)
listed(
    "--count",
    3,
    "--keep",
    "all",
    name="keep all columns",
    check=lambda d, r: all(set(d.new.columns) <= set(x) for x in rows(r)),
)
listed(
    "--count",
    3,
    "--keep",
    "score",
    name="keep a column named like ours",
    table=lambda d: d.changed(score="their own"),
    check=lambda d, r: all(x["score_in_table"] == "their own" for x in rows(r)),
)
listed(
    "--count",
    400,
    "--exclude",
    lambda d: d.table(d.new[["case"]].head(100)),
    name="cases reviewed before",
    words=("100 rows were left out", "only 300"),
    check=lambda d, r: len(rows(r)) == 300,
)
listed(
    "--count",
    5,
    "--exclude",
    lambda d: d.text("c00001\nc00002\n"),
    name="ids without a heading",
    words=("2 rows were left out",),
)
listed(
    "--count",
    5,
    "--exclude",
    lambda d: d.table(pd.DataFrame({"case": ["a", "b"]})),
    name="exclusions that match nothing",
    words=("nothing was left out", "'case'"),
)
listed(
    "--count",
    400,
    "--exclude",
    lambda d: d.table(pd.DataFrame({"case": ["c00001", "C00002", "c00003 x"]})),
    name="exclusions in another case",
    words=("1 row was left out", "1 row was not left out", "such as 'c00002'", "same way"),
    check=lambda d, r: len(rows(r)) == 399,
)
listed(
    "--count",
    400,
    "--exclude",
    lambda d: d.table(pd.DataFrame({"case": ["7", "1200"]})),
    name="exclusions without leading zeros",
    table=lambda d: d.changed(case=[f"{4 * i:04d}" if i else "0007" for i in range(400)]),
    words=("1 row was left out", "such as '0007'", "leading zeros"),
    check=lambda d, r: len(rows(r)) == 399,
)
listed(
    "--count",
    400,
    "--exclude",
    lambda d: d.table(pd.DataFrame({"case": ["123001", "1.23E+05"]})),
    name="exclusions that a spreadsheet has shortened",
    table=lambda d: d.changed(case=range(123_000, 123_400)),
    words=("1 row was left out", "such as 1.23E+12", "not left out"),
    check=lambda d, r: len(rows(r)) == 399,
)
listed(
    "--count",
    400,
    "--exclude",
    lambda d: d.table(pd.DataFrame({"case": ["'@c1", "c2"]})),
    name="exclusions from a list with escaped ids",
    table=lambda d: d.changed(case=[f"@c{i}" if i % 2 else f"c{i}" for i in range(400)]),
    words=("2 rows were left out",),
    check=lambda d, r: len(rows(r)) == 398,
)
listed(
    "--count",
    5,
    "--exclude",
    lambda d: d.table(pd.DataFrame({"who": ["a"], "when": ["b"]})),
    name="exclusions without ids",
    code=2,
    words=("no column 'case'",),
)
listed(
    "--count",
    5,
    "--exclude",
    lambda d: d.folder / "none.csv",
    name="no exclusions",
    code=2,
    words=("There is no file",),
)
listed(
    "--count",
    5,
    "--exclude",
    lambda d: d.table(d.new[["case"]]),
    name="everybody was reviewed",
    words=("400 rows were left out", "only 0"),
    check=lambda d, r: rows(r) == [],
)
listed(
    "--count",
    5,
    "--exclude",
    lambda d: d.table(d.new[["case"]].head(3)),
    name="exclusions without an id column",
    code=2,
    words=("--id",),
    model=lambda d: d.no_id,
)
listed(
    "--count",
    400,
    "--id",
    "case",
    "--exclude",
    lambda d: d.table(d.new[["case"]].head(3)),
    name="an id for the list alone",
    words=("3 rows were left out",),
    model=lambda d: d.no_id,
    check=lambda d, r: len(rows(r)) == 397 and "case" in rows(r)[0],
)
listed("--count", 5, "--id", "cse", name="no such id", code=2, words=("'cse'", "--id"))
listed(
    "--count",
    400,
    name="repeated ids",
    table=lambda d: d.table(pd.concat([d.new, d.new.head(50).assign(amount=99)])),
    words=("50 rows repeat an id ('case') of another row, which takes one place",),
    check=lambda d, r: len({x["case"] for x in rows(r)}) == 400,
)
listed(
    "--count",
    20,
    name="copies without ids",
    table=lambda d: d.table(pd.concat([d.new, d.new])),
    words=("copies of other rows", "--id"),
    model=lambda d: d.no_id,
)
entry(
    "select: an id that the list names itself",
    lambda d: ["select", d.no_id, d.changed(rank=d.new["case"]), "--count", 5, "--id", "rank"],
    2,
    "'rank'",
    "Rename it",
)
entry(
    "select: one formula",
    lambda d: (
        [
            "select",
            d.model,
            d.changed(name="=1+1"),
            "--count",
            1,
            "--keep",
            "name",
            "-o",
            d.folder / "formula.csv",
        ]
    ),
    0,
    "1 cell begins with",
)
entry(
    "select: formulas in cells",
    lambda d: (
        [
            "select",
            d.model,
            d.changed(name="=HYPERLINK(1)"),
            "--count",
            3,
            "--keep",
            "name",
            "-o",
            d.folder / "formulas.csv",
        ]
    ),
    0,
    "3 cells begin with",
    check=lambda d, r: (
        pd.read_csv(d.folder / "formulas.csv")["name"].tolist() == ["'=HYPERLINK(1)"] * 3
    ),
)
entry(
    "select: texts that Excel does not take",
    lambda d: [
        *("select", d.model, d.changed(name="a\x0bb"), "--count", 3, "--keep", "name"),
        *("-o", d.folder / "cut.xlsx"),
    ],
    0,
    "Note: 3 texts have control characters",
    check=lambda d, r: pd.read_excel(d.folder / "cut.xlsx")["name"].tolist() == ["ab"] * 3,
)
entry(
    "select: formulas in Parquet stay",
    lambda d: (
        [
            "select",
            d.model,
            d.changed(name="=1+1"),
            "--count",
            3,
            "--keep",
            "name",
            "-o",
            d.folder / "formulas.parquet",
        ]
    ),
    0,
    check=lambda d, r: (
        pd.read_parquet(d.folder / "formulas.parquet")["name"].tolist() == ["=1+1"] * 3
    ),
)
entry(
    "flag: formulas in ids",
    lambda d: ["flag", d.model, d.changed(case=["=c" + str(i) for i in range(400)])],
    0,
    "400 cells begin with",
    check=lambda d, r: "'=c0" in r.stdout,
)
entry(
    "flag: negative numbers are no formulas",
    lambda d: ["flag", d.model, d.changed(debt=-5, note="-12,5"), "--keep", "debt,note"],
    0,
    check=lambda d, r: "cells begin" not in r.stderr and ",-5" in r.stdout.replace('"', ""),
)
entry(
    "flag: reasons and columns",
    lambda d: ["flag", d.model, d.new_path, "--reasons", "--keep", "team", "--json"],
    0,
    check=lambda d, r: all(
        (row["reasons"] is not None) == (row["flagged"] == 1) and row["team"] in ("north", "south")
        for row in map(json.loads, r.stdout.splitlines())
    ),
)
entry(
    "flag: cases reviewed before",
    lambda d: ["flag", d.model, d.new_path, "--exclude", d.table(d.new[["case"]].head(10))],
    0,
    "10 rows were left out",
    check=lambda d, r: len(r.stdout.splitlines()) == 391,
)
entry(
    "flag: all cases were reviewed before",
    lambda d: ["flag", d.model, d.new_path, "--exclude", d.new_path],
    0,
    "400 rows were left out",
    "0 of 0 flagged",
)
entry(
    "flag: exclusions that match nothing",
    lambda d: ["flag", d.model, d.new_path, "--exclude", d.text("case\nzz\n")],
    0,
    "nothing was left out",
)
entry(
    "flag: wrong column to keep",
    lambda d: ["flag", d.model, d.new_path, "--keep", "nme"],
    2,
    "--keep",
    "'nme'",
)
entry(
    "flag: flags of the same id",
    lambda d: ["flag", d.model, d.table(pd.concat([d.new, d.new]))],
    0,
    "repeat an id ('case')",
)

# --- outputs ---

for command, more in {
    "select": ("--count", 3),
    "flag": (),
    "recalibrate": (),
}.items():

    def writes(out, command=command, more=more):
        """Return what is typed for an output."""
        return lambda d: [command, d.model, d.new_path, *more, "-o", out(d)]

    entry(f"{command}: over its table", writes(lambda d: d.new_path), 2, "overwrite")
    entry(f"{command}: over its model", writes(lambda d: d.model), 2, "overwrite")
    entry(f"{command}: over a link", writes(lambda d: link(d, d.new_path)), 2, "overwrite")
    entry(f"{command}: no folder", writes(lambda d: d.folder / "no" / "o.csv"), 3, "does not exist")
    entry(f"{command}: a folder as output", writes(lambda d: d.folder), 3, "is a folder")
for command, more in {"select": ("--count", 3), "flag": ()}.items():
    entry(
        f"{command}: unknown format",
        lambda d, c=command, m=more: [c, d.model, d.new_path, *m, "-o", d.out("o.doc")],
        2,
        "extension",
    )
    entry(
        f"{command}: over the exclusions",
        lambda d, c=command, m=more: (
            [c, d.model, d.new_path, *m, "--exclude", d.old_path, "-o", d.old_path]
        ),
        2,
        "overwrite",
    )


def link(d, target):
    """Return another name of a file."""
    path = d.folder / "link.csv"
    if not path.exists():
        os.link(target, path)
    return path


# --- recalibrate and inspect ---


def recalibrated(name, *options, code=0, words=(), check=None, table=None):
    """Add an entry about recalibrate."""
    entry(
        f"recalibrate: {name}",
        lambda d: [
            "recalibrate",
            d.model,
            table(d) if table else d.new_path,
            "-o",
            d.out("m"),
            *options,
        ],
        code,
        *words,
        check=check,
    )


recalibrated("as it is", words=("rests on 400 cases",))
recalibrated(
    "another capacity",
    "--fraction",
    "0.05",
    "--json",
    check=lambda d, r: numbers(r)["flagged_now"] <= 20 and numbers(r)["capacity_fraction"] == 0.05,
)
recalibrated("another guarantee", "--guarantee", "confident", words=("'confident'",))
recalibrated("a confidence", "--guarantee", "confident", "--confidence", "0.99")
recalibrated("no confidence", "--confidence", "1.5", code=2, words=("--confidence must",))
recalibrated("no guarantee", "--guarantee", "firm", code=2, words=("--guarantee must be one of",))
recalibrated(
    "next-batch without a batch",
    "--guarantee",
    "next-batch",
    "--fraction",
    "0.1",
    code=2,
    words=("--guarantee next-batch", "--capacity K --per N"),
)
recalibrated(
    "batches",
    "--guarantee",
    "next-batch",
    "--capacity",
    20,
    "--per",
    100,
    "--json",
    check=lambda d, r: numbers(r)["guarantee"] == "next-batch",
)
recalibrated("two capacities", "--fraction", "0.1", "--multiple", 2, code=2, words=("one way",))
recalibrated("half a capacity", "--capacity", 5, code=2, words=("belong together",))
recalibrated("more than all", "--fraction", 6, code=2, words=("--fraction 6 must be", "0.06"))
recalibrated(
    "more than there are",
    "--capacity",
    9,
    "--per",
    5,
    code=2,
    words=("must not flag more items than there are",),
)
recalibrated("labels", "--target", "fraud", "--multiple", 2)
recalibrated("wrong labels", "--target", "frod", code=2, words=("--target",))
recalibrated(
    "too few rows",
    "--guarantee",
    "confident",
    table=lambda d: d.table(d.new.head(20)),
    words=("Warning", "drawn by lot"),
)
entry("recalibrate: nowhere", lambda d: ["recalibrate", d.model, d.new_path], 2, "--out")
entry(
    "inspect: in words",
    lambda d: ["inspect", d.model],
    0,
    "fraud = yes",
    "100 of every 1,000 cases",
    "categorical",
    "scikit-learn",
)
entry(
    "inspect: as JSON",
    lambda d: ["inspect", d.model, "--json"],
    0,
    check=lambda d, r: numbers(r)["fingerprints"]["n_rows"] > 0 and numbers(r)["thresholds"],
)
entry("inspect: a table", lambda d: ["inspect", d.new_path], 0, "400 rows", "amount", "numeric")
entry(
    "inspect: a table, as JSON",
    lambda d: ["inspect", d.new_path, "--json", "--read", "categorical=amount"],
    0,
    check=lambda d, r: (
        numbers(r)["is_whole"]
        and {c["name"]: c["kind"] for c in numbers(r)["columns"]}["amount"] == "categorical"
    ),
)
entry(
    "inspect: no such column",
    lambda d: ["inspect", d.new_path, "--drop", "nothing"],
    2,
    "no column 'nothing', which --drop names",
)
entry("inspect: no table", lambda d: ["inspect", d.folder / "none.csv"], 2, "no file")
entry("inspect: nothing", lambda d: ["inspect", d.folder / "none"], 2, "no model file")
entry("inspect: a folder", lambda d: ["inspect", d.folder], 2, "folder")

# --- models of one's own ---


def owned(name, model, *options, code=0, words=(), file="own.skops", check=None):
    """Add an entry about fit --model."""
    entry(
        f"fit --model: {name}",
        lambda d: [
            *("fit", d.new_path, "--target", "fraud", "--id", "case", "--fraction", "0.1"),
            *("--model", model(d, file), "-o", d.out("m"), *options),
        ],
        code,
        *words,
        check=check,
    )


def numeric(d):
    """Return the column of numbers without gaps."""
    return d.old[["amount"]].fillna(0)


owned("untrained", lambda d, f: d.own(LogisticRegression(), f), words=("LogisticRegression (own)",))
owned(
    "trained",
    lambda d, f: d.own(DummyClassifier(strategy="prior").fit(numeric(d), d.old["fraud"]), f),
    words=("is trained", "calibrate it", "amount (numeric)"),
)
owned(
    "trained with other labels",
    lambda d, f: d.own(DummyClassifier().fit(numeric(d), d.old["amount"] > 20), f),
    code=2,
    words=("trained to tell", "'yes'", "--rare"),
)
owned(
    "trained on other columns",
    lambda d, f: d.own(
        DummyClassifier().fit(d.old[["amount"]].rename(columns=str.upper), d.old["fraud"]), f
    ),
    code=2,
    words=("no column 'AMOUNT'", "trained on"),
)
owned(
    "trained without names",
    lambda d, f: d.own(DummyClassifier().fit(numeric(d).to_numpy(), d.old["fraud"]), f),
    code=2,
    words=("without names", "data frame"),
)
owned(
    "a pickle",
    lambda d, f: d.own(LogisticRegression(), f),
    file="own.joblib",
    code=2,
    words=("can execute any code", "--trust-model"),
)
owned(
    "a pickle that is trusted",
    lambda d, f: d.own(LogisticRegression(), f),
    "--trust-model",
    file="own.joblib",
)
owned("a regression", lambda d, f: d.own(LinearRegression(), f), code=2, words=("classifier",))
owned("not a model", lambda d, f: d.own({"a": 1}, f), code=2, words=("holds a dict",))
owned("no file", lambda d, f: d.folder / "none.skops", code=2, words=("no model file",))
owned("a table", lambda d, f: d.new_path, code=2, words=("extension",))
owned("damaged", lambda d, f: d.text("x", "bad.skops"), code=2, words=("bad.skops is damaged",))
owned(
    "damaged pickle",
    lambda d, f: d.text("x", "bad.joblib"),
    "--trust-model",
    code=2,
    words=("cannot be read",),
)
owned(
    "and a learner",
    lambda d, f: d.own(LogisticRegression(), f),
    "--learner",
    "forest",
    code=2,
    words=("--model and --learner",),
)
entry(
    "fit: trust without a model",
    lambda d: (
        [
            "fit",
            d.new_path,
            "--target",
            "fraud",
            "--fraction",
            "0.1",
            "--trust-model",
            "-o",
            d.out("m"),
        ]
    ),
    2,
    "--trust-model belongs to --model",
)


# --- the options of fit that the library has ---

FIT = ("--target", "fraud", "--id", "case", "--learner", "logistic")


def fitted(name, *options, code=0, words=(), check=None):
    """Add an entry about fit."""
    entry(
        f"fit: {name}",
        lambda d: ["fit", d.new_path, *FIT, "-o", d.out("m"), *options],
        code,
        *words,
        check=check,
    )


fitted("a confidence", "--fraction", "0.2", "--guarantee", "confident", "--confidence", "0.8")
fitted("no confidence", "--fraction", "0.2", "--confidence", "95", code=2, words=("--confidence",))
fitted("below zero", "--fraction", "-0.1", code=2, words=("--fraction -0.1 must not be negative",))
fitted("no number", "--fraction", "nan", code=2, words=("--fraction must be finite; got nan",))
fitted(
    "an endless multiple",
    "--multiple",
    "inf",
    code=2,
    words=("--multiple must be finite; got inf",),
)
fitted("no learner", "--fraction", "0.1", "--learner", "wizard", code=2, words=("--learner must",))
fitted("next-batch", "--multiple", 2, "--guarantee", "next-batch", code=2, words=("--capacity K",))


# --- numbers as people write them ---


def many_columns(d):
    """Write a table with two thousand columns."""
    wide = np.random.default_rng(0).normal(size=(400, 2_000)).round(3)
    return d.table(d.new[["case", "fraud"]].join(pd.DataFrame(wide).add_prefix("x")))


entry(
    "fit: thousands of rare rows",
    lambda d: [
        *("fit", d.table(make_cases(14_000, seed=0))),
        *(*FIT, "--fraction", "0.1", "-o", d.out("m")),
    ],
    0,
    "14,000 rows, 1,413 of them fraud = yes",
    " % ",
    check=lambda d, r: not re.search(r"[0-9]%|e\+[0-9]|[0-9]{4}[^0-9.]", _without_paths(r.stdout)),
)
entry(
    "fit: two thousand columns",
    lambda d: ["fit", many_columns(d), *FIT, "--fraction", "0.1", "--folds", "1", "-o", d.out("m")],
    0,
    "x19 (numeric) and 1,980 more",
    check=lambda d, r: "x20" not in r.stdout and r.stdout.count(" MB") == 1,
)
entry(
    "fit: a budget of millions",
    lambda d: [
        *(
            "fit",
            d.table(d.old.assign(work=20_000.5)),
            *FIT,
            "--effort",
            "work",
            "--unit",
            "seconds",
        ),
        *("--budget", "6000000", "--per", "1000", "-o", d.out("m")),
    ],
    0,
    "takes more than 20,000.5 seconds",
    "within 6 million seconds",
)
entry(
    "evaluate: one more reviewer",
    lambda d: ["evaluate", d.model, d.new_path, "--load", "20"],
    0,
    "with room for 20 cases, finds ",
    " in this table; by the slope of the smoothed curve",
)


def _without_paths(text):
    """Return what a command printed, without the line that names the model file."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("Model"))


# --- what is looked for, and in which rows ---


def fit_of(d, table, *options):
    """Return what is typed to fit a table."""
    return ["fit", table, *FIT, "--fraction", "0.1", "--folds", "1", "-o", d.out("m"), *options]


def relabelled(d, **labels):
    """Write the old table with other labels."""
    return d.table(d.old.assign(fraud=d.old["fraud"].map(labels)))


entry(
    "fit: the rarest label is a negative",
    lambda d: fit_of(d, relabelled(d, yes="not cancelled", no="cancelled")),
    0,
    "Note: The label 'not cancelled' of 'fraud' is looked for, which reads like the usual case: 9.",
    "To look for the other one, use --rare cancelled",
)
entry(
    "fit: a rare zero",
    lambda d: fit_of(d, relabelled(d, yes=0, no=1)),
    0,
    "Note: The label '0' of 'fraud' is looked for",
    "use --rare 1",
)
entry(
    "fit: a label that is not rare",
    lambda d: fit_of(d, d.table(d.old.assign(fraud=np.where(d.old.index % 3, "b", "a")))),
    0,
    "The label 'a' of 'fraud' is looked for, which is not rare: 33.4 % of the rows have it",
    "use --rare b",
)
entry(
    "fit: a usual rare label",
    lambda d: fit_of(d, d.old_path),
    0,
    check=lambda d, r: "is looked for" not in r.stderr,
)


def partly_labelled(d):
    """Write the old table with labels in every second row."""
    return d.table(d.old.assign(fraud=d.old["fraud"].where(d.old.index % 2 == 0)))


entry(
    "fit: half of the labels",
    lambda d: fit_of(d, partly_labelled(d)),
    2,
    "'fraud' is empty in 500 of 1,000 rows",
    "use --labelled-only",
)
entry(
    "fit: half of the labels, the labelled only",
    lambda d: fit_of(d, partly_labelled(d), "--labelled-only", "--json"),
    0,
    "Note: 500 of 1,000 rows have no label in 'fraud' and are left out.",
    check=lambda d, r: numbers(r)["n_train"] + numbers(r)["n_calibration"] == 500,
)
entry(
    "fit: no labels at all",
    lambda d: fit_of(d, d.table(d.old.assign(fraud="")), "--labelled-only"),
    2,
    "'fraud' is empty in all 1,000 rows",
)
entry(
    "fit: its own rows as unlabelled ones",
    lambda d: fit_of(d, d.old_path, "--unlabelled", d.old_path),
    2,
    "1,000 of 1,000 rows",
    "Use more recent rows",
)
entry(
    "flag: a file that was cut",
    lambda d: ["flag", d.model, d.text(d.new.to_csv(index=False)[:-3])],
    0,
    "has no line end. Was the file written to the end?",
)
entry(
    "flag: a file that was cut within a row",
    lambda d: ["flag", d.model, d.text(d.new.to_csv(index=False)[:-30])],
    2,
    "has no line end. Was the file written to the end?",
    check=lambda d, r: "--read na" not in r.stderr,
)
entry(
    "fit: another id beside the id",
    lambda d: fit_of(d, d.table(d.old.assign(number=range(1_000)))),
    0,
    "'number' has a different value in nearly every row and looks like an id. To leave it out, use "
    "--drop number",
)
entry(
    "fit: an id that repeats",
    lambda d: fit_of(d, d.table(d.old.assign(case=[f"k{i // 2}" for i in range(1_000)]))),
    0,
    "The id 'case' is not unique",
    "use --group case instead of --id",
)
entry(
    "select: nobody of done.csv comes back",
    lambda d: [
        *("select", d.model, d.new_path, "--count", "3"),
        *("--exclude", d.table(pd.DataFrame({"case": ["c90001", "c90002"]}))),
    ],
    0,
    check=lambda d, r: "nothing was left out" not in r.stderr,
)
entry(
    "select: other ids in done.csv",
    lambda d: [
        *("select", d.model, d.new_path, "--count", "3"),
        *("--exclude", d.table(pd.DataFrame({"case": ["K-17/4", "K-18/5"]}))),
    ],
    0,
    "nothing was left out. Check that both files write ids in the same way",
)

# --- messages that say what to do ---

entry(
    "fit: percent",
    lambda d: ["fit", d.new_path, *FIT, "--fraction", "6%", "-o", d.out("m")],
    2,
    "Invalid value for '--fraction': '6%' is not a number such as 0.06; for 6 % write 0.06",
)
entry(
    "flag: an address",
    lambda d: ["flag", d.model, "https://127.0.0.1:9/today.csv"],
    2,
    "https://127.0.0.1:9/today.csv cannot be read",
)
entry(
    "flag: a bucket",
    lambda d: ["flag", d.model, "s3://bucket/today.parquet"],
    2,
    "s3://bucket/today.parquet cannot be read",
)


def renamed_parquet(d):
    """Write a Parquet file with the extension of a text file."""
    path = d.out("t.csv")
    d.new.to_parquet(path)
    return path


def empty_folder(d):
    """Make a folder without files, and return it."""
    folder = d.out("folder")
    folder.mkdir()
    return folder


entry("flag: an empty folder", lambda d: ["flag", d.model, empty_folder(d)], 2, "is empty. Name")
entry(
    "flag: Parquet as CSV",
    lambda d: ["flag", d.model, renamed_parquet(d)],
    2,
    "is a Parquet file. Give it the extension .parquet",
)
for zero in (("--capacity", "0", "--per", "100"), ("--fraction", "0"), ("--multiple", "0")):
    fitted(
        f"nothing by {zero[0]}", *zero, code=2, words=("0 leaves a model that can flag nothing",)
    )
    entry(
        f"recalibrate: nothing by {zero[0]}",
        lambda d, zero=zero: ["recalibrate", d.model, d.new_path, "-o", d.out("m"), *zero],
        2,
        "0 leaves a model that can flag nothing: raise it",
    )
entry(
    "flag: a currency that comes later",
    lambda d: ["flag", d.model, d.changed(amount=d.new["amount"].map("{} €".format, "ignore"))],
    0,
    "Note: 'amount' had no currency when the model was fitted, and now holds €",
)

# --- the checks ---


def fingerprints(folder):
    """Return a hash of every file in a folder."""
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_right_answer_a_note_or_an_error(desk, name):
    """With its exit code and its words, and without a traceback, a lost file or Python's words."""
    wanted = CATALOGUE[name]
    typed = [str(word) for word in wanted.typed(desk)]
    before = fingerprints(desk.folder)
    result = CliRunner().invoke(app, typed, env={"COLUMNS": "300"})
    after = fingerprints(desk.folder)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == wanted.code, result.output
    for words in wanted.words:
        assert words in result.output, result.output
    assert not PYTHON.search(result.stderr), result.stderr
    assert before.items() <= after.items(), "an input was changed"
    made = set(after) - set(before)
    assert not [path for path in made if path.name.endswith(".part")]
    if wanted.code in (2, 3, 4):
        assert not made
        assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1
        assert result.stdout == ""
    if wanted.check is not None:
        assert wanted.check(desk, result), result.output


def test_the_catalogue_is_long_enough():
    """Every command on tables is in it."""
    assert len(CATALOGUE) >= 120
    commands = {name.partition(":")[0].partition(" ")[0] for name in CATALOGUE}
    assert commands == {"fit", "recalibrate", "inspect", *(name.split()[0] for name in COMMANDS)}
