"""Detection against patience: deciding at arrival, handing out to whoever asks, and both together.

    python -m studies.online.patience

Thirty days of 5,000 cases, and 100 reviews a day. Reviewers ask at even distances: around the
clock, or in a shift from 9 to 17. "At arrival" is `BudgetController`. "Pull alone" hands out the
highest score that waits and has not expired. "Both" is `PullController`: a case whose patience ends
gets a slot if it is worth one of those left. What is found is divided by what each day's own 100
highest scores hold. `patience.csv` has the means over seeds, and `patience.png` shows them.
"""

from __future__ import annotations

import argparse
import heapq
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from shortlist import Capacity
from shortlist.online import BudgetController, PullController
from studies.online.streams import DAY, Stream, simulate_stream
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent
SLOTS, DAYS, ARRIVALS = 100, 30, 5_000
SCENARIOS = ("stationary", "season", "burst")
PATIENCE = (1, 2, 4, 8, 16, 24)  # hours
HOURS = {"around the clock": (0, 24), "from 9 to 17": (9, 17)}
AT_ARRIVAL, ALONE, BOTH = "at arrival", "pull alone", "both"


def asks(shift: str) -> np.ndarray:
    """Return when reviewers ask."""
    opens, closes = HOURS[shift]
    share = (np.arange(SLOTS) + 0.5) / SLOTS
    hours = opens + (closes - opens) * share
    return (np.arange(DAYS)[:, np.newaxis] * DAY + hours * 3_600).ravel()


def oracle(stream: Stream) -> int:
    """Return what the highest scores of each day hold."""
    days = (stream.times // DAY).astype(int)
    found = 0
    for day in range(DAYS):
        own = np.flatnonzero(days == day)
        found += int(stream.y[own[np.argsort(-stream.scores[own])[:SLOTS]]].sum())
    return found


def _options(stream: Stream) -> dict:
    return {
        "period": DAY,
        "expected_arrivals": ARRIVALS,
        "calibration_scores": stream.calibration_scores,
    }


def at_arrival(stream: Stream) -> int:
    """Decide about each case at once."""
    budget = BudgetController(Capacity.count(SLOTS), **_options(stream))
    return int(stream.y[budget.decide_many(stream.scores, at=stream.times).flagged].sum())


def alone(stream: Stream, when: np.ndarray, patience: float) -> int:
    """Hand out the highest score that waits; whatever nobody asks for expires."""
    waiting: list[tuple[float, int]] = []
    found = first = 0
    for moment in when:
        last = int(np.searchsorted(stream.times, moment, side="right"))
        for i in range(first, last):
            heapq.heappush(waiting, (-stream.scores[i], i))
        first = last
        while waiting and stream.times[waiting[0][1]] + patience <= moment:
            heapq.heappop(waiting)
        if waiting:
            found += int(stream.y[heapq.heappop(waiting)[1]])
    return found


def both(stream: Stream, when: np.ndarray, patience: float) -> int:
    """Also flag what is worth a slot when its patience ends."""
    pull = PullController(Capacity.count(SLOTS), patience=patience, remember=1, **_options(stream))
    first, handed = 0, []
    for moment in when:
        last = int(np.searchsorted(stream.times, moment, side="right"))
        for i in range(first, last):
            pull.add(float(stream.scores[i]), id=i, at=float(stream.times[i]))
        first = last
        handed.append(pull.next(at=float(moment)))
    handed += pull.flagged(at=DAYS * DAY)
    return int(stream.y[[case.id for case in handed if case is not None]].sum())


def patience_table(seeds: int) -> Table:
    """Return a row for each scenario, shift, rule and patience."""
    found: dict[tuple, list[float]] = {}
    for seed in range(900, 900 + seeds):
        for scenario in SCENARIOS:
            stream = simulate_stream(
                scenario, days=DAYS, arrivals=ARRIVALS, max_flags=SLOTS, random_state=seed
            )
            best, first = oracle(stream), at_arrival(stream)
            for shift in HOURS:
                when = asks(shift)
                for hours in PATIENCE:
                    answers = {
                        AT_ARRIVAL: first,
                        ALONE: alone(stream, when, hours * 3_600.0),
                        BOTH: both(stream, when, hours * 3_600.0),
                    }
                    for rule, count in answers.items():
                        key = (scenario, shift, rule, hours)
                        found.setdefault(key, []).append(count / best)
    names = ("scenario", "shift", "rule", "hours")
    return [
        dict(zip(names, key, strict=True))
        | {
            "found": float(np.mean(shares)),
            "error": float(np.std(shares, ddof=1) / np.sqrt(len(shares))) if seeds > 1 else 0.0,
            "seeds": seeds,
        }
        for key, shares in found.items()
    ]


def draw(rows: Table, file: Path) -> None:
    """Draw detection against patience, a panel for each scenario and shift."""
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    panels = figure.subplots(len(HOURS), len(SCENARIOS), sharex=True, sharey=True)
    styles = {AT_ARRIVAL: ("#888888", "--"), ALONE: ("#d1495b", "-"), BOTH: ("#23689b", "-")}
    for line, shift in zip(panels, HOURS, strict=True):
        for panel, scenario in zip(line, SCENARIOS, strict=True):
            for rule, (colour, style) in styles.items():
                own = [
                    row
                    for row in rows
                    if (row["scenario"], row["shift"], row["rule"]) == (scenario, shift, rule)
                ]
                hours, shares = [row["hours"] for row in own], [row["found"] for row in own]
                panel.plot(hours, shares, style, color=colour, marker="o", ms=3, label=rule)
            panel.set_title(f"{scenario}, asked {shift}", fontsize=9)
            panel.set_xscale("log", base=2)
            panel.set_xticks(PATIENCE, [str(hours) for hours in PATIENCE])
    panels[0, 0].legend(fontsize=8)
    figure.supxlabel("patience (hours)")
    figure.supylabel("found, of what each day's own 100 highest scores hold")
    figure.savefig(file, dpi=110)


def main() -> None:
    """Run, save, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    options = parser.parse_args()
    rows = patience_table(options.seeds)
    write_table(rows, options.out / "patience.csv")
    draw(rows, options.out / "patience.png")
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
