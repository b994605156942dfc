"""How things are measured here: ratios within one run, medians, and peak memory."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any


def seconds(
    function: Callable[[], Any],
    *,
    repeats: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return statistics.median(times)


def cpu_seconds(function: Callable[[], Any], *, repeats: int = 5) -> float:
    """Return the least processor time of a call: other users of the machine do not count."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def paired_ratio(
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    at_least: int = 7,
    budget: float = 4.0,
    clock: Callable[[], float] = time.process_time,
) -> tuple[float, float]:
    """Return the median ratio of alternating calls, and the median time of `theirs`.

    The two take turns: a busy moment of the machine affects both. Processor time is counted, not
    waiting. Fast calls take more turns, up to `budget` seconds in all.
    """
    ratios, baselines = [], []
    end = time.perf_counter() + budget
    while len(ratios) < at_least or (time.perf_counter() < end and len(ratios) < 400):
        baseline = seconds(theirs, repeats=1, clock=clock)
        ratios.append(seconds(ours, repeats=1, clock=clock) / baseline)
        baselines.append(baseline)
    return statistics.median(ratios), statistics.median(baselines)


def peak_bytes(function: Callable[[], Any]) -> int:
    """Return the most memory that a call held at once, beyond what was there before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows]]
    return "\n".join(lines)
