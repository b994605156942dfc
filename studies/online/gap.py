"""Re-solving where scores leave a gap: the regret grows like the root of T, not like its logarithm.

    python -m studies.online.gap

T items arrive and K = T / 50 may be taken. A rule that knows all scores takes an item if it is
among the highest K' of the N' to come, for the K' left. Values are uniform, or have a gap at the
quantile 0.98, where the threshold lies. The regret is against the K highest values. `gap.csv` has
its means.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from studies.harness import print_summary
from studies.tables import Table, mean_and_error, write_table

HERE = Path(__file__).parent

REPETITIONS = 400


def values_of(levels: Any, gap: bool) -> Any:
    """Return the values of quantile levels: two groups far apart, or one."""
    if not gap:
        return levels
    return np.where(levels < 0.98, 0.1 * levels, 0.9 + 5 * (levels - 0.98))


@njit
def resolve(levels: Any, k: int) -> Any:
    """Take an item if its level is above the share of flags left."""
    taken = np.zeros(levels.size, np.bool_)
    for t in range(levels.size):
        if k > 0 and levels[t] > 1 - k / (levels.size - t):
            k -= 1
            taken[t] = True
    return taken


def regret(horizon: int, gap: bool) -> dict[str, Any]:
    """Return the mean regret with its standard error."""
    rng, k, lost = np.random.default_rng(0), horizon // 50, []
    for _ in range(REPETITIONS):
        levels = rng.random(horizon)
        values = values_of(levels, gap)
        lost.append(np.sort(values)[-k:].sum() - values[resolve(levels, k)].sum())
    return mean_and_error(lost)


def main() -> None:
    """Write and print a table."""
    rows: Table = [
        {"scores": name, "horizon": horizon, **regret(horizon, gap)}
        for name, gap in (("without a gap", False), ("with a gap at the threshold", True))
        for horizon in (500, 2_000, 8_000, 32_000)
    ]
    write_table(rows, HERE / "gap.csv")
    print_summary(HERE / "gap.csv")


if __name__ == "__main__":
    main()
