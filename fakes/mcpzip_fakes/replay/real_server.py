"""The real server on stdio behind a cassette: answers what wasn't recorded, and is recorded doing so.

The rule: it is started by the first request that needs it, with the client's own handshake, whose answer the
client has got from the cassette. From then on its messages reach the client as they are.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from mcpzip.cassettes.environment_secrets import known_secrets
from mcpzip.cassettes.lines import Lines
from mcpzip.cassettes.process_tap import ProcessTap
from mcpzip.cassettes.tape import Tape
from mcpzip.model.errors import ConfigError
from mcpzip.wire import INTERNAL_ERROR
from mcpzip_fakes.replay.messages import CANCELLED, Message, id_key, read
from mcpzip_fakes.replay.session import cancelled_id, error_line
from mcpzip_fakes.scenario import Replay

_CHUNK = 1 << 16
_WIND_UP = 2.0
"""Seconds that the server gets to exit once its input is closed."""
_ENDING = ("SIGTERM", "SIGINT")


class RealServer:
    """One process of the server, or none yet."""

    def __init__(
        self,
        command: Sequence[str],
        replay: Replay,
        send: Callable[[bytes], None],
        tell: Callable[[str], None],
    ) -> None:
        """replay: the cassette, and what is masked in it. send: sends a line to the client. tell: gets what
        the user is to be told.
        """
        self._command, self._replay = command, replay
        self._send, self._tell = send, tell
        self._opening: list[Message] = []
        self._waiting: list[Message] = []
        self._pending: dict[bytes, Message] = {}
        self._questions: set[bytes] = set()
        self._process: asyncio.subprocess.Process | None = None
        self._tape: Tape | None = None
        self._tap: ProcessTap | None = None
        self._running: asyncio.Task[None] | None = None
        self._greeting = b""
        """The key of the id of the `initialize` whose answer the client has got already."""
        self._ready = self._closing = False

    def met(self, message: Message) -> None:
        """The client sent ``message``, and the cassette answers it."""
        if message.method in ("initialize", "notifications/initialized"):
            self._opening.append(message)
            if self._ready:
                self._write(message)

    def request(self, message: Message) -> None:
        """The client sent a request that is not in the cassette."""
        self._pending[message.id_key] = message
        if self._ready:
            self._pass_on(message)
            return
        self._waiting.append(message)
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def notification(self, message: Message) -> None:
        """The client sent a notification that the cassette doesn't answer for."""
        about = cancelled_id(message) in self._pending if message.method == CANCELLED else True
        if self._ready and about:
            self._pass_on(message)

    def answer(self, message: Message) -> bool:
        """Whether the client answered a question of this server."""
        if message.id_key not in self._questions:
            return False
        self._questions.discard(message.id_key)
        self._pass_on(message)
        return True

    async def close(self) -> None:
        """The client closed its side: waits until the server has ended."""
        self._closing = True
        if self._running is None:
            return
        if self._process is not None and self._ready:
            self._end_input()
        try:
            await asyncio.wait_for(asyncio.shield(self._running), _WIND_UP)
        except TimeoutError:
            self.kill()
            await self._running

    def kill(self) -> None:
        """End the server at once."""
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _run(self) -> None:
        try:
            replay = self._replay
            secrets = known_secrets(os.environ, replay.secret)
            self._tape = Tape(replay.cassette, "stdio", secrets, replay.mask, self._tell)
            self._process = await self._start()
            self._tape.begin(command=self._command)
        except (OSError, ConfigError) as error:
            self.kill()
            self._fail(f"the real server can't be started: {error}")
            return
        self._tap = ProcessTap(self._tape)
        self._forward_signals()
        lines = Lines()
        assert self._process.stdout
        self._greet()
        while data := await self._process.stdout.read(_CHUNK):
            for line in lines.feed(data):
                self._hear(line)
        code = await self._process.wait()
        self.kill()  # what it has started
        self._tap.ended(code)
        await asyncio.to_thread(self._tape.close)
        self._fail(f"the real server ended (exit code {code}) before it answered")

    async def _start(self) -> asyncio.subprocess.Process:
        words = list(self._command)
        if sys.platform == "win32":  # CreateProcess finds only .exe files by name
            words[0] = shutil.which(words[0]) or words[0]
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, start_new_session=sys.platform != "win32"
        )

    def _forward_signals(self) -> None:
        for name in _ENDING:
            number = getattr(signal, name)
            former = signal.getsignal(number)

            def end(number: int, frame: FrameType | None, former: object = former) -> None:
                self.kill()
                if callable(former):
                    former(number, frame)

            signal.signal(number, end)

    def _greet(self) -> None:
        """The handshake, if the cassette has answered the client's."""
        opening = next((each for each in self._opening if each.method == "initialize"), None)
        if opening is None:
            self._begin()
        else:
            self._greeting = opening.id_key
            self._write(opening)

    def _begin(self) -> None:
        """The server can be asked."""
        self._ready = True
        for message in self._opening:
            if message.method != "initialize":
                self._write(message)
        for message in self._waiting:
            self._pass_on(message)
        self._waiting.clear()
        if self._closing:
            self._end_input()

    def _hear(self, line: bytes) -> None:
        """The server wrote a line."""
        message = read(line)
        if not self._ready:
            if message.kind == "response" and message.id_key == self._greeting:
                self._begin()
            return
        assert self._tap
        self._tap.server(line + b"\n")
        if message.kind == "response":
            self._pending.pop(message.id_key, None)
        elif message.kind == "request":
            self._questions.add(id_key(message.id))
        self._send(line + b"\n")

    def _pass_on(self, message: Message) -> None:
        """Send a message of the client, recorded."""
        if self._tap is not None:
            self._tap.client(message.raw + b"\n")
            self._write(message)

    def _write(self, message: Message) -> None:
        if self._process is not None and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(message.raw + b"\n")

    def _end_input(self) -> None:
        if self._process is not None and self._process.stdin and not self._process.stdin.is_closing():
            if self._tap is not None:
                self._tap.client_closed()
            self._process.stdin.close()

    def _fail(self, why: str) -> None:
        """Answer what is open with an error."""
        self._ready = False
        if not self._closing:
            self._running = None  # the next request starts it again
        if self._pending:
            self._tell(why)
        for message in self._pending.values():
            self._send(error_line(message.id, INTERNAL_ERROR, why) + b"\n")
        self._pending.clear()
        self._waiting.clear()
