"""The memory of a process and its descendants, by the proc file system and by ps."""

import os
import subprocess
from pathlib import Path

import pytest

from mcpzip.system import process_memory
from mcpzip.system.process_memory import Memory, memory_of


def add_process(proc: Path, pid: int, kilobytes: int, children: str = "") -> None:
    thread = proc / str(pid) / "task" / str(pid)
    thread.mkdir(parents=True)
    (thread / "children").write_text(children)
    (proc / str(pid) / "smaps_rollup").write_text(f"Rss: 99999 kB\nPss:  {kilobytes} kB\nPss_Dirty: 1 kB\n")


def test_a_process_with_its_descendants_by_proc(tmp_path):
    (tmp_path / "self").mkdir()
    add_process(tmp_path, 1, 10, "2 3 9")  # 9 has just ended
    add_process(tmp_path, 2, 20, "4 ")
    add_process(tmp_path, 3, 30)
    add_process(tmp_path, 4, 40)
    add_process(tmp_path, 5, 50)  # somebody else's
    assert memory_of(1, tmp_path) == Memory(10 * 1024, 100 * 1024, 4)
    assert memory_of(5, tmp_path) == Memory(50 * 1024, 50 * 1024, 1)
    assert memory_of(7, tmp_path) is None


@pytest.mark.parametrize("content", ["", "Pss:", "Pss: many kB"])
def test_a_file_that_makes_no_sense_is_a_process_that_is_not_known(tmp_path, content):
    (tmp_path / "self").mkdir()
    add_process(tmp_path, 1, 10)
    (tmp_path / "1" / "smaps_rollup").write_text(content)
    assert memory_of(1, tmp_path) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no ps")
def test_a_process_with_its_descendants_by_ps(tmp_path, monkeypatch):
    table = b"    1     0   10\n    2     1   20\n    3     1   30\n    4     2   40\n    5     0   50\n"

    def run(command, **options):
        assert command[0] == "ps"
        return subprocess.CompletedProcess(command, 0, table, b"")

    monkeypatch.setattr(process_memory.subprocess, "run", run)
    assert memory_of(1, tmp_path) == Memory(10 * 1024, 100 * 1024, 4)
    assert memory_of(7, tmp_path) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no ps")
@pytest.mark.parametrize(
    "fault", [FileNotFoundError(), subprocess.TimeoutExpired("ps", 5), subprocess.CalledProcessError(1, "ps")]
)
def test_without_ps_nothing_is_known(tmp_path, monkeypatch, fault):
    def run(command, **options):
        raise fault

    monkeypatch.setattr(process_memory.subprocess, "run", run)
    assert memory_of(1, tmp_path) is None


@pytest.mark.skipif(os.name == "nt", reason="nothing is known on Windows")
def test_this_process():
    found = memory_of(os.getpid())
    assert found is not None
    assert 5_000_000 < found.own <= found.whole
    assert found.processes >= 1
