"""Memory of large messages goes back to the system once they are gone."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import os
from mcpzip.system.allocator import keep_buffers
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
keep_buffers()
before = resident()
bytes(20_000_000)  # glibc would take this for a passing size
large, small = [], []
for number in range(20):
    large.append(b"x" * 20_000_000)
    small.append(b"y" * 100_000)
del large
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_what_large_messages_took_goes_back() -> None:
    """Sixty answers of 20 MB left 900 MB."""
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(told.stdout) < 30_000_000
