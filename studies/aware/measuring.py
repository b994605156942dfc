"""What the studies of capacity-aware learning measure, and how they summarise it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from shortlist import Capacity, adjusted_detection_score, select
from studies.aware.families import Family
from studies.harness import markdown
from studies.tables import Table, mean_and_error, summarise

MULTIPLES = (1, 2, 3)
#: M by the threshold and by the top of the test batch, and the share of flagged items.
VALUES = ("M", "M_batch", "flagged")
DIGITS = 5


def measure(
    family: Family, learn: tuple[Any, Any], test: tuple[Any, Any], prevalence: float, seed: int
) -> Table:
    """Fit all versions of a family on one sample and judge them on another.

    Features are standardised by the first sample, in which 1 is the rare label.
    """
    # 200 passes are the default of scikit-learn's network, converged or not.
    warnings.simplefilter("ignore", ConvergenceWarning)
    mean, scale = learn[0].mean(axis=0), learn[0].std(axis=0)
    scale[scale == 0] = 1
    (X, y), (X_test, y_test) = (((X - mean) / scale, y) for X, y in (learn, test))
    capacities = {b: Capacity.fraction(round(b * prevalence, 6)) for b in MULTIPLES}
    rows: Table = []
    for name, make in family.post_hoc.items():
        model = make(capacities[1], seed).fit(X, y)
        scores = scores_of(model, X_test)
        for b, capacity in capacities.items():
            threshold = model.with_capacity(capacity).threshold_ if hasattr(model, "select") else 0
            rows.append({"method": name, "b": b, **judge(scores, threshold, y_test, capacity)})
    for name, make in family.aware.items():
        for b, capacity in capacities.items():
            model = make(capacity, seed).fit(X, y)
            outcome = judge(scores_of(model, X_test), model.threshold_, y_test, capacity)
            rows.append({"method": name, "b": b, **outcome})
    return rows


def scores_of(model: Any, X: Any) -> Any:
    """Return the scores that the threshold applies to; for a plain SVC, its decision function."""
    score = getattr(model, "score_samples", None) or model.decision_function
    return score(X)


def judge(scores: Any, threshold: float, y: Any, capacity: Capacity) -> dict[str, float]:
    """Return M by the threshold and by the top of the batch, and the flagged share."""
    flagged = scores > threshold
    numbers = {
        "M": adjusted_detection_score(y, flagged * 1, capacity=capacity, rare_label=1),
        "M_batch": np.mean(select(scores, capacity)[y == 1]),
        "flagged": np.mean(flagged),
    }
    return {name: round(float(value), DIGITS) for name, value in numbers.items()}


def means(rows: Table, by: str) -> Table:
    """Return the mean, standard error and count of every value in each cell."""
    return [
        {**{name: row[name] for name in (by, "family", "method", "b")}, "value": value}
        | {name: row[name] for name in ("mean", "error", "count")}
        for value in VALUES
        for row in summarise(rows, [by, "family", "method", "b"], value)
    ]


def mean_table(rows: Table, by: str) -> str:
    """Return the means of M as a Markdown table, a column for each capacity."""
    lines: dict[tuple[Any, ...], list[str]] = {}
    for row in rows:
        if row["value"] != "M":
            continue
        key = (str(row[by]), row["family"], row["method"], str(row["count"]))
        lines.setdefault(key, []).append(f"{row['mean']:.3f} ± {row['error']:.3f}")
    headings = [by, "family", "version", "draws", *(f"b = {b}" for b in MULTIPLES)]
    return markdown(headings, [[*key, *cells] for key, cells in lines.items()])


def differences(
    rows: Table, comparisons: dict[str, list[tuple[str, str]]], by: str, value: str
) -> Table:
    """Return paired differences: mean, standard error and count for each comparison."""
    values = {(r[by], r["family"], r["b"], r["repetition"], r["method"]): r[value] for r in rows}
    found: dict[tuple[Any, ...], list[float]] = {}
    for (place, family, b, repetition, method), worth in values.items():
        for better, other in comparisons[family]:
            base = values.get((place, family, b, repetition, other))
            if method == better and base is not None:
                found.setdefault((place, family, better, other, b), []).append(worth - base)
    names = (by, "family", "method", "against", "b")
    return [
        {**dict(zip(names, key, strict=True)), "value": value, **mean_and_error(d)}
        for key, d in found.items()
    ]


def difference_table(rows: Table, by: str) -> str:
    """Return the paired differences as a Markdown table, a column for each capacity."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in (by, "family", "method", "against", "count"))
        lines.setdefault(key, []).append(f"{row['mean']:+.3f} ± {row['error']:.3f}")
    headings = [by, "family", "version", "against", "draws", *(f"b = {b}" for b in MULTIPLES)]
    return markdown(headings, [[*key, *cells] for key, cells in lines.items()])


def draw_differences(rows: Table, by: str, path: Path) -> Path:
    """Save a picture: a panel for each comparison, with the difference by place and b."""
    pairs = list(dict.fromkeys((r["family"], r["method"], r["against"]) for r in rows))
    places = sorted({r[by] for r in rows})
    n_rows, n_columns = -(-len(pairs) // 4), min(len(pairs), 4)
    figure = Figure(figsize=(3.2 * n_columns, 2.8 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for panel in panels[len(pairs) :]:
        panel.set_visible(False)
    for panel, (family, method, against) in zip(panels, pairs, strict=False):
        for b, colour in zip(MULTIPLES, ("tab:blue", "tab:orange", "black"), strict=True):
            some = [
                r
                for r in rows
                if (r["family"], r["method"], r["against"], r["b"]) == (family, method, against, b)
            ]
            panel.errorbar(
                [places.index(r[by]) + 0.12 * (b - 2) for r in some],
                [r["mean"] for r in some],
                yerr=[2 * r["error"] for r in some],
                fmt="o",
                markersize=4,
                capsize=2,
                color=colour,
                label=f"b = {b}",
            )
        panel.axhline(0, color="grey", linewidth=0.8)
        panel.set_xticks(range(len(places)), [str(place) for place in places])
        panel.set_title(f"{family}: {method}\nagainst {against}", fontsize=9)
        panel.tick_params(labelsize=8)
    panels[0].legend(fontsize=8)
    figure.supxlabel({"pi0": "share of rare items"}.get(by, by), fontsize=9)
    figure.supylabel("difference of M, with two standard errors", fontsize=9)
    figure.savefig(path, dpi=110)
    return path


def of_family(name: str, place: dict[str, Any], repetition: int, rows: Iterable[Any]) -> Table:
    """Put the place, family and repetition before the measures of each row."""
    return [{**place, "family": name, "repetition": repetition, **row} for row in rows]
