"""Coverage and width of intervals for the detection, from probes below the cut.

A stream of days is simulated: cases, slots, a share of probes, and a model that is good, poor or
inverted. Each run draws its probes by `select` itself, learns the outcomes of the reviewed cases
(and in some designs a part of them only), and estimates the detection. Beside our interval stand a
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
from scipy.stats import norm

from shortlist.feedback import estimate_missed

PREVALENCE = 0.02
SHIFTS = {"good": 2.5, "poor": 1.0, "inverted": -1.0}
CASES_PER_SLOT = 50
Z = norm.ppf(0.975)


def below_the_cut(rng, n_cases, slots, shift, probe):
    """Simulate one day: rare cases found by score, and counts below the cut."""
    n_rare = rng.binomial(n_cases, PREVALENCE)
    scores = rng.normal(size=n_cases)
    scores[:n_rare] += shift
    n_probes = int(probe * slots)
    cut = np.partition(scores, n_cases - (slots - n_probes))[n_cases - (slots - n_probes)]
    is_listed = scores >= cut
    found = int(np.count_nonzero(is_listed[:n_rare]))
    below = np.flatnonzero(~is_listed)
    drawn = rng.choice(below, n_probes, replace=False)
    return found, n_rare - found, below.size, drawn, scores, n_rare


def run(rng, setting, *, late=0.0):
    """Simulate one horizon, and return the truth with the intervals of all methods."""
    slots, probe, n_days, shift = setting
    outcomes, reasons, probabilities = [], [], []
    rare, found, hits, n_below, n_drawn = 0, 0, 0, 0, 0
    squared, predicted, labels, unlabelled = 0.0, [], [], []
    for _ in range(n_days):
        got, missed, below, drawn, scores, n_rare = below_the_cut(
            rng, CASES_PER_SLOT * slots, slots, shift, probe
        )
        is_hit = drawn < n_rare
        rare += got + missed
        found += got
        hits += int(is_hit.sum())
        n_below += below
        n_drawn += drawn.size
        weight = below / drawn.size
        squared += weight**2 * drawn.size * is_hit.var()
        chance = PREVALENCE * norm.pdf(scores - shift)
        chance = chance / (chance + (1 - PREVALENCE) * norm.pdf(scores))
        predicted.append(chance[drawn])
        labels.append(is_hit)
        unlabelled.append(chance.sum() - chance[np.argsort(scores)[-(slots - drawn.size) :]].sum())
        answered = np.where(rng.random(drawn.size) < late, None, is_hit)
        outcomes += [True] * got + answered.tolist()
        reasons += ["score"] * got + ["probe"] * drawn.size
        probabilities += [1.0] * got + [drawn.size / below] * drawn.size
    ours = estimate_missed(outcomes, reasons, probabilities)
    truth = (found + hits) / rare
    share = n_drawn / n_below
    total, spread = hits / share, np.sqrt(squared)
    intervals = {
        "shortlist": (ours.detection_low, ours.detection_high),
        "normal": _detection(found, hits, total - Z * spread, total + Z * spread),
        "hajek": _detection(found, hits, *_hajek(found, hits, total, spread)),
        "ppi": _detection(found, hits, *_ppi(predicted, labels, unlabelled, n_below)),
    }
    return truth, intervals, hits


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


def _ppi(predicted, labels, unlabelled, n_below):
    from ppi_py import ppi_mean_ci

    predicted, labels = np.concatenate(predicted), np.concatenate(labels).astype(float)
    mean = np.full(1, sum(unlabelled) / n_below)
    # The unlabelled part is so large that its own error vanishes; its mean stands for it.
    low, high = ppi_mean_ci(labels, predicted, np.repeat(mean, 10_000), alpha=0.05, lam=1.0)
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
        # Long horizons of many slots cost most, and need no more runs to tell.
        rng = np.random.default_rng([7, place])
        covered: dict[str, list[bool]] = {}
        widths: dict[str, list[float]] = {}
        for _ in range(options.runs):
            truth, intervals, _ = run(rng, (slots, probe, n_days, SHIFTS[model]), late=options.late)
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
