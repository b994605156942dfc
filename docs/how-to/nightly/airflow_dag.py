"""A DAG of Airflow that flags the cases of each day; late days are tried again."""

import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

LATE = 75


@dag(schedule="15 4 * * *", start_date=datetime(2026, 1, 1), catchup=False)
def shortlist_nightly():
    """Run the script for the day of the run: `airflow dags backfill` repeats old days."""

    @task(retries=40, retry_delay=timedelta(minutes=15))
    def flag(ds=None):
        code = subprocess.run(["/srv/fraud/nightly.sh", ds], check=False).returncode
        if code == LATE:
            raise AirflowException("The table is late.")
        if code:  # trying again would not help
            raise AirflowFailException(f"nightly.sh ended with exit code {code}.")

    flag()


shortlist_nightly()
