"""Detection relative to an oracle: every rule on the scenarios, and on variants held out.

Each stream's result is a row of `results/online_scenarios.csv`, written at once: a run that was
stopped goes on where it was. `python benchmarks/study_online.py` also prints the tables.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from _measure import table
from _online_rules import BUCKET_RULES, COUNT_RULES, RATE_RULES, capped, days_of
from shortlist.online import SCENARIOS, Stream, simulate_stream

FILE = Path(__file__).parents[1] / "results" / "online_scenarios.csv"
COLUMNS = ["set", "scenario", "seed", "rule", "found", "days_over", "worst_day"]
RULES = RATE_RULES | BUCKET_RULES | COUNT_RULES
# Nothing was chosen on these seeds, nor on the variants: other volumes, capacities and prevalences,
# and two worlds that are no scenario.
SEEDS, HELD_OUT_SEEDS = range(700, 704), range(800, 804)
VARIANTS = {
    "few items": {"arrivals": 1_500, "max_flags": 30, "prevalence": 0.01, "n_calibration": 6_000},
    "many items": {
        "arrivals": 10_000,
        "max_flags": 50,
        "prevalence": 0.0025,
        "n_calibration": 40_000,
        "days": 20,
    },
}
# On the variants, only the defaults and what came close to them elsewhere.
CONTENDERS = (
    "QuantileTracker",
    "QuantileTracker, step 0.1",
    "tracker, falling step",
    "WindowController, 5,000",
    "WindowController, 20,000",
    "decayed histogram",
    "PID",
    "BudgetController",
    'BudgetController, pace="recent"',
    'BudgetController, pace="pattern"',
)


def judge(flags: np.ndarray, stream: Stream) -> tuple[float, float, float]:
    """Return detections relative to the oracle, the share of days over, and the worst day."""
    days, found, oracle, loads = days_of(stream), 0.0, 0.0, []
    for day, capacity in enumerate(stream.capacities):
        today = days == day
        n_flags = flags[today].sum()
        top = np.argsort(-stream.scores[today])[:capacity]
        found += stream.y[today][flags[today]].sum() * min(1, capacity / max(n_flags, 1))
        oracle += stream.y[today][top].sum()
        loads.append(n_flags / capacity)
    return found / oracle, float(np.mean(np.array(loads) > 1)), max(loads)


# --- streams -----------------------------------------------------------------------------------


def streams(days: int | None = None) -> Iterator[tuple[str, str, int, Stream]]:
    """Make all streams, each with its set, scenario and seed."""
    shorter = {} if days is None else {"days": days}
    for seed in SEEDS:
        for scenario in SCENARIOS:
            yield (
                "scenarios",
                scenario,
                seed,
                simulate_stream(scenario, random_state=seed, **shorter),
            )
    for seed in HELD_OUT_SEEDS:
        for name, options in VARIANTS.items():
            for scenario in SCENARIOS:
                stream = simulate_stream(scenario, random_state=seed, **(options | shorter))
                yield name, scenario, seed, stream
        yield "other worlds", "falling", seed, _falling(seed, shorter)
        yield "other worlds", "all at once", seed, _all_at_once(seed, shorter)


def _falling(seed: int, options: dict) -> Stream:
    """Every day begins with its highest scores."""
    stream = simulate_stream("rising", random_state=seed, **options)
    order = np.lexsort((-stream.scores, days_of(stream)))
    return stream._replace(scores=stream.scores[order], y=stream.y[order])


def _all_at_once(seed: int, options: dict) -> Stream:
    """Seasons, scores that sink slowly, and a jump upwards after a third of the time."""
    stream = simulate_stream("season", random_state=seed, **options)
    gone = stream.times / stream.times[-1]
    return stream._replace(scores=stream.scores - 0.8 * gone + 0.7 * (gone > 1 / 3))


# --- results -----------------------------------------------------------------------------------


def run(file: Path, days: int | None = None) -> None:
    """Add the rows that are missing."""
    done = {tuple(row[:4]) for row in _rows(file)}
    for name, scenario, seed, stream in streams(days):
        with file.open("a", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            for rule, decide in RULES.items():
                if (name, scenario, str(seed), rule) in done:
                    continue
                if name != "scenarios" and rule not in CONTENDERS:
                    continue
                flags = decide(stream)
                cells = [f"{number:.4f}" for number in judge(flags, stream)]
                writer.writerow([name, scenario, seed, rule, *cells])
                if rule in RATE_RULES:
                    cells = [f"{number:.4f}" for number in judge(capped(flags, stream), stream)]
                    writer.writerow([name, scenario, seed, f"{rule}, then stop", *cells])
                out.flush()


def _rows(file: Path) -> list[list[str]]:
    if not file.exists():
        file.write_text(",".join(COLUMNS) + "\n")
    with file.open(newline="") as lines:
        return list(csv.reader(lines))[1:]


def report(file: Path) -> str:
    """Return all tables."""
    found: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = {}
    for name, scenario, seed, rule, *numbers in _rows(file):
        by_rule = found.setdefault((name, rule), {})
        by_rule.setdefault(scenario, {})[int(seed)] = [float(number) for number in numbers]
    rates = [*RATE_RULES, *BUCKET_RULES]
    counts = [*COUNT_RULES, *(f"{rule}, then stop" for rule in RATE_RULES)]
    parts = [
        _scenario_table("Rules that keep a rate", rates, found),
        _scenario_table("Rules that keep the day's number", counts, found),
        _lead_table("QuantileTracker", rates, found),
        _lead_table("BudgetController", counts, found),
    ]
    return "\n\n".join(parts)


def _scenario_table(title: str, rules: list[str], found: dict) -> str:
    rows = {}
    for rule in rules:
        cells = np.array([list(found["scenarios", rule][each].values()) for each in SCENARIOS])
        means = cells.mean(axis=1)
        mean, spread = _mean_and_error(cells[:, :, 0].mean(axis=0))
        over = [f"{cells[:, :, 1].mean():.0%}", f"{cells[:, :, 2].max():.1f}"]
        shares = [f"{each:.3f}" for each in means[:, 0]]
        rows[rule] = (mean, [rule, *shares, f"**{mean:.3f}** ± {spread:.3f}", *over])
    lines = [line for _, line in sorted(rows.values(), key=lambda row: -row[0])]
    return table([title, *SCENARIOS, "mean", "days over", "worst day"], lines)


def _lead_table(ours: str, rules: list[str], found: dict) -> str:
    """Say by how much our default is ahead of each rule, on the same streams."""
    names = ["scenarios", *VARIANTS, "other worlds"]
    lines = []
    for rule in rules:
        if rule == ours or (next(iter(VARIANTS)), rule) not in found:
            continue
        cells = []
        for name in names:
            mine, theirs = (_by_seed(found[name, who]) for who in (ours, rule))
            lead, error = _mean_and_error(mine - theirs)
            cells.append(f"{lead:+.3f} ± {error:.3f}")
        lines.append([rule, *cells])
    return table([f"lead of {ours} over", *names], lines)


def _by_seed(found: dict[str, dict[int, list[float]]]) -> np.ndarray:
    """Average over scenarios, for each seed."""
    return np.mean([[numbers[0] for numbers in each.values()] for each in found.values()], axis=0)


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    if values.size < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=FILE, help="where the rows are kept")
    parser.add_argument("--days", type=int, default=None, help="shorter streams, for a try")
    arguments = parser.parse_args()
    run(arguments.file, arguments.days)
    print(report(arguments.file))
