"""Detection relative to an oracle: every rule on the scenarios, and on variants held out.

    python -m studies.online.scenarios

`scenarios.csv` has the means over streams for each rule and scenario, and over all scenarios;
`leads.csv` has the paired lead of our defaults over the other rules. Each stream's result is saved
immediately: a second call resumes.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from studies.harness import RAW, markdown
from studies.online.rules import BUCKET_RULES, COUNT_RULES, RATE_RULES, capped, days_of
from studies.online.streams import SCENARIOS, Stream, simulate_stream
from studies.tables import (
    Table,
    mean_and_error,
    read_table,
    select_rows,
    summarise,
    write_table,
)

HERE = Path(__file__).parent
COLUMNS = ["set", "scenario", "seed", "rule", "found", "days_over", "worst_day"]
RULES = RATE_RULES | BUCKET_RULES | COUNT_RULES
# Nothing was chosen on these seeds, nor on the variants: other volumes, capacities and prevalences,
# and two kinds of streams that are not among the scenarios.
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
SETS = ["scenarios", *VARIANTS, "other worlds"]
# On the variants, only the defaults and the rules that came close to them elsewhere.
CONTENDERS = (
    "QuantileTracker",
    "QuantileTracker, step 0.1",
    "tracker, falling step",
    "WindowController, 5,000",
    "WindowController, 20,000",
    "decayed histogram",
    "PID",
    "BudgetController",
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


ALL = "all"  # the mean over scenarios
OURS = {"QuantileTracker": [*RATE_RULES, *BUCKET_RULES]}
OURS |= {"BudgetController": [*COUNT_RULES, *(f"{rule}, then stop" for rule in RATE_RULES)]}


def run(file: Path, days: int | None = None) -> None:
    """Add the rows that are missing."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(",".join(COLUMNS) + "\n")
    done = {tuple(row[name] for name in COLUMNS[:4]) for row in read_table(file)}
    for name, scenario, seed, stream in streams(days):
        with file.open("a", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            for rule, decide in RULES.items():
                if (name, scenario, seed, rule) in done:
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


def summary(table: Table) -> Table:
    """Return the means over streams for each set, scenario and rule, and over all scenarios.

    `error` is the standard error of `found` over seeds; `worst_day` is the largest.
    """
    cells = dict.fromkeys((row["set"], row["rule"]) for row in table)
    rows = []
    for name, rule in cells:
        here = select_rows(table, set=name, rule=rule)
        for scenario in [*dict.fromkeys(row["scenario"] for row in here), ALL]:
            some = here if scenario == ALL else select_rows(here, scenario=scenario)
            found = mean_and_error(_by_seed(some))
            rows.append(
                {
                    "set": name,
                    "rule": rule,
                    "scenario": scenario,
                    "found": found["mean"],
                    "error": found["error"],
                    "days_over": float(np.mean([row["days_over"] for row in some])),
                    "worst_day": max(row["worst_day"] for row in some),
                    "seeds": found["count"],
                }
            )
    return rows


def leads(table: Table) -> Table:
    """Return the paired lead of our defaults over each rule, on the same streams."""
    rows = []
    for ours, rules in OURS.items():
        for rule in rules:
            for name in SETS:
                mine, theirs = (
                    _by_seed(select_rows(table, set=name, rule=r)) for r in (ours, rule)
                )
                if rule != ours and theirs:
                    lead = mean_and_error(np.subtract(mine, theirs))
                    rows.append({"set": name, "ours": ours, "rule": rule, **lead})
    return rows


def _by_seed(rows: Table) -> list[float]:
    """Return the mean of `found` over scenarios for each seed, in the order of the seeds."""
    means = {row["seed"]: row["mean"] for row in summarise(rows, ["seed"], "found")}
    return [means[seed] for seed in sorted(means)]


def report(means: Table, compared: Table) -> str:
    """Return all tables in Markdown."""
    rates, counts = OURS.values()
    return "\n\n".join(
        [
            _scenario_table("Rules that keep a rate", rates, means),
            _scenario_table("Rules that keep the day's number", counts, means),
            *(_lead_table(ours, select_rows(compared, ours=ours)) for ours in OURS),
        ]
    )


def _scenario_table(title: str, rules: list[str], means: Table) -> str:
    lines = []
    for rule in rules:
        here = {row["scenario"]: row for row in select_rows(means, set="scenarios", rule=rule)}
        whole = here[ALL]
        shares = [f"{here[each]['found']:.3f}" for each in SCENARIOS]
        mean = f"**{whole['found']:.3f}** ± {whole['error']:.3f}"
        over = [f"{whole['days_over']:.0%}", f"{whole['worst_day']:.1f}"]
        lines.append((whole["found"], [rule, *shares, mean, *over]))
    ordered = [line for _, line in sorted(lines, key=lambda pair: -pair[0])]
    return markdown([title, *SCENARIOS, "mean", "days over", "worst day"], ordered)


def _lead_table(ours: str, compared: Table) -> str:
    lines = []
    for rule in dict.fromkeys(row["rule"] for row in compared):
        cells = {row["set"]: row for row in select_rows(compared, rule=rule)}
        if len(cells) == len(SETS):  # the others were run on the scenarios only
            leads = [f"{cells[name]['mean']:+.3f} ± {cells[name]['error']:.3f}" for name in SETS]
            lines.append([rule, *leads])
    return markdown([f"lead of {ours} over", *SETS], lines)


def main() -> None:
    """Run what is missing, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=None, help="shorter streams, for a try")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summaries")
    parser.add_argument("--table", action="store_true", help="only print the summaries")
    options = parser.parse_args()
    files = options.out / "scenarios.csv", options.out / "leads.csv"
    if not options.table:
        raw = RAW / ("online_scenarios.csv" if options.days is None else "online_try.csv")
        run(raw, options.days)
        for part, file in zip((summary, leads), files, strict=True):
            write_table(part(read_table(raw)), file)
    print(report(*(read_table(file) for file in files)))


if __name__ == "__main__":
    main()
