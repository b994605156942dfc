"""Every example of the gallery runs, as a script of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_example_runs(script, tmp_path):
    """Without an error, in a folder of its own, without a screen."""
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if absent := re.search(r"No module named '(?!shortlist)(\w+)'", run.stderr):
        pytest.skip(f"{script.name} needs {absent[1]}")
    assert run.returncode == 0, run.stderr
