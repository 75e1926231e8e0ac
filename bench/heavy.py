"""`bench/upstream.py` with the start-up time and memory of servers on real SDKs.

    python -I -S heavy.py CPU SLEEP MB [options of upstream.py]

CPU: seconds of processor time (imports). SLEEP: seconds that it waits for something (a network, a database).
MB: memory that it allocates.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import upstream


def main() -> None:
    cpu, sleep, size = map(float, sys.argv[1:4])
    while time.process_time() < cpu:
        sum(range(10_000))
    held = bytearray(int(size * 1e6))
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(sleep)
    upstream.main(sys.argv[4:])


if __name__ == "__main__":
    main()
