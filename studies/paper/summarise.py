"""Summarise the tables of `python -m studies.paper`: thousands of rows become a few hundred.

    python -m studies.paper --jobs 2 --out paper
    python -m studies.paper.summarise paper

For each figure with repetitions, `<figure>.csv` here has the means, standard errors and counts of
every cell. `comparisons.csv` has the paired differences behind every ordering of the summary: one
row for each statement and setting. Pictures, the page and tables without repetitions are copied.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from studies.paper import knn_gain, summary
from studies.paper.credit_protocol import cells_of
from studies.paper.credit_statements import gain_factor
from studies.paper.statements import Statement
from studies.tables import Table, read_table, select_rows, summarise, write_table

HERE = Path(__file__).parent
REPEATED = ("ellipses", "credit", "credit-smote20", "knn-gain", "aware-svm")
#: The statement whose ratio has a jackknife error; its "setting" in `comparisons.csv`.
GAIN, JACKKNIFE = "gain, as a factor", "ratio of means, with its jackknife error"


def ellipse_cells(table: Table) -> Table:
    """Return the means of all three measures for each share, rule and capacity."""
    by = ["prevalence", "rule", "multiple"]
    parts = {
        name: summarise(table, by, name)
        for name in ("detection", "specificity", "adjusted_detection")
    }
    rows = []
    for cells in zip(*parts.values(), strict=True):
        row = {name: cells[0][name] for name in by}
        for name, cell in zip(parts, cells, strict=True):
            row |= {name: cell["mean"], f"{name}_error": cell["error"]}
        rows.append({**row, "count": cells[0]["count"]})
    return rows


def comparisons(statements: list[Statement], credit: Table) -> Table:
    """Return the paired differences behind each statement about an ordering, and the gain's."""
    gain: Table = []
    if any(statement.statement == GAIN for statement in statements):
        forest = select_rows(credit, learner="forest")
        ratio, error = gain_factor(forest)
        count = len({row["repetition"] for row in select_rows(forest, method="classical")})
        gain = [{"setting": JACKKNIFE, "mean": ratio, "error": error, "count": count}]
    return [*as_rows(statements), *({"statement": GAIN, **row} for row in gain)]


def as_rows(statements: list[Statement]) -> Table:
    """Return a row for each setting of each statement about an ordering."""
    return [
        {
            "statement": statement.statement,
            "setting": ", ".join(
                f"{name} {value}" for name, value in row.items() if name not in _MEASURES
            ),
            **{name: row[name] for name in _MEASURES},
        }
        for statement in statements
        if statement.found
        for row in statement.found.differences
    ]


_MEASURES = ("mean", "error", "count")
_CELLS = {"ellipses": ellipse_cells, "knn-gain": knn_gain.digest}


def summarise_folder(folder: Path) -> None:
    """Write all summaries beside this script."""
    names = [*REPEATED, "normal-cauchy"]
    tables = {name: read_table(folder / f"{name}.csv") for name in names}
    for row in tables["normal-cauchy"]:  # a rule that never flags has no interval
        row |= {end: None for end in ("low", "high") if row[end] == ""}
    statements = summary.statements_of(tables, summary.Config())
    for name in REPEATED:
        write_table(_CELLS.get(name, cells_of)(tables[name]), HERE / f"{name}.csv")
    write_table(comparisons(statements, tables["credit"]), HERE / "comparisons.csv")
    for file in [*folder.glob("*.png"), folder / "index.md"]:
        shutil.copy(file, HERE)
    for name in ("normal-cauchy", "smote-scheme", "summary"):
        shutil.copy(folder / f"{name}.csv", HERE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the --out of studies.paper")
    summarise_folder(parser.parse_args().folder)
