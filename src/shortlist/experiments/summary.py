"""Every number and ordering that the text of the paper states, with ours beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..datasets import load_credit_default
from . import aware_svm, credit, credit_smote20, ellipses, knn_gain, normal_cauchy
from ._credit_runs import draw_sample
from ._drawing import new_figure
from ._runner import OnProgress, run_all
from ._statements_aware import aware_statements, gain_statements, strongest_statements
from ._statements_credit import credit_statements, data_statements, smote20_statements
from ._statements_plane import ellipse_statements
from ._statements_theory import illustration_statements, rule_statements, scheme_statements
from ._table import Table

__all__ = ["QUICK", "Config", "digest", "draw", "run"]


@dataclass(frozen=True)
class Config:
    """The studies that the statements are checked on; what they have stored is not run again."""

    line: normal_cauchy.Config = field(default_factory=normal_cauchy.Config)
    plane: ellipses.Config = field(default_factory=ellipses.Config)
    credit: credit.Config = field(default_factory=credit.Config)
    smote20: credit_smote20.Config = field(default_factory=credit_smote20.Config)
    gain: knn_gain.Config = field(default_factory=knn_gain.Config)
    aware: aware_svm.Config = field(default_factory=aware_svm.Config)


#: The statements on the quick studies, where most orderings stay open.
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
    line = normal_cauchy.run(config.line, **how)
    on_credit = credit.run(config.credit, **how)
    aware = aware_svm.run(config.aware, **how)
    machines = [
        _Machine(prevalence, config.aware.rows, config.aware.seed)
        for prevalence in config.aware.prevalences
    ]
    statements = [
        *illustration_statements(line, config.line.prevalence, config.line.multiple),
        *rule_statements(),
        *ellipse_statements(ellipses.run(config.plane, **how)),
        *data_statements(load_credit_default()[1]),
        *credit_statements(on_credit),
        *gain_statements(knn_gain.run(config.gain, **how)),
        *aware_statements(aware, run_all(_count_support, machines, store=store, n_jobs=n_jobs)),
        *strongest_statements(on_credit, aware),
        *scheme_statements(),
        *smote20_statements(credit_smote20.run(config.smote20, **how)),
    ]
    return [asdict(statement) for statement in statements]


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
    """Set the statements as a page; what does not agree stands in bold."""
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
