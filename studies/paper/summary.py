"""Every number and ordering that the text of the paper states, with our results beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..credit_data import clients
from ..runner import OnProgress, run_all
from ..tables import Table
from . import ellipses, knn_gain, normal_cauchy
from .aware_statements import aware_statements, gain_statements, strongest_statements
from .credit_figures import aware_svm, credit, credit_smote20
from .credit_protocol import CreditConfig, draw_sample
from .credit_statements import credit_statements, data_statements, smote20_statements
from .drawing import new_figure
from .simulated_statements import (
    ellipse_statements,
    illustration_statements,
    rule_statements,
    scheme_statements,
)
from .statements import Statement

__all__ = ["QUICK", "Config", "digest", "draw", "run", "statements_of"]


@dataclass(frozen=True)
class Config:
    """The studies that the statements are checked on; stored results are not run again."""

    line: normal_cauchy.Config = field(default_factory=normal_cauchy.Config)
    plane: ellipses.Config = field(default_factory=ellipses.Config)
    credit: CreditConfig = field(default_factory=CreditConfig)
    smote20: CreditConfig = field(default_factory=CreditConfig)
    gain: knn_gain.Config = field(default_factory=knn_gain.Config)
    aware: CreditConfig = field(default_factory=CreditConfig)


#: The statements on the quick studies, which leave most orderings open.
QUICK = Config(
    normal_cauchy.QUICK,
    ellipses.QUICK,
    credit.QUICK,
    credit_smote20.QUICK,
    knn_gain.QUICK,
    aware_svm.QUICK,
)


@dataclass(frozen=True)
class _Machine:
    prevalence: float
    rows: int
    seed: int


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return a row for each statement: the paper's, ours, whether they agree, and the reason."""
    how: dict[str, Any] = {"store": store, "n_jobs": n_jobs, "on_progress": on_progress}
    tables = {
        "normal-cauchy": normal_cauchy.run(config.line, **how),
        "credit": credit.run(config.credit, **how),
        "aware-svm": aware_svm.run(config.aware, **how),
        "ellipses": ellipses.run(config.plane, **how),
        "knn-gain": knn_gain.run(config.gain, **how),
        "credit-smote20": credit_smote20.run(config.smote20, **how),
    }
    return [s.row() for s in statements_of(tables, config, store=store, n_jobs=n_jobs)]


def statements_of(
    tables: dict[str, Table],
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
) -> list[Statement]:
    """Check all statements on the tables of the other figures."""
    machines = [
        _Machine(prevalence, config.aware.rows, config.aware.seed)
        for prevalence in config.aware.prevalences
    ]
    n_support = run_all(_count_support, machines, store=store, n_jobs=n_jobs)
    line, gain = config.line, tables["knn-gain"]
    return [
        *illustration_statements(tables["normal-cauchy"], line.prevalence, line.multiple),
        *rule_statements(),
        *ellipse_statements(tables["ellipses"]),
        *data_statements(clients()[1]),
        *credit_statements(tables["credit"]),
        *gain_statements(gain, knn_gain.digest(gain)),
        *aware_statements(tables["aware-svm"], n_support),
        *strongest_statements(tables["credit"], tables["aware-svm"]),
        *scheme_statements(),
        *smote20_statements(tables["credit-smote20"]),
    ]


def _count_support(machine: _Machine) -> Table:
    """Count the support vectors of the paper's machine on the fitting half of the first draw."""
    split, _ = draw_sample(machine.rows, machine.prevalence, 0, machine.seed)
    X = StandardScaler().fit_transform(split.X_train[split.fit_half])
    svc = SVC(C=1, gamma=0.1).fit(X, split.y_train[split.fit_half])
    return [{"prevalence": machine.prevalence, "n_support": int(svc.n_support_.sum())}]


def digest(table: Table) -> Table:
    """Return the table itself."""
    return table


_COLUMNS: tuple[tuple[str, float], ...] = (
    ("section", 0.0),
    ("statement", 0.06),
    ("paper", 0.44),
    ("ours", 0.53),
    ("agrees", 0.95),
)


def draw(table: Table) -> Any:
    """Draw the statements as a page; an answer other than "yes" is bold."""
    figure = new_figure(15, 0.6 + 0.24 * len(table))
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(len(table) + 0.5, -1))
    for name, x in _COLUMNS:
        ax.text(x, -0.3, name, weight="bold", fontsize=9)
        for line, row in enumerate(table):
            weight = "bold" if name == "agrees" and row[name] != "yes" else "normal"
            ax.text(x, line + 0.7, str(row[name]), fontsize=8, weight=weight)
    ax.hlines(range(len(table) + 1), 0, 1, color="lightgrey", linewidth=0.4)
    return figure
