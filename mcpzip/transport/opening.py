"""Opening a channel to a server over HTTP.

The rule: the SDK takes half a second to import: only where it is needed, in a thread, and while others go on.
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

IMPORTING = threading.Lock()
"""One import of the SDK at a time: its modules import each other in circles, where two threads deadlock."""


async def opened(
    server: ServerConfig, sign_ins: SignIns | None, incoming: Incoming
) -> AbstractAsyncContextManager[Channel]:
    """The channel to ``server``, as a context. sign_ins: with which its requests are signed."""
    opener = await in_thread(_http_opener if server.transport == "http" else _sse_opener, "import-sdk")
    signing: Signing = Unsigned()
    if sign_ins is not None:
        known = sign_ins
        signing = await in_thread(lambda: _signing(server, known), "sign")
    return opener(server.url, server.headers, signing, incoming)


def _http_opener() -> _HttpOpener:
    with IMPORTING:
        from mcpzip.system.network import tls
        from mcpzip.transport.http import open_http

        tls()

    return open_http


def _sse_opener() -> _HttpOpener:
    with IMPORTING:
        from mcpzip.system.network import tls
        from mcpzip.transport.sse import open_sse

        tls()  # to read the certificates takes as long as a turn may

    return open_sse


def _signing(server: ServerConfig, sign_ins: SignIns) -> Signing:
    with IMPORTING:
        return ServerSigning(server, sign_ins)
