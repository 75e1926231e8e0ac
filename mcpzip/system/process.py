"""Child processes that never outlive us.

The rule: a process we started is a process we end, with everything it started. POSIX: each child leads a
session and process group of its own and the *group* is signalled, also after the child itself has left
politely (wrappers such as ``npx`` leave grandchildren). A guardian (see `Reaper`) does the same when we
ourselves are killed. Windows: the process tree is ended with ``taskkill /T``; there is no guardian there, so
killing mcpzip outright with the task manager can leave a server that ignores the end of its input.

A program that moved itself into a session of its own (a daemon by intent) is in no such group. Where the
system can tell (Linux) it is found by the mark that all inherit whom a server starts (`strays`), and ended
with it. macOS and Windows can't: there such a daemon stays.
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
from mcpzip.system.orphans import MARK, OrphanProcess, new_mark
from mcpzip.system.reaper import Reaper
from mcpzip.system.threads import in_thread

REAP_TIMEOUT = 0.5
"""Seconds the system may take to bury a process that was killed, before the event loop waits for it."""

SPAWN_TIMEOUT = 0.3
"""Seconds that a cancelled start waits for the system to have started the program, to end that again."""

if sys.platform == "win32":
    _KILL = signal.SIGTERM
else:
    _KILL = signal.SIGKILL


class Child:
    """A running process with three pipes, in a group of its own.

    stdin, stdout, stderr: our ends' file descriptors. They are closed by `end`. mark: of it and of
    all that it starts; "" when it has none.
    """

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, guardian: Reaper
    ) -> "Child":
        """Starts it under the eyes of ``guardian``, marked unless ``env`` says how. Raises OSError as below.

        Off the event loop: a system under load takes long to start a program. Cancelled, it leaves none.
        """
        env = dict(env)
        mark = new_mark() if MARK not in env else ""
        if mark:
            env[MARK] = mark

        def started() -> Child:
            guardian.expect(mark)
            try:
                return cls(argv, env, cwd, mark)
            except BaseException:
                guardian.forget(mark)
                raise

        def unwanted(child: Child) -> None:
            child.kill()
            guardian.forget(mark)

        starting = asyncio.ensure_future(in_thread(started, "spawn", unwanted))
        try:
            child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            try:  # in all likelihood it is there in a moment, and whoever cancels wants nothing left
                await asyncio.wait({starting}, timeout=SPAWN_TIMEOUT)
            finally:
                if not starting.done():
                    starting.cancel()
                elif starting.exception() is None:
                    unwanted(starting.result())
            raise
        try:
            guardian.watch(child.pid)
        except OSError:
            unwanted(child)
            raise
        return child

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, mark: str = "") -> None:
        """Starts it. Raises OSError (FileNotFoundError, PermissionError …) when it can't."""
        harden()
        self.mark = mark
        command = list(argv)
        options: dict[str, int | bool] = {}
        if sys.platform == "win32":
            import shutil  # with three compressors that nobody else needs

            # CreateProcess finds only .exe: npx.cmd and friends need their full name.
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
        """The exit code (negative: the signal that ended it, POSIX), or None while it runs."""
        code: int | None = self._process.poll()
        return code

    def close_stdin(self) -> None:
        """Tells the child that no more is coming."""
        if self._process.stdin and not self._process.stdin.closed:
            try:
                self._process.stdin.close()
            except OSError:
                pass

    async def end(self, grace: float, guardian: Reaper | None = None) -> None:
        """Ends the child, its group and its strays: end of input, then SIGTERM, then SIGKILL, ``grace``
        seconds apart. guardian: under whose eyes it was started; it sees the strays, and may forget all of
        them afterwards.

        Returns within ``2 * grace`` plus the time the system takes to bury it. Safe to call twice and to
        cancel: a cancelled wait kills at once.
        """
        if self._ended:
            return
        self.close_stdin()
        strays: list[OrphanProcess] = []
        try:
            polite = await self.exits_within(grace)
            strays = await self._strays(guardian)
            if not polite:
                self._signal_group(terminate=True)
            for stray in strays:
                stray.signal(signal.SIGTERM)
            if strays or not polite:
                await self._gone_within(grace, strays)
                strays += await self._strays(guardian)  # who was just about to start is there by now
            if self.exit_code is None:
                self._signal_group(terminate=False)
                await self.exits_within(REAP_TIMEOUT)
        finally:
            self.kill()
            for stray in strays:
                stray.signal(_KILL)
            if guardian is not None:
                guardian.release(self.pid)
                guardian.forget(self.mark)

    async def _strays(self, guardian: Reaper | None) -> list[OrphanProcess]:
        if guardian is None or not self.mark:
            return []
        found = await guardian.strays(self.mark)
        return [stray for stray in found if stray.group != self.pid]  # the group is signalled as one

    async def _gone_within(self, seconds: float, strays: Sequence[OrphanProcess]) -> None:
        """Waits until the child and ``strays`` have ended, ``seconds`` at most."""
        deadline = time.monotonic() + seconds
        if not await self.exits_within(seconds):
            return
        for stray in strays:
            while stray.alive and time.monotonic() < deadline:  # noqa: ASYNC110 - nobody tells of its end
                await asyncio.sleep(0.02)

    def kill(self) -> None:
        """Kills the whole group now, reaps the child and closes the pipes. Never waits for anything but the
        kernel.
        """
        if self._ended:
            return
        self._ended = True
        self._signal_group(terminate=False)
        self._process.kill()
        self._process.wait()
        self.close_stdin()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    async def exits_within(self, seconds: float) -> bool:
        """Whether it has exited before ``seconds`` have passed."""
        deadline = time.monotonic() + seconds
        backoff = Backoff(0.002, 0.05)
        while self._process.poll() is None:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(backoff.next())
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
        except (ProcessLookupError, PermissionError):  # nobody left in it (macOS says EPERM for zombies)
            pass
