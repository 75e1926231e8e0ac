"""`mcpzip completion`: what real shells offer."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import environment, run, run_here, write_config
from mcpzip_fakes.launch import FakeServer

from mcpzip.cli import completion
from mcpzip.cli.commands import run as main

Fake = Callable[..., FakeServer]

_BASH = (
    'eval "$(mcpzip completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
    '_mcpzip_completion mcpzip; printf "%s\\n" "${COMPREPLY[@]}"'
)
_FISH = 'mcpzip completion fish | source; complete -C "$argv"'


def _bash(*words: str) -> list[str]:
    return ["bash", "-c", _BASH, "bash", *words]


def _fish(*words: str) -> list[str]:
    return ["fish", "-c", _FISH, *words]


_POWERSHELL = (
    "mcpzip completion powershell | Out-String | Invoke-Expression; "
    "(TabExpansion2 -inputScript $args[0] -cursorColumn $args[0].Length).CompletionMatches.CompletionText"
)


def _powershell(*words: str) -> list[str]:
    line = " ".join(words).replace("'", "''")
    return ["pwsh", "-NoProfile", "-Command", f"& {{ {_POWERSHELL} }} '{line}'"]


def _if_installed(shell: Callable[..., list[str]]) -> object:
    """The shell, skipped before any fixture is made if this machine lacks it."""
    program = shell("mcpzip")[0]
    missing = pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    return pytest.param(shell, marks=missing)


@pytest.fixture
def config(fake_mcp: Fake, tmp_path: Path) -> Path:
    """Two servers that were listed; one of them calls a tool what no shell should read."""
    shop = fake_mcp(name="shop", tools=["pay_invoice", "pay_$(touch pwned)", "pay;ls", "send"])
    path = write_config(tmp_path, shop, others={"shed": {"command": "nothing-of-this-name"}})
    assert run_here("refresh", "shop", "--config", str(path)).returncode == 0
    return path


@pytest.mark.skipif(os.name == "nt", reason="these shells are those of POSIX systems")
@pytest.mark.parametrize("shell", [_if_installed(shell) for shell in (_bash, _fish, _powershell)])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["mcpzip", "comp"], ["completion"]),
        (["mcpzip", "describe", "shop__p"], ["shop__pay_invoice"]),
        (["mcpzip", "disable", "sh"], ["shed", "shop"]),
        (["mcpzip", "disable", "shed", "sh"], ["shop"]),
        (["mcpzip", "search", "--server", "sho"], ["shop"]),
        (["mcpzip", "migrate", "--from", "cur"], ["cursor"]),
        (["mcpzip", "completion", "z"], ["zsh"]),
    ],
)
def test_a_shell_offers(
    shell: Callable[..., list[str]], words: list[str], offered: list[str], config: Path
) -> None:
    command = shell(*words)
    bin_ = str(Path(sys.executable).parent)
    done = subprocess.run(
        command,
        env=environment(MCPZIP_CONFIG=str(config), PATH=f"{bin_}{os.pathsep}{os.environ['PATH']}"),
        cwd=config.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.split("\n") if line] == offered
    assert not (config.parent / "pwned").exists()


def test_without_a_usable_config_nothing_is_offered(tmp_path: Path) -> None:
    broken = tmp_path / "config.json"
    broken.write_text("{")
    asked = {"COMP_WORDS": "mcpzip describe s", "COMP_CWORD": "2", "_MCPZIP_COMPLETE": "bash_complete"}
    done = run(MCPZIP_CONFIG=str(broken), **asked)
    assert (done.stdout.strip(), done.stderr) == (b"", b"")


def test_powershell_is_answered_as_its_script_expects(config: Path) -> None:
    """No PowerShell is needed: the script reads three lines for each name."""
    script = run("completion", "powershell")
    assert script.returncode == 0, script.stderr
    assert b"Register-ArgumentCompleter -Native -CommandName mcpzip" in script.stdout
    asked = {"COMP_WORDS": "mcpzip describe shop__", "COMP_CWORD": "2"}
    done = run(MCPZIP_CONFIG=str(config), _MCPZIP_COMPLETE="powershell_complete", **asked)
    kinds, names, _ = (done.stdout.decode().splitlines()[at::3] for at in range(3))
    assert set(kinds) == {"plain"}
    assert names == ["shop__pay_invoice", "shop__send"]


def test_an_old_click_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(completion, "get_completion_class", lambda shell: None)
    assert main(["completion", "powershell"]) == 2
    assert "Install click 8.5 or newer." in capsys.readouterr().err
