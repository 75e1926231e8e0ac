"""How the login of a person begins: with a server that has one, and with no other login to it under way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcpzip.auth.codec import canonical
from mcpzip.auth.store import Store
from mcpzip.config.schema import Config, ServerConfig
from mcpzip.model.errors import LoginError, McpzipError, StoreError


def signed_in_server(config: Config, name: str) -> ServerConfig:
    """The server called ``name``, which ``config`` has. Raises McpzipError if it doesn't use OAuth."""
    server, where = config.servers[name], config.path
    if server.transport == "stdio":
        remedy = f'what it needs goes into its "env" in {where}'
        raise McpzipError(f"{name} runs on this machine and is not signed in to; {remedy}.")
    if server.problem:
        raise McpzipError(f"{name}: {server.problem}")
    if server.disabled:
        raise McpzipError(f'{name} is disabled; remove "disabled" from it in {where} first.')
    if server.headers_command:
        raise McpzipError(
            f'{name} is signed in to by its "headersCommand"; remove that in {where} to sign in here.'
        )
    if any(header.lower() == "authorization" for header in server.headers):
        way = "with the Authorization header"
        raise McpzipError(f"{name} is signed in to {way} in {where}; remove that to sign in here.")
    if server.auth is None:
        raise McpzipError(f'{name} has "auth": false in {where}; remove that to sign in.')
    return server


@asynccontextmanager
async def login_lock(store: Store, server: ServerConfig) -> AsyncIterator[None]:
    """Raises LoginError while another process signs in to ``server``."""
    held = False
    try:
        async with store.locked(f"login {canonical(server.url)}", timeout=0):
            held = True
            yield
    except TimeoutError as error:
        if held:
            raise
        remedy = "Finish that one, or end it with Ctrl-C."
        raise LoginError(f"Another login to {server.name} is under way. {remedy}") from error
    except StoreError:
        raise
    except OSError as error:
        if held:
            raise
        raise LoginError(f"{error.filename or 'The sign-ins'} can't be written: {error.strerror}.") from error
