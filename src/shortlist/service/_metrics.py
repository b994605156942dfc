"""Metrics for Prometheus: counts of all workers, and capacities from the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_GAUGES = {
    "capacity": "Flags allowed in the present period",
    "used": "Flags used in the present period",
    "seen": "Cases decided in the present period",
    "seq": "Entries in the log",
    "alarms": "Alarms that are raised",
}


class Metrics:
    """The metrics of a worker.

    Parameters
    ----------
    folder : str or None
        Where workers share their counts; None for a single process.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        if folder is not None:
            values.ValueClass = values.MultiProcessValue()  # chosen at import time otherwise
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "shortlist_requests", "Requests", ["action", "status"], registry=self._registry
        )
        self._decided: dict[int, Counter] = {}
        self.seconds = Histogram(
            "shortlist_decision_seconds",
            "Time from a case to its answer",
            buckets=_SECONDS,
            registry=self._registry,
        )

    def decided(self, status: int) -> None:
        """Count a request for decisions."""
        if status not in self._decided:
            self._decided[status] = self.requests.labels("decide", str(status))
        self._decided[status].inc()

    def render(self, queues: Iterable[dict[str, Any]]) -> bytes:
        """Return all metrics as text; `queues` holds the numbers of each queue."""
        registry = self._registry
        if self._folder is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, path=self._folder)
        numbers = CollectorRegistry()
        numbers.register(_Gauges(list(queues)))
        return bytes(generate_latest(registry)) + bytes(generate_latest(numbers))


class _Gauges:
    def __init__(self, queues: list[dict[str, Any]]) -> None:
        self._queues = queues

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the numbers of all queues."""
        for name, words in _GAUGES.items():
            family = GaugeMetricFamily(f"shortlist_{name}", words, labels=["queue"])
            for queue in self._queues:
                family.add_metric([queue["name"]], queue[name])
            yield family
