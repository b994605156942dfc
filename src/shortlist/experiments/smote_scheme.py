"""How much SMOTE appendix A makes: the factor, and the share of rare cases that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._drawing import SMOTE, new_figure
from ._runner import OnProgress
from ._smote import PAPER_FACTOR, appendix_factor, share_after
from ._table import Table

__all__ = ["QUICK", "Config", "digest", "draw", "run"]


@dataclass(frozen=True)
class Config:
    """The range of shares in the paper."""

    lowest: float = 0.005
    highest: float = 0.05
    n_shares: int = 46


QUICK = Config(n_shares=10)


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return synthetic cases for each rare one, and the share afterwards, for both amounts."""
    if on_progress is not None:
        on_progress(1, 1)  # there is nothing to wait for
    shares = np.linspace(config.lowest, config.highest, config.n_shares).tolist()
    return [
        {
            "scheme": scheme,
            "prevalence": share,
            "synthetic_per_case": factor_at(share) - 1,
            "share_after": share_after(share, factor_at(share)),
        }
        for scheme, factor_at in (("appendix", appendix_factor), ("four", lambda _: PAPER_FACTOR))
        for share in shares
    ]


def digest(table: Table) -> Table:
    """Return some rows."""
    return [row for row in table if row["scheme"] == "appendix"][::9]


def draw(table: Table) -> Any:
    """Draw the two panels of the appendix."""
    figure = new_figure(9, 3.8)
    names = {
        "synthetic_per_case": "A  synthetic cases for each rare one",
        "share_after": "B  share of rare cases after SMOTE",
    }
    for ax, (name, title) in zip(figure.subplots(1, 2), names.items(), strict=True):
        for scheme, style, label in (("appendix", "-", "appendix A"), ("four", ":", "×4")):
            rows = [row for row in table if row["scheme"] == scheme]
            x, y = [r["prevalence"] for r in rows], [r[name] for r in rows]
            ax.plot(x, y, style, color=SMOTE, label=label)
        ax.set(title=title, xlabel=r"share of rare cases $\pi_0$", ylabel=title[3:], ylim=(0, None))
        ax.legend()
    return figure
