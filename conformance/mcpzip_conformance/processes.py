"""Processes of a run: started with pipes, ended with all their children.

The rule: a run leaves no process, however it ends. A subject leads a process group of its own (POSIX) or is
ended with its tree (Windows); the servers it started in groups of their own are found by their records and
ended by `mcpzip_fakes.launch`, and other processes by the check's folder in their environment.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from mcpzip_fakes.launch import importable

from mcpzip.model.error_line import error_line
from mcpzip_conformance.transcript import printable

_KEPT_STDERR = 64 * 1024
_QUOTED = 300
"""Characters of stderr that a message quotes."""
_EACH = 0.02
"""Seconds between two looks at which processes are left."""
_LAST_WORDS = 0.25
"""Seconds between the end of stdout and its report, in which the rest of stderr may arrive."""
_NEEDED = ("PATH", "LANG", "LC_ALL", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "WINDIR")
_HOMES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


class Process(asyncio.SubprocessProtocol):
    """A running command. stderr: the last 64 KiB of it; code: its exit code once it has one."""

    def __init__(self, received: Callable[[bytes], None]) -> None:
        self._received = received
        self.stderr = b""
        self.code: int | None = None
        self.exited = asyncio.Event()
        self.output_ended = asyncio.Event()
        self._open = {1, 2}
        self._told_end = False

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        received: Callable[[bytes], None],
        *,
        env: Mapping[str, str],
        cwd: Path,
    ) -> "Process":
        """Start ``command``. ``received`` is called with its stdout, and with b"" at the end. Raises OSError
        if it can't be started."""
        posix = os.name == "posix"
        transport, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(received),
            *command,
            env=dict(env),
            cwd=cwd,
            start_new_session=posix,
            creationflags=0 if posix else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        process._stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        process.pid = transport.get_pid()
        return process

    _transport: asyncio.SubprocessTransport
    _stdin: asyncio.WriteTransport
    pid: int

    def write(self, data: bytes) -> None:
        """Send ``data``, which waits in memory until the process reads it. Does nothing once stdin is
        closed."""
        if not self._stdin.is_closing():
            self._stdin.write(data)

    def close_stdin(self) -> None:
        """Closes its input."""
        self._stdin.close()

    async def exits(self, timeout: float) -> bool:
        """Whether it ends within ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self.exited.wait()
        except TimeoutError:
            return False
        return True

    def pause(self) -> None:
        """Read its stdout no further: what it writes stays in the pipe."""
        pipe = cast(asyncio.ReadTransport | None, self._transport.get_pipe_transport(1))
        if pipe is not None and not pipe.is_closing():
            pipe.pause_reading()

    def kill(self) -> None:
        """Kill the process alone, if it still runs; what it started stays, as after a crash."""
        if self.code is None:
            with suppress(ProcessLookupError, PermissionError):
                self._transport.kill()

    def terminate(self) -> None:
        """Send SIGTERM to the process alone (on Windows end it), if it still runs."""
        if self.code is None:
            # It may have exited, and been waited for, a moment before asyncio tells; Windows says
            # PermissionError.
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGTERM)

    async def end(self, grace: float = 2.0) -> None:
        """Close stdin and wait ``grace`` seconds for the exit; then kill the process and its group, and reap
        it."""
        try:
            self.close_stdin()
            await self.exits(grace)
        finally:
            end_group(self.pid, still_running=self.code is None)
            await self.exits(5.0)
            self._transport.close()

    # asyncio's side

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._received(data)
        else:
            self.stderr = (self.stderr + data)[-_KEPT_STDERR:]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Here and not in `start`: a process may have exited before `start` goes on.
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if fd == 1:
            self.output_ended.set()
            # The rest of stderr may arrive after the end of stdout. A child may keep stderr open for ever.
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._tell_end)
        if not self._open:
            self._tell_end()

    def _tell_end(self) -> None:
        if not self._told_end:
            self._told_end = True
            self._received(b"")

    def last_words(self) -> str:
        """The end of a sentence: the line of stderr that says most, if there is any."""
        lines = self.stderr.decode("utf-8", "backslashreplace").splitlines()
        said = printable(error_line(lines)[:_QUOTED])
        return f", saying: {said}" if said else "."

    def process_exited(self) -> None:
        self.code = self._transport.get_returncode()
        self.exited.set()


def end_group(pid: int, *, still_running: bool) -> None:
    """Kill the process group of ``pid`` (POSIX), or the process tree (Windows). Doesn't use `subprocess`,
    which would reap the process before asyncio can."""
    if sys.platform == "win32":
        if still_running:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)
        return
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nobody left in it; macOS says EPERM for zombies
        pass


async def end_named(folder: Path, grace: float) -> None:
    """End the processes whose command line or environment names ``folder``, which is a check's own: what a
    subject started in a session of its own, such as a daemon. They get SIGTERM, and SIGKILL ``grace`` seconds
    later; without ``grace`` SIGKILL at once. Does nothing on Windows."""
    name, clock = str(folder).encode(), asyncio.get_running_loop().time
    deadline, told = clock() + grace, set[int]()
    kill = getattr(signal, "SIGKILL", signal.SIGTERM)
    while left := await asyncio.to_thread(_naming, name):
        while left:  # a look at these costs less than one at all that run
            late = not grace or clock() > deadline
            for pid in left if late else set(left) - told:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, kill if late else signal.SIGTERM)
            told.update(left)
            await asyncio.sleep(_EACH)
            left = await asyncio.to_thread(_naming, name, left)


def _naming(folder: bytes, among: Collection[int] | None = None) -> list[int]:
    """The running processes, of all or of those in ``among``, that name ``folder``; by /proc or, without it,
    by their command lines in ps."""
    if sys.platform == "win32":
        return []
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(["ps", "-axo", "pid=,args="], capture_output=True, check=False).stdout
        named = [int(line.split()[0]) for line in listed.splitlines() if folder in line]
        return [pid for pid in named if pid != os.getpid() and is_running(pid)]
    found = []
    places = Path("/proc").glob("[0-9]*") if among is None else (Path(f"/proc/{pid}") for pid in among)
    for place in places:
        for file in ("cmdline", "environ"):
            with suppress(OSError):  # it has ended meanwhile; or its environment is not ours to read
                if folder in (place / file).read_bytes():
                    found.append(int(place.name))
                    break
    return [pid for pid in found if pid != os.getpid() and is_running(pid)]


def is_running(pid: int) -> bool:
    """Whether there is such a process, zombies not counted."""
    if sys.platform == "win32":
        result = subprocess.run(
            ["tasklist", "/NH", "/FI", f"PID eq {pid}"], capture_output=True, text=True, check=False
        )
        return str(pid) in result.stdout
    if Path("/proc/self/stat").exists():
        try:
            state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"
    result = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(result.stdout.strip()) and not result.stdout.lstrip().startswith("Z")


def peak_memory(group: int, but: Collection[int] = ()) -> int | None:
    """The highest peak of memory (bytes) among the processes of the group ``group`` without those in ``but``;
    None if the system doesn't provide it (only Linux does) or no process is left."""
    peaks = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if int(place.name) in but:
                continue
            if int((place / "stat").read_text(errors="replace").rpartition(")")[2].split()[2]) != group:
                continue
            status = (place / "status").read_text(errors="replace")
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        peaks += [int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")]
    return max(peaks, default=None)


def environment(home: Path, temporary: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a subject: PATH, a home and a folder for temporary files of its own, this
    installation's packages for ``{python}``, and then ``more``."""
    kept = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    homes = {name: str(home) for name in _HOMES}
    places = {name: str(temporary) for name in _TEMPORARY}
    return {**kept, **homes, **places, **importable(), **more}
