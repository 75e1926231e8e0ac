"""An upstream over the legacy HTTP+SSE transport (spec 2024-11-05: basic/transports)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
import mcp.client.sse as sdk_sse
from mcp.shared._httpx_utils import sse_within_origin

from mcpzip.model.quoting import one_line, quoted, shortened
from mcpzip.transport.base import ChannelClosedError, Incoming, Signing
from mcpzip.transport.refusal import refusal, remedy
from mcpzip.transport.sdk import STREAM_READ_TIMEOUT, SdkChannel, dispatching
from mcpzip.transport.witness import (
    CONNECT_TIMEOUT,
    FOLLOW,
    UNREACHABLE,
    Witness,
    led_away,
    unreachable,
)


class _Events:
    """The events of one stream. One that would have us post to another origin ends it: the SDK (2.3.0) waits
    for ever there.
    """

    def __init__(self, source: httpx2.EventSource) -> None:
        self.response = source.response
        self._source = source

    async def __aiter__(self) -> AsyncIterator[httpx2.ServerSentEvent]:
        own = self.response.request.url
        async for event in self._source:
            if event.event == "endpoint":
                try:
                    target = own.join(event.data)
                except httpx2.InvalidURL as error:
                    said = shortened(str(error))
                    raise httpx2.SSEError(f"where it would have us post to is no address: {said}") from error
                if (target.scheme, target.host, target.port) != (own.scheme, own.host, own.port):
                    raise httpx2.SSEError(
                        f"it would have us post to {quoted(str(target))}, which is another origin"
                    )
            yield event


@asynccontextmanager
async def _sse(client: httpx2.AsyncClient, url: str) -> AsyncIterator[_Events]:
    # The SDK caps one event at 1 MiB and gives `sse_client` no way to say otherwise; a listing of 1,000 tools
    # is more.
    async with sse_within_origin(client, url, max_event_size=None) as source:
        yield _Events(source)


setattr(sdk_sse, "sse_within_origin", _sse)  # noqa: B010 - not exported


@asynccontextmanager
async def open_sse(
    url: str, headers: Mapping[str, str], signing: Signing, incoming: Incoming
) -> AsyncIterator[SdkChannel]:
    """A legacy HTTP+SSE channel (spec 2024-11-05: basic/transports). Connects at once.

    Raises ChannelClosedError (sent=False) when the event stream can't be opened.
    """
    witness = Witness(url, soften=True, auth=signing.auth)

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, transport=witness)

    opened = False
    try:
        async with sdk_sse.sse_client(
            url,
            headers=dict(headers),
            timeout=CONNECT_TIMEOUT,
            sse_read_timeout=STREAM_READ_TIMEOUT,
            httpx_client_factory=client,
        ) as (read, write):
            opened = True
            async with dispatching(read, write, witness, signing, incoming) as channel:
                yield channel
    except BaseExceptionGroup as group:
        if opened:
            raise
        raise _sse_refused(url, group, signing) from group
    except (httpx2.HTTPError, ValueError) as error:
        if opened:
            raise
        raise _sse_refused(url, error, signing) from error


def _sse_refused(url: str, error: BaseException, signing: Signing) -> BaseException:
    for leaf in _leaves(error):
        match leaf:
            case httpx2.HTTPStatusError(response=response) if response.has_redirect_location:
                target = str(response.url.join(response.headers["location"]))
                status = response.status_code
                return ChannelClosedError(led_away(target), sent=False, status=status, remedy=FOLLOW)
            case httpx2.HTTPStatusError():
                code = leaf.response.status_code
                if (wanted := signing.refused(code)) is not None:
                    return wanted
                reason = refusal(leaf.response, leaf.response.content)
                return ChannelClosedError(reason, sent=False, status=code, remedy=remedy(code))
            case httpx2.ConnectError() | httpx2.ConnectTimeout():
                reason = unreachable(httpx2.URL(url), leaf)
                return ChannelClosedError(reason, sent=False, remedy=UNREACHABLE)
            case httpx2.HTTPError() | ValueError():
                return ChannelClosedError(
                    f"its event stream can't be opened ({one_line(str(leaf))})", sent=False
                )
            case asyncio.CancelledError():
                return leaf
    return error


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
