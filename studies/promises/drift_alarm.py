"""How often an alarm is raised, with and without drift from the calibration scores.

    python -m studies.promises.drift_alarm

`DriftAlarm` watches scores and tests whether they are like the calibration scores.
`drift_alarm.csv` has the share of streams with an alarm and the median delay, by the kind of drift.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shortlist.online import DriftAlarm
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent
ERROR, N_ITEMS = 0.01, 10_000

Drift = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _with_outliers(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(scores.size) < 0.02, rng.normal(3, 0.5, scores.size), scores)


DRIFTS: dict[str, Drift] = {
    "none": lambda scores, rng: scores,
    "none, scores rounded": lambda scores, rng: scores,
    "higher by 0.1": lambda scores, rng: scores + 0.1,
    "higher by 0.25": lambda scores, rng: scores + 0.25,
    "higher by 0.5": lambda scores, rng: scores + 0.5,
    "lower by 0.25": lambda scores, rng: scores - 0.25,
    "1.2 times as wide": lambda scores, rng: 1.2 * scores,
    "2 % new high scores": _with_outliers,
}


def _delay(n: int, kind: str, seed: int) -> int:
    """Return after how many items the alarm is raised; one more than there are if never."""
    rng = np.random.default_rng([seed, n])
    calibration, scores = rng.normal(size=n), DRIFTS[kind](rng.normal(size=N_ITEMS), rng)
    if "rounded" in kind:
        calibration, scores = calibration.round(), scores.round()
    evidence = DriftAlarm(calibration, error=ERROR, random_state=seed).track(scores)
    return int(np.searchsorted(evidence, -np.log(ERROR))) + 1


def alarm_table(trials: int) -> Table:
    """Return a row for each number of calibration scores and drift."""
    rows = []
    for n in (500, 5_000):
        for kind in DRIFTS:
            delays = np.array([_delay(n, kind, seed) for seed in range(trials)])
            raised = float(np.mean(delays <= N_ITEMS))
            rows.append(
                {
                    "calibration_scores": n,
                    "drift": kind,
                    "alarms": raised,
                    "error": float(np.sqrt(raised * (1 - raised) / trials)),
                    "median_delay": float(np.median(delays)) if raised > 0.5 else "",
                    "streams": trials,
                }
            )
    return rows


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the streams")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summary")
    options = parser.parse_args()
    rows = alarm_table(100 if options.quick else 1_000)
    write_table(rows, options.out / "drift_alarm.csv")
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
