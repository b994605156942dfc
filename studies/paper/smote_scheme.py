"""How much SMOTE appendix A makes: synthetic cases for each rare one, and the resulting share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._core.arrays import Floats
from shortlist._core.extras import load_extra

from ..runner import OnProgress
from ..tables import Table
from .drawing import SMOTE, new_figure

__all__ = [
    "PAPER_FACTOR",
    "QUICK",
    "Config",
    "appendix_factor",
    "digest",
    "draw",
    "oversample",
    "run",
    "share_after",
]

#: Rare cases after SMOTE for each rare case before it, in section 3.7.
PAPER_FACTOR = 4.0
_NEIGHBORS = 5


def oversample(
    X: Floats, y: NDArray[np.int64], *, factor: float, seed: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Add synthetic rare cases (label 1) until there are `factor` times as many as before.

    Each lies between a rare case and one of its five nearest, by distances in the units of the
    data. The paper does not say whether it standardises features first. With standardised
    features, SMOTE finds more with support vectors (M of 0.06 instead of 0.03 at a share of 0.02)
    and differs more from a rerun of the study in R.
    """
    n_rare = int(np.count_nonzero(y == 1))
    if n_rare < 2:
        raise ValueError(f"SMOTE joins two rare items by a line; the sample has {n_rare}.")
    over_sampling = load_extra("imblearn.over_sampling", needed_for="SMOTE")
    smote = over_sampling.SMOTE(
        sampling_strategy={1: round(factor * n_rare)},
        k_neighbors=min(_NEIGHBORS, n_rare - 1),
        random_state=seed,
    )
    return smote.fit_resample(X, y)


def appendix_factor(prevalence: float) -> float:
    """Return the factor of appendix A: large where rare cases are few.

    The text gives one point, twenty synthetic cases for each rare one at a share of 0.005, and says
    that the number falls along a curve. The curve is our choice: the inverse root of the share.
    """
    return 1.0 + 20.0 * float(np.sqrt(0.005 / prevalence))


def share_after(prevalence: float, factor: float) -> float:
    """Return the share of rare cases after each has become `factor` cases."""
    return prevalence * factor / (prevalence * factor + 1 - prevalence)


@dataclass(frozen=True)
class Config:
    """The range of shares in the paper."""

    lowest: float = 0.005
    highest: float = 0.05
    n_shares: int = 46


#: A coarser grid.
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
        on_progress(1, 1)  # the table takes no time
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
    """Return every ninth row of the appendix scheme."""
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
