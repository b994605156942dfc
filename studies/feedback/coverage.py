"""Coverage and width of intervals for the detection, from probes below the cut.

A stream of days is simulated: cases, slots, a share of probes, and a model that is good, poor or
inverted. Each run draws its probes, learns their outcomes (with `--late`, of a part of them only),
and estimates the detection. Beside our interval stand a
normal interval of the inverse-probability estimate, one of the ratio estimate (Hájek), and the
prediction-powered interval of `ppi_py`, all on the same draws.

    python -m studies.feedback.coverage --runs 2000 --out studies/feedback/coverage.csv
"""

from __future__ import annotations

import argparse
import csv
import itertools
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from shortlist.feedback import estimate_missed

PREVALENCE = 0.02
SHIFTS = {"good": 2.5, "poor": 1.0, "inverted": -1.0}
CASES_PER_SLOT = 50
Z = norm.ppf(0.975)


class Day:
    """A day of a stream: the cut lies where the slots left for scores are spent on average."""

    def __init__(self, slots, probe, shift):
        self.n_cases, self.n_probes = CASES_PER_SLOT * slots, int(probe * slots)
        self.shift = shift
        target = (slots - self.n_probes) / self.n_cases

        def excess(cut):
            rare, common = norm.sf(cut - shift), norm.sf(cut)
            return PREVALENCE * rare + (1 - PREVALENCE) * common - target

        self.cut = brentq(excess, -20, 20)
        self.rare_above, self.common_above = norm.sf(self.cut - shift), norm.sf(self.cut)
        # What the model predicts on average below the cut, if it knows its own distribution.
        share_below = 1 - target
        self.mean_prediction = PREVALENCE * (1 - self.rare_above) / share_below

    def draw(self, rng):
        """Return rare cases found and missed, cases below the cut, and what the probes show."""
        n_rare = rng.binomial(self.n_cases, PREVALENCE)
        found = rng.binomial(n_rare, self.rare_above)
        common = rng.binomial(self.n_cases - n_rare, 1 - self.common_above)
        below = n_rare - found + common
        hits = rng.hypergeometric(n_rare - found, common, self.n_probes)
        is_hit = np.arange(self.n_probes) < hits
        ends = np.where(is_hit, norm.cdf(self.cut - self.shift), norm.cdf(self.cut))
        scores = norm.ppf(rng.random(self.n_probes) * ends) + np.where(is_hit, self.shift, 0.0)
        odds = PREVALENCE / (1 - PREVALENCE) * np.exp(self.shift * (scores - self.shift / 2))
        return found, n_rare - found, below, is_hit, odds / (1 + odds)


def run(rng, day, n_days, *, late=0.0):
    """Simulate one horizon, and return the truth with the intervals of all methods."""
    outcomes, reasons, probabilities = [], [], []
    rare, found, hits, n_below, squared = 0, 0, 0, 0, 0.0
    predicted, labels = [], []
    for _ in range(n_days):
        got, missed, below, is_hit, prediction = day.draw(rng)
        rare, found, n_below = rare + got + missed, found + got, n_below + below
        hits += int(is_hit.sum())
        squared += (below / is_hit.size) ** 2 * is_hit.size * is_hit.var()
        predicted.append(prediction)
        labels.append(is_hit)
        answered = np.where(rng.random(is_hit.size) < late, None, is_hit)
        outcomes += [True] * got + answered.tolist()
        reasons += ["score"] * got + ["probe"] * is_hit.size
        probabilities += [1.0] * got + [is_hit.size / below] * is_hit.size
    ours = estimate_missed(outcomes, reasons, probabilities)
    total, spread = hits * n_below / (day.n_probes * n_days), np.sqrt(squared)
    intervals = {
        "shortlist": (ours.detection_low, ours.detection_high),
        "normal": _detection(found, hits, total - Z * spread, total + Z * spread),
        "hajek": _detection(found, hits, *_hajek(found, hits, total, spread)),
        "ppi": _detection(found, hits, *_ppi(predicted, labels, day.mean_prediction, n_below)),
    }
    return (found + hits) / rare, intervals


def _detection(found, hits, low, high):
    def share(total):
        total = max(total, hits)
        return (found + hits) / (found + total) if found + total else np.nan

    return share(high), share(low)


def _hajek(found, hits, total, spread):
    """Return the ends that the delta method gives for the ratio itself."""
    rare = found + total
    if rare == 0:
        return 0.0, np.inf
    ratio, slope = (found + hits) / rare, (found + hits) / rare**2
    ends = ratio - Z * slope * spread, ratio + Z * slope * spread
    return [(found + hits) / max(end, 1e-9) - found for end in ends[::-1]]


def _ppi(predicted, labels, mean, n_below):
    from ppi_py import ppi_mean_ci

    predicted, labels = np.concatenate(predicted), np.concatenate(labels).astype(float)
    # There are so many unlabelled cases that their own error vanishes; their mean stands for them.
    low, high = ppi_mean_ci(labels, predicted, np.full(10_000, mean), alpha=0.05, lam=1.0)
    return float(np.squeeze(low)) * n_below, float(np.squeeze(high)) * n_below


def main() -> None:
    """Run all settings, and write one row for each method and setting."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--late", type=float, default=0.0, help="share of outcomes still unknown")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    settings = list(itertools.product((40, 400), (0.05, 0.1), (1, 7, 30), SHIFTS))
    rows = []
    for place, (slots, probe, n_days, model) in enumerate(settings):
        day = Day(slots, probe, SHIFTS[model])
        rng = np.random.default_rng([7, place])
        covered: dict[str, list[bool]] = {}
        widths: dict[str, list[float]] = {}
        for _ in range(options.runs):
            truth, intervals = run(rng, day, n_days, late=options.late)
            for method, (low, high) in intervals.items():
                covered.setdefault(method, []).append(low - 1e-12 <= truth <= high + 1e-12)
                widths.setdefault(method, []).append(high - low)
        for method in covered:
            rows.append(
                {
                    "slots": slots,
                    "probe": probe,
                    "days": n_days,
                    "model": model,
                    "late": options.late,
                    "method": method,
                    "coverage": round(float(np.mean(covered[method])), 4),
                    "width": round(float(np.mean(widths[method])), 3),
                    "runs": options.runs,
                }
            )
            print(*rows[-1].values(), flush=True)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
