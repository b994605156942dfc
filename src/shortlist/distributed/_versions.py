"""The versions of the packages that models need, here and on other machines."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from .._core.extras import load_extra
from ..exceptions import TableError

__all__ = ["check_same", "versions_here"]

_PACKAGES = ("shortlist", "numpy", "sklearn")
Versions = dict[str, str]


def versions_here() -> Callable[[], Versions]:
    """Return a function that finds the versions where it is called.

    It is a local function, so that it can travel to a machine without this package, and say so.
    """
    load_extra("pyarrow", needed_for="A cluster")
    names = _PACKAGES

    def find() -> Versions:
        found = {}
        for name in names:
            try:
                found[name] = str(importlib.import_module(name).__version__)
            except ImportError:
                found[name] = "missing"
        return found

    return find


def check_same(workers: Iterable[Versions]) -> None:
    """Raise an error if a worker has other versions than this process.

    Parameters
    ----------
    workers : iterable of dict
        The versions found on each.
    """
    here = versions_here()()
    for found in workers:
        other = [name for name in here if found[name] != here[name]]
        if other:
            said = ", ".join(f"{name} {found[name]} instead of {here[name]}" for name in other)
            raise TableError(
                f"A worker of the cluster has {said}. Scores may differ, and the model may not "
                "load. Install the versions of this process on all workers."
            )
