"""A DAG of Airflow that flags the cases of each day; late days are tried again."""

import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.timetables.interval import CronDataIntervalTimetable

LATE = 75
# The run of the 19th is for the 18th; with a plain "15 4 * * *" it would be for the 19th.
NIGHTLY = CronDataIntervalTimetable("15 4 * * *", timezone="UTC")


@dag(schedule=NIGHTLY, start_date=datetime(2026, 1, 1), catchup=False)
def shortlist_nightly():
    """Run the script for the day before: `airflow backfill create` repeats old days."""

    @task(retries=40, retry_delay=timedelta(minutes=15))
    def flag(ds=None):
        code = subprocess.run(["/srv/fraud/nightly.sh", ds], check=False).returncode
        if code == LATE:
            raise AirflowException("The table is late.")
        if code:  # trying again would not help
            raise AirflowFailException(f"nightly.sh ended with exit code {code}.")

    flag()


shortlist_nightly()
