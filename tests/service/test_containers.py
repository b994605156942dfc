"""The container files, as far as they can be checked without Docker."""

import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app
from tests.service.helpers import free_port, until

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
    given = compose["shortlist"]["environment"].keys() - {"PGPASSWORD"}  # which PostgreSQL reads
    assert all(name in help_text for name in given)
    [check] = of_kind(dockerfile, "HEALTHCHECK")
    program = json.loads(check[check.index("[") :])
    compile(program[2], "health", "exec")
    assert "/v2/health/ready" in program[2]


def test_a_container_that_others_reach_starts_and_needs_keys(address, model_file):
    """The first start is healthy and refuses everybody; a key that is made then lets one in."""
    settings = {"SHORTLIST_DATABASE": address, "SHORTLIST_HOST": "0.0.0.0"}
    base = {**settings, "SHORTLIST_PORT": str(free_port())}
    process = subprocess.Popen(
        [sys.executable, "-m", "shortlist", "serve", model_file, "--count", "50"],
        env={**os.environ, **base}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    url = f"http://127.0.0.1:{base['SHORTLIST_PORT']}"
    with httpx.Client(base_url=url, timeout=180) as client:
        status = partial(status_of, client)
        try:
            until(lambda: status("/v2/health/ready"), 200)
            assert status("/v1/queues") == 401
            key = run("serve", "keys", "read", **settings).stdout.strip()
            until(lambda: status("/v1/queues", authorization=f"Bearer {key}"), 200)
            assert status("/v1/queues") == 401
        finally:
            process.terminate()
            assert process.wait(180) == 0
            assert "every request is refused until" in process.stderr.read()
            process.stderr.close()


def status_of(client, path, **headers):
    """Return the status of a path; None as long as nobody listens."""
    try:
        return client.get(path, headers=headers).status_code
    except httpx.TransportError:
        return None


def test_any_password_reaches_the_database():
    """It is no part of an address, where some characters would mean something else."""
    conninfo = pytest.importorskip("psycopg.conninfo")
    settings = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    password = "p@ss:w/rd%41#?"
    given = {
        name: re.sub(r"\$\{POSTGRES_PASSWORD.*?\}", lambda _: password, value)
        for service in ("database", "shortlist")
        for name, value in settings[service]["environment"].items()
    }
    assert given["POSTGRES_PASSWORD"] == given["PGPASSWORD"] == password
    assert conninfo.conninfo_to_dict(given["SHORTLIST_DATABASE"]) == {
        "user": "shortlist", "host": "database", "dbname": "shortlist"
    }  # fmt: skip
