"""Packages of the npm registry, with the exact versions of a lock file.

    PLACE/package.json          the packages that the subject's file names
    PLACE/package-lock.json     the version and the hash of every package: the subject's own, or made here
    PLACE/npm.log               the output of npm
    PLACE/node_modules/

The rule: everything is from the registry that npm is set up for, and is what the lock says. A lock that names
another place is refused before anything is downloaded, and no package runs a script when it is installed:
such scripts download from elsewhere.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from mcpzip_conformance.declaration import Install, npm_parts
from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.files import written
from mcpzip_conformance.installing import command

LOG, MODULES, LOCK = "npm.log", "node_modules", "package-lock.json"
CONTENT = (MODULES, LOCK, "package.json")
"""What is removed after a failure: everything but the log."""
OLDEST = 9
"""The oldest npm that is used, of Node.js 18: older ones don't know all of `_OPTIONS` that are needed."""
LARGEST_LOCK = 16_000_000
"""Bytes of a lock file that are read."""
_REMEDY = "install Node.js, which brings npm (https://nodejs.org)"
_OPTIONS = (
    "--ignore-scripts",
    "--allow-git=none",
    "--allow-remote=none",
    "--engine-strict",
    "--omit-lockfile-registry-resolved",
    "--no-global",
    "--no-dry-run",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--no-update-notifier",
)
_ENGINE = re.compile(
    r"Not compatible with your version of node/npm: (?P<package>\S+)"
    r"[\s\S]*?Required: (?P<wanted>\{.*\})[\s\S]*?Actual: +(?P<found>\{.*\})"
)
"""What npm says of a package whose ``engines`` exclude this Node.js or npm."""


def key(packages: Install) -> str:
    """What another folder is needed for: other packages, or another lock. Raises InstallError."""
    lock = hashlib.sha256(_read(Path(packages.lock))).hexdigest() if packages.lock else ""
    return json.dumps(["npm", list(packages.npm), lock])


def check_tools(name: str) -> None:
    """Raises InstallError if node or npm is missing, or npm too old."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise InstallError(f"{name} comes from npm, and there is no {tool} on the PATH: {_REMEDY}.")
    version = _version("npm")
    if not version:
        raise InstallError(f"{name} comes from npm, and `npm --version` says no version: {_REMEDY}.")
    if int(version.partition(".")[0]) < OLDEST:
        raise InstallError(f"{name} needs npm {OLDEST} or newer, and this is {version}: {_REMEDY}.")


def make(name: str, place: Path, packages: Install) -> None:
    """Install the packages in ``place``. Raises InstallError."""
    wanted = dict(map(npm_parts, packages.npm))
    written(place / "package.json", _json({"name": "subject", "private": True, "dependencies": wanted}))
    lock, log_file = place / LOCK, place / LOG
    npm = [shutil.which("npm") or "npm", "--prefix", str(place), *_OPTIONS]
    with log_file.open("wb", buffering=0) as log:
        if packages.lock:
            check_lock(_read(Path(packages.lock)), wanted, packages.lock)
            shutil.copyfile(packages.lock, lock)
        elif command.run([*npm, "install", "--package-lock-only"], os.environ, log) != 0:
            raise _failure(name, log_file)
        check_lock(_read(lock), wanted, str(lock))
        if command.run([*npm, "ci"], os.environ, log) != 0:
            raise _failure(name, log_file)


def check_lock(data: bytes, wanted: dict[str, str], source: str) -> None:
    """Raises InstallError unless ``data`` is a lock of the packages ``wanted`` (name -> version) that takes
    all from the registry, with their hashes. source: its name in errors."""
    again = "make it again with npm, of these packages only"
    try:
        lock = json.loads(data)
        packages = dict(lock["packages"])
        root = packages.pop("")
        entries = [(path.rpartition("node_modules/")[2], dict(entry)) for path, entry in packages.items()]
        locked = dict(root["dependencies"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InstallError(f"{source} is no lock file of npm 7 or newer: {again}.") from error
    if locked != wanted:
        raise InstallError(f"{source} is a lock of {_named(locked)}, not of {_named(wanted)}: {again}.")
    for name, entry in entries:
        place = entry.get("resolved", "")
        local = str(place).startswith("file:") and wanted.get(name, "").startswith("file:")
        if (place and not local) or entry.get("link"):
            raise InstallError(
                f"{source} takes {name} from {place!r}, and packages come from the registry only: make it "
                "with npm's option --omit-lockfile-registry-resolved, of packages that need no others."
            )
        if not (entry.get("integrity") or entry.get("inBundle")):
            raise InstallError(f"{source} has no hash of {name}: {again}.")


def is_usable(place: Path) -> bool:
    """Whether the packages are there, and a Node.js to run them."""
    return (place / MODULES).is_dir() and shutil.which("node") is not None


def programs(place: Path) -> Path:
    """The folder of the programs."""
    return place / MODULES / ".bin"


def libraries(place: Path) -> Path | None:
    """The folder of the packages, each in a folder of its name."""
    return place / MODULES


def _read(lock: Path) -> bytes:
    try:
        with lock.open("rb") as file:
            data = file.read(LARGEST_LOCK + 1)
    except OSError as error:
        raise InstallError(f"{lock} can't be read ({error.strerror}): correct install.lock.") from error
    if len(data) > LARGEST_LOCK:
        raise InstallError(f"{lock} has more than {LARGEST_LOCK} bytes: no lock file is that large.")
    return data


def _version(tool: str) -> str:
    """What a tool calls its version; "" if it says none."""
    said = subprocess.run(
        [shutil.which(tool) or tool, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    found = re.match(rb"\s*v?(\d[\w.+-]*)", said.stdout)
    return found[1].decode() if found else ""


def _failure(name: str, log: Path) -> InstallError:
    if found := _ENGINE.search(command.logged(log)):
        wanted, has = json.loads(found["wanted"]), json.loads(found["found"])
        needs = [f"{tool} {version}, and this is {has.get(tool)}" for tool, version in wanted.items()]
        return InstallError(
            f"{name}: {found['package']} needs {'; '.join(needs)}. Install a Node.js of such a version "
            f"(https://nodejs.org). See {log}."
        )
    return command.failure(name, "npm could not install it", log)


def _named(packages: dict[str, str]) -> str:
    return ", ".join(f"{name}@{version}" for name, version in packages.items()) or "nothing"


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
