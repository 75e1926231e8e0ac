"""TCP and TLS connections to servers on asyncio, with happy eyeballs and bounded buffers."""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any

import httpx

from mcpzip.system.network import is_socket_readable
from mcpzip.system.timer import Timer

_NEXT_ADDRESS = 0.25
"""Seconds before the next address of a host is tried in parallel (RFC 8305, 5)."""
_READ_BUFFER = 256 * 1024
"""Bytes that are buffered unread; with more, reading from the socket pauses."""


async def connect(host: str, port: int, timeout: float | None) -> "Stream":
    """A TCP connection to ``host``. Raises httpx.ConnectError, httpx.ConnectTimeout."""
    with _connect_errors():
        async with asyncio.timeout(timeout):
            connection = await _connect(await _addresses(host, port))
            try:
                _, stream = await asyncio.get_running_loop().create_connection(Stream, sock=connection)
            except BaseException:
                connection.close()
                raise
    return stream


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


class Stream(asyncio.Protocol):
    """The bytes of one connection. Timeouts are in seconds, None for none."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._ended = self._paused = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._read_timer = Timer()
        self._writer: asyncio.Future[None] | None = None

    @property
    def peer(self) -> Any:
        """The address of the other end, as the socket has it."""
        return self._transport.get_extra_info("peername")

    @property
    def is_closing(self) -> bool:
        """Whether it was closed, by either side."""
        return self._ended or self._transport.is_closing()

    @property
    def is_quiet(self) -> bool:
        """Whether it is open and nothing is there to be read, also where asyncio has not looked yet."""
        if self._received or self.is_closing:
            return False
        number: int = self._transport.get_extra_info("socket").fileno()
        return number >= 0 and not is_socket_readable(number)

    async def read(self, most: int, timeout: float | None = None) -> bytes:
        """Up to ``most`` bytes, b"" at the end. Raises httpx.ReadError, httpx.ReadTimeout."""
        if not self._received and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            if timeout is not None:
                self._read_timer.set(timeout, self._read_late)
            try:
                await self._reader
            finally:
                self._read_timer.clear()
        data = bytes(self._received[:most])
        del self._received[:most]
        if self._paused and len(self._received) <= _READ_BUFFER // 2:
            self._paused = False
            self._transport.resume_reading()
        if not data and self._error is not None:
            raise httpx.ReadError(str(self._error)) from self._error
        return data

    async def write(self, data: bytes, timeout: float | None = None) -> None:
        """Sends ``data``; waits while much is unsent. Raises httpx.WriteError, httpx.WriteTimeout."""
        if self._ended and self._transport.is_closing():
            raise httpx.WriteError(str(self._error or "the connection was closed"))
        self._transport.write(data)
        if self._writer is not None:
            try:
                async with asyncio.timeout(timeout):
                    await self._writer
            except TimeoutError as error:
                raise httpx.WriteTimeout(str(error)) from error
            if self._error is not None:
                raise httpx.WriteError(str(self._error)) from self._error

    async def start_tls(self, context: ssl.SSLContext, host: str, timeout: float | None) -> None:
        """Begins TLS with the server ``host``. Raises httpx.ConnectError, httpx.ConnectTimeout."""
        loop = asyncio.get_running_loop()
        context.set_alpn_protocols(["http/1.1"])
        try:
            # Plain text that a proxy has already sent would be read as if the server had sent it over TLS.
            if self._received or self._ended:
                raise httpx.ConnectError("data was received before TLS began")
            with _connect_errors():
                async with asyncio.timeout(timeout):
                    secured = await loop.start_tls(self._transport, self, context, server_hostname=host)
        except BaseException:
            self._transport.abort()
            raise
        assert secured is not None
        self._transport = secured

    def close(self) -> None:
        """Closes the connection without waiting for unsent data, or for the peer's TLS close_notify."""
        if self._transport.get_write_buffer_size() or self._transport.get_extra_info("ssl_object"):
            self._transport.abort()
        else:
            self._transport.close()

    def _read_late(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_exception(httpx.ReadTimeout("nothing was received in time"))

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
        self._read_timer.close()
        _wake(self._reader)
        _wake(self._writer)
        self._writer = None

    def pause_writing(self) -> None:
        self._writer = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._writer)
        self._writer = None


def _wake(future: "asyncio.Future[None] | None") -> None:
    if future is not None and not future.done():
        future.set_result(None)


@contextmanager
def _connect_errors() -> Iterator[None]:
    """Raises OSError, also ssl.SSLError, and TimeoutError as the exceptions of httpx."""
    try:
        yield
    except TimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except OSError as error:
        raise httpx.ConnectError(str(error)) from error
