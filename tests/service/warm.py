"""What a service loads when it starts: processes that are forked from this one have it already."""

import tempfile

from shortlist.models.files import load_skops
from tests.service import killed  # noqa: F401
from tests.service.helpers import Hand, new_queue

load_skops()
with tempfile.TemporaryDirectory() as _folder:
    _address = f"{_folder}/shortlist.db"
    _hand = Hand(_address, new_queue(_address))
    _hand.decide([("first", 1.0)])
    _hand.close()
