"""The mutants of `tools/mutants.py` still fit the code that they break."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
mutants = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(mutants)


def test_each_mutant_finds_its_line_once_and_has_tests():
    """A mutant whose line has moved would break nothing, and so prove nothing."""
    lost = [
        each.name
        for each in mutants.MUTANTS
        if (ROOT / "src" / "shortlist" / each.file).read_text().count(each.old) != 1
    ]
    assert lost == []
    files = {each.tests[0] for each in mutants.MUTANTS}
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []
    assert len(mutants.MUTANTS) >= 40
