"""Run the recommended forest and g_b* again, and put the results into the committed tables.

    python -m studies.paper.renew --reps 30

The presets of `make_learner` change, and a full run of `studies.paper` takes hours. This renews
what depends on the recommended forest: its means in `credit.csv`, its differences from g_b* in
`comparisons.csv`, what `summary.csv` says about them, the page and the picture `credit.png`.
Repetitions that the folder `--store` has are not run again.
"""

from __future__ import annotations

import argparse
import csv
from datetime import date
from pathlib import Path

from ..runner import run_all
from ..tables import Table, markdown_table, read_table, select_rows, write_table
from .aware_statements import strongest_statements
from .credit_figures import credit, run_method, runs_of
from .credit_protocol import CreditConfig, cells_of
from .drawing import PACKAGES, versions
from .summarise import as_rows

HERE = Path(__file__).parent
_PAIRS = [("forest", "recommended"), ("svm", "aware")]


def main(repetitions: int, store: Path, out: Path) -> None:
    """Run what is missing, and renew the tables and the picture."""
    runs = runs_of(CreditConfig(repetitions=repetitions), _PAIRS)
    rows = run_all(run_method, runs, store=store)
    forest, chosen = (select_rows(rows, method=method) for _, method in _PAIRS)
    _, statement = strongest_statements(forest, chosen)
    renew(out / "credit.csv", cells_of(forest), "method")
    renew(out / "comparisons.csv", as_rows([statement]), "statement")
    renew(out / "summary.csv", [statement.row()], "statement")
    renew_page(out / "index.md", [credit.digest(forest), [statement.row()]], repetitions)
    credit.draw(read_table(out / "credit.csv")).savefig(out / "credit.png", dpi=150)
    print(statement.statement, statement.ours)


def renew(path: Path, rows: Table, name: str) -> None:
    """Put rows into a table, in place of those with the same value in a column."""
    with path.open(newline="") as file:
        table = list(csv.DictReader(file))  # as text, so that no other row changes
    old = [place for place, row in enumerate(table) if row[name] == rows[0][name]]
    kept = [row for row in table if row[name] != rows[0][name]]
    write_table([*kept[: old[0]], *rows, *kept[old[0] :]], path)


def renew_page(path: Path, tables: list[Table], repetitions: int) -> None:
    """Replace the lines of some rows, and say when and how."""
    lines = [line for table in tables for line in markdown_table(table)[2:]]
    new = {_start(line): line for line in lines}
    note = (
        f"The recommended forest and what is said about it: `python -m studies.paper.renew --reps "
        f"{repetitions}`, on {date.today()} with {versions(PACKAGES)}."
    )
    page = [new.get(_start(line), line) for line in path.read_text().splitlines()]
    made = next(place for place, line in enumerate(page) if line.startswith("Made "))
    page[made + 1 : made + 1] = [] if note in page else ["", note]
    path.write_text("\n".join(page) + "\n")


def _start(line: str) -> str:
    """Return what names a row: learner, method and setting, or section and statement."""
    cells = line.split(" | ")
    return " | ".join(cells[: 4 if "recommended |" in line and len(cells) > 6 else 2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=30, help="repetitions")
    parser.add_argument("--store", type=Path, default=Path("paper/finished"))
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the tables")
    options = parser.parse_args()
    main(options.reps, options.store, options.out)
