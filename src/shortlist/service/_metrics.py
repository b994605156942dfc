"""Metrics for Prometheus: counts of all workers, and capacities from the database.

Workers count in memory that they share, each in a row of its own, because that takes much less time
than locks and files. Whoever is asked adds the rows up. A worker that takes the place of another
continues its row.
"""

from __future__ import annotations

import json
import mmap
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_STATUSES = (200, 400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
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

    def decided(self, status: int, seconds: float) -> None:
        """Count a request for decisions; the time only if it was answered."""
        row = self._rows[self.place]
        row[_STATUSES.index(status if status in _STATUSES else 500)] += 1
        if status == 200:
            row[_TIMES + bisect_left(_SECONDS, seconds)] += 1
            row[_SUM] += seconds

    def render(self, queues: list[dict[str, Any]], *, of_all: bool = True) -> str:
        """Return metrics as text: the numbers of each queue, and counts of all queues together."""
        lines = [*(self._counts() if of_all else ()), *_gauges(queues)]
        return "".join(f"{line}\n" for line in lines)

    def _counts(self) -> Iterator[str]:
        sums = [sum(column) for column in zip(*self._rows, strict=True)]
        yield from _head("requests_total", "counter", "Requests")
        for status, count in zip(_STATUSES, sums, strict=False):
            if count:
                yield f'shortlist_requests_total{{action="decide",status="{status}"}} {count}'
        yield from _head("decision_seconds", "histogram", "Time from a case to its answer")
        counts = list(accumulate(sums[_TIMES:_SUM]))
        for bound, count in zip([*map(float, _SECONDS), "+Inf"], counts, strict=True):
            yield f'shortlist_decision_seconds_bucket{{le="{bound}"}} {count}'
        yield f"shortlist_decision_seconds_count {counts[-1]}"
        yield f"shortlist_decision_seconds_sum {sums[_SUM]}"


def _gauges(queues: list[dict[str, Any]]) -> Iterator[str]:
    for name, words in _GAUGES.items():
        yield from _head(name, "gauge", words)
        for queue in queues:
            label = json.dumps(queue["name"], ensure_ascii=False)
            yield f"shortlist_{name}{{queue={label}}} {float(queue[name])}"


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP shortlist_{name} {words}"
    yield f"# TYPE shortlist_{name} {kind}"
