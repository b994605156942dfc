"""Settings that are changed in a whole family of configs at once."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

__all__ = ["with_settings"]


def with_settings(config: Any, **settings: Any) -> Any:
    """Return a copy with other values of the fields that the config has, or its parts have.

    >>> from shortlist.experiments import credit, normal_cauchy
    >>> with_settings(credit.Config(), repetitions=2, rows=30_000).rows
    30000
    >>> with_settings(normal_cauchy.Config(), rows=30_000) == normal_cauchy.Config()
    True
    """
    changes = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            changes[field.name] = with_settings(value, **settings)
        elif field.name in settings:
            changes[field.name] = settings[field.name]
    return replace(config, **changes)
