"""One method on one draw of the credit data: the unit that is run, stored and shared by figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..datasets import load_credit_default
from ._credit_methods import METHODS
from ._credit_protocol import CreditSplit, capacity_of, draw_split
from ._table import Table, summarise

__all__ = ["CreditConfig", "CreditRun", "draw_sample", "means_of", "run_method", "runs_of"]


@dataclass(frozen=True)
class CreditConfig:
    """Settings that the figures of the credit data share; the paper repeats 100 and 30 times."""

    prevalences: tuple[float, ...] = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05)
    multiples: tuple[float, ...] = (1, 2, 3)
    repetitions: int = 30
    rows: int = 25_000
    seed: int = 0


@dataclass(frozen=True)
class CreditRun:
    """What the rows of one run depend on."""

    learner: str
    method: str
    prevalence: float
    repetition: int
    multiples: tuple[float, ...]
    rows: int
    seed: int


def runs_of(config: CreditConfig, pairs: Iterable[tuple[str, str]]) -> list[CreditRun]:
    """List the runs of pairs of learner and method, whole repetitions first."""
    pairs = list(pairs)
    return [
        CreditRun(
            learner, method, prevalence, repetition, config.multiples, config.rows, config.seed
        )
        for repetition in range(config.repetitions)
        for prevalence in config.prevalences
        for learner, method in pairs
    ]


def run_method(run: CreditRun) -> Table:
    """Fit once, and judge at every capacity: one row for each."""
    split, seed = draw_sample(run.rows, run.prevalence, run.repetition, run.seed)
    rule = METHODS[run.method](run.learner, split, seed, run.prevalence)
    return [
        {
            "learner": run.learner,
            "method": run.method,
            "prevalence": run.prevalence,
            "repetition": run.repetition,
            "multiple": b,
            **asdict(rule(capacity_of(b, run.prevalence))),
        }
        for b in run.multiples
    ]


def means_of(table: Table) -> Table:
    """Return M for each learner, method, share and capacity, with errors and repetitions."""
    keys = ["learner", "method", "prevalence", "multiple"]
    return summarise(table, keys, "adjusted_detection")


def draw_sample(
    rows: int, prevalence: float, repetition: int, seed: int
) -> tuple[CreditSplit, int]:
    """Draw the split of a repetition, the same for all methods, and a seed for what follows."""
    X, y = _credit(rows)
    rng = np.random.default_rng([seed, repetition])
    return draw_split(X, y, prevalence=prevalence, rng=rng), int(rng.integers(2**31))


@lru_cache(maxsize=2)
def _credit(rows: int) -> tuple[Any, Any]:
    return load_credit_default(rows=rows)
