"""The kernel rule in the plane: a small ellipse of rare items inside a large one (section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..learners import KernelDensityClassifier
from ._table import Table, summarise

__all__ = ["EllipsesConfig", "draw", "run", "sample"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EllipsesConfig:
    """Settings of the simulation; half-axes and centres of the two ellipses are ours."""

    n_rare: int = 100
    prevalences: tuple[float, ...] = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
    multiples: tuple[float, ...] = (1, 2)
    rare_axes: tuple[float, float] = (0.5, 0.3)
    rare_center: tuple[float, float] = (0.6, 0.2)
    common_axes: tuple[float, float] = (2.0, 1.0)
    n_test: int = 8_000
    repetitions: int = 20
    seed: int = 0


def sample(
    n_rare: int, n_common: int, config: EllipsesConfig, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Draw rare items (label 0, as in the paper) and common ones (label 1)."""
    rare = _in_ellipse(n_rare, config.rare_axes, rng) + config.rare_center
    common = _in_ellipse(n_common, config.common_axes, rng)
    return np.vstack([rare, common]), np.repeat([0, 1], [n_rare, n_common])


def run(config: EllipsesConfig = EllipsesConfig()) -> Table:  # noqa: B008 - frozen
    """Return detection, specificity and M for each prevalence, repetition and rule."""
    return [
        {"prevalence": prevalence, "repetition": repetition, **row}
        for prevalence in config.prevalences
        for repetition in range(config.repetitions)
        for row in _rules(prevalence, np.random.default_rng([config.seed, repetition]), config)
    ]


def _rules(prevalence: float, rng: np.random.Generator, config: EllipsesConfig) -> Table:
    n_common = round(config.n_rare * (1 - prevalence) / prevalence)
    X, y = sample(config.n_rare, n_common, config, rng)
    # Rates within each class need no prevalence: half of the test items are rare.
    X_test, y_test = sample(config.n_test // 2, config.n_test // 2, config, rng)
    density = KernelDensityClassifier()
    classical = density.fit(X, y).predict(X_test) == 0
    rows = [_row("classical", b, classical, y_test, prevalence) for b in config.multiples]
    model = CapacityClassifier(
        density, capacity=Capacity.fraction(1), rare_label=0, random_state=int(rng.integers(2**31))
    ).fit(X, y)
    scores = model.score_samples(X_test)
    for b in config.multiples:
        share = Capacity.multiple(b).as_ratio(prevalence)
        flagged = model.with_capacity(Capacity.fraction(share)).calibration_.flag(scores)
        rows.append(_row("capacity", b, flagged, y_test, prevalence))
    return rows


def _row(
    rule: str, b: float, flagged: NDArray[np.bool_], y: NDArray[np.int64], prevalence: float
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


def draw(table: Table, path: Path, config: EllipsesConfig = EllipsesConfig()) -> Path:  # noqa: B008
    """Save the four panels: an example, detection, specificity, and M."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    _draw_example(panels[0, 0], config)
    for axes, value, title in (
        (panels[0, 1], "detection", "B  rare items found"),
        (panels[1, 0], "specificity", "C  common items left alone"),
        (panels[1, 1], "adjusted_detection", "D  M: found, once the capacity is paid for"),
    ):
        _draw_panel(axes, table, value, title)
    figure.savefig(path, dpi=110)
    return path


def _draw_example(axes: Any, config: EllipsesConfig) -> None:
    X, y = sample(config.n_rare, 900, config, np.random.default_rng(config.seed))
    axes.scatter(*X[y == 1].T, s=6, color="grey", label="common (Y = 1)")
    axes.scatter(*X[y == 0].T, s=8, color="tab:orange", label="rare (Y = 0)")
    axes.set(title="A  an example, π₀ = 0.1", xlabel="x₁", ylabel="x₂", aspect="equal")
    axes.legend(loc="lower left")


def _draw_panel(axes: Any, table: Table, value: str, title: str) -> None:
    for rule, colour in (("classical", "tab:red"), ("capacity", "black")):
        for b, style in ((1, "--"), (2, "-")):
            if rule == "classical" and value != "adjusted_detection" and b == 2:
                continue  # the rule itself knows no capacity; only M does
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
