"""The page of a report, as a reader meets it: in Chromium, without a screen."""

import json
import re
import shutil
from itertools import pairwise

import pandas as pd
import pytest

from made_cases import percent
from shortlist import Capacity
from shortlist.report import make_report, render_report
from shortlist.tables import fit_table, select_rows

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
# The contrast of every text with what lies behind it, by the formula of the WCAG.
WEAK_TEXTS = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [x, y, z] = [r, g, b].map((c) => linear(c / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = numbers(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length || element.matches("script, noscript")) continue;
    const style = getComputedStyle(element);
    const color = numbers(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(color), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push([element.textContent.slice(0, 40), color]);
  }
  return weak;
}"""


@pytest.fixture(scope="module")
def browser():
    """Return a browser; one for all tests of this file in a process."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def summary(table_fit, new_cases):
    """Return the numbers of a report."""
    return make_report(table_fit.model, new_cases)


@pytest.fixture(scope="module")
def page_file(summary, tmp_path_factory):
    """Return the page of that report in a file."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(summary), encoding="utf-8")
    return path


LONG = "a_name_without_any_spaces_that_goes_on_and_on_" * 4
# Texts that are cut off, or that lie beyond the edge of the page.
SCROLLED_AWAY = """() => [...document.querySelectorAll(
    ".answer, .tiles b, .top .score, td, th, h1, h2, li, .reason")]
  .filter((each) => each.getClientRects().length && !each.closest("thead"))
  .filter((each) => {
    const box = each.getBoundingClientRect();
    return box.left < 0 || box.right > innerWidth + 0.5 || each.scrollWidth > each.clientWidth + 1
      && getComputedStyle(each).display !== "inline";
  }).map((each) => each.textContent.slice(0, 60))"""


@pytest.fixture(scope="module")
def long_page(cases, new_cases, tmp_path_factory):
    """Return a page about columns, ids, labels, segments and files with very long names."""
    folder = tmp_path_factory.mktemp("long")
    names = {"amount": f"amount_{LONG}", "case": f"case_{LONG}", "fraud": f"fraud_{LONG}"}
    paths = []
    for number, path in enumerate((cases, new_cases)):
        frame = pd.read_csv(path)
        frame["case"] = [f"{i}_{LONG}" for i in range(len(frame))]
        frame["fraud"] = frame["fraud"].map({"yes": f"yes_{LONG}", "no": "no"})
        if number:
            frame["team"] = frame["country"] + LONG
        paths.append(folder / f"{number}_{LONG}.csv")
        frame.rename(columns=names).to_csv(paths[-1], index=False)
    result = fit_table(
        paths[0],
        target=names["fraud"],
        id=names["case"],
        capacity=Capacity.fraction(0.1),
        learner="logistic",
    )
    path = folder / "report.html"
    summary = make_report(result.model, paths[1], segment="team", title=LONG)
    path.write_text(render_report(summary), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def unlabelled_page(table_fit, new_cases, tmp_path_factory):
    """Return a page without labels."""
    path = tmp_path_factory.mktemp("unlabelled") / "report.html"
    frame = pd.read_csv(new_cases).drop(columns="fraud")
    summary = make_report(table_fit.model, frame, segment="country")
    path.write_text(render_report(summary), encoding="utf-8")
    return path


@pytest.fixture
def open_page(browser):
    """Return a function that opens a page, and check at the end that it was quiet."""
    contexts, complaints, requests = [], [], []

    def open_page(path, **options):
        context = browser.new_context(**{"viewport": {"width": 1000, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith("file:") and url.endswith(".html") for url in requests), requests


def shown(page, name):
    """Return the text of an element."""
    return page.locator(f"#{name}").text_content()


def check_cut(page, summary, flags):
    """What is shown at a cut is what the summary says."""
    cuts, place = summary["cuts"], summary["cuts"]["flags"].index(flags)
    assert shown(page, "cut-flags") == f"{flags:,}"
    assert shown(page, "cut-found") == f"{cuts['found'][place]:,}"
    assert shown(page, "cut-detection") == percent(cuts["detection"][place])
    assert shown(page, "cut-precision") == percent(cuts["precision"][place])
    assert page.locator("#cut").input_value() == str(place)


def test_the_page_opens_at_the_rule_in_use(open_page, page_file, summary):
    """Quietly, and without asking anybody for anything."""
    page = open_page(page_file)
    check_cut(page, summary, summary["promise"]["n_flagged"])
    is_a_list = summary["comparison"]["rule_is_a_list"]
    said = "This is the rule in use" if is_a_list else "As many flags as the rule in use"
    assert said in shown(page, "cut-compared")
    assert summary["promise"]["headline"] in page.locator("#verdict-title").text_content()


def test_the_slider_moves_by_keyboard(open_page, page_file, summary, table_fit, new_cases):
    """One step is one flag, the numbers are the library's, and the list names who comes on."""
    page, base = open_page(page_file), summary["promise"]["n_flagged"]
    page.locator("#cut").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    check_cut(page, summary, base + 3)
    rows = select_rows(table_fit.model, new_cases, count=base + 3).rows
    is_rare = pd.read_csv(new_cases)["fraud"].eq("yes")
    found = sum(bool(is_rare[row["row"] - 1]) for row in rows)
    assert shown(page, "cut-found") == str(found)
    assert f"{base + 3} flags" in page.locator("#cut").get_attribute("aria-valuetext")

    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    check_cut(page, summary, base - 5)
    page.keyboard.press("Home")
    assert shown(page, "cut-flags") == "0"
    assert shown(page, "cut-precision") == "–"
    page.keyboard.press("End")
    assert shown(page, "cut-flags") == f"{summary['cuts']['flags'][-1]:,}"
    assert "over the capacity" in shown(page, "cut-room")


def test_the_slider_moves_by_mouse(open_page, page_file, summary):
    """On the slider, and on the chart itself."""
    page = open_page(page_file)
    page.locator(".controls").scroll_into_view_if_needed()
    box = page.locator("#cut").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    most = summary["cuts"]["flags"][-1]
    flags = int(shown(page, "cut-flags"))
    assert abs(flags - 0.75 * most) < 0.05 * most
    check_cut(page, summary, flags)

    page.locator("svg.detection.wide").scroll_into_view_if_needed()
    chart = page.locator("svg.detection.wide").bounding_box()
    page.mouse.move(chart["x"] + chart["width"] * 0.3, chart["y"] + chart["height"] / 2)
    page.mouse.down()
    page.mouse.move(chart["x"] + chart["width"] * 0.5, chart["y"] + chart["height"] / 2)
    page.mouse.up()
    dragged = int(shown(page, "cut-flags"))
    assert abs(dragged - 0.47 * most) < 0.05 * most
    check_cut(page, summary, dragged)
    marker = page.locator("svg.detection.wide .cut").get_attribute("transform")
    x = float(re.search(r"translate\(([\d.]+)", marker)[1])
    assert x == pytest.approx(46 + (760 - 14 - 46) * dragged / most, abs=0.01)


def test_buttons_and_a_number_move_the_cut(open_page, page_file, summary):
    """To the capacity, to a number that was typed, and back."""
    page = open_page(page_file)
    page.locator("#to-room").click()
    check_cut(page, summary, summary["promise"]["room"])
    assert shown(page, "cut-room") == "exactly the capacity"
    page.locator("#cut-number").fill("33")
    page.locator("#cut-number").press("Enter")
    check_cut(page, summary, 33)
    page.locator("#to-rule").click()
    check_cut(page, summary, summary["promise"]["n_flagged"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 360])
def test_every_text_is_legible(open_page, page_file, scheme, width):
    """In light and dark, wide and narrow: contrast of 4.5 at least, and nothing sticks out."""
    size = {"width": width, "height": 800}
    page = open_page(page_file, color_scheme=scheme, viewport=size)
    page.locator("details").first.evaluate("each => { each.open = true; }")
    assert page.evaluate(WEAK_TEXTS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = "narrow" if width == 360 else "wide"
    assert page.locator(f"svg.detection.{drawn}").is_visible()
    assert page.locator("svg.detection >> visible=true").count() == 1
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 26)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize("width", [360, 390, 1000])
@pytest.mark.parametrize("which", ["page_file", "long_page", "unlabelled_page"])
def test_nothing_is_scrolled_away(open_page, request, which, width):
    """On a phone every answer is in sight: the page and its tables do not scroll sideways."""
    path = request.getfixturevalue(which)
    page = open_page(path, viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(SCROLLED_AWAY) == []
    assert page.locator(".answer >> visible=true").count() >= 5
    broken = """[...document.querySelectorAll(".score, .rank, .tiles b")].filter((each) =>
        each.getBoundingClientRect().height > 3 * parseFloat(getComputedStyle(each).fontSize))"""
    assert page.evaluate(f"{broken}.length") == 0
    assert (
        page.evaluate(
            """[...document.querySelectorAll("body *")].filter((each) =>
        ["auto", "scroll"].includes(getComputedStyle(each).overflowX)).length"""
        )
        == 0
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["long_page", "unlabelled_page"])
def test_every_text_of_the_other_pages_is_legible(open_page, request, which, scheme):
    """With groups and notes, on a phone and in print."""
    page = open_page(
        request.getfixturevalue(which),
        color_scheme=scheme,
        viewport={"width": 390, "height": 800},
    )
    assert page.evaluate(WEAK_TEXTS) == []
    page.emulate_media(media="print")
    assert page.evaluate(WEAK_TEXTS) == []


def test_on_a_phone_each_value_says_what_it_is(open_page, page_file):
    """The heading of a column stands above its value, because its row is a block of lines."""
    page = open_page(page_file, viewport={"width": 360, "height": 800})
    labels = page.evaluate(
        """[...document.querySelectorAll(".rules tbody tr:first-child td")].map((each) =>
        getComputedStyle(each, "::before").content)"""
    )
    assert labels == [
        '"Found within the capacity (M)"',
        '"Flagged"',
        '"Rare among them"',
        '"Precision"',
    ]
    boxes = [box.bounding_box() for box in page.locator(".rules tbody tr >> nth=0 >> td").all()]
    assert boxes[0]["y"] < boxes[2]["y"]
    assert boxes[0]["y"] == boxes[1]["y"]


def test_a_page_without_labels_is_quiet_and_whole(open_page, unlabelled_page):
    """Nothing asks for numbers that are not there."""
    page = open_page(unlabelled_page)
    assert page.locator("#cut").count() == 0
    titles = page.locator("h2").all_text_contents()
    assert "What changes when labels come" in titles
    assert page.locator("#verdict-title").text_content().strip().endswith("The capacity was kept")
    page.locator("a", has_text="What changes when labels come").click()
    assert page.evaluate("location.hash") == "#expectations-title"
    page.emulate_media(media="print")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_page_prints(open_page, page_file):
    """On white, without controls, and with the table unfolded."""
    page = open_page(page_file, color_scheme="dark")
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#cut").is_visible()
    assert page.locator("details").first.evaluate("each => each.open")
    assert page.evaluate(WEAK_TEXTS) == []


def test_the_page_can_be_read_without_seeing_it(open_page, page_file):
    """Landmarks, headings in order, and a name for everything that can be used or looked at."""
    page = open_page(page_file)
    for landmark in ("header", "main", "footer"):
        assert page.locator(landmark).count() == 1
    assert page.locator("html").get_attribute("lang") == "en"
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    nameless = page.evaluate(
        """[...document.querySelectorAll("input, button, section, [role=img], [role=region]")]
        .filter((each) => !(each.labels?.length || each.textContent.trim()
                            || each.getAttribute("aria-label")
                            || document.getElementById(each.getAttribute("aria-labelledby"))))
        .length"""
    )
    assert nameless == 0
    assert page.locator("[role=status]").get_attribute("aria-live") == "polite"
    assert page.locator("th:not([scope])").count() == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the report"


def test_the_page_says_its_numbers_without_scripts(open_page, page_file, summary):
    """Only the slider is missing."""
    page = open_page(page_file, java_script_enabled=False)
    assert shown(page, "cut-flags") == str(summary["promise"]["n_flagged"])
    assert not page.locator("#cut").is_visible()


def test_hostile_names_are_only_text(open_page, cases, new_cases, tmp_path):
    """Columns, ids, labels and file names cannot run anything, and are shown as they are."""
    spoil = {"amount": HOSTILE, "case": f"id {HOSTILE}", "fraud": f"y {HOSTILE}"}
    paths = []
    for number, path in enumerate((cases, new_cases)):
        frame = pd.read_csv(path)
        frame["case"] = [f"{HOSTILE[:40]}{i}" for i in range(len(frame))]
        frame["fraud"] = frame["fraud"].map({"yes": HOSTILE, "no": "&lt;no&gt;"})
        frame["country"] = f"<b>{HOSTILE}"
        paths.append(tmp_path / f"<b>{number}.csv")
        frame.rename(columns=spoil).to_csv(paths[-1], index=False)
    result = fit_table(
        paths[0],
        target=spoil["fraud"],
        id=spoil["case"],
        rare=HOSTILE,
        capacity=Capacity.fraction(0.1),
        learner="logistic",
    )
    out = tmp_path / "report.html"
    out.write_text(render_report(make_report(result.model, paths[1])), encoding="utf-8")
    page = open_page(out)
    page.locator("#cut").press("ArrowRight")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == page.locator("section b b").count() == 0
    assert page.locator("script").count() == 2
    assert HOSTILE in page.locator("h1").text_content()
    assert HOSTILE in page.locator("table.drift").text_content()
    assert page.locator("ol.top .name").first.text_content().startswith(HOSTILE[:40])


def test_all_numbers_can_be_saved(open_page, page_file, summary):
    """As the JSON that the page is made from."""
    page = open_page(page_file)
    with page.expect_download() as download:
        page.locator("#save-json").click()
    assert json.loads(download.value.path().read_text()) == summary


@pytest.mark.parametrize("width", [1000, 390])
def test_headline_numbers_stand_on_one_baseline(open_page, page_file, width):
    """In each row of tiles, however many lines the words above them take."""
    page = open_page(page_file, viewport={"width": width, "height": 900})
    rows = page.evaluate(
        """[...document.querySelectorAll(".tiles")].flatMap((tiles) => {
            const rows = {};
            for (const tile of tiles.children) {
                const top = Math.round(tile.getBoundingClientRect().top);
                const number = tile.querySelector("b").getBoundingClientRect().top;
                (rows[top] ??= []).push(Math.round(number));
            }
            return Object.values(rows);
        })"""
    )
    assert max(map(len, rows)) == (4 if width == 1000 else 2)
    assert all(len(set(row)) == 1 for row in rows)


def test_text_fills_its_card(open_page, page_file):
    """A paragraph is as wide as the tables below it."""
    page = open_page(page_file, viewport={"width": 1000, "height": 900})
    widths = page.evaluate(
        """[...document.querySelectorAll("section > p")].map((p) => {
            const card = getComputedStyle(p.parentElement);
            const inner = p.parentElement.clientWidth
                - parseFloat(card.paddingLeft) - parseFloat(card.paddingRight);
            return p.getBoundingClientRect().width / inner;
        })"""
    )
    assert min(widths) > 0.99


def test_what_the_fit_expected_has_intervals_as_well(open_page, page_file, summary):
    """Those of M and of the precision, in both columns."""
    page = open_page(page_file)
    cells = page.locator("section:has(#expectations-title) tbody td .under").all_text_contents()
    before, own = summary["card"]["fit"]["rules"][0], summary["comparison"]["rules"][0]
    ends = [
        each[f"{what}_interval"] for what in ("detection", "precision") for each in (own, before)
    ]
    said = [f"{percent(low)[:-2]} to {percent(high)}" for low, high in ends]
    assert cells == said
