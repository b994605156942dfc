"""Metrics for Prometheus: counts of all workers, and capacities from the database.

Workers count in memory that they share, each in a row of its own, because that takes much less time
than locks and files. Whoever is asked adds the rows up. A worker that takes the place of another
continues its row.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_STATUSES = (200, 400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
_PLACES = {status: place for place, status in enumerate(_STATUSES)}
# The columns of a row: how often each status was sent, how many answers took so long, and the sum.
_TIMES = len(_STATUSES)
_SUM = _TIMES + len(_SECONDS) + 1
_WIDTH = _SUM + 1
_GAUGES = {
    "capacity": "Flags allowed in the present period",
    "used": "Flags used in the present period",
    "seen": "Cases decided in the present period",
    "seq": "Entries in the log",
    "alarms": "Alarms that are raised",
}


class Metrics:
    """The metrics of all workers; made before they are forked.

    Parameters
    ----------
    workers : int, default=1
        How many processes count.
    """

    def __init__(self, workers: int = 1) -> None:
        memory = memoryview(mmap.mmap(-1, 8 * _WIDTH * workers)).cast("d")
        self._rows = [memory[place * _WIDTH : (place + 1) * _WIDTH] for place in range(workers)]
        self.place = 0
        self._queues: list[dict[str, Any]] = []

    def decided(self, status: int, seconds: float) -> None:
        """Count a request for decisions; the time only if it was answered."""
        row = self._rows[self.place]
        row[_PLACES.get(status, _PLACES[500])] += 1
        if status == 200:
            row[_TIMES + bisect_left(_SECONDS, seconds)] += 1
            row[_SUM] += seconds

    def render(self, queues: Iterable[dict[str, Any]]) -> bytes:
        """Return all metrics as text; `queues` holds the numbers of each queue."""
        self._queues = list(queues)
        registry = CollectorRegistry()
        registry.register(self)
        return bytes(generate_latest(registry))

    def collect(self) -> Iterator[Metric]:
        """Return what the registry asks for."""
        yield from self._families()
        for name, words in _GAUGES.items():
            family = GaugeMetricFamily(f"shortlist_{name}", words, labels=["queue"])
            for queue in self._queues:
                family.add_metric([queue["name"]], queue[name])
            yield family

    def _families(self) -> Iterator[Metric]:
        sums = [sum(column) for column in zip(*self._rows, strict=True)]
        requests = CounterMetricFamily(
            "shortlist_requests", "Requests", labels=["action", "status"]
        )
        for status, count in zip(_STATUSES, sums, strict=False):
            if count:
                requests.add_metric(["decide", str(status)], count)
        yield requests
        bounds = [*map(str, map(float, _SECONDS)), "+Inf"]
        yield HistogramMetricFamily(
            "shortlist_decision_seconds",
            "Time from a case to its answer",
            buckets=list(zip(bounds, accumulate(sums[_TIMES:_SUM]), strict=True)),
            sum_value=sums[_SUM],
        )
