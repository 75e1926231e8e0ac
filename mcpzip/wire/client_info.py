"""How mcpzip names itself to a server."""

from mcpzip import __version__
from mcpzip.wire.json_object import join_object, quote

CLIENT_INFO = join_object({"name": quote("mcpzip"), "version": quote(__version__)})
"""Our `Implementation` as a client, JSON text."""
