"""What a fault does to the process it is in: the way it starts, the signals it minds, the children it leaves.

The rule: nothing a test leaves behind lives for ever. What ignores every polite request ends by itself after
``seconds``.
"""

import os
import signal
import subprocess
import sys
import time
from typing import NoReturn

from fakes.faults import Plan
from fakes.record import Writer

_GRANDCHILD = """
import signal, sys, time
for name in ("SIGTERM", "SIGHUP", "SIGINT"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
print("ready", flush=True)
time.sleep(float(sys.argv[1]))
"""


def start(plan: Plan, record: Writer, transport: str) -> None:
    """Act on the faults of stage ``start``, in the order they stand, and mind SIGTERM."""
    record.event("start", {"transport": transport, "argv": sys.argv})
    signal.signal(signal.SIGTERM, lambda number, frame: leave(record, "SIGTERM", 128 + signal.SIGTERM))
    for fault in plan.at("start"):
        match fault.kind:
            case "slow-start":
                time.sleep(fault.number("seconds"))
            case "exit-at-once":
                leave(record, "exit-at-once", int(fault.number("code")), fault.string("text"))
            case "banner":
                os.write(1, fault.string("text").encode() + b"\n")
            case "ignore-sigterm":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "fork":
                record.event(
                    "grandchild",
                    {"child": _fork(fault.number("seconds"), fault.flag("own_session"), record.path)},
                )


def leave(record: Writer, reason: str, code: int, text: str = "") -> NoReturn:
    """End this process at once, as a crash does: nothing is closed, nobody is told."""
    if text:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    record.event("exit", {"reason": reason, "code": code})
    os._exit(code)


def _fork(seconds: float, own_session: bool, mark: str) -> int:
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", _GRANDCHILD, str(seconds), mark],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=own_session,
    )
    assert child.stdout is not None
    child.stdout.readline()  # from here on it ignores the signals
    child.stdout.close()
    return child.pid
