"""Child processes that do not outlive this one, with everything they start.

POSIX: each child leads its own session and process group. The whole group is signalled, even if the child has
exited by itself, because wrappers such as ``npx`` leave grandchildren. The `Reaper` does the same if mcpzip
is killed. Windows: ``taskkill /T`` ends the process tree. There is no reaper, so if mcpzip is killed, a
server that ignores the end of its input stays.

A daemon, which has moved to a session of its own, is not in the group. On Linux it is found by the mark in
its environment (`mcpzip.system.orphans`) and ended too; on macOS and Windows it stays.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from mcpzip.system.backoff import Backoff
from mcpzip.system.hardening import harden
from mcpzip.system.orphans import MARK_VARIABLE, OrphanProcess, new_mark
from mcpzip.system.reaper import Reaper
from mcpzip.system.threads import in_thread

REAP_TIMEOUT = 0.5
"""Seconds to wait for a killed process to exit before `Child.kill` blocks the event loop for it."""

SPAWN_TIMEOUT = 0.3
"""Seconds that a cancelled `Child.start` waits for the process, in order to end it before it returns."""

if sys.platform == "win32":
    _KILL = signal.SIGTERM
else:
    _KILL = signal.SIGKILL


class Child:
    """A running process with three pipes, in its own process group.

    stdin, stdout, stderr: descriptors of our ends, which `end` closes. mark: the mark that it and its
    descendants carry, "" for none.
    """

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, reaper: Reaper
    ) -> "Child":
        """Starts a process in a thread, because that is slow on a busy system, and registers it with
        ``reaper``. It is marked unless ``env`` sets the mark variable. If cancelled, leaves no process.

        Raises OSError (FileNotFoundError, PermissionError …) if it can't be started.
        """
        env = dict(env)
        mark = new_mark() if MARK_VARIABLE not in env else ""
        if mark:
            env[MARK_VARIABLE] = mark

        def spawn() -> Child:
            reaper.add_mark(mark)
            try:
                return cls(argv, env, cwd, mark)
            except BaseException:
                reaper.remove_mark(mark)
                raise

        def discard(child: Child) -> None:
            child.kill()
            reaper.remove_mark(mark)

        spawning = asyncio.ensure_future(in_thread(spawn, "spawn", discard))
        try:
            child = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            try:
                await asyncio.wait({spawning}, timeout=SPAWN_TIMEOUT)
            finally:
                if not spawning.done():
                    spawning.cancel()
                elif spawning.exception() is None:
                    discard(spawning.result())
            raise
        try:
            reaper.add_group(child.pid)
        except OSError:
            discard(child)
            raise
        return child

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, mark: str = "") -> None:
        """Starts a process, blocking. Raises OSError as `start`."""
        harden()
        self.mark = mark
        command = list(argv)
        options: dict[str, int | bool] = {}
        if sys.platform == "win32":
            import shutil  # imports three compression modules, so only where it is needed

            # CreateProcess finds only .exe files by name; others, such as npx.cmd, need their full path.
            command[0] = shutil.which(command[0], path=env.get("PATH")) or command[0]
            options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        else:
            options["start_new_session"] = True
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            bufsize=0,
            **options,  # type: ignore[call-overload]
        )
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self.pid = self._process.pid
        self.stdin = self._process.stdin.fileno()
        self.stdout = self._process.stdout.fileno()
        self.stderr = self._process.stderr.fileno()
        self._ended = False

    @property
    def exit_code(self) -> int | None:
        """The exit code (POSIX: negative for the signal that ended it), or None while it runs."""
        if sys.platform == "linux" and self._process.returncode is None:
            try:  # each request asks, and this is quicker than `poll`, which locks
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return None
            except ChildProcessError:
                pass
        code: int | None = self._process.poll()
        return code

    def close_stdin(self) -> None:
        """Ends the child's input."""
        if self._process.stdin and not self._process.stdin.closed:
            try:
                self._process.stdin.close()
            except OSError:
                pass

    async def end(self, grace: float, reaper: Reaper | None = None) -> None:
        """Ends the child, its group and its orphans: end of input, then SIGTERM, then SIGKILL, ``grace``
        seconds apart. reaper: as given to `start`; without it, orphans are not found.

        Returns within ``2 * grace`` plus the time that the system needs to end a killed process. If
        ``reaper`` takes over, returns within ``grace``, and what still runs then is ended by the reaper. May
        be called twice. If cancelled, kills at once.
        """
        if self._ended:
            return
        self.close_stdin()
        if reaper is not None and reaper.takes_over:
            await self._leave_to(reaper, grace)
            return
        orphans: list[OrphanProcess] = []
        try:
            exited = await self.exits_within(grace)
            orphans = await self._find_orphans(reaper)
            if not exited:
                self._signal_group(terminate=True)
            for orphan in orphans:
                orphan.signal(signal.SIGTERM)
            if orphans or not exited:
                await self._all_end_within(grace, orphans)
                orphans += await self._find_orphans(reaper)  # they may have started more meanwhile
            if self.exit_code is None:
                self._signal_group(terminate=False)
                await self.exits_within(REAP_TIMEOUT)
        finally:
            self.kill()
            for orphan in orphans:
                orphan.signal(_KILL)
            if reaper is not None:
                reaper.remove_group(self.pid)
                reaper.remove_mark(self.mark)

    async def _leave_to(self, reaper: Reaper, grace: float) -> None:
        """Waits ``grace`` seconds for the end of the child. Its group, if that is left, and its orphans stay
        registered with ``reaper``.
        """
        try:
            await self.exits_within(grace)
        except asyncio.CancelledError:
            self.kill()
            raise
        self._ended = True
        if not self._group_exists():
            reaper.remove_group(self.pid)
        if self.exit_code is None:
            self._process.returncode = 0  # else Popen warns that it is still running
        self._close_pipes()

    async def _find_orphans(self, reaper: Reaper | None) -> list[OrphanProcess]:
        """The processes with the child's mark outside of its group."""
        if reaper is None or not self.mark:
            return []
        return [process for process in await reaper.find_orphans(self.mark) if process.group != self.pid]

    async def _all_end_within(self, seconds: float, orphans: Sequence[OrphanProcess]) -> None:
        """Waits until the child and ``orphans`` have ended, ``seconds`` at most."""
        deadline = time.monotonic() + seconds
        if not await self.exits_within(seconds):
            return
        for orphan in orphans:
            while orphan.alive and time.monotonic() < deadline:  # noqa: ASYNC110 - the system sends no event
                await asyncio.sleep(0.02)

    def kill(self) -> None:
        """Kills the whole group now, reaps the child and closes the pipes. Blocks until the kernel has ended
        the child.
        """
        if self._ended:
            return
        self._ended = True
        self._signal_group(terminate=False)
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        self.close_stdin()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    async def exits_within(self, seconds: float) -> bool:
        """Waits until it has exited, ``seconds`` at most. Returns whether it has."""
        deadline = time.monotonic() + seconds
        backoff = Backoff(0.002, 0.05)
        while self._process.poll() is None:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(backoff.next())
        return True

    def _group_exists(self) -> bool:
        """Whether a process of the child's group is left. POSIX only."""
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS says so of processes that have exited and are not reaped
            pass
        return True

    def _signal_group(self, *, terminate: bool) -> None:
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill", "/T", "/PID", str(self.pid)] + ([] if terminate else ["/F"]),
                capture_output=True,
                check=False,
            )
            return
        try:
            os.killpg(self.pid, signal.SIGTERM if terminate else signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # the group is empty (macOS: EPERM if zombies are left)
            pass
