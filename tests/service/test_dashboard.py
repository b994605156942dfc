"""The page of a reviewer and of a lead, with the service itself; see test_page for the rest."""

import shutil

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from shortlist.service.databases import opened  # noqa: E402
from shortlist.service.keys import make_key  # noqa: E402
from tests.service.helpers import case, made_queues, serving  # noqa: E402

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
    """Yield the page of a service with two flagged cases; nothing may go wrong in it."""
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
    page.wait_for_selector("#state:text-is('live')")
    page.fill("#reviewer", "kim")
    page.press("#reviewer", "Tab")
    page.evaluate("document.activeElement.blur()")
    page.select_option("#view", "open")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_selector("#cases li:nth-child(2)")
    yield page
    page.close()
    assert problems == []


def cases_of(page):
    """Return the ids that are listed."""
    return page.locator("#cases .id").all_text_contents()


def test_cases_are_listed_with_reasons(page):
    """Texts of cases stay texts, and each row says which columns raised its score."""
    assert cases_of(page) == ["second", "first <b>"]
    assert "amount = 900" in page.inner_text("#cases li")


def test_claim_release_and_outcome_by_keyboard(page, service):
    """Claimed, given back, handed out again, and closed with a note; then it leaves the list."""
    page.keyboard.press("j")
    page.wait_for_selector("#case-parts >> text=country")
    page.keyboard.press("c")
    page.wait_for_selector("#message:text-is('second is yours.')")
    page.keyboard.press("r")
    page.wait_for_selector("#message:text-is('second is free for anybody.')")
    page.keyboard.press("g")
    page.wait_for_selector("#message:text-is('second is yours.')")
    page.keyboard.press("m")
    page.keyboard.type("stolen")
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    page.wait_for_selector("#message:has-text('second: rare.')")
    [outcome] = service.get(f"{BASE}/decisions/second").json()["outcomes"]
    assert (outcome["rare"], outcome["reviewer"], outcome["note"]) == (True, "kim", "stolen")
    page.select_option("#view", "closed")
    page.wait_for_selector("#cases li")
    assert cases_of(page) == ["second"]


def test_cannot_tell_closes_a_case_and_counts_neither_way(page, service):
    """The precision is that of cases about which somebody could tell."""
    page.keyboard.press("j")
    page.keyboard.press("u")
    page.wait_for_selector("#message:has-text('second: cannot tell.')")
    page.keyboard.press("n")
    page.wait_for_selector("#message:has-text('first <b>: not rare.')")
    page.wait_for_selector("#count:text-is('No open cases.')")
    status = service.get(f"{BASE}/status").json()
    assert status["history"][-1]["precision"] | {"high": 0} == {
        "reviewed": 1, "found": 0, "share": 0.0, "low": 0.0, "high": 0
    }  # fmt: skip


def test_new_cases_appear_without_a_reload(page, service):
    """Within a second or two; the selection stays."""
    page.keyboard.press("j")
    service.put(f"{BASE}/capacity", json={"count": 8})
    service.post(f"{BASE}/decisions", json=[case(f"new {n}", 990.0 + n, "US") for n in range(9)])
    page.wait_for_selector("#count:text-is('8 cases')")
    assert page.inner_text("[aria-selected=true] .id") == "second"


def test_the_lead_page_has_all_numbers(page, service):
    """Of the service itself: what is left, the backlog, who has what, and the charts."""
    page.click("nav a[href='#team']")
    page.wait_for_selector("#people >> text=unassigned")
    service.put("/v1/reviewers/kim", json={"minutes": 60})
    page.wait_for_selector("#people >> text=60 minutes")
    shown = page.inner_text("#team")
    for text in ("left of 5 flags until", "kim", "in this period", "No shadow model"):
        assert text in shown
    page.click("#assign")
    page.wait_for_selector("#team-message:text-is('2 cases assigned; 0 left unassigned.')")


def test_with_keys_the_page_asks_for_one(tmp_path, model_file, browser):
    """The page itself shows nothing; a person's key says who they are, and hides the team."""
    database = tmp_path / "shortlist.db"
    made_queues(database, model_file)
    with opened(str(database)) as store:
        key = make_key(store, "review", person="lee")
    with serving(database, model_file, keys_required=True) as service:
        page = browser.new_page()
        page.goto(str(service.base_url))
        page.wait_for_selector("#key-label:not([hidden])")
        page.fill("#key", key)
        page.press("#key", "Tab")
        page.wait_for_selector("#state:text-is('live')")
        assert page.inner_text("#person") == "lee"
        assert page.is_hidden("#name-label")
        assert page.is_hidden("nav")
        page.close()
