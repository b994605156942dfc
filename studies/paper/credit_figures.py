"""Three figures on the credit data: `credit`, `credit_smote20` and `aware_svm`.

One method on one draw of the data is the unit that is run and stored. The figures share what they
have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..runner import OnProgress, run_all
from ..tables import Table, summarise
from .credit_methods import METHODS
from .credit_protocol import CreditConfig, capacity_of, draw_sample
from .drawing import draw_credit_grid

__all__ = ["CreditFigure", "CreditRun", "aware_svm", "credit", "credit_smote20"]


@dataclass(frozen=True)
class CreditRun:
    """Everything that the rows of one run depend on."""

    learner: str
    method: str
    prevalence: float
    repetition: int
    multiples: tuple[float, ...]
    rows: int
    seed: int


class CreditFigure:
    """M against the share of rare cases, for some learners and methods.

    The methods `for_all` belong to the first learner and are drawn beside every learner.
    """

    Config = CreditConfig
    #: Two repetitions at three shares.
    QUICK = CreditConfig(prevalences=(0.005, 0.02, 0.05), repetitions=2)

    def __init__(
        self,
        description: str,
        learners: tuple[str, ...],
        methods: tuple[str, ...],
        *,
        for_all: tuple[str, ...] = (),
    ) -> None:
        self.__doc__ = description
        self.learners = learners
        self.methods = methods
        self.for_all = for_all

    def pairs(self) -> list[tuple[str, str]]:
        """List learners and methods."""
        pairs = [(learner, method) for learner in self.learners for method in self.methods]
        return pairs + [(self.learners[0], method) for method in self.for_all]

    def run(
        self,
        config: CreditConfig,
        *,
        store: Path | None = None,
        n_jobs: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Table:
        """Return a row for each repetition, share, learner, method and capacity."""
        runs = runs_of(config, self.pairs())
        return run_all(run_method, runs, store=store, n_jobs=n_jobs, on_progress=on_progress)

    def digest(self, table: Table) -> Table:
        """Return the means of M over repetitions."""
        by = ["learner", "method", "prevalence", "multiple"]
        return summarise(table, by, "adjusted_detection")

    def draw(self, table: Table) -> Any:
        """Draw a column for each learner and a row for each capacity."""
        return draw_credit_grid(table, self.learners, self.methods, for_all=self.for_all)


def runs_of(config: CreditConfig, pairs: Iterable[tuple[str, str]]) -> list[CreditRun]:
    """List the runs of pairs of learner and method, one whole repetition after another."""
    pairs = list(pairs)
    most = {"svm": min(config.repetitions, config.svm_repetitions)}
    return [
        CreditRun(
            learner, method, prevalence, repetition, config.multiples, config.rows, config.seed
        )
        for repetition in range(config.repetitions)
        for prevalence in config.prevalences
        for learner, method in pairs
        if repetition < most.get(learner, config.repetitions)
    ]


def run_method(run: CreditRun) -> Table:
    """Fit once and judge at every capacity: one row for each."""
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


_THREE_LEARNERS = ("forest", "svm", "knn")

credit = CreditFigure(
    """M on the credit data: forest, support vectors, neighbours at three capacities (section 3.7).

    Two methods are not in the paper: SMOTE with a threshold at the capacity, which makes the
    comparison fair, and the recommended forest.
    """,
    _THREE_LEARNERS,
    ("classical", "smote", "capacity", "smote-calibrated"),
    for_all=("recommended",),
)
credit_smote20 = CreditFigure(
    "The credit data with the SMOTE of appendix A: up to twenty synthetic cases for a rare one.",
    _THREE_LEARNERS,
    ("classical", "smote20", "capacity"),
)
aware_svm = CreditFigure(
    """Support vectors chosen for the capacity: g, g_b and g_b* (section 4.3).

    Two methods are not in the paper's figure: its second variant, the part of the path that detects
    most, and our cross-fitted choice.
    """,
    ("svm",),
    ("classical", "capacity", "aware", "aware-best-prefix", "aware-cross-fit"),
)
