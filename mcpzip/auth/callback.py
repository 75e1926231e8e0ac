"""The redirect URI of one login: an HTTP server on loopback (RFC 8252, 7.3).

The rules: only a browser's own navigation is accepted, and only the first valid response counts. Any other
request is refused with a reason, and the login goes on waiting. The page for a valid response is sent when
the login has ended, so that it says whether it succeeded.
"""

import asyncio
import errno
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from mcpzip.auth.authorization_response import (
    AuthorizationCode,
    AuthorizationDenied,
    InvalidResponse,
    Response,
    pasted_query,
    read_response,
)
from mcpzip.auth.page import response
from mcpzip.model.errors import LoginError

LOOPBACK, PATH = "127.0.0.1", "/callback"

_HEAD = 64 * 1024
"""Bytes a request may have: codes of 8 KiB are known, and all of this machine's cookies come too."""
_HEAD_TIME = 20.0
_OUTCOME_TIME = 60.0
_LAST_WORDS_TIME = 3.0
"""Seconds for a request to be there, for a login to end after its answer, for pages to be read at the end."""
_CONNECTIONS = 64

_NOT_SIGNED_IN = "Not signed in"


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    doubled: bool
    """Whether a header that is looked at came twice."""


class Callback:
    """One server, for one login to ``name``. tell: shows a sentence to the person. place: where that is."""

    def __init__(
        self, name: str, listening: socket.socket, tell: Callable[[str], None], place: str = "The terminal"
    ) -> None:
        self._name, self._tell, self._place = name, tell, place
        self._socket = listening
        self._host = f"{LOOPBACK}:{listening.getsockname()[1]}"
        self.redirect_uri = f"http://{self._host}{PATH}"
        self._server: asyncio.Server | None = None
        self._state: str | None = None
        self._verdict: asyncio.Future[AuthorizationCode | AuthorizationDenied] | None = None
        self._outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._open: set[asyncio.Task[None]] = set()
        self._answered: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()

    @classmethod
    async def listen(
        cls,
        name: str,
        tell: Callable[[str], None],
        port: int = 0,
        rather: int = 0,
        place: str = "The terminal",
    ) -> Self:
        """Listens on ``port``; with 0 on ``rather`` where that is free, else on any. Raises LoginError."""
        callback = cls(name, _listening(port, rather), tell, place)
        callback._server = await asyncio.start_server(callback._came, sock=callback._socket, limit=_HEAD)
        return callback

    def expect(self, state: str) -> None:
        """Begins to wait for the answer to the login with ``state``; an earlier one is forgotten."""
        self._state = state
        self._verdict = asyncio.get_running_loop().create_future()

    async def verdict(self) -> AuthorizationCode | AuthorizationDenied:
        """The first valid response."""
        assert self._verdict is not None
        return await self._verdict

    def paste(self, text: str) -> None:
        """Takes what a person brought here by hand; tells them when it is not it."""
        if self._verdict is None or self._verdict.done():
            return
        query = pasted_query(text, self.redirect_uri)
        verdict = query if isinstance(query, InvalidResponse) else self._read_response(query)
        if isinstance(verdict, InvalidResponse):
            self._tell(f"{verdict.why} Paste it again, or sign in in the browser.")
        else:
            self._verdict.set_result(verdict)

    async def close(self, worked: bool) -> None:
        """Tells the browser that brought the answer how it ended, and listens no more."""
        if not self._outcome.done():
            self._outcome.set_result(worked)
        if self._server is not None:
            self._server.close()
        if self._answered:
            await asyncio.wait(self._answered, timeout=_LAST_WORDS_TIME)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody connected. The task is ours: of its own asyncio prints a traceback when it was cancelled
        (Python 3.11).
        """
        if self._outcome.done() or len(self._open) >= _CONNECTIONS:  # nobody would end it after `close`
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="callback")
        self._open.add(task)
        task.add_done_callback(lambda done: self._left(done, writer))

    def _left(self, task: "asyncio.Task[None]", writer: asyncio.StreamWriter) -> None:
        self._open.discard(task)
        self._answered.discard(task)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            writer.write(await self._answer(reader, task))
            async with asyncio.timeout(_LAST_WORDS_TIME):
                await writer.drain()
                if writer.can_write_eof():
                    writer.write_eof()
                while await reader.read(_HEAD):  # what still comes, lest the close cut our answer short
                    pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # it went away, or never asked anything: browsers open connections in reserve

    async def _answer(self, reader: asyncio.StreamReader, task: "asyncio.Task[None]") -> bytes:
        try:
            async with asyncio.timeout(_HEAD_TIME):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return self._refused(431, "The request is too large.")
        request = _read(head)
        if request is None:
            return self._refused(400, "The request can't be read.")
        refusal = self._stranger(request)
        if refusal is not None:
            return self._refused(*refusal, aloud=request.path != "/favicon.ico")
        verdict = self._read_response(request.query)
        if isinstance(verdict, InvalidResponse):
            return self._refused(400, verdict.why)
        assert self._verdict is not None
        if self._verdict.done():
            return self._refused(409, "This login has been answered already; only the first answer counts.")
        self._verdict.set_result(verdict)
        if isinstance(verdict, AuthorizationDenied):
            why = f"The authorization server of {self._name} refused: {verdict.why}."
            return response(403, _NOT_SIGNED_IN, f"{why} You can close this window.")
        self._answered.add(task)
        return await self._ending()

    async def _ending(self) -> bytes:
        try:
            async with asyncio.timeout(_OUTCOME_TIME):
                worked = await asyncio.shield(self._outcome)
        except TimeoutError:
            return response(504, "Still at it", f"{self._place} says how it ends.")
        if worked:
            text = "mcpzip can use this server now. You can close this window."
            return response(200, f"Signed in to {self._name}", text)
        return response(
            502, _NOT_SIGNED_IN, f"{self._name} could not be signed in to. {self._place} says why."
        )

    def _stranger(self, request: _Request) -> tuple[int, str] | None:
        """Why ``request`` is not that of a browser that was sent here, and the HTTP status of that."""
        headers = request.headers
        if request.doubled:
            return 400, "The request has a header twice."
        if headers.get("host") != self._host:  # a name that leads here: DNS rebinding
            return 421, "The request was meant for another host."
        if request.method != "GET":
            return 405, "The request has another method than GET."
        if request.path != PATH:
            return 404, f"There is nothing here but {PATH}."
        alone = headers.get("sec-fetch-mode", "navigate") == "navigate"
        if not alone or headers.get("sec-fetch-dest", "document") != "document":
            return 403, "The request is not a browser's own window, but a part of a page."
        if headers.get("origin", f"http://{self._host}") != f"http://{self._host}":
            return 403, "The request comes from a web page of another origin."
        return None

    def _read_response(self, query: str) -> Response:
        if self._state is None:
            return InvalidResponse("Nobody is signing in yet.")
        return read_response(query, self._state)

    def _refused(self, status: int, why: str, aloud: bool = True) -> bytes:
        ended = self._verdict is not None and self._verdict.done()
        if aloud and not ended and why not in self._told:
            self._told.add(why)  # each once: who can reach this port shall not fill the terminal
            self._tell(f"Refused something at {self.redirect_uri}: {why[0].lower()}{why[1:]} Still waiting.")
        still = f"The login goes on waiting; {self._place[0].lower()}{self._place[1:]} says where to sign in."
        text = f"{why} {f'{self._place} says how the login went.' if ended else still}"
        return response(status, _NOT_SIGNED_IN, text)


_LOOKED_AT = ("host", "origin", "sec-fetch-mode", "sec-fetch-dest")


def _read(head: bytes) -> _Request | None:
    """A request's head (RFC 9112, 3 and 5), or None for what is none."""
    try:
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        return None
    if not version.startswith("HTTP/1.") or not re.fullmatch("/[!-~]*", target):
        return None
    headers: dict[str, str] = {}
    doubled = False
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            return None
        name = name.lower()
        doubled = doubled or (name in headers and name in _LOOKED_AT)
        headers[name] = value.strip()
    path, _, query = target.partition("?")
    return _Request(method, path, query, headers, doubled)


def _listening(port: int, rather: int) -> socket.socket:
    if not port and rather:
        try:
            return socket.create_server((LOOPBACK, rather))
        except OSError:
            pass
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        number = error.errno or 0
        why = "is in use" if number == errno.EADDRINUSE else f"can't be had ({os.strerror(number)})"
        remedy = 'End what listens there, or set another "callback_port" for this server in the config.'
        raise LoginError(f"Port {port}, on which the browser is to come back, {why}. {remedy}") from error
