"""Opening a channel to a server over HTTP.

The rule: importing httpx takes a tenth of a second, and so does reading the certificates. So both happen only
when a server needs them, in a thread.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import Channel, Incoming, Signing
from mcpzip.transport.signing import ServerSigning, Unsigned

_HttpOpener = Callable[[str, Mapping[str, str], Signing, Incoming], AbstractAsyncContextManager[Channel]]

_IMPORTING = threading.Lock()


async def opened(
    server: ServerConfig, sign_ins: SignIns | None, incoming: Incoming, environment: Mapping[str, str]
) -> AbstractAsyncContextManager[Channel]:
    """The channel to ``server``, as a context. sign_ins: sign its requests. environment: in which requests
    are made without ``sign_ins``, which have their own.
    """
    opener, signing = await in_thread(lambda: _prepared(server, sign_ins, environment), "open-http")
    return opener(server.url, server.headers, signing, incoming)


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
