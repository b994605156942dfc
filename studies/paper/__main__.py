"""Make the figures and numbers of the paper: tables, pictures and one page.

    python -m studies.paper --jobs 2                 # everything, in full
    python -m studies.paper --quick --jobs 2         # everything, coarsely: a few minutes
    python -m studies.paper credit --reps 10 --rows 30000 --out try

A run that was stopped resumes: finished repetitions are kept in the folder `finished` of `--out`.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from shortlist._core.files import check_writable

from ..runner import with_settings
from ..tables import write_table
from .drawing import write_page
from .figures import FIGURES

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the figures that were asked for."""
    options = read_options(arguments)
    settings = {"repetitions": options.reps, "rows": options.rows}
    settings = {name: value for name, value in settings.items() if value is not None}
    try:
        make_folder(options.out)
        parts = {name: make_figure(name, options, settings) for name in options.figures}
    except OSError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        print(
            f"Stopped. Finished results are kept in {options.out / 'finished'}; the same command "
            "resumes from there.",
            file=sys.stderr,
        )
        sys.exit(INTERRUPTED)
    command = " ".join(["python -m studies.paper", *(arguments or sys.argv[1:])])
    page = options.out / "index.md"
    write_page(page, parts, command=command, title="The paper, reproduced")
    print(f"All in one page: {page.resolve()}")


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    """Return what the command line says, or exit with what is wrong with it."""
    parser = argparse.ArgumentParser(prog="studies.paper", description=__doc__.splitlines()[0])
    names = ", ".join(FIGURES)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"{names}; default: all")
    parser.add_argument("--reps", type=int, help="repetitions instead of those of each study")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1 takes all cores")
    parser.add_argument(
        "--rows", type=int, choices=(25_000, 30_000), help="clients of the credit data"
    )
    parser.add_argument("--out", type=Path, default=Path("paper"), help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="coarser studies")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.figures) - set(FIGURES)):
        parser.error(f"there is no figure {', '.join(unknown)}; choose from {names}")
    if options.reps is not None and options.reps < 1:
        parser.error(f"--reps must be at least 1; got {options.reps}")
    options.figures = options.figures or list(FIGURES)
    return options


def make_folder(out: Path) -> None:
    """Make the folder for the results, or raise an error before anything is run."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"The folder {out} cannot be created: {error.strerror}. Choose another --out."
        ) from error
    check_writable(out / "index.md")


def make_figure(
    name: str, options: argparse.Namespace, settings: dict[str, Any]
) -> tuple[str, Any]:
    """Run a study, save its table and picture, and return its title and short table."""
    figure, out = FIGURES[name], options.out
    config = with_settings(figure.QUICK if options.quick else figure.Config(), **settings)
    with progress_bar() as progress:
        table = figure.run(
            config,
            store=out / "finished",
            n_jobs=options.jobs,
            on_progress=reporter(progress, name),
        )
    write_table(table, out / f"{name}.csv")
    figure.draw(table).savefig(out / f"{name}.png", dpi=150)
    print(f"{name}: {out / name}.png")
    return (inspect.getdoc(figure) or "").splitlines()[0], figure.digest(table)


def progress_bar() -> Progress:
    """Return a bar with the time that is left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def reporter(progress: Progress, name: str) -> Callable[[int, int], None]:
    """Return what a study calls with the number of finished runs."""
    task = progress.add_task(name)
    return lambda done, total: progress.update(task, completed=done, total=total)


if __name__ == "__main__":
    main()
