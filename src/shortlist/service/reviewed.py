"""Reviewed cases as a table to learn from, and to estimate what is missed from."""

from __future__ import annotations

import json
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._core import probing
from .._core.files import flattened
from ..exceptions import TableNote
from ..online.decisions import PROBE_WITHOUT_SLOT
from ..tables.cases import IN_TABLE, free_name
from ..tables.model_file import as_schema, describe_model
from ..tables.schema import TableSchema
from ..tables.write import TableWriter, output_format, write_answers
from ._replica import DRAWN
from ._status import LATEST_OUTCOME
from .store import Store

_SELECTED = (
    f"SELECT log.model, log.case_id, log.at, log.score, log.code, log.inclusion, log.body, "
    f"{LATEST_OUTCOME} FROM log WHERE log.queue = ? AND "
    f"(log.slot IS NOT NULL AND log.body IS NOT NULL OR log.code = {PROBE_WITHOUT_SLOT}) "
    "ORDER BY log.seq"
)
_MODEL, _NUMBERS = 0, ("score", "inclusion")


def export_reviews(store: Store, path: Path, *, queue: str | None = None) -> tuple[int, int]:
    """Write the cases that were flagged or drawn; return how many, and how many have an outcome.

    The columns are those that were sent, then the label that the review found (empty while it is
    not known), how the case was selected and with which probability, and by which model. Erased
    cases are left out. Sent columns with a name of these are called as in lists: `score_in_table`.
    """
    queues = [row for row in store.queues() if queue in (None, row.name)]
    if not queues:
        raise ValueError(f"queue={queue!r} is not a queue of this database.")
    format, known = output_format(path), dict[int, tuple[str, TableSchema]]()
    found = [case for row in queues for case in store.query(_SELECTED, row.id)]
    for model in {case[_MODEL] for case in found}:
        known[model] = _read_schema(store, model)
    rows = [_row(*known[case[_MODEL]], *case) for case in found]
    names = dict.fromkeys(name for row in rows for name in row)
    if theirs := ", ".join(name for name in names if name.endswith(IN_TABLE)):
        more = (
            "this table has columns of that name. A model of it learns the new names: send them so"
        )
        warnings.warn(f"Columns of the cases are called {theirs} here: {more}.", TableNote, 2)
    types = {name: "double" if name in _NUMBERS else "string" for name in names}
    with write_answers(path) as file, TableWriter(file, format, types) as output:
        output.write({name: [row.get(name) for row in rows] for name in names})
    return len(rows), sum(case[-1] is not None for case in found)


def _read_schema(store: Store, model: int) -> tuple[str, TableSchema]:
    """Return the hash of a model file, and the columns that it was fitted on."""
    [(sha256, content)] = store.query("SELECT sha256, file FROM model WHERE id = ?", model)
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(content)
        file.flush()
        return sha256, as_schema(describe_model(Path(file.name)))


def _row(sha256: str, schema: TableSchema, *case: Any) -> dict[str, Any]:
    """Return a case as a row of the table, under the names of the model that decided."""
    _, id, at, score, code, inclusion, body, rare = case
    usual = next((label for label in schema.labels if label != schema.rare_label), "other")
    own = {
        "selected_by": DRAWN.get(code, probing.BY_SCORE),
        "inclusion": 1.0 if inclusion is None else inclusion,
        "score": score,
        "decided_by": sha256[:12],
        "decided_at": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
    }
    sent = flattened(json.loads(body or "{}")).items()
    found = None if rare is None else schema.rare_label if rare else usual
    columns = {free_name(name, own): _text(value) for name, value in sent}
    return {schema.id or "case": id, **columns, schema.target: found, **own}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
