"""Child processes that never outlive us.

The rule: a process we started is a process we end, with everything it started. POSIX: each child leads a
session and process group of its own and the *group* is signalled, also after the child itself has left
politely (wrappers such as ``npx`` leave grandchildren). A guardian (see `Guardian`) does the same when we
ourselves are killed. Windows: the process tree is ended with ``taskkill /T``; there is no guardian there, so
killing mcpzip outright with the task manager can leave a server that ignores the end of its input.

What this can't reach: a grandchild that moves itself into a session of its own (a daemon by intent).
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

_INHERITED = (
    (
        *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT"),
        *("PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP"),
        *("TMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
)
"""What a child gets of our environment: enough to find its files and programs, and no secret. The rest is the
config's.
"""


def child_environment(own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of an upstream: the harmless part of ``own``, then ``extra`` (the config's ``env``)."""
    inherited = {key: own[key] for key in _INHERITED if key in own}
    # An exported bash function begins with "()": running it would run code from the environment.
    return {key: value for key, value in inherited.items() if not value.startswith("()")} | dict(extra)


class Child:
    """A running process with three pipes, in a group of its own.

    stdin, stdout, stderr: our ends' file descriptors. They are closed by `end`.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        """Starts it. Raises OSError (FileNotFoundError, PermissionError …) when it can't."""
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

    async def end(self, grace: float) -> None:
        """Ends the child and its group: end of input, then SIGTERM, then SIGKILL, ``grace`` seconds apart.

        Returns within ``2 * grace`` plus the time the system takes to bury it. Safe to call twice and to
        cancel: a cancelled wait kills at once.
        """
        if self._ended:
            return
        self.close_stdin()
        try:
            if not await self.exits_within(grace):
                self._signal_group(terminate=True)
                await self.exits_within(grace)
        finally:
            self.kill()

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
        pause = 0.002
        while self._process.poll() is None:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
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


_GUARD = """
trap '' TERM INT HUP QUIT
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -TERM "-$group"; done
[ "$groups" = ' ' ] || sleep 1
for group in $groups; do kill -KILL "-$group"; done
"""


class Guardian:
    """A tiny shell that outlives us just long enough to end our children.

    It reads the groups to guard from a pipe that only we hold. When we end, however brutally, the pipe ends,
    and it signals whatever groups are still on its list. POSIX only; elsewhere it does nothing.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._guarded: set[int] = set()

    def watch(self, child: Child) -> None:
        """Puts the child's group on the list. Starts the shell on first use."""
        if sys.platform == "win32":
            return
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
        self._guarded.add(child.pid)
        self._tell(f"+ {child.pid}\n")

    def release(self, child: Child) -> None:
        """Takes the group off the list: it has ended, and its number may be given to another."""
        if child.pid in self._guarded:
            self._guarded.discard(child.pid)
            self._tell(f"- {child.pid}\n")

    def _tell(self, line: str) -> None:
        if self._shell and self._shell.stdin:
            try:
                self._shell.stdin.write(line.encode())
            except OSError:  # somebody killed it: we still end our children ourselves
                pass

    def close(self) -> None:
        """Ends the shell (it has nothing left to do when every child was released)."""
        if self._shell and self._shell.stdin:
            self._shell.stdin.close()
            self._shell.wait()
            self._shell = None
