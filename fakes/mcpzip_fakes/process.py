"""The faults of a process: how it starts, which signals it ignores, which children it leaves.

The rule: no process stays for ever. Processes that ignore signals end by themselves after ``seconds``.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.faults import Fault, Plan
from mcpzip_fakes.record import Writer

_GRANDCHILD = """
import signal, sys, time
for name in ("SIGTERM", "SIGHUP", "SIGINT"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
print("ready", file=sys.stderr, flush=True)
time.sleep(float(sys.argv[1]))
"""

_held: list[bytes] = []


def described(transport: str, record_env: Sequence[str] = ()) -> JsonObject:
    """The data of this process for the record: among others its working directory, the names of all
    environment variables and the values of ``record_env``.
    """
    return {
        "transport": transport,
        "argv": sys.argv,
        "cwd": os.getcwd(),
        "env_names": sorted(os.environ),
        "env": {name: os.environ[name] for name in record_env if name in os.environ},
    }


def start(plan: Plan, record: Writer) -> None:
    """Play the faults of stage ``start``, in their order, and handle SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: leave(record, signal.Signals(number).name, 128 + number))
    for fault in plan.at("start"):
        match fault.kind:
            case "slow-start":
                _work(int(fault.number("memory")), fault.number("busy"))
                time.sleep(fault.number("seconds"))
            case "exit-at-once":
                leave(record, "exit-at-once", int(fault.number("code")), fault.string("text"))
            case "banner":
                os.write(1, fault.string("text").encode() + b"\n")
            case "stderr":
                sys.stderr.write((fault.string("text") + "\n") * int(fault.number("count")))
                sys.stderr.flush()
            case "ignore-sigterm":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "fork":
                record.event("grandchild", {"child": _fork(fault, record.path)})


def leave(record: Writer, reason: str, code: int, text: str = "") -> NoReturn:
    """End this process at once, like a crash: nothing is closed."""
    if text:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    record.event("exit", {"reason": reason, "code": code})
    os._exit(code)


def _work(megabytes: int, seconds: float) -> None:
    """Allocate so much memory, and use so many seconds of processor time."""
    _held.append(b"\1" * (megabytes << 20))
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def _fork(fault: Fault, mark: str) -> int:
    """Start the grandchild; its pid once it ignores the signals. ``mark`` is in its command line."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", _GRANDCHILD, str(fault.number("seconds")), mark],
        stdin=subprocess.DEVNULL,
        stdout=None if fault.flag("hold_output") else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=fault.flag("own_session"),
    )
    assert child.stderr is not None
    child.stderr.readline()
    child.stderr.close()
    return child.pid
