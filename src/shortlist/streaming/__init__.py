"""JSON lines in, decisions out, and a saved state that keeps the capacity through any crash.

Needs the extra `cli` (pandas and pyarrow).
"""

from ._adopt import adopt
from ._durable import DurableController
from ._lines import Item, LineReader
from ._run import StreamSummary, run_stream
from ._scores import SCORERS, ItemScorer, scorer_identity
from ._settings import CONTROLLERS, StreamSettings, make_controller

__all__ = [
    "CONTROLLERS",
    "SCORERS",
    "DurableController",
    "Item",
    "ItemScorer",
    "LineReader",
    "StreamSettings",
    "StreamSummary",
    "adopt",
    "make_controller",
    "run_stream",
    "scorer_identity",
]
