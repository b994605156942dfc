"""The example with river runs if river is installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "online_river.py"


def test_a_controller_follows_a_river_model(monkeypatch):
    """The rate and the number per hundred hold while the model learns."""
    pytest.importorskip("river", reason="river needs the extra shortlist[bench]")
    monkeypatch.setenv("MPLBACKEND", "agg")
    example = runpy.run_path(str(EXAMPLE))
    assert example["share"] == pytest.approx(0.05, abs=0.03)
    assert abs(example["off"]) <= example["bound"]
    flags, found = example["n_flags"], example["n_found"]
    assert flags.max() <= 10
    assert 80 <= flags.sum() <= 100  # nine and a half times a hundred items, ten flags each
    assert found.sum() > 0.6 * flags.sum()
