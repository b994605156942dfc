"""What tests of streams share."""

import contextlib
from typing import NamedTuple

from shortlist.service._models import Arrival
from shortlist.service.store import Entry
from shortlist.service.stream_file import open_stream


class Decided(NamedTuple):
    """A decision as the log has it, and whether the case was known before."""

    entry: Entry
    repeated: bool

    @property
    def flag(self):
        """Whether the case is to be followed up."""
        return self.entry.slot is not None


class OfScores:
    """A durable controller that takes scores, moments, ids and efforts."""

    def __init__(self, durable):
        self._durable = durable

    def __getattr__(self, name):
        return getattr(self._durable, name)

    def decide(self, scores, *, at=None, ids=None, efforts=None):
        """Decide about items in order."""
        n = len(scores)
        names, moments, works = ([None] * n if x is None else x for x in (ids, at, efforts))
        arrivals = [
            Arrival(float(score), id, 0.0 if moment is None else float(moment), work)
            for score, id, moment, work in zip(scores, names, moments, works, strict=True)
        ]
        return [Decided(*each) for each in self._durable.decide(arrivals)]


@contextlib.contextmanager
def open_scores(*args, **options):
    """Open a stream of scores."""
    with open_stream(*args, **options) as durable:
        yield OfScores(durable)
