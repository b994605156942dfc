"""The page of a class in the documentation, for the diagrams that notebooks show."""

from __future__ import annotations

import sys
from importlib import metadata


class DocumentedMixin:
    """Lets scikit-learn's diagram of a classifier lead to our page about it.

    The address of the site is the one that ``[project.urls]`` of pyproject.toml calls
    Documentation. As long as it names none, there is no link.
    """

    def _get_doc_link(self) -> str:
        package, *rooms = type(self).__module__.split(".")
        name, site = type(self).__name__, _site()
        if site is None or package != __package__.partition(".")[0]:
            return ""
        page = (
            f"{package}.{name}"
            if name in sys.modules[package].__all__
            else f"{package}.{rooms[0]}.{name}"
        )
        return f"{site}/generated/{page}.html"


def _site() -> str | None:
    """Return the address of the documentation, if the installed package names one."""
    try:
        named = metadata.metadata("shortlist").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    links = dict(text.split(", ", 1) for text in named)
    return links["Documentation"].rstrip("/") if "Documentation" in links else None
