"""How methods look in every figure, and the page that shows all figures.

The classical rule has red crosses, SMOTE blue triangles, the rule under the capacity is black.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shortlist._core.extras import load_extra
from shortlist._core.files import write_whole

from ..tables import Table, markdown_table, summarise

__all__ = [
    "CLASSICAL",
    "OURS",
    "SMOTE",
    "draw_credit_grid",
    "draw_mean",
    "new_figure",
    "versions",
    "write_page",
]

CLASSICAL, SMOTE, OURS = "tab:red", "tab:blue", "black"

_LOOKS: dict[str, dict[str, Any]] = {
    "classical": {"color": CLASSICAL, "marker": "x", "label": "classical"},
    "smote": {"color": SMOTE, "marker": "^", "label": "SMOTE ×4"},
    "smote20": {"color": SMOTE, "marker": "^", "label": "SMOTE, up to twenty for one"},
    "capacity": {"color": OURS, "marker": "o", "label": "under the capacity, $g_b$"},
    "smote-calibrated": {"color": SMOTE, "marker": "^", "label": "SMOTE ×4, cut at the capacity"},
    "recommended": {"color": OURS, "marker": "s", "label": "recommended forest, out of bag"},
    "aware": {"color": OURS, "marker": "D", "linewidth": 2, "label": "capacity-aware, $g_b^*$"},
    "aware-best-prefix": {
        "color": "grey",
        "marker": "D",
        "label": "$g_b^*$, best part of the path",
    },
    "aware-cross-fit": {
        "color": "grey",
        "marker": "s",
        "label": "$g_b^*$, our cross-fitted choice",
    },
}
#: Curves that are not in the paper are dashed and hollow.
_BESIDE = {"linestyle": "--", "markerfacecolor": "white", "linewidth": 0.9}
_NOT_IN_THE_PAPER = ("smote-calibrated", "recommended", "aware-best-prefix", "aware-cross-fit")
#: Packages whose versions the page names.
PACKAGES = ("shortlist", "numpy", "scipy", "scikit-learn", "imbalanced-learn", "joblib")
_LEARNER_TITLES = {"forest": "Random forest", "svm": "Support vectors", "knn": "Nearest neighbours"}


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that arranges its panels automatically."""
    matplotlib = load_extra("matplotlib.figure", needed_for="Drawing the figures")
    return matplotlib.Figure(figsize=(width, height), layout="constrained")


def draw_credit_grid(
    table: Table, learners: Sequence[str], methods: Sequence[str], *, for_all: Sequence[str] = ()
) -> Any:
    """Draw M against the share of rare cases: a column for each learner, a row for each b.

    The methods of `for_all` belong to no learner and are drawn in every column.
    """
    multiples = sorted({row["multiple"] for row in table})
    panels = [(learner, b) for b in multiples for learner in learners]
    # A single learner has its capacities side by side.
    n_columns = len(learners) if len(learners) > 1 else len(multiples)
    n_lines = len(panels) // n_columns
    figure = new_figure(1 + 3.2 * n_columns, 1.2 + 2.6 * n_lines)
    axes = figure.subplots(n_lines, n_columns, sharex=True, sharey="row", squeeze=False)
    for ax, (learner, b) in zip(axes.ravel(), panels, strict=True):
        rows = [row for row in table if row["multiple"] == b]
        for method in (*methods, *for_all):
            draw_mean(ax, [r for r in rows if _belongs(r, learner, method, for_all)], method)
        ax.set_title(f"{_LEARNER_TITLES[learner]}, b = {b}", fontsize=10)
        ax.label_outer()
    _name_axes(figure, axes)
    return figure


def _name_axes(figure: Any, axes: Any) -> None:
    for ax in axes[:, 0]:
        ax.set_ylim(bottom=0)  # after everything is drawn, because it fixes the upper end too
        ax.set_ylabel(r"$\hat M$ on the test sample")
    for ax in axes[-1]:
        ax.set_xlabel(r"share of rare cases $\pi_0$")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)


def draw_mean(ax: Any, rows: Table, method: str) -> None:
    """Draw the mean of M over repetitions with two standard errors; rows may be means already."""
    are_means = all("mean" in row for row in rows)
    means = rows if are_means else summarise(rows, ["prevalence"], "adjusted_detection")
    means = sorted(means, key=lambda row: row["prevalence"])
    look = {"markersize": 5, "linewidth": 1.1, "capsize": 2, **_LOOKS[method]}
    ax.errorbar(
        [row["prevalence"] for row in means],
        [row["mean"] for row in means],
        yerr=[2 * row["error"] for row in means],
        **{**look, **(_BESIDE if method in _NOT_IN_THE_PAPER else {})},
    )


def _belongs(row: dict[str, Any], learner: str, method: str, for_all: Sequence[str]) -> bool:
    return row["method"] == method and (method in for_all or row["learner"] == learner)


def write_page(
    path: Path, parts: Mapping[str, tuple[str, Table]], *, command: str, title: str
) -> Path:
    """Write a Markdown page with a heading, a picture and a short table for each part.

    `parts` holds for each name a description and the table; its picture is `<name>.png` beside
    the page.
    """
    made = f"Made on {date.today()} with {versions(PACKAGES)}."
    lines = [f"# {title}", "", f"`{command}`", "", made, ""]
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
