"""Reviewed cases as a table to learn from, and to estimate what is missed from."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._core import probing
from .._core.files import flattened
from ..online.decisions import PROBE_WITHOUT_SLOT
from ..tables.model_file import as_schema, describe_model
from ..tables.schema import TableSchema
from ..tables.write import TableWriter, output_format, write_answers
from ._replica import DRAWN
from ._status import LATEST_OUTCOME
from .store import DECISION, Store

_SELECTED = (
    f"SELECT log.case_id, log.at, log.score, log.code, log.inclusion, log.model, log.body, "
    f"{LATEST_OUTCOME} FROM log WHERE log.queue = ? AND log.kind = {DECISION} AND "
    f"(log.slot IS NOT NULL AND log.body IS NOT NULL OR log.code = {PROBE_WITHOUT_SLOT}) "
    "ORDER BY log.seq"
)
_NUMBERS = ("score", "inclusion")


def export_reviews(store: Store, path: Path, *, queue: str | None = None) -> tuple[int, int]:
    """Write the cases that were flagged or drawn; return how many, and how many have an outcome.

    The columns are those that were sent, then the label that the review found (empty while it is
    not known), how the case was selected and with which probability, and by which model. Erased
    cases are left out.
    """
    queues = [row for row in store.queues() if queue in (None, row.name)]
    if not queues:
        raise ValueError(f"queue={queue!r} is not a queue of this database.")
    format, models = output_format(path), _Models(store)
    rows = [models.row(*found) for row in queues for found in store.query(_SELECTED, row.id)]
    names = dict.fromkeys(name for row in rows for name in row)
    types = {name: "double" if name in _NUMBERS else "string" for name in names}
    with write_answers(path) as file, TableWriter(file, format, types) as output:
        output.write({name: [row.get(name) for row in rows] for name in names})
    return len(rows), models.n_labelled


class _Models:
    """The models that decided, of which the names of ids and labels come."""

    def __init__(self, store: Store) -> None:
        self._store, self._known = store, dict[int, tuple[str, TableSchema]]()
        self.n_labelled = 0

    def row(
        self, case: str, at: float, score: float, code: int, inclusion: float, model: int,
        body: str | None, rare: bool | None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return a case as a row of the table."""
        sha256, schema = self._of(model)
        usual = next((label for label in schema.labels if label != schema.rare_label), "other")
        self.n_labelled += rare is not None
        sent = {name: _text(value) for name, value in flattened(json.loads(body or "{}")).items()}
        return {
            schema.id or "case": case,
            **sent,
            schema.target: None if rare is None else schema.rare_label if rare else usual,
            "selected_by": DRAWN.get(code, probing.BY_SCORE),
            "inclusion": 1.0 if inclusion is None else inclusion,
            "score": score,
            "decided_by": sha256[:12],
            "decided_at": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        }

    def _of(self, model: int) -> tuple[str, TableSchema]:
        """Return the hash of a model file, and the columns that it was fitted on."""
        if model not in self._known:
            [(sha256, content)] = self._store.query(
                "SELECT sha256, file FROM model WHERE id = ?", model
            )
            with tempfile.NamedTemporaryFile(suffix=".model") as file:
                file.write(content)
                file.flush()
                self._known[model] = sha256, as_schema(describe_model(Path(file.name)))
        return self._known[model]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
