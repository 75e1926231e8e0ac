"""An upstream over Streamable HTTP (spec: basic/transports/streamable-http)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from mcpzip.transport.base import Incoming, Signing
from mcpzip.transport.sdk import STREAM_READ_TIMEOUT, SdkChannel, dispatching
from mcpzip.transport.witness import CONNECT_TIMEOUT, Witness


@asynccontextmanager
async def open_http(
    url: str, headers: Mapping[str, str], signing: Signing, incoming: Incoming
) -> AsyncIterator[SdkChannel]:
    """A Streamable HTTP channel (spec: basic/transports/streamable-http). Nothing is sent until the first
    request.
    """
    witness = Witness(url, soften=False, auth=signing.auth)
    timeout = httpx2.Timeout(30.0, connect=CONNECT_TIMEOUT, read=STREAM_READ_TIMEOUT, pool=None)
    async with (
        httpx2.AsyncClient(headers=dict(headers), transport=witness, timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=None) as (read, write),
        dispatching(read, write, witness, signing, incoming) as channel,
    ):
        yield channel
