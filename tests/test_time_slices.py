"""`tools/time_slices.py`: another policy of the scheduler for a process and what it starts."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = str(Path(__file__).parent.parent / "tools" / "time_slices.py")
POLICIES = """
import os, subprocess, sys
def policy():
    return str(os.sched_getscheduler(0))
print(policy(), flush=True)
subprocess.run([sys.executable, sys.argv[1], str(os.getpid()), "30"], check=True)
print(policy(), flush=True)
subprocess.run([sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"], check=True)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="Linux only"
)
def test_a_process_and_what_it_starts_are_served_in_batches() -> None:
    command = [
        sys.executable,
        "-c",
        f"import os; os.sched_setscheduler(0, 0, os.sched_param(0)){POLICIES}",
        TOOL,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["0", "3", "3"], "")


def test_where_it_is_refused_it_says_so_and_fails_nothing() -> None:
    done = subprocess.run([sys.executable, TOOL, str(2**22 + 1), "30"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("time slices are as they were: ")
