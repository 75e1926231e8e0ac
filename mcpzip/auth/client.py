"""The OAuth client that mcpzip is to an authorization server: its id (configured, registered by RFC 7591, or
a URL with its metadata: draft-ietf-oauth-client-id-metadata-document), and how it authenticates at the token
endpoint (pure).
"""

import base64
from typing import Annotated
from urllib.parse import quote, urlsplit

import msgspec

from mcpzip import __version__
from mcpzip.auth.grant import Grant
from mcpzip.auth.metadata import ServerMetadata
from mcpzip.config.schema import AuthConfig
from mcpzip.model.errors import LoginError
from mcpzip.model.quoting import quoted
from mcpzip.system.network import is_loopback

Text = Annotated[str, msgspec.Meta(max_length=65_536)]

_WITH_SECRET = ("client_secret_basic", "client_secret_post")
_METHODS = ("", "none", *_WITH_SECRET)
"""How a client can prove who it is with nothing but what its registration says; "" for not at all."""


class Client(msgspec.Struct, frozen=True, omit_defaults=True):
    """A registration (RFC 7591, 3.2.1). client_secret, token_endpoint_auth_method: "" for none."""

    client_id: Annotated[str, msgspec.Meta(min_length=1, max_length=65_536)]
    client_secret: Text = ""
    token_endpoint_auth_method: Text = ""
    redirect_uris: Annotated[list[Text], msgspec.Meta(max_length=1_000)] = []
    scope: Text = ""
    client_id_issued_at: float | None = None
    client_secret_expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Client({self.client_id!r})"

    def as_dict(self) -> dict[str, object]:
        """As a grant keeps it."""
        return dict(msgspec.to_builtins(self))


def read_client(said: dict[str, object]) -> Client | None:
    """The registration in ``said``; None if it is none. Members that are null or "" are read as missing."""
    try:
        return msgspec.convert(
            {name: value for name, value in said.items() if value not in (None, "")}, Client, strict=False
        )
    except (ValueError, RecursionError):
        return None


def configured_client(config: AuthConfig, metadata: ServerMetadata | None) -> Client | None:
    """The client that was registered by hand, if there is one. metadata: of its authorization server, which
    says how it takes a secret.
    """
    if not config.client_id:
        return None
    secret = config.client_secret.reveal() if config.client_secret is not None else ""
    known = (metadata.token_endpoint_auth_methods_supported if metadata is not None else None) or ()
    post = "client_secret_post" in known and "client_secret_basic" not in known
    method = "client_secret_post" if post else "client_secret_basic"
    if not secret:
        method = "private_key_jwt" if config.private_key else "none"
    return Client(config.client_id, secret, method)


def client_of(grant: Grant | None, config: AuthConfig, metadata: ServerMetadata | None) -> Client | None:
    """The client that ``grant`` was made to, or will be; None if it has to be registered."""
    return configured_client(config, metadata) or (read_client(grant.client) if grant is not None else None)


def of_this_client(grant: Grant, config: AuthConfig) -> bool:
    """Whether ``grant`` was made to the client that the config names, if it names one."""
    return not config.client_id or grant.client.get("client_id") == config.client_id


def registration(redirect_uri: str, scope: str) -> dict[str, object]:
    """The client metadata that we register (RFC 7591, 2; OpenID Connect Registration 1.0, 2)."""
    return {
        "client_name": "mcpzip",
        "software_id": "mcpzip",
        "software_version": __version__,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native" if is_loopback(redirect_uri) else "web",
        **({"scope": scope} if scope else {}),
    }


def check_registered(client: Client) -> None:
    """Raises LoginError for a registration with which we could not prove who we are (RFC 7591, 3.2.1)."""
    method = client.token_endpoint_auth_method
    _check_method(method)
    if method in _WITH_SECRET and not client.client_secret:
        raise LoginError(f"it registers us for {method} and gives us no client secret; tell whoever runs it.")


def authenticate(client: Client, form: dict[str, str]) -> dict[str, str]:
    """Adds to ``form``, of a request to the token endpoint, who asks. Returns the headers that it needs (RFC
    6749, 2.3.1). Raises LoginError.
    """
    method, secret = client.token_endpoint_auth_method, client.client_secret
    if method != "private_key_jwt":  # which is for another grant than these, and signed there
        _check_method(method)
    if method == "client_secret_basic" and secret:
        pair = f"{quote(client.client_id, safe='')}:{quote(secret, safe='')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    if method == "client_secret_post" and secret:
        form |= {"client_id": client.client_id, "client_secret": secret}
    return {}


def callback_port(grant: Grant | None) -> int:
    """The port of the loopback address that our registration comes back to; 0 if it names none."""
    addresses = grant.client.get("redirect_uris") if grant is not None else None
    for address in addresses if isinstance(addresses, list) else ():
        parts = urlsplit(address) if isinstance(address, str) else None
        if parts is not None and parts.hostname in ("127.0.0.1", "localhost"):
            try:
                return parts.port or 0
            except ValueError:
                return 0
    return 0


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise LoginError(
            f"it registered us for the authentication method {quoted(method)}, which is not known here."
        )
