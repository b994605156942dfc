"""A simulated day through a running service finds what `replay` finds."""

import numpy as np

from shortlist.service._models import calibration_of
from shortlist.service.databases import opened
from shortlist.service.settings import first_controller
from studies.online.replay import replay
from studies.online.streams import simulate_stream
from tests.service.helpers import FakeClock, QueueSettings, case, serving

START = 20_000 * 86_400.0


def test_a_day_through_the_service_is_a_replay(tmp_path, model_file, monkeypatch):
    """Same scores, same moments: same flags, and the same number of rare cases found."""
    stream = simulate_stream("season", days=2, arrivals=120, max_flags=5, prevalence=0.05)
    order = np.argsort(stream.times, kind="stable")
    moments, is_rare = START + np.asarray(stream.times)[order], np.asarray(stream.y)[order]
    ranks = np.argsort(np.argsort(np.asarray(stream.scores)[order])) / moments.size
    clock, database = FakeClock(START), tmp_path / "shortlist.db"
    monkeypatch.setattr("time.time", lambda: clock.wall)
    flagged, scores = [], []
    with serving(database, model_file, clock=clock.make(limit=1e9)) as service:
        for number, moment in enumerate(moments.tolist()):
            clock.advance(moment - clock.wall)
            asked = case(number, float(1 + 200 * ranks[number]))
            answer = service.post("/v1/queues/default/decisions", json=asked).json()
            assert answer["at"] == moment
            flagged.append(answer["flag"])
            scores.append(answer["score"])
    with opened(str(database)) as store:
        calibration = calibration_of(store, 1)
    controller = first_controller(QueueSettings(86_400.0, 100, START), 5, calibration)
    found = replay(scores, is_rare, moments, controller, period=86_400.0, starts_at=START)
    assert found.flags.sum() == sum(flagged) > 0
    assert found.detections.sum() == sum(is_rare[np.array(flagged)])
