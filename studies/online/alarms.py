"""How often an alarm is raised, and after how many items.

    python -m studies.online.alarms

`alarms.csv` has the share of streams with an alarm and the median delay, by the true rate.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from shortlist import Capacity
from shortlist.online import RateAlarm
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent


def alarm_table(trials: int, n: int = 20_000, rate: float = 0.01, error: float = 0.01) -> Table:
    """Count false alarms and measure the delay of true ones."""
    rows = []
    for factor in (1.0, 1.25, 1.5, 2.0, 4.0):
        rng = np.random.default_rng(int(100 * factor))
        delays = []
        for _ in range(trials):
            evidence = RateAlarm(Capacity.fraction(rate), error=error).track(
                rng.random(n) < factor * rate
            )
            late = evidence >= -np.log(error)
            delays.append(int(np.argmax(late)) if late[-1] else n)
        raised = np.mean(np.array(delays) < n)
        spread = np.sqrt(raised * (1 - raised) / trials)
        rows.append(
            {
                "rate_over_capacity": factor,
                "alarms": float(raised),
                "error": float(spread),
                "median_delay": float(np.median(delays)) if raised > 0.5 else "",
                "streams": trials,
            }
        )
    return rows


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the streams")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summaries")
    options = parser.parse_args()
    rows = alarm_table(100 if options.quick else 1_000)
    write_table(rows, options.out / "alarms.csv")
    print("\n".join(markdown_table(rows)) + "\n")


if __name__ == "__main__":
    main()
