"""Records what passes between a client and a server on stdio, in pieces of any size."""

from mcpzip.cassettes.lines import Lines
from mcpzip.cassettes.observer import Observer
from mcpzip.cassettes.tape import Tape


class ProcessTap:
    """One process of a server: a session of the cassette. Its methods can be called from any thread."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._observer: Observer | None = None
        self._begun = 0.0
        self._client, self._server, self._stderr = Lines(), Lines(), Lines()
        tape.note(self._begin)

    def client(self, data: bytes) -> None:
        """The client wrote ``data``."""
        self._tape.note(self._client_wrote, data, size=len(data))

    def client_closed(self) -> None:
        """The client closed the server's input."""
        self._tape.note(self._client_closed)

    def server(self, data: bytes) -> None:
        """The server wrote ``data``."""
        self._tape.note(self._server_wrote, data, size=len(data))

    def stderr(self, data: bytes) -> None:
        """The server wrote ``data`` to its standard error."""
        self._tape.note(self._stderr_wrote, data, size=len(data))

    def ended(self, code: int | None) -> None:
        """The server has exited."""
        self._tape.note(self._ended, code)

    # In the tape's thread

    def _begin(self, at: float) -> None:
        session, self._begun = self._tape.another_session(at)
        self._observer = Observer(self._tape.writer.add, self._tape.masker, session=session)

    def _client_wrote(self, data: bytes, at: float) -> None:
        for line in self._client.feed(data):
            if self._observer:
                self._observer.client(line, at - self._begun)

    def _client_closed(self, at: float) -> None:
        if self._observer:
            if rest := self._client.end():
                self._observer.client(rest, at - self._begun)
            self._observer.client_closed(at - self._begun)

    def _server_wrote(self, data: bytes, at: float) -> None:
        for line in self._server.feed(data):
            if self._observer:
                self._observer.server(line, at - self._begun)

    def _stderr_wrote(self, data: bytes, at: float) -> None:
        for line in self._stderr.feed(data):
            if self._observer:
                self._observer.stderr(line, at - self._begun)

    def _ended(self, code: int | None, at: float) -> None:
        if self._observer:
            if rest := self._stderr.end():
                self._observer.stderr(rest, at - self._begun)
            self._observer.server_ended(at - self._begun, code=code, rest=self._server.end())
        if dropped := self._client.too_long + self._server.too_long + self._stderr.too_long:
            self._tape.tell(f"{dropped} lines were too long to be recorded")
