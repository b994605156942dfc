"""The first lines of a stream beside the model card: another unit, unknown categories, gaps."""

from __future__ import annotations

from collections.abc import Callable

from ..tables import TableModel
from ..tables.monitor import DriftMonitor, Finding
from ..tables.row_parser import RowParser
from ..tables.schema import TableRows
from ._lines import Item

__all__ = ["FirstLines"]

_ENOUGH = 200


class FirstLines:
    """Compares the first 200 valid lines with the model card, once.

    A stream of fewer lines is compared when it ends.

    Parameters
    ----------
    model : TableModel
        The model.
    parser : RowParser
        Has parsed the lines.
    on_finding : callable
        Called with each :class:`~shortlist.tables.monitor.Finding` that does not fit.
    """

    def __init__(
        self, model: TableModel, parser: RowParser, on_finding: Callable[[Finding], None]
    ) -> None:
        self._model, self._parser, self._on_finding = model, parser, on_finding
        self._items: list[Item] | None = []

    def add(self, items: list[Item]) -> None:
        """Look at parsed lines, with or without errors."""
        if self._items is None:
            return
        self._items += [item for item in items if item.error is None]
        if len(self._items) >= _ENOUGH:
            self.compare()

    def compare(self) -> None:
        """Compare what has come so far, unless that has been done."""
        items, self._items = self._items, None
        if not items:
            return
        monitor = DriftMonitor(self._model)
        monitor.add(TableRows(self._parser.frame([item.values for item in items])))
        for finding in monitor.findings():
            self._on_finding(finding)
