"""A network backend for httpcore on asyncio.

httpcore's own backend uses anyio, which doubles the time of a small request. This backend also limits the
head of a response with its interim responses, which httpcore reads without a limit (`head_limited`).
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any

import httpcore

from mcpzip.model.limits import HEAD
from mcpzip.system.network import is_socket_readable
from mcpzip.wire.content_coding import ContentCodingError

_HEAD_READ = 4 * 1024
"""Bytes of a head that are read at a time: at most 256 interim responses."""
_BODY_READ = 32 * 1024
"""Bytes of a body that are read at a time. The last may have interim responses to the next request."""
_NEXT_ADDRESS = 0.25
"""Seconds before the next address of a host is tried in parallel (RFC 8305, 5)."""
_WRITE_BUFFER = 16 * 1024
"""Bytes of a request that are buffered until it is complete and the response is read."""
_READ_BUFFER = 256 * 1024
"""Bytes that are buffered unread; with more, reading from the socket pauses."""


class HeadTooLongError(ContentCodingError):
    """The interim responses and the head of a response exceed `limits.HEAD`."""


class _Head:
    """The number of bytes that were read of one head."""

    def __init__(self) -> None:
        self.bytes = 0


_current_head: ContextVar[_Head | None] = ContextVar("_current_head", default=None)


@contextmanager
def head_limited() -> Iterator[None]:
    """All that is read in this context is one head; reading too much of it raises HeadTooLongError."""
    token = _current_head.set(_Head())
    try:
        yield
    finally:
        _current_head.reset(token)


class Network(httpcore.AsyncNetworkBackend):
    """The backend. Its methods are documented in httpcore."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """``local_address`` and ``socket_options``, which our pool doesn't set, are ignored."""
        loop = asyncio.get_running_loop()
        with _httpcore_errors(httpcore.ConnectError, httpcore.ConnectTimeout):
            async with asyncio.timeout(timeout):
                connection = await _connect(await _addresses(host, port))
                try:
                    _, stream = await loop.create_connection(_Stream, sock=connection)
                except BaseException:
                    connection.close()
                    raise
        return stream

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_Address = tuple[socket.AddressFamily, Any]


async def _addresses(host: str, port: int) -> list[_Address]:
    """The addresses of ``host``, alternating between IPv6 and IPv4 (RFC 8305, 4). Raises OSError."""
    if (literal := _literal_address(host, port)) is not None:  # needs no thread
        return [literal]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [(family, address) for family, _, _, _, address in found]
    first = [each for each in addresses if each[0] == addresses[0][0]]
    others = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for pair in zip_longest(first, others) for each in pair if each is not None]


def _literal_address(host: str, port: int) -> _Address | None:
    """``host`` if it is an IP address; None for a name, and for an address with a zone."""
    try:
        version = ip_address(host).version
    except ValueError:
        return None
    if "%" in host:
        return None
    return (socket.AF_INET, (host, port)) if version == 4 else (socket.AF_INET6, (host, port, 0, 0))


async def _connect(addresses: Sequence[_Address]) -> socket.socket:
    """A socket that is connected to one of ``addresses``. The next is tried when the others have failed or
    `_NEXT_ADDRESS` seconds have passed ("Happy Eyeballs", RFC 8305, 5). Raises OSError.

    asyncio's own implementation leaks a socket if it is cancelled.
    """
    loop = asyncio.get_running_loop()
    attempts: list[asyncio.Task[socket.socket]] = []
    remaining, failure = list(addresses), OSError("it has no address")
    try:
        while remaining or attempts:
            if remaining:
                attempts.append(loop.create_task(_connect_to(*remaining.pop(0))))
            done, _ = await asyncio.wait(
                attempts, timeout=_NEXT_ADDRESS if remaining else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                attempts.remove(task)
                error = task.exception()
                if error is None:
                    return task.result()
                if not isinstance(error, OSError):
                    raise error
                failure = error
        raise failure
    finally:
        for task in attempts:
            task.cancel()
            task.add_done_callback(_close_result)


async def _connect_to(family: socket.AddressFamily, address: Any) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_result(task: "asyncio.Task[socket.socket]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


class _Stream(httpcore.AsyncNetworkStream, asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._received, self._unsent = bytearray(), b""
        self._ended = self._paused = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # ---- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _READ_BUFFER and not self._paused:
            self._paused = True
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

    # ---- called by httpcore

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        head = _current_head.get()
        if head is not None:
            if head.bytes >= HEAD:
                raise HeadTooLongError(f"its answer has not begun after {HEAD:,} bytes")
            max_bytes = min(max_bytes, _HEAD_READ)
        else:
            max_bytes = min(max_bytes, _BODY_READ)
        if self._unsent:
            await self._flush(timeout)
        if not self._received and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            with _httpcore_errors(httpcore.ReadError, httpcore.ReadTimeout):
                async with asyncio.timeout(timeout):
                    await self._reader
        elif head is not None:
            await asyncio.sleep(0)  # httpcore skips interim responses without letting other tasks run
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if self._paused and len(self._received) <= _READ_BUFFER // 2:
            self._paused = False
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
        if len(self._unsent) > _WRITE_BUFFER:
            await self._flush(timeout)

    async def _flush(self, timeout: float | None) -> None:
        """Sends the buffered part of a request: its head and a short body in one packet."""
        unsent, self._unsent = self._unsent, b""
        self._transport.write(unsent)
        if self._writer is not None:
            with _httpcore_errors(httpcore.WriteError, httpcore.WriteTimeout):
                async with asyncio.timeout(timeout):
                    await self._writer
            if self._error is not None:
                raise httpcore.WriteError(str(self._error)) from self._error

    async def aclose(self) -> None:
        # Do not wait until unsent data is sent, nor for the peer's TLS close_notify.
        if self._transport.get_write_buffer_size() or self._transport.get_extra_info("ssl_object"):
            self._transport.abort()
        else:
            self._transport.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            # Plain text that a proxy has already sent would be read as if the server had sent it over TLS.
            if self._received or self._ended:
                raise httpcore.ConnectError("data was received before TLS began")
            with _httpcore_errors(httpcore.ConnectError, httpcore.ConnectTimeout):
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
            case "is_readable":  # httpcore drops an idle connection that has data or was closed
                return bool(self._received) or self._ended or _is_readable(self._transport)
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case _:
                return self._transport.get_extra_info(info)


def _is_readable(transport: asyncio.Transport) -> bool:
    """Whether the socket has data, or was closed, and asyncio has not reported that yet."""
    number: int = transport.get_extra_info("socket").fileno()
    return number < 0 or is_socket_readable(number)


def _wake(future: "asyncio.Future[None] | None") -> None:
    if future is not None and not future.done():
        future.set_result(None)


@contextmanager
def _httpcore_errors(failure: type[Exception], timeout: type[Exception]) -> Iterator[None]:
    """Raises OSError as ``failure`` and TimeoutError as ``timeout``, which are exceptions of httpcore."""
    try:
        yield
    except TimeoutError as error:
        raise timeout(str(error)) from error
    except OSError as error:  # also ssl.SSLError
        raise failure(str(error)) from error
