"""A model with values and efforts, and probes, through a running service."""

import numpy as np
import pandas as pd
import pytest

from shortlist import Capacity
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.tables import WorkColumns, fit_table, save_model
from tests.service.helpers import case, serving

BASE = "/v1/queues/default"


@pytest.fixture(scope="module")
def weighing(tmp_path_factory):
    """Return a model file that weighs amounts and minutes."""
    folder, rng = tmp_path_factory.mktemp("weighing"), np.random.default_rng(0)
    amounts, minutes = rng.gamma(2, 50, 600).round(2), rng.integers(5, 61, 600)
    is_rare = rng.random(600) < 1 / (1 + np.exp(4 - amounts / 60))
    table = pd.DataFrame({"amount": amounts, "minutes": minutes, "fraud": is_rare})
    table.to_csv(folder / "cases.csv", index=False)
    fitted = fit_table(
        folder / "cases.csv", target="fraud", capacity=Capacity.effort(480, per=100),
        learner="logistic", work=WorkColumns("amount", "minutes", worth=0.5),
    )  # fmt: skip
    save_model(fitted.model, folder / "model")
    return folder / "model"


def test_a_budget_of_work_over_http(tmp_path, weighing):
    """Answers weigh value and effort, minutes are never overspent, and the audit agrees."""
    database, rng = tmp_path / "shortlist.db", np.random.default_rng(1)
    with serving(database, weighing, count=100.0, made={"of_work": True}) as service:
        cases = [
            {"id": n, "amount": float(a), "minutes": int(m)}
            for n, (a, m) in enumerate(
                zip(rng.gamma(2, 50, 200).round(2), rng.integers(5, 61, 200), strict=True)
            )
        ]
        answers = service.post(f"{BASE}/decisions", json=cases).json()
        flagged = [a for a in answers if a["flag"]]
        assert 0 < sum(a["effort"] for a in flagged) <= 100
        assert {a["reason"] for a in answers} >= {"above threshold", "not worth a slot"}
        assert all(a["score"] >= 0.5 for a in flagged)
        status = service.get(f"{BASE}/status").json()
        assert (status["unit"], status["used"]) == ("effort", sum(a["effort"] for a in flagged))
        wrong = service.post(f"{BASE}/decisions", json={"id": "x", "amount": 5, "minutes": 0})
        assert (wrong.status_code, "effort=" in wrong.json()["detail"]) == (422, True)
        assert service.put(f"{BASE}/capacity", json={"count": 3}).status_code == 422
        assert service.put(f"{BASE}/capacity", json={"effort": 12.5}).status_code == 200
    with opened(str(database)) as store:
        [found] = audit_store(store)
    assert (found.problems, found.n_replayed) == ([], 200)


def test_probes_make_detection_knowable(tmp_path, model_file):
    """Without outcomes of probes nothing is claimed; with them, an interval."""
    rng = np.random.default_rng(0)
    made = {"probe": 0.5, "probe_key": "a test"}
    with serving(tmp_path / "shortlist.db", model_file, count=40, made=made) as service:
        told = []
        for part in range(8):
            cases = [case(f"{part}-{n}", float(a)) for n, a in enumerate(rng.gamma(2, 50, 25))]
            told += service.post(f"{BASE}/decisions", json=cases).json()
        assert "no probe has an outcome" in service.get(f"{BASE}/status").json()["detection_note"]
        probes = {a["id"] for a in told if a["selected_by"] == "probe"}
        assert 0 < len(probes) < sum(a["flag"] for a in told) <= 40
        listed = service.get(f"{BASE}/cases?view=period&limit=1000").json()["cases"]
        assert {each["id"] for each in listed if each["probe"]} == probes
        for each in listed:
            outcome = {"id": each["id"], "rare": each["score"] > 0.5, "reviewer": "kim"}
            assert service.post(f"{BASE}/outcomes", json=outcome).status_code == 200
        status = service.get(f"{BASE}/status").json()
        assert 0 <= status["detection"]["low"] <= status["detection"]["high"] <= 1
        assert "interval from" in status["detection_note"]
        rare = sum(each["score"] > 0.5 for each in listed)
        base_rate = status["base_rate"]
        assert rare / 200 <= base_rate["low"] + 1e-9 <= base_rate["share"] <= base_rate["high"] <= 1
        assert status["precision"]["reviewed"] == len(listed) - len(probes)


def test_observations_over_http(service):
    """Cases of another system count as seen, use no flag, and stand in the log."""
    told = service.post(f"{BASE}/observations", json=[case("a", 900.0, "US")] * 3).json()
    [entry] = service.get(f"{BASE}/log?after={told['seq'] - 1}").json()["entries"]
    assert (told["observed"], len(entry["event"]["scores"]), entry["case_id"]) == (3, 3, None)
    assert service.get(f"{BASE}/status").json()["flags"] == 0
    for wrong in ([], [{"id": 1}], {"id": 1}):
        assert service.post(f"{BASE}/observations", json=wrong).status_code == 422
