"""The only place that imports skops."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["skops"]

# skops asks scikit-learn for all its estimators, which walks through all of its packages, and one
# of them imports PyTorch where that is installed: seconds and 200 MB that no model of ours needs.
_NOT_NEEDED = "sklearn.externals.array_api_compat.torch"


@contextmanager
def _left_out(module: str) -> Iterator[None]:
    """Let the import of a module fail for a while, unless it is there already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


try:
    with _left_out(_NOT_NEEDED):
        import skops.io as skops
except ImportError as error:
    raise ImportError(
        f"Model files need {error.name}, which is not installed. "
        "Install it with: pip install 'shortlist[cli]'"
    ) from error
