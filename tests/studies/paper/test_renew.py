"""Part of the committed results can be renewed, and the rest stays as it is."""

from studies.paper.renew import renew, renew_page
from studies.tables import write_table


def test_rows_are_replaced_in_their_place(tmp_path):
    """Other rows keep every digit, and their order."""
    path = tmp_path / "credit.csv"
    path.write_text("method,mean\nold,8.72010\nrecommended,0.1\nrecommended,0.2\nlast,1e-05\n")
    renew(path, [{"method": "recommended", "mean": 0.3}], "method")
    assert path.read_text() == "method,mean\nold,8.72010\nrecommended,0.3\nlast,1e-05\n"


def test_lines_of_the_page_are_replaced_and_a_note_is_added_once(tmp_path):
    """Rows are known by what names them, not by their numbers."""
    path = tmp_path / "index.md"
    old = "| forest | recommended | 0.02 | 1 | 0.16 | 0.005 | 30 |"
    other = "| forest | capacity | 0.02 | 1 | 0.11 | 0.004 | 30 |"
    path.write_text(f"# Page\n\nMade with Python.\n\n{old}\n{other}\n")
    row = {"learner": "forest", "method": "recommended", "prevalence": 0.02, "multiple": 1}
    table = [{**row, "mean": 0.12, "error": 0.01, "count": 5}]
    for _ in range(2):
        renew_page(path, [table], repetitions=5)
    lines = path.read_text().splitlines()
    assert "| forest | recommended | 0.02 | 1 | 0.12 | 0.01 | 5 |" in lines
    assert old not in lines
    assert other in lines
    assert sum("--reps 5`" in line for line in lines) == 1


def test_a_table_that_was_written_can_be_renewed(tmp_path):
    """The first rows of a table, and with another number of them."""
    path = write_table(
        [{"statement": "a", "ours": 1}, {"statement": "b", "ours": 2}], tmp_path / "t"
    )
    renew(path, [{"statement": "a", "ours": n} for n in (3, 4)], "statement")
    assert path.read_text().splitlines()[1:] == ["a,3", "a,4", "b,2"]
