"""``tee.py FILE COMMAND…``: a process between a client and a server on stdio, which copies to FILE what the
server says. Threads and blocking reads, so that it runs on every system.
"""

import os
import signal
import subprocess
import sys
import threading

CHUNK = 1 << 16


def copy(source: int, *targets: int) -> None:
    """Copies to all ``targets`` until ``source`` ends, then closes them."""
    while data := os.read(source, CHUNK):
        for target in targets:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(target, rest) :]
    for target in targets:
        os.close(target)


def main(file: str, *command: str) -> int:
    """Returns the exit code of ``command``."""
    said = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin
        assert child.stdout
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        threading.Thread(target=copy, args=(0, os.dup(child.stdin.fileno())), daemon=True).start()
        child.stdin.close()
        copy(child.stdout.fileno(), 1, said)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
