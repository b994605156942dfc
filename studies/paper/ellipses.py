"""The kernel rule in the plane: a small ellipse of rare items inside a large one (section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._core.arrays import Floats, Mask
from shortlist.capacity import Capacity
from shortlist.classifier import CapacityClassifier
from shortlist.learners import KernelDensityClassifier

from ..runner import OnProgress, run_all
from ..tables import Table, summarise
from .drawing import CLASSICAL, OURS, new_figure

__all__ = ["QUICK", "Config", "digest", "draw", "run", "sample"]


@dataclass(frozen=True)
class _Plane:
    """Settings of all repetitions; we chose the half-axes and centres of the two ellipses."""

    n_rare: int = 100
    multiples: tuple[float, ...] = (1, 2)
    rare_axes: tuple[float, float] = (0.5, 0.3)
    rare_center: tuple[float, float] = (0.6, 0.2)
    common_axes: tuple[float, float] = (2.0, 1.0)
    n_test: int = 8_000
    seed: int = 0


@dataclass(frozen=True)
class Config(_Plane):
    """Settings of the simulation."""

    prevalences: tuple[float, ...] = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
    repetitions: int = 30


#: Few repetitions.
QUICK = Config(prevalences=(0.01, 0.03, 0.05, 0.1, 0.2, 0.3), repetitions=4)


@dataclass(frozen=True)
class _Repetition:
    plane: _Plane
    prevalence: float
    repetition: int


def sample(
    n_rare: int, n_common: int, plane: _Plane, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Draw rare items (label 0, as in the paper) and common ones (label 1)."""
    rare = _in_ellipse(n_rare, plane.rare_axes, rng) + plane.rare_center
    common = _in_ellipse(n_common, plane.common_axes, rng)
    return np.vstack([rare, common]), np.repeat([0, 1], [n_rare, n_common])


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return detection, specificity and M for each prevalence, repetition and rule."""
    plane = _Plane(**{field.name: getattr(config, field.name) for field in fields(_Plane)})
    repetitions = [
        _Repetition(plane, prevalence, repetition)
        for prevalence in config.prevalences
        for repetition in range(config.repetitions)
    ]
    return run_all(_run_one, repetitions, store=store, n_jobs=n_jobs, on_progress=on_progress)


def _run_one(one: _Repetition) -> Table:
    rng = np.random.default_rng([one.plane.seed, one.repetition])
    return [
        {"prevalence": one.prevalence, "repetition": one.repetition, **row}
        for row in _rules(one.prevalence, rng, one.plane)
    ]


def _rules(prevalence: float, rng: np.random.Generator, plane: _Plane) -> Table:
    n_common = round(plane.n_rare * (1 - prevalence) / prevalence)
    X, y = sample(plane.n_rare, n_common, plane, rng)
    # Rates within each class do not depend on the prevalence: half of the test items are rare.
    X_test, y_test = sample(plane.n_test // 2, plane.n_test // 2, plane, rng)
    density = KernelDensityClassifier()
    classical = density.fit(X, y).predict(X_test) == 0
    rows = [_row("classical", b, classical, y_test, prevalence) for b in plane.multiples]
    model = CapacityClassifier(
        density,
        capacity=Capacity.fraction(1),
        rare_label=0,
        guarantee="plug-in",
        ties="exclude",
        random_state=int(rng.integers(2**31)),
        cv=0.5,
    ).fit(X, y)
    scores = model.score_samples(X_test)
    for b in plane.multiples:
        share = Capacity.multiple(b).as_ratio(prevalence)
        flagged = model.with_capacity(Capacity.fraction(share)).calibration_.flag(scores)
        rows.append(_row("capacity", b, flagged, y_test, prevalence))
    return rows


def _row(
    rule: str, b: float, flagged: Mask, y: NDArray[np.int64], prevalence: float
) -> dict[str, Any]:
    detection, false_flags = float(flagged[y == 0].mean()), float(flagged[y == 1].mean())
    rate = prevalence * detection + (1 - prevalence) * false_flags
    paid = min(1.0, b * prevalence / rate) if rate > 0 else 1.0
    return {
        "rule": rule,
        "multiple": b,
        "detection": detection,
        "specificity": 1 - false_flags,
        "adjusted_detection": detection * paid,
    }


def digest(table: Table) -> Table:
    """Return the means of M over repetitions."""
    return summarise(table, ["prevalence", "rule", "multiple"], "adjusted_detection")


def draw(table: Table) -> Any:
    """Draw the four panels: an example, detection, specificity, and M."""
    figure = new_figure(10, 8)
    panels = figure.subplots(2, 2)
    _draw_example(panels[0, 0])
    for axes, value, title in (
        (panels[0, 1], "detection", "B  rare items found"),
        (panels[1, 0], "specificity", "C  common items left alone"),
        (panels[1, 1], "adjusted_detection", "D  M: rare items found within the capacity"),
    ):
        _draw_panel(axes, table, value, title)
    return figure


def _draw_example(axes: Any) -> None:
    plane = _Plane()
    X, y = sample(plane.n_rare, 900, plane, np.random.default_rng(plane.seed))
    axes.scatter(*X[y == 1].T, s=6, color="grey", label="common (Y = 1)")
    axes.scatter(*X[y == 0].T, s=8, color="tab:orange", label="rare (Y = 0)")
    axes.set(title="A  an example, π₀ = 0.1", xlabel="x₁", ylabel="x₂", aspect="equal")
    axes.legend(loc="lower left")


def _draw_panel(axes: Any, table: Table, value: str, title: str) -> None:
    for rule, colour in (("classical", CLASSICAL), ("capacity", OURS)):
        for b, style in ((1, "--"), (2, "-")):
            if rule == "classical" and value != "adjusted_detection" and b == 2:
                continue  # only M of this rule depends on the capacity
            rows = [r for r in table if r["rule"] == rule and r["multiple"] == b]
            means = summarise(rows, ["prevalence"], value)
            both = rule == "classical" and value != "adjusted_detection"
            axes.errorbar(
                [row["prevalence"] for row in means],
                [row["mean"] for row in means],
                yerr=[2 * row["error"] for row in means],
                color=colour,
                linestyle="-" if both else style,
                capsize=2,
                label=rule if both else f"{rule}, b = {b}",
            )
    axes.set(title=title, xlabel="prevalence π₀", ylabel=title.split("  ")[1].split(":")[0])
    axes.legend()


def _in_ellipse(n: int, axes: tuple[float, float], rng: np.random.Generator) -> Floats:
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(size=n))
    return np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, np.newaxis] * axes
