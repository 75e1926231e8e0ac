"""Checks of mcpzip's own files: permissions, leftovers, room on the disk, unusable caches."""

import os
import shutil
from collections.abc import Iterator
from functools import partial

from mcpzip.config.paths import auth_folder, cache_folder, history_folder, pins_path, snapshot_path
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.doctor.shell import command_line, delete
from mcpzip.system.files import find_drafts, others_may_read, remove_file
from mcpzip.system.state_files import foreign_files

LEAST_ROOM = 50_000_000
"""Bytes that should be free."""


def check_files(setup: Setup) -> Iterator[Finding]:
    """The folder of the config, and the folders beside the config."""
    folder = os.path.dirname(setup.path)
    cache, sign_ins = cache_folder(setup.path), auth_folder(setup.path)
    pins = os.path.dirname(pins_path(setup.path))
    if not os.path.isdir(folder):
        return
    for path in (folder, cache, pins):
        if os.path.isdir(path) and not os.access(path, os.W_OK | os.X_OK):
            yield Finding(
                "error",
                "files.not-writable",
                path,
                "mcpzip can't write into this folder, so that nothing new of a server is offered."
                if path == pins
                else "mcpzip can't write into this folder, so that every start begins without tools.",
                remedy="Give yourself the right.",
                command=command_line("chmod", "u+rwx", path),
            )
    if os.path.lexists(cache) and not os.path.isdir(cache):
        yield Finding(
            "error",
            "files.no-folder",
            cache,
            "Where mcpzip's caches should be is a file.",
            remedy="Delete it, if you don't know it.",
            command=delete(cache),
        )
    for path in (cache, pins):
        for warning in foreign_files(path):
            yield Finding("warning", "files.foreign", path, warning)
    for warning in setup.stored_warnings:
        stored = snapshot_path(setup.config.state_path if setup.config else setup.path)
        yield Finding(
            "warning",
            "files.cache",
            stored,
            warning,
            remedy="It is rebuilt when the servers are listed. Until then their tools are not known.",
            command=setup.mcpzip("refresh"),
            fix=partial(_set_aside, stored),
        )
    yield from _private(sign_ins, "files.sign-ins", "your sign-ins")
    earlier = history_folder(setup.path)
    yield from _private(earlier, "files.history", "earlier versions of your config, which may have secrets")
    drafts = [path for each in (folder, cache, sign_ins, pins, earlier) for path in find_drafts(each)]
    if drafts:
        yield Finding(
            "note",
            "files.leftover",
            folder,
            f"Temporary files of a mcpzip that was killed are left: {len(drafts)}.",
            tuple(drafts[:5]),
            "Delete them.",
            delete(*drafts[:20]),
            fix=partial(_remove, drafts),
        )
    room = shutil.disk_usage(folder).free
    if room < LEAST_ROOM:
        yield Finding(
            "error",
            "files.disk-full",
            folder,
            f"The disk has {room / 1e6:.0f} MB left: what mcpzip learns can't be stored.",
            remedy="Free some space.",
        )


def _private(folder: str, code: str, what: str) -> Iterator[Finding]:
    """Files in ``folder`` that others can read. what: they contain."""
    try:
        paths = [folder, *(os.path.join(folder, name) for name in sorted(os.listdir(folder)))]
    except OSError:
        return
    open_ones = [path for path in paths if path.endswith(".json") or path == folder if _is_open(path)]
    if open_ones:
        yield Finding(
            "error",
            code,
            folder,
            f"Other users of this machine can read {what}.",
            tuple(open_ones[:5]),
            "Take the right away from them.",
            " && ".join(_chmod(path) for path in open_ones[:20]),
            fix=partial(_close, open_ones),
        )


def _chmod(path: str) -> str:
    return command_line("chmod", "700" if os.path.isdir(path) else "600", path)


def _is_open(path: str) -> bool:
    try:
        return others_may_read(path)
    except OSError:
        return False


def _close(paths: list[str]) -> str:
    for path in paths:
        os.chmod(path, 0o700 if os.path.isdir(path) else 0o600)
    return f"Only you can read {', '.join(paths)} now."


def _set_aside(path: str) -> str:
    os.replace(path, f"{path}.unusable")
    return f"Renamed {path} to {os.path.basename(path)}.unusable."


def _remove(paths: list[str]) -> str:
    for path in paths:
        remove_file(path)
    return f"Deleted {', '.join(paths)}."
