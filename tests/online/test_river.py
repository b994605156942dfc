"""The example with river runs if river is installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "online_river.py"


def test_a_controller_follows_a_river_model():
    """The rate and the number per hundred hold while the model learns."""
    pytest.importorskip("river", reason="river needs the extra shortlist[bench]")
    example = runpy.run_path(str(EXAMPLE))
    assert example["follow_an_anomaly_score"]() == pytest.approx(0.05, abs=0.03)
    flags, found = example["follow_a_classifier"]()
    assert 80 <= flags <= 100  # nine and a half times a hundred items, ten flags each
    assert found > 0.6 * flags
