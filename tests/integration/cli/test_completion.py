"""`mcpzip completion`, and those of the other two programs: what real shells offer."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import environment, run, run_here, write_config
from mcpzip_conformance.cli import main as conformance
from mcpzip_conformance.subject import load_all, names
from mcpzip_fakes.cli import main as fake
from mcpzip_fakes.launch import FakeServer

from mcpzip.cli.commands import run as main
from mcpzip.model import shell_completion

Fake = Callable[..., FakeServer]

MCPZIP_VARIANTS = sorted(subject.id.partition(":")[2] for subject in load_all("mcpzip"))
SUBJECTS = sorted({*names(), *(subject.id for name in names() for subject in load_all(name))})

_BASH = (
    'eval "$({program} completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
    '{function} {program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
)
_ZSH = (
    'compdef() {{ }}; compadd() {{ print -rl -- "${{(@P)@[-1]}}" }}; '
    '_describe() {{ print -rl -- "${{(@)${{(@P)3}}%%:*}}" }}; '
    'eval "$({program} completion zsh)"; words=("$@"); CURRENT=$#; {function}'
)
_FISH = '{program} completion fish | source; complete -C "$argv"'
_POWERSHELL = (
    "{program} completion powershell | Out-String | Invoke-Expression; "
    "(TabExpansion2 -inputScript $args[0] -cursorColumn $args[0].Length).CompletionMatches.CompletionText"
)


def _filled(code: str, program: str) -> str:
    return code.format(program=program, function=f"_{program.replace('-', '_')}_completion")


def _bash(*words: str) -> list[str]:
    """As bash splits a line, a colon is a word of its own."""
    split = [part for word in words for part in re.split("(:)", word) if part or not word]
    return ["bash", "-c", _filled(_BASH, words[0]), "bash", *split]


def _zsh(*words: str) -> list[str]:
    """Without a terminal zsh completes nothing, so its commands for completions are functions here."""
    return ["zsh", "-f", "-c", _filled(_ZSH, words[0]), "zsh", *words]


def _fish(*words: str) -> list[str]:
    return ["fish", "-c", _filled(_FISH, words[0]), *words]


def _powershell(*words: str) -> list[str]:
    line = " ".join(words).replace("'", "''")
    return ["pwsh", "-NoProfile", "-Command", f"& {{ {_filled(_POWERSHELL, words[0])} }} '{line}'"]


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
@pytest.mark.parametrize("shell", [_if_installed(shell) for shell in (_bash, _zsh, _fish, _powershell)])
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
    assert _offered(shell(*words), config) == offered
    assert not (config.parent / "pwned").exists()


@pytest.mark.skipif(os.name == "nt", reason="these shells are those of POSIX systems")
@pytest.mark.parametrize("shell", [_if_installed(shell) for shell in (_bash, _zsh, _fish, _powershell)])
def test_a_shell_offers_scenarios_and_subjects(shell: Callable[..., list[str]], tmp_path: Path) -> None:
    """bash replaces only what follows the colon."""
    here = tmp_path / "config.json"
    assert _offered(shell("mcpzip-fake", "sla"), here) == ["slack"]
    names = ["mcpzip:meta", "mcpzip:meta-daemon", "mcpzip:meta-http"]
    wanted = [name.removeprefix("mcpzip:") if shell is _bash else name for name in names]
    assert _offered(shell("mcpzip-conformance", "run", "mcpzip:me"), here) == wanted


def _offered(command: list[str], config: Path) -> list[str]:
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
    return [line.split("\t")[0] for line in done.stdout.split("\n") if line]


@pytest.mark.parametrize(
    ("program", "words", "answer"),
    [
        ("mcpzip-conformance", ["run", "mcpzip", ":"], [f"plain,{name}" for name in MCPZIP_VARIANTS]),
        ("mcpzip-conformance", ["explain", "fidelity.is-error", "mcp-proxy", ":", "cl"], ["plain,client"]),
        ("mcpzip-conformance", ["run", "--level", "=", "m"], ["plain,may", "plain,must"]),
        ("mcpzip-conformance", ["run", "mcpzip", "--expect", "known"], ["file,known"]),
        ("mcpzip-conformance", ["run", "./my"], ["file,./my"]),
        ("mcpzip-conformance", ["report", "a.json", "b"], ["file,b"]),
        ("mcpzip-conformance", ["install", "mcp-r"], ["plain,mcp-remote"]),
        ("mcpzip-conformance", ["run", ""], [f"plain,{name}" for name in SUBJECTS]),
        ("mcpzip-fake", ["compl"], ["plain,completion"]),
        ("mcpzip-fake", ["./mine"], ["file,./mine"]),
        ("mcpzip-fake", ["--tr"], ["plain,--transport"]),
        ("mcpzip-fake", ["play", "sla"], ["plain,slack"]),
        ("mcpzip-fake", ["slack", "--transport", "h"], ["plain,http"]),
        ("mcpzip-fake", ["--show", "sla"], ["plain,slack"]),
        ("mcpzip-fake", ["completion", "z"], ["plain,zsh"]),
    ],
)
def test_bash_asks(
    program: str,
    words: list[str],
    answer: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The words are those that bash makes of a line, a ``:`` and a ``=`` alone."""
    monkeypatch.setenv("COMP_WORDS", "\n".join([program, *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv(shell_completion.variable(program), "bash_complete")
    with pytest.raises(SystemExit, match="0"):
        (fake if program == "mcpzip-fake" else conformance)([], prog_name=program)
    assert capsys.readouterr().out.split() == answer


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
    monkeypatch.setattr(shell_completion, "get_completion_class", lambda shell: None)
    assert main(["completion", "powershell"]) == 2
    assert "Install click 8.5 or newer." in capsys.readouterr().err
