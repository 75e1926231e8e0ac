"""One record of several processes."""

import subprocess
import sys
from pathlib import Path


def test_of_those_that_begin_at_once_each_has_a_number_of_its_own(tmp_path: Path) -> None:
    """Two of them read the record before either had written to it, and both were the first."""
    code = (
        "import sys, os, time; from mcpzip_fakes.record import begun\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        f"print(begun({str(tmp_path / 'r')!r}, {{}})[0])"
    )
    argv, pipe = [sys.executable, "-c", code], subprocess.PIPE
    started = [subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    assert sorted(int(each.communicate()[0]) for each in started) == [1, 2, 3, 4]
