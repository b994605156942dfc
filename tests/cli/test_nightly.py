"""The night's script ends as its page says, and the files for schedulers are right."""

import importlib.util
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

FILES = Path(__file__).parents[2] / "docs/how-to/nightly"
DAY = "2026-11-18"


@pytest.fixture
def office(tmp_path, model_file, new_cases, monkeypatch):
    """Return a folder with the script, a model, and the table of a day."""
    for name in ("in", "out", "bin"):
        (tmp_path / name).mkdir()
    shutil.copy(FILES / "nightly.sh", tmp_path)
    shutil.copy(model_file, tmp_path / "fraud.model")
    pd.read_csv(new_cases).to_csv(tmp_path / f"in/{DAY}.csv", index=False)
    (tmp_path / f"in/{DAY}.done").touch()
    command = tmp_path / "bin/shortlist"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shortlist "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path


def run(office, day=DAY):
    """Run a night; return how it ended."""
    ended = subprocess.run(
        [office / "nightly.sh", day], capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_a_day_may_be_run_again(office):
    """The same bytes, in place of the old ones."""
    assert run(office)[0] == 0
    first = (office / f"out/{DAY}.csv").read_bytes()
    assert first.count(b"\n") == 801
    assert run(office)[0] == 0
    assert (office / f"out/{DAY}.csv").read_bytes() == first


def test_a_late_table_is_tried_again(office):
    """Also one that is there and has not been written to its end."""
    (office / f"in/{DAY}.done").unlink()
    assert run(office) == (75, f"The table of {DAY} is not complete yet.\n")
    assert not list((office / "out").iterdir())


def test_a_day_without_cases_is_done(office):
    """No alert on holidays."""
    path = office / f"in/{DAY}.csv"
    path.write_text(path.read_text().partition("\n")[0] + "\n")
    assert run(office) == (0, f"There were no cases on {DAY}.\n")


def test_too_many_flags_and_damaged_tables_write_nothing(office):
    """The earlier answer of the day stays."""
    path = office / f"in/{DAY}.csv"
    frame = pd.read_csv(path)
    frame.assign(amount=100 * frame["amount"]).to_csv(path, index=False)
    assert run(office)[0] in (4, 5)
    frame.drop(columns="amount").to_csv(path, index=False)
    before = sorted(path.name for path in (office / "out").glob("*.csv"))
    assert run(office)[0] == 2
    assert sorted(path.name for path in (office / "out").glob("*.csv")) == before


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_units_are_right(tmp_path):
    """As systemd itself sees it, with a script and a user that there are."""
    service = (FILES / "shortlist-nightly.service").read_text()
    service = service.replace("/srv/fraud/nightly.sh", str(FILES / "nightly.sh"))
    (tmp_path / "shortlist-nightly.service").write_text(service.replace("User=fraud", "User=root"))
    shutil.copy(FILES / "shortlist-nightly.timer", tmp_path)
    alert = "[Service]\nType=oneshot\nExecStart=/bin/true\n"
    (tmp_path / "alert@.service").write_text(alert)
    units = sorted(str(path) for path in tmp_path.iterdir() if "@" not in path.name)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        capture_output=True, text=True, check=False, env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )  # fmt: skip
    assert (checked.returncode, checked.stderr) == (0, "")


def loaded(name):
    """Import one of the files."""
    spec = importlib.util.spec_from_file_location(name, FILES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("code", "runs"), [(0, 1), (75, 3), (4, 1)])
def test_the_flow_of_prefect_tries_late_days_again(code, runs, monkeypatch):
    """And nothing else."""
    pytest.importorskip("prefect")
    from prefect.testing.utilities import prefect_test_harness

    module, calls = loaded("prefect_flow"), []
    ended = subprocess.CompletedProcess([], code)
    monkeypatch.setattr(module.subprocess, "run", lambda words, **_: calls.append(words) or ended)
    flag = module.flag.with_options(retries=2, retry_delay_seconds=0)
    monkeypatch.setattr(module, "flag", flag)
    with prefect_test_harness():
        state = module.shortlist_nightly(DAY, return_state=True)
    assert state.is_completed() == (code == 0)
    assert len(calls) == runs


def test_the_dag_of_airflow_tries_late_days_again(monkeypatch):
    """A failure that trying again would not mend is final."""
    pytest.importorskip("airflow.sdk")
    from airflow.sdk.exceptions import AirflowException, AirflowFailException
    from airflow.timetables.base import TimeRestriction

    module = loaded("airflow_dag")
    since = datetime(2026, 11, 18, 5, tzinfo=UTC)
    night = module.NIGHTLY.next_dagrun_info(
        last_automated_data_interval=None, restriction=TimeRestriction(since, None, True)
    )
    assert (night.run_after.day, night.logical_date.day) == (20, 19)  # `ds` is the day before
    task = module.shortlist_nightly().get_task("flag")
    assert task.retries == 40
    ends = {0: None, 75: AirflowException, 4: AirflowFailException}
    for code, error in ends.items():
        ended = subprocess.CompletedProcess([], code)
        monkeypatch.setattr(module.subprocess, "run", lambda words, ended=ended, **_: ended)
        if error is None:
            task.python_callable(ds=DAY)
            continue
        with pytest.raises(error) as caught:
            task.python_callable(ds=DAY)
        assert type(caught.value) is error
