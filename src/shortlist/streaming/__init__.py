"""JSON lines in, decisions out, with a state that survives a crash without exceeding the capacity.

Needs the extra `cli` (pandas and pyarrow).
"""

from ._durable import DurableController
from ._run import StreamSummary, run_stream
from ._settings import CONTROLLERS, StreamSettings, make_controller

__all__ = [
    "CONTROLLERS",
    "DurableController",
    "StreamSettings",
    "StreamSummary",
    "make_controller",
    "run_stream",
]
