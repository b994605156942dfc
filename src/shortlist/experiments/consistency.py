"""With more data, every family of learners comes to the optimal rule (Theorems of section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..learners import KernelDensityClassifier, KernelKNeighborsClassifier
from ..theory import OptimalRule
from ._table import Table, summarise

__all__ = ["FAMILIES", "ConsistencyConfig", "draw", "run", "slopes"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ConsistencyConfig:
    """Settings of the experiment: two normal classes, a distance of two deviations apart."""

    dimensions: tuple[int, ...] = (1, 2)
    sizes: tuple[int, ...] = (250, 1_000, 4_000, 16_000, 64_000)
    families: tuple[str, ...] = ("kde", "knn", "svm", "forest", "network")
    prevalence: float = 0.1
    multiple: float = 2
    distance: float = 2.0
    n_test: int = 20_000
    repetitions: int = 5
    seed: int = 0


def run(
    config: ConsistencyConfig = ConsistencyConfig(),  # noqa: B008 - frozen
    *,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Table:
    """Return disagreement and lost detection for each dimension, size, repetition and family."""
    table: Table = []
    cut = _optimal_cut(config)
    for dimension in config.dimensions:
        for n in config.sizes:
            for repetition in range(config.repetitions):
                rng = np.random.default_rng([config.seed, dimension, n, repetition])
                for family in config.families:
                    row = _one(family, dimension, n, cut, rng, config)
                    table.append({"dimension": dimension, "n": n, "repetition": repetition, **row})
                    if progress is not None:
                        progress(table[-1])
    return table


def slopes(table: Table, value: str = "disagreement") -> Table:
    """Return, for each family and dimension, the slope of log value against log n, and a test.

    The p-value is one-sided, against a slope that does not fall.
    """
    rows = []
    for dimension, family in dict.fromkeys((r["dimension"], r["family"]) for r in table):
        chosen = [r for r in table if (r["dimension"], r["family"]) == (dimension, family)]
        # Lost detection may be below zero by chance: half a test item stands for nothing lost.
        logs = np.log([max(row[value], 5e-5) for row in chosen])
        fit = stats.linregress(np.log([r["n"] for r in chosen]), logs, alternative="less")
        names = {"dimension": dimension, "family": family, "value": value}
        rows.append({**names, "slope": float(fit.slope), "p_value": float(fit.pvalue)})
    return rows


def draw(table: Table, path: Path) -> Path:
    """Save a picture: one row for each dimension, disagreement and lost detection against n."""
    from matplotlib.figure import Figure

    dimensions = list(dict.fromkeys(row["dimension"] for row in table))
    figure = Figure(figsize=(10, 4 * len(dimensions)), layout="constrained")
    panels = figure.subplots(len(dimensions), 2, squeeze=False)
    for axes_row, dimension in zip(panels, dimensions, strict=True):
        for axes, value, label in (
            (axes_row[0], "disagreement", "disagreement with the optimal rule"),
            (axes_row[1], "lost_detection", "detection lost to the optimal rule"),
        ):
            for family in dict.fromkeys(row["family"] for row in table):
                chosen = [r for r in table if (r["dimension"], r["family"]) == (dimension, family)]
                means = summarise(chosen, ["n"], value)
                axes.errorbar(
                    [row["n"] for row in means],
                    [row["mean"] for row in means],
                    yerr=_error_bars(means, positive=value == "disagreement"),
                    marker="o",
                    markersize=4,
                    capsize=2,
                    label=FAMILIES[family],
                )
            axes.set_xscale("log")
            if value == "disagreement":
                axes.set_yscale("log")
            else:
                axes.axhline(0, color="grey", linewidth=0.8)
            axes.set(xlabel="items n", ylabel=label, title=f"{dimension}-dimensional")
    panels[0, 0].legend()
    figure.savefig(path, dpi=110)
    return path


def _error_bars(means: Table, *, positive: bool) -> Floats:
    """Return two standard errors down and up; on a logarithmic axis they stop above zero."""
    errors = np.array([2 * row["error"] for row in means])
    lowest = 0.9 * np.array([row["mean"] for row in means])
    return np.array([np.minimum(errors, lowest) if positive else errors, errors])


def _one(
    family: str, dimension: int, n: int, cut: float, rng: np.random.Generator, config: Any
) -> dict[str, Any]:
    X, y = _sample(n, dimension, rng, config)
    X_test, y_test = _sample(config.n_test, dimension, rng, config)
    seed = int(rng.integers(2**31))
    model = CapacityClassifier(
        _LEARNERS[family](n // 2, dimension, seed),
        capacity=Capacity.fraction(Capacity.multiple(config.multiple).as_ratio(config.prevalence)),
        rare_label=1,
        ties="hash",
        random_state=seed,
    ).fit(X, y)
    flagged, optimal = model.flag(X_test), _log_ratio(X_test, config) > cut
    rare = y_test == 1
    return {
        "family": family,
        "disagreement": float(np.mean(flagged != optimal)),
        "lost_detection": float(optimal[rare].mean() - flagged[rare].mean()),
    }


def _sample(n: int, dimension: int, rng: np.random.Generator, config: Any) -> tuple[Floats, Any]:
    y = np.zeros(n, dtype=np.int64)
    y[: round(config.prevalence * n)] = 1
    X = rng.normal(size=(n, dimension))
    X[y == 1] += config.distance / np.sqrt(dimension)
    return X, y


def _log_ratio(X: Floats, config: Any) -> Floats:
    along = X.sum(axis=1) / np.sqrt(X.shape[1])  # in the direction from class to class
    return config.distance * (along - config.distance / 2)


def _optimal_cut(config: Any) -> float:
    """Return the level of the log likelihood ratio at the capacity.

    In any dimension it is that of the problem along the line from class to class.
    """
    rule = OptimalRule(
        stats.norm(config.distance),
        stats.norm(),
        prevalence=config.prevalence,
        capacity=Capacity.multiple(config.multiple),
    )
    return float(np.log(rule.gamma))


def _kde(m: int, dimension: int, seed: int) -> Any:
    return KernelDensityClassifier("scott")  # h -> 0 and m h^d -> infinity


def _knn(m: int, dimension: int, seed: int) -> Any:
    return KernelKNeighborsClassifier(round(m**0.7))  # k -> infinity, k / m -> 0


def _svm(m: int, dimension: int, seed: int) -> Any:
    # C -> infinity, C / sqrt(m) -> 0. The hinge loss learns one level of the likelihood ratio; by
    # Proposition 2, balanced weights put it at 1, which is near the capacity here.
    return SVC(C=m**0.25, gamma=0.5, class_weight="balanced")


def _forest(m: int, dimension: int, seed: int) -> Any:
    # Leaves grow, and shrink as a share of the data: the balance for smooth probabilities.
    leaf = max(1, round(m ** (2 / (2 + dimension)) / 2))
    return RandomForestClassifier(100, min_samples_leaf=leaf, random_state=seed)


def _network(m: int, dimension: int, seed: int) -> Any:
    # units * log m / m -> 0
    units = max(4, round(m ** (1 / 3)))
    return MLPClassifier((units,), solver="lbfgs", alpha=1e-3, max_iter=1_000, random_state=seed)


# Learners for m training items; their complexity grows with m, as the theorems ask.
_LEARNERS: dict[str, Callable[[int, int, int], Any]] = {
    "kde": _kde,
    "knn": _knn,
    "svm": _svm,
    "forest": _forest,
    "network": _network,
}
#: Families of the experiment, with their names in the picture.
FAMILIES = {
    "kde": "kernel density",
    "knn": "nearest neighbours",
    "svm": "support vectors",
    "forest": "random forest",
    "network": "neural network",
}
