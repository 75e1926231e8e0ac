"""The commands that messages tell a person to run are about the config that was named."""

import ast
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from helpers.command_lines import accepted
from hypothesis import given
from hypothesis import strategies as st

import mcpzip
from mcpzip.cli.commands import COMMANDS
from mcpzip.cli.parameters import config_option, hint
from mcpzip.config.paths import CONFIG_VARIABLE, config_path, mcpzip_command

PACKAGE = Path(mcpzip.__file__).parent
OF_WHICH = ("cli", "doctor", "pins", "policy", "proxy")
COMMAND = re.compile(rf"\bmcpzip (?:{'|'.join(sorted(COMMANDS, key=len, reverse=True))})\b")

ELSEWHERE = {
    "cli/demo.py": "it has no config",
    "cli/no_config.py": "it speaks of the default config only",
    "cli/tokens_page.py": "a page that may be sent to others",
    "cli/logs.py": "speaks of what a client starts",
    "doctor/config_checks.py": "the command to copy stands below the sentence",
    "proxy/call_guard.py": "a word of the audit log",
}
"""The files that write commands out, and why they may."""


def written_out(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings in the code, without docstrings and examples, that have a command of mcpzip in them."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "examples":
            skipped.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield from ((node.lineno, found[0]) for found in COMMAND.finditer(node.value))


def test_messages_write_no_command_out() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): [f"{line}: {command}" for line, command in commands]
        for part in OF_WHICH
        for path in sorted((PACKAGE / part).rglob("*.py"))
        if (commands := list(written_out(ast.parse(path.read_text("utf-8")))))
    }
    assert {file: commands for file, commands in found.items() if file not in ELSEWHERE} == {}
    assert found.keys() == ELSEWHERE.keys()


TELL = ("hint", "mcpzip", "mcpzip_command")
"""The functions whose result a person is told."""


def command_lines(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """The words of each command that the code has a person told; ``.`` for what is known only then."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in TELL:
            words = node.args[name == "mcpzip_command" :]
            yield tuple(
                str(word.value) if isinstance(word, ast.Constant) else "."
                for word in words
                if not isinstance(word, ast.Starred)
            )


NAMED = {
    words
    for part in (*OF_WHICH, "auth", "config", "server")
    for path in (PACKAGE / part).rglob("*.py")
    if any(f"{name}(" in (text := path.read_text("utf-8")) for name in TELL)
    for words in command_lines(ast.parse(text))
    if words and words[0] != "."
}


@pytest.mark.parametrize("words", sorted(NAMED), ids=" ".join)
def test_a_command_that_is_named_exists_and_takes_a_config(words: tuple[str, ...]) -> None:
    accepted(mcpzip_command("/some/config.json", *words))


def test_the_commands_are_found() -> None:
    assert {("review", "--repair"), ("allow", "--call", "."), ("auth", "login", ".")} <= NAMED
    assert len(NAMED) > 30


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    return tmp_path


def test_the_default_config_is_not_named(home: Path) -> None:
    assert mcpzip_command(config_path(None, os.environ), "review", "shop") == "mcpzip review shop"
    assert hint("review") == "mcpzip review"


def test_another_config_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = str(home / "my configs" / "it's.json")
    for command in (
        mcpzip_command(other, "review"),
        hinted_by(["--config", other], monkeypatch),
        hinted_by([], monkeypatch, other),
    ):
        assert shlex.split(command) == ["mcpzip", "review", "--config", other]


def hinted_by(options: list[str], monkeypatch: pytest.MonkeyPatch, variable: str = "") -> str:
    """What a command with these options, and with this value of the variable, tells."""

    @click.command()
    @config_option
    def told(config: str | None) -> None:
        click.echo(hint("review"))

    environment = {CONFIG_VARIABLE: variable} if variable else {}
    return CliRunner().invoke(told, options, env=environment).output


def test_options_stay_before_the_words_of_another_command(home: Path) -> None:
    assert mcpzip_command("/c.json", "add", "NAME", "--", "COMMAND") == (
        "mcpzip add NAME --config /c.json -- COMMAND"
    )


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20))
def test_a_word_that_a_server_chose_is_one_word_for_a_shell(word: str) -> None:
    """`mcpzip allow --revoke` named a tool as its server does: ``$(rm -r ~)``."""
    assert shlex.split(mcpzip_command("", "allow", "--revoke", word)) == ["mcpzip", "allow", "--revoke", word]
