"""Opening a channel to a server over HTTP.

The rule: importing httpx takes a tenth of a second, and so does reading the certificates. So both happen only
when a server needs them, in a thread.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import Channel, Incoming, ProcessTap, Signing, recorder
from mcpzip.transport.signing import ServerSigning, Unsigned

if TYPE_CHECKING:
    import httpx

_Around = Callable[["httpx.AsyncBaseTransport"], "httpx.AsyncBaseTransport"]
_HttpOpener = Callable[
    [str, Mapping[str, str], Signing, Incoming, _Around | None], AbstractAsyncContextManager[Channel]
]

_IMPORTING = threading.Lock()


async def opened(
    server: ServerConfig, sign_ins: SignIns | None, incoming: Incoming, environment: Mapping[str, str]
) -> AbstractAsyncContextManager[Channel]:
    """The channel to ``server``, as a context. sign_ins: sign its requests. environment: in which requests
    are made without ``sign_ins``, which have their own.
    """
    opener, signing = await in_thread(lambda: _prepared(server, sign_ins, environment), "open-http")
    recording = recorder()
    around = None if recording is None else partial(recording.requests, server)
    return opener(server.url, server.headers, signing, incoming, around)


def process_tap(server: ServerConfig, argv: Sequence[str]) -> Callable[[], ProcessTap] | None:
    """What gives the recorder of a process of ``server``; None, which is usual, if it is not recorded."""
    recording = recorder()
    return None if recording is None else partial(recording.process, server, argv)


def _prepared(
    server: ServerConfig, sign_ins: SignIns | None, environment: Mapping[str, str]
) -> tuple[_HttpOpener, Signing]:
    with _IMPORTING:
        from mcpzip.system.network import tls_context
        from mcpzip.transport.http import open_http
        from mcpzip.transport.sse import open_sse

        signing = Unsigned(environment) if sign_ins is None else ServerSigning(server, sign_ins)
        tls_context(signing.environment)
    return (open_http if server.transport == "http" else open_sse), signing
