"""Signing in with the machine's own credentials (RFC 6749, 4.4; RFC 7523). Imports the SDK."""

import warnings
from collections.abc import Awaitable, Callable

from mcp.client.auth import TokenStorage
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthContext

from mcpzip.config.schema import AuthConfig
from mcpzip.model.errors import LoginError
from mcpzip.system.threads import in_thread

Machine = ClientCredentialsOAuthProvider | PrivateKeyJWTOAuthProvider


def machine(config: AuthConfig, url: str, storage: TokenStorage, context: OAuthContext) -> Machine:
    """What asks for tokens in the machine's name, with what ``context`` knows of the server at ``url``."""
    made: Machine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK would be told the issuer; discovery says which it is
        if config.private_key:
            made = PrivateKeyJWTOAuthProvider(url, storage, config.client_id, _signing(config))
        else:
            secret = config.client_secret.reveal() if config.client_secret is not None else ""
            made = ClientCredentialsOAuthProvider(url, storage, config.client_id, secret)
    made.context = context
    return made


def _signing(config: AuthConfig) -> Callable[[str], Awaitable[str]]:
    async def sign(audience: str) -> str:
        try:
            parameters = SignedJWTParameters(
                issuer=config.client_id,
                subject=config.client_id,
                signing_key=await in_thread(lambda: _text(config.private_key), "key"),
                signing_algorithm=config.algorithm,
            )
            return await parameters.create_assertion_provider()(audience)
        except (OSError, ValueError, TypeError, NotImplementedError) as error:
            raise LoginError(f"the private key at {config.private_key} can't be used: {error}.") from error

    return sign


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
