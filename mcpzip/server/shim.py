"""`mcpzip serve` over stdio, while the daemon does the work: copies bytes between its client and the daemon.

The rules:

1. It needs no event loop, and imports only small modules of the standard library, because there is one for
   each agent, and a client waits for it to start. It has threads only where pipes can't be waited for.
2. While a daemon is being started, it answers the handshake. If no daemon can be had, it serves its client
   itself, as `early_handshake` does.
3. If the daemon ends, the session goes on with another (`session_record`).
4. After the end of the client's input, SIGTERM or SIGINT it ends within `LEAVING` seconds.
"""

import math
import os
import signal
import sys
import time

from mcpzip.config.paths import config_path, find_project, is_named
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.connector import Connector, UnavailableError
from mcpzip.server.daemon.link import Link, Probe
from mcpzip.server.session_record import SessionRecord
from mcpzip.system import local_socket
from mcpzip.system.readiness import INPUT, wait, watched
from mcpzip.system.startup_io import DirectStreams, open_if_closed

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from mcpzip.server.early_handshake import EarlyHandshake, Unserved
    from mcpzip.system.pumps import PumpedStreams
    from mcpzip.system.readiness import Watched

ACCEPT_TIMEOUT = 5.0
"""Seconds in which a daemon that was there before has to accept a client. One that is suspended doesn't."""
LOAD_TIMEOUT = 30.0
"""The same for one that was just started."""
SILENCE, PROBE_TIMEOUT = 10.0, 10.0
"""Seconds of silence, while requests are open, after which the daemon is asked whether it runs; and in which
it has to say so.
"""
LEAVING = 0.8
"""Seconds that the daemon has for the last responses after the end of the client's input."""
LOSSES, LOSSES_WITHIN = 3, 60.0
"""After so many lost daemons in so many seconds, the client is served without one."""
REFUSALS, REFUSAL_PAUSE = 20, 0.1
"""How often a daemon may end before it has accepted the client; and the seconds after that in which none is
started here.
"""
HANDOVER_PAUSE = 1.5
"""Seconds after a handover in which a newer mcpzip may start its daemon, and this one starts none."""
_FULL = 1 << 20
"""Bytes that wait for one side, with which nothing more is read from the other."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(explicit_config: "str | None") -> int:
    """`mcpzip serve` over stdio, with a daemon if there can be one. Returns the exit code."""
    for number in range(3):
        open_if_closed(number)
    shim = Shim(config_path(explicit_config, os.environ), find_project(os.environ), explicit_config)
    try:
        code = shim.run()
    except BrokenPipeError:  # the client has left
        code = 0
    finally:
        shim.close()
    if code is not None:
        return code
    from mcpzip.server.early_handshake import main as serve_alone

    return serve_alone(explicit_config, shim.unserved())


class Shim:
    """One client, and the daemon that serves it at the moment."""

    def __init__(self, config: str, project: str, explicit_config: "str | None") -> None:
        """config, project: the paths of the files. explicit_config: the option of the command line."""
        self._config, self._project = config, project
        self._required = is_named(explicit_config, os.environ)
        self._connector = Connector(config, project, explicit_config)
        self._record = SessionRecord()
        self._early: EarlyHandshake | None = None
        self._link: Link | None = None
        self._probe: Probe | None = None
        self._unsent = bytearray()
        """From the client, for the next daemon."""
        self._to_client = bytearray()
        self._probe_at = self._probe_until = self._leave_at = math.inf
        self._losses: list[float] = []
        self._refusals = 0
        self._has_begun = self._ended = self._signalled = self._alone = self._done = False
        self._sleeps = False
        self._streams = _streams()
        self._before = [signal.signal(number, _note_signal) for number in _SIGNALS]
        signal.set_wakeup_fd(self._streams.wakes, warn_on_full_buffer=False)

    def run(self) -> "int | None":
        """Serves until the client or we are told to leave. Returns the exit code; None if the client is to be
        served without a daemon from now on. Raises BrokenPipeError if the client has left.
        """
        self._look(lambda now: self._connector.begin(now))
        while not (self._alone or self._done):
            self._copy()
            self._turn()
        while self._to_client and self._client_reads():
            self._write()
        self._streams.finish(LEAVING if self._done or self._signalled else None)
        if self._to_client:  # cut in the middle of a line: nothing may follow
            return 0
        if self._signalled or not self._alone:
            return 0
        self._streams.hand_back()
        return None

    def close(self) -> None:
        """Closes what is open, and gives the signals back."""
        signal.set_wakeup_fd(-1)
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)
        self._streams.close()
        self._connector.close()
        self._end_probe()
        if self._link is not None:
            self._link.connection.close()

    def unserved(self) -> "Unserved":
        """What the client has sent so far: the messages that were answered, and those that were not."""
        from mcpzip.server.early_handshake import Unserved

        if self._early is not None:
            return Unserved(self._early.answered, self._early.rest(), self._ended)
        return Unserved(self._record.replay, bytes(self._unsent), self._ended)

    # --- the loop

    def _copy(self) -> None:
        """Copies as long as nothing waits and nothing else is to be done, which is nearly always: as `_turn`
        does, in fewer steps. What it finds and does not handle, `_turn` finds again.
        """
        link, streams = self._link, self._streams
        if link is None or self._probe is not None or self._connector.output >= 0:
            return
        if not isinstance(streams, DirectStreams):
            return
        ready = watched(streams.wakeup, streams.input, link.connection.fileno())
        while link.accepted and not (link.waiting or link.broken or self._to_client or self._ended):
            at = self._probe_at
            found = ready(None if at == math.inf else max(0.0, at - time.monotonic()) * 1e3)
            if len(found) != 1:
                return
            [(descriptor, event)] = found
            if event != INPUT or descriptor == streams.wakeup:
                return
            if descriptor == streams.input:
                self._read_client()
                continue
            self._read_daemon(link)
            if self._to_client and streams.writes_at_once:
                self._write()
            if self._link is not link:
                return

    def _turn(self) -> None:
        """Waits until something happens, and handles it."""
        link, connector, probe, streams = self._link, self._connector, self._probe, self._streams
        waiting = len(self._unsent) if link is None else link.unsent
        reads: list[Watched] = [streams.wakeup]
        writes: list[Watched] = [streams.output] if self._to_client else []
        if not self._ended and waiting < _FULL and not (self._early is not None and self._early.sated):
            reads.append(streams.input)
        if link is not None and len(self._to_client) < _FULL:
            reads.append(link.connection)
        if link is not None and link.waiting and not link.broken:
            writes.append(link.connection)
        if connector.output >= 0:
            reads.append(connector.output)
        if probe is not None:
            reads.append(probe.connection)
        accept_until = math.inf if link is None else link.accept_until
        at = min(connector.wake_at, accept_until, self._probe_at, self._probe_until, self._leave_at)
        timeout = None if at == math.inf else max(0.0, at - time.monotonic())
        readable, writable = wait(reads, writes, timeout)
        if streams.wakeup in readable:
            streams.heed()
            self._signalled = self._ended = True
            self._leave_at = min(self._leave_at, time.monotonic() + LEAVING)
        if streams.input in readable:
            self._read_client()
        if link is not None and link.connection in readable:
            self._read_daemon(link)
        if self._to_client and (streams.writes_at_once or streams.output in writable):
            self._write()
        if self._link is link and link is not None and link.connection in writable:
            link.send()
        if link is not None and self._ended and not link.waiting and not link.half_closed and link.accepted:
            link.half_close()
            self._leave_at = min(self._leave_at, time.monotonic() + LEAVING)
        if self._link is None and not self._alone and not self._sleeps:
            self._look(connector.proceed)
        if probe is not None and probe is self._probe and probe.connection in readable:
            self._hear_probe(probe)
        self._watch_time()

    def _watch_time(self) -> None:
        now = time.monotonic()
        link = self._link
        leaves = self._signalled or (self._ended and self._sleeps)
        if now >= self._leave_at or (leaves and (link is None or not link.accepted)):
            self._done = True
        elif link is not None and now >= link.accept_until:
            self._lose(read=0, alone=True)
        elif now >= self._probe_until:
            self._lose(alone=True)
        elif now >= self._probe_at:
            self._begin_probe(now)

    # --- the client

    def _read_client(self) -> None:
        try:
            data = self._streams.read()
        except OSError:  # a terminal or socket whose other end was lost
            data = b""
        if not data:
            self._ended = True
        elif self._link is not None:
            self._link.forward(data)  # before taking note of it, so that the daemon waits for nothing
            self._record.client_sent(data)
            if self._probe_at == self._probe_until == math.inf:
                self._expect()
        elif self._early is not None:
            self._to_client += self._early.receive(data)
        else:
            self._unsent += data
            self._sleeps = False

    def _client_reads(self) -> bool:
        """Waits until the client takes what is left for it: `LEAVING` seconds if it leaves; else it may take
        its time, because the session goes on after it.
        """
        leaves = self._done or self._signalled
        reads = () if leaves else (self._streams.wakeup,)
        readable, writable = wait(reads, (self._streams.output,), LEAVING if leaves else None)
        if readable:
            self._streams.heed()
            self._signalled = True
        return bool(writable or readable)

    def _pass_on(self, data: bytes) -> None:
        """The client is sent ``data``, at once if that doesn't block and nothing waits."""
        if self._to_client or not (data and self._streams.writes_at_once):
            self._to_client += data
            return
        try:
            sent = self._streams.write(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._to_client += data[sent:]

    def _write(self) -> None:
        try:
            del self._to_client[: self._streams.write(self._to_client)]
        except BlockingIOError:
            pass

    # --- the daemon

    def _look(self, look: "Callable[[float], local_socket.Connection | None]") -> None:
        """Looks for a daemon, or goes on with that."""
        try:
            starting = self._connector.output >= 0
            connection = look(time.monotonic())
        except UnavailableError:
            self._alone = True
            return
        if connection is not None:
            self._attach(connection, LOAD_TIMEOUT if starting else ACCEPT_TIMEOUT)
        elif not self._has_begun and self._early is None and self._connector.output >= 0:
            # Imported only when no daemon runs.
            from mcpzip.server.early_handshake import EarlyHandshake, known_results

            cache = known_results(self._config, self._project, required=self._required)
            if cache is not None:
                self._early = EarlyHandshake(cache)
                self._to_client += self._early.receive(bytes(self._unsent))
                self._unsent.clear()

    def _attach(self, connection: local_socket.Connection, timeout: float) -> None:
        self._has_begun = True
        if self._early is not None:
            self._record = SessionRecord(self._early.answered)
            self._unsent += self._early.rest()
            self._early = None
        greeting = protocol.client_greeting(
            self._record.replay, os.environ, _folder(), continued=bool(self._losses)
        )
        self._record.client_sent(bytes(self._unsent))
        self._link = Link(connection, greeting, bytes(self._unsent), time.monotonic() + timeout)
        self._unsent.clear()
        self._link.send()

    def _read_daemon(self, link: Link) -> None:
        data = link.receive()
        if data is None:
            return
        if not data:
            if self._ended and link.half_closed:
                self._done = True
            else:
                self._lose(read=None if link.accepted else 0)
            return
        if self._record.is_line(data):
            self._pass_on(data)  # before taking note of it, so that the client waits for nothing
            self._record.line_sent(data)
            self._expect()
            return
        complete, notices = self._record.daemon_sent(data)
        self._pass_on(complete)
        self._expect()
        for line in notices:
            self._noticed(link, *protocol.read_notice(line))

    def _noticed(self, link: Link, name: bytes, value: object) -> None:
        said = value if isinstance(value, dict) else {}
        if name == protocol.ACCEPTED:
            pid = said.get("pid")
            link.accept(pid if isinstance(pid, int) else 0)
            self._refusals = 0
            self._expect()
            self._record.names_are_ours = said.get("names_are_ours") is not False
        elif name == protocol.REFUSED:
            if isinstance(reason := said.get("reason"), str):
                _print_warning(reason)
            self._lose(read=0, alone=True)
        elif name == protocol.WARNING and isinstance(value, str):
            _print_warning(value)
        elif name == protocol.HANDOVER and isinstance(said.get("read"), int):
            newer = protocol.is_newer(str(said.get("to")))
            self._lose(
                read=said["read"], pause=HANDOVER_PAUSE if newer else 0.0, was_stopped=not said.get("to")
            )

    def _lose(
        self,
        *,
        read: "int | None" = None,
        alone: bool = False,
        pause: float = 0.0,
        was_stopped: bool = False,
    ) -> None:
        """The daemon has gone, or is no use any more: the session goes on with another, or without. read: see
        `SessionRecord.lost`; None for all that was sent. pause: seconds in which no daemon is started here.
        was_stopped: whether a person stopped it, so that the client's next request starts another one.
        """
        assert self._link is not None
        accepted = self._link.accepted
        sent = max(0, self._record.end - self._link.unsent)
        self._link.connection.close()
        self._link = None
        self._end_probe()
        left = self._record.lost(sent if read is None else read)
        self._to_client += left.to_client
        self._unsent[:0] = left.to_daemon
        now = time.monotonic()
        self._losses = [at for at in self._losses if at > now - LOSSES_WITHIN]
        if accepted:
            self._losses.append(now)
        else:  # it was ending when we connected
            self._refusals += 1
            pause = max(pause, REFUSAL_PAUSE)
        self._alone = alone or len(self._losses) >= LOSSES or self._refusals > REFUSALS
        self._sleeps = was_stopped and not left.is_awaited
        if not (self._alone or self._sleeps):
            self._look(lambda now: self._connector.begin(now, now + pause))

    # --- whether the daemon runs

    def _expect(self) -> None:
        """From now on the silence of a daemon that has accepted the client is counted."""
        counts = self._record.waits and self._link is not None and self._link.accepted
        self._probe_at = time.monotonic() + SILENCE if counts else math.inf

    def _begin_probe(self, now: float) -> None:
        self._probe_at = math.inf
        if not self._record.waits:
            return
        assert self._link is not None, "only an accepted client waits for a daemon"
        try:
            connection = self._connector.connect()
            if connection is not None:
                self._probe = Probe(connection, self._link.pid)
            elif not self._connector.can_be_asked:  # its socket was removed, and its connection lasts
                self._cannot_ask()
                return
        except OSError:
            pass
        self._probe_until = now + PROBE_TIMEOUT

    def _hear_probe(self, probe: Probe) -> None:
        runs = probe.hear()
        self._end_probe()
        if not runs:
            self._cannot_ask()

    def _cannot_ask(self) -> None:
        """Its socket was removed or replaced, so that no answer means anything."""
        if self._link is not None and self._link.is_suspended():
            self._lose()
        else:
            self._expect()

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe.connection.close()
        self._probe = None
        self._probe_until = math.inf
        self._expect()


def _streams() -> "DirectStreams | PumpedStreams":
    if not local_socket.HAS_NO_UNIX_SOCKETS:
        return DirectStreams()
    from mcpzip.system.pumps import PumpedStreams

    return PumpedStreams()


def _print_warning(sentence: str) -> None:
    """Writes it to stderr, unless nobody reads that."""
    try:
        if sys.platform == "win32" or wait((), (2,), 0)[1]:
            os.write(2, f"mcpzip: {sentence}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def _note_signal(number: int, frame: "FrameType | None") -> None:
    """The number of the signal is in the wake-up pipe."""


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""
