"""Online control: time per decision, alarms, and announcements that come late."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from _measure import cpu_seconds, table
from _online_rules import river_quantile_filter
from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    RateAlarm,
    TokenBucketController,
    WindowController,
)

# --- speed -------------------------------------------------------------------------------------


def _makers(calibration: np.ndarray) -> dict[str, Callable[[], Controller]]:
    rate = {"capacity": Capacity.fraction(0.01), "calibration_scores": calibration}
    count = {
        "capacity": Capacity.count(50),
        "period": 86_400,
        "expected_arrivals": 5_000,
        "calibration_scores": calibration,
    }
    return {
        "EmaController": lambda: EmaController(**rate),
        "WindowController, 5,000": lambda: WindowController(**rate),
        "QuantileTracker": lambda: QuantileTracker(**rate),
        "TokenBucketController": lambda: TokenBucketController(**rate),
        "BudgetController": lambda: BudgetController(**count),
        "BudgetController, 2,000 of 100,000": lambda: BudgetController(
            **(count | {"capacity": Capacity.count(2_000), "expected_arrivals": 100_000})
        ),
    }


def speed_table(n: int) -> str:
    """Time decisions in a bundle and one by one, beside river's QuantileFilter."""
    rng = np.random.default_rng(0)
    scores, calibration = rng.normal(size=n), rng.normal(size=20_000)
    few = min(n, 50_000)
    peer = river_quantile_filter(0.01, calibration)
    theirs = cpu_seconds(lambda: [peer(score) for score in scores[:few].tolist()]) / few
    rows = []
    for name, make in _makers(calibration).items():
        a_day = 100_000 if "100,000" in name else 5_000
        times = np.arange(n) * 86_400 / a_day
        singles = list(zip(scores[:few].tolist(), times[:few].tolist(), strict=True))
        first = _after_loading(make(), singles)
        many = cpu_seconds(lambda make=make, times=times: make().decide_many(scores, at=times)) / n
        one = cpu_seconds(lambda make=make, singles=singles: _one_by_one(make(), singles)) / few
        cells = [f"{1e6 * many:.2f}", f"{1e6 * one:.1f}", f"{1e6 * first:.1f}"]
        rows.append([name, *cells, f"{one / theirs:.2f}"])
    headings = ["controller", "decide_many (µs per item)", "decide (µs)"]
    headings += ["decide just after loading (µs)", "decide / river's filter"]
    return table(headings, rows)


def _one_by_one(controller: Controller, singles: list[tuple[float, float]]) -> None:
    for score, at in singles:
        controller.decide(score, at=at)


def _after_loading(controller: Controller, singles: list[tuple[float, float]]) -> float:
    """Return the median time of the decisions 2 to 200; the first one loads compiled code."""
    spent = []
    for score, at in singles[:200]:
        start = time.perf_counter()
        controller.decide(score, at=at)
        spent.append(time.perf_counter() - start)
    return float(np.median(spent[1:]))


# --- alarms ------------------------------------------------------------------------------------


def alarm_table(trials: int, n: int = 20_000, rate: float = 0.01, error: float = 0.01) -> str:
    """Count false alarms, and measure how long true ones take."""
    rows = []
    for factor in (1.0, 1.25, 1.5, 2.0, 4.0):
        rng = np.random.default_rng(int(100 * factor))
        delays = []
        for _ in range(trials):
            evidence = RateAlarm(Capacity.fraction(rate), error=error).track(
                rng.random(n) < factor * rate
            )
            late = evidence >= -np.log(error)
            delays.append(int(np.argmax(late)) if late[-1] else n)
        raised = np.mean(np.array(delays) < n)
        spread = np.sqrt(raised * (1 - raised) / trials)
        middle = f"{np.median(delays):,.0f}" if raised > 0.5 else "–"
        rows.append([f"{factor:g} times the capacity", f"{raised:.1%} ± {spread:.1%}", middle])
    return table([f"rate, {n:,} items", "alarms", "median delay, items"], rows)


# --- late announcements ------------------------------------------------------------------------


def announcement_table(blocks: int) -> str:
    """Alternate between 1 % and 0.4 % every 5,000 items, and say so late."""
    rng = np.random.default_rng(0)
    length, rates = 5_000, np.where(np.arange(blocks) % 2 == 0, 0.01, 0.004)
    scores, calibration = rng.normal(size=blocks * length), rng.normal(size=20_000)
    rows = []
    for delay in (0, 250, 1_000, 2_500):
        cells = []
        for corrected in (False, True):
            tracker = QuantileTracker(
                Capacity.fraction(0.01), calibration_scores=calibration, step=0.2
            )
            flags = _announced_late(tracker, scores, rates, length, delay, corrected)
            errors = np.abs(flags - rates * length) / (rates * length)
            total = flags.sum() / (rates * length).sum()
            cells += [f"{errors.mean():.3f}", f"{total:.4f}"]
        rows.append([f"{delay:,}", *cells])
    headings = ["items late", "error of a block", "total / allowed"]
    return table([*headings, "error, made up for", "total / allowed, made up for"], rows)


def _announced_late(
    tracker: QuantileTracker,
    scores: np.ndarray,
    rates: np.ndarray,
    length: int,
    delay: int,
    corrected: bool,
) -> np.ndarray:
    """Return the flags of each block."""
    flagged, times = [], np.arange(scores.size, dtype=float)
    for block, rate in enumerate(rates):
        start = block * length
        for part in (slice(start, start + delay), slice(start + delay, start + length)):
            if part.start == start + delay:
                since = float(start) if corrected and delay else None
                tracker.set_capacity(Capacity.fraction(float(rate)), at=since)
            flagged.append(tracker.decide_many(scores[part], at=times[part]).flagged)
    return np.concatenate(flagged).reshape(rates.size, length).sum(axis=1)


def main(*, quick: bool = False) -> str:
    """Return the three tables."""
    parts = [
        speed_table(10**5 if quick else 10**6),
        alarm_table(100 if quick else 1_000),
        announcement_table(20 if quick else 200),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, half a minute")
    print(main(quick=parser.parse_args().quick))
