"""What `mcpzip serve --http` calls if its config has a page for people.

Nothing of the page is imported before.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpzip.config import Config
    from mcpzip.config.schema import PageConfig
    from mcpzip.server.http.serve import Page


def open_page(config: "Config", page: "PageConfig") -> "Page":
    """Listens for ``page`` of ``config``. Raises ConfigError."""
    from mcpzip.server.stderr import warn
    from mcpzip.ui.team.serve import TeamPage

    return TeamPage(config, page, warn)
