"""The parent of the workers ends when it is told to, whenever that is."""

import os
import subprocess
import sys

CODE = """
import multiprocessing.context as context, os, signal, socket, time
from shortlist.service import supervisor

started = context.ForkProcess.start

def start(process):
    early = os.environ["WHEN"] == "before"
    if early:
        os.kill(os.getpid(), signal.SIGTERM)
    started(process)
    if not early:
        os.kill(os.getpid(), signal.SIGTERM)

context.ForkProcess.start = start

class Workers(supervisor._Workers):
    def _work(self, place):
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))
        time.sleep(300)

raise SystemExit(Workers(None, None, [socket.socket()]).run())
"""


def test_a_signal_at_the_very_start_of_a_worker_ends_both():
    """It comes just before or just after the fork, when the parent does not yet know the worker."""
    for when in ("before", "after"):
        done = subprocess.run(
            [sys.executable, "-c", CODE], env={**os.environ, "WHEN": when}, timeout=180, check=False
        )
        assert done.returncode == 0
