"""Online control: detection relative to an oracle in eight scenarios, regret, and speed."""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import norm

from _measure import seconds, table
from _online_rules import (
    BUCKET_RULES,
    COUNT_RULES,
    RATE_RULES,
    capped,
    days_of,
    river_filter,
)
from shortlist import Capacity
from shortlist.online import (
    SCENARIOS,
    BudgetController,
    EmaController,
    QuantileTracker,
    Stream,
    TokenBucketController,
    WindowController,
    simulate_stream,
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


def scenario_table(days: int, seeds: int) -> str:
    """Compare all rules on the same streams."""
    streams = {
        name: [simulate_stream(name, days=days, random_state=100 + i) for i in range(seeds)]
        for name in SCENARIOS
    }
    results: dict[str, list[np.ndarray]] = {}
    for name, rule in (RATE_RULES | BUCKET_RULES | COUNT_RULES).items():
        for scenario in SCENARIOS:
            flags = [(rule(stream), stream) for stream in streams[scenario]]
            kept = np.mean([judge(*pair) for pair in flags], axis=0)
            results.setdefault(name, []).append(kept)
            if name in RATE_RULES:
                cut = np.mean([judge(capped(*pair), pair[1]) for pair in flags], axis=0)
                results.setdefault(f"{name}, then stop", []).append(cut)
        print(".", end="", flush=True)
    print()
    groups = {
        "Rules that keep a rate": list(RATE_RULES) + list(BUCKET_RULES),
        "Rules that keep the day's number": [
            *COUNT_RULES,
            *(f"{name}, then stop" for name in RATE_RULES),
        ],
    }
    return "\n\n".join(_group(title, names, results) for title, names in groups.items())


def _group(title: str, names: list[str], results: dict[str, list[np.ndarray]]) -> str:
    means = {name: np.mean(results[name], axis=0) for name in names}
    rows = []
    for name in sorted(names, key=lambda name: -means[name][0]):
        cells = [f"{found:.3f}" for found, _, _ in results[name]]
        worst = max(result[2] for result in results[name])
        share, over, _ = means[name]
        rows.append([name, *cells, f"**{share:.3f}**", f"{over:.0%}", f"{worst:.1f}"])
    headings = [title, *SCENARIOS, "mean", "days over", "worst day"]
    return table(headings, rows)


# --- regret ------------------------------------------------------------------------------------

_PREVALENCE, _SEPARATION = 0.01, 2.5


def _worth(scores: np.ndarray) -> np.ndarray:
    """Return the probability that an item with this score is rare."""
    rare = _PREVALENCE * norm.pdf(scores - _SEPARATION)
    return rare / (rare + (1 - _PREVALENCE) * norm.pdf(scores))


def _draw(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=n) + _SEPARATION * (rng.random(n) < _PREVALENCE)


def regret_table(horizons: tuple[int, ...], repeats: int) -> str:
    """Count detections lost against the top K = 0.02 T, in expectation, as T grows."""
    rng = np.random.default_rng(0)
    calibration = _draw(500_000, rng)
    cut = np.quantile(calibration, 0.98)
    lost: dict[str, list[float]] = {}
    for horizon in horizons:
        k = horizon // 50
        capacity = Capacity.count(k, per=horizon)
        base = BudgetController(capacity, calibration_scores=calibration, pace="recent").state()
        tracker = QuantileTracker(capacity, calibration_scores=calibration, step=0.2).state()
        sums = dict.fromkeys(("fixed threshold, then stop", "tracker, step 0.2", "budget"), 0.0)
        for _ in range(repeats):
            scores = _draw(horizon, rng)
            worth = _worth(scores)
            best = np.sort(worth)[-k:].sum()
            static = scores > cut
            tracked = QuantileTracker.from_state(tracker).decide_many(scores).flagged
            paced = BudgetController.from_state(base).decide_many(scores).flagged
            for name, flags in zip(sums, (static, tracked, paced), strict=True):
                sums[name] += best - worth[np.flatnonzero(flags)[:k]].sum()
        for name, total in sums.items():
            lost.setdefault(name, []).append(total / repeats)
    rows = []
    for name, values in lost.items():
        growth = (values[-1] / values[0]) ** (1 / (len(values) - 1))
        rows.append([name, *(f"{value:.3f}" for value in values), f"{growth:.2f}"])
    return table(["detections lost", *(f"T = {t:,}" for t in horizons), "growth per step"], rows)


# --- speed -------------------------------------------------------------------------------------


def speed_table(n: int) -> str:
    """Time decisions in a bundle and one by one, beside river's QuantileFilter."""
    rng = np.random.default_rng(0)
    scores, calibration = rng.normal(size=n), rng.normal(size=20_000)
    times = np.arange(n) * 86_400 / 5_000
    rate = {"capacity": Capacity.fraction(0.01), "calibration_scores": calibration}
    count = {
        "capacity": Capacity.count(50),
        "period": 86_400,
        "expected_arrivals": 5_000,
        "calibration_scores": calibration,
    }
    makers = {
        "EmaController": lambda: EmaController(**rate),
        "WindowController, 5,000": lambda: WindowController(**rate),
        "QuantileTracker": lambda: QuantileTracker(**rate),
        "TokenBucketController": lambda: TokenBucketController(**rate),
        "BudgetController": lambda: BudgetController(**count),
    }
    few = min(n, 50_000)
    some_days = np.full(few // 5_000 + 1, 50)
    sample = Stream(scores[:few], np.zeros(few), times[:few], some_days, calibration[:10], 86_400)
    peer = seconds(lambda: river_filter(sample), repeats=3) / few * 1e6
    singles = list(zip(scores[:few].tolist(), times[:few].tolist(), strict=True))
    rows = []
    for name, make in makers.items():
        make().decide_many(scores[:10], at=times[:10])  # compile outside the timer
        many = seconds(lambda make=make: make().decide_many(scores, at=times), repeats=3)
        one = seconds(lambda make=make: _one_by_one(make(), singles), repeats=3) / few * 1e6
        rows.append([name, f"{many / n * 1e6:.2f}", f"{one:.1f}", f"{one / peer:.2f}"])
    headings = ["controller", "decide_many (µs per item)", "decide (µs)", "decide / river's filter"]
    return table(headings, rows)


def _one_by_one(controller, singles) -> None:
    for score, at in singles:
        controller.decide(score, at=at)


def main(*, quick: bool = False) -> str:
    """Return the three tables."""
    days, seeds = (12, 1) if quick else (40, 3)
    horizons, repeats = ((500, 2_000), 50) if quick else ((500, 2_000, 8_000, 32_000), 200)
    parts = [
        scenario_table(days, seeds),
        regret_table(horizons, repeats),
        speed_table(10**5 if quick else 10**6),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    print(main(quick=parser.parse_args().quick))
