"""Finds out which era an upstream speaks, and does the handshake of that era.

The rule (spec: basic/versioning, stdio and streamable-http "Backward compatibility"): send `server/discover`
first; a result means modern; after *any* error code, or two seconds without a response, send `initialize`.
For a legacy client, and for a server remembered as legacy, `initialize` comes first and *any* error to it
leads to `server/discover`. An upstream that exits on the request it doesn't know is started again without it
(`StartAgainError`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from mcpzip.model.limits import SELF
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.tasks import cancel
from mcpzip.transport.base import Channel, ChannelClosedError, Dialect
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    SERVER_INFO_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    Era,
    JsonRpcError,
    NotAnObject,
    RpcError,
    initialize_params,
    split_object,
    stamp_request,
    versions_in,
)
from mcpzip.wire.client_info import CLIENT_INFO

PROBE_TIMEOUT = 2.0
"""Seconds without a response to `server/discover` after which `initialize` is sent as well."""

_ERA_INDEPENDENT = (401, 403, 429)
"""HTTP statuses that the handshake of the other era would get too."""


class StartAgainError(Exception):
    """The upstream exited on the first request: open a new channel and do the handshake of the other era.

    era: that other era.
    """

    def __init__(self, era: Era) -> None:
        self.era = era
        super().__init__(era.value)


class ServerInfo(msgspec.Struct, frozen=True):
    """The handshake result. ``capabilities`` and ``info`` (the server's `Implementation`) are JSON text;
    ``info`` is b"" and ``instructions`` "" when the server sent none.
    """

    dialect: Dialect
    capabilities: bytes
    instructions: str
    info: bytes = b""

    @property
    def offers(self) -> "Capabilities":
        """The parsed capabilities."""
        try:
            return msgspec.json.decode(self.capabilities, type=Capabilities)
        except msgspec.DecodeError:
            return Capabilities()


class Capability(msgspec.Struct, rename="camel", frozen=True):
    """The capability of a server's tools, prompts or resources (spec: `ServerCapabilities`)."""

    list_changed: bool = False
    subscribe: bool = False


class Capabilities(msgspec.Struct, frozen=True):
    """The server capabilities that mcpzip reads; None for one that the server lacks."""

    tools: Capability | None = None
    prompts: Capability | None = None
    resources: Capability | None = None
    logging: "_EmptyStruct | None" = None


class _EmptyStruct(msgspec.Struct, frozen=True):
    """A JSON object whose members are ignored."""


class _HandshakeResult(msgspec.Struct, rename="camel"):
    """The members of both eras' results."""

    protocol_version: str | None = None
    supported_versions: msgspec.Raw = msgspec.Raw(b"[]")
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    instructions: str | None = None
    server_info: msgspec.Raw = msgspec.Raw(b"")
    meta: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="_meta")


async def shake_hands(channel: Channel, capabilities: bytes, *, first: Era, sure: bool = False) -> ServerInfo:
    """Does the handshake and sets ``channel.dialect``.

    capabilities: of the client, JSON text; sent to a legacy upstream. first: the era to try first. sure:
    whether the upstream spoke that era last time; if it exits now, the era is not the cause. There is no
    timeout except the probe's: the caller limits the whole. Raises StartAgainError, JsonRpcError,
    ChannelClosedError.
    """
    if first is Era.LEGACY:
        initializing = _initialize(channel, capabilities)
        return await _with_fallback(channel, initializing, lambda: _discover(channel), Era.MODERN, sure)
    discovering = asyncio.ensure_future(_discover(channel))
    try:
        await asyncio.wait({discovering}, timeout=PROBE_TIMEOUT)
        if discovering.done():
            initialize = partial(_initialize, channel, capabilities)
            return await _with_fallback(channel, discovering, initialize, Era.LEGACY, sure)
        # No response yet: a legacy server that ignores unknown requests, or a server that is slow to start.
        # So `initialize` is sent too. A slow server first answers `server/discover`, or exits because of it.
        try:
            return await _first_result(
                discovering, asyncio.ensure_future(_initialize(channel, capabilities)), channel
            )
        except ChannelClosedError as error:
            if _may_have_exited(error) and not sure:
                raise StartAgainError(Era.LEGACY) from error
            raise
    finally:
        await cancel(discovering)


async def _with_fallback(
    channel: Channel,
    first: Awaitable[ServerInfo],
    second: Callable[[], Awaitable[ServerInfo]],
    era: Era,
    sure: bool,
) -> ServerInfo:
    """The result of the ``first`` handshake, else of the ``second``, which is that of ``era``."""
    try:
        return await first
    except _OtherEraError as error:
        try:
            return await second()
        except (JsonRpcError, ChannelClosedError):
            raise error from None
    except JsonRpcError as fault:
        if _names_our_version(fault.error):
            return await _discover(channel)
        try:
            return await second()
        except JsonRpcError as other:
            initialize, discover = (fault, other) if era is Era.MODERN else (other, fault)
            # The server knows the handshake that it didn't refuse as unsupported.
            raise (
                discover if initialize.error.code == UNSUPPORTED_PROTOCOL_VERSION else initialize
            ) from None
    except ChannelClosedError as error:
        if error.status is not None and error.status not in _ERA_INDEPENDENT:
            return await second()
        if _may_have_exited(error) and not sure:
            raise StartAgainError(era) from error
        raise


def _may_have_exited(error: ChannelClosedError) -> bool:
    """Whether the request may have made the server exit or close the connection."""
    return error.sent and error.status is None


def _names_our_version(error: RpcError) -> bool:
    """Whether a server that refused our version lists it as supported: the request is then repeated (spec
    2026-07-28: basic/versioning).
    """
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or error.data is None:
        return False
    try:
        return MODERN_VERSION in versions_in(
            bytes(msgspec.json.decode(error.data, type=_UnsupportedVersionData).supported)
        )
    except ValueError:
        return False


class _UnsupportedVersionData(msgspec.Struct):
    supported: msgspec.Raw = msgspec.Raw(b"[]")


class _OtherEraError(ChannelClosedError):
    """A server answered the handshake of one era, but speaks no version of it that we speak."""


async def _first_result(
    discovering: "asyncio.Future[ServerInfo]", initializing: "asyncio.Future[ServerInfo]", channel: Channel
) -> ServerInfo:
    try:
        waiting = {discovering, initializing}
        failure: BaseException | None = None
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: future is initializing):
                if (problem := future.exception()) is None:
                    info = future.result()
                    channel.dialect = info.dialect
                    return info
                if failure is None or (future is initializing and not isinstance(failure, _OtherEraError)):
                    failure = problem
        assert failure is not None
        raise failure
    finally:
        await cancel(initializing)


async def _discover(channel: Channel) -> ServerInfo:
    params = stamp_request(b"{}", MODERN_VERSION, CLIENT_INFO, b"{}")
    result = _parsed(await channel.request("server/discover", params, cancellable=False))
    try:
        versions = versions_in(bytes(result.supported_versions))
    except ValueError as error:
        raise _malformed(error) from error
    if MODERN_VERSION not in versions:
        spoken = shortened(", ".join(versions))
        raise _OtherEraError(
            f"it speaks only protocol versions {spoken or 'we do not know'}",
            sent=False,
        )
    channel.dialect = Dialect(Era.MODERN, MODERN_VERSION)
    try:
        info = split_object(bytes(result.meta)).get(SERVER_INFO_KEY, b"")
    except NotAnObject:
        info = b""
    return ServerInfo(channel.dialect, _bounded(result.capabilities), result.instructions or "", info)


async def _initialize(channel: Channel, capabilities: bytes) -> ServerInfo:
    params = initialize_params(LATEST_LEGACY_VERSION, CLIENT_INFO, capabilities)
    result = _parsed(await channel.request("initialize", params, cancellable=False))
    version = result.protocol_version
    if version not in LEGACY_VERSIONS:
        spoken = "no protocol version" if version is None else f"protocol version {quoted(version)}"
        raise _OtherEraError(f"it speaks {spoken}, which we do not", sent=False)
    channel.dialect = Dialect(Era.LEGACY, version)
    await channel.notify("notifications/initialized")
    return ServerInfo(
        channel.dialect,
        _bounded(result.capabilities),
        result.instructions or "",
        _bounded(result.server_info),
    )


def _parsed(result: bytes) -> _HandshakeResult:
    try:
        return msgspec.json.decode(result, type=_HandshakeResult)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _malformed(error) from error


def _bounded(raw: msgspec.Raw) -> bytes:
    """The text, cut one byte after the limit; the extra byte shows that it is too large."""
    return bytes(memoryview(raw)[: SELF + 1])


def _malformed(error: Exception) -> ChannelClosedError:
    return ChannelClosedError(
        f"its answer to the handshake makes no sense ({shortened(str(error))})", sent=False
    )
