"""How often each promise about a threshold is broken, and how much of the capacity it uses.

    python -m studies.promises.coverage     # two minutes; writes coverage.csv beside this file

Every row of the table names a promise, a setting and a rule, the error that the rule promises and
the error that it makes (computed exactly where the column `how` says so), and the mean flag rate as
a share of the capacity. Rules that promise nothing of the kind stand beside for comparison: they
show what a rule with more knowledge, or with an approximation, would use.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

from shortlist._core.intervals import clopper_pearson_lower, clopper_pearson_upper
from shortlist.thresholds._bands import (
    bounded_places,
    crossing_probability,
    local_level,
    simultaneous_place,
)
from shortlist.thresholds.guarantees import (
    Place,
    _overrun_probability,
    confident_place,
    keeps_multiple,
    next_batch_place,
)

COLUMNS = ["promise", "setting", "rule", "how", "promised", "error", "use"]
ERROR = 0.05


def main() -> None:
    """Write the table."""
    rows = [*intervals(), *many_batches(), *any_capacity(), *multiples()]
    with (Path(__file__).parent / "coverage.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row])
            print(*row, sep="  ")


# --- the interval of a threshold, for tied scores -------------------------------------------------


def intervals():
    """Count the discrete settings in which an interval covers less than it says."""
    chances = [
        shares
        for parts in (1, 2, 3, 4)
        for shares in product((0.02, 0.1, 0.3, 0.6, 0.9, 1.0), repeat=parts)
        if abs(sum(shares) - 1) < 1e-9
    ]
    chances += [(0.99, 0.01), (0.999, 0.001), (0.45, 0.55), (0.05, 0.05, 0.9), (0.2, 0.3, 0.5)]
    settings = list(
        product(
            chances,
            (3, 5, 10, 20, 30),
            (0, 1, 2, 3, 4, 5, 6, 8, 10, 12),
            (0.5, 0.8, 0.9, 0.95, 0.99),
        )
    )
    settings = [setting for setting in settings if setting[2] < setting[1]]
    for rule in (_as_before, _as_now):
        missed = np.array([_missed(*setting, rule) for setting in settings])
        promised = np.array([1 - confidence for *_, confidence in settings])
        name = f"{rule.__doc__}: {np.mean(missed > promised + 1e-12):.1%} of settings fail"
        worst = int(np.argmax(missed / promised))
        setting = f"{len(settings)} discrete settings, worst"
        yield "interval", setting, name, "exact", float(promised[worst]), float(missed[worst]), ""


def _as_before(k, flagged, n, tail):
    """as before"""
    low = stats.beta.ppf(tail, k + 1, n - k)
    below = clopper_pearson_lower(flagged, n, error=tail)
    return np.where(flagged < k, below, low), stats.beta.ppf(1 - tail, k + 1, n - k)


def _as_now(k, flagged, n, tail):
    """as now"""
    low = clopper_pearson_lower(flagged, n, error=tail)
    return low, clopper_pearson_upper(k, n, error=tail)


def _missed(chances, n, k, confidence, bounds):
    """Return the exact probability that the interval misses the rate."""
    counts = _compositions(n, len(chances))
    weight = stats.multinomial(n, chances).pmf(counts)
    above = n - np.cumsum(counts, axis=1)  # scores above each value, the values ascending
    value = np.argmax(above <= k, axis=1)  # the (k + 1)-th largest score
    flagged = above[np.arange(len(counts)), value]
    rate = (1 - np.cumsum(chances))[value]
    low, high = bounds(k, flagged, n, (1 - confidence) / 2)
    return float(weight[(rate < low - 1e-12) | (rate > high + 1e-12)].sum())


def _compositions(n, parts):
    heads = np.array(list(product(range(n + 1), repeat=parts - 1)), dtype=int)
    heads = heads[heads.sum(axis=1) <= n]
    return np.column_stack([heads, n - heads.sum(axis=1)])


# --- many batches ---------------------------------------------------------------------------------


def many_batches():
    """Compare the joint promise with an error of delta / m for each batch."""
    for n, batch, m in product((1_000, 4_000), (1_000, 10_000), (1, 5, 20, 100)):
        flags = batch // 50
        rules = {
            "joint": next_batch_place(n, flags, batch, error=ERROR, n_batches=m).k,
            "delta / m": next_batch_place(n, flags, batch, error=ERROR / m).k,
            "one batch only": next_batch_place(n, flags, batch, error=ERROR).k,
        }
        for rule, k in rules.items():
            error = _overrun_probability(Place(k), n, flags, batch, m)
            setting = f"n={n} K={flags} N={batch} m={m}"
            use = (k + 1) / (n + 1) / 0.02
            yield "next-batch", setting, f"{rule}: k={k}", "exact", ERROR, error, use


# --- every capacity at once -----------------------------------------------------------------------


def any_capacity():
    """Compare the band with the rule for one capacity and that of Dvoretzky, Kiefer, Wolfowitz."""
    for n, c in product((200, 1_000, 4_000, 20_000), ("0.01", "0.02", "0.06", "0.2")):
        share = Fraction(c)
        level, places = local_level(n, ERROR), bounded_places(n)
        together = crossing_probability(n, level, places)
        all_levels = crossing_probability(n, ERROR, places)
        massart = int(np.floor(n * (float(c) - np.sqrt(np.log(1 / ERROR) / 2 / n))))
        for rule, k, error in (
            ("band", simultaneous_place(n, share, error=ERROR).k, together),
            ("one capacity", confident_place(n, share, error=ERROR).k, all_levels),
            ("DKW", max(massart, -1), ""),
        ):
            use = (k + 1) / (n + 1) / float(c)
            yield "simultaneous", f"n={n} c={c}", f"{rule}: k={k}", "exact", ERROR, error, use


# --- a multiple of an unknown prevalence ----------------------------------------------------------


def multiples(trials: int = 1_000):
    """Simulate walks with the exact test, the one before it, and rules that know or assume more."""
    for n, prevalence in ((1_000, 0.02), (4_000, 0.02)):
        for b in ("1/2", "9/10", "1", "1.0000001", "11/10", "2", "3", "5"):
            rates = _walks(n, prevalence, Fraction(b), trials)
            for rule, found in rates.items():
                over = float(np.mean(found > float(Fraction(b)) * prevalence))
                use = float(np.mean(found)) / (float(Fraction(b)) * prevalence)
                setting = f"n={n} prevalence={prevalence} b={b}"
                yield "multiple", setting, rule, f"{trials} walks", ERROR, over, use


def _walks(n, prevalence, b, trials):
    rng = np.random.default_rng(0)
    tests = {"exact, lots": _exact, "Berger-Boos (before)": _berger_boos, "z (approximate)": _z}
    rates: dict[str, list[float]] = {name: [] for name in (*tests, "prevalence known")}
    for _ in range(trials):
        y = rng.uniform(size=n) < prevalence
        scores = rng.normal(size=n) + 2 * y
        order = np.argsort(-scores)
        n_rare = int(y.sum())
        steps = np.arange(min(n, int(b * n_rare)) + 1)
        found = np.r_[0, np.cumsum(y[order])][steps]
        lots = rng.uniform(size=n_rare)
        for name, test in tests.items():
            passed = test(found, steps - found, n_rare, n, b, lots)
            k = int(passed.size if passed.all() else np.argmin(passed)) - 1
            rates[name].append(_rate(scores[order], k, prevalence))
        known = confident_place(n, b * Fraction(str(prevalence)), error=ERROR).k
        rates["prevalence known"].append(_rate(scores[order], known, prevalence))
    return {name: np.array(found) for name, found in rates.items()}


def _rate(ranked, k, prevalence):
    if k < 0:
        return 0.0
    tails = stats.norm.sf([ranked[k] - 2, ranked[k]])
    return prevalence * tails[0] + (1 - prevalence) * tails[1]


def _exact(found, alarms, n_rare, n, b, lots):
    return keeps_multiple(found, alarms, n_rare, b, error=ERROR, lots=lots)


def _berger_boos(found, alarms, n_rare, n, b, lots):
    """Bound the sensitivity with a tenth of the error, as the library did except at b = 1."""
    if b == 1:
        return stats.binom.cdf(alarms, alarms + n_rare - found, 0.5) <= ERROR
    room = np.maximum(float(b) - clopper_pearson_upper(found, n_rare, error=ERROR / 10), 0.0)
    return stats.binom.cdf(alarms, n_rare + alarms, room / (1 + room)) <= 0.9 * ERROR


def _z(found, alarms, n_rare, n, b, lots):
    """Take the mean of +1 per alarm, 1 - b per hit and -b per miss as normal."""
    b = float(b)
    total = alarms + (1 - b) * found - b * (n_rare - found)
    squares = alarms + (1 - b) ** 2 * found + b**2 * (n_rare - found)
    return total <= stats.norm.ppf(ERROR) * np.sqrt(np.maximum(squares - total**2 / n, 1e-12))


if __name__ == "__main__":
    main()
