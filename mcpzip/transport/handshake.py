"""Which era an upstream speaks, and the opening of the conversation in it.

The rule (spec: basic/versioning, stdio and streamable-http "Backward compatibility"): ask `server/discover`
first; an answer means modern; *any* error or two seconds of silence means `initialize`, never keyed to one
error code. An upstream that ends on the unknown request is started again without it (`StartAgain`). What was
found is remembered, and only doubted when it fails.
"""

import asyncio
from dataclasses import dataclass

import msgspec

from mcpzip.transport.base import Channel, ChannelClosedError, Dialect, RpcFaultError
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    Era,
    initialize_params,
    stamp_request,
)

PROBE_TIMEOUT = 2.0
"""Seconds an upstream may stay silent after `server/discover` before it is taken for a legacy one."""

_NO_MATTER_OF_ERA = (401, 403, 429)
"""HTTP statuses that would meet `initialize` too."""


class StartAgainError(Exception):
    """The upstream ended on `server/discover`: open a new channel and go straight to `initialize`."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What an upstream said of itself. ``capabilities`` is JSON text; ``instructions`` is "" when it gave
    none.
    """

    dialect: Dialect
    capabilities: bytes
    instructions: str

    @property
    def tells_of_tools(self) -> bool:
        """Whether it promises `notifications/tools/list_changed`."""
        try:
            return msgspec.json.decode(self.capabilities, type=_Capabilities).tools.list_changed
        except msgspec.DecodeError:
            return False


class _ToolsCapability(msgspec.Struct, rename="camel", frozen=True):
    list_changed: bool = False


class _Capabilities(msgspec.Struct):
    tools: _ToolsCapability = _ToolsCapability()


class _Opening(msgspec.Struct, rename="camel"):
    protocol_version: str | None = None
    supported_versions: list[str] = []
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    instructions: str | None = None


async def greet(channel: Channel, *, client_info: bytes, remembered: str | None) -> Greeting:
    """Opens the conversation and sets ``channel.dialect``.

    ``remembered``: the version this upstream spoke last time. Has no timeout of its own beyond the probe's:
    the caller limits the whole. Raises StartAgainError, RpcFaultError, ChannelClosedError.
    """
    if remembered in LEGACY_VERSIONS:
        try:
            return await _initialize(channel, client_info)
        except RpcFaultError:
            return await _discover(channel, client_info)  # it was updated since
    return await _probe(channel, client_info)


async def _probe(channel: Channel, client_info: bytes) -> Greeting:
    discovering = asyncio.ensure_future(_discover(channel, client_info))
    try:
        await asyncio.wait({discovering}, timeout=PROBE_TIMEOUT)
        if discovering.done():
            try:
                return discovering.result()
            except RpcFaultError:
                return await _initialize(channel, client_info)
            except ChannelClosedError as error:
                if error.status is not None and error.status not in _NO_MATTER_OF_ERA:
                    return await _initialize(channel, client_info)
                if error.sent and error.status is None:
                    raise StartAgainError from error
                raise
        # Silent so far: a legacy server that drops what it doesn't know, or any server that is slow to start.
        # Ask both ways; a server that is only slow answers the first question first.
        return await _first_answer(
            discovering, asyncio.ensure_future(_initialize(channel, client_info)), channel
        )
    finally:
        await _stop(discovering)


async def _first_answer(
    discovering: "asyncio.Future[Greeting]", initializing: "asyncio.Future[Greeting]", channel: Channel
) -> Greeting:
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
                if failure is None or future is initializing:
                    failure = problem
        assert failure is not None
        raise failure
    finally:
        await _stop(initializing)


async def _stop(future: "asyncio.Future[Greeting]") -> None:
    if not future.done():
        future.cancel()
        await asyncio.wait({future})
    if not future.cancelled():
        future.exception()  # looked at: an abandoned probe's failure is no news


async def _discover(channel: Channel, client_info: bytes) -> Greeting:
    params = stamp_request(b"{}", MODERN_VERSION, client_info, b"{}")
    opening = _read(await channel.request("server/discover", params, cancellable=False))
    if MODERN_VERSION not in opening.supported_versions:
        raise ChannelClosedError(
            f"it speaks only protocol versions {', '.join(opening.supported_versions) or 'we do not know'}",
            sent=False,
        )
    channel.dialect = Dialect(Era.MODERN, MODERN_VERSION)
    return Greeting(channel.dialect, bytes(opening.capabilities), opening.instructions or "")


async def _initialize(channel: Channel, client_info: bytes) -> Greeting:
    params = initialize_params(LATEST_LEGACY_VERSION, client_info, b"{}")
    opening = _read(await channel.request("initialize", params, cancellable=False))
    version = opening.protocol_version
    if version not in LEGACY_VERSIONS:
        raise ChannelClosedError(f"it speaks protocol version {version!r}, which we do not", sent=False)
    channel.dialect = Dialect(Era.LEGACY, version)
    await channel.notify("notifications/initialized")
    return Greeting(channel.dialect, bytes(opening.capabilities), opening.instructions or "")


def _read(result: bytes) -> _Opening:
    try:
        return msgspec.json.decode(result, type=_Opening)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ChannelClosedError(
            f"its answer to the handshake makes no sense ({error})", sent=False
        ) from error
