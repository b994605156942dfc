"""Measured numbers that README and documentation quote are in tables that scripts make again.

A section names the scripts or tables of its numbers, such as `studies/online/regret.py`. Every
number with a decimal point or a percent sign must then be in one of these tables, rounded or in
percent, or among what code of the page prints, which another test compares. Single numbers of two
digits are soon found by chance in a long table. So a mean and its error must stand side by side in
one row, and the mean with the sign that is quoted; numbers beside each other in a row of a page
must be in one row of a table, or in one column of rows that differ in one name at most; and a count
such as "16 of 18" must be in one cell. A whole number of three digits or more must be in a table,
too, where a section names one and on pages about studies, unless it is round: those are settings.
Docstrings quote no results. Numbers that nobody measured are listed here, and so are sections about
speed, which belongs to a machine: they name a benchmark.
"""

import ast
import csv
import re
from functools import cache
from itertools import pairwise
from math import floor
from pathlib import Path
from statistics import mean, stdev

import pytest

from studies.paper.words import BEGIN, END

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies" / "README.md"
PAGES = [ROOT / "README.md", STUDIES, *sorted((ROOT / "docs").rglob("*.md"))]
NUMBER = re.compile(r"(?<![\w.])\d*\.\d+(?![\w.]*\.\d)")
PERCENT = re.compile(r"(?<![\w.,])\d+(?=(?:,? (?:to|and|or) [\d.]+)? ?%)")
BESIDE = re.compile(f"{NUMBER.pattern}|{PERCENT.pattern}")
POINTS = re.compile(r"(?<![\w.,])\d+(?= points?\b|-fold\b)")
WITH_ERROR = re.compile(r"(?<![\w.])([+−-]?)\**(\d*\.?\d+)\**\s±\s(\d*\.?\d+)")
COUNT = re.compile(r"(?<![\w.,])\d+ of \d+(?![\w.,]*\d)")
WHOLE = re.compile(r"(?<![\w.,^:/-])(?:\d{1,3}(?:,\d{3})+|\d{3,})(?![\w.,:/-]*\d)")
ROUND = 100
KEEL = re.compile(r"(\d+) [|/] (\d+) [|/] (\d+)(?: \||,) ([+−][\d.]+) ± ([\d.]+) \|")
ROUNDING = 1e-9
#: By page and section: versions, numbers of sections and papers, settings, examples.
NOT_MEASURED = {
    ("README.md", "shortlist"): "3.11 3.14 2605.03289",
    ("studies/README.md", "Studies"): "3.11",
    ("docs/appendix/learners-study.md", "Study: learners"): "0.1 0.01",
    ("docs/appendix/detection-study.md", "Beside AutoGluon, and whether CatBoost would help"): (
        "0.35"
    ),
    ("docs/appendix/online-study.md", "What cases of customers find"): "2.5",
    ("docs/appendix/online-study.md", "What it costs not to know the future"): "2607.02150",
    ("docs/appendix/paper.md", "From the paper to the code"): "2605.03289",
    ("docs/appendix/paper.md", "The problem and its solution (section 2)"): "8.721",
    ("docs/appendix/paper.md", "Where we differ, and why"): "2.3 3.2 3.4 3.6 5.2",
    ("docs/appendix/reproduce.md", "Reproducing the paper"): "2.3 3.2 3.7 4.1 4.3",
    ("docs/command-line.md", "fit"): "0.06 0.95",
    ("docs/command-line.md", "select"): "5% 0.1 0.5 0.9",
    ("docs/command-line.md", "flag"): "1% 0.9",
    ("docs/command-line.md", "check"): "1% 0.1",
    ("docs/command-line.md", "evaluate"): "0.9 0.95",
    ("docs/command-line.md", "stream"): "0.1 0.2",
    ("docs/concepts/capacity.md", "Exact arithmetic"): "0.29",
    ("docs/concepts/how-fit-learns.md", "Different models, averaged"): "2% 0.3 0.05 0.1",
    ("docs/concepts/online.md", "A number per period"): "4.2 2607.02150 1710.07719",
    ("docs/concepts/worth.md", "A batch"): "0.1 0.3 0.2",
    ("docs/how-to/choose-a-capacity.md", "Ask for a detection"): "40% 2.5",
    ("docs/how-to/find-what-is-missed.md", "Plan probes before you pay for them"): "2% 55% 0.9 2.5",
    ("docs/how-to/guarantees-in-practice.md", "All nights together"): "0.05",
    ("docs/how-to/large-tables.md", "What is equal, and what is refused"): "90% 0.0 7.0",
    ("docs/how-to/learners.md", "Ready-made learners"): "0.1",
    ("docs/how-to/learners.md", "Where the threshold comes from"): "90% 0.5",
    ("docs/how-to/learners.md", "Three rules"): "0.05",
    ("docs/how-to/messy-tables.md", "An Excel export with decimal commas and a total"): "0.125",
    ("docs/how-to/messy-tables.md", "What later files may do"): "1.234",
    ("docs/how-to/one-case-at-a-time.md", "One case at a time"): "5.2",
    (
        "docs/how-to/other-libraries.md",
        "skore, and everything that compares `predict_proba` with 0.5",
    ): "0.5",
    ("docs/how-to/other-libraries.md", "`CalibratedClassifierCV`"): "0.5",
    ("docs/how-to/run-a-service.md", "Too many requests"): "1.5",
    ("docs/how-to/serve-decisions.md", "What is promised"): "1.5",
    ("docs/how-to/serve-decisions.md", "Options"): "0.2",
    ("docs/how-to/serve-decisions.md", "Paths"): "3.1",
    ("docs/project/support.md", "Which versions are supported"): "3.11 3.14",
    ("docs/appendix/detection-study.md", "Which tables chose, and which confirm"): "15% 8%",
    ("docs/appendix/reproduce.md", "How an ordering is judged"): "95%",
    ("docs/concepts/capacity.md", "Three units"): "6%",
    ("docs/concepts/guarantees.md", "What a capacity finds"): "95%",
    ("docs/how-to/choose-a-capacity.md", "See what each capacity finds"): "95%",
    ("docs/how-to/reports.md", "What is on the page"): "1% 95%",
    ("docs/how-to/review-cases.md", "The page of a lead"): "95%",
    ("docs/how-to/serve-decisions.md", "Try a model before it decides"): "5%",
}
#: Whole numbers of settings and of years.
NOT_MEASURED_WHOLE = {
    ("studies/README.md", "`paper/`: the figures of the paper"): "4650",
    ("studies/README.md", "`online/`: control on a stream"): "703 803",
    ("docs/appendix/online-study.md", "What it costs not to know the future"): "4096",
    ("docs/how-to/find-what-is-missed.md", "In money"): "2024",
    ("docs/how-to/next-months-model.md", "What it gains"): "1083",
}
#: Their rows join several measures.
MIXED = {
    ("studies/README.md", "`promises/`: what is promised, and how often it holds"),
    ("docs/appendix/detection-study.md", "What was chosen"),
    ("docs/appendix/online-study.md", "How well"),
    ("docs/concepts/guarantees.md", "Many batches"),
    ("docs/concepts/guarantees.md", "Items that belong together"),
    ("docs/how-to/find-what-is-missed.md", "Let a multiple follow the base rate"),
    ("docs/how-to/find-what-is-missed.md", "In money"),
    ("docs/how-to/guarantees-in-practice.md", "All nights together"),
}
#: Settings at the head of a table.
STRANGERS = {("docs/concepts/guarantees.md", "An unknown prevalence"): "0.9"}
#: Counts of the paper, of settings, and of wins that a table has in columns or the other way round.
NOT_COUNTED = {
    ("docs/appendix/detection-study.md", "On the confirming tables"): ("7 of 32",),
    ("docs/appendix/paper.md", "The empirical study (section 3.7)"): ("60 of 600",),
    ("docs/command-line.md", "select"): ("310 of 520",),
    ("docs/command-line.md", "stream"): ("3 of 10",),
    ("docs/how-to/aware.md", "Which one, and what to expect"): ("11 of 12", "10 of 12", "12 of 12"),
}
#: Means of a run in R, which a test compares with ours.
WITHOUT_TABLE = {
    ("studies/README.md", "`paper/`: the figures of the paper"): {("", "0.065", "0.005")},
}
#: Shares that follow from two values of a table: of a ceiling, of more data, and of slots.
DERIVED = {
    ("studies/README.md", "`learners/`: families of learners"): lambda: ratios(
        "learners/credit.csv", "mean", of={"method": "ceiling"}, by=["multiple"]
    ),
    ("docs/appendix/aware-study.md", "What it gains on the credit data"): lambda: ratios(
        "aware/more_data.csv", "mean", of={"size": "all others"}, by=["b"]
    ),
    ("docs/appendix/online-study.md", "What cases of customers find"): lambda: [
        1 - float(row["customers_a_day"]) / float(row["slots"])
        for row in named_rows("online/entities.csv")
        if row["way"] == "events"
    ],
}
#: Percentages in docstrings: levels, the share of nine folds, the data, and what is rounded.
IN_DOCSTRINGS = {"95", "90", "22", "12", "1"}
#: Its pairs are means over halves of the sets in a table.
HALVES = ("docs/appendix/aware-study.md", "On other data")
SPEED = {
    ("docs/appendix/online-study.md", "How fast, and other checks"),
    ("docs/how-to/large-tables.md", "Training beyond memory"),
    ("docs/how-to/large-tables.md", "What it costs"),
    ("docs/how-to/serve-decisions.md", "How it works"),
}


def sections_of(page):
    """Return the text of each section by page and heading, without blocks of code."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    name = page.relative_to(ROOT).as_posix()
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return {(name, part.partition("\n")[0].lstrip("# ")): part for part in parts}


def prose_of(text):
    """Return a section without code, comments, addresses, and what another test compares."""
    text = re.sub(f"{BEGIN}.*{END}", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*\n?[^`\n]*`|<!--.*?-->|\]\([^)]*\)", "", text, flags=re.DOTALL)


def quoted_in(text):
    """Return the numbers of a section that have a decimal point or a percent sign."""
    prose = prose_of(text)
    percents = [f"{number}%" for number in PERCENT.findall(prose)]
    return NUMBER.findall(prose) + percents + POINTS.findall(prose)


def tables_of(text):
    """Return the tables that a section names, those of scripts that it names, or of a folder."""
    of_folder = re.match(r"## `(\w+)/`", text)
    found = set((STUDIES.parent / of_folder[1]).glob("*.csv")) if of_folder else set()
    for folder, name in re.findall(r"studies/([\w/]+)/([\w-]+\.(?:py|csv))", text):
        path = ROOT / "studies" / folder / name
        found |= {path} if path.suffix == ".csv" else tables_by(path)
    return {path for path in found if path.exists()}


def tables_by(script):
    """Return the tables that the source of a script names, and those that are named after it."""
    named = re.findall(r"[\w-]+\.csv", script.read_text())
    return {script.with_name(name) for name in named} | set(
        script.parent.glob(f"{script.stem}*.csv")
    )


def values_of(tables):
    """Return all numbers of some tables."""
    return [value for row in rows_of(tables) for value in row]


def rows_of(tables):
    """Return the numbers of each row of some tables."""
    return [numbers_in(" ".join(row)) for row in cells_of(tables)]


def cells_of(tables):
    """Return the cells of each row of some tables."""
    return [row for table in tables for row in csv.reader(table.read_text().splitlines())]


def signed_in(cell):
    """Return the number that a cell is, or those that are in its text."""
    return [float(cell)] if is_number(cell) else numbers_in(cell)


def is_number(cell):
    """Return whether a cell has nothing but a number."""
    return bool(re.fullmatch(r"[+-]?\d+\.?\d*(?:e-?\d+)?", cell))


def numbers_in(text):
    """Return what can be read as a number, without its sign."""
    return [float(each) for each in re.findall(r"\d+\.?\d*(?:e-?\d+)?", text)]


def named_rows(name):
    """Return the rows of a table of the studies."""
    return list(csv.DictReader((ROOT / "studies" / name).read_text().splitlines()))


def ratios(name, value, *, of, by):
    """Return each value over that of the row which `of` describes and that is alike in `by`."""
    rows = named_rows(name)
    whole = [row for row in rows if of.items() <= row.items()]
    return [
        float(row[value]) / float(other[value])
        for row in rows
        for other in whole
        if [row[column] for column in by] == [other[column] for column in by]
    ]


def printed_on(name):
    """Return the numbers that the code of a page prints."""
    blocks = re.findall(r"```text\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    return numbers_in(" ".join(blocks))


def peers():
    """Return the numbers of the comparison with peers, which the README quotes."""
    readme = (ROOT / "benchmarks" / "README.md").read_text()
    return numbers_in(readme.partition("(`bench_peers.py`)")[2].partition("\n## ")[0])


def is_among(quoted, values):
    """Return whether some value, as it is or in percent, is rounded to this."""
    half_a_digit = 0.5 * 10 ** -len(quoted.partition(".")[2]) + ROUNDING
    return any(
        abs(factor * value - float(quoted)) <= half_a_digit
        for value in values
        for factor in (1, 100)
    )


def are_side_by_side(pair, rows):
    """Return whether some row has the mean, with its sign where it is quoted, before its error."""
    sign, mean_, error = pair
    before_errors = {(row, place - 1) for row, place in places_of(error, rows)}
    found = before_errors & set(places_of(mean_, rows))
    zero = abs(float(mean_)) == 0
    return any(not sign or zero or rows.sign_at(place) == sign for place in found)


def places_of(quoted, rows):
    """Return where a value is that is rounded to this, as it is or in percent."""
    digits = len(quoted.partition(".")[2])
    key = round(float(quoted) * 10**digits)
    return rows.by_rounding(digits).get(key, set())


def are_related(one, other, rows):
    """Return whether some row has both, or two rows in one column that differ in one name."""
    here, there = places_of(one, rows), places_of(other, rows)
    if {row for row, _ in here} & {row for row, _ in there}:
        return True
    return bool(
        {key for at in here for key in rows.alike(at)}.intersection(
            key for at in there for key in rows.alike(at)
        )
    )


class Rows:
    """Rows of cells, whose numbers are found by their rounded values."""

    def __init__(self, cells):
        """Take tables with the rows of each."""
        cells = [(table, row) for table, rows in cells.items() for row in rows]
        self.names = [(table, [c for c in row if not is_number(c)]) for table, row in cells]
        self.rows = [[n for cell in row for n in signed_in(cell)] for _, row in cells]
        self.found = {}

    def by_rounding(self, digits):
        """Return row and place of all numbers by value, in units of the last digit."""
        if digits not in self.found:
            places = self.found[digits] = {}
            for number, row in enumerate(self.rows):
                for place, value in enumerate(row):
                    for scaled in (abs(factor * value) * 10**digits for factor in (1, 100)):
                        for key in {floor(scaled + 0.5 - ROUNDING), floor(scaled + 0.5 + ROUNDING)}:
                            places.setdefault(key, set()).add((number, place))
        return self.found[digits]

    def alike(self, place):
        """Return what is equal for two places in a column whose rows differ in one name."""
        row, column = place
        table, names = self.names[row]
        for number in range(len(names)):
            yield table, column, number, (*names[:number], *names[number + 1 :])
        yield table, column, len(names), tuple(names)

    def sign_at(self, place):
        """Return the sign of a number as it is written on the pages."""
        return "−" if self.rows[place[0]][place[1]] < 0 else "+"


def pairs_of(text):
    """Return means and errors that a section quotes, with the sign that a mean has."""
    found = WITH_ERROR.findall(prose_of(text))
    return {(sign.replace("-", "−"), *pair) for sign, *pair in found}


@cache
def numbers_of(tables):
    """Return the rows of some tables."""
    return Rows({table: cells_of([table]) for table in sorted(tables)})


def is_of_a_study(key):
    """Return whether a section names tables, or is on a page about studies."""
    return bool(tables_of(SECTIONS[key])) or key[0].startswith(("docs/appendix/", "studies/"))


def on_half_of_the_sets():
    """Return mean and error of the aware support vectors on every other set of KEEL."""
    table = csv.DictReader((ROOT / "studies" / "aware" / "keel.csv").read_text().splitlines())
    chosen = [
        r for r in table if (r["family"], r["method"], r["against"]) == ("svm", "aware", "g_b")
    ]
    found = []
    for value in ("M", "M_batch"):
        rows = sorted((row for row in chosen if row["value"] == value), key=lambda r: r["data"])
        for half in (rows[::2], rows[1::2]):
            means = [float(row["mean"]) for row in half]
            found.append([str(mean(means)), str(stdev(means) / len(means) ** 0.5)])
    return Rows({"halves": found})


SECTIONS = {key: text for page in PAGES for key, text in sections_of(page).items()}
QUOTING = [key for key, text in SECTIONS.items() if quoted_in(text)]
MEASURED = [key for key in SECTIONS if key not in SPEED]


@pytest.mark.parametrize("key", QUOTING, ids=" / ".join)
def test_quoted_numbers_are_in_committed_tables(key):
    """Or printed by the page itself, or listed above as not measured."""
    text = SECTIONS[key]
    if key in SPEED:
        named = re.findall(r"benchmarks/\w+\.py", text)
        assert named, "name the benchmark that measures this"
        assert all((ROOT / path).exists() for path in named)
        return
    values = values_of(tables_of(text)) + printed_on(key[0])
    values += peers() if key[0] == "README.md" else []
    values += DERIVED[key]() if key in DERIVED else []
    missing = {each for each in quoted_in(text) if not is_among(each.rstrip("%"), values)}
    assert missing <= set(NOT_MEASURED.get(key, "").split())


@pytest.mark.parametrize("key", MEASURED, ids=" / ".join)
def test_a_mean_and_its_error_stand_side_by_side(key):
    """Each of both alone is often in a table by chance."""
    pairs = pairs_of(SECTIONS[key]) - WITHOUT_TABLE.get(key, set())
    rows = numbers_of(frozenset(tables_of(SECTIONS[key]))) if pairs else None
    if key == HALVES:
        pairs = {pair for pair in pairs if not are_side_by_side(pair, on_half_of_the_sets())}
    assert [pair for pair in pairs if not are_side_by_side(pair, rows)] == []


@pytest.mark.parametrize("key", QUOTING, ids=" / ".join)
def test_neighbours_in_a_row_are_related(key):
    """The last number of a row may be of another kind, and so come from another table."""
    if key in SPEED or not (tables := tables_of(SECTIONS[key])):
        return
    rows, strangers = numbers_of(frozenset(tables)), set()
    for line in prose_of(SECTIONS[key]).splitlines():
        found = BESIDE.findall(WITH_ERROR.sub("", line)) if line.startswith("|") else []
        related = [are_related(*pair, rows) for pair in pairwise(found)]
        if key in MIXED:  # one neighbour is enough
            beside = zip(found[:-1], [False, *related], related, strict=False)
            strangers |= {(number,) for number, *sides in beside if not any(sides)}
        else:
            pairs = zip(pairwise(found[:-1]), related, strict=False)
            strangers |= {pair for pair, is_one in pairs if not is_one}
    others = printed_on(key[0]) + (DERIVED[key]() if key in DERIVED else [])
    excused = {*NOT_MEASURED.get(key, "").split(), *STRANGERS.get(key, "").split()}
    assert [
        pair for pair in strangers if not any(n in excused or is_among(n, others) for n in pair)
    ] == []


@pytest.mark.parametrize("key", [key for key in MEASURED if is_of_a_study(key)], ids=" / ".join)
def test_a_whole_number_that_is_not_round_is_in_a_table(key):
    """How many cases, seconds or settings, of a section about measurements."""
    wholes = {each.replace(",", "") for each in WHOLE.findall(prose_of(SECTIONS[key]))}
    values = values_of(tables_of(SECTIONS[key])) + printed_on(key[0])
    missing = {each for each in wholes if int(each) % ROUND and not is_among(each, values)}
    assert missing == set(NOT_MEASURED_WHOLE.get(key, "").split())


@pytest.mark.parametrize("key", MEASURED, ids=" / ".join)
def test_a_count_is_in_one_cell(key):
    """A count such as "16 of 18" is in a cell in these words, or listed above as not counted."""
    counts = set(COUNT.findall(prose_of(SECTIONS[key]))) - set(NOT_COUNTED.get(key, ()))
    text = "\n".join(cell for row in cells_of(tables_of(SECTIONS[key])) for cell in row)
    assert [each for each in counts if not re.search(rf"(?<!\d){each}(?!\d)", text)] == []


@pytest.mark.parametrize("page", ["appendix/aware-study.md", "how-to/aware.md"])
def test_sets_of_keel_are_won_as_often_as_the_table_says(page):
    """Won, tied and lost stand beside the mean difference and its error, in one row."""
    outcomes = named_rows("aware/keel_outcomes.csv")
    table = {
        (*(row[name] for name in ("won", "tied", "lost")), *three_digits(row)) for row in outcomes
    }
    quoted = KEEL.findall((ROOT / "docs" / page).read_text())
    assert len(quoted) > 3
    assert [each for each in quoted if each not in table] == []


def three_digits(row):
    """Return mean and error of a row as the pages have them."""
    return f"{float(row['mean']):+.3f}".replace("-", "−"), f"{float(row['error']):.3f}"


#: Rows of the credit data by the name that a page uses.
AHEAD = {
    "recommended forest": ("forest", "aware", "forest"),
    "recommended boosting": ("boosting", "aware", "boosting"),
    "logistic regression": ("linear", "detection", "logistic"),
    "`MLPClassifier`": ("network", "lagrangian", "MLPClassifier"),
    "SVM cut at the capacity": ("svm", "aware", "g_b"),
}


def test_aware_models_are_ahead_as_often_as_the_table_says():
    """By any difference, and by more than two standard errors."""
    page = (ROOT / "docs" / "how-to" / "aware.md").read_text()
    rows = named_rows("aware/credit_differences.csv")
    quoted = re.findall(r"\| ([^|]*) \| (\d+) of (\d+), (\d+) clear \|", page)
    assert {name for name, *_ in quoted} == set(AHEAD)
    for name, *counts in quoted:
        ratios_of = [
            float(row["mean"]) / float(row["error"])
            for row in rows
            if (row["family"], row["method"], row["against"], row["value"]) == (*AHEAD[name], "M")
        ]
        clear = sum(each > 2 for each in ratios_of)
        assert [int(each) for each in counts] == [
            sum(r > 0 for r in ratios_of),
            len(ratios_of),
            clear,
        ]


def docstrings():
    """Return what the docstrings of the package say, without examples and names."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield prose_of((ast.get_docstring(node) or "").partition("Examples\n---")[0])


def test_docstrings_quote_no_results():
    """They would be there to stay when a study is run again."""
    text = "\n".join(docstrings())
    assert set(PERCENT.findall(text)) == IN_DOCSTRINGS
    assert "±" not in text
    assert (
        re.findall(
            r"\bin \w+ of (?:all )?\w+ settings|\bsettings, clearly|\b[Oo]n \d+ .*sets", text
        )
        == []
    )


def test_a_range_and_points_are_numbers_too():
    """The first number of "45 to 58 %", and those of gains."""
    assert quoted_in("45 to 58 % of 9 items, 30 points, 187-fold") == ["45%", "58%", "30", "187"]


def test_nothing_is_excused_in_vain():
    """Sections and numbers that are listed above exist."""
    assert set(DERIVED) <= set(QUOTING)
    for key, numbers in NOT_MEASURED.items():
        assert set(numbers.split()) <= set(quoted_in(SECTIONS[key])), key
    assert set(QUOTING) >= SPEED
    for key, counts in NOT_COUNTED.items():
        assert set(counts) <= set(COUNT.findall(prose_of(SECTIONS[key]))), key
    for key, pairs in WITHOUT_TABLE.items():
        assert pairs <= pairs_of(SECTIONS[key]), key


def test_a_wrong_number_is_noticed():
    """Half a digit away counts as equal, and a whole one does not."""
    assert is_among("0.35", [0.3549])
    assert is_among("35.5", [0.3549])
    assert not is_among("0.36", [0.3549])


def test_a_wrong_pair_is_noticed():
    """A mean beside the error of another one, with the other sign, or out of another column."""
    rows = Rows({"t": [["a", "b", "-0.35", "0.02", "0.7"], ["a", "c", "0.11", "0.03", "0.9"]]})
    assert are_side_by_side(("−", "0.35", "0.02"), rows)
    assert not are_side_by_side(("+", "0.35", "0.02"), rows)
    assert not are_side_by_side(("", "0.35", "0.03"), rows)
    assert are_related("0.02", "0.03", rows)
    assert not are_related("0.02", "0.9", rows)
