"""Ends the servers' processes when mcpzip is killed.

A child is registered by its mark before it starts and by its process group afterwards, and removed after it
has ended. Whatever is still registered when this process ends is ended by the reaper.
"""

import asyncio
import errno
import os
import subprocess
import sys
import threading

from mcpzip.system.orphans import MARK_VARIABLE, OrphanProcess, can_see_environments, find_marked
from mcpzip.system.threads import in_thread

_SCRIPT = f"""
trap '' TERM INT HUP QUIT
groups=' ' marks=' '
while read -r command value; do
  case $command in
    +) groups="$groups$value " ;;
    -) groups="${{groups%% $value *}} ${{groups#* $value }}" ;;
    m) marks="$marks$value " ;;
    u) marks="${{marks%% $value *}} ${{marks#* $value }}" ;;
  esac
done
patterns=''
for mark in $marks; do patterns="$patterns -e {MARK_VARIABLE}=$mark"; done
signal() {{
  for group in $groups; do kill "-$1" "-$group"; done
  [ -n "$patterns" ] || return
  for file in $(grep -las $patterns /proc/[0-9]*/environ); do
    file=${{file#/proc/}}
    kill "-$1" "${{file%/environ}}"
  done
}}
signal TERM
[ "$groups$marks" = '  ' ] || sleep 1
signal KILL
"""


class Reaper:
    """A small shell process that outlives us just long enough to end our children.

    The shell reads process groups and marks from a pipe that only this process holds. However this process
    ends, the pipe closes, and the shell signals everything that is still registered. POSIX only: on Windows
    this class does nothing. Thread-safe, except `find_orphans` and `cancel_scans`.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._registered: set[int | str] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._taking_over = False
        self._running_scan: asyncio.Task[dict[str, list[OrphanProcess]]] | None = None
        self._next_scan: asyncio.Task[dict[str, list[OrphanProcess]]] | None = None

    def take_over(self) -> None:
        """Leaves the processes that are still registered at `close` to the shell, because mcpzip is about to
        exit and must not wait for them.
        """
        self._taking_over = True

    @property
    def takes_over(self) -> bool:
        """Whether `take_over` was called, and the shell is there to do it."""
        return self._taking_over and self._shell is not None and self._shell.poll() is None

    def add_mark(self, mark: str) -> None:
        """Registers the processes with ``mark``; does nothing if it is "".

        Starts the shell on first use, which is slow on a busy system. Raises OSError after `close`.
        """
        if mark:
            self._add(mark, "m")

    def add_group(self, group: int) -> None:
        """Registers a process group. Raises OSError after `close`."""
        self._add(group, "+")

    def remove_group(self, group: int) -> None:
        """Unregisters a process group that has ended, because its number may be given to another."""
        self._remove(group, "-")

    def remove_mark(self, mark: str) -> None:
        """Unregisters the processes with ``mark``."""
        self._remove(mark, "u")

    async def find_orphans(self, mark: str) -> list[OrphanProcess]:
        """The running processes with ``mark``. Concurrent calls share one scan."""
        if not can_see_environments():
            return []
        if self._next_scan is None:
            self._next_scan = asyncio.create_task(self._scan_after(self._running_scan), name="find orphans")
        return (await asyncio.shield(self._next_scan)).get(mark, [])

    async def _scan_after(
        self, previous: "asyncio.Task[dict[str, list[OrphanProcess]]] | None"
    ) -> dict[str, list[OrphanProcess]]:
        if previous is not None and not previous.done():
            await asyncio.wait({previous})
        self._running_scan, self._next_scan = self._next_scan, None
        return await in_thread(find_marked, "find orphans")

    async def cancel_scans(self) -> None:
        """Cancels the scans of `find_orphans`, when no caller waits for them any more."""
        scans = [s for s in (self._running_scan, self._next_scan) if s is not None and not s.done()]
        for scan in scans:
            scan.cancel()
        if scans:
            await asyncio.wait(scans)

    def _add(self, value: int | str, command: str) -> None:
        if sys.platform == "win32":
            return
        with self._lock:
            if self._closed:
                raise OSError(errno.ESHUTDOWN, "mcpzip is ending")
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={"PATH": os.defpath},
                    start_new_session=True,
                    bufsize=0,
                )
            self._registered.add(value)
            self._send(f"{command} {value}\n")

    def _remove(self, value: int | str, command: str) -> None:
        with self._lock:
            if value in self._registered:
                self._registered.discard(value)
                self._send(f"{command} {value}\n")

    def _send(self, line: str) -> None:
        if self._shell and self._shell.stdin:
            try:
                self._shell.stdin.write(line.encode())
            except OSError:  # the shell was killed; `Child.end` still ends the children
                pass

    def close(self) -> None:
        """Ends the shell, which ends any child that is still being started; nobody waits for that."""
        with self._lock:
            self._closed = True
            if self._shell and self._shell.stdin:
                self._shell.stdin.close()
                if self._registered:
                    self._shell.returncode = 0  # else Popen warns that the shell is still running
                else:
                    self._shell.wait()
                self._shell = None
