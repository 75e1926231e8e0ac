"""The pages: one module and one template each.

`ROUTES` is the table of what there is. A page that is added has a row here, a module beside this one with its
`Handler`, and a template in ``templates``; if people look for it, a row in `NAVIGATION` too.
"""

from collections.abc import Mapping

from mcpzip.ui.page import Handler
from mcpzip.ui.pages import overview, search, server, servers, tool

ROUTES: Mapping[tuple[str, str], Handler] = {
    ("GET", "/"): overview.show,
    ("GET", "/servers"): servers.show,
    ("GET", "/servers/*"): server.show,
    ("POST", "/servers/*/restart"): server.restart,
    ("POST", "/servers/*/stop"): server.stop,
    ("GET", "/search"): search.show,
    ("GET", "/tools/*"): tool.show,
    ("POST", "/tools/*"): tool.call,
}
"""By method and path, in which ``*`` is one part that a handler gets as ``name``."""
