"""Add repetitions to the figures `credit` and `credit-smote20`, and renew what is said of them.

    python -m studies.paper.renew --reps 100 --jobs 2

The runs that are finished are in `credit-runs.csv.gz`: only those that neither this file nor the
folder `--store` has are made, and then they are kept as well. All of them make the tables and
pictures of both figures, the statements about them in `comparisons.csv` and `summary.csv`, their
tables on the page, and what the README of the studies says. What the tables have of more
repetitions, from before runs were kept, stays until there are as many. An interrupted run goes on
from `--store`; `--reps 0` makes no run, and takes what is there.

After a change of a preset of `make_learner` the runs that are kept are refused: `--afresh` leaves
them aside.

`--gain` renews the figure `knn-gain` in place of these two, from runs that are kept in `--store`
alone.
"""

from __future__ import annotations

import argparse
import csv
from datetime import date
from pathlib import Path

from ..runner import run_all
from ..tables import Table, markdown_table, read_table, select_rows, write_table
from . import knn_gain, summary
from .aware_statements import ABOVE_RECOMMENDED, gain_statements, strongest_statements
from .credit_figures import CreditFigure, credit, credit_smote20, run_method
from .credit_protocol import CreditConfig, cells_of
from .credit_runs import (
    ALL,
    AWARE,
    Pair,
    Runs,
    check_again,
    counts,
    read_runs,
    stored_runs,
    whole,
    write_runs,
)
from .credit_statements import credit_statements, smote20_statements
from .drawing import PACKAGES, versions
from .statements import Statement
from .summarise import as_rows, comparisons
from .words import README, renew_words

HERE = Path(__file__).parent
_CELL = ("learner", "method", "prevalence", "multiple")
_DIGEST = (*_CELL, "mean", "error", "count")
FIGURES = {"credit": credit, "credit-smote20": credit_smote20}
_NOTE = "The credit data and what is said about them: "
_GAIN_NOTE = "The gain of the joint choice of k: "


def main(repetitions: int, store: Path, out: Path, n_jobs: int, *, afresh: bool = False) -> None:
    """Run what is missing, and renew the tables, the pictures and the page."""
    runs = add_runs(repetitions, store, {} if afresh else read_runs(out), n_jobs)
    write_runs(runs, out)
    ready = as_many(runs, out)
    rows = [row for run in runs if (run.learner, run.method) in ready for row in runs[run]]
    statements = statements_of(rows, ready)
    renew(out / "comparisons.csv", comparisons(statements, rows), "statement")
    said = renew(out / "summary.csv", [each.row() for each in statements], "statement")
    summary.draw(said).savefig(out / "summary.png", dpi=150)
    tables = {"summary": said}
    for name, figure in FIGURES.items():
        if not (own := rows_of(figure, rows)):
            continue
        cells = renew_cells(out / f"{name}.csv", cells_of(own))
        figure.draw(cells).savefig(out / f"{name}.png", dpi=150)
        tables[name] = [{column: cell[column] for column in _DIGEST} for cell in cells]
    note = (
        f"{_NOTE}`python -m studies.paper.renew`, on {date.today()} with {versions(PACKAGES)}. "
        f"Repetitions kept: {made_of(runs)}. The same command adds what is missing."
    )
    renew_page(out / "index.md", tables, note)
    if out == HERE:
        renew_words(README, out)
    print(made_of(runs))


def renew_gain(repetitions: int, store: Path, out: Path, n_jobs: int) -> None:
    """Renew the table, the picture, the page and the statements of the gain of the joint choice."""
    config = knn_gain.Config(repetitions=repetitions)
    table = knn_gain.run(config, store=store, n_jobs=n_jobs)
    cells = knn_gain.digest(table)
    write_table(cells, out / "knn-gain.csv")
    knn_gain.draw(table).savefig(out / "knn-gain.png", dpi=150)
    statements = gain_statements(table, cells)
    renew(out / "comparisons.csv", as_rows(statements), "statement")
    said = renew(out / "summary.csv", [each.row() for each in statements], "statement")
    summary.draw(said).savefig(out / "summary.png", dpi=150)
    note = (
        f"{_GAIN_NOTE}`python -m studies.paper.renew --gain`, on {date.today()} with "
        f"{versions(PACKAGES)}; {repetitions} repetitions."
    )
    renew_page(out / "index.md", {"summary": said, "knn-gain": cells}, note)


def as_many(runs: Runs, folder: Path) -> set[Pair]:
    """Return the learners and methods with as many repetitions as the tables have, or more."""
    had = {
        (row["learner"], row["method"]): row["count"] for row in read_table(folder / "credit.csv")
    }
    for row in select_rows(read_table(folder / "credit-smote20.csv"), method="smote20"):
        had[row["learner"], "smote20"] = row["count"]
    about = select_rows(read_table(folder / "comparisons.csv"), statement=ABOVE_RECOMMENDED)
    had[AWARE] = max(row["count"] for row in about)
    return {pair for pair, count in counts(runs).items() if count >= had[pair]}


def statements_of(rows: Table, ready: set[Pair]) -> list[Statement]:
    """Return the statements about what is ready."""
    found = credit_statements(rows_of(credit, rows)) if ready >= set(credit.pairs()) else []
    if ready >= set(credit_smote20.pairs()):
        found += smote20_statements(rows_of(credit_smote20, rows))
    aware = [row for row in rows if row["method"] == "aware"]
    strongest = strongest_statements(rows_of(credit, rows), aware)
    return [*found, *(each for each in strongest if each.found and each.found.is_measured)]


def rows_of(figure: CreditFigure, rows: Table) -> Table:
    """Return the rows of the learners and methods of a figure, if there are some of all.

    The methods that two figures share are renewed in both at a time, or in neither.
    """
    pairs = set(figure.pairs())
    own = [row for row in rows if (row["learner"], row["method"]) in pairs]
    lacks = pairs - {(row["learner"], row["method"]) for row in own}
    return [] if figure is credit_smote20 and lacks else own


def renew_cells(path: Path, cells: Table) -> Table:
    """Put means into a table in place of those of the same learner, method, share and capacity."""
    new = {tuple(cell[name] for name in _CELL): cell for cell in cells}
    table = [new.get(tuple(row[name] for name in _CELL), row) for row in read_table(path)]
    write_table(table, path)
    return table


def add_runs(repetitions: int, store: Path, kept: Runs, n_jobs: int) -> Runs:
    """Return the whole repetitions among runs that are kept, stored, and made now."""
    stored = stored_runs(store)
    for finished in (kept, stored):
        check_again(finished)
    missing = [r for r in ALL if r.repetition < repetitions and r not in {**kept, **stored}]
    run_all(
        run_method,
        missing,
        store=store,
        n_jobs=n_jobs,
        on_progress=lambda done, total: print(f"{done} of {total}", flush=True),
    )
    return whole({**kept, **stored_runs(store)})


def made_of(runs: Runs) -> str:
    """Say how many repetitions there are of each learner and method."""
    config = CreditConfig()
    by_count: dict[str, list[str]] = {}
    for (learner, method), count in counts(runs).items():
        wanted = config.svm_repetitions if learner == "svm" else config.repetitions
        by_count.setdefault(f"{count} of {wanted}", []).append(f"{learner} {method}")
    return "; ".join(f"{count}: {', '.join(names)}" for count, names in by_count.items())


def renew(path: Path, rows: Table, name: str) -> Table:
    """Put rows into a table in place of those with the same value in a column, and return it."""
    new: dict[str, Table] = {}
    for row in rows:
        new.setdefault(row[name], []).append(row)
    table: Table = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):  # as text, so that no other row changes
            if row[name] not in new:
                table.append(row)
            else:
                table += new[row[name]]
                new[row[name]] = []
    table += [row for rest in new.values() for row in rest]
    write_table(table, path)
    return table


def renew_page(path: Path, tables: dict[str, Table], note: str) -> None:
    """Replace the tables of some figures, and the note that says when and how they were made."""
    page = path.read_text().splitlines()
    for figure, table in tables.items():
        start = _table_of(page, figure)
        page[start : page.index("", start)] = markdown_table(table)
    made = next(place for place, line in enumerate(page) if line.startswith("Made "))
    first = next(place for place, line in enumerate(page) if line.startswith("## "))
    kind = note.partition(":")[0]
    others = [line for line in page[made + 1 : first] if line and not line.startswith(kind)]
    page[made + 1 : first] = [line for each in [*others, note] for line in ("", each)] + [""]
    path.write_text("\n".join(page) + "\n")


def _table_of(page: list[str], figure: str) -> int:
    """Return the place of the first line of a figure's table."""
    heading = page.index(f"## {figure}")
    return next(place for place in range(heading, len(page)) if page[place].startswith("| "))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=100, help="repetitions; 0 makes no run")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1 takes all cores")
    parser.add_argument("--store", type=Path, default=Path("paper/finished"))
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the tables")
    parser.add_argument("--afresh", action="store_true", help="leave the runs kept in --out aside")
    parser.add_argument("--gain", action="store_true", help="renew the figure knn-gain instead")
    options = parser.parse_args()
    how = (options.reps, options.store, options.out, options.jobs)
    if options.gain:
        renew_gain(*how)
    else:
        main(*how, afresh=options.afresh)
