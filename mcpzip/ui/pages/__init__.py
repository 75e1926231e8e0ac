"""The pages: one module and one template each.

`ROUTES` is the table of what there is. A page that is added has a row here, a module beside this one with its
`Handler`, and a template in ``templates``; if people look for it, an entry in the navigation of
``frame.html`` too.
"""

from collections.abc import Mapping

from mcpzip.ui.page import Handler
from mcpzip.ui.pages import (
    add,
    calls,
    config,
    config_change,
    doctor,
    overview,
    review,
    search,
    server,
    server_settings,
    servers,
    tool,
)

ROUTES: Mapping[tuple[str, str], Handler] = {
    ("GET", "/"): overview.show,
    ("GET", "/servers"): servers.show,
    ("GET", "/servers/*"): server.show,
    ("POST", "/servers/*/restart"): server.restart,
    ("POST", "/servers/*/stop"): server.stop,
    ("POST", "/servers/*/edit"): server_settings.edit,
    ("POST", "/servers/*/sign-in"): server_settings.sign_in,
    ("POST", "/servers/*/cancel-sign-in"): server_settings.cancel_sign_in,
    ("POST", "/servers/*/sign-out"): server_settings.sign_out,
    ("GET", "/add"): add.show,
    ("POST", "/add"): add.add,
    ("GET", "/search"): search.show,
    ("GET", "/tools/*"): tool.show,
    ("POST", "/tools/*"): tool.call,
    ("GET", "/calls"): calls.show,
    ("GET", "/calls/*"): calls.show_one,
    ("GET", "/review"): review.show,
    ("GET", "/review/*"): review.show_item,
    ("POST", "/review/*/approve"): review.approve,
    ("POST", "/review/*/reject"): review.reject,
    ("POST", "/allow/*"): review.allow,
    ("GET", "/config"): config.show,
    ("POST", "/config/edit"): config.edit,
    ("POST", "/config/check"): config.check_text,
    ("POST", "/config/diff"): config.difference,
    ("POST", "/config/undo"): config.undo,
    ("POST", "/config/forget"): config.forget,
    ("POST", "/config/save"): config_change.save_draft,
    ("GET", "/doctor"): doctor.show,
    ("POST", "/doctor/servers"): doctor.ask_servers,
}
"""By method and path, in which ``*`` is one part that a handler gets as ``name``."""
