"""Coverage of intervals from probes that a controller draws one at a time.

Cases arrive over four weeks, 2,000 a day or (`busy`) between 800 and 4,000 with a weekly pattern. A
`BudgetController` has 100 flags a day, a quarter of them for probes. The outcomes of reviewed cases
say how many rare cases were missed: after a day, a week and four weeks, and at four weekly looks,
which must hold together. With `--late`, a part of the outcomes is unknown. Rows are added to the
file.

    python -m studies.feedback.online --runs 1000 --out studies/feedback/online.csv
"""

from __future__ import annotations

import argparse
import csv
import itertools
from pathlib import Path

import numpy as np

from shortlist import Capacity
from shortlist.feedback import estimate_missed
from shortlist.online import BudgetController
from shortlist.online.decisions import PROBE_WITHOUT_SLOT

PREVALENCE, FLAGS, PROBE, DAY, N_DAYS = 0.03, 100, 0.25, 1.0, 28
SHIFTS = {"good": 2.5, "poor": 1.0, "inverted": -1.0}
ARRIVALS = {
    "steady": np.full(7, 2_000),
    "busy": np.array([2_000, 2_500, 3_000, 4_000, 2_500, 800, 800]),
}
HORIZONS = {"day": 1, "week": 7, "four weeks": 28}


def stream(rng, shift, arrivals):
    """Return scores, moments and which cases are rare, for four weeks."""
    sizes = rng.poisson(np.resize(arrivals, N_DAYS))
    times = np.concatenate([day + np.sort(rng.random(n)) for day, n in enumerate(sizes)])
    is_rare = rng.random(times.size) < PREVALENCE
    return rng.normal(size=times.size) + shift * is_rare, times * DAY, is_rare


def answers(batch, is_rare, late, rng):
    """Return what is known: outcomes, reasons and probabilities of drawn or selected cases."""
    known = np.where(batch.flagged & (rng.random(is_rare.size) >= late), is_rare, None)
    listed = batch.flagged | (batch.codes == PROBE_WITHOUT_SLOT)
    return listed, known, batch.selected_by, batch.probabilities


def run(rng, model, arrivals, late, key):
    """Decide about four weeks, and return which intervals cover, their width, and lost draws."""
    scores, times, is_rare = stream(rng, SHIFTS[model], ARRIVALS[arrivals])
    controller = BudgetController(
        Capacity.count(FLAGS),
        calibration_scores=rng.normal(size=2_000),
        period=DAY,
        expected_arrivals=2_000,
        probe=PROBE,
        probe_key=key,
    )
    batch = controller.decide_many(scores, at=times)  # without ids, the draw is by place
    listed, *columns = answers(batch, is_rare, late, rng)

    def check(n_days, look=None):
        part = listed & (times < n_days * DAY)
        answer = estimate_missed(*(column[part] for column in columns), look=look)
        missed = int((is_rare & ~batch.flagged)[times < n_days * DAY].sum())
        width = answer.detection_high - answer.detection_low
        return answer.missed_low <= missed <= answer.missed_high, width

    covered = {name: check(n_days) for name, n_days in HORIZONS.items()}
    looks = [check(7 * look, look=look) for look in (1, 2, 3, 4)]
    covered["four looks"] = all(ok for ok, _ in looks), looks[-1][1]
    lost = int((batch.codes == PROBE_WITHOUT_SLOT).sum())
    used = batch.flagged.sum() / (FLAGS * N_DAYS)
    return covered, lost, used, int((batch.selected_by == "probe").sum())


def main() -> None:
    """Run all settings, and write a row for each setting and horizon."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--models", nargs="*", default=list(SHIFTS))
    parser.add_argument("--arrivals", nargs="*", default=list(ARRIVALS))
    parser.add_argument("--late", nargs="*", type=float, default=[0.0, 0.2])
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for model, arrivals, late in itertools.product(options.models, options.arrivals, options.late):
        key = f"{model} {arrivals} {late}"
        rng = np.random.default_rng(list(key.encode()))
        results = [run(rng, model, arrivals, late, f"{key} {i}") for i in range(options.runs)]
        for horizon in (*HORIZONS, "four looks"):
            covered = [result[0][horizon] for result in results]
            rows.append(
                {
                    "model": model,
                    "arrivals": arrivals,
                    "late": late,
                    "horizon": horizon,
                    "coverage": round(float(np.mean([ok for ok, _ in covered])), 4),
                    "width": round(float(np.mean([width for _, width in covered])), 3),
                    "probes": round(float(np.mean([result[3] for result in results])), 1),
                    "lost": round(float(np.mean([result[1] for result in results])), 2),
                    "flags used": round(float(np.mean([result[2] for result in results])), 4),
                    "runs": options.runs,
                }
            )
            print(*rows[-1].values(), flush=True)
    if options.out:
        is_new = not options.out.exists()
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            if is_new:
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
