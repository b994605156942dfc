"""The alarm about drift compares scores of one model with its own calibration scores."""

import pandas as pd

from shortlist.service._models import ModelCache, has_own_calibration
from shortlist.service.databases import open_store
from shortlist.tables import load_model, recalibrate_table, save_model


def test_only_a_model_with_its_own_calibration_scores_has_an_alarm(model_file, tmp_path):
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
