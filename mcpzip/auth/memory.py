"""A grant as the SDK's provider keeps it, and back. Imports the SDK.

The rule: what can't be read is as if it were not there; a person signs in again, and nothing fails.
"""

from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

from mcpzip.auth.grant import Grant
from mcpzip.auth.scopes import well_formed
from mcpzip.config.schema import AuthConfig
from mcpzip.model.errors import LoginError

Model = TypeVar("Model", bound=BaseModel)


def configured_client(
    config: AuthConfig, metadata: OAuthMetadata | None
) -> OAuthClientInformationFull | None:
    """The client that was registered by hand, if one was. metadata: of its authorization server, which says
    how a secret is shown.
    """
    if not config.client_id:
        return None
    secret = config.client_secret.reveal() if config.client_secret is not None else None
    known = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
    method = "none"
    if config.private_key:
        method = "private_key_jwt"
    elif secret is not None:
        post = known is not None and "client_secret_basic" not in known and "client_secret_post" in known
        method = "client_secret_post" if post else "client_secret_basic"
    return OAuthClientInformationFull(
        client_id=config.client_id, client_secret=secret, token_endpoint_auth_method=method
    )


def recall(context: OAuthContext, grant: Grant | None, config: AuthConfig) -> None:
    """Makes ``context`` know what ``grant`` says, and nothing else."""
    context.clear_tokens()
    context.oauth_metadata = context.protected_resource_metadata = None
    context.auth_server_url = None
    context.client_info = configured_client(config, None)
    if grant is None:
        return
    context.oauth_metadata = _model(OAuthMetadata, grant.server_metadata)
    context.protected_resource_metadata = _model(ProtectedResourceMetadata, grant.resource_metadata)
    if context.protected_resource_metadata is not None:
        advertised = [str(server) for server in context.protected_resource_metadata.authorization_servers]
        theirs = (server for server in advertised if issuers_match(server, grant.issuer))
        context.auth_server_url = next(theirs, advertised[0])
    context.client_info = configured_client(config, context.oauth_metadata) or _client(grant)
    if grant.access_token:
        context.current_tokens = OAuthToken(
            access_token=grant.access_token,
            refresh_token=grant.refresh_token or None,
            scope=grant.scope or None,
        )
        context.token_expiry_time = grant.expires_at


def granted(context: OAuthContext, url: str, now: float) -> Grant:
    """What ``context`` now knows of the server at ``url``. now: Unix s."""
    tokens, client, metadata = context.current_tokens, context.client_info, context.oauth_metadata
    resource = context.protected_resource_metadata
    grant = Grant(
        url=url,
        issuer="" if metadata is None else str(metadata.issuer),
        client={}
        if client is None
        else client.model_dump(mode="json", exclude_none=True, exclude={"issuer"}),
        server_metadata=_plain(metadata),
        resource_metadata=_plain(resource),
    )
    if tokens is None:
        return grant
    return msgspec.structs.replace(
        grant,
        resource=context.get_resource_url(),
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or "",
        scope=well_formed(tokens.scope or ""),
        expires_at=None if tokens.expires_in is None else now + tokens.expires_in,
        obtained_at=now,
    )


def of_this_client(grant: Grant, config: AuthConfig) -> bool:
    """Whether ``grant`` was made to the client that the config names, if it names one."""
    return not config.client_id or grant.client.get("client_id") == config.client_id


def check_issuer(grant: Grant | None, metadata: OAuthMetadata, config: AuthConfig) -> None:
    """Raises LoginError for another issuer than the one in the config, or where there is none, than the one
    to which a secret out of the config was shown before: a server names its issuer, the secret isn't its own.
    """
    before, now = (grant.issuer if grant is not None else ""), str(metadata.issuer)
    if config.issuer:
        if not issuers_match(config.issuer, now):
            raise LoginError(f"it names {now} as its authorization server, and the config {config.issuer}.")
        return
    if config.client_secret is not None and before and before != now:
        raise LoginError(
            f"its authorization server was {before} and is now {now}, which is not shown the client secret "
            "in the config; if that is right, sign out of it first, with mcpzip auth logout."
        )


def callback_port(grant: Grant | None) -> int:
    """The port of the loopback address that our registration comes back to; 0 when it says none."""
    addresses = grant.client.get("redirect_uris") if grant is not None else None
    for address in addresses if isinstance(addresses, list) else ():
        parts = urlsplit(address) if isinstance(address, str) else None
        if parts is not None and parts.hostname in ("127.0.0.1", "localhost"):
            try:
                return parts.port or 0
            except ValueError:
                return 0
    return 0


def _client(grant: Grant) -> OAuthClientInformationFull | None:
    client = _model(OAuthClientInformationFull, grant.client or None)
    if client is not None:
        client.issuer = grant.issuer or None
    return client


def _model(kind: type[Model], said: dict[str, object] | None) -> Model | None:
    if said is None:
        return None
    try:
        return kind.model_validate(said)
    except ValidationError:
        return None


def _plain(model: BaseModel | None) -> dict[str, object] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
