"""How clients name themselves: mcpzip to a server, and a client to mcpzip (spec: basic/lifecycle,
`Implementation`).
"""

import json

from mcpzip import __version__
from mcpzip.model.quoting import shortened
from mcpzip.wire.json_object import join_object, quote

CLIENT_INFO = join_object({"name": quote("mcpzip"), "version": quote(__version__)})
"""Our `Implementation` as a client, JSON text."""
_NAME = 80
"""Characters of a client's name."""


def name_and_version(info: bytes) -> tuple[str, str]:
    """Those in a client's `Implementation`, JSON text, shortened."""
    try:
        found = json.loads(info)
    except (ValueError, RecursionError):
        found = None
    fields = found if isinstance(found, dict) else {}
    name, version = (shortened(str(fields.get(key) or ""), _NAME) for key in ("name", "version"))
    return name or "unnamed client", version
