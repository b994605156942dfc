"""How often an alarm is raised, and what a late announcement of the capacity costs.

    python -m studies.online.alarms

`alarms.csv` has the share of streams with an alarm and the median delay, by the true rate.
`announcements.csv` has the error of the flag rate when changes of capacity are announced late, with
and without the correction by `at`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from shortlist import Capacity
from shortlist.online import QuantileTracker, RateAlarm
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


def announcement_table(blocks: int) -> Table:
    """Alternate between 1 % and 0.4 % every 5,000 items, and announce each change late."""
    rng = np.random.default_rng(0)
    length, rates = 5_000, np.where(np.arange(blocks) % 2 == 0, 0.01, 0.004)
    scores, calibration = rng.normal(size=blocks * length), rng.normal(size=20_000)
    rows = []
    for delay in (0, 250, 1_000, 2_500):
        for corrected in (False, True):
            tracker = QuantileTracker(
                Capacity.fraction(0.01), calibration_scores=calibration, step=0.2
            )
            flags = _announced_late(tracker, scores, rates, length, delay, corrected)
            errors = np.abs(flags - rates * length) / (rates * length)
            total = flags.sum() / (rates * length).sum()
            rows.append(
                {
                    "items_late": delay,
                    "corrected": corrected,
                    "error_of_a_block": float(errors.mean()),
                    "total_over_allowed": float(total),
                    "blocks": blocks,
                }
            )
    return rows


def _announced_late(
    tracker: QuantileTracker,
    scores: np.ndarray,
    rates: np.ndarray,
    length: int,
    delay: int,
    corrected: bool,
) -> np.ndarray:
    """Return the flags of each block."""
    flagged, times = [], np.arange(scores.size, dtype=float)
    for block, rate in enumerate(rates):
        start = block * length
        for part in (slice(start, start + delay), slice(start + delay, start + length)):
            if part.start == start + delay:
                since = float(start) if corrected and delay else None
                tracker.set_capacity(Capacity.fraction(float(rate)), at=since)
            flagged.append(tracker.decide_many(scores[part], at=times[part]).flagged)
    return np.concatenate(flagged).reshape(rates.size, length).sum(axis=1)


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the streams")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summaries")
    options = parser.parse_args()
    for name, rows in (
        ("alarms", alarm_table(100 if options.quick else 1_000)),
        ("announcements", announcement_table(20 if options.quick else 200)),
    ):
        write_table(rows, options.out / f"{name}.csv")
        print("\n".join(markdown_table(rows)) + "\n")


if __name__ == "__main__":
    main()
