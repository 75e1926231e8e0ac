"""Hostile programs end within their limits, and disturb nobody."""

from pathlib import Path

import pytest
from helpers.bridging import bridged
from helpers.driver import text_of
from helpers.programs import META, done, error, run_code, value

from mcpzip.model import limits

# hostile programs

HOSTILE = {
    "loop": ("while True:\n    pass", "time limit"),
    "loop that catches": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "time limit",
    ),
    "memory": ("x = []\nwhile True:\n    x.append('a' * 100_000)", "memory limit"),
    "text": ("'a' * 10**10", "memory limit"),
    "power": ("2 ** 10**9", "MemoryError"),
    "recursion": ("def f():\n    return f()\nf()", "RecursionError"),
    "json": ("import json\njson.loads('[' * 100_000)", "Error"),
    "cycle": ("x = []\nx.append(x)\nx", "RecursionError"),
    "files": ("open('/etc/passwd')", "Permission"),
    "environment": ("import os\nos.environ", "not supported"),
    "processes": ("import subprocess", "ModuleNotFoundError"),
    "sockets": ("import socket", "ModuleNotFoundError"),
    "import": ("__import__('os').system('true')", "Error"),
    "classes": ("().__class__.__base__.__subclasses__()", "Error"),
    "ours": ("mcpzip_now(1, 2, 3)", "RuntimeError"),
    "ours, with what is no JSON": ("mcpzip_now('up__look', '{')", "RuntimeError"),
    "ours, with what is deep": ("mcpzip_now('up__look', '[[],' + '[' * 100_000)", "RuntimeError"),
    "exit": ("raise SystemExit(3)", "Error"),
    "long error": ("raise ValueError('\\x1b' * 10_000_000)", "ValueError"),
    "many calls": ("for n in range(1_000):\n    call('up__unheard')", "RuntimeError"),
}


async def test_hostile_programs_end_within_their_limits_and_disturb_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PROGRAM_SECONDS", 1.0)
    async with bridged(tmp_path, **META) as bridge:
        wire, other = await bridge.legacy(), await bridge.legacy()
        await value(wire, "kept = 5\nup__look(do=[])")
        for name, (code, expected) in HOSTILE.items():
            number = wire.send_call({"code": code}, "run_code")
            assert (await other.ask("ping", {}))["result"] == {}
            said = text_of((await wire.answer(number))["result"])
            assert expected in said, (name, said)
        assert await value(wire, "kept") == 5
        assert len(done(bridge)) == 1


async def test_values_that_are_odd_are_shown_all_the_same(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        for code, text in {
            "{1, 2}": "[1, 2]",
            "(1, None)": "[1, null]",
            "float('nan')": "NaN",
            "b'x'": "b'x'",
            "10**30": "1" + "0" * 30,
            "-0.0": "-0.0",
            "'\\x1b[31m'": "\x1b[31m",
            "{1: 'a'}": '{"1": "a"}',
        }.items():
            assert text_of(await run_code(wire, code)).startswith(f"{text}\n"), code


async def test_odd_sleeps(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        assert await value(wire, "import time\nfor n in (0, 0.01):\n    time.sleep(n)\n5") == 5
        for n in ("10**400", "float('inf')"):
            sleep = f"import time\ntry:\n    time.sleep({n})\n"
            code = f"{sleep}except (TimeoutError, OverflowError):\n    late = 6\nlate"
            answer = await wire.call({"code": code, "timeout": 0.2}, "run_code")
            assert text_of(answer["result"]).startswith("6\n")


async def test_variables_that_leave_no_room_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take more memory than their form here has bytes. The client could run no program any more."""
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        monkeypatch.setattr(limits, "PROGRAM_MEMORY", 8 << 20)
        said = text_of(await run_code(wire, "x = [str(n) for n in range(50_000)]\n1"))
        assert "Its variables are too large to be kept" in said
        assert await value(wire, "up__look(do=[])") == {}


async def test_a_value_has_a_limit(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        assert "9,000,002 characters" in await error(wire, "x = 'a' * 9_000_000\nx")
        assert "more than 8,388,608" in await error(wire, "up__look(do=[], x=x)")
        assert await value(wire, "len(x)") == 9_000_000
    assert done(bridge) == []


async def test_what_it_prints_has_a_limit(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        text = text_of(await run_code(wire, "for n in range(20_000):\n    print('some words')\n'end'"))
        assert text.startswith("end\nPrinted:\nsome words\n")
        assert len(text) < 20_000


async def test_so_many_calls_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROGRAM_CALLS", 3)
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        assert "3 calls at most" in await error(wire, "for n in range(9):\n    up__look(do=[])")
    assert len(done(bridge)) == 3
