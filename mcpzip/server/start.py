"""`mcpzip serve` over stdio, from its first line: in front of the daemon, or alone.

The rule: a client waits for it, so only what serves this client is imported.
"""

import os

from mcpzip.system import local_socket


def main(explicit_config: "str | None", *, alone: bool = False) -> int:
    """Serves the client of this process. alone: without a daemon, as with MCPZIP_DAEMON=off. Returns the exit
    code.
    """
    if alone or os.environ.get(local_socket.SWITCH) == "off":
        from mcpzip.server.early_handshake import main as serve_alone

        return serve_alone(explicit_config)
    from mcpzip.server.shim import main as serve

    return serve(explicit_config)
