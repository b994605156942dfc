"""The credit data: where the studies look for them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from shortlist.datasets import load_credit_default

_BESIDE_THE_CHECKOUT = Path(__file__).parents[2] / "shared" / "data"


@cache
def clients(rows: int = 30_000) -> tuple[Any, Any]:
    """Load the credit data, which `SHORTLIST_DATA` names or which lie beside the checkout."""
    if _BESIDE_THE_CHECKOUT.is_dir():
        os.environ.setdefault("SHORTLIST_DATA", str(_BESIDE_THE_CHECKOUT))
    return load_credit_default(rows=rows)
