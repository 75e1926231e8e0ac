"""The network as httpcore sees it, on asyncio.

httpcore's own backend goes through anyio, which takes as long for a small request as the rest of httpcore.

The rule: of the head of a response, which httpcore reads without limit, interim responses included, only so
much is handed on, in small pieces (`head_limited`).
"""

import asyncio
import select
import socket
import ssl
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any

import httpcore

from mcpzip.model.limits import HEAD
from mcpzip.wire.content_coding import ContentCodingError

_HEAD_READ = 4 * 1024
"""Bytes that are read at a time of the head of a response: 256 interim ones at most."""
_BODY_READ = 32 * 1024
"""The same of a body. What stands behind the body is read with it, and may be interim responses to the next
request.
"""
_NEXT_ADDRESS = 0.25
"""Seconds after which the next address of a host is tried as well."""
_TOGETHER = 16 * 1024
"""Bytes up to which what is written waits until something is read."""
_HELD = 256 * 1024
"""Bytes that are held unread; past it the socket isn't read."""


class HeadTooLongError(ContentCodingError):
    """Too much came before a response began."""


class _Head:
    """What has come of one response whose head is awaited."""

    def __init__(self) -> None:
        self.bytes = 0


_awaited: ContextVar[_Head | None] = ContextVar("_awaited", default=None)


@contextmanager
def head_limited() -> Iterator[None]:
    """What is read in here is the head of one response. Reading raises HeadTooLongError beyond the limit."""
    before = _awaited.set(_Head())
    try:
        yield
    finally:
        _awaited.reset(before)


class Network(httpcore.AsyncNetworkBackend):
    """Makes connections, with asyncio."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """As httpcore has it; ``local_address`` and ``socket_options``, which nobody passes, do nothing."""
        loop = asyncio.get_running_loop()
        with _mapped(httpcore.ConnectError, httpcore.ConnectTimeout):
            async with asyncio.timeout(timeout):
                connected = await _connected(await _addresses(host, port))
                try:
                    _, stream = await loop.create_connection(_Stream, sock=connected)
                except BaseException:
                    connected.close()
                    raise
        return stream

    async def sleep(self, seconds: float) -> None:
        """As httpcore has it."""
        await asyncio.sleep(seconds)


_Address = tuple[socket.AddressFamily, Any]


async def _addresses(host: str, port: int) -> list[_Address]:
    """The addresses of ``host``, in turns of IPv6 and IPv4 (RFC 8305, 4). Raises OSError."""
    if (literal := _literal(host, port)) is not None:  # which takes no thread to look up
        return [literal]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    known = [(family, address) for family, _, _, _, address in found]
    first = [each for each in known if each[0] == known[0][0]]
    others = [each for each in known if each[0] != known[0][0]]
    return [each for pair in zip_longest(first, others) for each in pair if each is not None]


def _literal(host: str, port: int) -> _Address | None:
    """The address that ``host`` is; None for a name, and an address with a zone."""
    try:
        version = ip_address(host).version
    except ValueError:
        return None
    if "%" in host:
        return None
    return (socket.AF_INET, (host, port)) if version == 4 else (socket.AF_INET6, (host, port, 0, 0))


async def _connected(addresses: Sequence[_Address]) -> socket.socket:
    """A socket that is connected to one of them: each is tried when those before it have failed, or say
    nothing for a moment (RFC 8305, 5). Raises OSError. asyncio's own way loses a socket if it is cancelled.
    """
    loop = asyncio.get_running_loop()
    trying: list[asyncio.Task[socket.socket]] = []
    left, failure = list(addresses), OSError("it has no address")
    try:
        while left or trying:
            if left:
                trying.append(loop.create_task(_tried(*left.pop(0))))
            done, _ = await asyncio.wait(
                trying, timeout=_NEXT_ADDRESS if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                trying.remove(task)
                error = task.exception()
                if error is None:
                    return task.result()
                if not isinstance(error, OSError):
                    raise error
                failure = error
        raise failure
    finally:
        for task in trying:
            task.cancel()
            task.add_done_callback(_discard)


async def _tried(family: socket.AddressFamily, address: Any) -> socket.socket:
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connecting, address)
    except BaseException:
        connecting.close()
        raise
    return connecting


def _discard(task: "asyncio.Task[socket.socket]") -> None:
    """Nobody wants what it connected to."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


class _Stream(httpcore.AsyncNetworkStream, asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._held, self._unsent = bytearray(), b""
        self._ended = self._stopped = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > _HELD and not self._stopped:
            self._stopped = True
            self._transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        self._ended = True
        _wake(self._reader)

    def connection_lost(self, error: Exception | None) -> None:
        self._ended, self._error = True, error or self._error
        _wake(self._reader)
        _wake(self._writer)
        self._writer = None

    def pause_writing(self) -> None:
        self._writer = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._writer)
        self._writer = None

    # ---- what httpcore calls

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        head = _awaited.get()
        if head is not None:
            if head.bytes >= HEAD:
                raise HeadTooLongError(f"its answer has not begun after {HEAD:,} bytes")
            max_bytes = min(max_bytes, _HEAD_READ)
        else:
            max_bytes = min(max_bytes, _BODY_READ)
        if self._unsent:
            await self._flush(timeout)
        if not self._held and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            with _mapped(httpcore.ReadError, httpcore.ReadTimeout):
                async with asyncio.timeout(timeout):
                    await self._reader
        elif head is not None:
            await asyncio.sleep(0)  # interim responses may be many, and nothing else waits for anything
        data = bytes(self._held[:max_bytes])
        del self._held[:max_bytes]
        if self._stopped and len(self._held) <= _HELD // 2:
            self._stopped = False
            self._transport.resume_reading()
        if not data and self._error is not None:
            raise httpcore.ReadError(str(self._error)) from self._error
        if head is not None:
            head.bytes += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._ended and self._transport.is_closing():
            raise httpcore.WriteError(str(self._error or "the connection was closed"))
        self._unsent += buffer
        if len(self._unsent) > _TOGETHER:
            await self._flush(timeout)

    async def _flush(self, timeout: float | None) -> None:
        """Sends what was written and not sent: the head of a request and a short body go together."""
        unsent, self._unsent = self._unsent, b""
        self._transport.write(unsent)
        if self._writer is not None:
            with _mapped(httpcore.WriteError, httpcore.WriteTimeout):
                async with asyncio.timeout(timeout):
                    await self._writer
            if self._error is not None:
                raise httpcore.WriteError(str(self._error)) from self._error

    async def aclose(self) -> None:
        # What it has not taken by now, and the good-bye of TLS, nobody waits for.
        if self._transport.get_write_buffer_size() or self._transport.get_extra_info("ssl_object"):
            self._transport.abort()
        else:
            self._transport.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            # What a proxy sent in the clear would be taken for what the server says under TLS.
            if self._held or self._ended:
                raise httpcore.ConnectError("something was said before TLS began")
            with _mapped(httpcore.ConnectError, httpcore.ConnectTimeout):
                async with asyncio.timeout(timeout):
                    secured = await loop.start_tls(
                        self._transport, self, ssl_context, server_hostname=server_hostname
                    )
        except BaseException:
            self._transport.abort()
            raise
        assert secured is not None
        self._transport = secured
        return self

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "is_readable":  # unused, it is to have nothing to say: not even its end
                return bool(self._held) or self._ended or _is_readable(self._transport)
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case _:
                return self._transport.get_extra_info(info)


def _is_readable(transport: asyncio.Transport) -> bool:
    """Whether something came, or it ended, that asyncio has not told of yet."""
    number = transport.get_extra_info("socket").fileno()
    if number < 0:
        return True
    if sys.platform == "win32":
        return bool(select.select([number], (), (), 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


def _wake(future: "asyncio.Future[None] | None") -> None:
    if future is not None and not future.done():
        future.set_result(None)


@contextmanager
def _mapped(failed: type[Exception], late: type[Exception]) -> Iterator[None]:
    """An error of the network is one of httpcore's."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:  # ssl.SSLError too
        raise failed(str(error)) from error
