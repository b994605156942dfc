"""How methods look in every figure: classical red crosses, SMOTE blue triangles, ours black."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._table import Table, summarise

__all__ = ["CLASSICAL", "OURS", "SMOTE", "draw_credit_grid", "draw_mean", "new_figure"]

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
#: What stands beside the paper's own curves is dashed and hollow.
_BESIDE = {"linestyle": "--", "markerfacecolor": "white", "linewidth": 0.9}
_NOT_IN_THE_PAPER = ("smote-calibrated", "recommended", "aware-best-prefix", "aware-cross-fit")
_LEARNERS = {"forest": "Random forest", "svm": "Support vectors", "knn": "Nearest neighbours"}


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that places its parts by itself."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_credit_grid(
    table: Table, learners: Sequence[str], methods: Sequence[str], *, for_all: Sequence[str] = ()
) -> Any:
    """Draw M against the share of rare cases: a column for each learner, a row for each b.

    The methods of `for_all` belong to no learner, and are drawn in every column.
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
        ax.set_title(f"{_LEARNERS[learner]}, b = {b}", fontsize=10)
        ax.label_outer()
    _name_axes(figure, axes)
    return figure


def _name_axes(figure: Any, axes: Any) -> None:
    for ax in axes[:, 0]:
        ax.set_ylim(bottom=0)  # when all of the row is drawn: it fixes the upper end too
        ax.set_ylabel(r"$\hat M$ on the test sample")
    for ax in axes[-1]:
        ax.set_xlabel(r"share of rare cases $\pi_0$")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)


def draw_mean(ax: Any, rows: Table, method: str) -> None:
    """Draw the mean of M over repetitions with two standard errors."""
    means = summarise(rows, ["prevalence"], "adjusted_detection")
    means.sort(key=lambda row: row["prevalence"])
    look = {"markersize": 5, "linewidth": 1.1, "capsize": 2, **_LOOKS[method]}
    ax.errorbar(
        [row["prevalence"] for row in means],
        [row["mean"] for row in means],
        yerr=[2 * row["error"] for row in means],
        **{**look, **(_BESIDE if method in _NOT_IN_THE_PAPER else {})},
    )


def _belongs(row: dict[str, Any], learner: str, method: str, for_all: Sequence[str]) -> bool:
    return row["method"] == method and (method in for_all or row["learner"] == learner)
