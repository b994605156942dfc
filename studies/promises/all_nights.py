"""Recalibrated every night: what each night's promise is worth for all nights together.

    python -m studies.promises.all_nights

Every night a threshold is calibrated on n fresh scores with the guarantee "confident". Each night's
rate exceeds the capacity with a probability of at most 5 %; but over a year some night nearly
always does. If night t is calibrated with the confidence 1 - 0.05 / (t (t + 1)), all nights
together hold with 95 %, however many there are, because these errors add up to 0.05. If their
number T is known, 1 - 0.05 / T does. `all_nights.csv` has the share of years in which some night
was over, and the share of the capacity that was used, by the number of nights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shortlist import Capacity, calibrate_threshold
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent
RATE, ERROR = 0.05, 0.05
NIGHTS = (1, 7, 30, 365)
SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "each night by itself": lambda night, of: ERROR,
    "all nights, their number open": lambda night, of: ERROR / (night * (night + 1)),
    "all nights, their number known": lambda night, of: ERROR / of,
}


def rates(n: int, confidence: float, trials: int, rng: np.random.Generator) -> np.ndarray:
    """Return the true rates of thresholds that were calibrated on n uniform scores."""
    found = np.empty(trials)
    for trial in range(trials):
        made = calibrate_threshold(
            rng.random(n),
            Capacity.fraction(RATE),
            guarantee="confident",
            confidence=confidence,
            ids=np.arange(n),
            random_state=trial,
        )
        # All scores above the threshold, and by lot a share of those down to the next one.
        found[trial] = 1 - made.value + made.share * (made.value - made.lower_value)
    return found


def nights_table(trials: int, sizes: list[int]) -> Table:
    """Return a row for each number of scores, schedule and number of nights."""
    rng, rows = np.random.default_rng(0), []
    for n in sizes:
        for schedule, error_of in SCHEDULES.items():
            for nights in NIGHTS:
                over, used = np.zeros(trials, dtype=bool), 0.0
                for night in range(1, nights + 1):
                    rate = rates(n, 1 - error_of(night, nights), trials, rng)
                    over |= rate > RATE
                    used += float(rate.mean()) / RATE / nights
                share = float(over.mean())
                rows.append(
                    {
                        "scores": n,
                        "schedule": schedule,
                        "nights": nights,
                        "some_night_over": share,
                        "error": float(np.sqrt(share * (1 - share) / trials)),
                        "used": used,
                        "used_in_the_last_night": float(rate.mean()) / RATE,
                        "trials": trials,
                    }
                )
    return rows


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--scores", type=int, nargs="+", default=[1_000])
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summary")
    options = parser.parse_args()
    rows = nights_table(options.trials, options.scores)
    write_table(rows, options.out / "all_nights.csv")
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
