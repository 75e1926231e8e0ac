"""Who ends our children when we can't.

The rule: whoever is on the list when we are gone is ended. A child stands there by its process group and by
its mark, from before it is started until after it has ended.
"""

import asyncio
import errno
import os
import subprocess
import sys
import threading

from mcpzip.system.orphans import MARK, OrphanProcess, can_see_environments, find_marked
from mcpzip.system.threads import in_thread

_GUARD = f"""
trap '' TERM INT HUP QUIT
groups=' ' marks=' '
while read -r sign what; do
  case $sign in
    +) groups="$groups$what " ;;
    -) groups="${{groups%% $what *}} ${{groups#* $what }}" ;;
    m) marks="$marks$what " ;;
    u) marks="${{marks%% $what *}} ${{marks#* $what }}" ;;
  esac
done
patterns=''
for mark in $marks; do patterns="$patterns -e {MARK}=$mark"; done
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
    """A tiny shell that outlives us just long enough to end our children.

    It reads the groups and marks to guard from a pipe that only we hold. When we end, however brutally, the
    pipe ends, and it signals whoever is still on its list. POSIX only; elsewhere it does nothing. Threads may
    share it, but for `strays`.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._guarded: set[int | str] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._looking: asyncio.Task[dict[str, list[OrphanProcess]]] | None = None
        self._next_look: asyncio.Task[dict[str, list[OrphanProcess]]] | None = None

    def expect(self, mark: str) -> None:
        """Puts all who bear ``mark`` on the list; nobody if it is "". Starts the shell on first use, which a
        system under load takes long for. Raises OSError when it is too late.
        """
        if mark:
            self._take(mark, "m")

    def watch(self, group: int) -> None:
        """Puts a process group on the list."""
        self._take(group, "+")

    def release(self, group: int) -> None:
        """Takes the group off the list: it has ended, and its number may be given to another."""
        self._drop(group, "-")

    def forget(self, mark: str) -> None:
        """Takes those who bear ``mark`` off the list."""
        self._drop(mark, "u")

    async def strays(self, mark: str) -> list[OrphanProcess]:
        """Who bears ``mark`` right now. Those who ask in the same moment are answered by one look."""
        if not can_see_environments():
            return []
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look(self._looking), name="strays")
        return (await asyncio.shield(self._next_look)).get(mark, [])

    async def _look(
        self, before: "asyncio.Task[dict[str, list[OrphanProcess]]] | None"
    ) -> dict[str, list[OrphanProcess]]:
        if before is not None and not before.done():
            await asyncio.wait({before})
        self._looking, self._next_look = self._next_look, None
        return await in_thread(find_marked, "strays")

    async def stop_looking(self) -> None:
        """Breaks off the looks under way: whoever asked has stopped waiting."""
        looks = [look for look in (self._looking, self._next_look) if look is not None and not look.done()]
        for look in looks:
            look.cancel()
        if looks:
            await asyncio.wait(looks)

    def _take(self, what: int | str, sign: str) -> None:
        if sys.platform == "win32":
            return
        with self._lock:
            if self._closed:
                raise OSError(errno.ESHUTDOWN, "mcpzip is ending")
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={"PATH": os.defpath},
                    start_new_session=True,
                    bufsize=0,
                )
            self._guarded.add(what)
            self._tell(f"{sign} {what}\n")

    def _drop(self, what: int | str, sign: str) -> None:
        with self._lock:
            if what in self._guarded:
                self._guarded.discard(what)
                self._tell(f"{sign} {what}\n")

    def _tell(self, line: str) -> None:
        if self._shell and self._shell.stdin:
            try:
                self._shell.stdin.write(line.encode())
            except OSError:  # somebody killed it: we still end our children ourselves
                pass

    def close(self) -> None:
        """Ends the shell. It has nothing left to do when every child was released; where one was just being
        started, it ends that one, and nobody waits.
        """
        with self._lock:
            self._closed = True
            if self._shell and self._shell.stdin:
                self._shell.stdin.close()
                if self._guarded:
                    self._shell.returncode = 0
                else:
                    self._shell.wait()
                self._shell = None
