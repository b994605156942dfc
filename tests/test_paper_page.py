"""The page about the paper: all of it, and every line runs."""

import contextlib
import importlib.util
import io
import re
import warnings
from pathlib import Path

import pytest

from studies.paper.figures import FIGURES
from studies.tables import read_table

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "appendix" / "paper.md").read_text()
ROWS = [
    (int(number), line, shown_by)
    for number, line, shown_by in re.findall(r"^\| (\d+) \|.*\| `(.*)` \| `(.*)` \|$", PAGE, re.M)
]
ITEMS = re.findall(r"^\| \d+ \| (.*) \| `.*` \| `.*` \|$", PAGE, re.M)


#: What the paper numbers, in the order in which it comes, and the symbols it uses.
NUMBERED = [
    *("equation (1)", "Proposition 1", "Remark 1", "Remark 2", "Proposition 2", "Figure 1"),
    *("Definition 1", "Theorem 1", "Corollary 1", "Lemma 1", "Proposition 3", "Theorem 2"),
    *("Figure 2", "equation (2)", "equation (3)", "Theorem 3", "Remark 3", "Theorem 4"),
    *("Theorem 5", "Theorem 6", "Corollary 2", "Figure 3", "Proposition 4", "Figure 4"),
    *("Figure 5", "Figure 6", "Figure 7"),
]
SYMBOLS = [
    *(
        "b",
        "π₀",
        "π₁",
        "C_b",
        "L(g)",
        "L̂ₙ",
        "g_b",
        "g_c",
        "R(g)",
        "A_γ*",
        "P_γ*",
        "γ*",
        "π₀′",
        "μ_c",
    ),
    *("w", "M", "M̂", "A₁", "A₂", "B", "ĝ_b", "S(C, n)", "A1", "A2", "f̂₀", "γ̂*", "a₀", "â₀", "M₀"),
    *("η̂", "τ", "τ̂", "P̂₀₀", "P₀₀", "g_p-h", "τ(s)", "s_θ", "f_S", "τ_b(S)", "g_{S,b}", "n_max"),
    *("g_b*", "C_{b₀,b₁}", "P̂_t", "α", "π₀,t", "b_t"),
]


@pytest.fixture(scope="module")
def names():
    """Run the code at the top of the page."""
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], found)
    return found


def test_no_item_of_the_paper_is_left_out():
    """In its order."""
    assert [number for number, *_ in ROWS] == list(range(1, 92))


def test_what_the_paper_numbers_is_there_in_its_order():
    """Propositions, theorems, equations and figures under their numbers."""
    told = re.findall("|".join(map(re.escape, NUMBERED)), " ".join(ITEMS))
    assert list(dict.fromkeys(told)) == NUMBERED


@pytest.mark.parametrize("page", ["README.md", "docs/appendix/paper.md"])
def test_all_judged_statements_are_counted(page):
    """As many as the table has, which a page of the documentation shows."""
    table = read_table(ROOT / "studies" / "paper" / "summary.csv")
    assert re.search(rf"\[{len(table)} (of its )?statements", (ROOT / page).read_text())
    shown = (ROOT / "docs" / "appendix" / "reproduce.md").read_text()
    assert ":file: ../../studies/paper/summary.csv" in shown


#: What the page says of some items, and the verdict in the table on which that rests.
VERDICTS = [
    (
        9,
        "it does not hold",
        "where the rule of Bayes flags less than the capacity, g_b is that rule",
    ),
    (10, "it shrinks it", "where the capacity binds, the region of g_b is the larger one"),
    (13, "need not go to infinity", "γ* → ∞ as b → 0"),
    (54, "0.281 here", "the forest under the capacity has M (π₀ = 0.02, b = 3)"),
    (56, "not here", "support vectors: SMOTE stays close to zero"),
    (72, "here 270 to 1,069", "support vectors of the usual machine"),
    (73, "the second not here", "g_b* is the strongest of all: above g_b with a forest"),
]


@pytest.mark.parametrize(("number", "words", "statement"), VERDICTS)
def test_what_does_not_hold_is_what_the_table_says(number, words, statement):
    """A verdict that changes when a study is run again changes the page as well."""
    table = read_table(ROOT / "studies" / "paper" / "summary.csv")
    assert words in ITEMS[number - 1]
    assert [row["agrees"] for row in table if row["statement"] == statement] == ["no"]


def test_the_symbols_of_the_paper_are_used():
    """Each stands in an item, as a word of its own."""
    text = " ".join(ITEMS)
    assert [s for s in SYMBOLS if not re.search(rf"(?<!\w){re.escape(s)}(?!\w)", text)] == []


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", PAGE))
def test_links_lead_to_a_heading(target):
    """Of this page or another."""
    path, _, anchor = target.partition("#")
    text = (ROOT / "docs" / "appendix" / path).read_text() if path else PAGE
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert anchor in slugs | set(re.findall(r"^\((.*)\)=$", text, re.M))


@pytest.mark.parametrize(("number", "line", "shown_by"), ROWS, ids=lambda value: str(value)[:30])
def test_a_line_runs_and_what_shows_it_exists(names, number, line, shown_by):
    """A line of Python gives something; a command names a study, and a figure that it draws."""
    assert shown_by.startswith(("tests/", "studies/"))
    assert (ROOT / shown_by).exists()
    if line.startswith("python -m "):
        module, *rest = line.removeprefix("python -m ").split()
        assert importlib.util.find_spec(module) is not None
        assert set(rest[:1]) <= set(FIGURES)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert eval(line, names) is not False
