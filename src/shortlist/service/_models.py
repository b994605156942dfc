"""Models of a service: kept in the database as files, loaded when they are first needed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import tempfile
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import sklearn

from .._core.arrays import Floats
from .._core.ranking import lift, weigh
from ..capacity import Capacity
from ..tables import ReadOptions, TableModel, WorkColumns, load_model
from ..tables.reasons import reasons_for
from ..tables.schema import RowParser
from ._apart import check_apart
from ._api import Problem
from .settings import QueueSettings, build_name
from .store import MODEL, SHADOW, Entry, QueueRow, Store

_LOADED_AT_ONCE = 8
_REASONS_KEPT = 4_096
_GONE = 15  # seconds after which a worker that has not signed does not count
#: Marks the scorer of a model that ranks lists, and whose thresholds are those of models of folds.
_OF_LISTS = " of lists"


class Arrival(msgspec.Struct, eq=False):
    """A case that is to be decided: what a model reads of it, what the log keeps, its answer.

    A line has a number, and its id as it was written (`shown`).
    """

    score: float = 0.0
    case_id: str | None = None
    at: float = 0.0
    effort: float | None = None
    digest: bytes | None = None
    key_id: str | None = None
    fields: Any = None
    shadow: float | None = None
    answer: Any = None
    entity: str | None = None
    seq: int = 0  # its place in the log, by which a case that waits is known
    values: tuple[Any, ...] = ()
    value: float | None = None
    error: str | None = None
    line: int = 0
    shown: Any = None


class LoadedModel:
    """A model that is ready to score cases.

    Attributes
    ----------
    id : int
        Its number in the database.
    scorer : str
        What computes its scores. Two ways to compute a score may differ in the last digit, which
        can change a tie; therefore each version of a model has one scorer for good.
    """

    def __init__(self, id: int, model: TableModel, reading: ReadOptions | None = None) -> None:
        self.id, self.table = id, model
        self.scorer = scorer_name(model)
        self._parser = RowParser(model.schema, reading or ReadOptions())
        self._reasons: dict[tuple[int, int], list[dict[str, Any]]] = {}

    @property
    def id_fields(self) -> tuple[str, ...]:
        """The fields of a case that may hold its id, the first one first."""
        own, features = self.table.schema.id, {each.name for each in self.table.schema.features}
        return tuple(name for name in (own, "id") if name is not None and name not in features)

    def read(self, fields: dict[str, Any]) -> Arrival:
        """Return the columns of a case, or what is wrong with it."""
        try:
            return Arrival(values=self._parser.values(fields), **self._parser.weights(fields))
        except (TypeError, ValueError) as error:
            return Arrival(error=_one_line(error))

    def score(self, items: list[Arrival]) -> Floats:
        """Score valid cases in one batch, by compiled functions if possible; each as if alone.

        With values or efforts, a score is value * probability / effort. A case that the model
        cannot score raises an error.
        """
        if not items:
            return np.empty(0)
        rows = [item.values for item in items]
        if self.table.row_scorer.kind == "model":
            scores = self.table.classifier.score_samples(self._parser.frame(rows))
        else:
            scores = self.table.row_scorer.score_rows(rows)
        scores = np.asarray(scores, np.float64)
        if self.work.columns:  # 1 stands for what the model does not weigh
            values = np.array([1.0 if item.value is None else item.value for item in items])
            efforts = np.array([1.0 if item.effort is None else item.effort for item in items])
            scores = np.asarray(weigh(scores, values, efforts), np.float64)
        if not np.isfinite(scores).all():
            raise ValueError("The model returned a score that is not a finite number.")
        return np.asarray(lift(scores), dtype=np.float64)

    def scored(self, items: list[Arrival]) -> list[Arrival]:
        """Give items their scores; one that the model cannot score gets an error instead."""
        valid = [item for item in items if item.error is None]
        try:
            for item, score in zip(valid, self.score(valid).tolist(), strict=True):
                item.score = score
        except Exception as error:
            if len(valid) > 1:  # one of them may be at fault: find it
                for item in valid:
                    self.scored([item])
            else:
                valid[0].error = _one_line(error)
        return items

    @property
    def usual_case(self) -> dict[str, Any]:
        """The columns of the usual case."""
        usual = {
            name: None if isinstance(value, float) and value != value else value
            for name, value in self.table.reference.items()
        }
        return usual | dict.fromkeys(self.work.columns.values(), 1.0)

    @property
    def work(self) -> WorkColumns:
        """The columns that weigh cases."""
        return self.table.schema.work or WorkColumns()

    def frame(self, items: list[Arrival]) -> Any:
        """Return cases as rows for the model."""
        return self._parser.frame([item.values for item in items])

    def explain(self, entries: list[Entry]) -> dict[int, list[dict[str, Any]]]:
        """Return for entries of the log the columns that raised their scores; they are kept."""
        if len(self._reasons) > _REASONS_KEPT:
            self._reasons.clear()
        new = [entry for entry in entries if (entry.queue, entry.seq) not in self._reasons]
        read = [(entry, self.read(json.loads(entry.body or "{}"))) for entry in new]
        known = [(entry, item) for entry, item in read if item.error is None]
        if known:
            frame = self.frame([item for _, item in known])
            for (entry, _), each in zip(known, reasons_for(self.table, frame), strict=True):
                self._reasons[entry.queue, entry.seq] = [reason.__dict__ for reason in each]
        return {entry.seq: self._reasons.get((entry.queue, entry.seq), []) for entry in entries}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class ModelCache:
    """The models of the database that were used lately, loaded."""

    def __init__(self) -> None:
        self.loaded: OrderedDict[int, LoadedModel] = OrderedDict()
        # Others score by what is loaded while a model is read, which can take a minute.
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def read(self, content: bytes) -> LoadedModel:
        """Read a model file that is not in the database, ready to score."""
        model = LoadedModel(0, read_model(content))
        usual = model.read(model.usual_case)
        if usual.error is None:
            model.score([usual])  # so that compiled functions are there before the first request
        return model

    def receive(self, content: bytes) -> LoadedModel:
        """Read a model file that somebody sent, once a process of its own could do so."""
        check_apart(content)
        return self.read(content)

    def add(self, content: bytes, store: Store, model: LoadedModel | None = None) -> LoadedModel:
        """Add a model file to the database, unless it is there; return the model."""
        model = model or self.read(content)
        row = {
            "sha256": hashlib.sha256(content).hexdigest(),
            "scorer": model.scorer,
            "added": time.time(),
            "calibration": calibration_bytes(model.table),
            "file": content,
        }
        model.id = store.insert_next("model", "id", row, unless=("sha256", "scorer"))
        return self._keep(model)

    def get(self, id: int, store: Store) -> LoadedModel:
        """Return a model, loaded before or now; another scorer than recorded raises an error."""
        if (model := self.loaded.get(id)) is not None:
            return self._keep(model)
        with self._reading:
            return self._keep(self.loaded.get(id) or self._load(id, store))

    def check_fit(self, model: LoadedModel, row: QueueRow, store: Store) -> None:
        """Raise a problem unless a queue can go on with a model."""
        try:
            present = self.get(models_of(store, row.id)[0], store)
        except (ValueError, ImportError):  # such as after an update of this program
            present = model
        try:
            _check_fit(model, present, row, store)
        except ValueError as error:
            detail = f"The model does not fit the queue {row.name!r}. {error}"
            raise Problem(422, "invalid-value", detail) from None

    def _load(self, id: int, store: Store) -> LoadedModel:
        [(content, scorer)] = store.query("SELECT file, scorer FROM model WHERE id = ?", id)
        model = self.read(bytes(content))
        model.id = id
        if model.scorer != scorer:
            raise ValueError(
                f"Model {id} is scored by {scorer}, but this program scores by {model.scorer}. "
                "Scores of both must not be mixed. Post the model again to make a new version."
            )
        return model

    def _keep(self, model: LoadedModel) -> LoadedModel:
        with self._lock:
            self.loaded[model.id] = model
            self.loaded.move_to_end(model.id)
            while len(self.loaded) > _LOADED_AT_ONCE:
                self.loaded.popitem(last=False)
        return model


class Roster:
    """This worker among all others: each loads an announced model before anyone decides by it.

    Parameters
    ----------
    store : Store
        Shared with other threads.
    models : ModelCache
        The models of this worker.
    """

    def __init__(self, store: Store, models: ModelCache) -> None:
        self._store, self._models = store, models
        self._name = secrets.token_hex(8)
        self._seen: list[Any] = []  # the last that was wanted

    def sign(self) -> None:
        """Write that this worker is alive, and which models it has loaded."""
        store = self._store
        with store.write():
            store.query(f"DELETE FROM worker WHERE seen < {store.now} - {_GONE}")
            loaded = json.dumps(list(self._models.loaded))
            store.put("worker", {"name": self._name, "seen": 0, "loaded": loaded}, ("name",))
            store.query(f"UPDATE worker SET seen = {store.now} WHERE name = ?", self._name)

    def leave(self) -> None:
        """Write that nobody needs to wait for this worker."""
        with self._store.write():
            self._store.query("DELETE FROM worker WHERE name = ?", self._name)

    def keep_up(self) -> None:
        """Load what is wanted; a model that this program cannot load is never signed for."""
        wanted = self._store.query("SELECT wanted FROM worker WHERE name = ?", self._name)
        if wanted not in ([], [(None,)], self._seen):
            with contextlib.suppress(ValueError, ImportError):
                self._models.get(wanted[0][0], self._store)
            self.sign()
            self._seen = wanted

    def leads(self) -> bool:
        """Whether this worker is the one that does what one does for all."""
        store = self._store
        rows = store.query(f"SELECT min(name) FROM worker WHERE seen >= {store.now} - {_GONE}")
        return bool(rows == [(self._name,)])

    def count_late(self, model: int) -> int:
        """Let all workers load a model; return how many have not yet done so."""
        with self._store.write():
            self._store.query("UPDATE worker SET wanted = ?", model)
            rows = self._store.query(
                f"SELECT loaded FROM worker WHERE seen >= {self._store.now} - {_GONE}"
            )
        return sum(model not in json.loads(loaded) for (loaded,) in rows)


def scorer_name(model: TableModel) -> str:
    """Return what computes the scores of a model in this program."""
    several = len(model.classifier.calibrations_) > 1
    kind = f"{model.row_scorer.kind}{_OF_LISTS if several else ''}"
    return f"{kind}, scikit-learn {sklearn.__version__}, {build_name()}"


def has_own_calibration(store: Store, id: int) -> bool:
    """Whether the calibration scores of a model are its own, and not those of models of folds."""
    [(scorer,)] = store.query("SELECT scorer FROM model WHERE id = ?", id)
    return _OF_LISTS not in str(scorer)


def _check_fit(model: LoadedModel, present: LoadedModel, row: QueueRow, store: Store) -> None:
    """Raise an error unless a queue can go on with a model: its unit, its columns, its id.

    Its columns fit if it can read the latest flagged case, or else the usual case of the present
    model.
    """
    settings = QueueSettings.from_json(row.settings)
    id, *_ = settings.id_fields or ("id",)
    if model.table.schema.id not in (None, *settings.id_fields) or id in model.table.reference:
        raise ValueError(f"The cases of the queue have their ids in {id!r}.")
    if settings.of_work:
        usual_effort(model.table)
    units = {each.work.unit for each in (model, present)}
    weights = {tuple(each.work.columns) for each in (model, present)}
    if len(units) > 1 or (settings.worth is not None and len(weights) > 1):
        raise ValueError("It weighs cases in another unit, or by another kind of column.")
    flagged = store.query(
        "SELECT body FROM log WHERE queue = ? AND slot IS NOT NULL AND body IS NOT NULL "
        "ORDER BY period DESC, slot DESC LIMIT 1",
        row.id,
    )
    sample = json.loads(flagged[0][0]) if flagged else present.usual_case
    error = model.read(sample).error
    if error is not None and (flagged or present.read(sample).error is None):
        raise ValueError(f"It cannot read cases that the present model reads: {error}")


def expected_arrivals(model: TableModel, amount: float, *, of_work: bool) -> int:
    """Return a first estimate of the cases in a period: as many as the model's own rate needs."""
    own, share = model.classifier.capacity, model.classifier.capacity_fraction_
    if of_work:
        share = float(own.effort_per_item()) if own.kind == "effort" else 0.0
    return max(1, round(amount / share)) if share > 0 else 1_000


def usual_effort(model: TableModel) -> float:
    """Return how much a flagged case usually takes, which a model fitted with efforts knows."""
    if model.schema.work is None or model.schema.work.effort is None:
        raise ValueError(
            "A budget of work needs to know how much each case takes, and the model was fitted "
            "without --effort. Fit with --effort and --budget, or limit flags with --count."
        )
    controller = model.classifier.controller(Capacity.effort(1), period=1.0, expected_arrivals=1)
    return float(controller.options["expected_effort"])


def read_model(content: bytes) -> TableModel:
    """Read a model file from memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(content)
        try:
            return load_model(path)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "The file")) from None


def calibration_bytes(model: TableModel) -> bytes:
    """Return the calibration scores of a model, as the database keeps them."""
    scores = np.asarray(model.classifier.calibration_scores_, dtype="<f8")
    return np.asarray(lift(scores), dtype="<f8").tobytes()


def models_of(store: Store, queue: int) -> tuple[int, int, int]:
    """Return the model of a queue, the one that decides nothing, and the one before; or 0."""
    model = shadow = before = 0
    for (body,) in store.query(
        f"SELECT body FROM log WHERE queue = ? AND kind IN ({MODEL}, {SHADOW}) ORDER BY seq",
        queue,
    ):
        event = json.loads(body)
        if event.get("model", model) != model:
            model, before = event["model"], model
        shadow = event.get("shadow", shadow)
    return model, shadow, before


def calibration_of(store: Store, id: int) -> Floats:
    """Return the calibration scores of a model, without loading the model."""
    [(content,)] = store.query("SELECT calibration FROM model WHERE id = ?", id)
    return np.frombuffer(bytes(content), dtype="<f8").astype(np.float64)
