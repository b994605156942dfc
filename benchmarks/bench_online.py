"""Online control: time per decision, beside river's QuantileFilter."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from river import anomaly
from river.base import Estimator

from _measure import cpu_seconds, table
from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    WindowController,
)


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
        "QuantileTracker, burst 10": lambda: QuantileTracker(**rate, burst=10),
        "BudgetController": lambda: BudgetController(**count),
        "BudgetController, 2,000 of 100,000": lambda: BudgetController(
            **(count | {"capacity": Capacity.count(2_000), "expected_arrivals": 100_000})
        ),
    }


class _Given(Estimator):
    """A detector whose score is already in the item."""

    def score_one(self, x):
        return x["score"]

    def learn_one(self, x):
        return None


def river_quantile_filter(rate: float, calibration: np.ndarray) -> Callable[[float], bool]:
    """Return a function that decides and learns as river's QuantileFilter does."""
    rule = anomaly.QuantileFilter(_Given(), q=1 - rate)
    for score in calibration.tolist():
        rule.learn_one({"score": score})

    def decide(score: float) -> bool:
        flag = rule.classify(score)
        rule.learn_one({"score": score})
        return flag

    return decide


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


def main(*, quick: bool = False) -> str:
    """Return the table."""
    return speed_table(10**5 if quick else 10**6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer items")
    print(main(quick=parser.parse_args().quick))
