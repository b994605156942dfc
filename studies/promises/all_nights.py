"""Recalibrated every night: what each night's promise is worth for all nights together.

    python -m studies.promises.all_nights

Every night a threshold is calibrated on n fresh scores with the guarantee "confident". Each night's
rate exceeds the capacity with a probability of at most 5 %; but over a year some night nearly
always does. If night t is calibrated with the confidence 1 - 0.05 / (t (t + 1)), all nights
together hold with 95 %, however many there are, because these errors add up to 0.05. If their
number T is known, 1 - 0.05 / T does. A *growing* sample has the scores of all nights so far, n for
each of them: its nights have nearly all scores in common, and the guarantee "anytime" holds for all
of them together. `all_nights.csv` has the share of years in which some night
was over, and the share of the capacity that was used, by the number of nights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from shortlist import Capacity, calibrate_threshold
from shortlist.thresholds.guarantees import Place, anytime_place, confident_place
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent
RATE, ERROR = 0.05, 0.05
NIGHTS = (1, 7, 30, 365)
SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "each night by itself": lambda night, of: ERROR,
    "all nights, their number open": lambda night, of: ERROR / (night * (night + 1)),
    "all nights, their number known": lambda night, of: ERROR / of,
}

SAMPLE_GROWS: dict[str, Callable[[int, int], Place]] = {
    "each night by itself, growing sample": lambda n, night: confident(n, ERROR),
    "all nights, their number open, growing sample": lambda n, night: confident(
        n, ERROR / (night * (night + 1))
    ),
    "anytime, growing sample": lambda n, night: anytime_place(n, Fraction(str(RATE)), error=ERROR),
}
FAR = 0.9  # no threshold lies below


def confident(n: int, error: float) -> Place:
    """Return the place of a threshold that is over with this probability."""
    return confident_place(n, Fraction(str(RATE)), error=error)


def growing_rates(places: list[Place], n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the true rate of every night, with n more uniform scores each."""
    highest, found = np.empty(0), np.empty(len(places))
    for night, (k, share) in enumerate(places):
        fresh = rng.random(n)
        highest = np.concatenate([highest, fresh[fresh > FAR]])
        upper, lower = np.sort(highest)[[-k - 1, -k - 2]]
        found[night] = 1 - upper + share * (upper - lower)
    return found


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
                last = float(rate.mean()) / RATE
                rows.append(row_of(n, schedule, nights, share, used, last, trials))
    return rows


def growing_table(trials: int, sizes: list[int]) -> Table:
    """Return the same rows for samples that grow."""
    rng, rows = np.random.default_rng(1), []
    for n in sizes:
        for schedule, place_of in SAMPLE_GROWS.items():
            places = [place_of(n * night, night) for night in range(1, NIGHTS[-1] + 1)]
            found = np.array([growing_rates(places, n, rng) for _ in range(trials)])
            for nights in NIGHTS:
                share = float((found[:, :nights] > RATE).any(axis=1).mean())
                used = float(found[:, :nights].mean()) / RATE
                last = float(found[:, nights - 1].mean()) / RATE
                rows.append(row_of(n, schedule, nights, share, used, last, trials))
    return rows


def row_of(n, schedule, nights, share, used, last, trials) -> dict[str, object]:
    """Return a row of the table."""
    return {
        "scores": n,
        "schedule": schedule,
        "nights": nights,
        "some_night_over": share,
        "error": float(np.sqrt(share * (1 - share) / trials)),
        "used": used,
        "used_in_the_last_night": last,
        "trials": trials,
    }


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--scores", type=int, nargs="+", default=[1_000])
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summary")
    options = parser.parse_args()
    rows = nights_table(options.trials, options.scores)
    rows += growing_table(4 * options.trials, options.scores)
    write_table(rows, options.out / "all_nights.csv")
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
