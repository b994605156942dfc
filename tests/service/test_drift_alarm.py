"""The alarm about drift compares scores with scores of the same model that are like them."""

import json

import numpy as np
import pandas as pd
import pytest

from shortlist.service._models import ModelCache, has_own_calibration
from shortlist.service._replica import Replica
from shortlist.service.databases import open_store
from shortlist.service.store import MODEL, Entry
from shortlist.tables import load_model, recalibrate_table, save_model
from tests.service.helpers import new_queue


def test_only_some_models_have_calibration_scores_of_their_own(model_file, tmp_path):
    """Lists are ranked by another model than those whose thresholds were calibrated."""
    store, cache = open_store(str(tmp_path / "queue.db")), ModelCache()
    store.connect(create=True)
    store.make_tables()
    folds = cache.add(model_file.read_bytes(), store)
    assert len(folds.table.classifier.calibrations_) > 1
    assert not has_own_calibration(store, folds.id)
    rows = pd.DataFrame({"amount": range(1, 301), "country": ["DE", "FR", "US"] * 100})
    rows.to_csv(tmp_path / "recent.csv", index=False)
    recalibrated = recalibrate_table(load_model(model_file), tmp_path / "recent.csv").model
    save_model(recalibrated, tmp_path / "one.model")
    one = cache.add((tmp_path / "one.model").read_bytes(), store)
    assert has_own_calibration(store, one.id)


@pytest.fixture
def replica(tmp_path):
    """Return the replica of a queue whose model of lists is not the calibrated one."""
    address = str(tmp_path / "queue.db")
    queue = new_queue(address)
    store = open_store(address)
    store.connect()
    store.query("UPDATE model SET scorer = 'exact of lists' WHERE id = 1")
    yield Replica.saved(store, queue, 1)
    store.close()


def restored(replica):
    """Return a replica from the saved state of another one."""
    state = json.loads(replica.state())
    return Replica(replica.store, replica.settings, replica.build, seq=replica.seq, state=state)


def test_the_first_scores_of_a_queue_are_the_reference_of_a_model_of_lists(replica):
    """Its calibration scores belong to models of folds: here they would raise an alarm at once."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        replica.watch(rng.normal(3, 0.5, size=100).tolist())
    assert replica.drift.n_seen == 3_500
    assert not replica.drift.raised
    replica.watch(rng.normal(3.4, 0.5, size=500).tolist())
    assert replica.drift.raised


def test_the_reference_survives_a_restart(replica):
    """Half of it or whole."""
    rng = np.random.default_rng(1)
    replica.watch(rng.normal(size=300).tolist())
    replica._load(json.loads(replica.state()))  # as all processes of a version do
    assert len(replica.first) == 300
    half = restored(replica)
    half.watch(rng.normal(size=250).tolist())
    assert half.drift.n_seen == 0  # 500 are the reference, and the others of the group are left out
    whole = restored(half)
    whole.watch(rng.normal(1, size=400).tolist())
    assert whole.drift.n_seen == 400
    assert whole.drift.raised


def test_another_model_begins_anew(replica):
    """With its own calibration scores, or with the first scores of the queue."""
    replica.watch([0.0] * 600)
    replica.apply(Entry(1, 2, MODEL, 1, 0.0, 0, body='{"model": 2}'))
    assert replica.drift.n_seen == 0
    assert restored(replica).drift.n_seen == 0
    replica.store.query("UPDATE model SET scorer = 'exact of lists' WHERE id = 2")
    replica.apply(Entry(1, 2, MODEL, 1, 0.0, 0, body='{"model": 2}'))
    assert replica.drift is None
