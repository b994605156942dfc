"""The pages of a reviewer and of a lead in Chromium, with a service that answers from memory."""

import os
import shutil
import sys
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from tests.service.fake_service import ADDRESS, FakeService  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
AXE = Path(os.environ.get("SHORTLIST_AXE", Path(sys.prefix) / "axe.min.js"))
SCREENS = [(width, scheme) for width in (390, 768, 1_440) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser():
    """Yield a browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Yield a function that opens a page of a service; no script may fail in it."""
    contexts, problems = [], []

    def open_page(service, page="review", *, width=1_440, scheme="light"):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        made = context.new_page()
        made.on("pageerror", lambda error: problems.append(str(error)))
        service.attach(made)
        made.goto(f"{ADDRESS}#{page}")
        made.wait_for_selector("#state:text-is('live')")
        return made

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def ids_of(page):
    """Return the cases that are listed."""
    return page.locator("#cases .id").all_text_contents()


def test_open_cases_of_all_periods_are_listed_in_order(open_page):
    """The oldest period first; what is late says so."""
    page = open_page(FakeService())
    page.wait_for_selector("#cases li")
    assert ids_of(page) == ["c00002", "c00000", "c00004"]
    assert "1 day late" in page.inner_text("#cases li")
    page.select_option("#view", "open")
    page.wait_for_selector("#cases li:nth-child(6)")
    assert ids_of(page)[0] == "c00003"
    page.select_option("#segment", "wire")
    page.wait_for_selector("#count:text-is('3 cases')")
    assert ids_of(page) == ["c00003", "c00001", "c00005"]


def test_rows_of_another_view_are_gone_at_once(open_page):
    """Whoever clicks before the answer comes opens no case of the view before."""
    service = FakeService()
    page = open_page(service)
    page.wait_for_selector("#cases li")
    service.away = True
    page.select_option("#view", "closed")
    assert ids_of(page) == []


def test_one_case_shows_columns_reasons_events_and_notes(open_page):
    """Texts of a case stay texts."""
    service = FakeService()
    service.cases["c00000"]["outcome"] = {
        "rare": None, "reviewer": "Lee", "at": 1.7e9, "note": "<i>ask</i>"
    }  # fmt: skip
    page = open_page(service)
    page.select_option("#view", "closed")
    page.click("#cases li")
    page.wait_for_selector("#case-parts >> text=Events")
    shown = page.inner_text("#case-pane")
    assert "Lee: cannot tell" in shown
    for text in ("amount = 900.25", "<b>bold</b>", "country", "<i>ask</i>", "c00000 again"):
        assert text in shown
    assert page.evaluate("document.activeElement.id") == "case-title"


def test_a_hundred_cases_take_a_hundred_keys(open_page):
    """One key to begin, and one for each case; every outcome arrives once."""
    service = FakeService(200)
    page = open_page(service)
    page.wait_for_selector("#cases li:nth-child(100)")
    keys = ["j", *("yn"[n % 2] for n in range(100))]
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_selector("#count:has-text('You have no open cases')")
    page.wait_for_function("sending.size === 0")
    told = [body for path, body, _ in service.asked if path == "outcomes"]
    assert len(keys) == 101
    assert len(told) == len({body["id"] for body in told}) == 100
    assert {body["rare"] for body in told} == {True, False}


def test_note_cannot_tell_release_and_back(open_page):
    """A note goes with the outcome; z goes back to change it; r gives a case back."""
    service = FakeService()
    page = open_page(service)
    page.wait_for_selector("#cases li")
    page.keyboard.press("j")
    page.keyboard.press("m")
    page.keyboard.type("yes, no, u?")  # no letter of a note is a command
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.wait_for_selector("#message:has-text('c00002: cannot tell. 2 cases left.')")
    path, body, key = service.asked[-1]
    assert (path, body["rare"], body["note"]) == ("outcomes", None, "yes, no, u?")
    assert key
    page.keyboard.press("z")
    page.wait_for_selector("#case-title:text-is('c00002')")
    page.keyboard.press("y")
    page.wait_for_selector("#message:has-text('c00002: rare.')")
    assert page.inner_text("#case-title") == "c00000"  # where they had been
    page.keyboard.press("r")
    page.wait_for_selector("#message:has-text('is free for anybody.')")
    assert service.asked[-1][:2] == ("releases", {"id": "c00000", "decline": False})


def test_the_next_case_is_handed_out(open_page):
    """With g; and a word when there is none."""
    service = FakeService(2)
    page = open_page(service)
    page.wait_for_selector("#cases li")
    page.keyboard.press("g")
    page.wait_for_selector("#message:text-is('c00001 is yours.')")
    assert page.inner_text("#case-title") == "c00001"
    page.keyboard.press("g")
    page.wait_for_selector("#message:has-text('no case for you')")


def test_work_goes_on_while_the_service_is_away(open_page):
    """Outcomes wait, are sent when it is back, and count once."""
    service = FakeService()
    page = open_page(service)
    page.wait_for_selector("#cases li")
    service.away = True
    page.keyboard.press("j")
    for _ in range(2):
        page.keyboard.press("n")
    page.wait_for_selector("#state.problem:has-text('no answer since')")
    page.wait_for_selector("#message.problem:has-text('2 outcomes not saved yet')")
    assert ids_of(page) == ["c00004"]
    assert service.asked == []
    service.away = False
    page.wait_for_function("sending.size === 0")
    page.wait_for_selector("#state:text-is('live')")
    assert sorted(body["id"] for _, body, _ in service.asked) == ["c00000", "c00002"]
    assert ids_of(page) == ["c00004"]


def test_what_the_service_refuses_is_said(open_page):
    """And the case comes back to the list."""
    service = FakeService()
    page = open_page(service)
    page.wait_for_selector("#cases li")
    service._change = lambda rest, body: (409, {"detail": "Lee has the case."})
    page.keyboard.press("j")
    page.keyboard.press("y")
    page.wait_for_selector("#message.problem:has-text('c00002 was not saved: Lee has the case.')")
    page.wait_for_selector("#cases .id:text-is('c00002')")


def test_on_a_phone_a_case_does_not_hide_what_became_of_the_last_one(open_page):
    """Refusals and what is not saved yet are seen above the case that comes next."""
    service = FakeService()
    page = open_page(service, width=390)
    page.wait_for_selector("#cases li")
    service._change = lambda rest, body: (409, {"detail": "Lee has the case."})
    page.click("#cases li")
    page.wait_for_selector("#case-parts h3")
    page.keyboard.press("y")
    page.wait_for_selector("#message.problem:has-text('Lee has the case.')", state="visible")
    assert page.is_hidden("#list-pane")


def test_only_what_can_be_done_is_offered(open_page):
    """An assigned case needs no claim, a free one cannot be released, and a closed one neither."""
    service = FakeService(2)
    page = open_page(service)
    page.select_option("#view", "open")
    shown = {}
    for place, id in enumerate(("c00000", "c00001")):  # one is mine, one is free
        page.click(f"#cases li:has-text('{id}')")
        page.wait_for_selector(f"#case-title:text-is('{id}')")
        page.wait_for_selector("#case-parts h3")
        buttons = page.locator("#actions button:visible").all_text_contents()
        shown[place] = {text.split()[0] for text in buttons} & {"Claim", "Release", "Not for me"}
    assert shown == {0: {"Release"}, 1: {"Claim"}}
    page.locator("#actions [data-key=y]").click()
    page.wait_for_selector("#message:has-text('rare')")
    page.select_option("#view", "closed")
    page.click("#cases li")
    page.wait_for_selector("#case-facts:has-text('Kim: rare')")
    assert page.locator("#actions button:visible").count() == 3


def test_more_rows_stay_although_the_page_was_asking(open_page):
    """A list that was asked for before they came does not take them away."""
    page = open_page(FakeService(1_000))
    page.select_option("#view", "open")
    page.wait_for_selector("#count:text-is('1,000 cases, 200 shown')")
    page.evaluate("() => { at('show-more').click(); return readAgain(); }")
    assert len(ids_of(page)) == 400


def test_ten_thousand_open_cases(open_page):
    """Some are listed, and more on request; the keys still work."""
    page = open_page(FakeService(10_000))
    page.select_option("#view", "open")
    page.wait_for_selector("#count:text-is('10,000 cases, 200 shown')")
    page.click("#show-more")
    page.wait_for_selector("#cases li:nth-child(400)")
    assert len(set(ids_of(page))) == 400
    page.keyboard.press("j")
    page.keyboard.press("y")
    page.wait_for_selector("#message:has-text('9,999 cases left.')")


def test_a_probe_looks_like_every_other_case(open_page):
    """Even if a service says which it is, the page of a reviewer does not."""
    service = FakeService(role="review")
    for case in service.cases.values():
        case["probe"] = case["id"] == "c00000"
    page = open_page(service)
    page.wait_for_selector("#cases li")
    rows = page.eval_on_selector_all("#cases li", "rows => rows.map((row) => row.className)")
    assert set(rows) == {""}
    assert "probe" not in page.content().lower()
    assert page.is_hidden("nav")


def test_without_a_person_the_page_asks_for_a_name(open_page):
    """On a laptop without keys, a name is typed; it goes with every change."""
    service = FakeService(person=None)
    page = open_page(service)
    page.wait_for_selector("#count:has-text('Enter your name')")
    page.fill("#reviewer", "Kim")
    page.press("#reviewer", "Tab")
    page.wait_for_selector("#cases li")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("y")
    page.wait_for_selector("#message:has-text('c00002: rare.')")
    assert service.asked[-1][1]["reviewer"] == "Kim"


def test_the_lead_sees_what_is_left_and_who_has_what(open_page):
    """Until when, by age, with dates on the axes; one button assigns what nobody has."""
    service = FakeService(12)
    page = open_page(service, "team")
    page.wait_for_selector("#people tr:nth-child(3)")
    shown = page.inner_text("#team")
    found = "50\u00a0%", "61\u00a0% to 93\u00a0%"
    said = ("left of 50 flags", *found, "up to 6", "away until", "unassigned")
    for text in (*said, "in this period", "3 days ago", "Shadow model 2: not enough evidence"):
        assert text in shown
    for chart in ("flags-chart", "precision-chart"):
        texts = page.locator(f"#{chart} text").all_text_contents()
        assert "Nov" in " ".join(texts) or len(texts) > 5
        assert page.get_attribute(f"#{chart}", "aria-label")
    page.click("#assign")
    page.wait_for_selector("#team-message:text-is('2 cases assigned; 1 left unassigned.')")


@pytest.mark.parametrize("name", ["review", "team"])
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_every_screen_and_reader(open_page, name, width, scheme):
    """Nothing is cut off, and axe finds nothing; neither in the list nor in a case."""
    page = open_page(FakeService(12), name, width=width, scheme=scheme)
    page.wait_for_selector("#cases li, #people tr", state="attached")
    for key in ("", "j") if name == "review" else ("",):
        if key:
            page.keyboard.press(key)
            page.wait_for_selector("#case-parts h3")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if AXE.exists():
            page.evaluate(AXE.read_text())
            found = page.evaluate("axe.run()")["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    if not AXE.exists():
        pytest.skip("axe-core is not there: make test fetches it where npm can")
