"""How often joint capacities are exceeded out of sample, and what it costs to prevent that.

Calibration items are drawn with replacement from a large population whose posteriors are known, so
that the true flag rates of a rule are its rates in the population: nothing is estimated.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity
from ..exceptions import InsufficientCalibrationWarning
from ..multiclass import JointCapacities, JointRule, JointSample

__all__ = ["JointGuaranteeConfig", "JointGuaranteeRow", "run"]


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
    def fractions(self) -> list[Fraction]:
        """The capacities of the classes as exact fractions of all items."""
        return [self.multiple * Fraction(str(share)) for share in self.prevalences]

    @property
    def capacities(self) -> JointCapacities:
        """The capacities of the classes; no total, no segments."""
        shares = [1 - sum(self.prevalences), *self.prevalences]
        return JointCapacities(
            {j: Capacity.fraction(share) for j, share in enumerate(self.fractions, 1)},
            counts={j: round(share * self.n_population) for j, share in enumerate(shares)},
        )


@dataclass(frozen=True)
class JointGuaranteeRow:
    """One line of the table."""

    guarantee: str
    n_calibration: int
    any_class_over: float
    rate_over_capacity: float
    objective_over_optimum: float


def run(config: JointGuaranteeConfig) -> list[JointGuaranteeRow]:
    """Calibrate many times at each size, and look up the true rates."""
    rng = np.random.default_rng(config.random_state)
    population = _population(config, rng)
    _, optimum = _rates(JointRule.calibrate(population, config.capacities), population)
    rows = []
    for n in config.sizes:
        drawn = [rng.integers(len(population), size=n) for _ in range(config.n_trials)]
        for guarantee in ("plug-in", "confident"):
            results = [
                _rates(_rule(guarantee, population.take(items), config, rng), population)
                for items in drawn
            ]
            rows.append(_row(guarantee, n, results, optimum, config))
    return rows


def _population(config: JointGuaranteeConfig, rng: np.random.Generator) -> JointSample:
    shares = np.array([1 - sum(config.prevalences), *config.prevalences])
    centres = np.vstack([np.zeros(4), 2 * rng.normal(size=(len(config.prevalences), 4))])
    labels = rng.choice(shares.size, p=shares, size=config.n_population)
    x = centres[labels] + rng.normal(size=(config.n_population, 4))
    densities = np.exp(-0.5 * ((x[:, np.newaxis] - centres) ** 2).sum(axis=2))
    # The posterior over the prevalence is the density over the density of all.
    values = densities / (densities @ shares)[:, np.newaxis]
    nowhere = np.zeros(len(values), dtype=np.intp)
    return JointSample(values[:, 1:] - values[:, :1], values[:, 0], nowhere)


def _rule(
    guarantee: str, sample: JointSample, config: JointGuaranteeConfig, rng: np.random.Generator
) -> JointRule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        return JointRule.calibrate(
            sample,
            config.capacities,
            guarantee=guarantee,
            confidence=1 - config.error,
            random_state=rng,
        )


def _rates(rule: JointRule, population: JointSample) -> tuple[NDArray[np.float64], float]:
    columns = rule.decide(population).columns
    counts = np.bincount(columns, minlength=population.gains.shape[1] + 1)[1:]
    return counts / len(population), population.objective(columns)


def _row(
    guarantee: str, n: int, results: list[Any], optimum: float, config: JointGuaranteeConfig
) -> JointGuaranteeRow:
    capacities = np.array([float(share) for share in config.fractions])
    use = np.array([rates for rates, _ in results]) / capacities
    return JointGuaranteeRow(
        guarantee,
        n,
        any_class_over=float((use > 1).any(axis=1).mean()),
        rate_over_capacity=float(use.mean()),
        objective_over_optimum=float(np.mean([value for _, value in results]) / optimum),
    )
