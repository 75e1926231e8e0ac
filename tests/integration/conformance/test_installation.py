"""Installing subjects from PyPI: one real environment, of a wheel made here, and the rest with a stand-in for
pip. test_npm_installation.py is of npm."""

import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner
from mcpzip_conformance import installation
from mcpzip_conformance.cli import main
from mcpzip_conformance.declaration import Install
from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.installation import bin_folder, cache_for, folder, install, installed, remove
from mcpzip_conformance.installing import command
from mcpzip_conformance.processes import is_running

PINS = Install(pip=("tiny==1.0", "other==2.0"))
EXE = ".exe" if sys.platform == "win32" else ""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("MCPZIP_CONFORMANCE_CACHE", str(place))
    return place


class Pip:
    """Stands in for what makes an environment. code: what pip exits with; error: what it dies of."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []
        self.code = 0
        self.error: BaseException | None = None

    def __call__(self, command: Sequence[str], env: Mapping[str, str], log: IO[bytes]) -> int:
        self.commands.append(command)
        if "pip" not in command:
            programs = Path(command[-1]) / ("Scripts" if sys.platform == "win32" else "bin")
            programs.mkdir(parents=True)
            (programs / f"python{EXE}").touch()
            return 0
        if self.error is not None:
            raise self.error
        log.write(b"Looking in indexes: none\nERROR: No matching distribution found\n")
        return self.code


@pytest.fixture
def pip(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    stand_in = Pip()
    monkeypatch.setattr(command, "run", stand_in)
    return stand_in


def wheel(place: Path) -> Path:
    """A package with one command, ``tiny``, that prints a word."""
    info = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "def main():\n    print('tiny it is')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny = tiny:main\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    path = place / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def invoke(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, words)
    return result.exit_code, result.output


def test_a_subject_is_installed_used_and_removed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_USER": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    file = tmp_path / "small.toml"
    pin = f"tiny @ {wheel(tmp_path).as_uri()}"
    file.write_text(
        f"""
        title = "small"
        [install]
        pip = ["{pin}"]
        [start]
        command = ["{{bin}}/tiny", "{{upstream}}"]
        [tools]
        names = "{{tool}}"
        """,
        encoding="utf-8",
    )
    code, output = invoke("run", str(file), "--check", "protocol.ping")
    assert code == 2
    assert f"{file} isn't installed: run mcpzip-conformance install {file}." in " ".join(output.split())

    code, output = invoke("install", str(file))
    assert code == 0, output
    programs = bin_folder("small", Install(pip=(pin,)))
    assert programs is not None
    assert str(programs) in output
    assert subprocess.run([programs / "tiny"], capture_output=True, text=True).stdout == "tiny it is\n"
    made = (folder("small", Install(pip=(pin,))) / "installed.json").stat().st_mtime_ns
    assert invoke("install", str(file))[0] == 0
    assert (folder("small", Install(pip=(pin,))) / "installed.json").stat().st_mtime_ns == made
    code, output = invoke("run", str(file), "--check", "protocol.ping")
    assert code == 1
    assert "It closed its output." in output
    code, output = invoke("install", "--list")
    assert "small: installed, " in output
    assert "mcp-proxy: not installed" in output

    code, output = invoke("uninstall", str(file))
    assert code == 0
    assert output.startswith("small: removed, ")
    assert bin_folder("small", Install(pip=(pin,))) is None
    assert os.listdir(cache) == ["lock"]
    assert invoke("uninstall", str(file)) == (0, "small: it is not installed\n")


def test_where_the_cache_is() -> None:
    home = Path("/home/me")
    assert cache_for("linux", {}, home) == home / ".cache" / "mcpzip-conformance"
    assert cache_for("linux", {"XDG_CACHE_HOME": "no/root"}, home) == home / ".cache" / "mcpzip-conformance"
    base = str(Path("/c").absolute())
    assert cache_for("linux", {"XDG_CACHE_HOME": base}, home) == Path(base) / "mcpzip-conformance"
    assert cache_for("darwin", {}, home) == home / "Library" / "Caches" / "mcpzip-conformance"
    assert cache_for("win32", {"LOCALAPPDATA": base}, home) == Path(base) / "mcpzip-conformance"
    assert cache_for("win32", {}, home) == home / "AppData" / "Local" / "mcpzip-conformance"
    assert cache_for("win32", {"MCPZIP_CONFORMANCE_CACHE": base}, home) == Path(base)


def test_pip_gets_the_pins_and_force_gives_it_them_again(pip: Pip) -> None:
    install("small", PINS)
    assert [tuple(command[-2:]) for command in pip.commands if "pip" in command] == [PINS.pip]
    install("small", PINS)
    assert len(pip.commands) == 2
    install("small", PINS, force=True)
    assert len(pip.commands) == 4


def test_other_pins_are_another_environment_and_all_go_together(pip: Pip) -> None:
    install("small", PINS)
    install("small", Install(pip=PINS.pip[:1]))
    install("small-er", PINS)
    assert [(one.name, one.pins, one.whole) for one in installed()].count(("small", PINS.pip, True)) == 1
    assert len(remove("small")) == 2
    assert [one.name for one in installed()] == ["small-er"]
    assert bin_folder("small", PINS) is None


def test_what_pip_said_last_is_shown_when_it_fails(pip: Pip) -> None:
    pip.code = 1
    with pytest.raises(InstallError) as caught:
        install("small", PINS)
    log = folder("small", PINS) / "pip.log"
    assert str(caught.value) == (
        f"small: pip could not install it. See {log}, which ends:\n"
        "  Looking in indexes: none\n  ERROR: No matching distribution found\n"
        "Correct that, and run the command again."
    )
    assert os.listdir(log.parent) == ["pip.log"]
    assert bin_folder("small", PINS) is None
    pip.code = 0
    assert install("small", PINS) == bin_folder("small", PINS)


def test_an_interrupted_install_leaves_nothing_and_is_begun_anew(pip: Pip, cache: Path) -> None:
    pip.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        install("small", PINS)
    assert os.listdir(cache) == ["lock"]
    pip.error = None
    place = folder("small", PINS)
    (place / "venv" / "half").mkdir(parents=True)  # as after a power cut
    assert [one.whole for one in installed()] == [False]
    install("small", PINS)
    assert not (place / "venv" / "half").exists()


def test_two_at_a_time_are_kept_apart(pip: Pip) -> None:
    waits = threading.Event()
    done: list[Path] = []
    other = threading.Thread(target=lambda: done.append(install("small", PINS, waiting=waits.set)))
    with installation._alone(lambda: None):
        other.start()
        assert waits.wait(10)
        assert pip.commands == []
    other.join(10)
    assert done == [bin_folder("small", PINS)]


def test_a_cache_that_can_not_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MCPZIP_CONFORMANCE_CACHE", str(tmp_path / "file"))
    with pytest.raises(InstallError, match=r"name another folder in \$MCPZIP_CONFORMANCE_CACHE\.$"):
        install("small", PINS)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_pip_is_gone(tmp_path: Path) -> None:
    def interrupted(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    code = (
        "import os, signal, time; print(os.getpid(), flush=True);"
        "os.kill(os.getppid(), signal.SIGUSR1); time.sleep(60)"
    )
    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with (tmp_path / "log").open("wb") as log, pytest.raises(KeyboardInterrupt):
            command.run([sys.executable, "-c", code], os.environ, log)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not is_running(int((tmp_path / "log").read_text()))
