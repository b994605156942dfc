"""A stream that is killed over and over never returns more flags than the capacity allows."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

PERIOD, COUNT, N_LINES = 100, 3, 600


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return the answers of streams that were killed at random moments."""
    program = Path(__file__).with_name("killed.py")
    result = subprocess.run(
        [sys.executable, "-B", str(program), str(tmp_path_factory.mktemp("killed"))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def by_item(answers):
    """Gather all answers to the same line."""
    answered = defaultdict(list)
    for answer in answers:
        answered[answer["item"]].append(answer["flag"])
    return answered


def check_periods(flagged):
    """Check that no period has more than three flags, and that most slots are used."""
    assert max(flagged.values()) <= COUNT
    # The slots of answers that were never printed are lost, unless their ids arrived again.
    assert sum(flagged.values()) >= 0.5 * COUNT * N_LINES / PERIOD


def test_kill_9_at_random_moments(killed):
    """With ids, every line has one answer in the end, and no period has more than three flags."""
    assert killed["ids"]["cut_short"] >= 10
    answered = by_item(killed["ids"]["answers"])
    assert sorted(answered) == list(range(N_LINES))
    assert all(len(set(flags)) == 1 for flags in answered.values())
    check_periods(Counter(item // PERIOD for item, flags in answered.items() if any(flags)))


def test_kill_9_without_ids(killed):
    """Lines that are sent again are new; the capacity holds for the moments at which they count."""
    assert killed["none"]["cut_short"] >= 10
    answers = killed["none"]["answers"]
    assert sorted(by_item(answers)) == list(range(N_LINES))
    check_periods(Counter(each["at"] // PERIOD for each in answers if each["flag"]))
