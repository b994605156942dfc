"""The container files, as far as they can be checked without Docker."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shortlist.cli import app

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
_INSTRUCTIONS = {
    "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
    "STOPSIGNAL", "ENTRYPOINT", "CMD",
}  # fmt: skip


@pytest.fixture
def dockerfile():
    """Return the instructions of the Dockerfile, in order."""
    lines = [
        line
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if not line.lstrip().startswith("#")
    ]
    text = "\n".join(lines).replace("\\\n", " ")
    return [line.partition(" ")[::2] for line in text.splitlines() if line.strip()]


def of_kind(dockerfile, name):
    """Return what instructions of one kind say."""
    return [said for kind, said in dockerfile if kind == name]


def run(*arguments, **environment):
    """Run a command as the container would."""
    return CliRunner().invoke(app, list(arguments), env=environment)


def test_what_is_copied_is_there(dockerfile):
    """Every file of the build exists, and the extra that is installed does, too."""
    assert {kind for kind, _ in dockerfile} == _INSTRUCTIONS
    for said in of_kind(dockerfile, "COPY"):
        if not said.startswith("--from"):
            assert all((ROOT / name).exists() for name in said.split()[:-1])
    installed = re.search(r'--constraint (\S+) "\.\[(\w+)\]"', " ".join(of_kind(dockerfile, "RUN")))
    assert (ROOT / installed[1]).exists()
    assert f"\n{installed[2]} = [" in (ROOT / "pyproject.toml").read_text()


def test_commands_are_understood(dockerfile, tmp_path, monkeypatch):
    """The default command gets as far as the model, which is not mounted here."""
    monkeypatch.chdir(tmp_path)
    [entry], [command] = of_kind(dockerfile, "ENTRYPOINT"), of_kind(dockerfile, "CMD")
    assert json.loads(entry) == ["shortlist"]
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["shortlist"]
    composed = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", word) for word in compose["command"]]
    for words in (json.loads(command), composed):
        told = run(*words, SHORTLIST_DATABASE=str(tmp_path / "shortlist.db"))
        assert told.exit_code != 0
        assert "No such file or directory: /model" in told.output


def test_settings_and_health_exist(dockerfile):
    """Variables are options of the command, and the check asks a path of the service."""
    pairs = dict(
        word.split("=", 1) for said in of_kind(dockerfile, "ENV") for word in shlex.split(said)
    )
    help_text = run("serve", "--help", COLUMNS="200").output
    for name in pairs:
        assert not name.startswith("SHORTLIST_") or name in help_text
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert all(name in help_text for name in compose["shortlist"]["environment"])
    [check] = of_kind(dockerfile, "HEALTHCHECK")
    program = json.loads(check[check.index("[") :])
    compile(program[2], "health", "exec")
    assert "/v2/health/ready" in program[2]


def test_a_container_that_others_reach_needs_keys(tmp_path, model_file, monkeypatch):
    """As written, the first start makes the tables and asks for a key; then a key can be made."""
    settings = {"SHORTLIST_DATABASE": str(tmp_path / "shortlist.db"), "SHORTLIST_HOST": "0.0.0.0"}
    refused = run("serve", str(model_file), "--count", "50", **settings)
    assert refused.exit_code == 2
    assert "keys --make decide" in " ".join(refused.output.split())
    assert "sl_" in run("serve", "keys", "--make", "decide", **settings).output
