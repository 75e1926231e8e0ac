"""A relay that only copies: `relay.py COMMAND ...` copies bytes between its client and COMMAND.

It shows the minimum cost of one more process; the rest of a proxy's time is its own. Threads and blocking
reads, so that it runs on every system.
"""

import os
import subprocess
import sys
import threading

CHUNK = 1 << 16


def pump(source: int, target: int) -> None:
    """Copies until ``source`` ends, then closes ``target``."""
    while data := os.read(source, CHUNK):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(target, rest) :]
    os.close(target)


def main(argv: list[str]) -> int:
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin
        assert child.stdout
        threading.Thread(target=pump, args=(0, os.dup(child.stdin.fileno())), daemon=True).start()
        child.stdin.close()
        pump(child.stdout.fileno(), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
