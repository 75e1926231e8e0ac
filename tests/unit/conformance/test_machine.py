"""When times are taken."""

from pathlib import Path

import pytest
from mcpzip_conformance import machine

IDLE = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n"


@pytest.fixture
def stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "stat"
    file.write_text(IDLE)
    monkeypatch.setattr(machine, "_STAT", file)
    monkeypatch.setattr(machine, "_MOMENT", 0.0)
    return file


@pytest.mark.parametrize(
    ("then", "idle"),
    [
        ("cpu  101 0 101 898 0 0 0 0 0 0", True),
        ("cpu  110 0 110 880 100 0 0 0 0 0", True),  # waiting for a disk is idle
        ("cpu  121 0 100 879 0 0 0 0 0 0", False),
        ("cpu  100 30 100 800 0 0 0 0 0 0", False),
        (IDLE, True),
    ],
)
async def test_the_use_of_the_processors_decides(
    stat: Path, monkeypatch: pytest.MonkeyPatch, then: str, idle: bool
) -> None:
    looks = iter([IDLE, then])
    monkeypatch.setattr(Path, "read_text", lambda self, **more: next(looks))
    said = await machine.why_not_idle()
    assert (said is None) is idle
    assert idle or str(said).startswith(
        "No time was taken: other work used more than 20% of the processors (over"
    )


@pytest.mark.parametrize(("load", "idle"), [(0.1, True), (0.9, False)])
async def test_without_proc_the_load_average_decides(
    stat: Path, monkeypatch: pytest.MonkeyPatch, load: float, idle: bool
) -> None:
    monkeypatch.setattr(machine, "_STAT", stat / "none")
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (4 * load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    said = await machine.why_not_idle()
    assert (said is None) is idle
    assert idle or "(by the load average of the last minute)" in str(said)


async def test_where_nothing_tells_times_are_taken(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_STAT", stat / "none")
    monkeypatch.delattr(machine.os, "getloadavg", raising=False)
    assert await machine.why_not_idle() is None
