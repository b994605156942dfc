"""Run the figure `credit` again, and put it and what is said about it into the committed tables.

    python -m studies.paper.renew --reps 100 --jobs 2

The presets of `make_learner` change, and a full run of `studies.paper` takes hours longer. This
renews `credit.csv` and its picture, the statements about it in `comparisons.csv` and `summary.csv`,
and their tables on the page. Repetitions that the folder `--store` has are not run again.
"""

from __future__ import annotations

import argparse
import csv
from datetime import date
from pathlib import Path

from ..runner import run_all
from ..tables import Table, markdown_table, write_table
from . import summary
from .aware_statements import strongest_statements
from .credit_figures import credit, run_method, runs_of
from .credit_protocol import CreditConfig, cells_of
from .credit_statements import credit_statements
from .drawing import PACKAGES, versions
from .summarise import comparisons

HERE = Path(__file__).parent
_NOTE = "The credit data and what is said about them: "


def main(repetitions: int, store: Path, out: Path, n_jobs: int) -> None:
    """Run what is missing, and renew the tables, the pictures and the page."""
    config = CreditConfig(repetitions=repetitions)
    rows = credit.run(config, store=store, n_jobs=n_jobs)
    chosen = run_all(run_method, runs_of(config, [("svm", "aware")]), store=store, n_jobs=n_jobs)
    statements = [*credit_statements(rows), *strongest_statements(rows, chosen)]
    write_table(cells_of(rows), out / "credit.csv")
    renew(out / "comparisons.csv", comparisons(statements, rows), "statement")
    said = renew(out / "summary.csv", [each.row() for each in statements], "statement")
    credit.draw(rows).savefig(out / "credit.png", dpi=150)
    summary.draw(said).savefig(out / "summary.png", dpi=150)
    renew_page(out / "index.md", {"credit": credit.digest(rows), "summary": said}, repetitions)


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


def renew_page(path: Path, tables: dict[str, Table], repetitions: int) -> None:
    """Replace the tables of some figures, and say when and how."""
    page = path.read_text().splitlines()
    for figure, table in tables.items():
        start = _table_of(page, figure)
        page[start : page.index("", start)] = markdown_table(table)
    command = f"`python -m studies.paper.renew --reps {repetitions}`"
    note = f"{_NOTE}{command}, on {date.today()} with {versions(PACKAGES)}."
    made = next(place for place, line in enumerate(page) if line.startswith("Made "))
    noted = page[made + 2].startswith(_NOTE)
    page[made + 2 : made + 3 + noted] = [note, ""] if noted else [note, "", page[made + 2]]
    path.write_text("\n".join(page) + "\n")


def _table_of(page: list[str], figure: str) -> int:
    """Return the place of the first line of a figure's table."""
    heading = page.index(f"## {figure}")
    return next(place for place in range(heading, len(page)) if page[place].startswith("| "))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=100, help="repetitions")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1 takes all cores")
    parser.add_argument("--store", type=Path, default=Path("paper/finished"))
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the tables")
    options = parser.parse_args()
    main(options.reps, options.store, options.out, options.jobs)
