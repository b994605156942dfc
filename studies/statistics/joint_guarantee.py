"""How often joint capacities are exceeded on future items, and what it costs to prevent that.

    python -m studies.statistics.joint_guarantee

Calibration items are drawn with replacement from a large population with known posteriors. The true
flag rates of a rule are its rates in the population: nothing is estimated. `joint_guarantee.csv`
has a row for each guarantee and number of calibration items.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from shortlist import Capacity
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.multiclass import MulticlassCapacityClassifier
from studies.tables import markdown_table, write_table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class JointGuaranteeConfig:
    """Five Gaussian rare classes around a common one, and a capacity of `multiple` for each."""

    sizes: tuple[int, ...] = (1_000, 4_000, 16_000)
    n_trials: int = 300
    prevalences: tuple[float, ...] = (0.01, 0.015, 0.02, 0.025, 0.03)
    multiple: int = 1
    error: float = 0.05
    n_population: int = 50_000
    random_state: int = 0

    @property
    def shares(self) -> np.ndarray:
        """The prevalence of each class, the common one first."""
        return np.array([1 - sum(self.prevalences), *self.prevalences])

    @property
    def capacities(self) -> dict[int, Capacity]:
        """The capacity of each rare class, as an exact fraction of all items."""
        ratios = [self.multiple * Fraction(str(share)) for share in self.prevalences]
        return {label: Capacity.fraction(ratio) for label, ratio in enumerate(ratios, 1)}


@dataclass(frozen=True)
class JointGuaranteeRow:
    """One line of the table."""

    guarantee: str
    n_calibration: int
    any_class_over: float
    rate_over_capacity: float
    objective_over_optimum: float


class KnownPosteriors(ClassifierMixin, BaseEstimator):
    """A classifier whose items are their own posteriors."""

    def fit(self, X: Any, y: Any) -> KnownPosteriors:
        """Learn the labels."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the posteriors."""
        return np.asarray(X)


class Rates(NamedTuple):
    """The true flag rate of each rare class, and the true objective."""

    flagged: np.ndarray
    objective: float


def run(config: JointGuaranteeConfig) -> list[JointGuaranteeRow]:
    """Calibrate many times at each size and look up the true rates."""
    rng = np.random.default_rng(config.random_state)
    population = _population(config, rng)
    optimum = _rates("plug-in", population, population, config, 0).objective
    rows = []
    for n in config.sizes:
        drawn = [rng.integers(len(population), size=n) for _ in range(config.n_trials)]
        for guarantee in ("plug-in", "expected", "confident"):
            results = [
                _rates(guarantee, population[items], population, config, seed)
                for seed, items in enumerate(drawn)
            ]
            rows.append(_row(guarantee, n, results, optimum, config))
    return rows


def _population(config: JointGuaranteeConfig, rng: np.random.Generator) -> np.ndarray:
    """Draw items and return their posteriors."""
    shares, n_rare = config.shares, len(config.prevalences)
    centres = np.vstack([np.zeros(4), 2 * rng.normal(size=(n_rare, 4))])
    labels = rng.choice(shares.size, p=shares, size=config.n_population)
    x = centres[labels] + rng.normal(size=(config.n_population, 4))
    densities = shares * np.exp(-0.5 * ((x[:, np.newaxis] - centres) ** 2).sum(axis=2))
    return densities / densities.sum(axis=1, keepdims=True)


def _rates(
    guarantee: str,
    sample: np.ndarray,
    population: np.ndarray,
    config: JointGuaranteeConfig,
    seed: int,
) -> Rates:
    """Calibrate on a sample, and measure the rule on the population."""
    # Labels enter through their shares alone: these are as known as the posteriors.
    counts = np.rint(config.shares[1:] * len(sample)).astype(int)
    labels = np.repeat(np.arange(config.shares.size), [len(sample) - counts.sum(), *counts])
    model = MulticlassCapacityClassifier(
        KnownPosteriors().fit(sample, labels),
        capacities=config.capacities,
        cv="prefit",
        guarantee=guarantee,
        confidence=1 - config.error,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        model.fit(sample, labels)
    chosen = model.predict(population)
    flagged = np.bincount(chosen, minlength=config.shares.size)[1:] / len(population)
    # The value of a label is the posterior over the prevalence.
    value = population[np.arange(len(population)), chosen] / config.shares[chosen]
    return Rates(flagged, float(value.mean()))


def _row(
    guarantee: str, n: int, results: list[Rates], optimum: float, config: JointGuaranteeConfig
) -> JointGuaranteeRow:
    capacities = np.array([float(c.as_ratio()) for c in config.capacities.values()])
    use = np.array([rates.flagged for rates in results]) / capacities
    return JointGuaranteeRow(
        guarantee,
        n,
        any_class_over=float((use > 1).any(axis=1).mean()),
        rate_over_capacity=float(use.mean()),
        objective_over_optimum=float(np.mean([rates.objective for rates in results]) / optimum),
    )


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300, help="calibrations of each size")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summary")
    options = parser.parse_args()
    rows = [asdict(row) for row in run(JointGuaranteeConfig(n_trials=options.trials))]
    write_table(
        [{**row, "calibrations": options.trials} for row in rows],
        options.out / "joint_guarantee.csv",
    )
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
