"""The dashboard in Chromium: claims and outcomes by mouse and keyboard, live, dark and narrow."""

import shutil

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from shortlist.service.databases import opened  # noqa: E402
from shortlist.service.keys import make_key  # noqa: E402
from tests.service.helpers import case, serving  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
BASE = "/v1/queues/default"


@pytest.fixture(scope="module")
def browser():
    """Yield a browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, service):
    """Yield the dashboard of a service with two flagged cases; nothing may go wrong in it."""
    for id, amount in (("first <b>", 400.0), ("second", 900.0)):
        assert service.post(f"{BASE}/decisions", json=case(id, amount, "US")).json()["flag"]
    page, problems = browser.new_page(), []
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda asked: (
            None
            if asked.url.startswith((str(service.base_url), "data:"))
            else problems.append(asked.url)
        ),
    )
    page.goto(str(service.base_url))
    page.wait_for_selector("#cases tr:nth-child(2)")
    yield page
    page.close()
    assert problems == []


def cases_of(page):
    """Return the ids that are listed."""
    return page.eval_on_selector_all("#cases tr", "rows => rows.map(row => row.dataset.id)")


def test_the_list_is_ordered_by_score_with_reasons(page):
    """Texts of cases stay texts, and each row says which columns raised its score."""
    assert cases_of(page) == ["second", "first <b>"]
    assert "amount = 900" in page.inner_text("#cases tr")
    assert page.inner_text("#used") == "2"
    assert page.inner_text("#detection") == "not known"


def test_a_long_list_says_how_much_is_left(page):
    """A page shows some of the cases, and more on request."""
    page.evaluate("shown.most = 1; readCases()")
    page.wait_for_selector("#left:text-is('1 more with lower scores. ')")
    assert cases_of(page) == ["second"]
    page.click("#show-more")
    page.wait_for_selector("#cases tr:nth-child(2)")
    assert page.is_hidden("#show-more")


def test_claim_and_outcome_by_mouse(page, service):
    """A name is asked for; then the claim and the outcome are in the database."""
    page.click("#cases tr:first-child button:text('Claim')")
    page.wait_for_selector("#message.problem")
    page.fill("#reviewer", "kim")
    page.press("#reviewer", "Tab")
    page.click("#cases tr:first-child button:text('Claim')")
    page.wait_for_selector("#cases tr:first-child td:has-text('kim')")
    page.click("#cases tr:first-child button:text('Not rare')")
    page.wait_for_selector("#message:text-is('second: not rare.')")
    page.wait_for_selector("#precision-note:has-text('of 1 reviewed')")
    assert service.get(f"{BASE}/decisions/second").json()["outcomes"][0]["rare"] is False


def test_claim_and_outcome_by_keyboard(page, service):
    """Two steps down, claim, rare."""
    page.fill("#reviewer", "lee")
    page.press("#reviewer", "Tab")
    page.evaluate("document.activeElement.blur()")
    for key in ("j", "j", "c"):
        page.keyboard.press(key)
    page.wait_for_selector("#cases tr:nth-child(2) td:has-text('lee')")
    page.keyboard.press("y")
    page.wait_for_selector("#message:text-is('first <b>: rare.')")
    assert service.get(f"{BASE}/decisions/first%20%3Cb%3E").json()["outcomes"][0]["rare"]


def test_new_cases_appear_without_a_reload(page, service):
    """Within a second or two; the selection stays."""
    page.click("#cases tr:first-child")
    service.post(f"{BASE}/decisions", json=[case(f"new {n}", 990.0 + n, "US") for n in range(9)])
    service.put(f"{BASE}/capacity", json={"count": 8})
    page.wait_for_selector("#seen:text-is('11')")
    page.wait_for_selector("#capacity:text-is('8')")
    assert page.get_attribute("tr[data-id=second]", "aria-selected") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 380])
def test_it_fits_every_screen(page, tmp_path, scheme, width):
    """Nothing is cut off, and text stands out from its page."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    colours = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    light = [sum(int(part) for part in colour[4:-1].split(",")) for colour in colours]
    assert (light[0] < light[1]) == (scheme == "light")


def test_with_keys_the_page_asks_for_one(tmp_path, model_file, browser):
    """The page itself shows nothing; its data need the key."""
    database = tmp_path / "shortlist.db"
    with serving(database, model_file):
        pass
    with opened(str(database)) as store:
        key = make_key(store, "review")
    with serving(database, model_file, keys_required=True) as service:
        page = browser.new_page()
        page.goto(str(service.base_url))
        page.wait_for_selector("#key-label:not([hidden])")
        page.fill("#key", key)
        page.press("#key", "Tab")
        page.wait_for_selector("#state:has-text('live')")
        page.close()
