"""Which era an upstream speaks, and the opening of the conversation in it.

The rule (spec: basic/versioning, stdio and streamable-http "Backward compatibility"): ask `server/discover`
first; an answer means modern; *any* error or two seconds of silence means `initialize`, never keyed to one
error code. For a legacy client, and for a server remembered as legacy, it is the other way round: *any* error
to `initialize` means `server/discover`. An upstream that ends on the request it doesn't know is started again
without it (`StartAgainError`).
"""

import asyncio
from dataclasses import dataclass

import msgspec

from mcpzip.model.limits import SELF
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.tasks import retrieve_exception
from mcpzip.transport.base import Channel, ChannelClosedError, Dialect, RpcFaultError
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    SERVER_INFO_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    Era,
    NotAnObject,
    RpcError,
    initialize_params,
    split_object,
    stamp_request,
    versions_in,
)

PROBE_TIMEOUT = 2.0
"""Seconds an upstream may stay silent after `server/discover` before it is taken for a legacy one."""

_NO_MATTER_OF_ERA = (401, 403, 429)
"""HTTP statuses that would meet `initialize` too."""


class StartAgainError(Exception):
    """The upstream ended on its first request: open a new channel and go straight to the other.

    era: the one to open it in.
    """

    def __init__(self, era: Era) -> None:
        self.era = era
        super().__init__(era.value)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What an upstream said of itself. ``capabilities`` and ``info`` (its `Implementation`) are JSON text;
    ``info`` is b"" and ``instructions`` "" when it gave none.
    """

    dialect: Dialect
    capabilities: bytes
    instructions: str
    info: bytes = b""

    @property
    def offers(self) -> "Capabilities":
        """What it promises, as far as it concerns us."""
        try:
            return msgspec.json.decode(self.capabilities, type=Capabilities)
        except msgspec.DecodeError:
            return Capabilities()


class Capability(msgspec.Struct, rename="camel", frozen=True):
    """One kind of thing a server has (spec: `ServerCapabilities`)."""

    list_changed: bool = False
    subscribe: bool = False


class Capabilities(msgspec.Struct, frozen=True):
    """The capabilities of a server that are ours to know; None for what it doesn't have."""

    tools: Capability | None = None
    prompts: Capability | None = None
    resources: Capability | None = None
    logging: "_Anything | None" = None


class _Anything(msgspec.Struct, frozen=True):
    """An object, whatever is in it."""


class _Opening(msgspec.Struct, rename="camel"):
    protocol_version: str | None = None
    supported_versions: msgspec.Raw = msgspec.Raw(b"[]")
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    instructions: str | None = None
    server_info: msgspec.Raw = msgspec.Raw(b"")
    meta: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="_meta")


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What we say of ourselves in a handshake: our `Implementation` and, to a legacy upstream, what our
    client can be asked; JSON texts.
    """

    info: bytes
    capabilities: bytes = b"{}"


async def shake_hands(
    channel: Channel, ourselves: ClientIdentity, *, first: Era, sure: bool = False
) -> ServerInfo:
    """Opens the conversation and sets ``channel.dialect``.

    first: the era to try first. sure: it spoke that one last time, so that ending on it means nothing. Has no
    timeout of its own beyond the probe's: the caller limits the whole. Raises StartAgainError, RpcFaultError,
    ChannelClosedError.
    """
    if first is Era.MODERN:
        return await _probe(channel, ourselves, sure)
    try:
        return await _initialize(channel, ourselves)
    except RpcFaultError as refusal:
        try:
            return await _discover(channel, ourselves)
        except RpcFaultError as other:
            raise _telling(refusal, other) from None
    except _OtherEraError as otherwise:
        try:
            return await _discover(channel, ourselves)
        except (RpcFaultError, ChannelClosedError):
            raise otherwise from None
    except ChannelClosedError as error:
        if error.status is not None and error.status not in _NO_MATTER_OF_ERA:
            return await _discover(channel, ourselves)
        if _may_have_died_of_it(error) and not sure:
            raise StartAgainError(Era.MODERN) from error
        raise


def _may_have_died_of_it(error: ChannelClosedError) -> bool:
    """Whether the server ended, or closed the connection, on what it was asked."""
    return error.sent and error.status is None


async def _probe(channel: Channel, ourselves: ClientIdentity, sure: bool) -> ServerInfo:
    discovering = asyncio.ensure_future(_discover(channel, ourselves))
    try:
        await asyncio.wait({discovering}, timeout=PROBE_TIMEOUT)
        if discovering.done():
            try:
                return discovering.result()
            except _OtherEraError as error:
                return await _initialize_instead(channel, ourselves, error)
            except RpcFaultError as fault:
                if _names_our_version(fault.error):
                    return await _discover(channel, ourselves)
                try:
                    return await _initialize(channel, ourselves)
                except RpcFaultError as other:
                    raise _telling(other, fault) from None
            except ChannelClosedError as error:
                if error.status is not None and error.status not in _NO_MATTER_OF_ERA:
                    return await _initialize(channel, ourselves)
                if _may_have_died_of_it(error) and not sure:
                    raise StartAgainError(Era.LEGACY) from error
                raise
        # Silent so far: a legacy server that drops what it doesn't know, or any server that is slow to start.
        # Ask both ways; a server that is only slow answers the first question first, or dies of it.
        try:
            return await _first_answer(
                discovering, asyncio.ensure_future(_initialize(channel, ourselves)), channel
            )
        except ChannelClosedError as error:
            if _may_have_died_of_it(error) and not sure:
                raise StartAgainError(Era.LEGACY) from error
            raise
    finally:
        await _stop(discovering)


def _telling(initialize: RpcFaultError, discover: RpcFaultError) -> RpcFaultError:
    """Which of two refusals says more: that of the handshake the server knows."""
    return discover if initialize.error.code == UNSUPPORTED_PROTOCOL_VERSION else initialize


async def _initialize_instead(
    channel: Channel, ourselves: ClientIdentity, otherwise: ChannelClosedError
) -> ServerInfo:
    """The legacy handshake with a server whose answer to `server/discover` promises us nothing."""
    try:
        return await _initialize(channel, ourselves)
    except (RpcFaultError, ChannelClosedError):
        raise otherwise from None


def _names_our_version(error: RpcError) -> bool:
    """Whether a server that refused our version names it among those it speaks: it is to be asked again (spec
    2026-07-28: basic/versioning).
    """
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or error.data is None:
        return False
    try:
        return MODERN_VERSION in versions_in(bytes(msgspec.json.decode(error.data, type=_Refusal).supported))
    except ValueError:
        return False


class _Refusal(msgspec.Struct):
    supported: msgspec.Raw = msgspec.Raw(b"[]")


class _OtherEraError(ChannelClosedError):
    """A server answered the handshake of one era, and speaks no version of it that we do."""


async def _first_answer(
    discovering: "asyncio.Future[ServerInfo]", initializing: "asyncio.Future[ServerInfo]", channel: Channel
) -> ServerInfo:
    try:
        waiting = {discovering, initializing}
        failure: BaseException | None = None
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: future is initializing):
                if (problem := future.exception()) is None:
                    greeting = future.result()
                    channel.dialect = greeting.dialect
                    return greeting
                if failure is None or (future is initializing and not isinstance(failure, _OtherEraError)):
                    failure = problem
        assert failure is not None
        raise failure
    finally:
        await _stop(initializing)


async def _stop(future: "asyncio.Future[ServerInfo]") -> None:
    if not future.done():
        future.cancel()
        await asyncio.wait({future})
    retrieve_exception(future)


async def _discover(channel: Channel, ourselves: ClientIdentity) -> ServerInfo:
    params = stamp_request(b"{}", MODERN_VERSION, ourselves.info, b"{}")
    opening = _read(await channel.request("server/discover", params, cancellable=False))
    try:
        versions = versions_in(bytes(opening.supported_versions))
    except ValueError as error:
        raise _senseless(error) from error
    if MODERN_VERSION not in versions:
        spoken = shortened(", ".join(versions))
        raise _OtherEraError(
            f"it speaks only protocol versions {spoken or 'we do not know'}",
            sent=False,
        )
    channel.dialect = Dialect(Era.MODERN, MODERN_VERSION)
    try:
        info = split_object(bytes(opening.meta)).get(SERVER_INFO_KEY, b"")
    except NotAnObject:
        info = b""
    return ServerInfo(channel.dialect, _bounded(opening.capabilities), opening.instructions or "", info)


async def _initialize(channel: Channel, ourselves: ClientIdentity) -> ServerInfo:
    params = initialize_params(LATEST_LEGACY_VERSION, ourselves.info, ourselves.capabilities)
    opening = _read(await channel.request("initialize", params, cancellable=False))
    version = opening.protocol_version
    if version not in LEGACY_VERSIONS:
        spoken = "no protocol version" if version is None else f"protocol version {quoted(version)}"
        raise _OtherEraError(f"it speaks {spoken}, which we do not", sent=False)
    channel.dialect = Dialect(Era.LEGACY, version)
    await channel.notify("notifications/initialized")
    return ServerInfo(
        channel.dialect,
        _bounded(opening.capabilities),
        opening.instructions or "",
        _bounded(opening.server_info),
    )


def _read(result: bytes) -> _Opening:
    try:
        return msgspec.json.decode(result, type=_Opening)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _senseless(error) from error


def _bounded(raw: msgspec.Raw) -> bytes:
    """What a server says of itself; of what is too large to be kept, as much as shows that it is."""
    return bytes(memoryview(raw)[: SELF + 1])


def _senseless(error: Exception) -> ChannelClosedError:
    return ChannelClosedError(
        f"its answer to the handshake makes no sense ({shortened(str(error))})", sent=False
    )
