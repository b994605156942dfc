"""Lists and evaluations of tables of any size: block by block on this machine, or on Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .._core.atomic import write_whole
from ._shared import progress_bar

if TYPE_CHECKING:
    from ..distributed import LargeEvaluation
    from ..tables import TableModel

__all__ = [
    "Engine",
    "Master",
    "Score",
    "evaluate_large",
    "list_scored",
    "names_engine",
    "print_rows",
    "write_rows",
]

_ENGINES = ("local", "spark")

Score = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="The table is scored already: the column with the scores, such as --score risk. Then "
        "no model is given.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="Where to compute with tables of any size: local (block by block) or spark, such as "
        "--engine local.",
        autocompletion=lambda incomplete: [e for e in _ENGINES if e.startswith(incomplete)],
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default=False,
        help="With --engine spark: the cluster, such as --master spark://host:7077. Default: "
        "local[*].",
    ),
]


def names_engine(engine: str | None, master: str | None) -> bool:
    """Return whether an engine is named, after checks."""
    if engine not in (None, *_ENGINES):
        raise typer.BadParameter(f"--engine must be local or spark; got {engine!r}")
    if master is not None and engine != "spark":
        raise typer.BadParameter("--master belongs to --engine spark")
    return engine is not None


def list_scored(
    data: Path,
    counts: int | dict[str, int],
    *,
    score: str,
    id: str,
    segment: str | None,
    keep: list[str] | None,
    engine: str | None,
    master: str | None,
) -> Any:
    """Return the listed rows as an Arrow table: rank, id, score, and columns carried along."""
    from ..capacity import Capacity

    capacity: Any = (
        {name: Capacity.count(count) for name, count in counts.items()}
        if isinstance(counts, dict)
        else Capacity.count(counts)
    )
    options: dict[str, Any] = {"score": score, "id": id, "segment": segment}
    if engine == "spark":
        from .. import spark

        with _session(master) as session:
            df = session.read.parquet(str(data))
            listed = spark.select(df, capacity, **options).toArrow().sort_by("rank")
    else:
        from ..distributed import select

        with progress_bar() as progress:
            listed = select(data, capacity, **options, on_progress=_in_bar(progress))
    return listed.select(_columns(listed.column_names, id, score, segment, keep))


def _columns(
    names: list[str], id: str, score: str, segment: str | None, keep: list[str] | None
) -> list[str]:
    wanted = [name for said in keep or [] for name in said.split(",")]
    kept = names if wanted == ["all"] else wanted
    unknown = [name for name in kept if name not in names]
    if unknown:
        raise typer.BadParameter(f"--keep names {unknown[0]!r}, which is not a column of the table")
    return list(dict.fromkeys(["rank", id, score, *([segment] if segment else []), *kept]))


def write_rows(listed: Any, out: Path) -> list[str]:
    """Write an Arrow table to a file, and return what there is to say about it."""
    from ..tables import open_list, output_format

    types = {field.name: str(field.type) for field in listed.schema}
    types = {name: "string" if "string" in kind else kind for name, kind in types.items()}
    with write_whole(out) as file, open_list(file, output_format(out), types) as opened:
        opened.write(listed.to_pydict())
    return [] if opened.note is None else [opened.note]


def print_rows(listed: Any) -> None:
    """Print an Arrow table."""
    table = Table()
    for name in listed.column_names:
        table.add_column(name, justify="right" if name == "rank" else "left")
    for row in listed.to_pylist():
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console().print(table)


def evaluate_large(
    model: TableModel, data: Path, *, target: str | None, engine: str | None, master: str | None
) -> LargeEvaluation:
    """Measure a model on a Parquet or Feather file or folder of any size."""
    if engine == "spark":
        from .. import spark

        with _session(master) as session:
            df = session.read.parquet(str(data))
            return spark.evaluate(model, df, id=model.schema.id, target=target)
    from ..distributed import evaluate

    with progress_bar() as progress:
        return evaluate(
            model, data, id=model.schema.id, target=target, on_progress=_in_bar(progress)
        )


def _in_bar(progress: Any) -> Any:
    task = progress.add_task("reading", total=None)
    return lambda number, rows: progress.update(
        task, description=f"pass {number}: {rows:,} rows read"
    )


@contextmanager
def _session(master: str | None) -> Iterator[Any]:
    from .._core.extras import load_extra

    sql = load_extra("pyspark.sql", needed_for="--engine spark")
    if master is None or master.startswith("local"):  # workers need the packages of this process
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = sql.SparkSession.builder.master(master or "local[*]").appName("shortlist")
    session = session.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        yield session
    finally:
        session.stop()
