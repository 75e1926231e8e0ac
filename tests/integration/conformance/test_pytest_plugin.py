"""The pytest plugin, as a proxy's author has it: a subject file, known failures and five lines."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.wrong_proxy import wrong_proxy
from mcpzip_fakes.launch import importable

KNOWN = """
["my-proxy"]
"fidelity.is-error" = "Dropped since 0.9."
"protocol.ping" = "Fixed by now."
"""
MINE = """
import pytest

@pytest.mark.mcp_conformance(
    "my-proxy.toml",
    checks=["protocol.ping", "fidelity.is-error", "search.limit"],
    expect="known.toml",
)
def test_conformance(mcp_check):
    mcp_check()

@pytest.mark.mcp_conformance("my-proxy.toml", "direct", checks=["fidelity.is-error"], patience=30)
def test_two(mcp_check):
    mcp_check()
"""
ASYNC = """
import asyncio
import pytest

@pytest.mark.mcp_conformance("direct", checks=["protocol.ping", "search.limit"])
def test_conformance(mcp_check):
    mcp_check()

@pytest.mark.mcp_conformance("direct", checks=["protocol.ping"])
async def test_in_a_loop(mcp_check):
    mcp_check()

async def test_of_their_own():
    await asyncio.sleep(0)
"""


def pytest_on(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """pytest on ``folder``, with no plugins but ours and those that ``words`` name."""
    plugins = (
        "-p",
        "mcpzip_conformance.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "--strict-markers",
    )
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *words, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **importable(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUTF8": "1"},
    )


@dataclass(frozen=True)
class Ran:
    """cases: a test's id -> "passed", or its result's tag and text; output: what pytest printed."""

    code: int
    output: str
    cases: dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The author's tests, of a proxy that drops ``isError``, run from another folder than theirs."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "tests").mkdir()
    for name, content in {
        "my-proxy.toml": wrong_proxy("mine"),
        "known.toml": KNOWN,
        "test_mine.py": MINE,
    }.items():
        (folder / "tests" / name).write_text(content, encoding="utf-8")
    done = pytest_on(folder, "--junitxml", "ran.xml")
    cases = {}
    for case in ET.parse(folder / "ran.xml").iter("testcase"):
        result = next(iter(case), None)
        said = ("passed", "") if result is None else (result.tag, f"{result.get('message')}\n{result.text}")
        cases[str(case.get("name"))] = said
    return Ran(done.returncode, done.stdout + done.stderr, cases)


def test_each_check_is_a_test_with_a_name_one_can_read(ran: Ran) -> None:
    assert {name: kind for name, (kind, _) in ran.cases.items()} == {
        "test_conformance[protocol.ping]": "failure",
        "test_conformance[fidelity.is-error]": "skipped",
        "test_conformance[search.limit]": "skipped",
        "test_two[my-proxy-fidelity.is-error]": "failure",
        "test_two[direct-fidelity.is-error]": "passed",
    }
    assert ran.code == 1


def test_what_is_skipped_and_what_is_known_says_why(ran: Ran) -> None:
    assert "No tool of it searches." in ran.cases["test_conformance[search.limit]"][1]
    assert "Dropped since 0.9." in ran.cases["test_conformance[fidelity.is-error]"][1]


def test_a_pinned_one_that_passes_fails(ran: Ran) -> None:
    assert "[XPASS(strict)] Fixed by now." in ran.cases["test_conformance[protocol.ping]"][1]


def test_a_failure_is_the_sentence_the_diff_and_what_was_said(ran: Ran) -> None:
    told = ran.cases["test_two[my-proxy-fidelity.is-error]"][1]
    assert "The answer to tools/call shop tell differs." in told
    assert "source: https://modelcontextprotocol.io/specification/" in told
    assert '-  "isError": true' in told.splitlines()
    assert "directly to the server:" in told
    assert '"method":"tools/call","params":{"name":"shop__tell","arguments":{}}' in told
    assert "Traceback" not in told
    assert ".py" not in told


def test_it_runs_beside_pytest_asyncio_and_under_xdist(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(ASYNC, encoding="utf-8")
    beside = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto")
    told = ("-o", "asyncio_default_fixture_loop_scope=function", "-p", "xdist", "-n", "2")
    done = pytest_on(tmp_path, *beside, *told)
    assert "1 failed, 2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "mcp_check runs an event loop of its own: write the test with def, not async def." in done.stdout


def test_a_mistake_is_a_sentence(tmp_path: Path) -> None:
    mistakes = {
        "": "nothing says what to check; write @pytest.mark.mcp_conformance",
        "()": "it names no subject; write mcp_conformance(*subjects",
        '("nobody")': "There is no subject 'nobody'",
        '("none.toml")': f"{tmp_path / 'none.toml'}: it can't be read",
        '("direct", levels="must")': "levels is a string where a list belongs",
        '("direct", level=["must"])': "mcp_conformance: it got an unexpected keyword argument 'level'",
        '("direct", checks=["protocol.pong"])': "did you mean 'protocol.ping'?",
        '("direct", expect="none.toml")': "or make it with --write-expect.",
        '("mcp-proxy")': "mcp-proxy isn't installed: run mcpzip-conformance install mcp-proxy.",
    }
    for number, arguments in enumerate(mistakes):
        marker = f"@pytest.mark.mcp_conformance{arguments}\n" if arguments else ""
        text = f"import pytest\n{marker}def test_it(mcp_check): mcp_check()\n"
        (tmp_path / f"test_{number}.py").write_text(text, encoding="utf-8")
    done = pytest_on(tmp_path)
    assert f"{len(mistakes)} errors" in done.stdout
    for sentence in mistakes.values():
        assert sentence in done.stdout
    assert "Traceback" not in done.stdout


def test_seconds_that_are_none_are_said(tmp_path: Path) -> None:
    done = pytest_on(tmp_path, "--mcp-timeout", "-1")
    assert done.returncode == 4
    assert "argument --mcp-timeout: '-1' is no number of seconds; write one above 0" in done.stderr


def test_it_costs_a_foreign_run_nothing() -> None:
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport mcpzip_conformance.pytest_plugin\n"
        "print(sorted(name for name in set(sys.modules) - before if name.split('.')[0] in "
        "('mcpzip_conformance', 'mcpzip_fakes', 'mcpzip', 'mcp', 'msgspec', 'click', 'rich')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **importable()}
    )
    assert done.stdout.strip() == "['mcpzip_conformance', 'mcpzip_conformance.pytest_plugin']"
