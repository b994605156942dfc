"""What `shortlist demo` runs: simulated card payments, with room to review one in fifty."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from .._core.arrays import Mask
from .._core.atomic import write_whole
from .._core.extras import load_extra
from .._core.scoring import rare_scores
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..datasets import make_fraud
from ..metrics import (
    CapacityCurve,
    adjusted_detection_interval,
    adjusted_detection_score,
    capacity_curve,
)
from ..plots import CapacityCurveDisplay

__all__ = ["DemoConfig", "DemoResult", "DemoRule", "draw_demo", "run_demo"]


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demonstration."""

    n_samples: int = 40_000
    prevalence: float = 0.01
    multiple: float = 2
    n_trees: int = 200
    random_state: int = 0

    @property
    def capacity(self) -> Capacity:
        """The number of payments that can be reviewed: `multiple` times the number of frauds."""
        return Capacity.multiple(self.multiple)


@dataclass(frozen=True)
class DemoRule:
    """The result of one rule on the test payments."""

    rule: str
    flagged: int
    found: int
    adjusted_detection: float
    low: float
    high: float


@dataclass(frozen=True)
class DemoResult:
    """The results of the rules, the curve for the picture, and the sizes."""

    rules: list[DemoRule]
    curve: CapacityCurve
    n_test: int
    n_rare: int
    max_flags: int
    threshold: float

    def to_json(self) -> dict[str, Any]:
        """Return everything except the curve as plain numbers."""
        sizes = {name: getattr(self, name) for name in ("n_test", "n_rare", "max_flags")}
        return {**sizes, "threshold": self.threshold, "rules": [asdict(r) for r in self.rules]}


def run_demo(config: DemoConfig = DemoConfig()) -> DemoResult:  # noqa: B008 - frozen, can be shared
    """Fit a forest, calibrate it, and compare it with the default threshold on unseen payments."""
    X, y = make_fraud(
        config.n_samples, prevalence=config.prevalence, random_state=config.random_state
    )
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=config.random_state
    )
    forest = RandomForestClassifier(
        config.n_trees, min_samples_leaf=5, n_jobs=-1, random_state=config.random_state
    )
    default = forest.fit(X_train, y_train)
    rules = {"default threshold": default.predict(X_test) == 1}
    for guarantee in ("plug-in", "confident"):
        model = CapacityClassifier(
            forest,
            capacity=config.capacity,
            guarantee=guarantee,
            ties="hash",
            random_state=config.random_state,
            cv=0.5,
        ).fit(X_train, y_train)
        rules[f"capacity, {guarantee}"] = model.flag(X_test)
    rules["capacity, exact batch"] = model.select(X_test)
    return DemoResult(
        rules=[_evaluate(name, flags, y_test, config) for name, flags in rules.items()],
        curve=capacity_curve(y_test, rare_scores(model, X_test, rare_label=1), max_fraction=0.1),
        n_test=y_test.size,
        n_rare=int(y_test.sum()),
        max_flags=config.capacity.max_flags(y_test.size, config.prevalence),
        threshold=float(model.threshold_),
    )


def draw_demo(result: DemoResult, path: Path, config: DemoConfig = DemoConfig()) -> Path:  # noqa: B008
    """Save the picture of detection against capacity."""
    matplotlib = load_extra("matplotlib.figure", needed_for="Drawing the demonstration")
    figure = matplotlib.Figure(figsize=(8, 5), layout="constrained")
    display = CapacityCurveDisplay(
        result.curve, name="Random forest, calibrated on held-out data", capacity=config.capacity
    ).plot(figure.subplots(), x="flags", marginal=True, curve_kwargs={"color": "black"})
    default = result.rules[0]
    display.ax_.plot(
        [default.flagged],
        [default.found / result.n_rare],
        "x",
        color="tab:red",
        markersize=9,
        markeredgewidth=2,
        label="Same forest, default threshold",
    )
    display.ax_.legend(loc="center right")
    display.ax_.set_title("What does a review capacity find?")
    with write_whole(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.removeprefix(".") or "png")
    return path


def _evaluate(rule: str, flagged: Mask, y_test: Any, config: DemoConfig) -> DemoRule:
    options: dict[str, Any] = {"capacity": config.capacity, "rare_label": 1}
    low, high = adjusted_detection_interval(y_test, flagged.astype(int), **options)
    return DemoRule(
        rule=rule,
        flagged=int(flagged.sum()),
        found=int(np.count_nonzero(flagged & (y_test == 1))),
        adjusted_detection=adjusted_detection_score(y_test, flagged.astype(int), **options),
        low=low,
        high=high,
    )
