"""The pages: one module and one template each.

`ROUTES` is the table of what there is. A page that is added has a row here, a module beside this one with its
`Handler`, and a template in ``templates``; if people look for it, an entry in the navigation of
``frame.html`` too.
"""

from collections.abc import Mapping

from mcpzip.ui.page import Handler
from mcpzip.ui.pages import calls, doctor, overview, review, search, server, servers, tool

ROUTES: Mapping[tuple[str, str], Handler] = {
    ("GET", "/"): overview.show,
    ("GET", "/servers"): servers.show,
    ("GET", "/servers/*"): server.show,
    ("POST", "/servers/*/restart"): server.restart,
    ("POST", "/servers/*/stop"): server.stop,
    ("GET", "/search"): search.show,
    ("GET", "/tools/*"): tool.show,
    ("POST", "/tools/*"): tool.call,
    ("GET", "/calls"): calls.show,
    ("GET", "/calls/*"): calls.show_one,
    ("GET", "/review"): review.show,
    ("GET", "/review/*"): review.show_item,
    ("POST", "/review/*/approve"): review.approve,
    ("POST", "/review/*/reject"): review.reject,
    ("GET", "/doctor"): doctor.show,
    ("POST", "/doctor/servers"): doctor.ask_servers,
}
"""By method and path, in which ``*`` is one part that a handler gets as ``name``."""
