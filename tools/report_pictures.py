"""Take the pictures of a report that the documentation shows: on a phone, in the dark, in print.

`python tools/report_pictures.py` fits a model to the tables of `docs/start.md`, makes a report and
writes `docs/_static/report-*.png`. Needs Chromium, playwright and Pillow. Look at the pictures.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from shortlist import Capacity
from shortlist.report import make_report, render_report
from shortlist.tables import fit_table

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "_static"
GAP = 24
# Two screens of a phone, one beside the other; a dark screen; and paper with its margins.
PHONE = {"width": 390, "height": 1250, "scale": 1.25}
DARK = {"width": 1000, "height": 1250, "media": {"color_scheme": "dark"}}
PAPER = {"width": 794, "height": 1123, "media": {"media": "print"}, "style": "body{padding:57px}"}


def main() -> None:
    """Make the report and take its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(a_report(Path(folder)), encoding="utf-8")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            begins = ("header", "#list-title", "#groups-title")
            save("report-phone", *(screen(browser, page, begin, **PHONE) for begin in begins))
            save("report-dark", screen(browser, page, "header", **DARK))
            save("report-print", screen(browser, page, "header", **PAPER))
            browser.close()


def a_report(folder: Path) -> str:
    """Return a page about the tables of the ten-minute start."""
    script = re.search(r"```python\n(.*?)```", (DOCS / "start.md").read_text(), re.DOTALL)
    assert script is not None
    os.chdir(folder)
    exec(script[1], {})
    result = fit_table(
        folder / "cases.csv",
        target="fraud",
        id="case",
        capacity=Capacity.count(60, per=1_000),
        learner="logistic",
    )
    summary = make_report(
        result.model,
        Path("later.csv"),
        segment="country",
        title="Fraud in the latest cases",
    )
    return render_report(summary)


def screen(
    browser: Any,
    file: Path,
    begin: str,
    *,
    width: int,
    height: int,
    scale: float = 1,
    media: dict[str, Any] | None = None,
    style: str = "body{}",
) -> Image.Image:
    """Return what is to be seen of the page from one of its elements on."""
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, device_scale_factor=scale)
    page = context.new_page()
    page.emulate_media(**(media or {}))
    page.goto(file.as_uri())
    page.add_style_tag(content=style)
    top = max(page.locator(begin).bounding_box()["y"] - 20, 0)
    clip = {"x": 0, "y": top, "width": width, "height": height}
    picture = page.screenshot(full_page=True, clip=clip)
    context.close()
    return Image.open(io.BytesIO(picture)).convert("RGB")


def save(name: str, *screens: Image.Image) -> None:
    """Save screens side by side, with few colours to keep the file small."""
    widths = [each.width + GAP for each in screens]
    picture = Image.new("RGB", (sum(widths) - GAP, screens[0].height), "white")
    for place, each in enumerate(screens):
        picture.paste(each, (sum(widths[:place]), 0))
    picture.quantize(200).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
