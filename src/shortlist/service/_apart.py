"""A model that arrives is first read in a process of its own, with limits.

Libraries read models in compiled code, where a made-up file can end the process or fill the memory.
Then that process ends, and no worker; the answer says why.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_MOST_SECONDS, _MOST_BYTES = 120.0, 4 << 30
_PROGRAM = "from shortlist.service import _apart, _models as models; _apart.read_alone(models)"


def check_apart(content: bytes) -> None:
    """Raise an error unless another process can read a model file, and score a case by it."""
    command = [sys.executable, "-P", "-c", _PROGRAM, str(_MOST_BYTES)]
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(f"It takes longer than {_MOST_SECONDS:g} seconds.") from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise ValueError(f"The file is damaged: the process that read it was ended by {name}.")
    if done.returncode:
        raise ValueError(done.stdout.decode(errors="replace") or "The file is damaged.")


def read_alone(models: Any) -> None:
    """Read a model file from standard input within limits; write what is wrong, and end."""
    told = os.dup(1)
    os.dup2(2, 1)  # libraries write to standard output, too
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    with contextlib.suppress(OSError):  # if memory gets scarce, this process ends first (Linux)
        Path("/proc/self/oom_score_adj").write_text("1000")
    try:
        models.ModelCache().read(sys.stdin.buffer.read())
    except Exception as error:
        too_much = f"It takes more than {most / (1 << 30):g} GB of memory."
        os.write(told, (too_much if _lacks_memory(error) else str(error)).encode())
    else:
        os._exit(0)
    os._exit(1)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory was refused, by Python or by the system, before or behind an error."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        error = error.__context__
    return False
