"""Installs proxies from a package registry, each in a folder of its own, in a cache folder.

    CACHE/mcp-proxy-3f2a91c07b5d4e66/      the file's name, and a hash of its pins and of what they need
        installed.json                     written last: without it nothing here counts
        ...                                what `installing.pip` or `installing.npm` puts there

The rule: a folder is complete or doesn't count. An interrupted install has no ``installed.json`` and is
repeated. Packages are installed only on request.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcpzip_conformance.declaration import Install
from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.files import written
from mcpzip_conformance.installing import PackageManager, npm, pip

CACHE_VARIABLE = "MCPZIP_CONFORMANCE_CACHE"
MARKER, LOCK = "installed.json", "lock"
_MANAGERS: Mapping[str, PackageManager] = {"pip": pip, "npm": npm}


@dataclass(frozen=True, slots=True)
class Installed:
    """One folder in the cache. pins: the packages that were asked for; whole: it can be used."""

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


def folder(name: str, packages: Install) -> Path:
    """The path of the folder for ``packages``, which need not exist. name: of the subject's file. Raises
    InstallError if their lock file can't be read."""
    key = _manager(packages).key(packages)
    return cache() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def bin_folder(name: str, packages: Install) -> Path | None:
    """The folder of the programs; None if the packages aren't installed, or what runs them is gone."""
    place, manager = folder(name, packages), _manager(packages)
    found = manager.programs(place)
    return found if (place / MARKER).is_file() and manager.is_usable(place) else None


def required(name: str, packages: Install) -> dict[str, str]:
    """The placeholders of packages that must be installed: ``bin``, the folder of the programs, and
    ``packages``, that of the packages from npm. Raises InstallError, which explains how to install them."""
    found = bin_folder(name, packages)
    if found is None:
        raise InstallError(f"{name} isn't installed: run mcpzip-conformance install {name}.")
    libraries = _manager(packages).libraries(folder(name, packages))
    return {"bin": str(found)} | ({"packages": str(libraries)} if libraries is not None else {})


def install(
    name: str,
    packages: Install,
    *,
    force: bool = False,
    waiting: Callable[[], None] = lambda: None,
) -> Path:
    """Install ``packages`` unless they are installed, and return the folder of the programs. force: install
    in any case; waiting: called before waiting for another installation to end. Raises InstallError with the
    last lines of the package manager's output."""
    manager = _manager(packages)
    manager.check_tools(name)
    with _alone(waiting):
        found = bin_folder(name, packages)
        if found is not None and not force:
            return found
        place = folder(name, packages)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            manager.make(name, place, packages)
        except BaseException as error:
            for content in manager.CONTENT:
                _removed(place / content)
            if not isinstance(error, InstallError):
                shutil.rmtree(place, ignore_errors=True)
            raise
        source = "npm" if packages.npm else "pip"
        marker = {
            "name": name,
            "pins": list(packages.pins),
            "python": platform.python_version(),
            "from": source,
        }
        written(place / MARKER, json.dumps(marker, indent=2) + "\n")
        return manager.programs(place)


def installed() -> list[Installed]:
    """All folders in the cache, for any packages and Python, including incomplete ones."""
    found = []
    for place in sorted(cache().glob("*-" + "[0-9a-f]" * 16)):
        pins: tuple[str, ...] = ()
        source = "pip"
        if (place / MARKER).is_file():
            marker = json.loads((place / MARKER).read_text(encoding="utf-8"))
            pins, source = tuple(marker["pins"]), marker.get("from", source)
        whole = bool(pins) and _MANAGERS[source].is_usable(place)
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


def _manager(packages: Install) -> PackageManager:
    return npm if packages.npm else pip


def _removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
