"""Take the pictures of the pages of a service that the documentation shows.

`python tools/page_pictures.py` fits a model to simulated payments, lets a service decide two weeks
of them with a clock that is moved on, reviews most of the flags, and writes
`docs/_static/page-*.png`. With `--all FOLDER` it takes both pages at three widths, light and dark.
Needs Chromium, playwright and Pillow. Look at the pictures.
"""

from __future__ import annotations

import argparse
import io
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from shortlist import Capacity
from shortlist.datasets import FRAUD_FEATURES, make_fraud
from shortlist.service._service import Service
from shortlist.service.app import make_app
from shortlist.service.settings import ServiceConfig, SteadyClock
from shortlist.service.setup import prepare
from shortlist.tables import fit_table, save_model

PICTURES = Path(__file__).parents[1] / "docs" / "_static"
DAYS, A_DAY, FLAGS = 14, 300, 20
PARTS = 48  # of a day, in each of which some cases arrive
DAY = 86_400.0


def main() -> None:
    """Serve two weeks, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    folder = parser.parse_args().all
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        address, server = serve(Path(name))
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        if folder is None:
            save(PICTURES / "page-review.png", picture(browser, address, "review", 1_100, "light"))
            save(PICTURES / "page-team.png", picture(browser, address, "team", 1_100, "light"))
        else:
            folder.mkdir(exist_ok=True)
            for page in ("review", "team"):
                for width in (390, 768, 1_440):
                    for scheme in ("light", "dark"):
                        taken = picture(browser, address, page, width, scheme)
                        save(folder / f"{page}-{width}-{scheme}.png", taken)
        browser.close()
        server.should_exit = True


def serve(folder: Path) -> tuple[str, uvicorn.Server]:
    """Start a service, and let it live through two weeks."""
    X, y = make_fraud(n_samples=4_000, prevalence=0.05, random_state=0)
    table = pd.DataFrame(X, columns=FRAUD_FEATURES).round(2)
    table["channel"] = np.random.default_rng(0).choice(["card", "wire"], len(table))
    table.assign(fraud=np.where(y, "yes", "no")).to_csv(folder / "cases.csv", index=False)
    capacity = Capacity.count(FLAGS, per=A_DAY)
    fitted = fit_table(folder / "cases.csv", target="fraud", capacity=capacity, learner="logistic")
    save_model(fitted.model, folder / "model")
    passed, database, now = [DAYS * DAY], str(folder / "shortlist.db"), time.time
    time.time = lambda: now() - passed[0]  # every clock of this process but the monotonic ones
    clock = SteadyClock(float("inf"), wall=lambda: time.time())
    starts = time.time() - DAY / 3
    models = prepare(
        database, folder / "model", {"payments": FLAGS}, period=DAY, starts_at=starts,
        expect=A_DAY, probe=0.1, probe_key="pictures", segment="channel",
    )  # fmt: skip
    service = Service(ServiceConfig(database, clock=clock), models=models)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(service), log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with httpx.Client(base_url=address, timeout=60) as client:
        live(client, service, table, y, passed)
    return address, server


def live(client: httpx.Client, service: Service, table: Any, y: Any, passed: list[float]) -> None:
    """Let two weeks of cases be decided and mostly reviewed."""
    rng = np.random.default_rng(1)
    while not service.ready:
        time.sleep(0.05)
    base = "/v1/queues/payments"
    rows = table.to_dict("records")
    for day in range(DAYS + 1):
        chosen = rng.choice(len(rows), A_DAY, replace=False).tolist()
        for part in range(PARTS if day < DAYS else PARTS // 3):
            passed[0] = (DAYS - day - (part + 1) / PARTS + 1 / 3) * DAY
            some = chosen[part::PARTS]
            cases = [{"id": f"p{day:02}-{n:04}", **rows[n]} for n in some]
            client.post(f"{base}/decisions", json=cases).raise_for_status()
        flagged = client.get(f"{base}/cases?view=open&limit=1000").json()["cases"]
        share = 1.0 if day < DAYS - 3 else 0.5
        for case in [each for each in flagged if rng.random() < share]:
            rare = bool(y[int(case["id"][-4:])])
            body = {"id": case["id"], "rare": rare, "reviewer": str(rng.choice(["Kim", "Lee"]))}
            client.post(f"{base}/outcomes", json=body).raise_for_status()
    away = time.time() + 2 * DAY
    client.put("/v1/reviewers/Kim", json={"minutes": 40, "segments": ["wire"]})
    client.put("/v1/reviewers/Lee", json={"minutes": 30, "segments": ["card"]})
    client.put("/v1/reviewers/Noor", json={"minutes": 20, "absent_until": away})
    client.post(f"{base}/assignments", json={}).raise_for_status()


def picture(browser: Any, address: str, name: str, width: int, scheme: str) -> Image.Image:
    """Return a page as Kim sees it; with a case open."""
    context = browser.new_context(viewport={"width": width, "height": 820}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{address}/#{name}")
    page.wait_for_selector("#state:text-is('live')")
    page.fill("#reviewer", "Kim")
    page.press("#reviewer", "Tab")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_selector("#cases li" if name == "review" else "#people tr")
    if name == "review":
        page.keyboard.press("j")
        page.wait_for_selector("#case-parts h3")
    page.wait_for_timeout(300)
    taken = page.screenshot(full_page=True)
    context.close()
    return Image.open(io.BytesIO(taken)).convert("RGB")


def save(path: Path, picture: Image.Image) -> None:
    """Save a picture with few colours, to keep the file small."""
    picture.quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
