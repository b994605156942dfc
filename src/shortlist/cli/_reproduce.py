"""`shortlist reproduce`: the figures of the paper as tables, pictures and one page."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .._core.atomic import check_writable
from ._shared import INTERRUPTED, AsJson, answering, print_json

#: The names of `shortlist.reproduce.FIGURES`, which is imported only when the command runs.
FIGURE_NAMES = (
    "normal-cauchy",
    "ellipses",
    "credit",
    "smote-scheme",
    "credit-smote20",
    "knn-gain",
    "aware-svm",
    "summary",
)
_ROWS = (25_000, 30_000)


@answering
def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(FIGURE_NAMES)}. Default: all.")
    ] = None,
    reps: Annotated[
        int | None,
        typer.Option(min=1, help="Repetitions, such as --reps 10, instead of those of each study."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Number of processes, such as --jobs 2; -1 takes all cores.")
    ] = 1,
    rows: Annotated[
        int | None,
        typer.Option(help="Clients of the credit data: the paper's 25000, or --rows 30000."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for tables and pictures, such as --out figures.")
    ] = Path("paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Coarser studies.")] = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce figures of the paper; a stopped run resumes."""
    from ..reproduce import write_page

    names = figures or list(FIGURE_NAMES)
    unknown = sorted(set(names) - set(FIGURE_NAMES))
    if unknown:
        raise typer.BadParameter(
            f"there is no figure {', '.join(unknown)}; choose from {', '.join(FIGURE_NAMES)}",
            param_hint="FIGURE",
        )
    if rows is not None and rows not in _ROWS:
        raise typer.BadParameter(f"choose 25000 or 30000; got {rows}", param_hint="--rows")
    settings = {"repetitions": reps, "rows": rows}
    settings = {name: value for name, value in settings.items() if value is not None}
    _make_folder(out)
    try:
        parts = {name: _reproduce_one(name, out, jobs, quick, settings) for name in names}
    except KeyboardInterrupt:
        Console(stderr=True).print(
            f"Stopped. Finished results are kept in {out / 'finished'}; the same command resumes "
            "from there.",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    page = write_page(out / "index.md", parts, command=_command(), title="The paper, reproduced")
    if as_json:
        print_json({"page": str(page.resolve()), "figures": _files(out, names)})
        return
    for name, files in _files(out, names).items():
        Console().print(f"{name}: {files['picture']}", soft_wrap=True, highlight=False)
    Console().print(f"All in one page: {page.resolve()}", soft_wrap=True, highlight=False)


def _make_folder(out: Path) -> None:
    """Make the folder for the results, or raise an error before anything is run."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"The folder {out} cannot be created: {error.strerror}. Choose another --out."
        ) from error
    check_writable(out / "index.md")


def _reproduce_one(
    name: str, out: Path, jobs: int, quick: bool, settings: dict[str, Any]
) -> tuple[str, Any]:
    """Run a study, save its table and picture, and return its title and short table."""
    from ..reproduce import FIGURES, with_settings, write_table

    figure = FIGURES[name]
    config = with_settings(figure.QUICK if quick else figure.Config(), **settings)
    with _progress_bar() as progress:
        table = figure.run(
            config,
            store=out / "finished",
            n_jobs=jobs,
            on_progress=_reporter(progress, name),
        )
    picture, digest = out / f"{name}.png", figure.digest(table)
    write_table(table, out / f"{name}.csv")
    figure.draw(table).savefig(picture, dpi=150)
    return (inspect.getdoc(figure) or "").splitlines()[0], digest


def _files(out: Path, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the paths of the table and the picture of each figure."""
    return {
        name: {
            "table": str((out / f"{name}.csv").resolve()),
            "picture": str((out / f"{name}.png").resolve()),
        }
        for name in names
    }


def _command() -> str:
    return " ".join(["shortlist", *sys.argv[1:]])


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _reporter(progress: Progress, name: str) -> Callable[[int, int], None]:
    task = progress.add_task(name)
    return lambda done, total: progress.update(task, completed=done, total=total)
