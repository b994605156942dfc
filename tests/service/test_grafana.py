"""The dashboard for Grafana shows metrics that a service has, and all of them."""

import json
import re
from pathlib import Path

from tests.service.test_api import flagged_case

BOARD = json.loads((Path(__file__).parents[2] / "docs/_static/grafana.json").read_text())


def test_every_metric_of_the_board_is_one_of_the_service(service):
    """And every metric of the service has a place on the board, with labels that it has."""
    flagged_case(service)
    text = service.get("/metrics").text
    samples = dict(re.findall(r"^(shortlist_\w+)(.*) \S+$", text, re.MULTILINE))
    shown = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    asked = set(re.findall(r"shortlist_\w+", " ".join(shown)))
    assert asked == set(samples)
    for name, label in re.findall(r"(shortlist_\w+)\{(\w+)=", " ".join(shown)):
        assert f"{label}=" in samples[name]
    for labels, name in re.findall(r"by \((\w+)\) \(rate\((\w+)", " ".join(shown)):
        assert f"{labels}=" in samples[name]


def test_panels_do_not_overlap():
    """Each has an id and a place of its own."""
    taken = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
