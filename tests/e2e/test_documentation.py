"""What README.md and docs/ show works as shown: their commands, their Python, their JSON and TOML."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.command_lines import accepted
from helpers.doc_commands import (
    EXIT_CODES,
    NOT_RUN,
    REAL,
    ROOT,
    SCRIPTS,
    Command,
    blocks,
    commands,
    pages,
    shown,
)
from helpers.real_servers import NODE_MODULES

from mcpzip.cli.commands import COMMANDS

BIN = Path(sys.executable).parent
DEMO_SERVERS = ("slack", "todoist", "github")
_PATIENCE = 100.0  # s

_COMMANDS = [
    pytest.param(
        command, id=f"{command.page}:{command.line}", marks=[pytest.mark.npm] if command.page in REAL else []
    )
    for command in commands()
    if command.excuse is None and command.page not in SCRIPTS
]
_PROGRAMS = [
    pytest.param(body, id=f"{page.name}:{line}")
    for page in pages()
    for line, body in blocks(page, "python")
    if re.match("import |from ", body)  # a block that doesn't say where its names come from is a part of one
    and "def test_" not in body  # those are run by pytest, in the tests of what they show
]


@pytest.fixture
def environment(isolated: Path, mcpzip: str) -> dict[str, str]:
    """A new home with the demo's servers in its config, and mcpzip on the PATH."""
    config = isolated / ".config" / "compressed-mcp-proxy" / "config.json"
    config.parent.mkdir(parents=True)
    servers = {
        name: {"command": sys.executable, "args": ["-m", "mcpzip_fakes", name]} for name in DEMO_SERVERS
    }
    # The SDK's client passes no MCPZIP_DAEMON on, and a daemon would stay for five minutes.
    config.write_text(json.dumps({"mcpServers": servers, "daemon": {"idle_minutes": 0}}), "utf-8")
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}


@pytest.fixture
def place(isolated: Path) -> Path:
    """Where commands are run: a folder of its own, where ``.venv/bin`` is this Python's."""
    folder = isolated / "work"
    (folder / ".venv").mkdir(parents=True)
    (folder / ".venv" / "bin").symlink_to(BIN, target_is_directory=True)
    return folder


@pytest.mark.skipif(os.name == "nt", reason="the pages are written for a POSIX shell")
@pytest.mark.parametrize("command", _COMMANDS)
def test_the_command_works(
    command: Command, environment: dict[str, str], place: Path, request: pytest.FixtureRequest
) -> None:
    if command.page in REAL:
        real = request.getfixturevalue("real")
        environment["MCPZIP_CONFIG"], place = str(real.config), real.world.repo
        real.world.restore()
    done = subprocess.run(
        ["sh", "-c", command.text],
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == EXIT_CODES.get(command.text, 0), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


_UVX = '#!/bin/sh\nexec "$@"\n'
_NPX = f"""#!/bin/sh
[ "$1" = -y ] && shift
name=$1
shift
exec node "{NODE_MODULES}/$name/dist/index.js" "$@"
"""


_STEPS = [
    pytest.param(page, id=page, marks=[pytest.mark.npm] if page == "docs/tutorial.md" else [])
    for page in SCRIPTS
]
_FILE = re.compile(r"# (\w+\.py)\n")


@pytest.mark.skipif(os.name == "nt", reason="the pages are written for a POSIX shell")
@pytest.mark.parametrize("page", _STEPS)
def test_the_steps_work(page: str, isolated: Path) -> None:
    """uvx and npx start what is installed here, instead of fetching it."""
    for _, body in blocks(ROOT / page, "python"):
        if file := _FILE.match(body):
            (isolated / file[1]).write_text(body, "utf-8")
    programs = isolated / "bin"
    (isolated / "notes").mkdir()
    programs.mkdir()
    for name, script in (("uvx", _UVX), ("npx", _NPX)):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    slack = {"command": sys.executable, "args": ["-m", "mcpzip_fakes", "slack"]}
    (isolated / ".claude.json").write_text(json.dumps({"mcpServers": {"slack": slack}}))
    path = os.pathsep.join((str(programs), str(BIN), os.environ["PATH"]))
    steps = [command for command in commands() if command.page == page and command.excuse is None]
    assert steps
    for step in steps:
        done = subprocess.run(
            ["sh", "-c", step.text],
            env={**os.environ, "PATH": path, "CI": ""},
            cwd=isolated,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{step.text}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("line", sorted(set(shown())))
def test_the_command_is_accepted(line: str) -> None:
    accepted(line)


@pytest.mark.parametrize("script", _PROGRAMS)
def test_the_program_works(script: str, environment: dict[str, str], place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def test_the_first_test_with_a_fake_passes_as_it_stands(tmp_path: Path) -> None:
    _, first = next(blocks(ROOT / "docs" / "fakes.md", "python"))
    assert first.startswith("import pytest\n")
    (tmp_path / "test_shop.py").write_text(first)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_no_exception_is_left_over() -> None:
    shown = [command.text for command in commands()]
    assert all(text in shown for text in EXIT_CODES)
    assert any(command.excuse for command in commands()), "NOT_RUN matches nothing: is it still needed?"
    assert all(NOT_RUN.values())


def test_python_json_and_toml_can_be_read() -> None:
    for page in pages():
        for _, body in blocks(page, "python"):
            ast.parse(body)
        for _, body in blocks(page, "json"):
            json.loads(body)
        for _, body in blocks(page, "toml"):
            tomllib.loads(body)


def test_commands_named_in_passing_exist() -> None:
    named = {
        (page.name, word)
        for page in pages()
        for word in re.findall(r"`mcpzip ([a-z]+)", page.read_text("utf-8"))
    }
    assert {(page, word) for page, word in named if word not in COMMANDS} == set()


def test_links_inside_the_documentation_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in pages()
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []


def test_ci_does_what_the_readme_says() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8").replace('"$work/venv"', ".venv")
    readme = [command.text for command in commands() if command.page == "README.md"]
    setup = next(text for text in readme if "[dev]" in text)
    test = next(text for text in readme if text.endswith("pytest"))
    assert setup.removeprefix(".venv/bin/") in script
    assert script.rstrip().endswith("\n" + test.removeprefix(".venv/bin/"))


@pytest.mark.parametrize("folder", ["tests/e2e", "tools/site"])
def test_the_lock_names_no_registry(folder: str) -> None:
    lock = json.loads((ROOT / folder / "package-lock.json").read_text("utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
