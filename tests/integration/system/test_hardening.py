"""What a server that we started can see of us (Linux: /proc)."""

import ctypes
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpzip.system.hardening import harden

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a matter of Linux's /proc")


def secluded() -> bool:
    """Whether others of the same user can't look into this process."""
    get_dumpable = 3  # PR_GET_DUMPABLE
    return ctypes.CDLL(None).prctl(get_dumpable, 0, 0, 0, 0) == 0


SECLUDED = f"import ctypes\n{inspect.getsource(secluded)}\n"
STARTER = """
import os, sys, time
from mcpzip.system.process import Child
before = secluded()
look = "cat /proc/$PPID/environ; cat /proc/self/environ >/dev/null && echo own"
child = Child(["/bin/sh", "-c", look], {"PATH": os.defpath}, None)
said = b""
while piece := os.read(child.stdout, 65536):
    said += piece
child.kill()
print(os.getuid(), before, secluded(), b"TOP-SECRET" in said, b"own" in said)
"""


def test_a_server_cannot_read_what_we_were_started_with(tmp_path: Path) -> None:
    """It could: ``/proc/PID/environ`` has all servers' variables, and MCPZIP_TOKEN."""
    environment = {**os.environ, "MCPZIP_TOKEN": "TOP-SECRET"}
    run = subprocess.run(
        [sys.executable, "-c", SECLUDED + STARTER],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    uid, before, after, seen, own = run.stdout.split()
    assert (before, after, own) == ("False", "True", "True")
    if uid != "0":  # root may look at everything
        assert seen == "False"


def test_it_is_of_this_process_only() -> None:
    if not secluded():
        harden()
    assert secluded()
    child = f"{SECLUDED}import mcpzip.system.hardening\nprint(secluded())"
    run = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
