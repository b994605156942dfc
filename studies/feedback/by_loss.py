"""What probes by expected loss gain over probes that treat all cases alike, in values and counts.

    python -m studies.feedback.by_loss     # two minutes; writes by_loss.csv beside this file

Twenty thousand cases a draw, 3,000 slots, half of them probes; 2 % are rare, amounts are lognormal
and at most 500. The model is right, knows nothing (all cases have the same probability), or is
inverted below the cut. `error` is the root mean square of the estimate's error as a share of the
truth, `width` that of the 95 % interval, and `covered` how often it holds.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.special import expit

from shortlist import Capacity, select
from shortlist.feedback import estimate_missed

COLUMNS = ["model", "probes", "of", "draws", "error", "width", "covered"]
DRAWS, N = 400, 20_000


def draw(seed, model, by_loss):
    """Return truth, estimate and interval of what is missed, in values and in cases."""
    rng = np.random.default_rng(seed)
    is_rare = rng.random(N) < 0.02
    scores = rng.normal(size=N) + 1.5 * is_rare
    amounts = np.minimum(rng.lognormal(4, 1, size=N), 500)
    p = expit(1.5 * scores - 1.125 - np.log(49))
    if model == "knows nothing":
        p = np.full(N, 0.02)
    elif model == "inverted":
        p = np.where(p > 0.1, p, 0.1 - p)
    options = {"probe": 0.5, "return_details": True, "random_state": seed}
    if by_loss:
        picked = select(p, Capacity.count(3_000), values=amounts, **options)
    else:  # the same list, and probes that treat all cases alike
        picked = select(p * amounts, Capacity.count(3_000), **options)
    outcomes = np.where(picked.flagged, is_rare, None)
    found = estimate_missed(outcomes, picked.reasons, picked.probabilities, values=amounts)
    missed = is_rare & ~picked.flagged
    for of, answer, truth in (
        ("values", found.value, amounts[missed].sum()),
        ("cases", found, missed.sum()),
    ):
        yield of, (answer.missed / truth, answer.missed_low / truth, answer.missed_high / truth)


def main():
    """Write the table."""
    with Path(__file__).with_name("by_loss.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for model in ("right", "knows nothing", "inverted"):
            for by_loss in (False, True):
                answers = {"values": [], "cases": []}
                for seed in range(DRAWS):
                    for of, answer in draw(seed, model, by_loss):
                        answers[of].append(answer)
                for of, found in answers.items():
                    estimate, low, high = np.array(found).T
                    error = np.sqrt(np.mean((estimate - 1) ** 2))
                    row = [error, np.mean(high - low), np.mean((low <= 1) & (high >= 1))]
                    named = [model, "by loss" if by_loss else "alike", of, DRAWS]
                    writer.writerow([*named, *(f"{each:.3f}" for each in row)])
                    print(*named, *row, flush=True)


if __name__ == "__main__":
    main()
