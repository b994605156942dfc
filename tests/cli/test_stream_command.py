"""`shortlist stream`: lines in, decisions out, and a saved state."""

import json
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist import Capacity
from shortlist.cli import _stream
from shortlist.cli._app import app
from shortlist.service import stream as streaming
from shortlist.service._sqlite import SQLiteStore
from shortlist.service.store import StoreError
from shortlist.tables import fit_table, flag_rows, load_model, save_model

COMMAND = [sys.executable, "-B", "-m", "shortlist"]
DAY = ("--count", "5", "--period", "day")


@pytest.fixture(scope="module")
def lines(new_cases):
    """Return the new cases as JSON lines, one every ten minutes."""
    frame = pd.read_csv(new_cases).drop(columns="fraud").head(400)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [json.dumps(row | {"at": 600 * i}) for i, row in enumerate(rows)]


@pytest.fixture
def stream(model_file, tmp_path, monkeypatch):
    """Return a function that streams lines through the command."""

    def stream(lines, *options, model=model_file, state="state", batch=1_024):
        monkeypatch.setitem(streaming.run_stream.__kwdefaults__, "batch", batch)
        (tmp_path / "lines").write_text("\n".join(lines) + "\n")
        descriptor = os.open(tmp_path / "lines", os.O_RDONLY)
        monkeypatch.setattr(_stream, "_source", lambda: descriptor)
        arguments = ["stream", str(model), "--state", str(tmp_path / state), *options]
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
        os.close(descriptor)
        return result

    return stream


def answers(result):
    """Return the answers of a stream."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def check_refused(result, code, message):
    """Check for one line on standard error, nothing on standard output and no traceback."""
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_decisions_come_in_the_order_of_the_lines(stream, lines, model_file, new_cases, tmp_path):
    """Each has id, score, flag, threshold and reason; the scores are those of `flag`."""
    answered = answers(stream(lines, *DAY))
    assert [each["line"] for each in answered] == list(range(1, 401))
    assert set(answered[0]) == {"line", "id", "score", "flag", "threshold", "reason", "at"}
    with (tmp_path / "flags.jsonl").open("wb") as file:
        flag_rows(load_model(model_file), new_cases, file, format="jsonl")
    flagged = [json.loads(line) for line in (tmp_path / "flags.jsonl").read_text().splitlines()]
    for ours, theirs in zip(answered, flagged, strict=False):
        assert ours["id"] == theirs["case"]
        assert ours["score"] == pytest.approx(theirs["score"], rel=1e-9)
    by_day = pd.Series([each["at"] // 86_400 for each in answered if each["flag"]]).value_counts()
    assert by_day.max() == 5


@pytest.mark.parametrize("batch", [1, 7])
def test_restarts_and_batches_change_nothing(stream, lines, batch):
    """The decisions are the same line by line, in batches, in one run and in three."""
    whole = answers(stream(lines[:120], *DAY, state="whole"))
    parts = []
    for part in (lines[:30], lines[30:75], lines[75:120]):
        parts += answers(stream(part, *DAY, batch=batch))
    assert [each | {"line": 0} for each in parts] == [each | {"line": 0} for each in whole]


def test_repeated_ids(stream, lines):
    """Repeated ids get their first answer again, even after a restart."""
    first = answers(stream(lines[:50], *DAY))
    again = stream([*lines[:50], lines[50]], *DAY, "--json")
    answered = answers(again)
    assert [each["flag"] for each in answered[:50]] == [each["flag"] for each in first]
    assert {each["reason"] for each in answered[:50]} == {"seen before"}
    assert answered[50]["reason"] != "seen before"
    resuming, summary = again.stderr.splitlines()
    assert "50 cases were decided" in resuming
    assert json.loads(summary)["n_repeated"] == 50


def test_events_of_one_customer_are_one_case(stream, lines):
    """One flag for each customer and day, through a restart, late lines and lines without one."""
    rows = [json.loads(line) | {"customer": i % 7} for i, line in enumerate(lines[:300])]
    rows[150]["at"] = 0  # late
    events = [json.dumps(row) for row in rows]
    rule = ("--entity", "customer,window=12h,cooldown=12h")
    options = ("--count", "20", "--period", "day", *rule, "--allow", "3=1970-01-02T00:00:00Z")
    found = answers(stream(events[:170], *options))
    found += answers(stream([*events[170:], lines[0]], *options))
    last: dict[int, float] = {}
    for row, each in zip(rows, found, strict=False):
        customer = row["customer"]
        assert (each["reason"] == "allowed") == (customer == 3 and each["at"] < 86_400)
        if each["flag"]:
            assert each["at"] - last.get(customer, -1e9) >= 86_400
            last[customer] = each["at"]
        elif each["reason"] == "joined a case":
            assert each["at"] - last[customer] < 86_400
        elif each["reason"] != "allowed":
            assert each["at"] - last.get(customer, -1e9) >= 86_400
    assert len(last) > 3
    assert sum(each.get("reason") == "joined a case" for each in found) > 20
    assert found[-1]["error"] == "'customer' is missing: whose event is it?"
    others = ["--entity", "customer,window=12h,cooldown=12h,rise=0.5"]
    other = stream(events[:1], *options, *others)
    check_refused(other, 2, "belongs to another stream: rise was not given and is 0.5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--entity", "c,windw=1d"), "--entity c,windw=1d is not a column, perhaps with window"),
        (("--entity", "c,rise=1,rise=2"), "each once"),
        (("--allow", "a=2030-01-01"), "needs --entity"),
        (("--entity", "c,window=soon"), "window=soon is not a length of time"),
        (("--entity", "c,window=month"), "window=month is not a length of time"),
        (("--entity", "c", "--allow", "a"), "takes an entity and a moment"),
        (("--entity", "c", "--allow", "2030-01-01"), "takes an entity and a moment"),
        (("--entity", "c", "--allow", "a=soon"), "is not a moment"),
        (("--entity", "c,rise=0"), "rise must be greater than 0"),
    ],
)
def test_a_rule_for_events_that_makes_no_sense_is_refused(stream, lines, options, message):
    """One line, before the first decision."""
    result = stream(lines[:1], *DAY, *options)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_probes_keep_the_capacity_and_survive_a_restart(stream, lines):
    """Each answer says how it was selected and how likely; a retry says the same again."""
    options = ("--count", "40", "--period", "day", "--probe", "0.5")
    first = answers(stream(lines[:200], *options))
    more = answers(stream(lines[:400], *options, batch=7))
    names = ("flag", "selected_by", "inclusion")
    assert [[each[name] for name in names] for each in more[:200]] == [
        [each[name] for name in names] for each in first
    ]
    assert {each["reason"] for each in more[:200]} == {"seen before"}
    probes = [each for each in first + more[200:] if each["reason"] == "probe"]
    assert 0 < len(probes) < 100  # the key is random
    assert {each["selected_by"] for each in probes} == {"probe"}
    assert all(each["flag"] and 0 < each["inclusion"] < 1 for each in probes)
    flagged = [each["at"] // 86_400 for each in first + more[200:] if each["flag"]]
    assert pd.Series(flagged).value_counts().max() <= 40


def test_a_probe_key_makes_the_draw_reproducible(stream, lines, monkeypatch):
    """The same key draws the same cases; another key for the same state is refused."""
    options = ("--count", "40", "--period", "day", "--probe", "0.5")
    monkeypatch.setenv("SHORTLIST_PROBE_KEY", "k")
    one, same = (answers(stream(lines[:150], *options, state=state)) for state in "ab")
    assert one == same
    monkeypatch.setenv("SHORTLIST_PROBE_KEY", "l")
    other = answers(stream(lines[:150], *options, state="c"))
    assert [each["selected_by"] for each in other] != [each["selected_by"] for each in one]
    check_refused(stream(lines[150:160], *options, state="a"), 2, "probe_key was")
    check_refused(stream(lines[:9], "--fraction", "0.1", "--probe", "0.1", state="d"), 2, "--count")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--fraction", "0.05"),
        ("--capacity", "5", "--per", "100"),
        ("--count", "5", "--period", "12h"),
    ],
    ids=["model", "share", "of lines", "of half a day"],
)
def test_every_capacity(stream, lines, options):
    """Every kind of capacity decides, stops and resumes."""
    answered = answers(stream(lines[:200], *options)) + answers(stream(lines[200:], *options))
    assert len(answered) == 400
    assert 0 < sum(each["flag"] for each in answered) < 120


def test_invalid_lines_are_reported_and_counted(stream, lines):
    """Errors appear in the order of the lines, and do not affect other decisions."""
    bad = ["{", "", '{"case": "x"}', lines[0].replace('"opened": "', '"opened": "x'), "[]"]
    result = stream([*lines[:20], *bad, *lines[20:40]], *DAY)
    answered = answers(result)
    errors = [each for each in answered if "error" in each]
    assert [each["line"] for each in errors] == [21, 23, 24, 25]
    assert errors[1]["id"] == "x"
    assert "4 invalid" in result.stderr
    valid = [each | {"line": 0} for each in answered if "error" not in each]
    clean = answers(stream(lines[:40], *DAY, state="clean"))
    assert valid == [each | {"line": 0} for each in clean]


def test_warnings_are_shown_once(stream, lines):
    """A warning appears once, however many lines cause it."""
    strange = [line.replace('"country": "', '"country": "new ') for line in lines[:30]]
    result = stream(strange, *DAY, batch=1)
    assert len(answers(result)) == 30
    assert sum(line.startswith("Warning: ") for line in result.stderr.splitlines()) <= 1


def test_lines_in_another_unit_are_noticed(stream, lines):
    """The first lines are compared with the model card; the decisions stay those of the model."""
    cents = [json.loads(line) for line in lines[:250]]
    cents = [json.dumps(each | {"amount": 100 * (each["amount"] or 0)}) for each in cents]
    result = stream(cents, *DAY)
    assert len(answers(result)) == 250
    assert "'amount'" in next(
        line for line in result.stderr.splitlines() if line.startswith("Warning: ")
    )
    assert "Warning: " not in stream(lines[:250], *DAY, state="euros").stderr


def test_completion_knows_the_commands():
    """The tab key in a shell completes the names of commands."""
    asked = {"_SHORTLIST_COMPLETE": "complete_bash", "COMP_WORDS": "shortlist ", "COMP_CWORD": "1"}
    said = CliRunner().invoke(app, [], prog_name="shortlist", env=asked).stdout.split()
    assert {"report", "stream", "fit", "flag"} <= set(said)


def test_lines_without_a_moment_count_as_of_now(stream, lines):
    """A missing moment means now, and options name the fields with the moment and the id."""
    without = [json.dumps({**json.loads(line), "at": None}) for line in lines[:5]]
    assert all(each["at"] > 1.7e9 for each in answers(stream(without, *DAY)))
    named = [line.replace('"at"', '"when"') for line in lines[:5]]
    answered = answers(stream(named, *DAY, "--time", "when", "--id", "country", state="named"))
    assert answered[3]["at"] == 1_800
    assert answered[0]["id"] == json.loads(lines[0])["country"]


def test_another_model_or_capacity_is_refused_or_adopted(stream, lines, cases, tmp_path):
    """With --adopt, flags used today remain used."""
    options = {"target": "fraud", "id": "case", "learner": "logistic"}
    model = fit_table(cases, capacity=Capacity.fraction(0.1), **options).model
    save_model(model, tmp_path / "other")
    used = sum(each["flag"] for each in answers(stream(lines[:100], *DAY)))
    refused = stream(lines[100:], *DAY, model=tmp_path / "other")
    check_refused(refused, 2, "belongs to another stream: model was")
    check_refused(
        stream(lines[100:], "--count", "6", "--period", "day"),
        2,
        "capacity was 5 lines and is 6 lines",
    )
    check_refused(
        stream(lines[100:], "--fraction", "0.5"),
        2,
        "capacity was 5 lines and is 50 % of all lines; period was 86400.0 and is not given",
    )
    hourly = ("--count", "5", "--period", "hour", "--adopt")
    check_refused(stream(lines[100:], *hourly), 2, "another period")
    more = ("--count", "7", "--period", "day", "--adopt")
    answered = answers(stream(lines[100:144], *more, model=tmp_path / "other"))
    assert 5 <= used + sum(each["flag"] for each in answered) <= 7
    assert answers(stream([], "--count", "7", "--period", "day", model=tmp_path / "other")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--count", "5"), "belong together"),
        (("--period", "day"), "belong together"),
        (("--count", "5", "--period", "day", "--fraction", "0.1"), "in one way"),
        (("--count", "5", "--period", "soon"), "not a length of time"),
        (("--fraction", "7"), "must be"),
        (("--count", "5", "--period", "day", "--within", "24h"), "serve --within 24h"),
    ],
)
def test_impossible_options(stream, lines, options, message):
    """Invalid options end with exit code 2 and a message."""
    result = stream(lines, *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_files_that_cannot_be_used(stream, lines, tmp_path, new_cases):
    """Missing folders, invalid models and other files raise an error and are left alone."""
    check_refused(stream(lines, state="no/state"), 3, "does not exist")
    check_refused(stream(lines, model=new_cases), 2, "not a model of shortlist")
    (tmp_path / "else").write_text("something else")
    check_refused(stream(lines, state="else"), 2, "damaged, or not a state file")
    assert (tmp_path / "else").read_text() == "something else"


def test_damage_and_an_empty_file_are_refused(stream, lines, tmp_path):
    """Both end with exit code 2: what was decided may be lost."""
    answers(stream(lines[:3], *DAY))
    content = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(content[: len(content) // 2])
    check_refused(stream(lines[5:6], *DAY), 2, "is damaged")
    (tmp_path / "state").write_bytes(b"")
    check_refused(stream(lines[5:6], *DAY), 2, "is empty")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--id", "nr"), "No line has the field 'nr': a case that comes again is decided again"),
        (("--time", "when"), "No line has the field 'when': the moment of a line is now"),
    ],
)
def test_a_field_that_no_line_has_is_noted(stream, lines, options, words):
    """A wrong name would make every case a new one, or one of now."""
    result = stream(lines[:3], *DAY, *options)
    assert len(answers(result)) == 3
    assert words in result.stderr


def test_a_full_disk_prints_no_decision(stream, lines, monkeypatch):
    """The exit code is 3; flags printed before still count."""
    used = sum(each["flag"] for each in answers(stream(lines[:100], *DAY)))

    def full(self, group):
        raise StoreError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, "commit", full)
        check_refused(stream(lines[100:], *DAY), 3, "disk is full")
    answered = answers(stream(lines[100:144], *DAY))
    assert used + sum(each["flag"] for each in answered) <= 5


def test_a_real_stream(model_file, lines, tmp_path, stream):
    """Answers arrive while the input is open; Ctrl-C saves the state; the next run resumes."""
    command = [*COMMAND, "stream", str(model_file), "--state", str(tmp_path / "state"), *DAY]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for line in lines[:3]:
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == json.loads(line)["case"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors == b"Error: Interrupted. All decisions are saved.\n"
    assert answers(stream(lines[:1], *DAY))[0]["reason"] == "seen before"
