"""Part of the committed results can be renewed, and the rest stays as it is."""

from studies.paper.renew import renew, renew_page
from studies.tables import write_table


def test_rows_are_replaced_in_their_place(tmp_path):
    """Other rows keep every digit, and their order."""
    path = tmp_path / "credit.csv"
    path.write_text("method,mean\nold,8.72010\nrecommended,0.1\nrecommended,0.2\nlast,1e-05\n")
    renew(path, [{"method": "recommended", "mean": 0.3}], "method")
    assert path.read_text() == "method,mean\nold,8.72010\nrecommended,0.3\nlast,1e-05\n"


def test_the_table_of_a_figure_is_replaced_and_a_note_is_added_once(tmp_path):
    """Equal rows in the table of another figure stay as they are."""
    path = tmp_path / "index.md"
    header = "| learner | mean |\n| --- | --- |\n"
    old = f"{header}| forest | 0.16 |\n| knn | 0.1 |\n"
    parts = "\n".join(f"## {name}\n\n{old}" for name in ("credit", "credit-smote20"))
    path.write_text(f"# Page\n\nMade with Python.\n\n{parts}")
    for _ in range(2):
        renew_page(path, {"credit": [{"learner": "forest", "mean": 0.12}]}, "5 of 100")
    page = path.read_text()
    assert f"## credit\n\n{header}| forest | 0.12 |\n\n## credit-smote20\n\n{old}" in page
    assert page.count("5 of 100") == 1
    for repetitions in (3, 4):
        renew_page(path, {"credit": [{"mean": 1}]}, f"the gain: {repetitions}")
    assert "Made with Python.\n\n5 of 100\n\nthe gain: 4\n\n## credit" in path.read_text()


def test_a_table_that_was_written_can_be_renewed(tmp_path):
    """The first rows of a table, and with another number of them."""
    path = write_table(
        [{"statement": "a", "ours": 1}, {"statement": "b", "ours": 2}], tmp_path / "t"
    )
    renew(path, [{"statement": "a", "ours": n} for n in (3, 4)], "statement")
    assert path.read_text().splitlines()[1:] == ["a,3", "a,4", "b,2"]


def test_a_statement_that_is_new_comes_last(tmp_path):
    """Nothing that was found is left out."""
    path = write_table([{"statement": "a", "ours": "1"}], tmp_path / "t")
    table = renew(path, [{"statement": "b", "ours": "2"}], "statement")
    assert [row["statement"] for row in table] == ["a", "b"]
    assert path.read_text().splitlines()[1:] == ["a,1", "b,2"]
