"""One page in Markdown: the figures, short tables, and what they were made with."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .._core.atomic import write_whole
from ._table import Table

__all__ = ["markdown_table", "versions", "write_page"]

_PACKAGES = ("shortlist", "numpy", "scipy", "scikit-learn", "imbalanced-learn", "joblib")


def write_page(
    path: Path, parts: Mapping[str, tuple[str, Table]], *, command: str, title: str
) -> Path:
    """Write a page with a heading, a picture and a short table for each part.

    `parts` holds for each name a description and the table; its picture is `<name>.png` beside
    the page.
    """
    lines = [f"# {title}", "", f"`{command}`", "", f"Made with {versions(_PACKAGES)}.", ""]
    for name, (description, table) in parts.items():
        lines += [f"## {name}", "", description, "", f"![{name}]({name}.png)", ""]
        lines += ["<details open><summary>Table</summary>", "", *markdown_table(table), ""]
        lines += ["</details>", ""]
    with write_whole(path) as file:
        file.write("\n".join(lines).encode())
    return path


def versions(packages: Iterable[str]) -> str:
    """Return the versions of Python and of the packages that are installed."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def markdown_table(table: Table) -> list[str]:
    """Return the lines of a table; numbers are rounded to four digits."""
    names = list(table[0])
    rows = [[_cell(row[name]) for name in names] for row in table]
    return [_line(names), _line(["---"] * len(names)), *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")
