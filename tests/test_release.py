"""What a release needs says the same everywhere, and is well formed."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import shortlist

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
yaml = pytest.importorskip("yaml")


def load(name):
    """Return a YAML file as plain data."""
    return yaml.safe_load((ROOT / name).read_text())


def test_the_recipe_needs_what_the_package_needs():
    """The same bounds, and the same version."""
    recipe = load("recipe/recipe.yaml")
    wanted = {re.sub(r"(?<=[a-z])(?=[<>=])", " ", each) for each in PROJECT["dependencies"]}
    assert set(recipe["requirements"]["run"]) == wanted | {f"python {PROJECT['requires-python']}"}
    assert recipe["context"]["version"] == shortlist.__version__
    assert load("CITATION.cff")["version"] == shortlist.__version__


def test_every_python_that_is_named_is_tested():
    """The classifiers, and the workflow."""
    named = {c.split()[-1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)}
    matrix = load(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert {row["python"] for row in matrix} == named
    assert {row["stack"] for row in matrix} == {"oldest", "tested", "newest"}


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.y*ml")), ids=lambda p: p.name)
def test_workflows_and_forms_can_be_read(path):
    """Workflows grant no more than reading unless a job needs it; commands are files of ours."""
    content = yaml.safe_load(path.read_text())
    if path.parent.name == "workflows":
        assert content["permissions"]["contents"] == "read"
        for script in re.findall(r"python (tools/\w+\.py)", path.read_text()):
            assert (ROOT / script).exists()
    else:
        assert {"name", "description", "body"} <= set(content)
    json.dumps(content, default=str)
