"""Installs proxies from a package index, each in a virtual environment of its own, in a cache folder.

    CACHE/mcp-proxy-3f2a91c07b5d4e66/      the file's name, and a hash of its pins and this Python's version
        installed.json                     written last: without it nothing here counts
        pip.log                            the output of pip
        venv/

The rule: an environment is complete or doesn't count. A virtual environment can't be moved, so it is created
in place; an interrupted install has no ``installed.json`` and is repeated. Packages are installed only on
request.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcpzip.model import sanitize
from mcpzip.model.errors import McpzipError
from mcpzip.model.redaction import redact
from mcpzip_conformance.files import written
from mcpzip_conformance.processes import end_group
from mcpzip_conformance.transcript import printable

CACHE_VARIABLE = "MCPZIP_CONFORMANCE_CACHE"
MARKER, LOG, LOCK = "installed.json", "pip.log", "lock"
_LOG_LINES = 12
"""Lines of pip's log that are shown when it failed."""
_NOT_FOR_PIP = re.compile(r"PYTHON(PATH|HOME)|VIRTUAL_ENV|__PYVENV_LAUNCHER__|PIP_(USER|TARGET|PREFIX|ROOT)")
"""Variables that would have pip look at, or write to, somewhere else than the environment it stands in."""


class InstallError(McpzipError):
    """A proxy isn't installed, or couldn't be: why, with the last lines of the output of pip, and what to
    do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.args = (sanitize.lines(redact(text)),)


@dataclass(frozen=True, slots=True)
class Installed:
    """One environment in the cache. pins: what was asked of pip; whole: it can be used."""

    name: str
    folder: Path
    pins: tuple[str, ...]
    whole: bool

    def bytes(self) -> int:
        """Its size on disk."""
        return sum(file.lstat().st_size for file in self.folder.rglob("*") if not file.is_dir())


def cache() -> Path:
    """The folder of the environments: $MCPZIP_CONFORMANCE_CACHE, or ``mcpzip-conformance`` in the platform's
    cache folder."""
    return cache_for(sys.platform, os.environ, Path.home())


def cache_for(system: str, env: Mapping[str, str], home: Path) -> Path:
    """`cache` on ``system`` (as in `sys.platform`). A relative $XDG_CACHE_HOME is ignored (XDG Base Directory
    Specification)."""
    if own := env.get(CACHE_VARIABLE):
        return Path(own).absolute()
    if system == "win32":
        base = Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif system == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(env.get("XDG_CACHE_HOME") or "")
        base = base if base.is_absolute() else home / ".cache"
    return base / "mcpzip-conformance"


def folder(name: str, pins: Sequence[str]) -> Path:
    """The path of the environment for ``pins``, which need not exist. name: of the subject's file."""
    key = json.dumps([list(pins), platform.python_implementation(), platform.python_version()])
    return cache() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def bin_folder(name: str, pins: Sequence[str]) -> Path | None:
    """The folder of the environment's programs; None if it isn't installed or its Python no longer runs."""
    place = folder(name, pins)
    return _programs(place) if (place / MARKER).is_file() and _python(place).exists() else None


def required(name: str, pins: Sequence[str]) -> Path:
    """`bin_folder` of an environment that must exist. Raises InstallError, which explains how to install
    it."""
    found = bin_folder(name, pins)
    if found is None:
        raise InstallError(f"{name} isn't installed: run mcpzip-conformance install {name}.")
    return found


def install(
    name: str,
    pins: Sequence[str],
    *,
    force: bool = False,
    waiting: Callable[[], None] = lambda: None,
) -> Path:
    """Install ``pins`` unless they are installed, and return the folder of the programs. force: install in
    any case; waiting: called before waiting for another installation to end. Raises InstallError with pip's
    output."""
    with _alone(waiting):
        found = bin_folder(name, pins)
        if found is not None and not force:
            return found
        place = folder(name, pins)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            _make(name, place, pins)
        except BaseException as error:
            shutil.rmtree(place / "venv", ignore_errors=True)
            if not isinstance(error, InstallError):
                shutil.rmtree(place, ignore_errors=True)
            raise
        marker = {"name": name, "pins": list(pins), "python": platform.python_version()}
        written(place / MARKER, json.dumps(marker, indent=2) + "\n")
        return _programs(place)


def installed() -> list[Installed]:
    """All environments in the cache, for any pins and Python, including incomplete ones."""
    found = []
    for place in sorted(cache().glob("*-" + "[0-9a-f]" * 16)):
        pins: tuple[str, ...] = ()
        if (place / MARKER).is_file():
            pins = tuple(json.loads((place / MARKER).read_text(encoding="utf-8"))["pins"])
        whole = bool(pins) and _python(place).exists()
        found.append(Installed(place.name.rpartition("-")[0], place, pins, whole))
    return found


def remove(name: str, waiting: Callable[[], None] = lambda: None) -> list[Installed]:
    """Remove all environments of ``name`` and return them. Raises InstallError if one can't be removed, for
    example because its programs run on Windows."""
    with _alone(waiting):
        gone = [one for one in installed() if one.name == name]
        for one in gone:
            (one.folder / MARKER).unlink(missing_ok=True)
            try:
                shutil.rmtree(one.folder)
            except OSError as error:
                said = f"{error.filename or one.folder} can't be removed ({error.strerror})"
                raise InstallError(f"{said}: end what runs from there, and try again.") from error
    return gone


def _make(name: str, place: Path, pins: Sequence[str]) -> None:
    """Create the environment in ``place`` and install ``pins``. Raises InstallError."""
    env = {key: value for key, value in os.environ.items() if not _NOT_FOR_PIP.fullmatch(key)}
    pip = [str(_python(place)), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", *pins]
    with (place / LOG).open("wb", buffering=0) as log:
        for command in ([sys.executable, "-m", "venv", str(place / "venv")], pip):
            if _run(command, env, log) != 0:
                raise InstallError(_sorry(name, command, place / LOG))


def _run(command: Sequence[str], env: Mapping[str, str], log: IO[bytes]) -> int:
    """The exit code of ``command``. Its process doesn't outlive this call."""
    # Ctrl-C may come while it is being made, when it runs already.
    process: subprocess.Popen[bytes] = subprocess.Popen.__new__(subprocess.Popen)
    try:
        process.__init__(  # type: ignore[misc]
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=os.name == "posix",
        )
        return process.wait()
    except BaseException:
        if getattr(process, "pid", None) is not None:
            end_group(process.pid, still_running=True)
            process.wait()
        raise


def _sorry(name: str, command: Sequence[str], log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="backslashreplace").rstrip().splitlines()[-_LOG_LINES:]
    what = "pip could not install it" if "pip" in command else "no virtual environment could be made"
    said = "\n".join(f"  {printable(line)}" for line in lines)
    return f"{name}: {what}. See {log}, which ends:\n{said}\nCorrect that, and run the command again."


def _programs(place: Path) -> Path:
    return place / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def _python(place: Path) -> Path:
    return _programs(place) / ("python.exe" if sys.platform == "win32" else "python")


@contextmanager
def _alone(waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the cache's lock, which the operating system releases when the process dies."""
    try:
        cache().mkdir(parents=True, exist_ok=True)
        file = (cache() / LOCK).open("ab")
    except OSError as error:
        remedy = f"name another folder in ${CACHE_VARIABLE}"
        raise InstallError(f"{cache()} can't be written to ({error.strerror}): {remedy}.") from error
    with file:
        if not _locked(file, wait=False):
            waiting()
            while not _locked(file, wait=True):
                pass
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _locked(file: IO[bytes], *, wait: bool) -> bool:
        """Whether the lock is ours now. wait: for up to ten seconds."""
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _locked(file: IO[bytes], *, wait: bool) -> bool:
        """Whether the lock is ours now. wait: until it is."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
