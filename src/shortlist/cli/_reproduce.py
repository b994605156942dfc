"""`shortlist reproduce`: figures of the paper, as tables and pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..experiments import FIGURES, write_table


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(FIGURES)}. All when absent.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and pictures.")] = Path("paper"),
    jobs: Annotated[int, typer.Option(help="Number of processes; -1 takes all cores.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A coarser study, for a look.")] = False,
) -> None:
    """Reproduce figures of the paper; what a stopped run has finished is not done again."""
    names = figures or list(FIGURES)
    unknown = sorted(set(names) - set(FIGURES))
    if unknown:
        raise typer.BadParameter(
            f"there is no figure {', '.join(unknown)}; choose from {', '.join(FIGURES)}",
            param_hint="FIGURE",
        )
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        _reproduce_one(name, out, jobs, quick)


def _reproduce_one(name: str, out: Path, jobs: int, quick: bool) -> None:
    figure = FIGURES[name]
    config = figure.QUICK if quick else figure.Config()
    with _progress_bar() as progress:
        table = figure.run(
            config,
            store=out / "finished",
            n_jobs=jobs,
            on_progress=_reporter(progress, name),
        )
    picture = out / f"{name}.png"
    write_table(table, out / f"{name}.csv")
    figure.draw(table).savefig(picture, dpi=150)
    Console().print(f"{name}: {picture.resolve()}", soft_wrap=True, highlight=False)


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _reporter(progress: Progress, name: str) -> Callable[[int, int], None]:
    task = progress.add_task(name)
    return lambda done, total: progress.update(task, completed=done, total=total)
