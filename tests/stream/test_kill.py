"""A stream that is killed over and over never returns more flags than the capacity allows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "faults.py"


@pytest.fixture(scope="module")
def faults():
    """Return what became of streams that were killed 8 times; `make faults` kills 1,000."""
    result = subprocess.run(
        [sys.executable, "-B", str(TOOL), "--kills", "8", "--no-control", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def test_kills_break_no_promise(faults):
    """Killed, in the middle of a write or with the power cut: no flag too many, one answer each."""
    assert sum(row["kills"] for row in faults) >= 8
    assert {row["fault"] for row in faults} == {"kill", "torn", "power", "power --probe 0.4"}
    for row in faults:
        assert row["periods over"] == row["contradictions"] == 0, row


def test_streams_that_are_killed_get_on(faults):
    """Lines are answered and cases flagged between the kills."""
    assert sum(row["answers"] for row in faults) >= 30
    assert sum(row["flags"] for row in faults) >= 3
