"""A short form of `make faults-service`: a service is hurt, and its answers are checked."""

import pytest

from tools.service_faults import torment


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_service_that_is_hurt_keeps_every_promise(kind, request):
    """Kills, pauses, full disks, lost sessions and clocks: no answer is wrong, none is lost."""
    if kind == "postgresql":
        request.getfixturevalue("postgres")  # skips where it is not installed
    numbers, problems = torment(kind, 9, pause=0.3, calm=0.5, seed=1, two_versions=False)
    assert problems == {}
    assert numbers["answers"] > 50
    assert sum(numbers["faults"].values()) >= 8
