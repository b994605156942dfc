"""What the README of the studies says about the credit data follows from the tables."""

import shutil
from pathlib import Path

import pytest

from studies.paper.words import BEGIN, END, README, bullets, renew_words
from studies.tables import read_table, write_table

FOLDER = Path(__file__).parents[3] / "studies" / "paper"
TABLES = ("credit.csv", "credit-smote20.csv", "comparisons.csv", "summary.csv")


def test_the_readme_says_what_the_tables_say():
    """To the letter; `python -m studies.paper.renew --reps 0` writes it again."""
    assert f"{BEGIN}\n\n{bullets(FOLDER)}\n{END}" in README.read_text()


def test_other_tables_are_said_in_other_words(tmp_path):
    """Counts, numbers and the verdict change with the tables, and nothing around them does."""
    for name in TABLES:
        shutil.copy(FOLDER / name, tmp_path)
    credit = [{**row, "count": 77} for row in read_table(FOLDER / "credit.csv")]
    write_table(credit, tmp_path / "credit.csv")
    said = (tmp_path / "summary.csv").read_text().splitlines()
    changed = ['3.7,"gain, as a factor",187,9 ± 1,no,few' if "factor" in s else s for s in said]
    (tmp_path / "summary.csv").write_text("\n".join(changed))
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\n\n- what was before\n\n{END}\nafter\n")
    renew_words(page, tmp_path)
    text = page.read_text()
    assert "77 of 100 with the forest" in " ".join(text.split())
    assert "187 (ours 9 ± 1)" in text
    assert "all agree but M of g_b and a gain by the factor" in " ".join(text.split())
    assert "what was before" not in text
    assert text.startswith(f"before\n{BEGIN}\n\n- ")
    assert text.endswith(f"\n\n{END}\nafter\n")


def test_a_page_without_a_place_for_it_is_refused(tmp_path):
    """Nothing is written elsewhere."""
    page = tmp_path / "README.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="has no lines between"):
        renew_words(page, FOLDER)
    assert page.read_text() == "nothing\n"
