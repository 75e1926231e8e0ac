"""What a person reads who has no config yet: which clients have servers, and how to begin."""

import os
from collections.abc import Mapping

from mcpzip.clients.documents import DocumentError, read
from mcpzip.clients.entries import is_built_in, is_mcpzip
from mcpzip.clients.known import Client, known_clients
from mcpzip.clients.migration import MigrationError, read_file
from mcpzip.config.paths import DEFAULT, config_path, expand_home
from mcpzip.model.errors import ConfigError


def first_step(error: ConfigError, env: Mapping[str, str]) -> str | None:
    """The sentences for ``error`` if it says that there is no config at the default path; else None."""
    default = config_path(os.path.abspath(expand_home(DEFAULT, env)), {})
    if not isinstance(error.__cause__, FileNotFoundError) or error.file != default:
        return None
    counts = [(client.title, count) for client in known_clients(env) if (count := _servers(client))]
    if not counts:
        return "No config yet. mcpzip init asks what you want; mcpzip add adds a server."
    has = ", ".join(f"{title} {count}" for title, count in counts[1:])
    title, count = counts[0]
    first = f"{title} has {count} {'server' if count == 1 else 'servers'}"
    return f"No config yet. {first}{', ' if has else ''}{has}. To move them here: mcpzip migrate"


def _servers(client: Client) -> int:
    """How many servers of its own the client has."""
    count = 0
    for path in client.files:
        try:
            data = read_file(path)
            servers = {} if data is None else read(data, client.format).servers(client.servers)
        except (DocumentError, MigrationError):
            continue
        count += sum(not is_mcpzip(entry) and not is_built_in(entry) for entry in servers.values())
    return count
